"""`remanence migrate`: create or update the tables of a database."""

from dataclasses import replace
from importlib import metadata

from remanence.cli.options import AsJson, Database
from remanence.cli.output import Printer, write_json
from remanence.cli.settings import load, mask_password
from remanence.memory import Memory
from remanence.stores import migrate


async def run(*, db: Database = None, as_json: AsJson = False) -> None:
    """Create the tables of a database, or bring them up to date.

    Shows the versions.
    """
    settings = load(url=db).settings
    async with Memory.open(settings=replace(settings, workers=0)):
        pass  # opening brings the tables up to date
    backend = "sqlite" if settings.url.startswith("sqlite:") else "postgres"
    newest = migrate.load(f"remanence.stores.{backend}")[-1]
    version = metadata.version("remanence")
    database = mask_password(settings.url)
    if as_json:
        write_json({"database": database, "schema": newest.number, "remanence": version})
    else:
        Printer().line(
            f"{database} has schema version {newest.number} ({newest.name}), the "
            f"newest that remanence {version} knows"
        )
