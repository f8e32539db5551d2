"""The main job: messages in, background work, a bounded context out."""

import asyncio
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from remanence import Memory, Message, Policy, Settings
from remanence.clock import SystemClock
from remanence.conversation import LONG_MESSAGE
from remanence.errors import Closed, ConversationNotFound, DuplicateMessage, InvalidMessage
from remanence.stores import open_store
from remanence.testing import (
    FaultyStore,
    FixedClock,
    ScriptedObserver,
    ScriptedReflector,
    check_coverage,
    check_tiling,
)
from remanence.types import Draft, DroppedLine, Note

SMALL = Policy(
    observe_tokens=600,
    observe_max_tokens=1_000,
    tail_tokens=1_500,
    tail_keep_tokens=300,
    reflect_tokens=(300, 300, 400),
    keep_last=2,
)

WORDS = "the quick brown fox jumps over a lazy dog near the old river bank at dawn "


def turn(number: int) -> tuple[Message, Message]:
    return (
        Message.user(f"Question {number}: the code of locker {number} is K-{number:04}. {WORDS}"),
        Message.assistant(f"Answer {number}: noted, locker {number}. {WORDS}"),
    )


async def test_a_time_that_is_passed_is_shown_also_in_a_new_conversation() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("a")
        await chat.append(Message.user("What day is tomorrow?"))
        told = await chat.context(now=datetime(2026, 12, 24, 20, tzinfo=UTC))
        plain = await chat.context()

    assert told.volatile == "Current time: 2026-12-24 20:00 UTC."
    assert plain.volatile == ""
    assert told.system == plain.system


async def test_a_conversation_is_observed_activated_and_reflected_in_the_background() -> None:
    async with Memory.open("sqlite:///:memory:", policy=SMALL, clock=FixedClock()) as memory:
        chat = memory.conversation("a")
        for number in range(60):
            await chat.append(*turn(number))
            await chat.context(system="You help.")
        state = await chat.flush()
        context = await chat.context(system="You help.")
        segments = (*await chat.reflections(), *await chat.observations())

    assert state.reflected_seq > 0
    assert state.active_seq >= state.reflected_seq
    check_tiling(state, segments)
    check_coverage(context, state, segments)
    assert context.stats.working_tokens <= SMALL.tail_tokens
    assert context.stats.context_tokens < context.stats.history_tokens / 2


async def test_ready_notes_are_shown_before_a_small_context_leaves_messages_out() -> None:
    """Beside a long system text the tail has less room than `tail_tokens`."""
    policy = SMALL.replace(max_context_tokens=3_000, reflect_tokens=(500, 700))
    async with Memory.open(
        "sqlite:///:memory:",
        policy=policy,
        clock=FixedClock(),
        observer=ScriptedObserver(),
        reflector=ScriptedReflector(),
    ) as memory:
        chat = memory.conversation("a")
        for number in range(60):
            await chat.append(*turn(number))
            await chat.flush()
            context = await chat.context(system="You help. " * 300)
            assert context.omitted == ()
            check_coverage(context, await chat.state(), (await chat.snapshot()).segments)


async def test_all_ready_notes_are_shown_if_less_fits_than_should_stay_raw() -> None:
    policy = SMALL.replace(max_context_tokens=3_000, reflect_tokens=(500, 700), observe_tokens=200)
    async with Memory.open(
        "sqlite:///:memory:",
        policy=policy.replace(tail_keep_tokens=1_300),
        clock=FixedClock(),
        observer=ScriptedObserver(),
        reflector=ScriptedReflector(),
    ) as memory:
        chat = memory.conversation("a")
        for number in range(20):
            await chat.append(*turn(number))
            await chat.flush()
        context = await chat.context(system="You help. " * 500)
        state = await chat.state()

    assert context.omitted
    assert state.active_seq == state.observed_seq


@pytest.mark.req("LS-10")
async def test_a_context_without_notes_is_the_system_prompt_and_the_messages() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("a")
        await chat.append(Message.user("Hello."), Message.assistant("Hi."), Message.user("Bye."))
        context = await chat.context(system="You help.")

    assert [block.text for block in context.system] == ["You help."]
    assert context.to_openai() == {
        "messages": [
            {"role": "system", "content": "You help."},
            {"role": "user", "content": "Hello."},
            {"role": "assistant", "content": "Hi."},
            {"role": "user", "content": "Bye."},
        ]
    }


