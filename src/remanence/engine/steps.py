"""What a step of the engine came to."""

from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from typing import Literal, NamedTuple, TypeAlias

StepName: TypeAlias = Literal["observe", "reflect", "facts"]


class Outcome(Enum):
    """What a step came to: look again, nothing due, due later, or being done by another process."""

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
        """Whether the next kind of step may be looked at."""
        return self.outcome in (Outcome.IDLE, Outcome.WAIT)


IDLE = Step(Outcome.IDLE)
PROGRESS = Step(Outcome.PROGRESS)
LEASED = Step(Outcome.LEASED)


def wait(until: datetime) -> Step:
    """A step that is due later."""
    return Step(Outcome.WAIT, until)


def soonest(steps: Sequence[Step]) -> Step:
    """Of steps that did nothing, the one that is due first."""
    times = [step.until for step in steps if step.until is not None]
    return wait(min(times)) if times else IDLE
