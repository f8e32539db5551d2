"""The error of jobs that get no connection."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from procrastinate.exceptions import ConnectorException
from psycopg_pool import PoolTimeout

from remanence.errors import StoreUnavailable

_MORE_CONNECTIONS: Final = (
    "check that the server runs and can be reached; if many processes share its connections, run fewer "
    "workers, or raise max_connections of the server or CONNECTION LIMIT of the role and the database"
)


@contextmanager
def name_remedy() -> Iterator[None]:
    """Raise `StoreUnavailable` with what to do if the block gets no connection."""
    try:
        yield
    except (PoolTimeout, ConnectorException) as error:
        reason = error if isinstance(error, PoolTimeout) else error.__cause__
        if not isinstance(reason, PoolTimeout):
            raise
        raise StoreUnavailable(f"no connection for jobs ({reason}): {_MORE_CONNECTIONS}") from error
