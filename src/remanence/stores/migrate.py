"""Schema migrations. Their SQL is in numbered files, one folder per backend."""

from collections.abc import Collection, Sequence
from functools import cache
from importlib import metadata, resources
from typing import NamedTuple

from remanence.errors import NewerSchema, StoreUnavailable

UNFINISHED_COPY = -1
"""The number of the row beside those of the migrations, while a copy to the database is unfinished."""


class Migration(NamedTuple):
    """One numbered step; never edited after release."""

    number: int
    name: str
    sql: str


@cache
def load(package: str) -> tuple[Migration, ...]:
    """Return the migrations of *package*, ordered by number; cached."""
    files = sorted((resources.files(package) / "migrations").iterdir(), key=lambda file: file.name)
    return tuple(
        Migration(int(file.name[:4]), file.name[5:].removesuffix(".sql"), file.read_text("utf-8"))
        for file in files
    )


@cache
def installed_version() -> str:
    """Return the installed version of this package; cached."""
    try:
        return metadata.version("remanence")
    except metadata.PackageNotFoundError:  # run from a checkout that is not installed
        return "unknown"


def due(
    known: Sequence[Migration], applied: Collection[int], *, database: str
) -> tuple[Migration, ...]:
    """Return the pending migrations.

    Raises:
        NewerSchema: unknown ones were applied.
        StoreUnavailable: a copy to the database was not finished.
    """
    if UNFINISHED_COPY in applied:
        raise StoreUnavailable(
            f"{database} is an unfinished copy: delete it, and repeat 'remanence copy' to a new database"
        )
    newest_known = max((step.number for step in known), default=0)
    newest_applied = max(applied, default=0)
    if newest_applied > newest_known:
        raise NewerSchema(
            f"{database} has schema version {newest_applied}, but this version of remanence supports only up "
            f"to {newest_known}: install a newer remanence, or restore a backup made before the upgrade"
        )
    return tuple(step for step in known if step.number not in applied)
