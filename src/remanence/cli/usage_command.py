"""`remanence usage`: calls, tokens and price of a memory's models."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer

from remanence.cli.options import AsJson, Database
from remanence.cli.output import Printer, write_json
from remanence.cli.settings import existing, load, mask_password, open_existing
from remanence.runtime import DEFAULT_TENANT
from remanence.types import UsageTotal


async def run(
    *,
    conversation: Annotated[
        str | None, typer.Argument(help="Its id; without it, all calls are summed.")
    ] = None,
    db: Database = None,
    tenant: Annotated[
        str | None, typer.Option(help="Whose calls; for a conversation by default 'default'.")
    ] = None,
    user: Annotated[str | None, typer.Option(help="The calls for this user.")] = None,
    since: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"], help="Calls since then, in UTC."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the usage of models, by purpose and model.

    Counts calls, tokens, price and time.
    """
    settings = load(url=db).settings
    async with open_existing(settings) as memory:
        if conversation is not None:
            await existing(memory, conversation, tenant=tenant or DEFAULT_TENANT)
        totals = await memory.usage(
            tenant=tenant,
            conversation=conversation,
            user=user,
            since=since.replace(tzinfo=UTC) if since else None,
        )
    if as_json:
        write_json({"usage": totals})
    elif not totals:
        Printer().line(f"{mask_password(settings.url)} has no such model call")
    else:
        _print(Printer(), totals)


def _print(printer: Printer, totals: Sequence[UsageTotal]) -> None:
    # A heading for each model: with its name in a column, a line would exceed 80 columns.
    for model in dict.fromkeys(total.model for total in totals):
        printer.heading(model)
        rows = [
            (
                total.purpose,
                total.calls,
                total.failed_calls,
                total.input_tokens,
                total.cache_read_tokens,
                total.output_tokens,
                "unknown" if total.cost_usd is None else f"{total.cost_usd:,.4f}",
            )
            for total in totals
            if total.model == model
        ]
        columns = ("purpose", "calls#", "failed#", "input#", "cached#", "output#", "USD#")
        printer.table(columns, rows)
    printer.line()
    known = [total.cost_usd for total in totals if total.cost_usd is not None]
    unpriced = sum(total.unpriced_calls for total in totals)
    printer.line(
        f"{sum(known):.4f} USD in all"
        + (f"; the price of {unpriced:,} calls is not known" if unpriced else "")
    )
