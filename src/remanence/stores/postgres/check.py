"""Check that a database is writable, by inserting rows and rolling back."""

from collections.abc import Iterator

import psycopg
from psycopg import errors

from remanence.stores.postgres.errors import find_remedy, is_replica, reason
from remanence.types import Problem

_WRITE = """
WITH probe AS (
  INSERT INTO conversations (tenant, id, created_at)
  VALUES ('', 'probe ' || gen_random_uuid(), '') RETURNING key
), content AS (
  SELECT string_agg(md5(random()::text), '') AS text FROM generate_series(1, 4000)
)
INSERT INTO messages (conversation, seq, id, role, kind, content, created_at, tokens, sum_tokens)
SELECT key, 1, '', 'user', 'message', text, '', 0, 0 FROM probe, content
"""
"""Large enough to make the tables' files grow."""


def write_problems(connection: psycopg.Connection) -> Iterator[Problem]:
    """Yield the reason why a conversation cannot be written, if there is one."""
    connection.read_only = False
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(_WRITE)
    except psycopg.Error as error:
        for_readers = isinstance(error, errors.InsufficientPrivilege) or is_replica(error)
        yield Problem(
            conversation=None,
            level="warning" if for_readers else "error",
            what=f"nothing can be written: {reason(error)}",
            remedy=find_remedy(error) or "see the log of the server",
        )
