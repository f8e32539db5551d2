"""A write probe that leaves nothing behind."""

from remanence.stores.sqlite.fts import Connection


def probe_writing(connection: Connection) -> None:
    """Write a row to the log on disk, without a sync, and roll it back."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        "INSERT INTO conversations (tenant, id, created_at) "
        "VALUES ('', 'probe ' || hex(randomblob(16)), '')"
    )
    connection.cache_flush()  # a transaction is otherwise written when it commits
    connection.execute("ROLLBACK")
