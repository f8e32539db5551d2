"""Opening a database file: checks, pragmas and migrations."""

import contextlib
import functools
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import quote

import apsw

from remanence.clock import Clock, SystemClock
from remanence.errors import NotADatabase, StoreUnavailable
from remanence.files import expand_home
from remanence.stores import migrate
from remanence.stores.rows import encode_instant
from remanence.stores.sqlite.errors import NO_DATABASE, UNWRITABLE
from remanence.stores.sqlite.fts import Connection, word_counts

Durability: TypeAlias = Literal["full", "normal"]

MEMORY = ":memory:"
APPLICATION_ID = 0x72656D61  # "rema"
_HEADER_BYTES = 100
_FILE_MODE = 0o600
_ANY_WRITE = 0o222
_BUSY_MILLISECONDS = 5_000
_PROBE_MILLISECONDS = 2_000
"""Shorter than the readiness timeout, so that a lock is reported as the reason."""

_MIGRATIONS = "remanence.stores.sqlite"


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """A database file and the setup of its connections; `pragmas` are run last on each.

    With *any_version*, a read-only database is not checked for tables of another version.
    """

    path: str
    durability: Durability = "full"
    pragmas: Mapping[str, str | int] = field(default_factory=dict)
    read_only: bool = False
    any_version: bool = False

    def __post_init__(self) -> None:
        if not self.in_memory:  # the process may change its directory
            object.__setattr__(self, "path", str(expand_home(self.path).absolute()))
            require_text_path(self.path)

    @property
    def in_memory(self) -> bool:
        return self.path == MEMORY

    @property
    def busy_milliseconds(self) -> int:
        """Milliseconds that a connection waits for another connection's lock."""
        return int(self.pragmas.get("busy_timeout", _BUSY_MILLISECONDS))

    def open_writer(self, clock: Clock) -> Connection:
        """Open the writing connection; create, adopt or migrate the file as needed."""
        if not self.in_memory:
            _check_path(self.path, read_only=False)
            create_private(self.path)
        with _closed_on_error(Connection(self.path)) as connection:
            connection.set_busy_timeout(self.busy_milliseconds)
            _refuse_foreign(connection, self.path)
            self._set_up(connection)
            if self.in_memory:
                _copy_new(connection, clock)
            else:
                _migrate(connection, self.path, clock)
            _use_wal(connection, self.busy_milliseconds)
            return connection

    def open_reader(self) -> Connection:
        """Open a read-only connection to a database that the writer has opened."""
        milliseconds = self.busy_milliseconds
        if self.read_only:
            _check_path(self.path, read_only=True)
            connection = _open_unwritable(self.path, milliseconds)
        else:
            flags = apsw.SQLITE_OPEN_READWRITE  # no CREATE: the file may have been removed
            connection = Connection(self.path, flags=flags)
        connection.set_busy_timeout(milliseconds)
        self._set_up(connection)
        connection.pragma("query_only", 1)
        return connection

    def open_probe(self) -> Connection:
        """Open a second writing connection, which gives up soon while the file is locked."""
        flags = apsw.SQLITE_OPEN_READWRITE  # no CREATE: the file may have been removed
        milliseconds = min(self.busy_milliseconds, _PROBE_MILLISECONDS)
        with _closed_on_error(Connection(self.path, flags=flags)) as connection:
            connection.set_busy_timeout(milliseconds)  # the set-up reads the file
            self._set_up(connection)
            connection.set_busy_timeout(milliseconds)  # instead of that of the pragmas
            return connection

    def open_unwritten(self) -> Connection:
        """Open a connection without a writer; the file must be a database, normally of this version."""
        with _closed_on_error(self.open_reader()) as connection:
            _refuse_foreign(connection, self.path)
            if not self.any_version and _due(connection, self.path):
                raise StoreUnavailable(
                    f"{self.path!r} has tables of an earlier version: run 'remanence migrate' on it, or "
                    "on a writable copy"
                )
            return connection

    def _set_up(self, connection: Connection) -> None:
        # Otherwise SQLite prepares a join again for each call, in case new values need a new plan.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        connection.pragma("synchronous", self.durability)
        connection.pragma("foreign_keys", 1)
        connection.pragma("secure_delete", 1)
        connection.register_fts5_function("word_counts", word_counts)
        for name, value in self.pragmas.items():
            connection.pragma(name, value)


