"""The options by which every connection to a PostgreSQL server is made."""

from typing import Final

from psycopg.conninfo import conninfo_to_dict, make_conninfo

_NETWORK: Final = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "2",
    "tcp_user_timeout": "15000",
}


def connection_string(url: str) -> str:
    """Return the options of a URL, and others by which a server that vanished is noticed within 20 s.

    Without them a call on an open connection waits for as long as the kernel repeats its packets,
    some 15 minutes on Linux.
    """
    given = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    return make_conninfo(**{**_NETWORK, **given})
