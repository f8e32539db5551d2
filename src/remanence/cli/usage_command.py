"""`remanence usage`: calls, tokens and price of a memory's models."""

import asyncio
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from remanence.cli.documents import mask_password
from remanence.cli.output import Printer, write_json
from remanence.cli.settings import existing, open_existing
from remanence.runtime import DEFAULT_TENANT
from remanence.settings import Settings
from remanence.types import UsageTotal


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageFilter:
    """Filter of the calls to sum; None matches all."""

    tenant: str | None
    conversation: str | None
    user: str | None
    since: datetime | None


def run(settings: Settings, selection: UsageFilter, *, as_json: bool) -> int:
    """Show the totals."""
    totals = asyncio.run(_totals(settings, selection))
    if as_json:
        write_json({"usage": [dataclasses.asdict(total) for total in totals]})
    elif not totals:
        Printer().line(f"{mask_password(settings.url)} has no such model call")
    else:
        _print(Printer(), totals)
    return 0


async def _totals(settings: Settings, selection: UsageFilter) -> tuple[UsageTotal, ...]:
    async with open_existing(settings) as memory:
        if selection.conversation is not None:
            await existing(
                memory, selection.conversation, tenant=selection.tenant or DEFAULT_TENANT
            )
        return await memory.usage(
            tenant=selection.tenant,
            conversation=selection.conversation,
            user=selection.user,
            since=selection.since,
        )


def _print(printer: Printer, totals: Sequence[UsageTotal]) -> None:
    # A heading for each model: with its name in a column, a line would exceed 80 columns.
    for model in dict.fromkeys(total.model for total in totals):
        printer.heading(model)
        printer.table(
            ("purpose", "calls#", "failed#", "input#", "cached#", "output#", "USD#"),
            [_row(total) for total in totals if total.model == model],
        )
    printer.line()
    known = [total.cost_usd for total in totals if total.cost_usd is not None]
    unpriced = sum(total.unpriced_calls for total in totals)
    printer.line(
        f"{sum(known):.4f} USD in all"
        + (f"; the price of {unpriced:,} calls is not known" if unpriced else "")
    )


def _row(total: UsageTotal) -> tuple[object, ...]:
    return (
        total.purpose,
        total.calls,
        total.failed_calls,
        total.input_tokens,
        total.cache_read_tokens,
        total.output_tokens,
        "unknown" if total.cost_usd is None else f"{total.cost_usd:,.4f}",
    )
