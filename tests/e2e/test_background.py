"""What runs behind an open memory goes on after faults, and ends with it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg import errors
from tests.slow import slow_except

from remanence import Memory, Message, Policy, Settings
from remanence.background import FIRST_PAUSE_SECONDS, Background, Pauses
from remanence.clock import Clock, SystemClock
from remanence.conversation import Conversation
from remanence.errors import Closed, ModelError, StoreUnavailable
from remanence.protocols import ModelRequest, Observer, ObserveRequest, Store
from remanence.runtime import Runtime
from remanence.stores import open_store
from remanence.stores.postgres.errors import find_remedy, translate_error
from remanence.testing import FaultyStore, FixedClock, ScriptedObserver, ScriptedReflector
from remanence.types import ConversationRef, Draft, MemoryState, ToolCallPart

POLICY = Policy(observe_tokens=100, tail_tokens=400, tail_keep_tokens=50, keep_last=1)
REF = ConversationRef("default", "a")
WORDS = "the quick brown fox jumps over a lazy dog near the old river bank at dawn "


def messages(turns: int) -> list[Message]:
    pairs = (
        (Message.user(f"Question {n}: {WORDS}"), Message.assistant(f"Answer {n}: {WORDS}"))
        for n in range(turns)
    )
    return [message for pair in pairs for message in pair]


@asynccontextmanager
async def running(
    store: Store,
    observer: Observer,
    *,
    workers: int = 2,
    clock: Clock | None = None,
    policy: Policy = POLICY,
) -> AsyncIterator[Runtime]:
    """A memory at work on a store of the test's own."""
    async with Background() as background:
        runtime = Runtime(
            store,
            settings=Settings(workers=workers),
            policy=policy,
            clock=clock or SystemClock(),
            background=background,
            observer=observer,
        )
        runtime.start()
        yield runtime
        await runtime.stop()


def test_pauses_grow_only_while_work_fails_sooner_than_its_last_pause() -> None:
    pauses = Pauses()

    first, *more = (pauses.after("work", OSError()) for _ in range(6))
    soon = pauses.after("work", OSError(), worked_seconds=more[-1])
    later = pauses.after("work", OSError(), worked_seconds=soon + 1)

    assert [first, *more, soon] == [FIRST_PAUSE_SECONDS * 2**n for n in range(7)]
    assert later == first


def test_a_failure_is_logged_on_one_line_with_its_cause(caplog: pytest.LogCaptureFixture) -> None:
    error = RuntimeError("\n    Database error.\n    ")
    error.__cause__ = OSError("the server\nis gone")

    Pauses().after("sweep", error)

    expected = "(RuntimeError, 1 in a row): Database error. (OSError: the server is gone); it is"
    assert expected in caplog.messages[0]


