"""The limit of open files of the process, and the share of it that clients may use."""

import sys
from contextlib import suppress
from typing import Final

if sys.platform != "win32":
    import resource

OPEN_MAX: Final = 10_240
"""The limit that macOS grants a process whose hard limit is unlimited."""

_RESERVED: Final = 64
"""For databases, logs and the like; a request through a proxy also needs a file for its provider."""
_MIN_CONNECTIONS: Final = 8


def raise_limit() -> None:
    """Raise the soft limit of open files to the hard limit, or to that of the system."""
    if sys.platform != "win32":
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if finite(soft) < finite(hard):
            with suppress(OSError, ValueError):  # macOS may refuse what its hard limit allows
                resource.setrlimit(resource.RLIMIT_NOFILE, (finite(hard), hard))


def finite(limit: int) -> int:
    """Return a limit, or `OPEN_MAX` in place of an unlimited one."""
    return OPEN_MAX if sys.platform == "win32" or limit == resource.RLIM_INFINITY else limit


def max_connections() -> int:
    """Return the number of connections of clients that leaves files for everything else."""
    limit = OPEN_MAX
    if sys.platform != "win32":
        limit = finite(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    return max(_MIN_CONNECTIONS, (limit - _RESERVED) // 2)
