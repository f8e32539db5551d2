"""REQUIREMENTS 1.2: the zora preset does what the zora plan asks for."""

import asyncio
import functools
import logging
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from tests.requirements.samples import (
    IN_MEMORY,
    condensing,
    draft,
    grown,
    noting,
    ranges,
    scripted,
    seqs,
    system_text,
    tool_turn,
    turns,
)

from remanence import Memory, Message, Note, Policy, Settings, count_tokens
from remanence.archive.blocks import BlockStore
from remanence.errors import InvalidPolicy
from remanence.notes import parse_notes, render_notes
from remanence.protocols import ObserveRequest, ReflectRequest
from remanence.testing import FixedClock, ScriptedObserver, ScriptedReflector, check_coverage
from remanence.testing.models import ScriptedModel
from remanence.types import Draft, NoteFormat

session = functools.partial(scripted, policy=Policy.zora())


def events(count: int, *, tokens: int = 350, start: int = 0) -> list[Message]:
    return turns(count, tokens=tokens, counter="split", start=start)


@pytest.mark.req(
    "C-13", "C-14", "Z-02", "Z-03", "Z-27", "Z-59", "Z-60", "Z-61", "Z-62", "Z-63", "Z-65", "Z-66"
)
def test_the_defaults_are_those_of_the_document() -> None:
    policy = Policy.zora()

    assert policy.enabled
    assert (policy.tail_tokens, policy.observe_tokens) == (30_000, 30_000)
    assert policy.reflect_tokens == (10_000,)
    assert policy.facts_tokens == 5_000
    assert (policy.observe_slice, policy.observe_slice_messages) == ("oldest_n", 20)
    assert policy.precompute_at == 0.7
    assert policy.block_after == 2.0
    assert Policy.lango().block_after is None
    assert Policy.brain().block_after is None


@pytest.mark.req("C-02", "C-04", "Z-07", "Z-08", "Z-31", "Z-80")
async def test_over_the_threshold_the_oldest_twenty_messages_are_compressed() -> None:
    policy = Policy.zora(precompute_at=None)
    async with session([noting(900)] * 9, policy=policy) as (chat, observer, _):
        await grown(chat, events(85))
        below = list(observer.requests)
        await grown(chat, events(1, start=85))

    assert 85 * 350 < 30_000 < 86 * 350
    assert below == []
    assert [[m.seq for m in request.messages] for request in observer.requests] == [
        list(range(1, 21))
    ]


@pytest.mark.req("Z-10", "Z-11", "Z-33", "Z-38", "Z-39")
async def test_notes_are_ready_before_the_threshold_and_used_at_once_when_it_is_crossed() -> None:
    gate = asyncio.Event()
    gate.set()
    async with session([noting(900)] * 9, gate=gate) as (chat, observer, _):
        await grown(chat, events(75))
        ready = await chat.state()
        before = await chat.context()
        gate.clear()
        await chat.append(*events(15, start=75))
        after = await chat.context()
        state = await chat.state()
        calls = len(observer.requests)
        gate.set()

    assert ready.observed_seq >= 20
    assert ready.active_seq == 0
    assert seqs(before) == list(range(1, 76))
    assert calls >= 1
    assert state.active_seq >= 20
    assert seqs(after)[0] == state.active_seq + 1
    assert "notes-of-1-to-20" in system_text(after.to_anthropic())


@pytest.mark.req("C-27", "Z-06", "Z-09", "Z-29", "Z-32", "Z-34", "Z-80")
async def test_taking_in_and_building_a_context_do_not_wait_for_a_worker() -> None:
    gate = asyncio.Event()
    async with session([noting(900)] * 9, gate=gate) as (chat, observer, _):
        await chat.append(*events(90))
        async with asyncio.timeout(60):
            await observer.called.wait()
        await chat.append(*events(10, start=90))
        context = await chat.context()
        gate.set()

    assert seqs(context) == list(range(1, 101))
    assert context.stats.pending == 100


