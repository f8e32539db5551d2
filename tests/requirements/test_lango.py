"""REQUIREMENTS 1.1: the lango preset does what the lango documents ask for."""

import asyncio
import functools
import logging
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import apsw
import pytest
from tests.requirements.samples import (
    IN_MEMORY,
    condensing,
    draft,
    grown,
    noting,
    ranges,
    said,
    scripted,
    seqs,
    system_text,
    tool_turn,
    turns,
)

from remanence import Memory, Message, Policy, count_tokens
from remanence.conversation import Conversation
from remanence.errors import ConversationNotFound, ModelError
from remanence.protocols import ReflectRequest
from remanence.testing import FixedClock, ScriptedObserver, ScriptedReflector, check_coverage
from remanence.testing.invariants import flatten
from remanence.testing.models import ScriptedModel
from remanence.testing.observers import ReflectAnswer
from remanence.types import Draft

conversation = functools.partial(scripted, policy=Policy.lango(enabled=True))


@pytest.mark.req("C-01", "L-42", "L-43", "L-44", "L-45", "L-46")
def test_the_defaults_are_those_of_the_document() -> None:
    off, on = Policy.lango(), Policy.lango(enabled=True)

    assert (off.enabled, on.enabled) == (False, True)
    assert Policy.zora().enabled
    assert Policy.brain().enabled
    assert on.observe_tokens == 1_000
    assert on.reflect_tokens == (2_000, 2_000)
    assert on.tail_tokens == 8_000


@pytest.mark.req("C-02", "L-02", "L-03")
async def test_an_observation_is_made_above_the_threshold_and_not_at_it() -> None:
    async with conversation() as (chat, observer, _):
        await chat.append(*turns(10, tokens=100, counter="cjk"))
        at_threshold = await chat.flush()
        assert at_threshold.unobserved_tokens == 1_000
        assert observer.requests == []

        await chat.append(Message.user("x"))
        state = await chat.flush()

    assert len(observer.requests) == 1
    assert state.observed_seq == 11


@pytest.mark.req("L-03", "L-31")
async def test_neither_many_messages_nor_much_time_make_an_observation_due() -> None:
    clock = FixedClock()
    observer = ScriptedObserver()
    policy = Policy.lango(enabled=True)
    async with Memory.open(IN_MEMORY, policy=policy, observer=observer, clock=clock) as memory:
        chat = memory.conversation("a")
        for _ in range(150):
            await chat.append(Message.user("ok"))
        clock.advance(timedelta(days=30).total_seconds())
        await chat.flush()

    assert observer.requests == []


@pytest.mark.req("L-04", "L-N1")
async def test_a_session_is_triggered_by_its_own_messages_alone() -> None:
    observer = ScriptedObserver()
    policy = Policy.lango(enabled=True)
    async with Memory.open(IN_MEMORY, policy=policy, observer=observer) as memory:
        one, other = memory.conversation("one"), memory.conversation("other")
        await one.append(*turns(9, tokens=110, counter="cjk"))
        await other.append(*turns(10, tokens=110, counter="cjk"))
        await one.flush()
        await other.flush()
        seen = await one.context(system="You help.")

    assert {request.conversation.id for request in observer.requests} == {"other"}
    assert [block.kind for block in seen.system] == ["system"]


@pytest.mark.req("C-04", "L-01", "L-05", "L-06", "L-31")
async def test_each_note_covers_all_unobserved_messages_once_and_is_counted() -> None:
    async with conversation([noting(60)] * 9) as (chat, observer, _):
        await grown(chat, turns(31, tokens=110, counter="cjk"))
        notes = await chat.observations()

    assert ranges(notes) == [(1, 10), (11, 20), (21, 30)]
    assert [len(request.messages) for request in observer.requests] == [10, 10, 10]
    assert [note.tokens for note in notes] == [60, 60, 60]
    assert [note.source_tokens for note in notes] == [1_100, 1_100, 1_100]


