"""A probe of writing, which leaves nothing behind."""

from remanence.stores.sqlite.fts import Connection


def probe_writing(connection: Connection) -> None:
    """Write a row as far as the log on disk, and roll it back; nothing is synchronised."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        "INSERT INTO conversations (tenant, id, created_at) "
        "VALUES ('', 'probe ' || hex(randomblob(16)), '')"
    )
    connection.cache_flush()  # a transaction is otherwise written when it commits
    connection.execute("ROLLBACK")
