"""Detection of forks, which threads and connections do not survive."""

import os

from remanence.errors import Closed


class OwnProcess:
    """Remembers the process that created it."""

    def __init__(self) -> None:
        self._id = os.getpid()

    @property
    def is_this(self) -> bool:
        """True in the same process, false in a forked child."""
        return os.getpid() == self._id

    def require_this(self) -> None:
        """Raise `Closed` in a forked child, where no thread would answer."""
        if not self.is_this:
            raise Closed(
                f"this was opened in process {self._id}, and process {os.getpid()} was forked from "
                "it: close it before the fork, and open it in the child"
            )
