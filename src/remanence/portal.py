"""A thread with an event loop that runs async methods for blocking callers."""

import asyncio
import functools
import inspect
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager, suppress
from types import GenericAlias
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, get_args
from weakref import WeakSet

from remanence.errors import Closed, Deadlock
from remanence.process import OwnProcess

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A")


class Portal:
    """A thread with an event loop and one open resource. Safe to call from any thread.

    The resource is opened and closed in the same task, and the thread has ended when `close`
    returns. It is a daemon thread: a program may exit without `close`.
    """

    def __init__(self, closed: str = "this is closed: open it again") -> None:
        """Use *closed* as the text of the `Closed` error that later calls raise."""
        self._closed = closed
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: Future[None] = Future()
        # Held between a look at `_closing` and what depends on it; garbage collection may reenter.
        self._lock = threading.RLock()
        self._calls: WeakSet[Coroutine[Any, Any, Any]] = WeakSet()
        self._thread: threading.Thread | None = None
        self._ended: Future[None] = Future()
        self._held: set[AsyncExitStack] = set()
        self._process = OwnProcess()

    def open(self, resource: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        """Start the thread and open *resource* in it; raise its errors here."""
        opened: Future[T] = Future()
        self._thread = threading.Thread(
            target=self._run, args=(resource, opened), name="remanence-portal", daemon=True
        )
        self._thread.start()
        try:
            return opened.result()
        except BaseException:
            self.close()
            raise

    def call(self, work: Coroutine[Any, Any, T]) -> T:  # the yield and send types are asyncio's
        """Run *work* in the loop and wait for it; an interrupt cancels it.

        Raises:
            Closed: the portal is closed, or was closed before *work* ended.
            Deadlock: this is the portal's own thread, as of a hook.
        """
        try:
            self._require_other_thread()
        except Deadlock:
            work.close()
            raise
        future = self._start(work)
        if future is None:
            self._process.require_this()
            raise Closed(self._closed)
        try:
            return future.result()
        except CancelledError as error:
            raise Closed(self._closed) from error
        except BaseException:
            future.cancel()
            raise

    @contextmanager
    def hold(self, resource: AbstractAsyncContextManager[T]) -> Iterator[T]:
        """Hold *resource* within the block, or until the portal is closed.

        An interrupt at any place leaves it, too, also if it was entered all the same.
        """
        stack = AsyncExitStack()
        entering: asyncio.Task[Any] | None = None

        async def enter() -> T:
            nonlocal entering
            entering = asyncio.current_task()
            value = await stack.enter_async_context(resource)
            if self._closing.done():
                await stack.aclose()
                raise Closed(self._closed)
            self._held.add(stack)
            return value

        async def leave() -> None:
            if entering is not None and not entering.done():
                entering.cancel()
                await asyncio.wait({entering})
            await self._leave(stack)

        try:
            yield self.call(enter())
        finally:
            try:
                leaving = self._start(leave())
            except BaseException:  # an interrupt, maybe before it started; it may run twice
                self._start(leave())
                raise
            if leaving is not None and threading.current_thread() is not self._thread:
                with suppress(CancelledError):  # the portal was closed meanwhile
                    leaving.result()

    def iterate(self, items: AsyncGenerator[T, None]) -> Iterator[T]:
        """Yield *items*, which are closed when the iteration is left."""
        consumer, was_left = 0, False
        try:
            while (item := self.call(_next(items))) is not None:
                consumer = threading.get_ident()
                yield item
        except GeneratorExit:
            # Garbage collection may run this in the very thread that closing would wait for.
            was_left = threading.get_ident() == consumer
        finally:
            closing = self._start(_close(items))
            if closing is not None and was_left:
                with suppress(CancelledError):  # the portal was closed meanwhile
                    closing.result()

    def _start(self, work: Coroutine[Any, Any, T]) -> Future[T] | None:
        """Start *work* in the loop; close it and return None if the portal is closed."""
        if self._process.is_this:  # in a forked child, nobody would release the lock
            with self._lock:
                if self._loop is not None and not self._closing.done():
                    self._calls.add(work)
                    return asyncio.run_coroutine_threadsafe(work, self._loop)
        work.close()
        return None

    def require_open(self) -> None:
        """Raise `Closed` if `close` was called."""
        if self._closing.done():
            raise Closed(self._closed)

    def close(self) -> None:
        """Close the resource, wait until the thread has ended, and raise any error of closing.

        Does nothing in a forked child, as the resource belongs to the parent process.
        """
        if not self._process.is_this:
            return
        self._require_other_thread()
        with self._lock:
            if not self._closing.done():
                self._closing.set_result(None)
        if self._thread is not None:
            self._thread.join()
            self._ended.result()

    def _require_other_thread(self) -> None:
        """Raise `Deadlock` in the portal's thread, whose loop would wait for itself."""
        if threading.current_thread() is self._thread:
            raise Deadlock(
                "a hook, or an async function of a model or an embedder, runs in the thread that does "
                "the work of a blocking memory, and would wait for itself: call the memory in another "
                "thread, as in await asyncio.to_thread(memory.check)"
            )

    def _run(
        self, resource: Callable[[], AbstractAsyncContextManager[T]], opened: Future[T]
    ) -> None:
        try:
            asyncio.run(self._serve(resource, opened))
        except BaseException as error:  # noqa: BLE001 - raised by `close`
            self._ended.set_exception(error)
        else:
            self._ended.set_result(None)

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
            for held in tuple(self._held):
                await self._leave(held)
            if interrupted := self._ending_calls():
                await asyncio.wait(interrupted)

    async def _leave(self, held: AsyncExitStack) -> None:
        self._held.discard(held)
        await held.aclose()

    def _ending_calls(self) -> list[asyncio.Task[Any]]:
        """Return calls that end, which may still need the resource, for example to store an answer.

        A background task may be cancelled for a moment, by a timeout of its own, and go on.
        """
        tasks = [task for task in asyncio.all_tasks() if task.cancelling()]
        with self._lock:
            return [task for task in tasks if task.get_coro() in self._calls]


class Handle(Generic[A]):
    """An object of the async API, and the portal that runs its methods."""

    def __init__(self, awaited: A, portal: Portal) -> None:
        self._awaited = awaited
        self._portal = portal


def blocking(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, T]],  # as asyncio's
) -> Callable[Concatenate[Handle[A], P], T]:
    """Return a blocking version of *method*, with its signature and docstring."""

    @functools.wraps(method)
    def call(self: Handle[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._portal.call(method(self._awaited, *args, **kwargs))

    return call


def iterating(
    method: Callable[Concatenate[A, P], AsyncGenerator[T, None]],
) -> Callable[Concatenate[Handle[A], P], Iterator[T]]:
    """Return a blocking version of the async generator *method*, with its signature and docstring."""

    @functools.wraps(method)
    def iterate(self: Handle[A], /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return self._portal.iterate(method(self._awaited, *args, **kwargs))

    signature = inspect.signature(method)
    item = get_args(signature.return_annotation)[:1]
    vars(iterate)["__signature__"] = signature.replace(
        return_annotation=GenericAlias(Iterator, item)
    )
    return iterate


async def _next(items: AsyncGenerator[T, None]) -> T | None:
    return await anext(items, None)


async def _close(items: AsyncGenerator[T, None]) -> None:
    await items.aclose()
