"""Schema migrations. Their SQL is in numbered files, one folder per backend."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from remanence.errors import NewerSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One numbered step; never edited after release."""

    number: int
    name: str
    sql: str


@cache
def load(package: str) -> tuple[Migration, ...]:
    """Return the migrations of *package* in order of their numbers; read its files once."""
    folder = resources.files(package) / "migrations"
    files = (file for file in folder.iterdir() if file.name.endswith(".sql"))
    steps = (_migration(file.name, file.read_text(encoding="utf-8")) for file in files)
    return tuple(sorted(steps, key=lambda step: step.number))


def _migration(file_name: str, sql: str) -> Migration:
    number, _, name = file_name.removesuffix(".sql").partition("_")
    return Migration(number=int(number), name=name, sql=sql)


def due(
    known: Sequence[Migration], applied: Collection[int], *, database: str
) -> tuple[Migration, ...]:
    """Return the known migrations that are not applied; raise `NewerSchema` for unknown ones."""
    newest_known = max((step.number for step in known), default=0)
    newest_applied = max(applied, default=0)
    if newest_applied > newest_known:
        raise NewerSchema(
            f"{database} has schema version {newest_applied}, and this remanence knows up to "
            f"{newest_known}: install a newer remanence, or restore a backup made before the upgrade"
        )
    return tuple(step for step in known if step.number not in applied)
