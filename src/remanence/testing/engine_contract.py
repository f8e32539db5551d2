"""The contract of `Engine`, as a test class to inherit from.

    class TestMyEngine(EngineContract):
        make_engine = MyEngine

        @pytest.fixture
        async def open_again(self, tmp_path):
            async def open_handle():
                return await open_my_store(tmp_path)
            return open_handle

`make_engine` is an `EngineFactory`. Each call of `open_again` opens another handle on the same
database; the suite closes them. The suite needs the extra `testing`, like that for stores.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, ClassVar, TypeAlias

from remanence.background import Background
from remanence.clock import Clock, SystemClock
from remanence.conversation import Conversation
from remanence.errors import Closed, MissingExtra, ModelError
from remanence.policy.policy import Policy
from remanence.protocols import Observer, Reflector
from remanence.runtime import EngineFactory, Runtime
from remanence.settings import Settings
from remanence.testing.clock import FixedClock
from remanence.testing.invariants import check_tiling
from remanence.testing.observers import ScriptedObserver, ScriptedReflector
from remanence.testing.store_contract import OpenStore
from remanence.types import ConversationRef, Message

try:
    import pytest
except ModuleNotFoundError as error:
    raise MissingExtra("testing", error.name or "pytest") from error

POLICY = Policy(
    observe_tokens=100,
    tail_tokens=400,
    tail_keep_tokens=50,
    keep_last=1,
    reflect_tokens=(10_000, 20_000),
)
WORDS = "the quick brown fox jumps over a lazy dog near the old river bank at dawn "
WAIT_SECONDS = 60.0
POLL_SECONDS = 0.01

OpenRuntime: TypeAlias = Callable[..., Any]  # an async context manager of a `Runtime`


def turns(number: int) -> list[Message]:
    """Return *number* turns; enough of them make an observation due."""
    return [
        message
        for turn in range(number)
        for message in (
            Message.user(f"Question {turn}: {WORDS}"),
            Message.assistant(f"Answer {turn}: {WORDS}"),
        )
    ]


def chat_of(runtime: Runtime, name: str = "a") -> Conversation:
    """Return the handle of a conversation."""
    return Conversation(runtime, ConversationRef("default", name), None)


async def until(condition: Callable[[], bool]) -> None:
    """Wait until the condition holds."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not condition():  # noqa: ASYNC110 - work of a background task gives no event
            await asyncio.sleep(POLL_SECONDS)


