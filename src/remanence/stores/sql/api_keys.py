"""API keys for clients of the service."""

from datetime import datetime

from remanence.stores.rows import API_KEYS, encode_instant
from remanence.stores.sql.connection import Connection
from remanence.types import APIKey


def save(connection: Connection, key: APIKey) -> None:
    connection.execute(
        f"INSERT INTO api_keys ({API_KEYS.columns}) VALUES ({API_KEYS.places})",  # noqa: S608 - constants
        API_KEYS.encode(key),
    )


def get(connection: Connection, key_id: str) -> APIKey | None:
    row = connection.execute(
        f"SELECT {API_KEYS.columns} FROM api_keys WHERE id = ?",  # noqa: S608 - constants
        (key_id,),
    ).fetchone()
    return None if row is None else API_KEYS.decode(row)


def list_keys(connection: Connection) -> tuple[APIKey, ...]:
    rows = connection.execute(
        f"SELECT {API_KEYS.columns} FROM api_keys ORDER BY created_at, id"  # noqa: S608 - constants
    )
    return tuple(map(API_KEYS.decode, rows))


def revoke(connection: Connection, key_id: str, *, at: datetime) -> bool:
    connection.execute(
        "UPDATE api_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL",
        (encode_instant(at), key_id),
    )
    return connection.changes() == 1
