"""Turns of conversations, one at a time across all processes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final
from weakref import WeakValueDictionary

from remanence import telemetry
from remanence.background import Background, finish, is_part_of, start_beside
from remanence.clock import Clock
from remanence.engine.leases import keep_lease
from remanence.errors import Closed, StoreError, TurnTaken
from remanence.protocols import TurnLeases
from remanence.types import ConversationRef

POLL_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """Grants turns by leases of `lease_seconds`; callers wait up to `wait_seconds` for their turn.

    Within this process, turns are granted in order of arrival. Another process's lease ends at its
    time, or, in case clocks differ, when it was not renewed for `lease_seconds`.
    """

    store: TurnLeases
    clock: Clock
    background: Background
    lease_seconds: float
    wait_seconds: float
    # One lock per conversation for the turns of this process, alive while a turn holds or awaits it.
    _locks: WeakValueDictionary[ConversationRef, asyncio.Lock] = field(
        default_factory=WeakValueDictionary
    )
    _held: dict[ConversationRef, str] = field(default_factory=dict)
    # Tasks that end the turns that they hold, and would wait for themselves.
    _tasks: dict[str, asyncio.Task[Any] | None] = field(default_factory=dict)
    # Blocks that `interrupt` ends: their task, and a future for their end.
    _blocks: dict[asyncio.Timeout, tuple[asyncio.Task[Any] | None, asyncio.Future[None]]] = field(
        default_factory=dict
    )
    _ends: asyncio.Event = field(default_factory=asyncio.Event)

    @asynccontextmanager
    async def hold(self, ref: ConversationRef) -> AsyncIterator[str]:
        """Hold the turn of a conversation within the block; yield the id of the turn.

        Raises:
            TurnTaken: another turn did not end in time, or it waits for this call, as of a tool or
                in the block of the turn.
        """
        held = self._held.get(ref, "")
        if is_part_of(held):
            raise TurnTaken(
                f"this tool runs in a turn of conversation {ref.id!r}, whose end it would wait for: "
                "use another conversation in the tool, or begin the turn in another task"
            )
        if self._tasks.get(held) is asyncio.current_task():
            raise TurnTaken(
                f"this task already holds the turn of conversation {ref.id!r}, whose end it would wait "
                "for: append with its id (turn=...), or end it before another turn or a Chat"
            )
        turn = self.clock.new_id("turn")
        lock = self._locks.setdefault(ref, asyncio.Lock())
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.wait_seconds
        async with self.interruptible():
            await self._acquire(lock, deadline, ref)
        is_taken = False
        try:
            # If renewing fails and the turn is lost, its appends are refused.
            prolong = partial(self._prolong, ref, turn)
            try:
                async with self.interruptible():  # may take the turn even if cancelled
                    await self._take_before(deadline, ref, turn)
                self._held[ref], is_taken = turn, True
                self._tasks[turn] = asyncio.current_task()
                async with keep_lease(self.background, ref, self.lease_seconds, prolong):
                    yield turn
            finally:
                self.share(turn)
                if not is_taken or self._held.pop(ref, ""):  # else `close` has ended it
                    await self._end(ref, turn)
        finally:
            lock.release()

    def share(self, turn: str) -> None:
        """Note that any task may end a turn, as a stream is ended by whoever reads it."""
        self._tasks.pop(turn, None)

    @asynccontextmanager
    async def interruptible(self) -> AsyncIterator[None]:
        """Let `interrupt` cancel the block, which then raises `Closed`."""
        if self._ends.is_set():
            raise _closed_error()
        ended = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(None) as block:
                self._blocks[block] = (asyncio.current_task(), ended)
                try:
                    yield
                finally:
                    del self._blocks[block]
        except TimeoutError as error:
            if not block.expired():
                raise
            raise _closed_error() from error
        finally:
            ended.set_result(None)

    async def interrupt(self, *, timeout_seconds: float) -> None:
        """Cancel interruptible blocks, other than the caller's, and wait for their end."""
        self._ends.set()
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        others = [(block, end) for block, (owner, end) in self._blocks.items() if owner is not task]
        for block, _ in others:
            block.reschedule(loop.time())
        if others:
            await asyncio.wait([end for _, end in others], timeout=timeout_seconds)

    async def close(self) -> None:
        """End the turns in progress, so that the next process does not wait for their leases."""
        while self._held:
            await self._end(*self._held.popitem())

    async def _acquire(self, lock: asyncio.Lock, deadline: float, ref: ConversationRef) -> None:
        try:
            async with asyncio.timeout_at(deadline):
                await lock.acquire()
        except TimeoutError:
            raise self._timeout_error(ref) from None

    async def _take_before(self, deadline: float, ref: ConversationRef, turn: str) -> None:
        loop = asyncio.get_running_loop()
        seen, seen_at = await self._take(ref, turn), loop.time()
        until = seen
        while until is not None:
            if loop.time() >= deadline:
                raise self._timeout_error(ref)
            await asyncio.sleep(POLL_SECONDS)
            is_dead = loop.time() - seen_at >= self.lease_seconds
            until = await self._take(ref, turn, dead=seen if is_dead else None)
            if until != seen:
                seen, seen_at = until, loop.time()

    async def _take(
        self, ref: ConversationRef, turn: str, *, dead: datetime | None = None
    ) -> datetime | None:
        now, until = self.clock.now(), self._lease_end()
        return await self.store.take_turn(ref, owner=turn, now=now, until=until, dead=dead)

    def _lease_end(self) -> datetime:
        return self.clock.now() + timedelta(seconds=self.lease_seconds)

    async def _prolong(self, ref: ConversationRef, turn: str) -> None:
        await self.store.prolong_turn(ref, owner=turn, until=self._lease_end())

    async def _end(self, ref: ConversationRef, turn: str) -> None:
        try:
            # Otherwise a second cancellation would block others until the lease expires.
            end = self.store.end_turn(ref, owner=turn)
            await finish(start_beside(end, name="remanence-end-turn"))
        except (StoreError, Closed) as error:  # the lease expires
            telemetry.turn_not_ended(ref.id, str(error))

    def _timeout_error(self, ref: ConversationRef) -> TurnTaken:
        return TurnTaken(
            f"another turn of conversation {ref.id!r} did not end within {self.wait_seconds:g} s: "
            "wait for its answer and send again, or raise turn_wait_seconds"
        )


def _closed_error() -> Closed:
    return Closed(
        "the memory was closed before this turn was done: open it again, and send the message again, "
        "which is stored only once"
    )
