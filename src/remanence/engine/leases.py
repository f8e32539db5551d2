"""Short leases on conversations, so that two processes do not pay for the same model call."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from remanence import telemetry
from remanence.background import Background, wait_for_end
from remanence.clock import Clock
from remanence.errors import StoreError
from remanence.protocols import Store
from remanence.types import ConversationRef, Look, MemoryState


@dataclass(frozen=True, slots=True, kw_only=True)
class Leases:
    """Leases of `seconds` in the name of `owner`, renewed while they are held."""

    store: Store
    clock: Clock
    background: Background
    owner: str
    seconds: float

    @asynccontextmanager
    async def hold(self, state: MemoryState) -> AsyncIterator[bool]:
        """Hold a conversation's lease within the block; yield whether it was acquired."""
        if not await self._take(state):
            yield False
            return
        try:
            async with keep_lease(
                self.background, state.ref, self.seconds, lambda: self._take(state)
            ):
                yield True
        finally:
            await self.store.release(state, owner=self.owner)

    def free_at(self, look: Look, *, now: datetime) -> datetime:
        """Return when a scheduled look may start: not before another owner's lease ends.

        A lease is taken to end at most one lease length from *now*, as clocks may differ.
        """
        if look.lease_until is None or look.lease_owner in (None, self.owner):
            return look.at
        return max(look.at, min(look.lease_until, now + timedelta(seconds=self.seconds)))

    async def is_still_due(self, state: MemoryState) -> bool:
        """Return whether the work is still undone, and our lease lasts for at least half its length.

        If this process was suspended, or waited long for the lease, another owner could take the
        lease before it is renewed.
        """
        current = await self.store.state(state.ref)
        if current is None or current.lease_owner != self.owner or current.lease_until is None:
            return False
        left = current.lease_until - self.clock.now()
        return left.total_seconds() > self.seconds / 2 and _cursors(current) == _cursors(state)

    async def _take(self, state: MemoryState) -> bool:
        now = self.clock.now()
        until = now + timedelta(seconds=self.seconds)
        return await self.store.lease(state, owner=self.owner, now=now, until=until)


@asynccontextmanager
async def keep_lease(
    background: Background,
    ref: ConversationRef,
    seconds: float,
    prolong: Callable[[], Awaitable[object]],
) -> AsyncIterator[None]:
    """Renew a lease of *seconds* during the block; after a crash it soon expires."""

    async def repeat() -> None:
        while True:
            await asyncio.sleep(seconds / 3)
            try:
                await prolong()
            except StoreError as error:
                telemetry.lease_not_prolonged(ref.id, str(error))

    task = background.run("lease", repeat())
    try:
        yield
    finally:
        background.cancel(task)
        await wait_for_end(task)


def _cursors(state: MemoryState) -> tuple[int, ...]:
    return state.key, state.observed_seq, state.reflected_seq, state.facts_seq
