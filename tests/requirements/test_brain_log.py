"""REQUIREMENTS 1.3: the log of observations under the brain preset, and its guards."""

import asyncio
import functools
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.requirements.samples import (
    condensing,
    noting,
    ranges,
    scripted,
    turns,
)

from remanence import Memory, Message, Policy, count_tokens
from remanence.conversation import Conversation
from remanence.protocols import ObserveRequest, ReflectRequest
from remanence.stores import open_store
from remanence.testing import FixedClock, ScriptedObserver, ScriptedReflector
from remanence.testing.store_contract.samples import active, observation, reflection, tape
from remanence.types import Draft

conversation = functools.partial(scripted, policy=Policy.brain())
noted = functools.partial(noting, head="[Fact] ")
condensed_to = functools.partial(condensing, head="[Fact] ")
exchange = functools.partial(turns, tokens=400, counter="flat")
HOUR = 3_600.0
SMALL_LOG = Policy.brain(reflect_tokens=(900,))
DUE = 76
"""Messages of 400 tokens that exceed the threshold of 30,000."""


async def grown(chat: Conversation, messages: Sequence[Message]) -> None:
    """Messages, with the background work that each threshold of them makes due."""
    for start in range(0, len(messages), DUE):
        await chat.append(*messages[start : start + DUE])
        await chat.flush()


@pytest.mark.req("B-08")
async def test_observations_are_listed_in_order_with_text_size_and_time() -> None:
    clock = FixedClock()
    made_at = []
    async with conversation([noted(500), noted(700)], clock=clock) as (chat, _, _):
        for start in (0, 76):
            clock.advance(HOUR)
            made_at.append(clock.now())
            await grown(chat, exchange(76, start=start))
        notes = await chat.observations()

    assert ranges(notes) == [(1, 76), (77, 152)]
    assert [note.text[:25] for note in notes] == [
        "[Fact] notes-of-1-to-76 n",
        "[Fact] notes-of-77-to-152",
    ]
    assert [note.tokens for note in notes] == [500, 700]
    assert [note.created_at for note in notes] == made_at


@pytest.mark.req("B-09", "B-41", "B-54", "B-68", "B-72")
async def test_the_log_in_force_has_a_version_a_text_and_its_count_and_is_replaced_as_a_whole() -> (
    None
):
    answers, condensed = [noted(500), noted(700)], [condensed_to(600)]
    async with conversation(answers, condensed, policy=SMALL_LOG) as (chat, _, _):
        nothing = (await chat.diagnostics()).observation_log
        await grown(chat, exchange(76))
        first = (await chat.diagnostics()).observation_log
        await grown(chat, exchange(76, start=76))
        condensed_log = (await chat.diagnostics()).observation_log
        shown = (await chat.context()).to_text()
        counted = await chat.diagnostics()
        before = (await chat.context_at(condensed_log.lock_version - 1)) if condensed_log else None

    assert nothing is None
    assert first is not None
    assert condensed_log is not None
    assert before is not None
    assert (first.token_count, condensed_log.token_count) == (500, 600)
    assert (first.version, condensed_log.version) == (1, 3)
    assert (counted.observation_count, counted.total_observation_tokens) == (2, 1_200)
    assert "gist-of-1-to-152" in shown
    assert "notes-of" not in shown
    old = before.to_text()
    assert (
        old.index("notes-of-1-to-76") < old.index("\n\n---\n\n") < old.index("notes-of-77-to-152")
    )


@pytest.mark.req("B-41")
async def test_the_tokens_of_the_log_are_those_of_its_whole_text() -> None:
    async with conversation([noted(500), noted(700)]) as (chat, _, _):
        await grown(chat, exchange(152))
        log = (await chat.diagnostics()).observation_log
        state = await chat.state()
        notes = await chat.observations()

    assert log is not None
    assert log.token_count == sum(count_tokens(note.text, model="flat") for note in notes) == 1_200
    assert state.unobserved_tokens == 0


@pytest.mark.req("B-40")
async def test_a_chunk_is_one_segment_from_its_first_message_to_its_last() -> None:
    async with conversation([noted(500), noted(700)]) as (chat, _, _):
        await grown(chat, exchange(152))
        messages = await chat.messages()
        sources = [await chat.source(note.id) for note in await chat.observations()]

    ids = [message.id for message in messages]
    assert [[message.id for message in source] for source in sources] == [ids[:76], ids[76:]]
    assert len(set(ids)) == 152