@pytest.mark.req("C-14", "Z-40", "Z-66")
async def test_over_twice_the_maximum_a_call_waits_for_notes_but_not_for_ever() -> None:
    gate = asyncio.Event()
    async with session([noting(900)] * 30, gate=gate) as (chat, observer, _):
        await chat.append(*events(175))
        async with asyncio.timeout(60):
            await observer.called.wait()
        asyncio.get_running_loop().call_later(0.01, gate.set)
        waited = await chat.context()
    stuck = Policy.zora(sync_timeout_seconds=0.01)
    gate = asyncio.Event()
    async with session(policy=stuck, gate=gate) as (chat, _, _):
        await chat.append(*events(175))
        raw = await chat.context()
        gate.set()

    assert waited.stats.working_tokens <= 30_000
    assert "notes-of-1-to-20" in system_text(waited.to_anthropic())
    assert seqs(raw) == list(range(1, 176))


@pytest.mark.req("C-05", "Z-05", "Z-30", "Z-69", "Z-70", "Z-93")
async def test_the_request_has_identity_notes_oldest_first_and_the_working_messages() -> None:
    async with session([noting(900)] * 9) as (chat, _, _):
        await grown(chat, events(120))
        context = await chat.context(identity="You are Zora.", system="You help.")
        state = await chat.state()
        request = context.to_anthropic()

    text = system_text(request)
    pieces = ["You are Zora.", "You help.", "notes-of-1-to-20", "notes-of-21-to-40"]
    places = [text.index(piece) for piece in pieces]
    assert request["system"][0]["text"] == "You are Zora."
    assert places == sorted(places)
    assert seqs(context) == list(range(state.active_seq + 1, 121))
    assert context.to_openai()["messages"][0]["content"].startswith("You are Zora.\n\nYou help.")


@pytest.mark.req("C-26", "Z-12", "Z-13")
async def test_between_reflections_each_prompt_begins_with_the_one_before() -> None:
    shown: list[str] = []
    grew = 0
    async with session([noting(700)] * 12) as (chat, _, _):
        for number in range(160):
            await grown(chat, events(1, start=number))
            now = [block.text for block in (await chat.context(system="You help.")).system]
            assert now[: len(shown)] == shown
            grew += len(now) > len(shown)
            shown = now
        assert await chat.reflections() == ()

    assert grew >= 3


@pytest.mark.req("Z-14", "Z-28", "Z-35", "Z-41", "Z-83")
async def test_a_context_tells_the_tokens_of_its_tiers_and_what_is_pending() -> None:
    async with session([noting(900)] * 9) as (chat, observer, _):
        await grown(chat, events(120))
        context = await chat.context()
        state = await chat.state()
        shown = [block for block in context.system if block.segment_id]

    stats = context.stats
    assert stats.working_tokens == sum(message.tokens for message in context.messages)
    assert stats.session_tokens >= sum(block.tokens for block in shown) > 0
    assert stats.cross_session_tokens == 0
    assert stats.pending == state.last_seq - state.observed_seq
    assert {request.conversation.id for request in observer.requests} == {"session-1"}


@pytest.mark.req("Z-41", "Z-50")
async def test_the_observer_is_given_the_earlier_notes_as_known() -> None:
    async with session([noting(900)] * 9) as (chat, observer, _):
        await grown(chat, events(100))

    known = [[note.text.split()[0] for note in request.known] for request in observer.requests]
    assert known[0] == []
    assert known[1] == ["notes-of-1-to-20"]


