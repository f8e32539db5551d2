"""The process that opened something: its threads and connections do not survive a fork."""

import os

from remanence.errors import Closed


class OwnProcess:
    """The process that makes it, and not one that is forked from it later."""

    def __init__(self) -> None:
        self._id = os.getpid()

    @property
    def is_this(self) -> bool:
        """True unless the process was forked since."""
        return os.getpid() == self._id

    def require_this(self) -> None:
        """Raise `Closed` in a process that was forked since, where no thread would answer."""
        if not self.is_this:
            raise Closed(
                f"this was opened in process {self._id}, and process {os.getpid()} was forked from "
                "it: close it before the fork, and open it in the child"
            )
