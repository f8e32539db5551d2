"""Outcomes of the engine's steps."""

from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from typing import Literal, NamedTuple, TypeAlias

StepName: TypeAlias = Literal["observe", "reflect", "facts"]


class Outcome(Enum):
    """The outcome of a step: look again, nothing due, due later, or done by another process."""

    PROGRESS = "progress"
    IDLE = "idle"
    WAIT = "wait"
    LEASED = "leased"


class Step(NamedTuple):
    """The outcome of a step; of one that waits, the time of the next look."""

    outcome: Outcome
    until: datetime | None = None

    @property
    def did_nothing(self) -> bool:
        """True if the next kind of step may be tried."""
        return self.outcome in (Outcome.IDLE, Outcome.WAIT)


IDLE = Step(Outcome.IDLE)
PROGRESS = Step(Outcome.PROGRESS)
LEASED = Step(Outcome.LEASED)


def wait(until: datetime) -> Step:
    """A step that is due later."""
    return Step(Outcome.WAIT, until)


def soonest(steps: Sequence[Step]) -> Step:
    """Return the earliest due of several steps that did nothing."""
    times = [step.until for step in steps if step.until is not None]
    return wait(min(times)) if times else IDLE
