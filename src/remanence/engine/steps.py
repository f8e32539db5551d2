"""Outcomes of the engine's steps."""

from datetime import datetime
from enum import Enum
from typing import Literal, NamedTuple, TypeAlias

StepName: TypeAlias = Literal["observe", "reflect", "facts"]


class Outcome(Enum):
    """The outcome of a step: look again, nothing due yet, or leased by another process."""

    PROGRESS = "progress"
    IDLE = "idle"
    LEASED = "leased"


class Step(NamedTuple):
    """The outcome of a step, and the time of the next look if it is due later.

    `error` is an error that ended the look: one outside of the steps, or of the database.
    """

    outcome: Outcome
    until: datetime | None = None
    error: Exception | None = None


IDLE = Step(Outcome.IDLE)
PROGRESS = Step(Outcome.PROGRESS)
LEASED = Step(Outcome.LEASED)


def wait(until: datetime) -> Step:
    """Return the outcome of a step that is due later."""
    return Step(Outcome.IDLE, until)
