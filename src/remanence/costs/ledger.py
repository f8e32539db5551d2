"""The ledger of model calls, written in the background."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, get_args

from remanence import telemetry
from remanence.arguments import (
    require_amount,
    require_choices,
    require_count,
    require_moment,
    require_one_of,
    require_text,
    require_unicode,
)
from remanence.background import Background, start_beside
from remanence.catalog import canonical_name
from remanence.costs import with_list_price
from remanence.errors import InvalidArgument, OutcomeUnknown, StoreUnavailable
from remanence.protocols import UsageLog
from remanence.types import ConversationRef, Usage, UsageTotal
from remanence.types.usage import Purpose

_MAX_ROWS: Final = 500
_MAX_QUEUED: Final = 10_000
_MAX_UNANSWERED: Final = 200_000
"""Calls that wait while the store is slow or hangs, which no error tells."""
_MAX_WAIT_SECONDS: Final = 5.0
_RETRY_SECONDS: Final = 1.0
_NO_ANSWER: Final = "the store did not answer"


class Ledger:
    """Queues calls, and writes them in the background, in order.

    While the store is unavailable, which is logged once, up to 10,000 calls wait, and are tried
    every *retry_seconds*; 200,000 wait for a store that is slow. Those beyond, and calls that the
    store refuses, are logged, counted as lost, and missing from totals; those queued with them are
    written. *prices* are dollars per million tokens of input and output, by model.
    """

    def __init__(
        self,
        store: UsageLog,
        prices: Mapping[str, tuple[float, float]] | None = None,
        *,
        retry_seconds: float = _RETRY_SECONDS,
    ) -> None:
        self._store = store
        self._retry_seconds = retry_seconds
        self._outage = asyncio.Event()
        self._reason = _NO_ANSWER
        self._prices = prices or {}
        self._queue: asyncio.Queue[Usage] = asyncio.Queue()
        self._closing = asyncio.Event()
        self._background: Background | None = None
        self._running: asyncio.Task[None] | None = None

    def start(self, background: Background) -> None:
        """Start the background task."""
        self._background = background
        self._running = background.spawn("ledger", self._run)

    def price(self, usage: Usage) -> Usage:
        """Return the usage at the price of `Settings.prices`, if its model has one there."""
        price = self._prices.get(canonical_name(usage.model))
        if price is None or not (usage.input_tokens or usage.output_tokens):
            return usage
        dollars = usage.input_tokens * price[0] + usage.output_tokens * price[1]
        return replace(usage, cost_usd=dollars / 1e6)

    def record(self, usage: Usage) -> None:
        """Queue a model call. Returns at once and never raises; call it on the memory's loop."""
        if self._closing.is_set():
            _lose([usage], "the memory is closed")
            return
        usage = self.price(usage)
        telemetry.model_called(usage)  # now, as its log record belongs to the caller's request
        limit = _MAX_QUEUED if self._outage.is_set() else _MAX_UNANSWERED
        if self._queue.qsize() >= limit:
            _lose([usage], f"{limit:,} others wait, as {self._reason}")
        else:
            self._queue.put_nowait(usage)

    async def settle(self) -> None:
        """Wait until every call queued so far is written or lost.

        Raises:
            StoreUnavailable: the store cannot be written now; the calls wait for it.
            Closed: the background work has stopped.
        """
        if not self._closing.is_set():
            await self._join(self._outage.wait())
            if self._outage.is_set():
                raise StoreUnavailable(
                    f"the ledger of model calls waits: {self._reason}", remedy="try again later"
                )
            if self._background is not None:
                self._background.require_running()

    async def _join(self, *ends: Coroutine[None, None, object]) -> None:
        """Wait until the queue is written, nothing writes it any more, or one of *ends* is done."""
        waits = [start_beside(end, name="remanence-join") for end in (self._queue.join(), *ends)]
        writing = [] if self._running is None else [self._running]
        try:
            await asyncio.wait([*waits, *writing], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def usage(
        self,
        *,
        tenant: str | None = None,
        conversation: ConversationRef | None = None,
        user: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> tuple[UsageTotal, ...]:
        """Like `Store.usage`, including queued calls if the store writes them in time."""
        seconds = 2 * self._retry_seconds if self._outage.is_set() else _MAX_WAIT_SECONDS
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._join()
        return await self._store.usage(
            tenant=tenant, conversation=conversation, user=user, since=since, until=until
        )

    async def close(self, *, timeout_seconds: float) -> None:
        """Try to write the queued calls within *timeout_seconds*, and ignore later ones."""
        self._closing.set()
        if self._background is None or self._running is None:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                await self._join()
        await self._background.stop(self._running)
        while left := self._drain():
            _lose(left, self._reason)

    async def _run(self) -> None:
        while True:
            usages = [await self._queue.get(), *self._drain()]
            try:
                await self._write(usages)
            finally:
                for _ in usages:
                    self._queue.task_done()

    def _drain(self) -> list[Usage]:
        """Take the queued calls, up to one transaction's worth."""
        usages: list[Usage] = []
        while len(usages) < _MAX_ROWS and not self._queue.empty():
            usages.append(self._queue.get_nowait())
        return usages

    async def _write(self, usages: Sequence[Usage]) -> None:
        batches: list[Sequence[Usage]] = [usages]
        try:
            known = await asyncio.to_thread(lambda: [with_list_price(usage) for usage in usages])
            for usage in known:
                telemetry.model_priced(usage)
            batches = [known]
            while batches:
                batches[:1] = await self._write_batch(batches[0])
        except asyncio.CancelledError:
            _lose([usage for batch in batches for usage in batch], self._reason)
            raise
        except Exception as error:  # noqa: BLE001 - the price list may be unreadable
            _lose(usages, f"{type(error).__name__}: {error}")

    async def _write_batch(self, usages: Sequence[Usage]) -> Sequence[Sequence[Usage]]:
        """Write calls; return those to try again: all, or halves if the store refuses maybe a single one."""
        try:
            await self._store.record_usage(usages)
        except Exception as error:  # noqa: BLE001 - the next calls shall be written all the same
            reason = f"{type(error).__name__}: {error}"
            is_unavailable = isinstance(error, StoreUnavailable)
            if is_unavailable and not (isinstance(error, OutcomeUnknown) or self._closing.is_set()):
                await self._pause(reason)
                return (usages,)
            if len(usages) > 1 and not is_unavailable:
                middle = len(usages) // 2
                return usages[:middle], usages[middle:]
            _lose(usages, reason)
        self._reason = _NO_ANSWER
        self._outage.clear()
        return ()

    async def _pause(self, reason: str) -> None:
        """Note the outage, log it once, and wait a little, but not once the ledger closes."""
        if not self._outage.is_set():
            telemetry.ledger_waits(reason)
        self._reason = reason
        self._outage.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._retry_seconds):
                await self._closing.wait()


def _lose(usages: Sequence[Usage], reason: str) -> None:
    """Log calls that are lost, by purpose, model and conversation."""
    counts = Counter((usage.purpose, usage.model, usage.conversation) for usage in usages)
    for (purpose, model, ref), calls in counts.items():
        what = f"{purpose} of {model!r}, conversation {ref.id if ref else None!r}"
        telemetry.usage_lost(calls, f"{what}: {reason}")


def require_usage(usage: Usage) -> None:
    """Raise `InvalidArgument` unless *usage* is a `Usage` that every ledger takes and can sum."""
    require_one_of(Usage, usage=usage)
    require_text(**_fields(usage, "purpose", "model", "outcome"))
    require_text(**_fields(usage, "user"), optional=True)
    require_unicode(**_fields(usage, "model", "outcome", "user"))
    require_choices(get_args(Purpose), **{"usage.purpose": [usage.purpose]})
    counts = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    require_count(**_fields(usage, *counts))
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    if usage.input_tokens < cached:
        raise InvalidArgument(
            f"usage.input_tokens={usage.input_tokens} is less than the {cached} tokens read from and "
            "written to the cache, which it includes: add them, as for numbers of Anthropic"
        )
    require_amount(**_fields(usage, "cost_usd"), optional=True)
    require_amount(**_fields(usage, "duration_seconds"))
    require_one_of(datetime, **_fields(usage, "at"))
    require_moment(**_fields(usage, "at"))


def _fields(usage: Usage, *names: str) -> dict[str, Any]:
    return {f"usage.{name}": getattr(usage, name) for name in names}
