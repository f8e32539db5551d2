"""Backoff after failed steps, and the record of their reasons."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from remanence import telemetry
from remanence.clock import Clock
from remanence.engine.steps import IDLE, Step, StepName, wait
from remanence.errors import ModelError, ObservationRejected, ObservationSkipped, StoreError
from remanence.policy.policy import Policy
from remanence.policy.schedule import (
    DEFERRED,
    effect_of,
    failure_by,
    is_latched,
    is_outage,
    retry_delay,
)
from remanence.protocols import Store
from remanence.types import FailedStretch, Failure, MemoryState, Message
from remanence.wire.boundaries import groups
from remanence.wire.message_rules import storable

MAX_ERROR = 500


class _Cause(NamedTuple):
    """The cause of a failed attempt: a short code, a message, and a text for logs without quotes.

    Clients of a service read the message, so it has no address of a model or a database.
    """

    reason: str
    message: str
    log_text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Records failed and skipped steps, and schedules the next attempt."""

    store: Store
    policy: Policy
    clock: Clock
    jitter: Callable[[], float] = random.random

    def until_next_try(self, state: MemoryState, failure: Failure | None) -> Step:
        """Return the wait after a failure; idle if only new messages allow another attempt."""
        if failure is None or is_latched(self.policy, state, failure):
            return IDLE
        return wait(failure.next_attempt_at)

    async def record(
        self, name: StepName, state: MemoryState, error: Exception, *, made_by: str
    ) -> datetime:
        """Record the failure of a step by *made_by*, and return the time of the next attempt."""
        before = state.failure_of(name)
        failures = skips = deferrals = rejections = timeouts = 0
        last_seq = state.last_seq
        if before is not None and before.made_by in ("", made_by):
            failures, skips, deferrals = before.failures, before.skips, before.deferrals
            rejections, timeouts = before.rejections, before.timeouts
        reason, message, log_text = self._cause(error)
        now = self.clock.now()
        asked_seconds = (isinstance(error, ModelError) and error.retry_after_seconds) or 0.0
        if reason == DEFERRED:
            deferrals += 1
            last_seq = before.last_seq if before is not None else last_seq
            next_at = now + timedelta(seconds=asked_seconds)
            telemetry.step_skipped(name, state.ref.id, reason, message)
        elif isinstance(error, ObservationSkipped):
            failures, skips, deferrals = 0, skips + 1, 0
            next_at = now + retry_delay(self.policy, skips, jitter=self.jitter())
            if error.until is not None and error.until > now:
                next_at = error.until
            telemetry.step_skipped(name, state.ref.id, reason, message)
        else:
            failures, skips, deferrals = failures + 1, 0, 0
            is_rejected = not is_outage(reason, made_by)
            rejections += is_rejected
            timeouts += reason == "timeout" and not is_rejected
            next_at = now + retry_delay(
                self.policy,
                failures,
                jitter=self.jitter(),
                reason=reason,
                asked_seconds=asked_seconds,
            )
            effect = effect_of(self.policy, name, failures)
            telemetry.step_failed(
                name, state.ref.id, reason, message, failures, cause=log_text, effect=effect
            )
        failure = Failure(
            step=name,
            reason=reason,
            message=message,
            at=now,
            next_attempt_at=next_at,
            failures=failures,
            last_seq=last_seq,
            skips=skips,
            rejections=rejections,
            timeouts=timeouts,
            deferrals=deferrals,
            made_by=made_by,
        )
        await self.store.record_failure(state, failure)
        return next_at

    def give_up_if_exhausted(
        self,
        name: Literal["observe", "facts"],
        state: MemoryState,
        messages: Sequence[Message],
        error: Exception,
        *,
        made_by: str,
    ) -> FailedStretch | None:
        """Return the failed stretch to record if a step gives up the messages, otherwise None.

        They are given up once they are a single run and *made_by* has failed on it more than
        `max_failures` times, not counting outages.
        """
        failure = failure_by(state, name, made_by)
        rejections = failure.rejections if failure else 0
        is_last = rejections >= self.policy.max_failures and len(list(groups(messages))) == 1
        if self.is_outage(error, made_by=made_by) or not is_last:
            return None
        reason, message, log_text = self._cause(error)
        telemetry.step_failed(name, state.ref.id, reason, message, rejections + 1, cause=log_text)
        return FailedStretch(messages[0].seq, messages[-1].seq, reason, message[:MAX_ERROR])

    def is_outage(self, error: Exception, *, made_by: str) -> bool:
        """Return whether another attempt may succeed later with the same messages."""
        if isinstance(error, ObservationSkipped | StoreError):
            return True
        return is_outage(self._cause(error).reason, made_by)

    def log(self, state: MemoryState, error: Exception, *, effect: str = "") -> None:
        """Log a failed attempt to observe a stretch again, with its *effect*."""
        reason, message, log_text = self._cause(error)
        telemetry.step_failed(
            "observe", state.ref.id, reason, message, 1, cause=log_text, effect=effect
        )

    def _cause(self, error: Exception) -> _Cause:
        """Return the cause with texts that every store takes, as a failure must be recorded."""
        return _Cause(*map(storable, self._raw_cause(error)))

    def _raw_cause(self, error: Exception) -> _Cause:
        match error:
            case StoreError():
                return _Cause("store", error.public, str(error))
            case TimeoutError():
                text = f"no answer within {self.policy.observe_timeout_seconds:g} s"
                return _Cause("timeout", text, text)
            case ModelError():
                return _Cause(error.reason, error.public, error.log_text)
            case ObservationRejected() | ObservationSkipped():
                return _Cause(error.reason, str(error))
            case _:
                name = type(error).__name__
                return _Cause("error", f"{name}: {error}", name)


def maker_name(maker: object) -> str:
    """Return the name of an observer, reflector or extractor: its model or its type."""
    name = getattr(maker, "name", None)
    return name if isinstance(name, str) else type(maker).__qualname__
