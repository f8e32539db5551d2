"""Limits of the calls of a model that all processes on a database share."""

from datetime import datetime
from typing import NamedTuple


class CallPermit(NamedTuple):
    """The permission to call a model now, or, with *wait_until*, the time to ask again.

    `tests_pause`: the call is the first after a pause of that name; an answer to it ends the pause.
    """

    wait_until: datetime | None = None
    tests_pause: datetime | None = None


class ModelPause(NamedTuple):
    """A pause of the calls of a model that its provider asked for."""

    model: str
    until: datetime
