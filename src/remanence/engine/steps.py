"""What a step of the engine came to."""

from collections.abc import Sequence
from enum import Enum
from typing import Literal, NamedTuple, TypeAlias

StepName: TypeAlias = Literal["observe", "reflect", "facts"]


class Outcome(Enum):
    """What a step came to: done, nothing due, due later, or being done by another process."""

    PROGRESS = "progress"
    IDLE = "idle"
    WAIT = "wait"
    LEASED = "leased"


class Step(NamedTuple):
    """The outcome of a step, and how many seconds until another look makes sense."""

    outcome: Outcome
    wait_seconds: float = 0.0

    @property
    def did_nothing(self) -> bool:
        """Whether the next kind of step may be looked at."""
        return self.outcome in (Outcome.IDLE, Outcome.WAIT)


IDLE = Step(Outcome.IDLE)
PROGRESS = Step(Outcome.PROGRESS)


def soonest(steps: Sequence[Step]) -> Step:
    """Of steps that did nothing, the one that is due first."""
    waiting = [step for step in steps if step.outcome is Outcome.WAIT]
    return min(waiting, key=lambda step: step.wait_seconds, default=IDLE)
