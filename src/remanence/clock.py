"""Time and ids, passed in so that a test can control them."""

import random
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

TOLERANCE: Final = timedelta(seconds=1)


class Clock(Protocol):
    """The source of time and ids. Safe to call from any thread."""

    def now(self) -> datetime:
        """The current time, timezone-aware, in UTC."""

    def new_id(self, kind: str) -> str:
        """Return a new id that starts with *kind*, globally unique, sortable by time of creation."""


class SystemClock:
    """The machine's clock and random ids.

    The store of a server corrects it, so that the machines that share a database agree on the time.
    """

    _ahead = timedelta()

    def now(self) -> datetime:
        return self.machine_time() - self._ahead

    def machine_time(self) -> datetime:
        """The time of this machine, without a correction."""
        return datetime.now(UTC)

    def follow(self, server_time: datetime, *, asked_at: datetime) -> None:
        """Agree with a server that answered *server_time* after the machine's time *asked_at*.

        The machine is as far ahead as the length of the question proves; less than a second of
        difference is left alone.
        """
        least, most = asked_at - server_time, self.machine_time() - server_time
        proven = min(max(self._ahead, least), most)
        if abs(proven - self._ahead) > TOLERANCE:
            self._ahead = proven

    def new_id(self, kind: str) -> str:
        milliseconds = int(self.now().timestamp() * 1000)
        # Not a secret, and seeded anew in a forked process; a call to the system costs much more.
        return f"{kind}_{milliseconds:012x}{random.getrandbits(48):012x}"