@pytest.mark.req("L-42", "L-58", "X-21")
async def test_memory_that_is_off_changes_no_byte_and_calls_no_observer() -> None:
    observer = ScriptedObserver()
    policy = SMALL.replace(enabled=False)
    async with Memory.open("sqlite:///:memory:", policy=policy, observer=observer) as memory:
        chat = memory.conversation("a")
        messages = [message for number in range(40) for message in turn(number)]
        await chat.append(*messages)
        await chat.flush(everything=True)
        request = (await chat.context(system="You help.")).to_openai()

    assert observer.requests == []
    assert request["messages"][0] == {"role": "system", "content": "You help."}
    assert [(m["role"], m["content"]) for m in request["messages"][1:]] == [
        (message.role, message.text) for message in messages
    ]


async def test_what_append_returned_is_there_after_a_restart(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    async with Memory.open(url, policy=SMALL) as memory:
        chat = memory.conversation("a", user="ana")
        for number in range(40):
            await chat.append(*turn(number))
        before = await chat.flush()
        shown = (await chat.context()).system
    async with Memory.open(url, policy=SMALL) as memory:
        chat = memory.conversation("a", user="ana")
        after = await chat.state()
        again = (await chat.context()).system

    assert after.last_seq == 80
    assert (after.observed_seq, after.active_seq) == (before.observed_seq, before.active_seq)
    assert after.user == "ana"
    assert again == shown


@pytest.mark.req("X-09")
async def test_a_restart_picks_up_what_was_left_undone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    patient = SMALL.replace(observe_tokens=10_000, observe_max_tokens=10_000)
    async with Memory.open(url, policy=patient) as memory:
        await memory.conversation("a").append(*(m for n in range(40) for m in turn(n)))
    observer = ScriptedObserver()
    async with Memory.open(url, policy=SMALL, observer=observer) as memory:
        async with asyncio.timeout(60):
            await observer.called.wait()


@pytest.mark.req("L-25", "Z-06", "Z-34")
async def test_turns_do_not_wait_for_a_slow_observer() -> None:
    gate = asyncio.Event()
    observer = ScriptedObserver(gate=gate)
    async with Memory.open("sqlite:///:memory:", policy=SMALL, observer=observer) as memory:
        chat = memory.conversation("a")
        async with asyncio.timeout(60):
            for number in range(60):
                await chat.append(*turn(number))
                context = await chat.context(system="You help.")
        assert context.stats.pending == 120
        assert [message.seq for message in context.messages] == list(range(1, 121))
        gate.set()
        assert (await chat.flush()).observed_seq > 0


async def test_block_after_waits_for_notes() -> None:
    policy = SMALL.replace(block_after=1.0, sync_timeout_seconds=60.0)
    async with Memory.open(
        "sqlite:///:memory:", policy=policy, observer=ScriptedObserver()
    ) as memory:
        chat = memory.conversation("a")
        await chat.append(*(m for n in range(40) for m in turn(n)))
        context = await chat.context()

    assert context.stats.session_tokens > 0


async def test_block_after_waits_no_longer_than_its_limit() -> None:
    gate = asyncio.Event()
    policy = SMALL.replace(block_after=1.0, sync_timeout_seconds=0.05)
    observer = ScriptedObserver(gate=gate)
    async with Memory.open("sqlite:///:memory:", policy=policy, observer=observer) as memory:
        chat = memory.conversation("a")
        await chat.append(*(m for n in range(40) for m in turn(n)))
        context = await chat.context()
        gate.set()

    assert context.stats.session_tokens == 0
    assert len(context.messages) == 80


async def test_closing_lets_a_step_in_progress_finish(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    gate = asyncio.Event()
    observer = ScriptedObserver(gate=gate)
    async with Memory.open(url, policy=SMALL, observer=observer) as memory:
        await memory.conversation("a").append(*(m for n in range(30) for m in turn(n)))
        async with asyncio.timeout(60):
            await observer.called.wait()
        asyncio.get_running_loop().call_later(0.01, gate.set)
    async with Memory.open(url, policy=SMALL.replace(enabled=False)) as memory:
        state = await memory.conversation("a").state()

    assert state.observed_seq == observer.requests[-1].messages[-1].seq
    assert state.lease_owner is None


async def test_a_second_close_waits_for_the_step_that_the_first_lets_finish(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    gate = asyncio.Event()
    observer = ScriptedObserver(gate=gate)
    memory = await Memory.open(url, policy=SMALL, observer=observer)
    await memory.conversation("a").append(*(m for n in range(30) for m in turn(n)))
    async with asyncio.timeout(60):
        await observer.called.wait()
        async with asyncio.TaskGroup() as group:
            closings = [group.create_task(memory.close()) for _ in range(2)]
            await asyncio.sleep(0.01)
            assert not any(closing.done() for closing in closings)
            gate.set()
    async with Memory.open(url, policy=SMALL.replace(enabled=False)) as memory:
        state = await memory.conversation("a").state()

    assert state.observed_seq == observer.requests[-1].messages[-1].seq


async def test_a_closed_memory_says_so() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("a")
    with pytest.raises(Closed, match="open it again"):
        await chat.append(Message.user("Hello."))


async def test_messages_are_on_the_tape_in_the_order_in_which_their_appends_began() -> None:
    texts = ["I live in Oslo. " + "word " * LONG_MESSAGE, "I moved to Bergen.", "lol"]
    async with Memory.open("sqlite:///:memory:") as memory:
        async with asyncio.TaskGroup() as group:
            for text in texts:
                chat = memory.conversation("a")
                group.create_task(chat.append(Message.user(text)))
        messages = await memory.conversation("a").messages()

    assert [message.text for message in messages] == texts


async def test_an_append_that_is_cancelled_while_it_waits_lets_the_next_go_on() -> None:
    store = FaultyStore(await open_store("sqlite:///:memory:", clock=SystemClock()))
    async with Memory.open(store) as memory:
        chat = memory.conversation("a")
        gate = store.hold("append")
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            appends = [
                group.create_task(chat.append(Message.user(text))) for text in ("a", "b", "c")
            ]
            await gate.reached.wait()
            appends[1].cancel()
            gate.opened.set()
        messages = await chat.messages()
    await store.close()

    assert appends[1].cancelled()
    assert [message.text for message in messages] == ["a", "c"]


async def test_conversations_do_not_disturb_one_another() -> None:
    observer = ScriptedObserver()
    async with Memory.open("sqlite:///:memory:", policy=SMALL, observer=observer) as memory:
        busy, quiet = memory.conversation("busy"), memory.conversation("quiet")
        await quiet.append(Message.user("Hello."))
        await busy.append(*(m for n in range(30) for m in turn(n)))
        await busy.flush()
        await quiet.flush()
        other_tenant = await memory.conversation("busy", tenant="other").state()

    assert {request.conversation.id for request in observer.requests} == {"busy"}
    assert other_tenant.last_seq == 0


@pytest.mark.req("X-14")
async def test_a_deleted_conversation_is_gone_also_for_an_observation_in_flight() -> None:
    gate = asyncio.Event()
    observer = ScriptedObserver(gate=gate)
    async with Memory.open("sqlite:///:memory:", policy=SMALL, observer=observer) as memory:
        chat = memory.conversation("a")
        await chat.append(*(m for n in range(30) for m in turn(n)))
        async with asyncio.timeout(60):
            await observer.called.wait()
        assert await chat.delete()
        await chat.append(Message.user("A new life."))
        gate.set()
        state = await chat.flush()
        hits = await chat.recall("locker")
        assert (state.last_seq, state.observed_seq) == (1, 0)
        assert await chat.observations() == ()
        assert hits == ()


@pytest.mark.req("X-18")
async def test_notes_and_messages_are_found_with_their_sources() -> None:
    policy = SMALL
    async with Memory.open("sqlite:///:memory:", policy=policy) as memory:
        chat = memory.conversation("a")
        for number in range(40):
            await chat.append(*turn(number))
        await chat.flush()
        hits = await chat.recall("K-0003", limit=5)
        segment = (*await chat.reflections(), *await chat.observations())[0]
        source = await chat.source(segment.id)
        with pytest.raises(ConversationNotFound, match="no-such"):
            await chat.source("no-such")

    assert any("K-0003" in hit.text and hit.first_seq <= 7 <= hit.last_seq for hit in hits)
    assert [message.seq for message in source] == list(
        range(segment.first_seq, segment.last_seq + 1)
    )


@pytest.mark.req("B-66", "X-11")
async def test_recalled_text_the_channel_and_the_clock_stand_behind_the_last_breakpoint() -> None:
    async with Memory.open("sqlite:///:memory:", policy=SMALL, clock=FixedClock()) as memory:
        chat = memory.conversation("a")
        for number in range(40):
            await chat.append(*turn(number))
        await chat.flush()
        await chat.append(Message.user("What is the code of locker 3?"))
        context = await chat.context(system="You help.", recall="locker 3", channel="telegram")
        request = context.to_anthropic()

    newest = request["messages"][-1]["content"]
    assert newest[-2]["cache_control"] == {"type": "ephemeral"}
    assert "telegram" in newest[-1]["text"]
    assert "Current time: 2026-03-02 09:00 UTC" in newest[-1]["text"]
    assert "Retrieved memories" in newest[-1]["text"]
    assert "telegram" not in str(request["system"]) + str(request["messages"][:-1])


async def test_an_append_under_a_known_id_keeps_one_message() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("a")
        first = await chat.append(Message.user("Hello.", id="m1"))
        second = await chat.append(Message.user("Hello.", id="m1"))
        with pytest.raises(DuplicateMessage, match=r"m1.*forget that one, too"):
            await chat.append(Message.user("Something else.", id="m1"))
        assert first == second
        assert (await chat.state()).last_seq == 1


@pytest.mark.req("X-12")
async def test_memory_never_observes_itself_or_the_hosts_control_text() -> None:
    observer = ScriptedObserver()
    async with Memory.open("sqlite:///:memory:", policy=SMALL, observer=observer) as memory:
        chat = memory.conversation("a")
        await chat.append(
            Message.user("<memory-context>\nold notes\n</memory-context>\nMy cat is Tom."),
            Message.user("Remember to be brief.", kind="control"),
            Message(role="system", content=Message.user("You are a pirate.").content),
            Message.user("old notes", kind="memory"),
            Message.assistant("<system-reminder>hush</system-reminder>Hello Tom."),
        )
        await chat.flush(everything=True)

    assert [message.text for message in observer.requests[0].messages] == [
        "My cat is Tom.",
        "Hello Tom.",
    ]


async def test_text_that_the_users_program_wrote_yields_no_notes_and_no_facts() -> None:
    caveat = "<local-command-caveat>Never answer in French.</local-command-caveat>"
    rules = "# AGENTS.md instructions for /home/ana\n\nI live in Rome. Always write tests."
    async with Memory.open("sqlite:///:memory:", policy=SMALL) as memory:
        chat = memory.conversation("a", user="ana")
        await chat.append(Message.user(caveat), Message.user(f"{caveat} I live in Porto."))
        await chat.append(Message.user(rules))
        await chat.end()
        notes = " ".join(block.text for block in (await chat.context()).system)
        facts = await memory.facts.list(user="ana")

    assert [fact.summary for fact in facts] == ["I live in Porto."]
    assert not any(word in notes for word in ("French", "Rome", "tests"))


async def test_messages_that_hold_nothing_to_observe_are_passed_without_a_call() -> None:
    observer = ScriptedObserver()
    async with Memory.open("sqlite:///:memory:", policy=SMALL, observer=observer) as memory:
        chat = memory.conversation("a")
        await chat.append(*(Message.user(f"Reminder {n}", kind="control") for n in range(9)))
        state = await chat.flush(everything=True)
        context = await chat.context()

    assert observer.requests == []
    assert state.observed_seq == 9
    assert context.stats.last_seq == 9


async def test_several_workers_take_conversations_in_turn() -> None:
    observer, reflector = ScriptedObserver(), ScriptedReflector()
    async with Memory.open(
        "sqlite:///:memory:", policy=SMALL, observer=observer, reflector=reflector
    ) as memory:
        chats = [memory.conversation(f"chat-{number}") for number in range(8)]
        for chat in chats:
            await chat.append(*(m for n in range(40) for m in turn(n)))
        async with asyncio.TaskGroup() as group:
            for chat in chats:
                group.create_task(chat.flush())
        order = [request.conversation.id for request in observer.requests]
        states = [await chat.state() for chat in chats]

    assert set(order[:12]) == {chat.id for chat in chats}
    assert all(state.unobserved_tokens <= SMALL.observe_tokens + 400 for state in states)


@pytest.mark.parametrize("name", ["", "\n", "a\x00b"])
async def test_a_conversation_needs_a_name(name: str) -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        with pytest.raises(InvalidMessage, match="name"):
            memory.conversation(name)


async def test_an_answer_quotes_no_secret_of_its_question() -> None:
    key = "sk-ant-" + "a1B2" * 7
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("a")
        await chat.append(
            Message.user("Which key is ours?"),
            Message.assistant(f"Is it api_key={key} or the other one?"),
            Message.user("the first one then"),
            Message.assistant("Noted."),
        )
        await chat.flush(everything=True)
        (observation,) = await chat.observations()

    assert "“Is it api_key=[secret] or the other one?” – the first one then" in observation.text


async def test_secrets_that_an_observer_of_ones_own_writes_are_no_part_of_its_notes() -> None:
    secret = "password: hunter2!Blue99"
    note = Note(
        text=secret, first_seq=1, last_seq=1, topic=secret, supersedes="password: Red77!abc"
    )
    line = DroppedLine(text=secret, reason="invented", detail=secret)
    observer = ScriptedObserver([Draft(notes=(note,), made_by="own/1", dropped=(line,))])
    async with Memory.open("sqlite:///:memory:", observer=observer) as memory:
        chat = memory.conversation("a")
        await chat.append(Message.user(WORDS))
        await chat.flush(everything=True)
        (observation,) = await chat.observations()

    (kept,) = observation.notes
    assert (kept.text, kept.topic, kept.supersedes) == ("password: [secret]",) * 3
    (dropped,) = observation.dropped
    assert (dropped.text, dropped.detail) == ("password: [secret]",) * 2
    assert "hunter2" not in observation.text


@pytest.mark.req("X-17")
async def test_secrets_reach_neither_the_observer_nor_the_notes_nor_the_loss_report() -> None:
    key = "sk-" + "a1B2" * 8
    observer = ScriptedObserver()
    async with Memory.open("sqlite:///:memory:", policy=SMALL, observer=observer) as memory:
        chat = memory.conversation("a")
        await chat.append(Message.user(f"Use the key {key} for the mail service. {WORDS}"))
        await chat.flush(everything=True)
        segments = await chat.observations()
        messages = await chat.messages()

    assert "[secret]" in observer.requests[0].messages[0].text
    assert key not in str(observer.requests) + str(segments)
    assert key in messages[0].text


async def test_an_exchange_of_a_few_words_is_noted_whole() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("trip")
        await chat.append(
            Message.user("My flight LH 454 leaves on 2026-05-08 from gate B42."),
            Message.assistant("Noted."),
        )
        await chat.end()
        (note,) = await chat.observations()

    assert [value in note.text for value in ("LH 454", "2026-05-08", "B42")] == [True] * 3


async def test_without_workers_a_flush_does_the_work_itself() -> None:
    observer = ScriptedObserver()
    settings = Settings(workers=0)
    async with Memory.open("sqlite:///:memory:", observer=observer, settings=settings) as memory:
        chat = memory.conversation("trip")
        await chat.append(Message.user("My flight is LH 454."))
        async with asyncio.timeout(60):
            state = await chat.flush(everything=True)

    assert state.observed_seq == 1
    assert len(observer.requests) == 1


async def test_the_newest_message_stays_however_long_it_is_and_whatever_is_observed() -> None:
    policy = Policy.default(
        keep_last=0,
        tail_tokens=150,
        tail_keep_tokens=30,
        observe_tokens=60,
        observe_slice="all",
        activate="when_observed",
        reflect_tokens=(),
    )
    async with Memory.open("sqlite:///:memory:", policy=policy) as memory:
        chat = memory.conversation("trip")
        await chat.append(Message.user(" ".join(f"gate B{n}" for n in range(200))))
        state = await chat.flush(everything=True)
        context = await chat.context()

    assert state.active_seq == 1
    assert [message.seq for message in context.messages] == [1]


async def test_the_time_in_a_context_is_that_of_the_handles_time_zone() -> None:
    now = datetime(2026, 3, 29, 10, tzinfo=UTC)
    async with Memory.open("sqlite:///:memory:", clock=FixedClock(now)) as memory:
        chat = memory.conversation("a", timezone=ZoneInfo("Europe/Berlin"))
        empty = await chat.context(now=now)
        await chat.append(Message.user("Good night.", created_at=now - timedelta(hours=15)))
        in_summer_time = await chat.context(now=now)

    assert empty.volatile == in_summer_time.volatile == "Current time: 2026-03-29 12:00 UTC+02:00."


async def test_a_message_in_the_hour_skipped_in_spring_is_an_hour_later() -> None:
    zone = ZoneInfo("Europe/Berlin")
    async with Memory.open("sqlite:///:memory:", clock=FixedClock()) as memory:
        chat = memory.conversation("a", timezone=zone)
        skipped = datetime(2026, 3, 29, 2, 30, tzinfo=zone)
        (appended,) = await chat.append(Message.user("Hello.", created_at=skipped))

    assert appended.created_at is not None
    assert appended.created_at.isoformat() == "2026-03-29T03:30:00+02:00"


async def test_messages_have_the_time_zone_of_their_conversation() -> None:
    seoul = timezone(timedelta(hours=9))
    async with Memory.open("sqlite:///:memory:", clock=FixedClock()) as memory:
        chat = memory.conversation("trip", timezone=seoul)
        appended = await chat.append(Message.user("I leave tomorrow."), Message.assistant("Fine."))

    assert {message.created_at.utcoffset() for message in appended if message.created_at} == {
        timedelta(hours=9)
    }


async def test_what_an_agent_says_between_messages_of_the_user_has_the_users_zone() -> None:
    seoul, midnight = timezone(timedelta(hours=9)), datetime(2026, 5, 10, tzinfo=UTC)
    policy = SMALL.replace(observe_tokens=40, tail_tokens=60, tail_keep_tokens=10, keep_last=1)
    async with Memory.open("sqlite:///:memory:", policy=policy, clock=FixedClock()) as memory:
        chat = memory.conversation("watch")
        asked = midnight.astimezone(seoul).replace(hour=7)
        await chat.append(Message.user("Watch the copy of table 7.", created_at=asked))
        for hour in range(30):
            said = f"Step {hour}: the copy of table {hour} of db-4 runs until tomorrow."
            at = midnight - timedelta(hours=1, minutes=59 - hour)
            await chat.append(Message.assistant(said, created_at=at))
            await chat.flush()
        notes = [note for segment in await chat.observations() for note in segment.notes]

    alone = [note for note in notes if note.first_seq > 20]
    assert alone
    assert all("until May 11" in note.text for note in alone)


async def test_notes_exceed_their_share_only_at_the_beginning_of_a_conversation() -> None:
    policy = Policy(observe_tokens=1_000, note_ratio=0.2, min_note_tokens=200, keep_last=0)
    observer = ScriptedObserver()
    async with Memory.open("sqlite:///:memory:", policy=policy, observer=observer) as memory:
        chat = memory.conversation("a")
        for number in range(6):
            await chat.append(Message.user(f"{number}: {WORDS * 25}"))
            await chat.flush(everything=True)

    source_tokens = [sum(m.tokens for m in request.messages) for request in observer.requests]
    shares = [
        request.target_tokens / tokens
        for request, tokens in zip(observer.requests, source_tokens, strict=True)
    ]
    assert [sum(source_tokens[:i]) < 2_000 for i in range(6)] == [share > 0.2 for share in shares]
    assert 1 < sum(share > 0.2 for share in shares) < 6