@contextlib.contextmanager
def _closed_on_error(connection: Connection) -> Iterator[Connection]:
    try:
        yield connection
    except BaseException:
        connection.close()
        raise


def require_text_path(path: str) -> None:
    """Raise `StoreUnavailable` for a path that is not Unicode, as SQLite takes no other."""
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise StoreUnavailable(
            f"{path!r} is not a text in the encoding of this locale: choose a locale that has its "
            "characters, such as LC_ALL=C.UTF-8, or another path"
        ) from error


def create_private(path: str) -> None:
    """Create a file that only its owner can read; SQLite copies its mode to its WAL and SHM files."""
    with contextlib.suppress(OSError):  # the file exists, or SQLite reports the error
        target = os.path.realpath(path)  # O_EXCL follows no link, but SQLite does
        os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, _FILE_MODE))


def _open_unwritable(path: str, busy_milliseconds: int) -> Connection:
    """Open an existing file, even if neither it nor its directory is writable.

    A process that opens or closes the file locks it for a moment, which this waits for.

    Raises:
        StoreUnavailable: the write-ahead log of another process cannot be read from here.
    """
    log = Path(f"{path}-wal")
    if not (Path(path).stat().st_mode & _ANY_WRITE or _size(log)):
        return _Immutable(path)  # SQLite would leave a log with this mode, which blocks writers
    try:
        # READONLY would leave shared-memory files behind; SQLite falls back to it if needed.
        flags = apsw.SQLITE_OPEN_READWRITE
        with _closed_on_error(Connection(path, flags=flags)) as connection:
            connection.set_busy_timeout(busy_milliseconds)
            connection.execute("SELECT 1 FROM sqlite_schema").fetchone()
            return connection
    except (apsw.CantOpenError, apsw.ReadOnlyError) as error:
        if _size(log):
            raise StoreUnavailable(
                f"{path!r} has a write-ahead log, which can only be read in a writable directory: "
                f"copy the file and {log.name!r} to one"
            ) from error
        return _Immutable(path)


class _Immutable(Connection):
    """A connection to a file that nobody writes to: SQLite needs no memory shared with a writer."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._version = self._read_version()
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        super().__init__(f"file:{quote(path)}?immutable=1", flags=flags)

    def is_stale(self) -> bool:
        return self._read_version() != self._version

    def _read_version(self) -> tuple[int, int, int]:
        file = Path(self._path).stat()
        return file.st_mtime_ns, file.st_size, _size(Path(f"{self._path}-wal"))


def _size(file: Path) -> int:
    """Return the bytes of a file, and 0 for one that another process removed."""
    try:
        return file.stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return 0


def _check_path(path: str, *, read_only: bool) -> None:
    """Raise for an unusable path; SQLite's own errors say less, and it may leave files behind."""
    try:
        _check_file(path, read_only=read_only)
    except PermissionError as error:  # no right to search a directory of the path
        raise StoreUnavailable(
            f"{path!r} cannot be reached: make its directories accessible"
        ) from error
    except OSError as error:  # such as a name that is too long
        raise StoreUnavailable(
            f"{path!r} cannot be opened ({error.strerror}): name another file"
        ) from error


def _check_file(path: str, *, read_only: bool) -> None:
    file, directory = Path(path), Path(path).parent
    is_name = bool(path) and "\0" not in path
    if is_name:
        _require_file_of_log(path)
    if read_only and not (is_name and file.exists()):
        raise StoreUnavailable(f"there is no database at {path!r}: name another file")
    if not is_name:
        raise StoreUnavailable(f"{path!r} is not a file name: use sqlite:///name.db")
    if not directory.is_dir():
        what = "is a file" if directory.exists() else "does not exist"
        raise StoreUnavailable(
            f"the directory {str(directory)!r} of {path!r} {what}: create it, or name another path"
        )
    if file.is_dir():
        raise StoreUnavailable(f"{path!r} is a directory: name a file in it")
    _check_content(file, read_only=read_only)


