import asyncio
import inspect
import itertools
import pickle
import pydoc
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from types import FrameType
from typing import Any, get_origin

import pytest

from remanence import (
    api_keys as awaited_keys,
    blocking,
    conversation as awaited_conversation,
    memory as awaited,
    portal as portal_module,
)
from remanence.blocking import Memory
from remanence.engine.hooks import Hooks
from remanence.errors import Closed, Deadlock, InvalidArgument, InvalidMessage, StoreUnavailable
from remanence.facts import api as awaited_facts
from remanence.policy.policy import Policy
from remanence.portal import Portal
from remanence.protocols import ObserveRequest
from remanence.settings import Settings
from remanence.types import Draft, Event, Message

IN_MEMORY = "sqlite:///:memory:"
FLIGHT = (
    Message.user("My flight LH 454 to San Francisco leaves on 2026-05-08 at 13:25, seat 34K."),
    Message.assistant("Noted: LH 454 on 8 May 2026 at 13:25, seat 34K."),
    Message.user("Please book the airport train RE 5 for 10:40, and remind me of the passport."),
    Message.assistant("RE 5 at 10:40 is booked, reference K7Q-2201. Passport: reminder set."),
)


class NeverAnswering:
    """An observer that waits for ever, and tells when it was asked."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    async def observe(self, request: ObserveRequest) -> Draft:
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError("an event that nobody sets was set")


def interrupt_when_set(event: threading.Event) -> None:
    assert event.wait(60)
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGINT)


def public_names(of: type) -> set[str]:
    return {name for name in dir(of) if not name.startswith("_")}


def parameters(of: type, name: str) -> list[tuple[str, object, object]]:
    signature = inspect.signature(getattr(of, name))
    return [(p.name, p.kind, p.default) for p in signature.parameters.values()]


def methods(of: type) -> list[str]:
    return sorted(name for name in public_names(of) if callable(getattr(of, name)))


PAIRS = [
    (awaited.Memory, blocking.Memory),
    (awaited_conversation.Conversation, blocking.Conversation),
    (awaited_facts.Facts, blocking.Facts),
    (awaited_keys.APIKeys, blocking.APIKeys),
]


@pytest.mark.parametrize(("awaited_class", "blocking_class"), PAIRS)
def test_both_apis_have_the_same_public_names(awaited_class: type, blocking_class: type) -> None:
    assert public_names(blocking_class) == public_names(awaited_class)


@pytest.mark.parametrize(("awaited_class", "blocking_class"), PAIRS)
def test_each_method_takes_the_same_parameters_in_both_apis(
    awaited_class: type, blocking_class: type
) -> None:
    different = [
        name
        for name in methods(awaited_class)
        if parameters(awaited_class, name) != parameters(blocking_class, name)
    ]

    assert different == []


@pytest.mark.parametrize(("awaited_class", "blocking_class"), PAIRS)
def test_each_method_has_the_types_of_the_awaited_one_and_a_help_of_its_own(
    awaited_class: type, blocking_class: type
) -> None:
    waited_for = [
        name
        for name in methods(awaited_class)
        if inspect.iscoroutinefunction(getattr(awaited_class, name))
    ]
    ours, theirs = vars(blocking_class), vars(awaited_class)

    assert [name for name in methods(blocking_class) if not inspect.getdoc(ours[name])] == []
    for name in set(waited_for) - {"close"}:
        assert inspect.get_annotations(ours[name]) == inspect.get_annotations(theirs[name])
        assert inspect.getdoc(ours[name]) == inspect.getdoc(theirs[name])


@pytest.mark.parametrize("blocking_class", [blocking.Memory, blocking.Conversation, blocking.Facts])
def test_no_method_of_the_blocking_api_has_to_be_awaited(blocking_class: type) -> None:
    assert not any(
        inspect.iscoroutinefunction(getattr(blocking_class, name))
        for name in methods(blocking_class)
    )


def test_a_program_without_an_event_loop_keeps_and_assembles_a_conversation() -> None:
    with Memory.open(IN_MEMORY, policy=Policy.default(note_ratio=1.0)) as memory:
        chat = memory.conversation("chat-7", user="ana")
        chat.append(*FLIGHT)

        context = chat.context(system="You are a helpful assistant.")
        state = chat.flush(everything=True)

        assert [m.text for m in context.messages] == [m.text for m in FLIGHT]
        assert state.observed_seq == len(FLIGHT)
        assert [chat.source(s.id)[0].seq for s in chat.observations()] == [1]
        assert [state.ref.id for state in memory.conversations()] == ["chat-7"]
        assert chat.delete()


def test_a_memory_is_open_without_with_until_it_is_closed() -> None:
    memory = Memory.open(IN_MEMORY)

    memory.conversation("chat").append(Message.user("Hello."))
    memory.close()
    memory.close()

    with pytest.raises(Closed, match="open it again"):
        memory.conversations()
    assert portal_threads() == []


def test_a_block_that_closes_its_memory_may_end() -> None:
    with Memory.open(IN_MEMORY) as memory:
        memory.close()

    assert portal_threads() == []


def test_the_help_of_open_asks_for_no_await() -> None:
    shown = pydoc.plain(pydoc.render_doc(Memory.open))

    assert "-> 'Memory'" in shown
    assert "memory.close()" in shown
    assert "async with" not in shown


@pytest.mark.parametrize("iterates", [Memory.events, Memory.export_user])
def test_the_signature_of_an_iteration_says_that_nothing_is_awaited(
    iterates: Callable[..., object],
) -> None:
    returned = inspect.signature(iterates).return_annotation

    assert get_origin(returned) is Iterator


def test_events_reach_a_plain_function_in_a_thread_until_the_memory_is_closed() -> None:
    received: list[Event] = []
    has_received, errors = threading.Event(), list[str]()

    def receive(event: Event) -> None:
        assert memory.conversation("trip").messages()  # nothing waits for this thread
        received.append(event)
        has_received.set()

    def deliver() -> None:
        try:
            memory.deliver_events("queue", receive)
        except Closed as error:
            errors.append(str(error))

    policy = Policy(observe_tokens=20, tail_tokens=40, tail_keep_tokens=10, keep_last=0)
    with Memory.open(IN_MEMORY, policy=policy) as memory:
        thread = threading.Thread(target=deliver)
        thread.start()
        memory.conversation("trip").append(*FLIGHT)
        memory.conversation("trip").flush(everything=True)
        assert has_received.wait(10)
    thread.join()

    assert received[0].type == "observed"
    assert len(errors) == 1


def test_the_repr_of_a_handle_names_it_and_that_nothing_is_awaited() -> None:
    with Memory.open(IN_MEMORY) as memory:
        chat = memory.conversation("chat-7", user="ana")

        assert repr(memory) == "<blocking Memory at 'sqlite:///:memory:'>"
        assert repr(chat) == "<blocking Conversation 'chat-7' of user 'ana'>"


def test_errors_come_through_as_they_are() -> None:
    with Memory.open(IN_MEMORY) as memory, pytest.raises(InvalidMessage, match="empty"):
        memory.conversation("chat").append(Message.user(""))


def test_a_database_that_cannot_be_opened_raises_and_leaves_no_thread() -> None:
    with pytest.raises(StoreUnavailable, match="unknown scheme"):
        Memory.open("other://nowhere")

    assert portal_threads() == []


def test_closing_joins_the_thread_also_when_the_block_fails() -> None:
    def failing_block() -> None:
        with Memory.open(IN_MEMORY):
            assert len(portal_threads()) == 1
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        failing_block()

    assert portal_threads() == []


def test_a_program_that_leaves_a_memory_open_ends_and_its_messages_stay(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    program = (
        "from remanence import Message\n"
        "from remanence.blocking import Memory\n"
        f"memory = Memory.open({url!r})\n"
        "memory.conversation('a').append(Message.user('Hello.'))\n"
    )

    command = [sys.executable, "-c", program]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert (run.returncode, run.stderr) == (0, "")
    with Memory.open(url) as memory:
        assert [message.text for message in memory.conversation("a").messages()] == ["Hello."]


@pytest.fixture
def heeding_interrupts() -> Iterator[None]:
    """Interrupts raise also where the tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_ends_a_call_that_waits(heeding_interrupts: None) -> None:
    observer = NeverAnswering()
    settings = Settings(url=IN_MEMORY, shutdown_timeout_seconds=0)
    interrupter = threading.Thread(target=interrupt_when_set, args=(observer.asked,))

    with Memory.open(settings=settings, observer=observer) as memory:
        chat = memory.conversation("chat")
        chat.append(*FLIGHT)
        interrupter.start()
        with pytest.raises(KeyboardInterrupt):
            chat.flush(everything=True)

    interrupter.join()
    assert portal_threads() == []