@pytest.mark.req("C-03", "Z-36", "Z-53")
async def test_a_full_session_tier_is_reflected_after_the_observing_that_is_due() -> None:
    order: list[str] = []

    def observed(request: ObserveRequest) -> Draft:
        order.append("observe")
        return noting(1_600)(request)

    def reflected(request: ReflectRequest) -> Draft:
        order.append("reflect")
        return condensing(2_000)(request)

    async with session([observed] * 40, [reflected] * 9) as (chat, _, _):
        await chat.append(*events(260))
        await chat.flush()
        state = await chat.state()
        reflections = await chat.reflections()
        context = await chat.context()

    assert order.index("reflect") == len(order) - 1
    assert order.count("observe") >= 7
    assert reflections[0].text.startswith("NOTE gist-of-1-to-")
    assert state.reflected_seq == reflections[-1].last_seq
    assert context.stats.session_tokens <= 10_000


@pytest.mark.req("Z-42", "Z-50", "Z-81")
async def test_the_model_is_asked_for_what_the_document_lists() -> None:
    line = "#1-20 [CRITICAL Decision] user: it stays as it is\n"
    model = ScriptedModel(otherwise=line)
    policy = Policy.zora(tail_tokens=3_000, observe_tokens=3_000, tail_keep_tokens=2_000)
    async with Memory.open(IN_MEMORY, policy=policy, model=model) as memory:
        chat = memory.conversation("a")
        for number in range(60):
            await chat.append(Message.user(f"{number} " + "hello there my friend " * 12))
            await chat.flush()

    asking = [request for request in model.requests if request.purpose == "observe"]
    first, later = asking[0], asking[-1]
    asked = f"{first.stable}\n{first.prompt}"
    for piece in ("decisions with their reasons", "facts", "tool", "errors", "preferences"):
        assert piece in asked
    assert "earlier notes, not to be repeated" in later.prompt
    assert "it stays as it is" in later.prompt


@pytest.mark.req("C-12", "Z-43", "Z-44", "Z-45", "Z-81")
async def test_lines_have_date_priority_and_text_and_can_be_filtered_by_program() -> None:
    at = datetime(2026, 3, 2, 9, 5, tzinfo=UTC)
    notes = tuple(
        Note(text=f"it is {p}", first_seq=1, last_seq=1, observed_at=at, priority=p)
        for p in ("CRITICAL", "IMPORTANT", "NOTE")
    )
    async with session([Draft(notes=notes, made_by="scripted/1")]) as (chat, _, _):
        await grown(chat, events(61))
        segment = (await chat.observations())[0]

    assert segment.text.splitlines() == [
        "[2026-03-02 09:05] CRITICAL it is CRITICAL",
        "[2026-03-02 09:05] IMPORTANT it is IMPORTANT",
        "[2026-03-02 09:05] NOTE it is NOTE",
    ]
    parsed = parse_notes(segment.text, "dated_priority", first_seq=1, last_seq=20)
    assert [note.text for note in parsed if note.priority == "CRITICAL"] == ["it is CRITICAL"]


@pytest.mark.req("Z-48")
@pytest.mark.parametrize("note_format", ["compact", "dated_priority", "tagged", "prose"])
def test_every_format_shows_the_topic_of_a_note(note_format: NoteFormat) -> None:
    notes = (
        Note(text="signed the lease", first_seq=1, last_seq=1, speaker="Ana", topic="move"),
        Note(text="bought a kayak", first_seq=2, last_seq=2, topic="sports"),
    )
    text = render_notes(notes, note_format)

    assert "Ana / move:" in text
    assert "sports:" in text


@pytest.mark.req("Z-51")
async def test_notes_and_clock_tell_the_time_of_the_user() -> None:
    lisbon = timezone(timedelta(hours=1))
    policy = Policy.zora(tail_tokens=2_000, observe_tokens=500, tail_keep_tokens=200)
    async with Memory.open(IN_MEMORY, policy=policy) as memory:
        chat = memory.conversation("a")
        for number, message in enumerate(events(20, tokens=150)):
            at = datetime(2026, 3, 2, 23, 30, tzinfo=lisbon) + timedelta(minutes=number)
            await chat.append(message.replace(created_at=at))
        await chat.flush()
        notes = [note for segment in await chat.observations() for note in segment.notes]
        context = await chat.context(now=datetime(2026, 3, 2, 23, 15, tzinfo=UTC))

    assert {note.observed_at.utcoffset() for note in notes if note.observed_at} == {
        timedelta(hours=1)
    }
    assert "Current time: 2026-03-03 00:15 UTC+01:00" in context.volatile