class EngineContract:
    """The whole contract of `remanence.protocols.Engine`."""

    make_engine: ClassVar[EngineFactory]

    @pytest.fixture
    def open_runtime(self, open_again: OpenStore) -> OpenRuntime:
        """Open a runtime with an engine of this class, on the test's database."""
        engine = type(self).make_engine

        @asynccontextmanager
        async def opened_runtime(
            observer: Observer | None = None,
            reflector: Reflector | None = None,
            *,
            workers: int = 2,
            policy: Policy = POLICY,
            clock: Clock | None = None,
            started: bool = True,
        ) -> AsyncIterator[Runtime]:
            store = await open_again()
            async with Background() as background:
                runtime = Runtime(
                    store,
                    settings=Settings(workers=workers),
                    policy=policy,
                    clock=clock or SystemClock(),
                    background=background,
                    observer=observer or ScriptedObserver(),
                    reflector=reflector or ScriptedReflector(),
                    engine=engine,
                )
                if started:
                    runtime.start()
                yield runtime
                await runtime.stop()
            await store.close()

        return opened_runtime

    async def test_a_signal_gets_done_what_is_due(self, open_runtime: OpenRuntime) -> None:
        observer = ScriptedObserver()
        async with open_runtime(observer) as runtime:
            await chat_of(runtime).append(*turns(12))

            await until(lambda: bool(observer.requests))

    async def test_settling_returns_when_nothing_is_due(self, open_runtime: OpenRuntime) -> None:
        async with open_runtime() as runtime:
            chat = chat_of(runtime)
            await chat.append(*turns(12))
            await runtime.engine.settle(chat.ref)

            state = await chat.state()
            assert 0 < state.unobserved_tokens <= POLICY.observe_tokens
            check_tiling(state, await chat.observations())

    async def test_settling_everything_leaves_nothing_without_notes(
        self, open_runtime: OpenRuntime
    ) -> None:
        async with open_runtime() as runtime:
            chat = chat_of(runtime)
            await chat.append(*turns(12))
            await runtime.engine.settle(chat.ref, everything=True)

            assert (await chat.state()).unobserved_tokens == 0

    async def test_doubled_signals_and_calls_do_each_step_once(
        self, open_runtime: OpenRuntime
    ) -> None:
        observer = ScriptedObserver()
        async with open_runtime(observer) as runtime:
            chat = chat_of(runtime)
            await chat.append(*turns(12))
            async with asyncio.TaskGroup() as group:
                for _ in range(5):
                    runtime.engine.signal(chat.ref)
                    group.create_task(runtime.engine.settle(chat.ref, everything=True))

            starts = [request.messages[0].seq for request in observer.requests]
            assert starts == sorted(set(starts))
            check_tiling(await chat.state(), await chat.observations())

    async def test_two_engines_on_one_database_do_each_step_once(
        self, open_runtime: OpenRuntime
    ) -> None:
        first, second = ScriptedObserver(), ScriptedObserver()
        async with open_runtime(first) as ours, open_runtime(second) as theirs:
            chat = chat_of(ours)
            await chat.append(*turns(12))
            theirs.engine.signal(chat.ref)
            await ours.engine.settle(chat.ref, everything=True)
            await theirs.engine.settle(chat.ref, everything=True)

            requests = (*first.requests, *second.requests)
            starts = sorted(request.messages[0].seq for request in requests)
            assert starts == sorted(set(starts))
            check_tiling(await chat.state(), await chat.observations())

    async def test_an_engine_that_starts_does_what_another_left_undone(
        self, open_runtime: OpenRuntime
    ) -> None:
        observer = ScriptedObserver()
        async with open_runtime(workers=0) as left:
            await chat_of(left).append(*turns(12))

        async with open_runtime(observer):
            await until(lambda: bool(observer.requests))

    async def test_settling_needs_no_start_and_no_workers(self, open_runtime: OpenRuntime) -> None:
        observer = ScriptedObserver()
        async with open_runtime(observer, workers=0, started=False) as runtime:
            chat = chat_of(runtime)
            await chat.append(*turns(12))
            assert observer.requests == []
            await runtime.engine.settle(chat.ref)

            assert (await chat.state()).observed_seq > 0

    @pytest.mark.parametrize("workers", [0, 2])
    async def test_settling_waits_for_the_lease_of_another_owner(
        self, open_runtime: OpenRuntime, workers: int
    ) -> None:
        async with open_runtime(workers=workers) as runtime:
            chat = chat_of(runtime)
            await chat.append(Message.user(WORDS))
            now = SystemClock().now()
            await runtime.store.lease(
                await chat.state(), owner="killed", now=now, until=now + timedelta(seconds=1)
            )
            await runtime.engine.settle(chat.ref, everything=True)

            assert (await chat.state()).unobserved_tokens == 0

    @pytest.mark.parametrize("workers", [0, 2])
    async def test_a_cancelled_call_leaves_everything_to_the_one_that_asked_for_it(
        self, open_runtime: OpenRuntime, workers: int
    ) -> None:
        gate = asyncio.Event()
        observer = ScriptedObserver(gate=gate)
        async with open_runtime(observer, workers=workers) as runtime:
            chat = chat_of(runtime)
            await chat.append(*turns(12))
            due = asyncio.create_task(runtime.engine.settle(chat.ref))
            await observer.called.wait()
            everything = asyncio.create_task(runtime.engine.settle(chat.ref, everything=True))
            await asyncio.sleep(0)  # it waits for the other call, or for the workers
            due.cancel()
            await asyncio.wait({due})
            gate.set()
            await everything

            assert (await chat.state()).unobserved_tokens == 0

    async def test_progress_returns_after_a_step(self, open_runtime: OpenRuntime) -> None:
        async with open_runtime(workers=0) as runtime:
            chat = chat_of(runtime)
            await chat.append(*turns(12))
            await runtime.engine.progress(chat.ref)

            assert len(await chat.observations()) == 1

    async def test_settling_returns_after_a_failure_and_tries_again_when_told_to(
        self, open_runtime: OpenRuntime
    ) -> None:
        failing = ScriptedObserver([ModelError("overloaded", "busy")])
        async with open_runtime(failing, clock=FixedClock()) as runtime:
            chat = chat_of(runtime)
            await chat.append(*turns(12))
            await runtime.engine.settle(chat.ref)
            failed = await chat.state()
            await runtime.engine.settle(chat.ref)
            assert (failed.failures, failed.observed_seq, len(failing.requests)) == (1, 0, 1)

            await runtime.engine.settle(chat.ref, retry=True)

            state = await chat.state()
            assert (state.failures, state.observed_seq > 0) == (0, True)

    async def test_a_conversation_that_fails_does_not_stop_another(
        self, open_runtime: OpenRuntime
    ) -> None:
        failing = ScriptedObserver([RuntimeError("broken")])
        async with open_runtime(failing, workers=1, clock=FixedClock()) as runtime:
            broken, whole = chat_of(runtime), chat_of(runtime, "b")
            await broken.append(*turns(12))
            await runtime.engine.settle(broken.ref)
            await whole.append(*turns(12))
            await runtime.engine.settle(whole.ref)

            assert (await broken.state()).observed_seq == 0
            assert (await whole.state()).observed_seq > 0

    async def test_finishing_condenses_the_notes_where_the_policy_says_so(
        self, open_runtime: OpenRuntime
    ) -> None:
        async with open_runtime(policy=POLICY.replace(reflect_at_end=True)) as runtime:
            chat = chat_of(runtime)
            await chat.append(*turns(12))
            await runtime.engine.finish(chat.ref)

            state = await chat.state()
            assert state.observed_seq == state.reflected_seq == state.last_seq
            assert await chat.observations() == ()

    async def test_a_disabled_policy_has_nothing_done(self, open_runtime: OpenRuntime) -> None:
        observer = ScriptedObserver()
        async with open_runtime(observer, policy=POLICY.replace(enabled=False)) as runtime:
            chat = chat_of(runtime)
            await chat.append(*turns(12))
            runtime.engine.signal(chat.ref)
            await runtime.engine.settle(chat.ref, everything=True)

        assert observer.requests == []

    async def test_closing_ends_the_calls_that_wait_and_refuses_new_ones(
        self, open_runtime: OpenRuntime
    ) -> None:
        observer = ScriptedObserver(gate=asyncio.Event())
        async with open_runtime(observer) as runtime:
            chat = chat_of(runtime)
            await chat.append(*turns(12))
            async with asyncio.timeout(WAIT_SECONDS), asyncio.TaskGroup() as group:
                waiting = group.create_task(_error_of(runtime, chat.ref))
                await observer.called.wait()
                await runtime.engine.close(timeout_seconds=0)

            runtime.engine.signal(chat.ref)
            assert isinstance(waiting.result(), Closed)
            assert isinstance(await _error_of(runtime, chat.ref), Closed)


async def _error_of(runtime: Runtime, ref: ConversationRef) -> Exception | None:
    """Settle a conversation, and return the error, if any."""
    try:
        await runtime.engine.settle(ref)
    except Closed as error:
        return error
    return None
