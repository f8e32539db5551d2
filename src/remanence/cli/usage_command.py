"""`remanence usage`: model calls with tokens and cost."""

from collections.abc import Sequence
from typing import Annotated

import typer

from remanence.cli import output
from remanence.cli.options import AsJson, Database
from remanence.cli.period import Since, Until, require_period
from remanence.cli.settings import existing, load, open_existing
from remanence.runtime import DEFAULT_TENANT
from remanence.stores import mask_password
from remanence.types import UsageTotal


async def run(
    *,
    conversation: Annotated[
        str | None, typer.Argument(help="Its id; by default all calls are summed.")
    ] = None,
    db: Database = None,
    tenant: Annotated[
        str | None,
        typer.Option(help="The tenant; for a conversation or a user 'default' by default."),
    ] = None,
    user: Annotated[str | None, typer.Option(help="The calls for this user.")] = None,
    since: Since = None,
    until: Until = None,
    as_json: AsJson = False,
) -> None:
    """Show model usage, by purpose and model.

    Shows calls, tokens, cost and duration.
    """
    require_period(since, until)
    settings = load(url=db).settings
    async with open_existing(settings) as memory:
        if conversation is not None:
            await existing(memory, conversation, tenant=tenant or DEFAULT_TENANT)
        totals = await memory.usage(
            tenant=tenant,
            conversation=conversation,
            user=user,
            since=since,
            until=until,
        )
    if as_json:
        output.write_json({"usage": totals})
    elif not totals:
        output.line(f"{mask_password(settings.url)} has no model calls to show")
    else:
        _print(totals)


def _print(totals: Sequence[UsageTotal]) -> None:
    # A heading per model, as its name in a column would make lines exceed 80 columns.
    for model in dict.fromkeys(total.model for total in totals):
        output.heading(model)
        output.table(
            [total for total in totals if total.model == model],
            {
                "purpose": lambda total: total.purpose,
                "calls#": lambda total: total.calls,
                "failed#": lambda total: total.failed_calls,
                "input#": lambda total: total.input_tokens,
                "cached#": lambda total: total.cache_read_tokens,
                "output#": lambda total: total.output_tokens,
                "USD#": lambda total: (
                    "unknown" if total.cost_usd is None else f"{total.cost_usd:,.4f}"
                ),
            },
        )
    output.line()
    known = sum(total.cost_usd or 0.0 for total in totals)
    unpriced = sum(total.unpriced_calls for total in totals)
    remedy = "the setting 'prices' gives later ones a price"
    unknown = f"; the price of {unpriced:,} calls is unknown ({remedy})" if unpriced else ""
    output.line(f"{known:.4f} USD in all{unknown}")