@pytest.mark.req("Z-04", "Z-94")
async def test_without_a_reflector_the_session_tier_has_a_bound_and_names_what_it_leaves_out() -> (
    None
):
    policy = Policy.zora(
        tail_tokens=3_000, observe_tokens=3_000, tail_keep_tokens=1_000, reflect_tokens=(600,)
    )
    dead = [RuntimeError("no such model")] * 99
    async with session([noting(200)] * 99, dead, policy=policy) as (chat, _, _):
        await grown(chat, events(200))
        context = await chat.context()
        state = await chat.state()
        segments = await chat.observations()

    assert sum(segment.tokens for segment in segments) > 2_000
    heading = next(block.tokens for block in context.system if block.kind == "heading")
    assert context.stats.session_tokens <= 2 * 600 + heading
    assert {gap.reason for gap in context.omitted} == {"notes_over_budget"}
    check_coverage(context, state, segments)


@pytest.mark.req("Z-46")
async def test_an_observation_is_asked_to_be_three_to_six_times_smaller() -> None:
    async with session([noting(900)] * 9) as (chat, observer, _):
        await grown(chat, events(100))

    for request in observer.requests:
        source_tokens = sum(message.tokens for message in request.messages)
        assert 3 <= source_tokens / request.target_tokens <= 6


@pytest.mark.req("Z-47", "Z-49")
async def test_the_embedded_observer_keeps_values_exact_and_leaves_raw_output_out() -> None:
    policy = Policy.zora(tail_tokens=3_000, observe_tokens=1_500, tail_keep_tokens=200)
    async with Memory.open(IN_MEMORY, policy=policy) as memory:
        chat = memory.conversation("a")
        await chat.append(
            Message.user(
                "We decided to deploy order-service 4.7.2 from /srv/apps/orders/deploy.yaml, "
                "ticket ORD-4471, because the tests of Benedikt passed."
            ),
            *tool_turn(1, "row 17 of 9000 | ok | 0.3 s\n" * 300),
            Message.assistant("All 9,000 rows are ok."),
        )
        await chat.append(*events(8))
        await chat.flush(everything=True)
        text = "\n".join(segment.text for segment in await chat.observations())

    assert "/srv/apps/orders/deploy.yaml" in text
    assert "ORD-4471" in text
    assert text.count("row 17 of 9000") <= 1


@pytest.mark.req("Z-51")
async def test_a_note_knows_when_it_was_said_and_what_day_it_tells_of_and_the_clock_is_last() -> (
    None
):
    clock = FixedClock()
    policy = Policy.zora(tail_tokens=2_000, observe_tokens=500, tail_keep_tokens=200)
    async with Memory.open(IN_MEMORY, policy=policy, clock=clock) as memory:
        chat = memory.conversation("a")
        await chat.append(Message.user("Yesterday I signed the lease of the flat in Lisbon."))
        await chat.append(*events(20, tokens=150))
        await chat.flush()
        notes = [note for segment in await chat.observations() for note in segment.notes]
        context = await chat.context()

    lease = next(note for note in notes if "lease" in note.text)
    assert lease.observed_at is not None
    assert lease.observed_at.date().isoformat() == "2026-03-02"
    assert "2026-03-01" in f"{lease.text} {lease.referenced_at}"
    assert "Current time: 2026-03-02 09:00" in context.volatile


