"""`remanence consolidate`: old daily notes into MEMORY.md."""

from dataclasses import replace
from typing import Annotated

import typer

from remanence.cli import FAILED
from remanence.cli.options import AsJson, Database
from remanence.cli.output import Printer, warn, write_json
from remanence.cli.settings import load
from remanence.memory import Memory


async def run(
    *,
    user: Annotated[str | None, typer.Option(help="Whose notes; by default everybody's.")] = None,
    tenant: Annotated[str | None, typer.Option(help="Of which tenant.")] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> int:
    """Summarise old daily notes into MEMORY.md, and archive them."""
    async with Memory.open(settings=replace(load(url=db).settings, workers=0)) as memory:
        results = await memory.consolidate(user=user, tenant=tenant)
    done = [each for each in results if each.memory_file.parent.is_dir()]
    if as_json:
        write_json({"consolidated": done})
    elif not done:
        whose = "" if user is None else f" of user {user!r}"
        Printer().line(f"there are no daily notes{whose} yet")
    else:
        Printer().table(
            ("tenant", "user", "days#", "facts#", "memory file~"),
            [
                (each.tenant, each.user, len(each.days), each.facts, each.memory_file)
                for each in done
            ],
        )
    for each in done:
        if each.signature == "edited":
            warn(f"{each.memory_file} was edited since its last summary; the edit is kept")
    return FAILED if user is not None and not done else 0
