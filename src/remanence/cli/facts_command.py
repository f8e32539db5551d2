"""`remanence facts`: the facts of a user."""

from typing import Annotated

import typer

from remanence.cli.options import AsJson, Database
from remanence.cli.output import Printer, write_json
from remanence.cli.settings import load, mask_password, open_existing


async def run(
    *,
    user: Annotated[str, typer.Argument(help="Whose facts.")],
    search: Annotated[
        str | None, typer.Option(metavar="WORDS", help="Only facts that match, best first.")
    ] = None,
    history: Annotated[bool, typer.Option(help="Also superseded facts.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="The most facts.")] = 100,
    db: Database = None,
    tenant: Annotated[str, typer.Option(help="The user's tenant.")] = "default",
    as_json: AsJson = False,
) -> None:
    """Show what is known about a user."""
    if history and search is not None:
        raise typer.BadParameter("--search finds facts that hold: leave out --history")
    settings = load(url=db).settings
    async with open_existing(settings) as memory:
        if search is not None:
            facts = await memory.facts.search(search, user=user, tenant=tenant, limit=limit)
        else:
            facts = await memory.facts.list(user=user, tenant=tenant, history=history, limit=limit)
    if as_json:
        write_json({"facts": facts})
    elif not facts:
        Printer().line(f"{mask_password(settings.url)} has no such fact of user {user!r}")
    else:
        rows = [
            (
                fact.id,
                fact.type,
                f"{fact.valid_from:%Y-%m-%d}",
                f"{fact.valid_to:%Y-%m-%d}" if fact.valid_to else "",
                fact.summary,
            )
            for fact in facts
        ]
        Printer().table(("id", "type", "since", "until", "fact~"), rows)