@pytest.mark.req("C-03", "C-06", "L-15", "L-16", "L-17", "L-18")
async def test_notes_above_their_threshold_become_one_reflection_and_are_deleted() -> None:
    async with conversation([noting(500)] * 5, [condensing(300)]) as (chat, _, reflector):
        await grown(chat, turns(40, tokens=110, counter="cjk"))
        old = await chat.observations()
        assert sum(note.tokens for note in old) == 2_000
        assert reflector.requests == []

        await grown(chat, turns(10, start=40, tokens=110, counter="cjk"))
        reflections, left = await chat.reflections(), await chat.observations()

        assert [segment.id for segment in reflector.requests[0].segments][:4] == [n.id for n in old]
        assert [(r.generation, r.tokens) for r in reflections] == [(1, 300)]
        assert ranges(reflections) == [(1, 50)]
        assert left == ()
        for note in old:
            with pytest.raises(ConversationNotFound):
                await chat.source(note.id)


@pytest.mark.req("L-18")
async def test_notes_that_come_after_a_reflection_stay_beside_it() -> None:
    async with conversation([noting(500)] * 7, [condensing(300)]) as (chat, _, _):
        await grown(chat, turns(60, tokens=110, counter="cjk"))
        assert ranges(await chat.reflections()) == [(1, 50)]
        assert ranges(await chat.observations()) == [(51, 60)]


@pytest.mark.req("L-19")
async def test_a_failed_reflection_leaves_the_notes_unchanged() -> None:
    down: list[ReflectAnswer] = [RuntimeError("the model is down")]
    async with conversation([noting(500)] * 5, down) as (chat, _, _):
        await grown(chat, turns(50, tokens=110, counter="cjk"))
        state = await chat.state()
        assert ranges(await chat.observations()) == [(n, n + 9) for n in range(1, 51, 10)]
        assert await chat.reflections() == ()

    assert state.reflect_failure is not None


@pytest.mark.req("C-08", "C-09", "L-20", "L-21")
async def test_reflections_above_the_threshold_become_one_of_a_higher_generation() -> None:
    sizes = [condensing(900), condensing(900), condensing(900), condensing(400)]
    async with conversation([noting(500)] * 40, [*sizes, *[condensing(900)] * 9]) as (
        chat,
        _,
        made,
    ):
        await grown(chat, turns(150, tokens=110, counter="cjk"))
        reflections = await chat.reflections()
        await grown(chat, turns(150, start=150, tokens=110, counter="cjk"))
        generations = [request.generation for request in made.requests]
        later = await chat.reflections()

    assert [(r.generation, r.tokens) for r in reflections] == [(2, 400)]
    assert ranges(reflections) == [(1, 150)]
    assert {s.generation for s in made.requests[3].segments} == {1}
    assert generations[:4] == [1, 1, 1, 2]
    assert max(generations) == 3
    assert sum(r.tokens for r in later) <= 2_000


@pytest.mark.req("C-15", "L-11", "L-12", "X-01")
async def test_a_failing_observer_is_logged_raw_messages_serve_and_it_is_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = FixedClock()
    observer = ScriptedObserver([ModelError("rate_limit", "rate limit"), noting(60)])
    policy = Policy.lango(enabled=True)
    with caplog.at_level(logging.WARNING, logger="remanence"):
        async with Memory.open(IN_MEMORY, policy=policy, observer=observer, clock=clock) as memory:
            chat = memory.conversation("session-1")
            await chat.append(*turns(12, tokens=110, counter="cjk"))
            await chat.flush()
            meanwhile = await chat.context()
            clock.advance(policy.retry_seconds * 2)
            state = await chat.flush()

    assert seqs(meanwhile) == list(range(1, 13))
    assert any("session-1" in record.message for record in caplog.records)
    assert any("rate_limit" in record.message for record in caplog.records)
    assert state.observed_seq == 12
    assert state.failures == 0


