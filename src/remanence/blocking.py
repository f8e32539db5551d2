"""The same memory without `await`, for programs that have no event loop.

```python
from remanence.blocking import Memory

with Memory.open("sqlite:///memory.db") as memory:
    chat = memory.conversation("chat-7")
    chat.append(Message.user("Hello!"))
```
"""

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager
from datetime import tzinfo
from typing import TYPE_CHECKING, Any, Concatenate, Generic, NoReturn, ParamSpec, TypeVar

from remanence import (
    api_keys as awaited_keys,
    conversation as awaited_conversation,
    memory as awaited,
)
from remanence.errors import Closed, InvalidArgument, NotOpen
from remanence.facts import api as awaited_facts
from remanence.policy.policy import Policy

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A")

CLOSED = "the memory is closed: open it again with Memory.open(...)"


class Portal:
    """One thread with an event loop, in which one resource is open. Safe to call from any thread.

    The resource is opened and closed in the same task, and the thread has ended when `close`
    returns.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: Future[None] = Future()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="remanence-portal")
        self._ended: Future[None] | None = None

    def open(self, resource: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        """Start the thread and open *resource* in it; raise its errors here."""
        opened: Future[T] = Future()
        self._ended = self._thread.submit(lambda: asyncio.run(self._serve(resource, opened)))
        try:
            return opened.result()
        except BaseException:
            self.close()
            raise

    def call(self, work: Coroutine[Any, Any, T]) -> T:  # the yield and send types are asyncio's
        """Run *work* in the loop and wait for it; an interrupt cancels it.

        Raises:
            Closed: the portal is closed, or was closed before *work* ended.
        """
        loop = self._loop
        if loop is None or self._closing.done():
            work.close()
            raise Closed(CLOSED)
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except CancelledError as error:
            raise Closed(CLOSED) from error
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Close the resource, wait until the thread has ended, and raise any error of closing."""
        if not self._closing.done():
            self._closing.set_result(None)
        self._thread.shutdown()
        if self._ended is not None:
            self._ended.result()

    async def _serve(
        self, resource: Callable[[], AbstractAsyncContextManager[T]], opened: Future[T]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        async with AsyncExitStack() as stack:
            try:
                value = await stack.enter_async_context(resource())
            except BaseException as error:  # noqa: BLE001 - raised by whoever opens
                opened.set_exception(error)
                return
            opened.set_result(value)
            await asyncio.wrap_future(self._closing)


class _Handle(Generic[A]):
    """An object of the awaited API, and the portal that runs its methods."""

    def __init__(self, awaited: A, portal: Portal) -> None:
        self._awaited = awaited
        self._portal = portal


def _blocking(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, T]],  # as asyncio's
) -> Callable[Concatenate[_Handle[A], P], T]:
    """Return a method with the parameters and the help of *method* that waits for its result."""

    @functools.wraps(method)
    def call(self: _Handle[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._portal.call(method(self._awaited, *args, **kwargs))

    return call


class Opening:
    """A memory that is about to be opened: enter it with `with`."""

    def __init__(self, start: "Callable[[], Memory]") -> None:
        self._start = start
        self._memory: Memory | None = None

    def __enter__(self) -> "Memory":
        self._memory = self._start()
        return self._memory

    def __exit__(self, *_: object) -> None:
        if self._memory is not None:
            self._memory.close()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise NotOpen(
                f"Memory.open(...) has no {name!r} before it is open: write with "
                "Memory.open(...) as memory"
            )


def _opening(
    method: Callable[P, AbstractAsyncContextManager[awaited.Memory]],
) -> Callable[Concatenate[type["Memory"], P], Opening]:
    """Return a class method with the parameters and the help of `remanence.Memory.open`."""

    # With its first parameter, which binding takes away again.
    @functools.wraps(inspect.getattr_static(awaited.Memory, "open").__func__)
    def open_memory(cls: type["Memory"], /, *args: P.args, **kwargs: P.kwargs) -> Opening:
        def start() -> Memory:
            portal = Portal()
            return cls(portal.open(lambda: method(*args, **kwargs)), portal)

        return Opening(start)

    return open_memory


class APIKeys(_Handle[awaited_keys.APIKeys]):
    """As `remanence.api_keys.APIKeys`, without `await`."""

    create = _blocking(awaited_keys.APIKeys.create)
    verify = _blocking(awaited_keys.APIKeys.verify)
    list = _blocking(awaited_keys.APIKeys.list)
    revoke = _blocking(awaited_keys.APIKeys.revoke)


class Facts(_Handle[awaited_facts.Facts]):
    """As `remanence.facts.api.Facts`, without `await`."""

    search = _blocking(awaited_facts.Facts.search)
    save = _blocking(awaited_facts.Facts.save)
    forget = _blocking(awaited_facts.Facts.forget)
    list = _blocking(awaited_facts.Facts.list)
    get = _blocking(awaited_facts.Facts.get)


class Conversation(_Handle[awaited_conversation.Conversation]):
    """As `remanence.Conversation`, without `await`."""

    def __init__(self, conversation: awaited_conversation.Conversation, portal: Portal) -> None:
        """Use `memory.conversation`."""
        super().__init__(conversation, portal)
        self.ref = conversation.ref
        self.user = conversation.user
        self.clock = conversation.clock

    @property
    def id(self) -> str:
        """The conversation's id."""
        return self.ref.id

    @property
    def policy(self) -> Policy:
        """The policy of its memory."""
        return self._awaited.policy

    @property
    def facts(self) -> Facts:
        """The facts of all users of this memory."""
        return Facts(self._awaited.facts, self._portal)

    @contextmanager
    def turn(self) -> Iterator[str]:
        """As `remanence.Conversation.turn`, with `with`."""
        turn = self._awaited.turn()
        name = self._portal.call(turn.__aenter__())
        try:
            yield name
        finally:
            self._portal.call(turn.__aexit__(None, None, None))

    owner = _blocking(awaited_conversation.Conversation.owner)
    append = _blocking(awaited_conversation.Conversation.append)
    context = _blocking(awaited_conversation.Conversation.context)
    messages = _blocking(awaited_conversation.Conversation.messages)
    observations = _blocking(awaited_conversation.Conversation.observations)
    reflections = _blocking(awaited_conversation.Conversation.reflections)
    state = _blocking(awaited_conversation.Conversation.state)
    snapshot = _blocking(awaited_conversation.Conversation.snapshot)
    context_at = _blocking(awaited_conversation.Conversation.context_at)
    diagnostics = _blocking(awaited_conversation.Conversation.diagnostics)
    log = _blocking(awaited_conversation.Conversation.log)
    recall = _blocking(awaited_conversation.Conversation.recall)
    source = _blocking(awaited_conversation.Conversation.source)
    flush = _blocking(awaited_conversation.Conversation.flush)
    end = _blocking(awaited_conversation.Conversation.end)
    export_blocks = _blocking(awaited_conversation.Conversation.export_blocks)
    import_blocks = _blocking(awaited_conversation.Conversation.import_blocks)
    record_call = _blocking(awaited_conversation.Conversation.record_call)
    usage = _blocking(awaited_conversation.Conversation.usage)
    budget = _blocking(awaited_conversation.Conversation.budget)
    forget = _blocking(awaited_conversation.Conversation.forget)
    delete = _blocking(awaited_conversation.Conversation.delete)


class Memory(_Handle[awaited.Memory]):
    """As `remanence.Memory`; open it with `with Memory.open(url)`. Safe to use from any thread."""

    def __init__(self, memory: awaited.Memory, portal: Portal | None = None) -> None:
        """Use `Memory.open`, which closes what it opens."""
        if not isinstance(memory, awaited.Memory) or portal is None:
            raise InvalidArgument(
                f"Memory({memory!r:.80}) opens nothing: write with Memory.open({memory!r:.80}) "
                "as memory"
            )
        super().__init__(memory, portal)
        self.policy = memory.policy
        self.clock = memory.clock
        self.facts = Facts(memory.facts, portal)
        self.keys = APIKeys(memory.keys, portal)

    open = classmethod(_opening(awaited.Memory.open))

    def close(self) -> None:
        """Finish work in progress within `shutdown_timeout_seconds`, and close the tape."""
        self._portal.close()

    def conversation(
        self,
        id: str,  # noqa: A002 - pinned
        *,
        user: str | None = None,
        tenant: str = "default",
        timezone: tzinfo | None = None,
    ) -> Conversation:
        """Return the conversation *id* of a tenant, as `remanence.Memory.conversation` does."""
        awaited = self._awaited.conversation(id, user=user, tenant=tenant, timezone=timezone)
        return Conversation(awaited, self._portal)

    @property
    def calibration(self) -> Mapping[str, float]:
        """Factors from our token counts to those that providers report, by model."""
        return self._awaited.calibration

    conversations = _blocking(awaited.Memory.conversations)
    usage = _blocking(awaited.Memory.usage)
    check = _blocking(awaited.Memory.check)
    unready = _blocking(awaited.Memory.unready)

    def export_user(self, user: str, *, tenant: str = "default") -> Iterator[str]:
        """As `remanence.Memory.export_user`, without `async`."""
        lines = self._awaited.export_user(user, tenant=tenant)
        while (line := self._portal.call(_next(lines))) is not None:
            yield line

    backup = _blocking(awaited.Memory.backup)
    forget_user = _blocking(awaited.Memory.forget_user)
    note = _blocking(awaited.Memory.note)
    consolidate = _blocking(awaited.Memory.consolidate)


async def _next(lines: AsyncIterator[str]) -> str | None:
    return await anext(lines, None)