@pytest.mark.req("Z-30", "Z-39")
async def test_a_context_takes_notes_that_are_ready_also_where_nothing_works_in_the_background(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'zora.db'}"
    async with session([noting(900)] * 9, url=url) as (chat, _, _):
        await grown(chat, events(75))
    idle = Settings(url=url, workers=0)
    clock = FixedClock(prefix="b")
    async with Memory.open(settings=idle, policy=Policy.zora(), clock=clock) as memory:
        chat = memory.conversation("session-1")
        await chat.append(*events(15, start=75))
        before = await chat.state()
        context = await chat.context()
        after = await chat.state()

    assert before.active_seq == 0
    assert after.active_seq >= 20
    assert seqs(context)[0] == after.active_seq + 1


@pytest.mark.req("Z-18")
@pytest.mark.parametrize("text", ["a plain sentence of some words " * 20, "x = y[0]; " * 30])
def test_no_text_is_counted_with_fewer_tokens_than_a_quarter_of_its_characters(text: str) -> None:
    assert count_tokens(text, model="split") > len(text) / 4
    assert count_tokens(Message.tool("c", text), model="split") > count_tokens(text, model="split")


@pytest.mark.req("Z-54", "Z-74")
async def test_the_end_of_a_session_condenses_all_of_its_notes_once(tmp_path: Path) -> None:
    settings = Settings(url=IN_MEMORY, blocks_directory=str(tmp_path))
    reflector = ScriptedReflector([condensing(40)] * 3)
    async with Memory.open(
        settings=settings,
        policy=Policy.zora(),
        observer=ScriptedObserver([noting(50)] * 9),
        reflector=reflector,
    ) as memory:
        chat = memory.conversation("a")
        await chat.append(*events(10))
        await chat.flush(everything=True)
        assert reflector.requests == []
        await chat.end()
        await chat.end()
        reflections = await chat.reflections()
        state = await chat.state()
        context = await chat.context()
        across = await BlockStore(tmp_path).load_cross_session()
        await chat.delete()
        left = await BlockStore(tmp_path).load_cross_session()

    assert len(reflector.requests) == 1
    assert ranges(reflections) == [(1, 10)]
    assert state.observed_seq == state.reflected_seq == 10
    assert [(b.session_id, b.tier, b.observations) for b in across.blocks] == [
        ("a", "cross-session", reflections[0].text)
    ]
    assert left.blocks == ()
    check_coverage(context, state, reflections)


@pytest.mark.req("Z-54")
async def test_a_session_without_notes_ends_without_a_reflection() -> None:
    async with session([draft()] * 3) as (chat, _, reflector):
        await chat.end()
        state = await chat.state()

    assert reflector.requests == []
    assert state.reflect_failure is None


@pytest.mark.req("Z-57", "Z-82")
async def test_a_reflection_keeps_critical_lines_word_for_word() -> None:
    def notes(request: ObserveRequest) -> Draft:
        first = request.messages[0].seq
        lines = [
            Note(
                text=f"never restart node {first} during the nightly backup",
                first_seq=first,
                last_seq=first,
                priority="CRITICAL",
            ),
            *(
                Note(
                    text=f"small talk {first} {n} about the weather",
                    first_seq=first,
                    last_seq=first,
                )
                for n in range(60)
            ),
        ]
        return Draft(notes=tuple(lines), made_by="scripted/1")

    policy = Policy.zora(
        tail_tokens=8_000, observe_tokens=8_000, tail_keep_tokens=4_000, reflect_tokens=(2_500,)
    )
    async with Memory.open(
        IN_MEMORY, policy=policy, observer=ScriptedObserver([notes] * 9)
    ) as memory:
        chat = memory.conversation("a")
        await grown(chat, events(120))
        reflections = await chat.reflections()

    assert reflections
    assert "CRITICAL never restart node 1 during the nightly backup" in reflections[0].text