@pytest.mark.req("L-22", "L-23", "L-24", "L-25", "L-32")
async def test_append_returns_while_the_observer_works_and_the_next_context_has_its_note() -> None:
    gate = asyncio.Event()
    observer = ScriptedObserver([noting(60)], gate=gate)
    policy = Policy.lango(enabled=True)
    async with Memory.open(IN_MEMORY, policy=policy, observer=observer) as memory:
        chat = memory.conversation("a")
        await chat.append(*turns(10, tokens=110, counter="cjk"))
        async with asyncio.timeout(60):
            await observer.called.wait()
        meanwhile = await chat.context()
        again = await chat.context()
        gate.set()
        await chat.flush()
        after = await chat.context()

    assert not any(block.segment_id for block in meanwhile.system)
    assert meanwhile.system == again.system
    assert [b.text.split()[0] for b in after.system if b.segment_id] == ["notes-of-1-to-10"]


@pytest.mark.req("L-30", "LS-12")
async def test_notes_and_messages_are_written_at_once_without_conflict(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'lango.db'}"
    policy = Policy.lango(enabled=True)
    async with Memory.open(url, policy=policy, observer=ScriptedObserver()) as memory:
        chats = [memory.conversation(f"c{number}") for number in range(8)]

        async def talk(chat: Conversation) -> None:
            for message in turns(40, tokens=110, counter="cjk"):
                await chat.append(message)

        async with asyncio.TaskGroup() as group:
            for chat in chats:
                group.create_task(talk(chat))
        states = [await chat.flush() for chat in chats]
        problems = await memory.check()

    assert [state.last_seq for state in states] == [40] * 8
    assert all(state.observed_seq >= 30 for state in states)
    assert problems == ()


@pytest.mark.req("C-05", "L-33", "L-35", "L-36", "L-37", "L-39", "L-N4", "LS-09")
async def test_the_prompt_has_base_knowledge_reflections_and_the_newest_notes_first() -> None:
    async with conversation([noting(500)] * 9, [condensing(300)]) as (chat, _, _):
        await grown(chat, turns(75, tokens=110, counter="cjk"))
        knowledge = [f"layer {number}" for number in range(1, 7)]
        context = await chat.context(system="Base prompt.", knowledge=knowledge)
        request = context.to_anthropic()

    text = system_text(request)
    pieces = [
        "Base prompt.",
        *knowledge,
        "## Conversation Memory\n",
        "gist-of-1-to-50",
        "notes-of-61-to-70",
        "notes-of-51-to-60",
    ]
    places = [text.index(piece) for piece in pieces]
    assert places == sorted(places)
    assert text.splitlines().count("## Conversation Memory") == 1
    assert request["messages"][-1]["content"][-1]["text"].startswith("74 ")


@pytest.mark.req("L-34", "L-42", "L-58", "LS-07", "LS-10")
async def test_without_notes_or_switched_off_the_prompt_has_the_same_bytes(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'lango.db'}"
    messages = turns(8, tokens=110, counter="cjk")
    async with conversation(url=url) as (chat, _, _):
        await chat.append(*messages)
        without_notes = (await chat.context(system="Base prompt.")).to_anthropic()
        await chat.append(*turns(8, tokens=110, counter="cjk", start=8))
        await chat.flush()
        assert await chat.observations()
    observer = ScriptedObserver()
    async with Memory.open(url, policy=Policy.lango(), observer=observer) as memory:
        chat = memory.conversation("session-1")
        off = (await chat.context(system="Base prompt.")).to_anthropic()
        await chat.append(*turns(12, tokens=110, counter="cjk", start=16))
        await chat.flush()
        kept = await chat.observations()

    assert without_notes["system"][0]["text"] == "Base prompt."
    assert len(without_notes["system"]) == 1
    assert _plain(off)["messages"][:8] == _plain(without_notes)["messages"]
    assert off["system"] == [{"type": "text", "text": "Base prompt."}]
    assert len(off["messages"]) == 16
    assert kept
    assert observer.requests == []


