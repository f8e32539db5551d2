"""Stores for tapes: one backend per URL scheme, imported on demand."""

import asyncio
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Literal

from remanence.background import finish, start_beside
from remanence.clock import Clock, SystemClock
from remanence.errors import InvalidArgument, StoreUnavailable, needs_extra
from remanence.protocols import Store
from remanence.stores.url import mask_password

__all__ = ["mask_password", "open_store"]

_KNOWN = (
    "sqlite:///relative.db, sqlite:////absolute/path.db, sqlite:///:memory: or "
    "postgresql://user@host/database"
)


async def open_store(
    url: str,
    *,
    clock: Clock | None = None,
    durability: Literal["full", "normal"] = "full",
    pragmas: Mapping[str, str | int] | None = None,
    read_only: bool = False,
    any_version: bool = False,
) -> Store:
    """Open the database at *url*, and create or migrate it if needed.

    With *read_only*, a database in a file must exist, no file is changed, and writes are refused.
    With *any_version* as well, a file of another version of remanence is opened, only for `backup`.

    Messages that `append` returned survive a killed process, and with durability `full` also a
    power cut. *pragmas* are set on each SQLite connection.

    Raises:
        StoreUnavailable: the database cannot be opened or written; the message names the remedy.
        NotADatabase: the file is not a SQLite database, or it is encrypted; or read-only, the
            database has no tables.
        InvalidArgument: *durability* or *pragmas* were given for PostgreSQL.
        NewerSchema: a later version of remanence migrated the database.
    """
    if not isinstance(url, str | Path):
        raise InvalidArgument(
            f"a value of type {type(url).__name__} is neither a URL nor an open Store: use {_KNOWN}"
        )
    if isinstance(url, Path) or "://" not in url:
        path = mask_password(str(url))
        if "=" in path:  # parameters of libpq
            raise StoreUnavailable(
                f"store {path!r} is not a URL: write 'postgresql://user:password@host/database'"
            )
        meant = path.removeprefix("sqlite:")
        name = (meant if meant == path else meant.lstrip("/")) or "memory.db"
        raise StoreUnavailable(
            f"store {path!r} is not a URL: write 'sqlite:///{name}' for a file of that name"
        )
    clock = clock or SystemClock()
    scheme, _, rest = url.partition("://")
    if scheme in ("postgresql", "postgres"):
        if durability != "full" or pragmas:
            raise InvalidArgument(
                f"durability={durability!r} and pragmas={pragmas!r} are settings of SQLite: leave them "
                "out; a PostgreSQL server has its own, such as synchronous_commit"
            )
        with needs_extra("postgres"):
            from remanence.stores.postgres import open_postgres

        return await _open_in_thread(partial(open_postgres, url, clock=clock, read_only=read_only))
    if scheme != "sqlite":
        raise StoreUnavailable(f"store {mask_password(url)!r} has an unknown scheme: use {_KNOWN}")
    if not rest.startswith("/") or rest == "/":
        raise StoreUnavailable(f"store {url!r} names no file: use {_KNOWN}")
    if re.search(r"\?(?:\w+=|\w*$)", rest):
        raise StoreUnavailable(
            f"store {url!r} has parameters, which SQLite URLs do not take: leave them out; "
            "read_only=True opens an existing file without changing it"
        )

    from remanence.stores.sqlite import Database, SQLiteStore

    database = Database(
        path=rest[1:],
        durability=durability,
        pragmas=pragmas or {},
        read_only=read_only,
        any_version=any_version,
    )
    store = SQLiteStore(database, clock=clock)
    await store.open()
    return store


async def _open_in_thread(open_now: Callable[[], Store]) -> Store:
    """Open a store in a thread; on cancellation, wait for the thread and close the store."""
    opening = start_beside(asyncio.to_thread(open_now), name="remanence-open")
    try:
        return await finish(opening)
    except asyncio.CancelledError:
        if opening.exception() is None:
            await finish(start_beside(opening.result().close(), name="remanence-close"))
        raise
