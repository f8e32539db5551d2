"""`remanence migrate`: create or update the tables of a database."""

import asyncio
from dataclasses import replace
from importlib import metadata

from remanence.cli.documents import mask_password
from remanence.cli.output import Printer, write_json
from remanence.memory import Memory
from remanence.settings import Settings
from remanence.stores import migrate


def run(settings: Settings, *, as_json: bool) -> int:
    """Open the database, which brings its tables up to date, and print the versions."""
    asyncio.run(_open_and_close(settings))
    backend = "sqlite" if settings.url.startswith("sqlite:") else "postgres"
    newest = migrate.load(f"remanence.stores.{backend}")[-1]
    version = metadata.version("remanence")
    if as_json:
        write_json(
            {"database": mask_password(settings.url), "schema": newest.number, "remanence": version}
        )
    else:
        Printer().line(
            f"{mask_password(settings.url)} has schema version {newest.number} ({newest.name}), the "
            f"newest that remanence {version} knows"
        )
    return 0


async def _open_and_close(settings: Settings) -> None:
    async with Memory.open(settings=replace(settings, workers=0)):
        pass