@pytest.mark.req("L-34", "LS-10")
async def test_a_pause_does_not_change_the_prompt_of_a_session_without_notes() -> None:
    clock = FixedClock()
    async with conversation(clock=clock) as (chat, _, _):
        await chat.append(*turns(2, tokens=50, counter="cjk"))
        clock.advance(timedelta(hours=5).total_seconds())
        await chat.append(Message.user("Where were we?"))
        context = await chat.context(system="Base prompt.")

    assert context.volatile == ""
    assert context.to_openai()["messages"] == [
        {"role": "system", "content": "Base prompt."},
        *({"role": message.role, "content": message.text} for message in context.messages),
    ]


@pytest.mark.req("L-20", "L-21")
async def test_several_reflections_accumulate_before_they_are_condensed_again() -> None:
    policy = Policy.lango(enabled=True)
    async with Memory.open(
        IN_MEMORY,
        policy=policy,
        observer=ScriptedObserver([noting(500)] * 200),
        reflector=ScriptedReflector([to_target] * 200),
    ) as memory:
        chat = memory.conversation("a")
        generations: list[int] = []
        for message in turns(400, tokens=110, counter="cjk"):
            await chat.append(message)
            await chat.flush()
            newest = [reflection.generation for reflection in await chat.reflections()]
            generations += [n for n in newest if n not in generations]
        cycles = [entry for entry in await chat.log() if entry.kind == "reflected"]

    assert max(generations) >= 2
    assert len(cycles) >= 3 * (max(generations) - 1)


def to_target(request: ReflectRequest) -> Draft:
    return condensing(request.target_tokens)(request)


def _plain(request: dict[str, list[dict[str, object]]]) -> dict[str, list[dict[str, object]]]:
    """A request without cache marks."""
    for message in request["messages"]:
        blocks = message["content"]
        assert isinstance(blocks, list)
        for block in blocks:
            block.pop("cache_control", None)
    return request


@pytest.mark.req("C-13", "L-38", "L-60", "L-61", "L-62")
async def test_the_raw_tail_is_cut_by_tokens_from_its_old_end_and_what_left_is_in_notes() -> None:
    async with conversation([noting(60)] * 60) as (chat, _, _):
        await grown(chat, turns(160, tokens=110, counter="cjk"))
        context = await chat.context()
        state = await chat.state()
        segments = (*await chat.reflections(), *await chat.observations())

    tokens = sum(message.tokens for message in context.messages)
    assert 7_000 <= tokens <= 8_000
    assert seqs(context) == list(range(seqs(context)[0], 161))
    check_coverage(context, state, segments)
    assert context.stats.context_tokens < context.stats.history_tokens


