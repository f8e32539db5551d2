"""Outcomes of the engine's steps."""

from datetime import datetime
from enum import Enum
from typing import Literal, NamedTuple, TypeAlias

StepName: TypeAlias = Literal["observe", "reflect", "facts"]


class Outcome(Enum):
    """The outcome of a step: look again, nothing due yet, or done by another process."""

    PROGRESS = "progress"
    IDLE = "idle"
    LEASED = "leased"


class Step(NamedTuple):
    """The outcome of a step; of one that is due later, the time of the next look.

    `error` is what stopped a look: an error outside of the steps, or of the database.
    """

    outcome: Outcome
    until: datetime | None = None
    error: Exception | None = None


IDLE = Step(Outcome.IDLE)
PROGRESS = Step(Outcome.PROGRESS)
LEASED = Step(Outcome.LEASED)


def wait(until: datetime) -> Step:
    """A step that is due later."""
    return Step(Outcome.IDLE, until)
