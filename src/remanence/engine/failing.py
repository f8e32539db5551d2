"""Accounts of failed steps: the reason is kept, and the next try waits ever longer."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from remanence import telemetry
from remanence.clock import Clock
from remanence.engine.steps import IDLE, Outcome, Step, StepName
from remanence.errors import ModelError, ObservationRejected, ObservationSkipped
from remanence.observing.policy import Policy
from remanence.observing.schedule import is_latched, retry_delay
from remanence.protocols import Store
from remanence.types import Failure, MemoryState

LONGEST_ERROR = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """Records why a step failed or was left out, and when it may be tried again."""

    store: Store
    policy: Policy
    clock: Clock
    jitter: Callable[[], float] = random.random

    def until_next_try(self, state: MemoryState, failure: Failure | None, now: datetime) -> Step:
        """The wait after a failure; none where only new messages allow another try."""
        if failure is None or is_latched(self.policy, state, failure):
            return IDLE
        return Step(Outcome.WAIT, (failure.next_attempt_at - now).total_seconds())

    async def record(self, name: StepName, state: MemoryState, error: Exception) -> Step:
        """Keep what a step raised as its failure."""
        match error:
            case TimeoutError():
                seconds = self.policy.observe_timeout_seconds
                return await self._failed(name, state, "timeout", f"no answer within {seconds:g} s")
            case ObservationSkipped():
                return await self._skipped(name, state, error)
            case ObservationRejected():
                return await self._failed(name, state, error.reason, str(error))
            case ModelError():
                asked_seconds = error.retry_after_seconds or 0.0
                return await self._failed(
                    name, state, error.reason, str(error), asked_seconds=asked_seconds
                )
            case _:
                text = f"{type(error).__name__}: {error}"
                return await self._failed(name, state, "error", text)

    async def _failed(
        self,
        name: StepName,
        state: MemoryState,
        reason: str,
        message: str,
        *,
        asked_seconds: float = 0.0,
    ) -> Step:
        before = _failure(state, name)
        failures = (before.failures if before else 0) + 1
        now = self.clock.now()
        delay = retry_delay(
            self.policy, failures, jitter=self.jitter(), reason=reason, asked_seconds=asked_seconds
        )
        telemetry.step_failed(name, state.ref.id, reason, message, failures)
        return await self._kept(
            state,
            Failure(
                step=name,
                reason=reason,
                message=message[:LONGEST_ERROR],
                at=now,
                next_attempt_at=now + delay,
                failures=failures,
                last_seq=state.last_seq,
            ),
        )

    async def _skipped(self, name: StepName, state: MemoryState, skip: ObservationSkipped) -> Step:
        before = _failure(state, name)
        skips = (before.skips if before else 0) + 1
        now = self.clock.now()
        again_at = skip.until or now + retry_delay(self.policy, skips, jitter=self.jitter())
        telemetry.step_skipped(name, state.ref.id, skip.reason, str(skip))
        return await self._kept(
            state,
            Failure(
                step=name,
                reason=skip.reason,
                message=str(skip)[:LONGEST_ERROR],
                at=now,
                next_attempt_at=again_at,
                failures=0,
                last_seq=state.last_seq,
                skips=skips,
            ),
        )

    async def _kept(self, state: MemoryState, failure: Failure) -> Step:
        await self.store.record_failure(state, failure)
        return Step(Outcome.WAIT, (failure.next_attempt_at - failure.at).total_seconds())


def _failure(state: MemoryState, name: StepName) -> Failure | None:
    match name:
        case "observe":
            return state.observe_failure
        case "reflect":
            return state.reflect_failure
        case "facts":
            return state.facts_failure
