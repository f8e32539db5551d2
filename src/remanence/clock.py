"""The source of time and ids, which is passed in so that tests can control it."""

import random
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

TOLERANCE: Final = timedelta(seconds=1)
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class Clock(Protocol):
    """The source of time and ids. Safe to call from any thread."""

    def now(self) -> datetime:
        """Return the current time as an aware datetime in UTC."""

    def new_id(self, kind: str) -> str:
        """Return a globally unique id that starts with *kind* and sorts by creation time."""


class SystemClock:
    """The machine's clock and random ids.

    On a database server, the store adjusts it, so that machines sharing a database agree on the time.
    """

    _ahead = timedelta()

    def now(self) -> datetime:
        """Return the current time in UTC."""
        return self.machine_time() - self._ahead

    def machine_time(self) -> datetime:
        """Return the time of this machine, unadjusted."""
        return datetime.now(UTC)

    def follow(self, server_time: datetime, *, asked_at: datetime) -> None:
        """Adjust to *server_time*, the answer to a question asked at the machine's time *asked_at*.

        Only a difference that the round trip cannot explain counts, and only above one second.
        """
        least, most = asked_at - server_time, self.machine_time() - server_time
        proven = min(max(self._ahead, least), most)
        if abs(proven - self._ahead) > TOLERANCE:
            self._ahead = proven

    def new_id(self, kind: str) -> str:
        """Return a unique id that starts with *kind* and sorts by creation time."""
        milliseconds, microseconds = divmod((self.now() - _EPOCH) // _MICROSECOND, 1000)
        # `random` suffices: ids are not secret, it is reseeded after a fork, and urandom is slower.
        return f"{kind}_{milliseconds:012x}{microseconds:03x}{random.getrandbits(36):09x}"


def render_time(at: datetime, *, now: datetime) -> str:
    """Return a time in UTC to the second, with its date unless that is the date of *now*."""
    date = "" if at.date() == now.date() else f"{at:%Y-%m-%d} "
    return f"{date}{at:%H:%M:%S} UTC"
