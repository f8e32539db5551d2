"""Leases on conversations: short, so that two processes do not pay for the same call."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from remanence import telemetry
from remanence.background import Background
from remanence.clock import Clock
from remanence.errors import StoreError
from remanence.protocols import Store
from remanence.types import Look, MemoryState


@dataclass(frozen=True, slots=True, kw_only=True)
class Leases:
    """Leases of `seconds` in the name of `owner`, prolonged while they are held."""

    store: Store
    clock: Clock
    background: Background
    owner: str
    seconds: float

    @asynccontextmanager
    async def hold(self, state: MemoryState) -> AsyncIterator[bool]:
        """Hold a conversation's lease within the block; yields whether it was acquired."""
        if not await self._take(state):
            yield False
            return
        prolonging = self.background.run("lease", self._prolong(state))
        try:
            yield True
        finally:
            prolonging.cancel()
            await asyncio.wait({prolonging})
            await self.store.release(state, owner=self.owner)

    def free_at(self, look: Look, *, now: datetime) -> datetime:
        """Return the time from which a planned look may start: after another owner's lease.

        A lease that ends later than one lease length from *now* counts as ending then.
        """
        if look.lease_until is None or look.lease_owner in (None, self.owner):
            return look.at
        return max(look.at, min(look.lease_until, now + timedelta(seconds=self.seconds)))

    async def is_still_due(self, state: MemoryState) -> bool:
        """Return whether the work is still undone, as another owner may have done it meanwhile."""
        current = await self.store.state(state.ref)
        return current is not None and _cursors(current) == _cursors(state)

    async def _take(self, state: MemoryState) -> bool:
        now = self.clock.now()
        until = now + timedelta(seconds=self.seconds)
        return await self.store.lease(state, owner=self.owner, now=now, until=until)

    async def _prolong(self, state: MemoryState) -> None:
        """Prolong the lease while a step runs; after a crash it soon expires."""
        while True:
            await asyncio.sleep(self.seconds / 3)
            try:
                await self._take(state)
            except StoreError as error:
                telemetry.lease_not_prolonged(state.ref.id, str(error))


def _cursors(state: MemoryState) -> tuple[int, ...]:
    return state.key, state.observed_seq, state.reflected_seq, state.facts_seq