def _require_file_of_log(path: str) -> None:
    """Raise if a write-ahead log has lost its database: SQLite would create another and delete the log."""
    log = Path(f"{os.path.realpath(path)}-wal")  # beside the target of a link
    if _size(log) and not _size(Path(path)):  # in this order: a new file is there before its log
        raise StoreUnavailable(
            f"{path!r} is missing or empty, but its write-ahead log {str(log)!r} is there, with the "
            "messages written last: put the database file back beside its log, or move the log away"
        )


def _check_content(file: Path, *, read_only: bool) -> None:
    path, exists = str(file), file.exists()
    if read_only and not os.access(file, os.R_OK):
        raise StoreUnavailable(f"{path!r} cannot be read: make it readable")
    is_writable = os.access(file.parent, os.W_OK) and (not exists or os.access(file, os.W_OK))
    if not (read_only or is_writable):
        raise StoreUnavailable(UNWRITABLE.format(path=path))
    size = _size(file)
    if read_only and not size:
        raise NotADatabase(
            f"{path!r} is an empty file, not a database: restore a backup, or delete the file and "
            "run 'remanence migrate' to create a new one"
        )
    if 0 < size < _HEADER_BYTES:  # SQLite treats such a file as empty
        raise NotADatabase(NO_DATABASE.format(path=path))


def _refuse_foreign(connection: Connection, path: str) -> None:
    connection.execute("BEGIN")  # all queries in one snapshot: another process may migrate now
    tables: int = connection.execute("SELECT count(*) FROM sqlite_schema").get
    own: int = connection.execute(
        "SELECT count(*) FROM sqlite_schema WHERE name IN ('schema_migrations', 'states', 'text_index')"
    ).get
    application_id = connection.pragma("application_id")
    connection.execute("COMMIT")
    # A dump leaves the id out.
    if application_id == APPLICATION_ID or (application_id == 0 and (not tables or own == 3)):
        return
    raise NotADatabase(
        f"{path!r} is the SQLite database of another application: name another file; "
        "nothing was changed"
    )


def _migrate(connection: Connection, path: str, clock: Clock) -> None:
    if not _due(connection, path):
        return
    # Checked again under the lock: another process may have migrated in between.
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in _due(connection, path):
            connection.execute(step.sql)
            connection.execute(
                "INSERT INTO schema_migrations (number, name, applied_at, version) "
                "VALUES (?, ?, ?, ?)",
                (step.number, step.name, encode_instant(clock.now()), migrate.installed_version()),
            )
        connection.pragma("application_id", APPLICATION_ID)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@functools.cache
def _new_database() -> bytes:
    """Return the bytes of a database without messages, which takes longer to make than to copy."""
    with contextlib.closing(Connection(MEMORY)) as connection:
        connection.register_fts5_function("word_counts", word_counts)
        _migrate(connection, MEMORY, SystemClock())
        return connection.serialize("main")


def _copy_new(connection: Connection, clock: Clock) -> None:
    """Give a database in memory its tables; no other connection sees it."""
    with contextlib.closing(Connection(MEMORY)) as new:
        new.deserialize("main", _new_database())
        with connection.backup("main", new, "main") as copy:
            copy.step()
    connection.execute(
        "UPDATE schema_migrations SET applied_at = ?", (encode_instant(clock.now()),)
    )


def _due(connection: Connection, path: str) -> tuple[migrate.Migration, ...]:
    applied: set[int] = set()
    # A query, because `table_exists` uses the schema from before the lock was taken.
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'schema_migrations'").get:
        applied = {row[0] for row in connection.execute("SELECT number FROM schema_migrations")}
    return migrate.due(migrate.load(_MIGRATIONS), applied, database=repr(path))


def _use_wal(connection: Connection, busy_milliseconds: int) -> None:
    """Switch to WAL, which needs exclusive access to the file and ignores the busy timeout."""
    deadline = time.monotonic() + busy_milliseconds / 1000
    while True:
        try:
            if connection.pragma("journal_mode") != "wal":
                connection.pragma("journal_mode", "wal")
            return
        except (apsw.BusyError, apsw.LockedError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
