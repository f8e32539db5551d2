"""`remanence doctor`, `backup`, `copy` and `migrate`: database maintenance."""

import re
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer

from remanence.cli import FAILED, output
from remanence.cli.options import AsJson, Database, read_path
from remanence.cli.settings import load, open_existing, require_database
from remanence.errors import InvalidArgument
from remanence.memory import Memory
from remanence.protocols import BackupStore
from remanence.stores import mask_password, migrate as migrations, open_store
from remanence.stores.copy import copy_store
from remanence.stores.url import database_option
from remanence.types import DatabaseSize, Problem

SHOWN_EXAMPLES = 3
_PARTICULARS = re.compile(r"'[^']*'|\d[\d,.:-]*")
_STYLES = {"error": "red", "warning": "yellow", "info": None}


def _read_copy(text: str) -> Path:
    if "://" in text:
        raise typer.BadParameter(
            f"{mask_password(text)} is the URL of a database: name the new file, and the database "
            "with --db"
        )
    if text == "-":
        raise typer.BadParameter(
            "'-' is not a file: a copy cannot be written to stdout, so name one"
        )
    return read_path(text)


async def backup(
    *,
    file: Annotated[Path, typer.Argument(parser=_read_copy, help="A new file.")],
    db: Database = None,
) -> None:
    """Copy the database to a new file while it is in use.

    The copy has the schema of the database, also if that is of another version.
    """
    url = load(url=db).settings.url
    if url.startswith(("postgresql:", "postgres:")):
        raise InvalidArgument(
            f"{mask_password(url)!r} is not a SQLite database: copy it with pg_dump"
        )
    require_database(url)
    store = await open_store(url, read_only=True, any_version=True)
    try:
        assert isinstance(store, BackupStore)
        await store.backup(str(file))
    finally:
        await store.close()
    output.line(f"copied to {file}")


async def copy(
    *,
    source: Annotated[str, typer.Argument(help="The URL of the database to copy.")],
    target: Annotated[str, typer.Argument(help="The URL of an empty database.")],
    as_json: AsJson = False,
) -> int:
    """Copy a memory to an empty database, and compare the two.

    Each may be of SQLite or PostgreSQL. No program may write to either meanwhile.
    """
    if target == "sqlite:///:memory:":
        raise typer.BadParameter(f"target {target!r} would end with the command: name a file")
    async with AsyncExitStack() as stack:
        reading = await open_store(source, read_only=True)
        stack.push_async_callback(reading.close)
        writing = await open_store(target)
        stack.push_async_callback(writing.close)
        tables = await copy_store(reading, writing)
    if as_json:
        documents = [
            {"source": sent._asdict(), "target": received._asdict()} for sent, received in tables
        ]
        output.write_json({"tables": documents})
    else:
        for sent, received in tables:
            verdict = "equal" if sent == received else f"DIFFERS: {received.rows:,} rows"
            output.line(f"{sent.table}: {sent.rows:,} rows, {sent.sha256[:12]}, {verdict}")
    return FAILED if any(sent != received for sent, received in tables) else 0


async def migrate(*, db: Database = None, as_json: AsJson = False) -> None:
    """Create or upgrade the tables of a database.

    Shows the schema version.
    """
    settings = load(url=db).settings
    tables_only = replace(
        settings, workers=0, model=None, observer_model=None, reflector_model=None
    )
    async with Memory.open(settings=tables_only):
        pass  # opening brings the tables up to date
    backend = "sqlite" if settings.url.startswith("sqlite:") else "postgres"
    newest = migrations.load(f"remanence.stores.{backend}")[-1]
    version = metadata.version("remanence")
    database = mask_password(settings.url)
    if as_json:
        output.write_json({"database": database, "schema": newest.number, "remanence": version})
    else:
        output.line(
            f"{database} has schema version {newest.number} ({newest.name}), the "
            f"newest that remanence {version} knows"
        )