@pytest.mark.req("B-11", "B-43", "B-47", "C-19")
async def test_of_commits_with_one_cursor_the_first_wins_and_leaves_no_room_for_a_second(
    tmp_path: Path,
) -> None:
    store = await open_store(f"sqlite:///{tmp_path / 'brain.db'}")
    read = await tape(store, 6)
    won = await store.commit_observation(read, observation(1, 4, id="obs_first"))
    # It follows the cursor as it is now, but was made from what the cursor was before.
    late = await store.commit_observation(read, observation(5, 6, id="obs_late"))
    segments = await store.segments(read.ref, live=True)
    state = await store.state(read.ref)
    await store.close()

    assert won is not None
    assert late is None
    assert [segment.id for segment in segments] == ["obs_first"]
    assert state == won


@pytest.mark.req("B-43", "B-55")
async def test_a_reflection_of_segments_that_are_replaced_already_is_discarded(
    tmp_path: Path,
) -> None:
    store = await open_store(f"sqlite:///{tmp_path / 'brain.db'}")
    state = await active(store, [(1, 4)])
    first = await store.commit_reflection(state, reflection(1, 4, id="ref_1"), ["g0-1-4"])
    late = await store.commit_reflection(state, reflection(1, 4, id="ref_2"), ["g0-1-4"])
    segments = await store.segments(state.ref, live=True)
    await store.close()

    assert first is not None
    assert late is None
    assert [segment.id for segment in segments] == ["ref_1"]


@pytest.mark.req("B-47", "C-19")
async def test_a_late_observer_of_the_same_messages_changes_neither_log_nor_counts(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'brain.db'}"
    gate = asyncio.Event()
    slow, fast = ScriptedObserver([noted(900)], gate=gate), ScriptedObserver([noted(800)])
    late = FixedClock(prefix="b")
    late.advance(2 * HOUR)  # the lease of the first is over
    brain = Policy.brain()
    async with Memory.open(url, policy=brain, observer=slow, clock=FixedClock()) as one:
        await one.conversation("c").append(*exchange(76))
        async with asyncio.timeout(60):
            await slow.called.wait()  # it has the lease: only now may another one open
        async with Memory.open(url, policy=brain, observer=fast, clock=late) as other:
            # The second observes, and the tape goes on: the first would fit behind nothing now.
            await other.conversation("c").flush()
            await other.conversation("c").append(*exchange(80, start=76))
            await other.conversation("c").flush()
            won = await other.conversation("c").state()
        gate.set()
        state = await one.conversation("c").flush()
        notes = await one.conversation("c").observations()

    assert ranges(notes) == [(1, 76), (77, 156)]
    assert notes[0].tokens == 800
    assert (state.observed_seq, state.lock_version) == (won.observed_seq, won.lock_version)


@pytest.mark.req("B-49")
async def test_without_a_log_the_reflector_is_never_asked_however_long_the_tape() -> None:
    nothing = Draft(notes=(), made_by="scripted/1", nothing=True)
    policy = SMALL_LOG.replace(reflect_min_interval_seconds=0)
    async with conversation([nothing] * 9, policy=policy) as (chat, observer, reflector):
        await chat.flush(everything=True)
        await grown(chat, exchange(230))
        log = [entry.kind for entry in await chat.log()]

    assert len(observer.requests) == 3
    assert reflector.requests == []
    assert "reflected" not in log


@pytest.mark.req("B-50", "B-62")
async def test_the_hour_runs_from_the_last_reflection_and_ends_with_it() -> None:
    clock = FixedClock()
    condensed = [condensed_to(450)] * 9
    async with conversation([noted(500)] * 9, condensed, policy=SMALL_LOG, clock=clock) as (
        chat,
        _,
        reflector,
    ):
        await grown(chat, exchange(152))
        clock.advance(HOUR / 2)
        await grown(chat, exchange(76, start=152))
        assert len(reflector.requests) == 1
        clock.advance(HOUR / 2 - 1)
        await chat.flush()
        assert len(reflector.requests) == 1
        clock.advance(1)
        await chat.flush()
        assert len(reflector.requests) == 2
        clock.advance(10 * HOUR)
        await chat.flush()

    assert len(reflector.requests) == 2


@pytest.mark.req("B-62")
async def test_an_hour_alone_starts_no_reflection_below_the_threshold() -> None:
    clock = FixedClock()
    async with conversation([noted(500)] * 9, policy=SMALL_LOG, clock=clock) as (
        chat,
        _,
        reflector,
    ):
        await grown(chat, exchange(76))
        clock.advance(100 * HOUR)
        await chat.flush()

    assert reflector.requests == []


@pytest.mark.req("B-54")
async def test_older_versions_of_the_log_remain_readable_word_for_word() -> None:
    answers, condensed = [noted(500), noted(700)], [condensed_to(600)]
    async with conversation(answers, condensed, policy=SMALL_LOG) as (chat, _, reflector):
        await grown(chat, exchange(152))
        made = [entry.version for entry in await chat.log() if entry.kind == "observed"]
        texts = [
            [segment.text for segment in (await chat.snapshot(version)).segments]
            for version in made
        ]
        sources = reflector.requests[0].segments

    assert texts == [[sources[0].text], [sources[0].text, sources[1].text]]