async def test_a_scan_that_fails_is_repeated_and_stops_no_other_work(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    async with Memory.open(url, policy=POLICY, settings=Settings(workers=0)) as memory:
        await memory.conversation("left").append(*messages(12))
        await memory.conversation("a").append(*messages(12))
    store, observer = FaultyStore(await open_store(url)), ScriptedObserver()
    store.fail("looks", StoreUnavailable("the disk is busy"), times=2)

    async with running(store, observer) as runtime, asyncio.timeout(60):
        await runtime.engine.settle(REF)
        names = {"a", "left"}
        while names != {request.conversation.id for request in observer.requests}:  # noqa: ASYNC110 - a scan tells nobody
            await asyncio.sleep(0.01)

    assert "'scan' failed (StoreUnavailable, 2 in a row): the disk is busy" in caplog.text
    await store.close()


async def test_a_look_that_the_database_refused_is_not_repeated_at_once(tmp_path: Path) -> None:
    url, quiet = f"sqlite:///{tmp_path / 'memory.db'}", ConversationRef("default", "quiet")
    async with Memory.open(url, policy=POLICY, settings=Settings(workers=0)) as memory:
        await memory.conversation("a").append(*messages(12))
        await memory.conversation("quiet").append(*messages(1))
    store = FaultyStore(await open_store(url))
    store.fail("lease", StoreUnavailable("no space is left"), times=1_000)

    async with running(store, ScriptedObserver()) as runtime, asyncio.timeout(60):
        while "lease" not in store.calls:  # noqa: ASYNC110 - a scan tells nobody
            await asyncio.sleep(0.01)
        for _ in range(100):
            await runtime.engine.settle(quiet)
    await store.close()

    assert store.calls.count("lease") == 1


@pytest.mark.parametrize("workers", slow_except([0, 1], [1]))
async def test_notes_that_the_database_refuses_are_paid_for_at_most_six_times_an_hour(
    workers: int,
) -> None:
    clock, observer = FixedClock(), ScriptedObserver()
    store = FaultyStore(await open_store("sqlite:///:memory:", clock=clock))
    store.fail("commit_observation", StoreUnavailable("the disk is full"), times=99)

    async with running(store, observer, workers=workers, clock=clock) as runtime:
        chat = Memory(runtime).conversation("a")
        for _ in range(120):
            await chat.append(*messages(1))
            with suppress(StoreUnavailable):
                await chat.flush()
            clock.advance(30)
        state = await chat.state()

    assert 3 <= len(observer.requests) <= 6
    assert state.last_error == "observe: store: the disk is full"
    await store.close()


async def test_a_flush_raises_what_kept_its_notes_from_being_written() -> None:
    store = FaultyStore(await open_store("sqlite:///:memory:"))
    store.fail("commit_observation", StoreUnavailable("the disk is full"))

    async with running(store, ScriptedObserver(), workers=0) as runtime:
        chat = Memory(runtime).conversation("a")
        await chat.append(*messages(12))
        with pytest.raises(StoreUnavailable, match="the disk is full"):
            await chat.flush()
        (problem,) = await Memory(runtime).check()
        await chat.flush(retry=True)

        assert (await chat.state()).observed_seq > 0
    assert "check the database" in problem.remedy
    await store.close()


@pytest.mark.parametrize("kind", [errors.UndefinedFile, errors.UndefinedObject])
async def test_a_check_gives_the_whole_remedy_of_a_database_that_cannot_be_used(
    kind: type[psycopg.Error],
) -> None:
    refused, store = kind("refused: no"), FaultyStore(await open_store("sqlite:///:memory:"))
    store.fail("check", translate_error(refused, "PostgreSQL database 'app'"))

    async with running(store, ScriptedObserver(), workers=0) as runtime:
        (problem,) = await Memory(runtime).check()

    assert problem.remedy == find_remedy(refused)
    assert problem.what == ("the database cannot be used: PostgreSQL database 'app': refused: no")
    await store.close()


async def test_a_look_that_fails_is_not_repeated_at_once() -> None:
    store = FaultyStore(await open_store("sqlite:///:memory:"))
    store.fail("lease", StoreUnavailable("the disk is full"), times=99)

    async with running(store, ScriptedObserver()) as runtime, asyncio.timeout(60):
        memory = Memory(runtime)
        await memory.conversation("a").append(*messages(12))
        for number in range(50):
            await memory.conversation(f"short-{number}").append(*messages(1))
            await memory.conversation(f"short-{number}").flush()

    assert 1 <= store.calls.count("lease") <= 3
    await store.close()


async def test_a_look_that_failed_is_repeated_after_a_pause() -> None:
    store, observer = FaultyStore(await open_store("sqlite:///:memory:")), ScriptedObserver()
    store.fail("lease", StoreUnavailable("the disk is busy"), times=3)

    policy = POLICY.replace(retry_seconds=0.01)
    async with running(store, observer, policy=policy) as runtime, asyncio.timeout(60):
        await Memory(runtime).conversation("a").append(*messages(12))
        await observer.called.wait()

    await store.close()


async def test_notes_that_the_database_refused_are_made_again_after_the_wait() -> None:
    store = FaultyStore(await open_store("sqlite:///:memory:"))
    store.fail("commit_observation", StoreUnavailable("the disk is busy"))

    policy = POLICY.replace(retry_seconds=0.01)
    async with running(store, ScriptedObserver(), policy=policy) as runtime, asyncio.timeout(60):
        chat = Memory(runtime).conversation("a")
        await chat.append(*messages(1))
        await runtime.engine.progress(chat.ref)
        await chat.append(*messages(12))
        while not (await chat.state()).observed_seq:  # noqa: ASYNC110 - a commit tells nobody
            await asyncio.sleep(0.01)

    await store.close()


@pytest.mark.parametrize("workers", [0, 1])
async def test_a_flush_of_a_read_only_memory_says_why_nothing_is_done_and_tries_nothing(
    tmp_path: Path, workers: int, caplog: pytest.LogCaptureFixture
) -> None:
    url, settings = f"sqlite:///{tmp_path / 'memory.db'}", Settings(workers=workers)
    async with Memory.open(url, policy=POLICY.replace(enabled=False)) as memory:
        await memory.conversation("a").append(*messages(12))

    async with Memory.open(url, policy=POLICY, settings=settings, read_only=True) as memory:
        with pytest.raises(StoreUnavailable, match="read_only=True"):
            await memory.conversation("a").flush(everything=True)

    assert caplog.text == ""


async def test_flushes_at_once_without_workers_pay_for_one_observation() -> None:
    observer = ScriptedObserver()
    settings = Settings(workers=0)
    async with Memory.open(
        "sqlite:///:memory:", policy=POLICY, observer=observer, settings=settings
    ) as memory:
        chat = memory.conversation("a")
        await chat.append(*messages(1))
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(chat.flush(everything=True))

    assert len(observer.requests) == 1


def cancelled() -> asyncio.Future[None]:
    """Something shared that was cancelled elsewhere."""
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.cancel()
    return future


async def test_an_observer_that_waits_for_what_was_cancelled_fails_like_any_other() -> None:
    class Shared(ScriptedObserver):
        async def observe(self, request: ObserveRequest) -> Draft:
            if request.conversation.id == "a":
                await cancelled()
            return await super().observe(request)

    settings = Settings(workers=1)
    async with Memory.open(
        "sqlite:///:memory:", policy=POLICY, observer=Shared(), settings=settings
    ) as memory:
        for name in ("a", "b"):
            chat = memory.conversation(name)
            await chat.append(*messages(12))
            async with asyncio.timeout(60):
                await chat.flush()
        failed, other = [await memory.conversation(name).state() for name in ("a", "b")]

    assert failed.failures == 1
    assert "cancelled" in str(failed.last_error)
    assert other.observed_seq > 0


async def test_an_embedder_that_waits_for_what_was_cancelled_fails_like_any_other() -> None:
    async def shared(_: object) -> list[list[float]]:
        await cancelled()
        return []

    async with Memory.open("sqlite:///:memory:", policy=POLICY, embedder=shared) as memory:
        chat = memory.conversation("a")
        await chat.append(*messages(12))
        async with asyncio.timeout(60):
            await chat.flush()
            await chat.flush()
            hits = await chat.recall("question")

    assert hits


async def test_a_flush_that_is_under_way_when_the_memory_closes_is_told_so() -> None:
    observer = ScriptedObserver(gate=asyncio.Event())
    settings = Settings(shutdown_timeout_seconds=0)
    async with Memory.open(
        "sqlite:///:memory:", policy=POLICY, observer=observer, settings=settings
    ) as memory:
        chat = memory.conversation("a")
        await chat.append(*messages(12))
        flushing = asyncio.ensure_future(chat.flush())
        async with asyncio.timeout(60):
            await observer.called.wait()

    with pytest.raises(Closed, match="open it again"):
        await flushing


async def test_a_wait_for_vectors_when_the_memory_closes_is_told_so() -> None:
    reached = asyncio.Event()

    async def never(texts: object) -> list[list[float]]:
        reached.set()
        await asyncio.Event().wait()
        return []

    settings = Settings(shutdown_timeout_seconds=0)
    async with Memory.open(
        "sqlite:///:memory:", policy=POLICY, embedder=never, settings=settings
    ) as memory:
        chat = memory.conversation("a")
        await chat.append(*messages(12))
        flushing = asyncio.ensure_future(chat.flush())
        async with asyncio.timeout(60):
            await reached.wait()

    with pytest.raises(Closed, match="open it again"):
        await flushing


async def test_closing_does_what_was_signalled_before(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    gate = asyncio.Event()
    observer = ScriptedObserver(gate=gate)
    async with Memory.open(
        url, policy=POLICY, observer=observer, settings=Settings(workers=1)
    ) as memory:
        for number in range(5):
            await memory.conversation(f"chat {number}").append(*messages(12))
        async with asyncio.timeout(60):
            await observer.called.wait()
        asyncio.get_running_loop().call_soon(gate.set)
    async with Memory.open(url, policy=POLICY.replace(enabled=False)) as memory:
        states = await memory.conversations()

    assert [state.observed_seq > 0 for state in states] == [True] * 5
    assert [state.lease_owner for state in states] == [None] * 5


async def test_closing_begins_no_further_steps_of_a_conversation(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    gate = asyncio.Event()
    observer = ScriptedObserver(gate=gate)
    async with Memory.open(url, policy=POLICY, observer=observer) as memory:
        await memory.conversation("a").append(*messages(12))
        async with asyncio.timeout(60):
            await observer.called.wait()
        begun = len(observer.requests)
        asyncio.get_running_loop().call_soon(gate.set)
    async with Memory.open(url, policy=POLICY.replace(enabled=False)) as memory:
        state = await memory.conversation("a").state()

    assert len(observer.requests) == begun
    assert state.observed_seq == observer.requests[-1].messages[-1].seq
    assert state.unobserved_tokens > POLICY.observe_tokens


async def test_what_the_host_raises_while_a_memory_is_open_stays_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        async with Memory.open("sqlite:///:memory:"):
            raise ZeroDivisionError


async def test_another_task_than_the_one_that_opened_a_memory_may_close_it() -> None:
    opened = Memory.open("sqlite:///:memory:")
    memory = await asyncio.ensure_future(opened.__aenter__())
    await memory.conversation("a").append(Message.user("Hello."))

    await asyncio.ensure_future(opened.__aexit__(None, None, None))

    with pytest.raises(Closed):
        await memory.conversation("a").state()


OFTEN = Policy(
    observe_tokens=100,
    activate="when_observed",
    tail_tokens=400,
    tail_keep_tokens=0,
    keep_last=1,
    reflect_tokens=(40, 1_000),
    reflect_min_interval_seconds=2.0,
)


async def until_reflected(chat: Conversation, times: int) -> None:
    """Wait for background work alone: nothing here asks for a look."""
    async with asyncio.timeout(60):
        while [e.kind for e in await chat.log()].count("reflected") < times:  # noqa: ASYNC110 - a log tells nobody
            await asyncio.sleep(0.02)


async def test_a_reflection_that_waits_for_its_interval_is_made_when_that_is_over() -> None:
    async with Memory.open("sqlite:///:memory:", policy=OFTEN) as memory:
        chat = memory.conversation("a")
        await chat.append(*messages(10))
        await chat.flush()
        await chat.append(*messages(20)[20:])
        await chat.flush()

        await until_reflected(chat, 2)


async def test_a_reflection_that_waits_is_made_after_a_restart(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    idle = Settings(workers=0)
    async with Memory.open(url, policy=OFTEN, settings=idle) as memory:
        chat = memory.conversation("a")
        await chat.append(*messages(10))
        await chat.flush()
        await chat.append(*messages(20)[20:])
        await chat.flush()
        assert [entry.kind for entry in await chat.log()].count("reflected") == 1

    async with Memory.open(url, policy=OFTEN) as memory:
        await until_reflected(memory.conversation("a"), 2)


async def test_a_restart_reads_only_the_conversations_that_are_due(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    async with Memory.open(url, policy=POLICY, observer=ScriptedObserver()) as memory:
        for number in range(50):
            chat = memory.conversation(f"quiet {number}")
            await chat.append(*messages(1))
            await chat.flush()
    async with Memory.open(url, policy=POLICY, settings=Settings(workers=0)) as memory:
        await memory.conversation("left").append(*messages(12))
    store, observer = FaultyStore(await open_store(url)), ScriptedObserver()

    async with running(store, observer), asyncio.timeout(60):
        await observer.called.wait()
    await store.close()

    assert {request.conversation.id for request in observer.requests} == {"left"}
    assert store.calls.count("snapshot") <= 1 + 3 * len(observer.requests)
    assert "conversations" not in store.calls


@pytest.mark.parametrize("hours", [-2, 2], ids=["set back", "set forward"])
async def test_a_clock_that_jumps_delays_a_retry_no_longer_than_the_longest_wait(
    tmp_path: Path, hours: int
) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    down = ScriptedObserver([ModelError("server", "down")] * 3)
    clock = FixedClock()
    async with Memory.open(
        url, policy=POLICY, observer=down, clock=clock, settings=Settings(workers=0)
    ) as memory:
        chat = memory.conversation("a")
        await chat.append(*messages(12))
        for _ in range(3):
            state = await chat.flush()
            assert state.next_attempt_at is not None
            clock.advance((state.next_attempt_at - clock.now()).total_seconds())
    clock.advance(3600 * hours)
    observer = ScriptedObserver()

    async with (
        Memory.open(url, policy=POLICY, observer=observer, clock=clock),
        asyncio.timeout(60),
    ):
        await observer.called.wait()


async def test_no_model_is_asked_under_a_lease_that_ran_out(tmp_path: Path) -> None:
    """It does when the process is stopped, or waits long for the lock of a file."""
    store, clock = FaultyStore(await open_store(f"sqlite:///{tmp_path}/memory.db")), FixedClock()
    observer = ScriptedObserver()
    async with running(store, observer, workers=0, clock=clock) as runtime:
        long = [message.replace(tokens=30) for message in messages(12)]
        state = (await store.append(REF, long, user=None)).state
        for other_takes_over in (True, False):
            taken = store.hold("lease", when="after")
            progress = asyncio.create_task(runtime.engine.progress(REF))
            await taken.reached.wait()
            clock.advance(3_600)
            if other_takes_over:
                now = clock.now()
                await store.lease(state, owner="other", now=now, until=now + timedelta(hours=1))
            taken.opened.set()
            await progress
            clock.advance(3_600)
        asked = len(observer.requests)
        await runtime.engine.progress(REF)
    await store.close()

    assert (asked, len(observer.requests)) == (0, 1)


async def test_a_lease_of_a_clock_that_is_ahead_ends_after_its_own_length(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    store = await open_store(url)
    appended = await store.append(REF, [m.replace(tokens=30) for m in messages(12)], user=None)
    ahead = SystemClock().now() + timedelta(hours=1)
    await store.lease(appended.state, owner="dead", now=ahead, until=ahead + timedelta(seconds=10))
    await store.close()

    settings = Settings(lease_seconds=0.2)
    async with (
        Memory.open(url, policy=POLICY, settings=settings) as memory,
        asyncio.timeout(60),
    ):
        state = await memory.conversation("a").flush()

    assert state.observed_seq > 0


async def test_what_one_provider_asked_for_does_not_hold_up_another(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    clock = FixedClock()

    async def busy(request: ModelRequest) -> str:
        raise ModelError("rate_limit", "come back tomorrow", retry_after_seconds=86_400)

    async with Memory.open(url, policy=POLICY, model=busy, clock=clock) as memory:
        chat = memory.conversation("a")
        await chat.append(*messages(12))
        waiting = await chat.flush()
    async with Memory.open(url, policy=POLICY, clock=clock) as memory:
        state = await memory.conversation("a").flush()

    assert waiting.next_attempt_at == clock.now() + timedelta(days=1)
    assert (state.unobserved_tokens <= POLICY.observe_tokens, state.failures) == (True, 0)


async def test_a_flush_can_retry_what_would_wait_for_long() -> None:
    answers = [ModelError("rate_limit", "tomorrow", retry_after_seconds=86_400)]
    observer = ScriptedObserver(answers)
    async with Memory.open(
        "sqlite:///:memory:", policy=POLICY, observer=observer, clock=FixedClock()
    ) as memory:
        chat = memory.conversation("a")
        await chat.append(*messages(12))
        waiting = await chat.flush()
        state = await chat.flush(retry=True)

    assert (waiting.observed_seq, waiting.failures) == (0, 1)
    assert (state.observed_seq > 0, state.failures) == (True, 0)


async def at_rest(chat: Conversation) -> MemoryState:
    """The state when nothing is due, without asking for anything."""
    async with asyncio.timeout(60):
        while (state := await chat.state()).look_at is not None:  # noqa: ASYNC110 - a look tells nobody
            await asyncio.sleep(0.01)
    return state


async def test_an_observation_waits_for_the_end_of_the_turn() -> None:
    observer = ScriptedObserver()
    policy = POLICY.replace(observe_tokens=600, tail_tokens=1_000, keep_last=0)
    call = ToolCallPart(id="c1", name="look", arguments="{}")
    async with Memory.open("sqlite:///:memory:", policy=policy, observer=observer) as memory:
        chat = memory.conversation("a")
        await chat.append(*messages(8), Message.user(f"And what of this? {WORDS}"))
        state = await at_rest(chat)
        await chat.append(Message(role="assistant", content=(call,)))
        await at_rest(chat)
        await chat.append(Message.tool("c1", "found"))
        await at_rest(chat)
        interim = await at_rest(chat)
        waited = len(observer.requests)
        await chat.append(Message.assistant("That is all."))
        await at_rest(chat)

    assert 600 < state.unobserved_tokens <= interim.unobserved_tokens < 750
    assert waited == 0
    assert {request.messages[-1].role for request in observer.requests} == {"assistant"}


async def test_notes_that_stand_in_are_not_made_again_in_the_middle_of_a_turn() -> None:
    clock, observer = FixedClock(), ScriptedObserver([RuntimeError("down")])
    policy = POLICY.replace(observe_tokens=600, tail_tokens=1_000, fallback_after_failures=1)
    async with Memory.open(
        "sqlite:///:memory:", policy=policy, observer=observer, clock=clock
    ) as memory:
        chat = memory.conversation("a")
        await chat.append(*messages(12))
        await chat.flush()
        away = [segment.stands_in for segment in await chat.observations()]
        clock.advance(3_600)
        await chat.append(Message.user("And what of this?"))
        await at_rest(chat)
        waiting = [segment.stands_in for segment in await chat.observations()]
        await chat.append(Message.assistant("That is all."))
        await chat.flush()
        back = [segment.stands_in for segment in await chat.observations()]

    assert away == waiting == [True]
    assert back == [False]


async def test_notes_that_stand_in_are_tried_again_only_after_a_wait() -> None:
    clock, observer = FixedClock(), ScriptedObserver([ModelError("server", "down")] * 2)
    policy = POLICY.replace(observe_tokens=600, tail_tokens=1_000, fallback_after_failures=1)
    async with Memory.open(
        "sqlite:///:memory:", policy=policy, observer=observer, clock=clock
    ) as memory:
        chat = memory.conversation("a")
        await chat.append(*messages(12))
        await chat.flush()
        clock.advance(3_600)
        for _ in range(3):
            state = await chat.flush()
        waiting = len(observer.requests)
        clock.advance(3_600)
        await chat.flush()
        back = [segment.stands_in for segment in await chat.observations()]

    assert waiting == 2
    assert state.observe_failure is not None
    assert state.observe_failure.failures == 2
    assert (len(observer.requests), back) == (3, [False])


async def test_an_end_whose_reflection_fails_records_that_and_leaves_the_notes() -> None:
    reflector = ScriptedReflector([RuntimeError("down")])
    policy = POLICY.replace(reflect_at_end=True)
    async with Memory.open(
        "sqlite:///:memory:", policy=policy, observer=ScriptedObserver(), reflector=reflector
    ) as memory:
        chat = memory.conversation("a")
        await chat.append(*messages(6))
        state = await chat.end()
        notes = await chat.observations()

    assert notes
    assert state.reflect_failure is not None
    assert state.reflect_failure.failures == len(reflector.requests) == 1


@pytest.mark.parametrize("idle_seconds", [1, 100_000])
async def test_the_next_look_is_at_the_end_of_the_shortest_wait(idle_seconds: int) -> None:
    observer = ScriptedObserver([RuntimeError("down")])
    policy = POLICY.replace(facts_idle_seconds=idle_seconds)
    async with Memory.open(
        "sqlite:///:memory:", policy=policy, observer=observer, clock=FixedClock()
    ) as memory:
        chat = memory.conversation("a", user="ana")
        await chat.append(*messages(12))
        state = await chat.flush()

    assert state.last_message_at is not None
    assert state.next_attempt_at is not None
    idle_at = state.last_message_at + timedelta(seconds=idle_seconds)
    assert state.look_at == min(idle_at, state.next_attempt_at)


async def test_a_flush_that_was_given_up_leaves_the_turn_to_its_end() -> None:
    observer = ScriptedObserver()
    store = await open_store("sqlite:///:memory:")
    policy = POLICY.replace(observe_tokens=600, tail_tokens=1_000, keep_last=0)
    async with running(store, observer, policy=policy) as runtime:
        chat = Conversation(runtime, REF, None, None)
        await chat.append(*messages(8), Message.user(f"And what of this? {WORDS}"))
        await at_rest(chat)
        flushing = asyncio.ensure_future(runtime.engine.settle(REF))
        await asyncio.sleep(0)
        flushing.cancel()
        await asyncio.wait([flushing])
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(observer.called.wait(), 0.3)
        await chat.flush()

    assert observer.requests
    await store.close()


async def test_a_long_backlog_is_observed_in_the_middle_of_a_turn() -> None:
    observer = ScriptedObserver()
    policy = POLICY.replace(observe_tokens=200, keep_last=0)
    async with Memory.open("sqlite:///:memory:", policy=policy, observer=observer) as memory:
        chat = memory.conversation("a")
        await chat.append(*messages(6), Message.user(f"And what of this? {WORDS}"))
        await at_rest(chat)

    assert observer.requests
    assert all(request.messages[-1].role == "assistant" for request in observer.requests)


async def test_users_whom_nobody_answers_are_observed_all_the_same() -> None:
    observer = ScriptedObserver()
    policy = POLICY.replace(observe_tokens=200, keep_last=0)
    async with Memory.open("sqlite:///:memory:", policy=policy, observer=observer) as memory:
        chat = memory.conversation("a")
        await chat.append(*(Message.user(f"Note {number}: {WORDS}") for number in range(10)))
        await at_rest(chat)

    assert observer.requests


@pytest.mark.parametrize("workers", [0, 1])
async def test_a_context_that_waits_for_notes_is_built_without_those_that_the_database_refuses(
    workers: int,
) -> None:
    store = FaultyStore(await open_store("sqlite:///:memory:"))
    store.fail("lease", StoreUnavailable("the disk is full"), times=99)
    policy = POLICY.replace(block_after=1.0)

    async with running(store, ScriptedObserver(), workers=workers, policy=policy) as runtime:
        chat = Memory(runtime).conversation("a")
        await chat.append(*messages(12))
        context = await chat.context()

    assert len(context.messages) == 24
    await store.close()


async def test_a_context_that_waits_for_notes_does_not_wait_for_a_reflection() -> None:
    reached, never = asyncio.Event(), asyncio.Event()

    async def reflector(request: ModelRequest) -> str:
        reached.set()
        await never.wait()
        return ""

    policy = OFTEN.replace(block_after=1.0, sync_timeout_seconds=60.0)
    async with Memory.open(
        "sqlite:///:memory:",
        policy=policy,
        observer=ScriptedObserver(),
        reflector=reflector,
        settings=Settings(shutdown_timeout_seconds=0),
    ) as memory:
        chat = memory.conversation("a")
        await chat.append(*messages(12))
        async with asyncio.timeout(60):
            context = await chat.context()
            await reached.wait()

    assert context.stats.session_tokens > 0


@pytest.mark.parametrize(
    ("workers", "remedy"), [(0, "open the memory in a running program"), (2, "nothing to do")]
)
async def test_a_check_of_an_open_memory_leaves_due_work_to_its_workers(
    workers: int, remedy: str
) -> None:
    gate = asyncio.Event()
    observer = ScriptedObserver(gate=gate)
    settings = Settings(workers=workers)
    async with Memory.open(
        "sqlite:///:memory:", policy=POLICY, observer=observer, settings=settings
    ) as memory:
        await memory.conversation("a").append(*messages(12))
        (due,) = await memory.check()
        gate.set()

    assert due.remedy.startswith(remedy)


def test_a_memory_whose_event_loop_ends_while_it_is_open_logs_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def use(opened: asyncio.Event) -> None:
        async with Memory.open("sqlite:///:memory:") as memory:
            await memory.conversation("a", user="ana").append(Message.user("Hi."))
            opened.set()
            await asyncio.Event().wait()

    async def run() -> None:
        opened = asyncio.Event()
        using = asyncio.create_task(use(opened))
        await opened.wait()
        assert not using.done()

    asyncio.run(run())

    assert not [record for record in caplog.records if record.levelname == "ERROR"]
