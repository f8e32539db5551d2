"""Connection options for PostgreSQL."""

from typing import Final

from psycopg.conninfo import conninfo_to_dict, make_conninfo

_DEFAULTS: Final = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "2",
    "tcp_user_timeout": "15000",
    "fallback_application_name": "remanence",  # without one in the URL or PGAPPNAME
}


def connection_string(url: str) -> str:
    """Return a URL's options, with our name, and timeouts that detect a vanished server within 20 s.

    By default, a call on an open connection waits as long as the kernel retransmits its packets,
    some 15 minutes on Linux. Text is always exchanged as UTF-8, as other encodings lack characters.
    """
    given = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    return make_conninfo(**{**_DEFAULTS, **given, "client_encoding": "UTF8"})