@pytest.mark.req("B-55")
async def test_a_reflection_sets_the_tokens_of_the_log_and_the_time_of_its_run() -> None:
    clock = FixedClock()
    answers, condensed = [noted(500), noted(700)], [condensed_to(600)]
    async with conversation(answers, condensed, policy=SMALL_LOG, clock=clock) as (chat, _, _):
        await grown(chat, exchange(150))
        before = await chat.state()
        clock.advance(HOUR)
        await grown(chat, exchange(2, start=150))
        state = await chat.state()
        log = (await chat.diagnostics()).observation_log
        entry = next(entry for entry in await chat.log() if entry.kind == "reflected")

    assert before.last_reflected_at is None
    assert state.last_reflected_at == state.last_observed_at == clock.now()
    assert log is not None
    assert log.token_count == 600
    assert state.reflected_seq == 152
    assert state.lock_version == entry.version


@pytest.mark.req("B-61")
async def test_of_both_due_at_once_the_observer_is_asked_first_and_the_reflector_with_its_notes(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'brain.db'}"
    order: list[tuple[str, int]] = []

    def observed(request: ObserveRequest) -> Draft:
        order.append(("observe", request.messages[-1].seq))
        return noted(500)(request)

    def reflected(request: ReflectRequest) -> Draft:
        order.append(("reflect", request.segments[-1].last_seq))
        return condensed_to(500)(request)

    async with conversation([noted(1_000)], url=url) as (chat, _, _):
        await grown(chat, exchange(76))
    # Off, the tape grows: with the next opening a log and a tail above their thresholds wait.
    async with conversation(
        url=url, policy=Policy.brain(enabled=False), clock=FixedClock(prefix="a")
    ) as (chat, _, _):
        await chat.append(*exchange(80, start=76))
    async with Memory.open(
        url,
        policy=Policy.brain(reflect_tokens=(900,)),
        observer=ScriptedObserver([observed] * 9),
        reflector=ScriptedReflector([reflected] * 9),
        clock=FixedClock(prefix="b"),
    ) as memory:
        await memory.conversation("session-1").flush()

    assert order == [("observe", 156), ("reflect", 156)]


@pytest.mark.req("B-32")
async def test_a_turn_is_over_before_the_observer_that_it_started(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gate = asyncio.Event()
    down = [RuntimeError("overloaded")]
    with caplog.at_level(logging.WARNING, logger="remanence"):
        async with conversation(down, gate=gate) as (chat, observer, _):
            stored = await chat.append(*exchange(76))
            async with asyncio.timeout(60):
                await observer.called.wait()
            context = await chat.context()
            assert caplog.records == []
            gate.set()
            await chat.flush()

    assert stored[-1].seq == 76
    assert len(context.messages) == 76
    assert [request.messages[-1].seq for request in observer.requests] == [76]
    [record] = [record for record in caplog.records if "failed (error" in record.getMessage()]
    assert "session-1" in record.getMessage()


@pytest.mark.req("B-24")
async def test_a_cursor_whose_message_is_gone_leaves_the_newest_messages_and_says_the_rest() -> (
    None
):
    async with conversation([noted(900)] * 3) as (chat, _, _):
        await grown(chat, exchange(90))
        context = await chat.context()
        state = await chat.state()

    assert state.observed_seq == 76
    assert [message.seq for message in context.messages] == list(range(65, 91))
    assert context.omitted == ()


@pytest.mark.req("B-69")
async def test_each_part_can_be_added_to_a_database_of_the_parts_before(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'brain.db'}"
    first = Policy.brain(enabled=False)
    second = Policy.brain(reflect_tokens=(), show_clock=False)
    async with conversation(url=url, policy=first, clock=FixedClock(prefix="a")) as (
        chat,
        observer,
        _,
    ):
        await grown(chat, exchange(100))
        assert [m.seq for m in (await chat.context()).messages] == list(range(1, 101))
        assert observer.requests == []
    clock = FixedClock(prefix="b")
    answers = [noted(1_000)] * 2
    async with conversation(answers, url=url, policy=second, clock=clock) as (chat, _, reflector):
        await chat.flush()
        assert ranges(await chat.observations()) == [(1, 100)]
        assert len((await chat.context()).messages) == 12
        assert reflector.requests == []
    third = Policy.brain(reflect_tokens=(900,))
    async with conversation(reflections=[condensed_to(600)], url=url, policy=third) as (chat, _, _):
        await chat.flush()
        await chat.append(Message.user("And now?"))
        context = await chat.context()

    assert [block.kind for block in context.system] == ["heading", "reflection"]
    assert context.messages[-1].text == "And now?"
