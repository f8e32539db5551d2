"""`remanence backup`: a copy of a database in use."""

from pathlib import Path
from typing import Annotated

import typer

from remanence.cli.options import Database
from remanence.cli.output import Printer
from remanence.cli.settings import load, open_existing


async def run(
    *, file: Annotated[Path, typer.Argument(help="A new file.")], db: Database = None
) -> None:
    """Copy the database to a new file while programs use it."""
    async with open_existing(load(url=db).settings) as memory:
        await memory.backup(file)
    Printer().line(f"copied to {file}")