@pytest.mark.req("C-11", "Z-16", "Z-17")
def test_texts_take_a_token_for_three_and_a_half_characters_and_results_for_three() -> None:
    text = "x" * 1_050
    result = Message.tool("c", text)

    assert count_tokens(text, model="split") == 300
    assert count_tokens(Message.user(text), model="split") == 300
    assert count_tokens(result, model="split") == 350
    assert count_tokens([Message.user(text), result], model="split") == 650
    assert count_tokens(text, model="flat") == 263
    assert count_tokens(text, model="cjk") == 263


@pytest.mark.req("Z-18")
def test_the_rule_counts_rather_more_than_fewer() -> None:
    text = (
        "The harbour office closed early on Thursday, so Ottilie left the signed papers with the "
        "night porter and took the last ferry home."
    )

    assert count_tokens(text, model="split") > count_tokens(text, model="gpt-4o")
    assert count_tokens(text, model="split") > count_tokens(text, model="flat")


@pytest.mark.req("Z-37", "Z-73")
async def test_flush_waits_until_nothing_is_pending() -> None:
    gate = asyncio.Event()
    async with session([noting(900)] * 9, gate=gate) as (chat, observer, _):
        await chat.append(*events(100))
        async with asyncio.timeout(60):
            await observer.called.wait()
        flushing = asyncio.create_task(chat.flush())
        await asyncio.sleep(0)
        assert not flushing.done()
        gate.set()
        state = await flushing

    assert state.unobserved_tokens <= 21_000


@pytest.mark.req("X-09", "Z-26")
async def test_a_restarted_memory_shows_the_same_context(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'zora.db'}"
    async with session([noting(900)] * 9, url=url) as (chat, _, _):
        await grown(chat, events(120))
        before = await chat.context(system="You help.")
    async with session(url=url) as (chat, _, _):
        after = await chat.context(system="You help.")

    assert after == before
    assert any(block.segment_id for block in after.system)


@pytest.mark.req("C-15", "Z-94")
async def test_without_a_model_the_working_tier_grows_and_a_warning_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    down = [RuntimeError("no model is available")] * 99
    with caplog.at_level(logging.WARNING, logger="remanence"):
        async with session(down) as (chat, _, _):
            await grown(chat, events(100))
            context = await chat.context()

    assert seqs(context) == list(range(1, 101))
    assert context.stats.working_tokens > 30_000
    assert any("observe of conversation" in record.message for record in caplog.records)


@pytest.mark.req("Z-71", "Z-72", "Z-75")
async def test_a_loop_that_only_appends_its_events_has_them_all_taken_in_and_compressed() -> None:
    async with session([noting(900)] * 9) as (chat, observer, _):
        for number in range(60):
            await chat.append(Message.user(f"task {number}"), *tool_turn(number, "r" * 1_800))
        await chat.flush()
        state = await chat.state()
        context = await chat.context()
        segments = (*await chat.reflections(), *await chat.observations())

    assert state.last_seq == 180
    assert observer.requests
    check_coverage(context, state, segments)


@pytest.mark.req("Z-66")
def test_a_block_limit_below_the_working_tier_is_refused() -> None:
    with pytest.raises(InvalidPolicy, match=r"block_after=0.5"):
        Policy.zora(block_after=0.5)


@pytest.mark.req("Z-84", "Z-85", "Z-86", "Z-88")
async def test_a_long_session_keeps_its_budget_in_the_background_and_over_a_restart(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'zora.db'}"
    async with session([noting(900)] * 30, [condensing(2_000)] * 9, url=url) as (chat, _, _):
        for number in range(70):
            await chat.append(*events(2, start=2 * number))
            await chat.flush()
            context = await chat.context(system="You help.")
            assert context.stats.working_tokens <= 30_000
        observations = await chat.observations()
        request = (await chat.context(system="You help.")).to_text()
    assert observations
    assert ranges(observations)[0] == (1, 20)
    async with session(url=url) as (chat, _, _):
        again = (await chat.context(system="You help.")).to_text()
        state = await chat.state()

    assert state.last_seq == 140
    assert again == request
    assert "notes-of-1-to-20" in again
