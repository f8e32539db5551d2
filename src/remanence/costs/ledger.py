"""The ledger of model calls, written in the background."""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
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
from remanence.errors import Closed, InvalidArgument, StoreUnavailable
from remanence.protocols import UsageLog
from remanence.types import ConversationRef, Usage, UsageTotal
from remanence.types.usage import Purpose

_MAX_ROWS: Final = 500
_MAX_WAIT_SECONDS: Final = 5.0


class Ledger:
    """Queues calls, and writes them in the background, in order.

    Calls that the store refuses are logged, counted as lost, and missing from totals; those queued
    with them are written. *prices* are dollars per million tokens of input and output, by model.
    """

    def __init__(
        self, store: UsageLog, prices: Mapping[str, tuple[float, float]] | None = None
    ) -> None:
        self._store = store
        self._prices = prices or {}
        self._queue: asyncio.Queue[Usage] = asyncio.Queue()
        self._closed = False
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
        if self._closed:
            telemetry.usage_lost(1, "the memory is closed")
            return
        usage = self.price(usage)
        telemetry.model_called(usage)  # now, as its log record belongs to the caller's request
        self._queue.put_nowait(usage)

    async def settle(self) -> None:
        """Wait until every call queued so far is written or lost.

        Raises:
            Closed: the background work has stopped.
        """
        if not self._closed:
            await self._join()
            if self._background is not None:
                self._background.require_running()

    async def _join(self) -> None:
        """Wait until the queue is written, or nothing writes it any more."""
        join = start_beside(self._queue.join(), name="remanence-join")
        writing = {join} if self._running is None else {join, self._running}
        try:
            await asyncio.wait(writing, return_when=asyncio.FIRST_COMPLETED)
        finally:
            join.cancel()

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
        with contextlib.suppress(TimeoutError, Closed):
            async with asyncio.timeout(_MAX_WAIT_SECONDS):
                await self.settle()
        return await self._store.usage(
            tenant=tenant, conversation=conversation, user=user, since=since, until=until
        )

    async def close(self, *, timeout_seconds: float) -> None:
        """Write the queued calls within *timeout_seconds*, and ignore later ones."""
        self._closed = True
        if self._background is None or self._running is None:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                await self._join()
        await self._background.stop(self._running)
        if left := self._queue.qsize():
            telemetry.usage_lost(left, "the store did not answer before closing")

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
            lost = sum(map(len, batches))
            telemetry.usage_lost(lost, "the store did not answer before closing")
            raise
        except Exception as error:  # noqa: BLE001 - the price list may be unreadable
            telemetry.usage_lost(len(usages), f"{type(error).__name__}: {error}")

    async def _write_batch(self, usages: Sequence[Usage]) -> Sequence[Sequence[Usage]]:
        """Write calls; return halves to try alone if the store refuses them, maybe for a single one."""
        try:
            await self._store.record_usage(usages)
        except Exception as error:  # noqa: BLE001 - the next calls shall be written all the same
            if len(usages) > 1 and not isinstance(error, StoreUnavailable):
                middle = len(usages) // 2
                return usages[:middle], usages[middle:]
            telemetry.usage_lost(len(usages), _reason(error, usages))
        return ()


def _reason(error: Exception, usages: Sequence[Usage]) -> str:
    """Return why calls are lost, and which one it is if the store refused it."""
    reason = f"{type(error).__name__}: {error}"
    if isinstance(error, StoreUnavailable):
        return reason
    (usage,) = usages
    conversation_id = usage.conversation.id if usage.conversation else None
    return f"{usage.purpose} of {usage.model!r}, conversation {conversation_id!r}: {reason}"


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
