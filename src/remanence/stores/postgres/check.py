"""Check that a database is writable, by inserting rows and rolling back."""

from collections.abc import Iterator

import psycopg
from psycopg import errors

from remanence.clock import SystemClock
from remanence.stores.postgres.errors import find_remedy, reason
from remanence.stores.postgres.server import begin
from remanence.stores.sql import vectors
from remanence.stores.sql.connection import Connection
from remanence.types import Problem

_WRITE = """
WITH probe AS (
  INSERT INTO conversations (tenant, id, created_at)
  VALUES ('', 'probe ' || gen_random_uuid(), '') RETURNING key
), content AS (
  SELECT string_agg(md5(random()::text), '') AS text FROM generate_series(1, 4000)
)
INSERT INTO messages (conversation, seq, id, role, kind, content, created_at, tokens, sum_tokens)
SELECT key, 1, '', 'user', 'message', text, '', 0, 0 FROM probe, content RETURNING conversation
"""
"""Large enough to make the tables' files grow."""

_PLAN = "UPDATE states SET look_at = '9999-12-31T00:00:00.000000+00:00' WHERE conversation = %s"
"""A trigger defers its job."""

_OWNS = """
SELECT pg_has_role(c.relowner, 'USAGE') OR pg_has_role(d.datdba, 'USAGE')
FROM pg_class c, pg_database d WHERE c.oid = 'messages'::regclass AND d.datname = current_database()
"""
_MAINTAINS = "SELECT has_table_privilege('messages', 'MAINTAIN')"
_MAINTAIN_SINCE = 170_000

VACUUM_REMEDY = (
    "grant it the role that owns the tables, or from PostgreSQL 17 on MAINTAIN on all tables"
)
"""For a role whose erasures leave their text to autovacuum."""


def orphan_problems(connection: Connection) -> Iterator[Problem]:
    """Yield a problem if there are vectors of erased texts, as an older version could leave them."""
    if count := vectors.count_orphans(connection):
        yield Problem(
            conversation=None,
            level="warning",
            what=f"there are {count} vectors of messages and notes that were erased or replaced",
            remedy="the next erasure, of any message or conversation, removes them",
        )


def vacuum_problems(connection: psycopg.Connection) -> Iterator[Problem]:
    """Yield a problem if the role may not vacuum the tables, so that erased text stays in them."""
    queries = [_OWNS]
    if connection.info.server_version >= _MAINTAIN_SINCE:
        queries.append(_MAINTAINS)
    if not any(connection.execute(query).fetchone() == (True,) for query in queries):
        yield Problem(
            conversation=None,
            level="info",
            what="text that this role erases stays in the tables' files until autovacuum gets to them",
            remedy=VACUUM_REMEDY,
        )


def write_problems(connection: psycopg.Connection, machine: SystemClock) -> Iterator[Problem]:
    """Yield the reason why a conversation cannot be written, if there is one."""
    connection.read_only = None
    try:
        with connection.transaction(force_rollback=True):
            begin(connection, machine)
            key = connection.execute(_WRITE).fetchone()
            connection.execute("INSERT INTO states (conversation) VALUES (%s)", key)
            connection.execute(_PLAN, key)
    except psycopg.Error as error:
        yield Problem(
            conversation=None,
            level="warning" if isinstance(error, errors.ReadOnlySqlTransaction) else "error",
            what=f"nothing can be written: {reason(error)}",
            remedy=find_remedy(error) or "see the log of the server",
        )
