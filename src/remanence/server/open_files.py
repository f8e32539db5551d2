"""The limit of open files of the process, and the share of it that clients may use."""

import sys
from contextlib import suppress
from typing import Final

if sys.platform != "win32":
    import resource

_RESERVED: Final = 64
"""For databases, logs and the like; a request through a proxy also needs a file for its provider."""
_MIN_CONNECTIONS: Final = 8
_UNLIMITED: Final = 1_000_000


def raise_limit() -> None:
    """Raise the soft limit of open files to the hard limit."""
    if sys.platform != "win32":
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        with suppress(OSError, ValueError):  # macOS refuses an unlimited number
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def max_connections() -> int:
    """Return the number of connections of clients that leaves files for everything else."""
    limit = _UNLIMITED
    if sys.platform != "win32":
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        limit = _UNLIMITED if soft == resource.RLIM_INFINITY else soft
    return max(_MIN_CONNECTIONS, (limit - _RESERVED) // 2)
