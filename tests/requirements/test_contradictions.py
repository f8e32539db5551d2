"""REQUIREMENTS 2.2: what the source documents got wrong cannot happen here; one test each."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args

import pytest

from remanence import Memory, Message, Note, Policy
from remanence.errors import InvalidPolicy
from remanence.protocols import ObserveRequest
from remanence.testing import (
    FixedClock,
    ScriptedObserver,
    ScriptedReflector,
    check_coverage,
    check_tiling,
)
from remanence.testing.observers import brief_notes
from remanence.types import Draft, Priority, Tag

WORDS = "seven brave sailors crossed a quiet bay before the morning bell rang twice "


def turns(count: int, *, start: int = 0) -> list[Message]:
    return [
        message
        for number in range(start, start + count)
        for message in (
            Message.user(f"{number} {WORDS}"),
            Message.assistant(f"answer {number} {WORDS}"),
        )
    ]


@pytest.mark.req("C-07")
async def test_without_observations_no_message_is_missing_however_many_exceed_keep_last() -> None:
    async with Memory.open("sqlite:///:memory:", policy=Policy.brain()) as memory:
        chat = memory.conversation("a")
        await chat.append(*turns(40))
        context = await chat.context()

    assert [message.seq for message in context.messages] == list(range(1, 81))
    assert context.omitted == ()


@pytest.mark.req("C-20")
@pytest.mark.parametrize("system", ["", "You help."])
async def test_a_breakpoint_never_stands_on_text_of_this_turn(system: str) -> None:
    policy = Policy(observe_tokens=300, tail_tokens=600, tail_keep_tokens=100, keep_last=2)
    async with Memory.open(
        "sqlite:///:memory:", policy=policy, observer=ScriptedObserver()
    ) as memory:
        chat = memory.conversation("a")
        await chat.append(*turns(30))
        await chat.flush()
        await chat.append(Message.user("And now?"))
        context = await chat.context(system=system, recall="sailors", channel="telegram")

    request = context.to_anthropic()
    blocks = [*request["system"], *(b for m in request["messages"] for b in m["content"])]
    marked = [block["text"] for block in blocks if "cache_control" in block]
    assert marked[-1] == "And now?"
    assert len(marked) <= 4
    assert not any("telegram" in text or "Current time" in text for text in marked)


@pytest.mark.req("C-21")
def test_a_reflection_that_the_model_cannot_write_in_one_answer_is_refused_at_the_start() -> None:
    with pytest.raises(InvalidPolicy, match=r"24,000 tokens .*max_output_tokens=4,096"):
        Policy.brain(max_output_tokens=4_096, note_ratio=0.1)


@pytest.mark.req("C-22")
async def test_an_observer_receives_each_message_with_its_time() -> None:
    observer = ScriptedObserver()
    at = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
    policy = Policy(observe_tokens=100)
    async with Memory.open("sqlite:///:memory:", policy=policy, observer=observer) as memory:
        chat = memory.conversation("a")
        for index, message in enumerate(turns(10)):
            await chat.append(message.replace(created_at=at + timedelta(minutes=index)))
        await chat.flush()

    seen = [message for request in observer.requests for message in request.messages]
    assert [message.created_at for message in seen] == [
        at + timedelta(minutes=index) for index in range(len(seen))
    ]


@pytest.mark.req("C-23")
async def test_the_message_that_crosses_the_threshold_triggers_the_observation() -> None:
    observer = ScriptedObserver()
    policy = Policy(
        token_counter="flat",
        observe_tokens=100,
        observe_slice="all",
        keep_last=0,
        tail_tokens=500,
        tail_keep_tokens=0,
    )
    async with Memory.open("sqlite:///:memory:", policy=policy, observer=observer) as memory:
        chat = memory.conversation("a")
        state = (await chat.append(Message.user("x" * 380)), await chat.flush())[1]
        assert state.unobserved_tokens <= 100
        assert observer.requests == []
        await chat.append(Message.user("y" * 40))
        await chat.flush()

    assert [len(request.messages) for request in observer.requests] == [2]


@pytest.mark.req("C-24")
async def test_messages_that_come_while_an_observation_runs_stay_counted_and_unobserved() -> None:
    gate = asyncio.Event()
    observer = ScriptedObserver(gate=gate)
    policy = Policy(observe_tokens=300, keep_last=0)
    async with Memory.open("sqlite:///:memory:", policy=policy, observer=observer) as memory:
        chat = memory.conversation("a")
        await chat.append(*turns(10))
        async with asyncio.timeout(60):
            await observer.called.wait()
        late = await chat.append(Message.user("This came meanwhile."))
        gate.set()
        state = await chat.flush()
        messages = await chat.messages(after=state.observed_seq)

    assert late[0].seq in {message.seq for message in messages}
    assert state.unobserved_tokens == sum(message.tokens for message in messages)


@pytest.mark.req("C-24")
async def test_of_two_racing_observers_one_result_is_kept_and_the_other_leaves_no_trace(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    clock = FixedClock()
    gates = asyncio.Event(), asyncio.Event()
    observers = tuple(ScriptedObserver(gate=gate) for gate in gates)
    policy = Policy(observe_tokens=300, keep_last=0, observe_timeout_seconds=20)
    async with Memory.open(url, policy=policy, observer=observers[0], clock=clock) as first:
        chat = first.conversation("a")
        await chat.append(*turns(12))
        async with asyncio.timeout(60):
            await observers[0].called.wait()  # it has the lease: only now may others open
        slow = asyncio.create_task(chat.flush())
        lease_is_over = FixedClock(clock.now() + timedelta(hours=1), prefix="c")
        async with Memory.open(
            url, policy=policy, observer=observers[1], clock=lease_is_over
        ) as second:
            gates[1].set()
            await second.conversation("a").flush()
            won = await second.conversation("a").observations()
        gates[0].set()
        await slow
        segments = await chat.observations()
        state = await chat.state()

    assert segments[: len(won)] == won
    check_tiling(state, segments)


@pytest.mark.req("C-25")
async def test_each_tag_and_priority_of_a_note_is_stored_and_comes_back() -> None:
    said = Note(text="", first_seq=1, last_seq=1, observed_at=datetime(2026, 3, 2, tzinfo=UTC))
    notes = tuple(
        replace(said, text=f"{tag} in words", tag=tag, priority=priority)
        for tag in get_args(Tag)
        for priority in get_args(Priority)
    )
    observer = ScriptedObserver([Draft(notes=notes, made_by="scripted/1")])
    async with Memory.open("sqlite:///:memory:", observer=observer) as memory:
        chat = memory.conversation("a")
        await chat.append(*turns(20))
        await chat.flush(everything=True)
        observations = await chat.observations()

    assert observations[0].notes == notes


@pytest.mark.req("C-26")
async def test_between_reflections_the_shown_notes_only_grow_at_their_end() -> None:
    policy = Policy(
        observe_tokens=300,
        tail_tokens=600,
        tail_keep_tokens=100,
        keep_last=2,
        reflect_tokens=(300, 300),
    )
    shown: list[str] = []
    rewrites = 0
    async with Memory.open(
        "sqlite:///:memory:",
        policy=policy,
        observer=ScriptedObserver(),
        reflector=ScriptedReflector(),
    ) as memory:
        chat = memory.conversation("a")
        for number in range(80):
            await chat.append(*turns(1, start=number))
            await chat.flush()
            context = await chat.context()
            now = [block.text for block in context.system]
            if now[: len(shown)] != shown:
                rewrites += 1
            shown = now
        reflections = [entry for entry in await chat.log() if entry.kind == "reflected"]

    assert 0 < rewrites <= len(reflections)


@pytest.mark.req("C-27")
async def test_growth_without_an_observer_stays_within_the_window_and_is_named() -> None:
    policy = Policy(
        max_context_tokens=10_000,
        tail_tokens=2_000,
        tail_keep_tokens=500,
        reflect_tokens=(2_000, 2_000),
        block_after=1.0,
        sync_timeout_seconds=0.01,
        observe_timeout_seconds=0.01,
    )
    observer = ScriptedObserver(gate=asyncio.Event())
    async with Memory.open("sqlite:///:memory:", policy=policy, observer=observer) as memory:
        chat = memory.conversation("a")
        await chat.append(*turns(800))
        context = await chat.context(system="You help.")
        state = await chat.state()

    assert context.stats.context_tokens <= 10_000
    assert {gap.reason for gap in context.omitted} == {"over_budget", "stand_in"}
    check_coverage(context, state, ())


@pytest.mark.req("C-28")
async def test_every_way_to_a_context_gives_the_same_shape() -> None:
    for policy in (Policy(), Policy.lango(enabled=True), Policy.zora(), Policy.brain()):
        async with Memory.open("sqlite:///:memory:", policy=policy) as memory:
            chat = memory.conversation("a")
            await chat.append(Message.user("Hello."))
            context = await chat.context(system="You help.")
        assert set(context.to_anthropic()) == {"system", "messages"}
        assert set(context.to_openai()) == {"messages"}
        assert context.stats.working_tokens > 0


@pytest.mark.req("C-29")
async def test_segments_are_listed_in_order_of_the_tape_in_whatever_order_they_are_shown() -> None:
    policy = Policy.lango(enabled=True, observe_tokens=200, tail_keep_tokens=100, tail_tokens=500)

    def dated(request: ObserveRequest) -> Draft:
        return brief_notes(request)

    async with Memory.open(
        "sqlite:///:memory:", policy=policy, observer=ScriptedObserver([dated] * 50)
    ) as memory:
        chat = memory.conversation("a")
        for number in range(30):
            await chat.append(*turns(1, start=number))
            await chat.flush()
        listed = [segment.id for segment in await chat.observations()]
        context = await chat.context()

    shown = [block.segment_id for block in context.system if block.kind == "observation"]
    assert listed == sorted(listed)
    assert len(shown) > 1
    assert shown == listed[::-1]


@pytest.mark.req("C-17")
@pytest.mark.parametrize(
    ("policy", "heading", "between", "newest_first"),
    [
        (Policy.lango(enabled=True), "## Conversation Memory", "", True),
        (Policy.zora(), "## Earlier in This Session", "", False),
        (Policy.brain(), "## Conversation Context (Observations)", "---\n\n", False),
        (Policy(), "## Conversation Memory", "", False),
    ],
    ids=["lango", "zora", "brain", "default"],
)
async def test_notes_of_another_preset_are_shown_and_gone_on_with_in_the_look_of_each(
    policy: Policy, heading: str, between: str, newest_first: bool, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    made = Policy.lango(enabled=True, tail_tokens=2_000, tail_keep_tokens=500)
    async with Memory.open(url, policy=made, observer=ScriptedObserver()) as memory:
        chat = memory.conversation("a")
        for start in range(0, 120, 30):
            await chat.append(*turns(30, start=start))
            await chat.flush()
        notes = await chat.observations()
    async with Memory.open(url, policy=policy, observer=ScriptedObserver()) as memory:
        chat = memory.conversation("a")
        context = await chat.context()
        await chat.append(Message.user("What came after the bell?"))
        await chat.flush(everything=True)
        state = await chat.state()
        segments = (*await chat.reflections(), *await chat.observations())

    check_coverage(context, state, notes)
    check_tiling(state, segments)
    assert state.observed_seq == state.last_seq == 241
    assert len(notes) > 1
    first, *blocks = context.system
    texts = [note.text for note in notes][:: -1 if newest_first else 1]
    assert first.text.splitlines()[0] == heading
    assert [block.text for block in blocks] == [texts[0], *(between + text for text in texts[1:])]


@pytest.mark.req("C-16", "L-N1")
@pytest.mark.parametrize(
    ("policy", "user", "place"),
    [
        (Policy.lango(enabled=True), "ana", "nowhere"),
        (Policy.zora(), "ana", "system"),
        (Policy.brain(), "ana", "volatile"),
    ],
    ids=["lango", "zora", "brain"],
)
async def test_facts_outlive_a_session_as_the_preset_has_it(
    policy: Policy, user: str | None, place: str
) -> None:
    async with Memory.open("sqlite:///:memory:", policy=policy.replace(note_ratio=0.7)) as memory:
        first = memory.conversation("first", user=user)
        await first.append(Message.user("I live in Lisbon and keep two cats."))
        await first.end()
        second = memory.conversation("second", user=user)
        await second.append(Message.user("Where do I live, in Lisbon?"))
        context = await second.context(system="You help.")

    found = {
        "system": any("two cats" in block.text for block in context.system),
        "volatile": "two cats" in context.volatile,
    }
    assert [name for name, shown in found.items() if shown] == [place][: place != "nowhere"]
