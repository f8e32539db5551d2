"""Retention: deletes rows that no rule keeps, in small batches beside other work."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from remanence import telemetry
from remanence.clock import Clock
from remanence.errors import InvalidPolicy
from remanence.protocols import Store
from remanence.settings import Settings
from remanence.types import (
    Budget,
    ConversationRef,
    DatabaseSize,
    Keep,
    MemoryState,
    Pruned,
    Retention,
)

SWEEP_SECONDS: Final = 6 * 3_600.0
"""The time between two sweeps of a process: rows may outlive their rule by this much."""

_PAGE: Final = 50
_BATCH_ROWS: Final = 200
_PAUSE_SECONDS: Final = 0.02


def retention_rules(settings: Settings, budgets: Sequence[Budget]) -> Retention:
    """Return the retention rules of *settings*.

    Raises:
        InvalidPolicy: a budget counts model calls that a rule would delete.
    """
    usage = Keep(days=settings.usage_keep_days, last=settings.usage_keep_last)
    lasting = next((each for each in budgets if not each.daily and each.scope != "day"), None)
    if usage and lasting is not None:
        raise InvalidPolicy(
            f"the budget of each {lasting.scope} counts all model calls, but usage_keep_days="
            f"{usage.days!r} and usage_keep_last={usage.last!r} delete old ones: use a budget with "
            "daily=True, or leave out the two settings"
        )
    return Retention(
        superseded=Keep(days=settings.superseded_keep_days, last=settings.superseded_keep_last),
        log=Keep(days=settings.log_keep_days, last=settings.log_keep_last),
        usage=usage,
        vectors=Keep(days=settings.vectors_keep_days, last=settings.vectors_keep_last),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruner:
    """Deletes rows that no rule keeps. Stateless; safe beside other pruners on the same database."""

    store: Store
    clock: Clock
    rules: Retention

    async def keep_pruning(self) -> None:
        """Sweep the database now and every few hours; return at once if there are no rules."""
        while self.rules:
            await self.prune()
            await asyncio.sleep(SWEEP_SECONDS)

    async def prune(self) -> None:
        """Sweep the database once, in short transactions."""
        now, total = self.clock.now(), Pruned()
        async for states in self._pages():
            while any(
                found := await self.store.prune(states, self.rules, at=now, limit=_BATCH_ROWS)
            ):
                total = total.plus(found)
                await asyncio.sleep(_PAUSE_SECONDS)
        while calls := await self.store.prune_usage(self.rules, at=now, limit=_BATCH_ROWS):
            total = total.plus(Pruned(usage=calls))
            await asyncio.sleep(_PAUSE_SECONDS)
        if any(total):
            telemetry.rows_pruned(total)

    async def measure(self) -> DatabaseSize:
        """Return the sizes of the tables that grow, and the rows that a sweep would delete."""
        now = self.clock.now()
        total = Pruned(usage=await self.store.prunable_usage(self.rules, at=now))
        async for states in self._pages():
            total = total.plus(await self.store.prunable(states, self.rules, at=now))
        return DatabaseSize(await self.store.table_sizes(), total)

    async def _pages(self) -> AsyncIterator[tuple[MemoryState, ...]]:
        """Yield pages of all conversations, if any rule concerns conversations."""
        after: ConversationRef | None = None
        if not (self.rules.superseded or self.rules.log or self.rules.vectors):
            return
        while page := await self.store.conversations(after=after, limit=_PAGE):
            yield page
            after = page[-1].ref
