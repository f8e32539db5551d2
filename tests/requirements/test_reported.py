"""REQUIREMENTS 6: what users of other systems reported does not happen here."""

import asyncio
import itertools
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.requirements.samples import SMALL, noting, ranges, seqs, system_text, tool_turn, turns

from remanence import Memory, Message, Policy
from remanence.protocols import ObserveRequest
from remanence.testing import (
    FixedClock,
    ScriptedObserver,
    ScriptedReflector,
    check_coverage,
    check_tiling,
)
from remanence.testing.models import ScriptedModel
from remanence.testing.observers import brief_notes
from remanence.types import Draft, Note
from remanence.wire.validate import anthropic_problems

IN_MEMORY = "sqlite:///:memory:"
PRESETS = {
    "default": Policy(),
    "lango": Policy.lango(enabled=True),
    "zora": Policy.zora(),
    "brain": Policy.brain(),
}


@pytest.mark.req("X-01", "X-02")
@pytest.mark.parametrize("preset", PRESETS)
async def test_under_each_preset_an_outage_neither_fails_a_turn_nor_costs_a_call_each(
    preset: str,
) -> None:
    observer = ScriptedObserver([RuntimeError("429")] * 99)
    policy = PRESETS[preset].replace(block_after=None)
    async with Memory.open(
        IN_MEMORY, policy=policy, observer=observer, clock=FixedClock()
    ) as memory:
        chat = memory.conversation("a")
        for number in range(30):
            await chat.append(*turns(2, tokens=1_200, counter="flat", start=2 * number))
            await chat.flush()
            context = await chat.context(system="You help.")
            assert context.messages[-1].seq == 2 * number + 2

    assert len(observer.requests) == 1


@pytest.mark.req("X-04")
async def test_a_long_backlog_is_observed_in_slices_of_limited_size() -> None:
    observer = ScriptedObserver()
    async with Memory.open(IN_MEMORY, policy=SMALL, observer=observer) as memory:
        chat = memory.conversation("a")
        await chat.append(*turns(200, tokens=100, counter="flat"))
        await chat.flush()

    sizes = [sum(message.tokens for message in request.messages) for request in observer.requests]
    assert len(sizes) >= 10
    assert max(sizes) <= 1_500


@pytest.mark.req("X-05")
async def test_results_of_tools_and_images_count_in_full_for_the_trigger() -> None:
    observer = ScriptedObserver()
    async with Memory.open(IN_MEMORY, policy=SMALL, observer=observer) as memory:
        chat = memory.conversation("a")
        await chat.append(Message.user("look"), *tool_turn(1, "r" * 6_000), Message.user("and?"))
        await chat.append(Message.assistant("Done."))
        state = await chat.flush()

    assert observer.requests
    assert state.last_sum_tokens >= 1_500


@pytest.mark.req("X-06")
async def test_a_reflection_larger_than_its_sources_replaces_nothing() -> None:
    grown = Draft(
        notes=tuple(
            Note(text=f"line {n} with many a word of its own {n * 7}", first_seq=1, last_seq=1)
            for n in range(200)
        ),
        made_by="scripted/1",
    )
    async with Memory.open(
        IN_MEMORY,
        policy=SMALL,
        observer=ScriptedObserver([noting(190)] * 30),
        reflector=ScriptedReflector([grown] * 9),
        clock=FixedClock(),
    ) as memory:
        chat = memory.conversation("a")
        await chat.append(*turns(80, tokens=100, counter="flat"))
        state = await chat.flush()
        observations = await chat.observations()

    assert state.reflect_failure is not None
    assert state.reflect_failure.reason == "too_large"
    check_tiling(state, observations)


@pytest.mark.req("X-08")
@pytest.mark.parametrize("keep_last", [2, 6])
async def test_the_newest_messages_stay_raw_when_all_is_observed(keep_last: int) -> None:
    policy = SMALL.replace(keep_last=keep_last)
    async with Memory.open(IN_MEMORY, policy=policy, observer=ScriptedObserver()) as memory:
        chat = memory.conversation("a")
        await chat.append(*turns(60, tokens=100, counter="flat"))
        await chat.flush(everything=True)
        context = await chat.context()

    assert seqs(context)[-keep_last:] == list(range(61 - keep_last, 61))