def test_a_closed_memory_says_so() -> None:
    with Memory.open(IN_MEMORY) as memory:
        chat = memory.conversation("chat")

    with pytest.raises(Closed):
        chat.state()
    with pytest.raises(Closed, match="open it again"):
        memory.__enter__()


def test_a_memory_that_is_sent_to_another_process_says_to_open_it_there() -> None:
    with Memory.open(IN_MEMORY) as memory:
        chat = memory.conversation("chat")
        for value in (memory, chat):
            with pytest.raises(InvalidArgument, match="open the memory in the other process"):
                pickle.dumps(value)


@pytest.fixture
def busy_threads() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_calls_end_while_another_thread_closes(busy_threads: None) -> None:
    @asynccontextmanager
    async def resource() -> AsyncIterator[None]:
        yield

    def call_until_closed(portal: Portal, errors: list[BaseException]) -> None:
        try:
            while True:
                portal.call(asyncio.sleep(0))
        except BaseException as error:  # noqa: BLE001 - looked at below
            errors.append(error)

    errors: list[BaseException] = []
    for _ in range(200):
        portal = Portal()
        portal.open(resource)
        threads = [
            threading.Thread(target=call_until_closed, args=(portal, errors), daemon=True)
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        portal.close()
        for thread in threads:
            thread.join(60)

    assert [error for error in errors if not isinstance(error, Closed)] == []
    assert len(errors) == 800


def test_what_closing_raises_is_raised_by_the_one_who_closes() -> None:
    @asynccontextmanager
    async def failing() -> AsyncIterator[str]:
        yield "open"
        raise StoreUnavailable("the disk is full")

    portal = Portal()
    assert portal.open(failing) == "open"

    with pytest.raises(StoreUnavailable, match="disk is full"):
        portal.close()


def test_closing_ends_the_turn_that_another_thread_holds(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url, holds, is_closed = f"sqlite:///{tmp_path}/turn.db", threading.Event(), threading.Event()

    def hold() -> None:
        with chat.turn():
            holds.set()
            is_closed.wait(10)

    with Memory.open(url) as memory:
        chat = memory.conversation("chat")
        thread = threading.Thread(target=hold)
        thread.start()
        assert holds.wait(10)
    is_closed.set()
    thread.join()

    assert caplog.records == []
    with (
        Memory.open(settings=Settings(url=url, turn_wait_seconds=1)) as memory,
        memory.conversation("chat").turn(),
    ):
        pass


def test_a_block_with_a_turn_whose_memory_was_closed_ends_as_the_program_says() -> None:
    def end_the_program() -> None:
        with Memory.open(IN_MEMORY) as memory, memory.conversation("chat").turn():
            memory.close()
            raise SystemExit(3)

    with Memory.open(IN_MEMORY) as memory, memory.conversation("chat").turn():
        memory.close()
    with pytest.raises(SystemExit):
        end_the_program()


class Hall:
    """A resource of a portal that counts whoever is in it."""

    def __init__(self) -> None:
        self.inside = 0
        self.was_entered = threading.Event()

    @asynccontextmanager
    async def enter(self) -> AsyncIterator[None]:
        self.inside += 1
        self.was_entered.set()
        try:
            yield
        finally:
            await asyncio.sleep(0)
            self.inside -= 1

    @asynccontextmanager
    async def enter_in_any_case(self, is_entering: threading.Event) -> AsyncIterator[None]:
        is_entering.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        async with self.enter():
            yield


@pytest.fixture
def portal() -> Iterator[Portal]:
    @asynccontextmanager
    async def resource() -> AsyncIterator[None]:
        yield

    portal = Portal()
    portal.open(resource)
    with closing(portal):
        yield portal


def wait_until_empty(hall: Hall, portal: Portal) -> None:
    deadline = time.monotonic() + 5
    while hall.inside and time.monotonic() < deadline:
        portal.call(asyncio.sleep(0))


def test_a_turn_that_begins_in_spite_of_an_interrupt_is_ended(
    portal: Portal, heeding_interrupts: None
) -> None:
    hall, is_entering = Hall(), threading.Event()
    interrupter = threading.Thread(target=interrupt_when_set, args=(is_entering,))
    interrupter.start()

    with pytest.raises(KeyboardInterrupt), portal.hold(hall.enter_in_any_case(is_entering)):
        pass

    interrupter.join()
    assert hall.was_entered.wait(5)
    wait_until_empty(hall, portal)
    assert hall.inside == 0


def interrupt_after(events: int) -> Any:  # the type of trace functions is recursive
    """Return a trace function that interrupts a call of the portal at its start or end, as signals do.

    A signal that arrives in the block of `hold` itself is handled after one of these.
    """
    files = {portal_module.__file__, asyncio.tasks.__file__, asyncio.base_events.__file__}
    left = itertools.count(events, -1)

    def trace(frame: FrameType, event: str, _: object) -> Any:  # as above
        frame.f_trace_lines = False
        is_block = frame.f_code.co_name == Portal.hold.__name__
        is_place = event in ("call", "return") and not is_block
        if is_place and frame.f_code.co_filename in files and next(left) == 0:
            raise KeyboardInterrupt
        return trace

    return trace


def was_interrupted(hall: Hall, portal: Portal, *, events: int) -> bool:
    before = sys.gettrace()
    sys.settrace(interrupt_after(events))
    try:
        with portal.hold(hall.enter()):
            return False
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_no_place_of_an_interrupt_leaves_a_turn_behind(portal: Portal) -> None:
    interrupts, hall = 0, Hall()
    while was_interrupted(hall, portal, events=interrupts):
        interrupts += 1
        wait_until_empty(hall, portal)
        assert hall.inside == 0, f"after {interrupts} events"

    assert interrupts > 10


@pytest.mark.timeout(30)
def test_closing_does_not_wait_for_a_background_task_that_goes_on_after_a_timeout() -> None:
    async def survive() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    @asynccontextmanager
    async def resource() -> AsyncIterator[str]:
        task = asyncio.create_task(survive())
        await asyncio.sleep(0)
        task.cancel()
        yield "open"
        task.cancel()
        await asyncio.wait({task})

    portal = Portal()
    assert portal.open(resource) == "open"
    portal.close()

    assert portal_threads() == []


def test_an_iteration_that_is_left_has_been_closed_when_the_program_goes_on() -> None:
    closed: list[str] = []

    async def count() -> AsyncGenerator[int, None]:
        try:
            for number in range(9):
                yield number
        finally:
            for _ in range(100):
                await asyncio.sleep(0)
            closed.append("items")

    @asynccontextmanager
    async def resource() -> AsyncIterator[None]:
        yield

    portal = Portal()
    portal.open(resource)
    with closing(portal):
        for number in portal.iterate(count()):
            if number == 1:
                break
        was_closed = list(closed)

    assert was_closed == ["items"]


def test_several_threads_may_use_one_memory() -> None:
    with Memory.open(IN_MEMORY) as memory:
        chat = memory.conversation("shared")
        threads = [
            threading.Thread(target=chat.append, args=(Message.user(f"message {number}"),))
            for number in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert chat.state().last_seq == 8


def portal_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("remanence-portal")]


def test_a_hook_may_call_its_memory_only_in_another_thread() -> None:
    seen: list[int] = []
    refused: list[str] = []

    async def look(request: ObserveRequest) -> ObserveRequest:
        for call in (chat.messages, memory.close):
            try:
                call()
            except Deadlock as error:
                refused.append(str(error))
        seen.append(len(await asyncio.to_thread(chat.messages)))
        return request

    policy = Policy(observe_tokens=20, tail_tokens=40, tail_keep_tokens=10, keep_last=0)
    with Memory.open(IN_MEMORY, policy=policy, hooks=Hooks(before_observe=look)) as memory:
        chat = memory.conversation("trip")
        chat.append(*FLIGHT)
        chat.flush()

    assert seen[0] == len(FLIGHT)
    assert "asyncio.to_thread" in refused[0]
    assert len(refused) == 2 * len(seen)
