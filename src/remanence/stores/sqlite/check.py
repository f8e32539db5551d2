"""Checks of a database file: damage, orphaned rows and words, inconsistencies, and writing."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

import apsw

from remanence.errors import StoreUnavailable
from remanence.stores.sql import search
from remanence.stores.sql.consistency import COPY, inconsistencies, problem
from remanence.stores.sqlite.fts import Connection
from remanence.types import Problem

_SCOPES = {"text_index": "c", "facts_index": "u"}
"""The first letter of all scope words of an index."""

_INDEXED = "SELECT 1 FROM {}_docsize WHERE id"


def check(connection: Connection, *, now: datetime) -> tuple[Problem, ...]:
    """Return the problems of the database, by conversation; empty if it is sound."""
    if damage := tuple(_damage(connection)):
        return damage  # other findings in a damaged file mean nothing
    rows = connection.execute("PRAGMA foreign_key_check")
    orphans = [
        problem(None, f"row {rowid} of {table} belongs to no row of {parent}")
        for table, rowid, parent, _ in rows
    ]
    return (
        *orphans,
        *inconsistencies(connection, _INDEXED, now=now),
        *_index(connection),
        *_bytes(connection),
    )


def _damage(connection: Connection) -> Iterator[Problem]:
    try:
        for (answer,) in connection.execute("PRAGMA quick_check"):
            if answer != "ok":
                found = problem(None, f"the file is damaged: {answer}")
                yield replace(found, remedy=COPY) if "FTS5" in answer else found
    except apsw.CorruptError as error:
        yield problem(None, f"the file is damaged: {error}")
    for index, letter in _SCOPES.items():  # the lengths of texts, which only a ranking reads
        try:
            connection.execute(
                f"SELECT 1 FROM {index} WHERE {index} MATCH ? ORDER BY rank LIMIT 1",  # noqa: S608 - a constant
                (f"scope : {letter} *",),
            ).fetchone()
        except apsw.CorruptError as error:
            yield replace(problem(None, f"{index} is damaged: {error}"), remedy=COPY)


def _index(connection: Connection) -> Iterator[Problem]:
    orphans: int = connection.execute(
        "SELECT count(*) FROM text_index_docsize WHERE ((id > 0 AND id NOT IN "
        "(SELECT key FROM messages)) OR (id < 0 AND -id / ? NOT IN (SELECT key FROM segments)))",
        (search.MAX_NOTES,),
    ).get
    if orphans:
        yield problem(None, f"the text index has {orphans} orphaned texts")


def _bytes(connection: Connection) -> Iterator[Problem]:
    if connection.execute("SELECT 1 FROM chores WHERE name = 'scrub'").get:
        yield Problem(
            conversation=None,
            level="warning",
            what="the file was not rewritten after an erasure: it may still have bytes of erased rows",
            remedy="open the memory for writing while no other process reads from the file",
        )


def probe_writing(connection: Connection) -> None:
    """Write a row to the log on disk, without a sync, and roll it back."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        "INSERT INTO conversations (tenant, id, created_at) "
        "VALUES ('', 'probe ' || hex(randomblob(16)), '')"
    )
    connection.cache_flush()  # a transaction is otherwise written when it commits
    connection.execute("ROLLBACK")


def write_problem(error: StoreUnavailable) -> Problem:
    """Return the problem that nothing can be written, from the error of a probe."""
    reason = str(error).removesuffix(f": {error.remedy}")
    return Problem(
        conversation=None,
        level="warning" if isinstance(error.__cause__, apsw.BusyError) else "error",
        what=f"nothing can be written: {reason}",
        remedy=error.remedy,
    )
