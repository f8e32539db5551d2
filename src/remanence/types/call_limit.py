"""Limits of the calls of a model that all processes on a database share."""

from datetime import datetime
from typing import NamedTuple


class CallPermit(NamedTuple):
    """The permission to call a model now, or, with *wait_until*, the time to ask again.

    `tests_pause` is set where the call tests if a pause is over: an answer ends the pause that lasts
    until that time.
    """

    wait_until: datetime | None = None
    tests_pause: datetime | None = None


class ModelPause(NamedTuple):
    """A pause of the calls of a model that its provider asked for."""

    model: str
    until: datetime