async def doctor(*, db: Database = None, as_json: AsJson = False) -> int:
    """Report the problems of a memory and how to fix them.

    Finds inconsistent data, and failing, stuck or overdue work. Shows the tables that grow.
    """
    settings = load(url=db).settings
    async with open_existing(settings) as memory:
        problems = await memory.check()
        is_readable = all(p.conversation or p.level != "error" for p in problems)
        tables = _tables(await memory.size()) if is_readable else []
    if db is None:  # the shell's own settings name the database
        problems = tuple(_without_database(problem, settings.url) for problem in problems)
    database = mask_password(settings.url)
    if as_json:
        found = [_document(problem) for problem in problems]
        output.write_json(
            {
                "database": database,
                "judged_by": settings.preset,
                "problems": found,
                "tables": tables,
            }
        )
    else:
        _print(problems, database=database, preset=settings.preset)
        _print_tables(tables)
    return FAILED if any(problem.level == "error" for problem in problems) else 0


def _tables(size: DatabaseSize) -> list[dict[str, Any]]:  # JSON
    """Return the tables, and how many rows of each retention would delete."""
    prunable = {
        "segments": size.prunable.superseded,
        "journal": size.prunable.log,
        "model_calls": size.prunable.usage,
        "vectors": size.prunable.vectors,
    }
    return [table._asdict() | {"prunable": prunable.get(table.table, 0)} for table in size.tables]


def _print_tables(tables: Sequence[Mapping[str, Any]]) -> None:  # as above
    if not tables:
        return
    output.table(
        tables,
        {
            "table": lambda each: each["table"],
            "rows#": lambda each: each["rows"],
            "KB#": lambda each: each["bytes"] // 1024,
            "past retention#": lambda each: each["prunable"],
        },
    )
    output.line("(The process that does the background work deletes the rows past retention.)")


def _without_database(problem: Problem, url: str) -> Problem:
    """Return the problem without --db in the commands of its remedy."""
    return replace(problem, remedy=problem.remedy.replace(database_option(url), ""))


def _document(problem: Problem) -> dict[str, object]:
    """Return the problem as JSON; tenant and conversation are null if it concerns the database."""
    ref = problem.conversation
    return {
        "tenant": ref.tenant if ref else None,
        "conversation": ref.id if ref else None,
        "level": problem.level,
        "what": problem.what,
        "remedy": problem.remedy,
    }


def _print(problems: Sequence[Problem], *, database: str, preset: str) -> None:
    if not problems:
        output.line(f"{database} is consistent; nothing is due, stuck or failing")
    for alike in _groups(problems):
        first = alike[0]
        output.line(f"{first.level}: {_where(alike)}", style=_STYLES[first.level])
        output.line(f"  {'what' if len(alike) == 1 else 'such as'}: {first.what}")
        output.line(f"  remedy: {first.remedy}")
    output.line(
        "(Due work is judged by the schedule of the program that does it, or if there is none yet, by "
        f"the settings here, preset {preset!r}: see 'remanence config show'.)"
    )


def _groups(problems: Sequence[Problem]) -> list[list[Problem]]:
    """Group problems that differ only in numbers and names, the most severe first."""
    groups: dict[tuple[str, str, bool], list[Problem]] = {}
    for problem in problems:
        kind = _PARTICULARS.sub("#", problem.what)
        groups.setdefault((problem.level, kind, problem.conversation is None), []).append(problem)
    return sorted(groups.values(), key=lambda alike: list(_STYLES).index(alike[0].level))


def _where(alike: Sequence[Problem]) -> str:
    refs = [problem.conversation for problem in alike if problem.conversation is not None]
    if not refs:
        return "the database" if len(alike) == 1 else f"the database, {len(alike):,} times"
    names = [f"{ref.id!r} of tenant {ref.tenant!r}" for ref in dict.fromkeys(refs)]
    if len(refs) == 1:
        return f"conversation {names[0]}"
    count = f"{len(names):,} conversations" if len(names) > 1 else "a conversation"
    times = f", {len(refs):,} times" if len(refs) > len(names) else ""
    more = ", ..." if len(names) > SHOWN_EXAMPLES else ""
    return f"{count}{times}: {', '.join(names[:SHOWN_EXAMPLES])}{more}"
