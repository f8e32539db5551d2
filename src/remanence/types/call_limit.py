"""Rate limits of a model, shared by all processes on a database."""

from datetime import datetime
from typing import NamedTuple


class CallPermit(NamedTuple):
    """The permission to call a model now, or with `wait_until` the time to ask again.

    `tests_pause` is set if the call tests whether a pause is over: an answer ends the pause until
    that time.
    """

    wait_until: datetime | None = None
    tests_pause: datetime | None = None


class ModelPause(NamedTuple):
    """A pause in the calls of a model, which its provider asked for."""

    model: str
    until: datetime