@pytest.mark.req("C-13", "L-38", "L-45", "L-61")
@pytest.mark.parametrize("tokens", [60, 110, 350])
async def test_the_budget_of_raw_messages_is_used_up_to_the_last_message_between_two_notes(
    tokens: int,
) -> None:
    """Cut with each note rather than with each message, it has seven eighths of its budget after."""
    raw: list[int] = []
    async with conversation([noting(60)] * 99) as (chat, _, _):
        for message in turns(24_000 // tokens, tokens=tokens, counter="cjk"):
            await chat.append(message)
            await chat.flush()
            raw.append((await chat.state()).tail_tokens)

    full = raw[raw.index(max(raw[: 10_000 // tokens])) :]
    assert max(full) <= 8_000
    assert max(full) > 8_000 - 2 * tokens
    assert min(full) >= 7_000


@pytest.mark.req("L-60", "L-63")
async def test_short_messages_leave_room_for_more_than_a_hundred_and_long_results_for_few() -> None:
    async with conversation() as (chat, _, _):
        await grown(chat, turns(250, tokens=25, counter="cjk"))
        short = await chat.context()
    async with conversation() as (chat, _, _):
        for number in range(12):
            await chat.append(Message.user(f"look {number}"), *tool_turn(number, "r" * 8_000))
            await chat.flush()
        long = await chat.context()

    assert len(short.messages) > 100
    assert len(long.messages) <= 12


@pytest.mark.req("L-10", "L-14", "L-52")
async def test_observer_and_reflector_ask_the_main_model_unless_they_have_their_own() -> None:
    line = "#1-10 [NOTE Fact] " + " ".join(f"word{n}" for n in range(120))
    main, own = ScriptedModel(otherwise=line), ScriptedModel(otherwise=line)
    policy = Policy.lango(enabled=True, reflect_tokens=(150, 150))
    async with Memory.open(IN_MEMORY, policy=policy, model=main, reflector=own) as memory:
        chat = memory.conversation("a")
        for number in range(12):
            await chat.append(Message.user(" ".join(f"word{n}" for n in range(150)) + f" {number}"))
            await chat.flush()
        made_by = {segment.made_by for segment in await chat.observations()}

    assert {request.purpose for request in main.requests} >= {"observe"}
    assert "reflect" not in {request.purpose for request in main.requests}
    assert {request.purpose for request in own.requests} >= {"reflect"}
    assert made_by <= {f"{main.name} observe/3"}


@pytest.mark.req("L-53", "L-54", "L-55", "LS-03", "LS-05")
async def test_notes_have_the_columns_of_the_document_and_are_listed_oldest_first() -> None:
    async with conversation([noting(500)] * 9, [condensing(300)]) as (chat, _, _):
        await grown(chat, turns(70, tokens=110, counter="cjk"))
        notes, reflections = await chat.observations(), await chat.reflections()
        deleted = await chat.delete()
        left = (*await chat.observations(), *await chat.reflections())

    assert chat.id == "session-1"
    assert [note.first_seq for note in notes] == [51, 61]
    assert all(note.text and note.tokens and note.last_seq > note.first_seq for note in notes)
    assert all(note.created_at.tzinfo is not None for note in notes)
    assert [(r.generation, r.tokens) for r in reflections] == [(1, 300)]
    assert len({segment.id for segment in (*notes, *reflections)}) == 3
    assert deleted is not None
    assert left == ()


@pytest.mark.req("LS-06")
async def test_notes_and_reflections_are_read_as_they_were_saved_and_deleted_when_condensed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "lango.db"
    url = f"sqlite:///{path}"
    async with conversation([noting(500)] * 9, [condensing(300)], url=url) as (chat, observer, _):
        await grown(chat, turns(70, tokens=110, counter="cjk"))
    async with Memory.open(url, policy=Policy.lango(enabled=True)) as memory:
        chat = memory.conversation("session-1")
        reflections, notes = await chat.reflections(), await chat.observations()
        with closing(apsw.Connection(str(path))) as connection:
            saved = set(connection.execute("SELECT first_seq, last_seq FROM segments"))

    written = [noting(500)(request).notes[0].text for request in observer.requests]
    assert [(s.first_seq, s.last_seq, s.text, s.tokens) for s in notes] == [
        (51, 60, written[5], 500),
        (61, 70, written[6], 500),
    ]
    (gist,) = reflections
    assert (gist.first_seq, gist.last_seq, gist.tokens) == (1, 50, 300)
    assert gist.text == "gist-of-1-to-50 ".ljust(1_200, "g")
    assert saved == {(1, 50), (51, 60), (61, 70)}


@pytest.mark.req("L-56", "L-57")
async def test_a_new_file_has_its_tables_and_a_session_is_read_with_its_notes(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}"
    async with conversation([noting(60)], url=url) as (chat, _, _):
        await chat.append(*turns(10, tokens=110, counter="cjk"))
        await chat.flush()
        snapshot = await chat.snapshot()

    assert len(snapshot.tail) == 10
    assert ranges(snapshot.segments) == [(1, 10)]


@pytest.mark.req("L-64")
async def test_what_was_said_at_the_start_is_still_there_when_its_messages_are_gone() -> None:
    policy = Policy.lango(enabled=True, tail_tokens=1_500, tail_keep_tokens=500)
    async with Memory.open(IN_MEMORY, policy=policy) as memory:
        chat = memory.conversation("a")
        await chat.append(
            Message.user(
                "I want to move to Lisbon. We decided to rent the flat at Rua Augusta 17 for 1,250 "
                "euros because it is near the tram; the contract starts on 2026-09-01."
            )
        )
        for number in range(60):
            await chat.append(
                Message.user(f"Question {number}: does platform {number} have a lift at noon?"),
                Message.assistant(f"Platform {number} has lift number {number * 7} since May."),
            )
            await chat.flush()
        context = await chat.context()

    text = " ".join(block.text for block in context.system)
    assert 1 not in seqs(context)
    assert "Rua Augusta 17" in text
    assert "1,250" in text


@pytest.mark.req("LS-08")
async def test_a_message_of_the_agent_carries_its_name() -> None:
    async with conversation() as (chat, _, _):
        await chat.append(Message.user("Hello."), Message.assistant("Hello.", name="planner"))
        messages = await chat.messages()
        shown = (await chat.context()).to_openai()["messages"]

    assert [message.speaker for message in messages] == ["user", "planner"]
    assert shown[-1]["name"] == "planner"


@pytest.mark.req("L-52", "LS-02")
def test_messages_are_counted_for_any_provider() -> None:
    message = Message.user("Where does the ferry leave?")
    for model in ("claude-sonnet-5-5", "gpt-4o-mini", "google/gemini-2.5-pro", "llama3.2"):
        assert 5 <= count_tokens(message, model=model) <= 20


@pytest.mark.req("LS-11")
async def test_appended_messages_trigger_an_observation_that_the_context_contains() -> None:
    async with conversation([draft("Ana moves to Lisbon.")]) as (chat, _, _):
        await chat.append(*turns(11, tokens=100, counter="cjk"))
        await chat.flush()
        request = (await chat.context(system="Base prompt.")).to_anthropic()

    assert "Ana moves to Lisbon." in system_text(request)


@pytest.mark.req("LS-11")
async def test_accumulated_observations_are_replaced_by_a_reflection_in_the_request() -> None:
    def gist(request: ReflectRequest) -> Draft:
        return draft("All of it in one line.", last_seq=request.segments[-1].last_seq)

    async with conversation([noting(500)] * 5, [gist]) as (chat, _, _):
        await grown(chat, turns(50, tokens=110, counter="cjk"))
        text = system_text((await chat.context()).to_anthropic())

    assert "All of it in one line." in text
    assert "notes-of-" not in text


@pytest.mark.req("LS-07", "LS-11")
async def test_switched_off_a_context_has_the_newest_hundred_messages() -> None:
    observer = ScriptedObserver()
    async with Memory.open(IN_MEMORY, policy=Policy.lango(), observer=observer) as memory:
        chat = memory.conversation("a")
        await chat.append(*turns(140, tokens=50, counter="cjk"))
        await chat.flush()
        request = (await chat.context(system="Base prompt.")).to_anthropic()
        context = await chat.context()

    assert len(request["messages"]) == 100
    assert seqs(context) == list(range(41, 141))
    assert [(gap.first_seq, gap.last_seq) for gap in context.omitted] == [(1, 40)]
    assert system_text(request) == "Base prompt."
    assert observer.requests == []


@pytest.mark.req("L-07", "L-08", "L-13")
async def test_the_prompt_of_the_package_is_sent_with_the_messages() -> None:
    model = ScriptedModel(otherwise="#1-11 [NOTE Fact] user: said something")
    policy = Policy.lango(enabled=True)
    async with Memory.open(IN_MEMORY, policy=policy, model=model) as memory:
        chat = memory.conversation("a")
        await chat.append(*turns(11, tokens=110, counter="cjk"))
        await chat.flush()

    [request] = [request for request in model.requests if request.purpose == "observe"]
    for asked in ("decisions with their reasons", "goals, intent", "facts about", "under way"):
        assert asked in request.stable
    assert "never the raw output" in request.stable
    assert "#11" in request.prompt


@pytest.mark.req("L-52")
async def test_notes_are_counted_by_the_counter_of_the_preset() -> None:
    async with conversation([noting(60)] * 9, [condensing(300)]) as (chat, _, _):
        await grown(chat, turns(21, tokens=110, counter="cjk"))
        notes = await chat.observations()

    assert [note.tokens for note in notes] == [
        count_tokens(note.text, model="cjk") for note in notes
    ]
    assert len(notes) == 2


@pytest.mark.req("L-44")
async def test_a_note_of_exactly_the_threshold_is_not_reflected() -> None:
    async with conversation([noting(1_000)] * 2, [condensing(100)]) as (chat, _, reflector):
        await grown(chat, turns(2, tokens=1_200, counter="cjk"))
        assert sum(note.tokens for note in await chat.observations()) == 2_000
        assert reflector.requests == []
        await chat.append(said(1_200, counter="cjk", number=3))
        await chat.flush()
        assert len(reflector.requests) == 1


@pytest.mark.req("L-56", "L-Q1")
async def test_notes_are_in_the_file_of_the_messages_so_that_what_encrypts_it_encrypts_both(
    tmp_path: Path,
) -> None:
    async with conversation([noting(60)], url=f"sqlite:///{tmp_path / 'lango.db'}") as (chat, _, _):
        await chat.append(*turns(10, tokens=110, counter="cjk"))
        await chat.flush()
        assert await chat.observations()

    files = contents(tmp_path)
    assert list(files) == ["lango.db"]
    assert b"notes-of-1-to-10" in files["lango.db"]


def contents(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in directory.iterdir()}


@pytest.mark.req("LS-04")
async def test_notes_and_messages_of_a_session_are_found_by_an_index(tmp_path: Path) -> None:
    file = tmp_path / "lango.db"
    async with conversation([noting(60)], url=f"sqlite:///{file}") as (chat, _, _):
        await chat.append(*turns(10, tokens=110, counter="cjk"))
        await chat.flush()
    connection = apsw.Connection(str(file))
    queries = (
        "SELECT key FROM conversations WHERE tenant = 'default' AND id = 'session-1'",
        "SELECT * FROM segments WHERE conversation = 1 AND superseded IS NULL ORDER BY first_seq",
        "SELECT * FROM messages WHERE conversation = 1 AND seq > 3 ORDER BY seq",
    )
    plans = [
        " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}"))
        for query in queries
    ]
    connection.close()

    assert all("SEARCH" in plan and "INDEX" in plan for plan in plans)
    assert not any("SCAN" in plan or "TEMP B-TREE" in plan for plan in plans)


@pytest.mark.req("L-Q2")
async def test_the_default_thresholds_cost_less_than_those_of_the_document() -> None:
    async def cost(policy: Policy) -> float:
        total, before = 0.0, list[str]()
        observer = ScriptedObserver([noting(150)] * 200)
        reflector = ScriptedReflector([condensing(300)] * 200)
        async with Memory.open(
            IN_MEMORY, policy=policy, observer=observer, reflector=reflector, clock=FixedClock()
        ) as memory:
            chat = memory.conversation("a")
            for number in range(100):
                await chat.append(*turns(2, tokens=380, counter="flat", start=2 * number))
                await chat.flush()
                pieces = flatten(await chat.context(system="You help."))
                same = 0
                for new, old in zip(pieces, before, strict=False):
                    if new != old:
                        break
                    same += len(new)
                total += 0.1 * same + 1.25 * (sum(map(len, pieces)) - same)
                before = pieces
        return total

    default = Policy.default(token_counter="flat", show_clock=False)
    document = Policy.lango(enabled=True, token_counter="flat", show_clock=False)
    assert await cost(default) < 0.6 * await cost(document)
