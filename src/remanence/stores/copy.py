"""Copying a memory to another database, of either kind."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import LiteralString, NamedTuple

from remanence.errors import InvalidArgument
from remanence.protocols import Store
from remanence.stores import migrate
from remanence.stores.rows import (
    API_KEYS,
    FACTS,
    LOG,
    MESSAGES,
    PINS,
    REPETITIONS,
    SEGMENTS,
    STEPS,
    USAGES,
    Row,
    decode_notes,
)
from remanence.stores.sql import facts, search
from remanence.stores.sql.connection import Connection
from remanence.stores.sql.store import SQLStore, read_method, write_method

PAGE = 500


class Table(NamedTuple):
    """A table with the columns of its key, and the others that are copied."""

    name: LiteralString
    key: LiteralString
    columns: LiteralString


TABLES = (
    Table("conversations", "key", 'tenant, id, "user", created_at'),
    Table(
        "states",
        "conversation",
        f"{STEPS.columns}, erasures, look_tokens, last_seq, last_sum_tokens, last_message_at, look_at",
    ),
    Table("messages", "key", f"conversation, calls, sum_tokens, {MESSAGES.columns}"),
    Table("segments", "key", f"conversation, {SEGMENTS.columns}"),
    Table("journal", "conversation, version", LOG.columns.removeprefix("version, ")),
    Table("model_calls", "key", f'conversation, tenant, "user", {USAGES.columns}'),
    Table("fact_owners", "key", 'tenant, "user"'),
    Table("facts", "key", f"owner, plain, worth, {FACTS.columns}"),
    Table("fact_repetitions", "key", f"fact, {REPETITIONS.columns}"),
    Table("facts_pins", "conversation", f"owner, {PINS.columns}"),
    Table("vectors", "item, model", "conversation, vector"),
    Table("fact_vectors", "fact, model", "vector"),
    Table("vector_cursors", "model, subject", "cursor"),
    Table("event_counters", "tenant", "last"),
    Table("events", "tenant, id", 'type, at, conversation, "user", data'),
    Table("event_consumers", "consumer, tenant", "delivered"),
    Table("api_keys", "id", API_KEYS.columns.removeprefix("id, ")),
)
"""Ordered so that referenced rows come first. Leases, turns and pauses are not copied; text indexes
are rebuilt."""


class TableSum(NamedTuple):
    """The rows of a table and their checksum."""

    table: str
    rows: int
    sha256: str


class Copied(NamedTuple):
    """Checksums of a table: in the source as it was read, and in the target after the copy."""

    source: TableSum
    target: TableSum


async def copy_store(source: Store, target: Store) -> tuple[Copied, ...]:
    """Copy a consistent snapshot of a database to an empty one, and compare checksums.

    Until they are equal, the target cannot be opened by others, nor after an interruption.

    Raises:
        InvalidArgument: the target is not empty, another copy to it has begun, or one of the stores is
            not a SQL database.
    """
    if not isinstance(source, SQLStore) or not isinstance(target, SQLStore):
        raise InvalidArgument("only databases of SQLite and PostgreSQL can be copied")
    await write_method(_mark)(target)
    loop, insert = asyncio.get_running_loop(), write_method(_insert)

    def send(table: Table, rows: Sequence[Row]) -> None:
        """Insert a page; called in the thread that reads the source."""
        asyncio.run_coroutine_threadsafe(insert(target, table, rows), loop).result()

    sent = await read_method(partial(_sums, each=send))(source)
    await write_method(_continue_keys)(target)
    index_messages = write_method(search.index_some)
    read_keys = read_method(lambda it: it.execute("SELECT key FROM conversations").fetchall())
    for (key,) in await read_keys(target):
        while await index_messages(target, key):
            pass
    received = await read_method(_sums)(target)
    if received == sent:
        await write_method(_unmark)(target)
    return tuple(map(Copied, sent, received))


def _mark(connection: Connection) -> None:
    """Have others refuse to open an unfinished copy; raise `InvalidArgument` unless it is the first."""
    connection.execute(
        "INSERT INTO schema_migrations (number, name, applied_at, version) "
        "VALUES (?, 'unfinished copy', '', ?) ON CONFLICT DO NOTHING",
        (migrate.UNFINISHED_COPY, migrate.installed_version()),
    )
    is_first = connection.changes() > 0
    if not is_first or any(rows for table in TABLES for rows in _pages(connection, table)):
        raise InvalidArgument("the target of the copy is not empty: name a new database")


def _unmark(connection: Connection) -> None:
    connection.execute("DELETE FROM schema_migrations WHERE number = ?", (migrate.UNFINISHED_COPY,))


def _sums(
    connection: Connection, *, each: Callable[[Table, Sequence[Row]], None] = lambda *_: None
) -> tuple[TableSum, ...]:
    """Return the checksums of all tables, and call *each* with every page of rows."""
    sums = []
    for table in TABLES:
        count, checksum = 0, hashlib.sha256()
        for rows in _pages(connection, table):
            each(table, rows)
            count += len(rows)
            for row in rows:
                checksum.update(json.dumps(row, default=bytes.hex).encode() + b"\n")
        sums.append(TableSum(table.name, count, checksum.hexdigest()))
    return tuple(sums)


def _pages(connection: Connection, table: Table) -> Iterator[Sequence[Row]]:
    columns = f"SELECT {table.key}, {table.columns} FROM {table.name} "  # noqa: S608 - constants
    order = f"ORDER BY {table.key} LIMIT {PAGE}"
    width = table.key.count(",") + 1
    rows: Sequence[Row] = connection.execute(columns + order).fetchall()
    after = f"WHERE ({table.key}) > ({_places(width)}) "
    while rows:
        yield rows
        rows = connection.execute(columns + after + order, rows[-1][:width]).fetchall()


def _insert(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Insert rows, and index the words of live notes and current facts."""
    columns = f"{table.key}, {table.columns}"
    names = [column.strip('" ') for column in columns.split(",")]
    for row in rows:
        connection.execute(
            f"INSERT INTO {table.name} ({columns}) VALUES ({_places(len(row))})",  # noqa: S608 - constants
            row,
        )
        value = dict(zip(names, row, strict=True))
        if table.name == "segments" and value["superseded"] is None:
            notes = decode_notes(value["notes"])
            search.add_notes(connection, value["conversation"], value["key"], notes, value["text"])
        elif table.name == "facts" and value["valid_to"] is None:
            scope = facts.scope(value["owner"])
            connection.add_words("facts_index", value["key"], scope, value["summary"])


def _places(count: int) -> LiteralString:
    return ", ".join(["?"] * count)


def _continue_keys(connection: Connection) -> None:
    """Start new keys after all copied rows, and after erased rows that vector cursors have passed."""
    cursors = connection.execute(
        "SELECT subject || 's', max(cursor) FROM vector_cursors GROUP BY 1"
    )
    after: dict[str, int] = dict(cursors.fetchall())
    for table in TABLES:
        if table.key == "key":
            connection.continue_keys(table.name, after=after.get(table.name, 0))