@pytest.mark.req("X-09")
@pytest.mark.parametrize("preset", PRESETS)
async def test_a_turn_after_a_restart_has_notes_and_history_of_a_thread_full_of_tools(
    preset: str, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    policy = PRESETS[preset]
    async with Memory.open(url, policy=policy, observer=ScriptedObserver()) as memory:
        chat = memory.conversation("a")
        for number in range(40):
            await chat.append(Message.user(f"task {number}"), *tool_turn(number, "r" * 4_000))
        await chat.flush()
    async with Memory.open(url, policy=policy, observer=ScriptedObserver()) as memory:
        chat = memory.conversation("a")
        await chat.append(Message.assistant("All done."), Message.user("And now?"))
        context = await chat.context(system="You help.")
        state = await chat.state()
        segments = (*await chat.reflections(), *await chat.observations())

    check_coverage(context, state, segments)
    assert any(block.segment_id for block in context.system)
    assert context.messages[-1].text == "And now?"
    assert anthropic_problems(context.to_anthropic()) == ()


@pytest.mark.req("X-10")
async def test_after_an_activation_the_tail_is_looked_at_again_until_it_fits() -> None:
    policy = SMALL.replace(tail_keep_tokens=100)
    async with Memory.open(IN_MEMORY, policy=policy, observer=ScriptedObserver()) as memory:
        chat = memory.conversation("a")
        await chat.append(*turns(100, tokens=100, counter="flat"))
        await chat.flush()
        after_a_backlog = await chat.context()
        await chat.append(Message.user("x" * 20_000))
        await chat.append(Message.assistant("ok"), Message.user("and"), Message.assistant("ok"))
        await chat.flush()
        after_a_large_message = await chat.context()

    assert after_a_backlog.stats.working_tokens <= 2_000
    assert after_a_large_message.stats.working_tokens <= 2_000


@pytest.mark.req("X-11")
async def test_older_notes_keep_their_bytes_and_text_of_this_turn_stands_last() -> None:
    shown: list[str] = []
    async with Memory.open(IN_MEMORY, policy=SMALL, observer=ScriptedObserver()) as memory:
        chat = memory.conversation("a")
        for number in range(60):
            await chat.append(*turns(2, tokens=100, counter="flat", start=2 * number))
            await chat.flush()
            context = await chat.context(system="You help.", channel="telegram")
            request = context.to_anthropic()
            assert "telegram" in str(request["messages"][-2:])
            assert "telegram" not in system_text(request)
            now = [block.text for block in context.system if block.kind == "observation"]
            if not await chat.reflections():
                assert now[: len(shown)] == shown
            shown = now


@pytest.mark.req("X-13")
async def test_the_preamble_speaks_of_this_conversation() -> None:
    async with Memory.open(IN_MEMORY, policy=SMALL, observer=ScriptedObserver()) as memory:
        chat = memory.conversation("a")
        await chat.append(*turns(60, tokens=100, counter="flat"))
        await chat.flush()
        context = await chat.context()

    heading = next(block.text for block in context.system if block.kind == "heading")
    assert "earlier part of this conversation" in heading
    assert "past conversations" not in heading


@pytest.mark.req("X-15")
async def test_a_conversation_that_many_use_first_at_once_is_one() -> None:
    async with Memory.open(IN_MEMORY, policy=SMALL, observer=ScriptedObserver()) as memory:
        async with asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(memory.conversation("a").append(Message.user(f"first {number}")))
        states = await memory.conversations()

    assert [(state.ref.id, state.last_seq) for state in states] == [("a", 20)]


@pytest.mark.req("X-12", "X-16")
async def test_what_the_observer_asks_its_model_enters_no_conversation() -> None:
    line = "#1-2 [NOTE Fact] user: likes tea with lemon and honey"
    model = ScriptedModel(otherwise=line)
    async with Memory.open(IN_MEMORY, policy=SMALL, model=model) as memory:
        chat = memory.conversation("a")
        await chat.append(*turns(30, tokens=100, counter="flat"))
        state = await chat.flush()
        ids = [state.ref.id for state in await memory.conversations()]

    assert model.requests
    assert ids == ["a"]
    assert state.last_seq == 30


@pytest.mark.req("X-18")
async def test_a_note_leads_to_its_messages() -> None:
    async with Memory.open(IN_MEMORY, policy=SMALL, observer=ScriptedObserver()) as memory:
        chat = memory.conversation("a")
        await chat.append(*turns(60, tokens=100, counter="flat"))
        await chat.flush()
        segments = (*await chat.reflections(), *await chat.observations())
        sources = [await chat.source(segment.id) for segment in segments]

    assert [(s[0].seq, s[-1].seq) for s in sources] == ranges(segments)
    for segment, source in zip(segments, sources, strict=True):
        by_seq = {message.seq: message for message in source}
        assert all(note.first_seq in by_seq for note in segment.notes)


@pytest.mark.req("X-23")
async def test_a_pause_is_told_when_the_conversation_goes_on() -> None:
    at = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
    async with Memory.open(IN_MEMORY, policy=SMALL, observer=ScriptedObserver()) as memory:
        chat = memory.conversation("a")
        await chat.append(
            Message.user("Good night.", created_at=at),
            Message.user("I am back.", created_at=at + timedelta(days=3)),
        )
        context = await chat.context()

    assert "3 days passed before the message 'I am back.'" in context.volatile


@pytest.mark.req("X-24")
async def test_what_is_under_way_and_what_comes_next_stand_in_the_context() -> None:
    lines = (
        "#1-9 [NextStep] user: under way: moving the shop to Porto\n"
        "#1-9 [NextStep] user: next: call the carrier"
    )
    policy = SMALL.replace(note_ratio=0.2)
    async with Memory.open(
        IN_MEMORY, policy=policy, model=ScriptedModel(otherwise=lines)
    ) as memory:
        chat = memory.conversation("a")
        await chat.append(*turns(40, tokens=100, counter="flat"))
        await chat.flush()
        text = system_text((await chat.context()).to_anthropic())

    assert "under way: moving the shop to Porto" in text
    assert "next: call the carrier" in text
    assert text.count("[NextStep]") >= 2


@pytest.mark.req("X-27")
async def test_what_a_reflection_replaced_can_be_read_and_made_again_from_its_messages() -> None:
    async with Memory.open(
        IN_MEMORY,
        policy=SMALL.replace(reflect_tokens=(100, 400)),
        observer=ScriptedObserver(),
        reflector=ScriptedReflector(),
    ) as memory:
        chat = memory.conversation("a")
        await chat.append(*turns(120, tokens=100, counter="flat"))
        await chat.flush()
        reflection = (await chat.reflections())[0]
        entries = [entry.detail for entry in await chat.log() if entry.kind == "observed"]
        replaced = entries[0].partition(":")[0]
        source = await chat.source(replaced)
        messages = await chat.source(reflection.id)

    assert source[0].seq == 1
    assert [message.seq for message in messages] == list(
        range(reflection.first_seq, reflection.last_seq + 1)
    )


@pytest.mark.req("X-28")
async def test_a_long_tool_loop_is_observed_midway_and_never_between_call_and_result() -> None:
    observer = ScriptedObserver()
    async with Memory.open(IN_MEMORY, policy=SMALL, observer=observer) as memory:
        chat = memory.conversation("a")
        await chat.append(Message.user("Find the leak."))
        observed = []
        for number in range(40):
            await chat.append(*tool_turn(number, f"{number} " + "r" * 800))
            observed.append((await chat.flush()).observed_seq)
            request = (await chat.context(system="You help.")).to_anthropic()
            assert anthropic_problems(request) == ()

    assert observed[15] > 0
    for asked in observer.requests:
        calls = {call.id for message in asked.messages for call in message.tool_calls}
        results = {result.call_id for m in asked.messages for result in m.tool_results}
        assert calls == results


@pytest.mark.req("X-30")
async def test_raw_messages_leave_the_context_in_small_steps_and_what_notes_lost_is_told() -> None:
    def forgetful(request: ObserveRequest) -> Draft:
        return brief_notes(request)

    raw: list[int] = []
    async with Memory.open(
        IN_MEMORY, policy=SMALL, observer=ScriptedObserver([forgetful] * 99)
    ) as memory:
        chat = memory.conversation("a")
        for number in range(100):
            text = f"{number} the invoice is INV-{number:05} over {number * 13},50 EUR ".ljust(
                400, "x"
            )
            await chat.append(Message.user(text))
            await chat.flush()
            raw.append((await chat.context()).stats.working_tokens)
        lost = [value for segment in await chat.observations() for value in segment.lost]

    drops = [before - after for before, after in itertools.pairwise(raw)]
    assert max(drops) <= 1_500
    assert min(raw[30:]) >= 500
    assert any(value.startswith("INV-") for value in lost)
