"""Diagnosis of overdue, failing or stuck work of a conversation, with remedies."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from remanence.policy.policy import Policy
from remanence.policy.schedule import is_latched, observation_due
from remanence.types import BudgetState, ConversationRef, Failure, MemoryState, ModelPause, Problem


def diagnose(
    policy: Policy, state: MemoryState, *, now: datetime, lease_seconds: float
) -> Iterator[Problem]:
    """Yield the problems of one conversation that an operator should know about.

    Due work is judged by the look scheduled in the state, or by *policy* if there is none yet.
    """
    for failure in (state.observe_failure, state.reflect_failure, state.facts_failure):
        if failure is not None:
            yield _failing(policy, state, failure)
    if (lease := _lease_problem(state, now, lease_seconds)) is not None:
        yield lease
    if state.observe_failure is None and (due := _due(policy, state, now)):
        yield Problem(
            conversation=state.ref,
            level="info",
            what=due,
            remedy="open the memory in a running program, or run 'remanence inspect ID --flush'",
        )


def _lease_problem(state: MemoryState, now: datetime, lease_seconds: float) -> Problem | None:
    """Return a problem for a lease that expired unreleased, or that ends implausibly late."""
    owner, until = state.lease_owner, state.lease_until
    if owner is None or until is None:
        return None
    if until <= now:
        return Problem(
            conversation=state.ref,
            level="info",
            what=f"process {owner!r} stopped while working on this conversation",
            remedy="nothing to do: its lease has expired, and another process may take over",
        )
    if until <= now + timedelta(seconds=lease_seconds):
        return None
    ahead_seconds = (until - now).total_seconds()
    return Problem(
        conversation=state.ref,
        level="warning",
        what=f"the lease of process {owner!r} ends at {until:%Y-%m-%d %H:%M:%S} UTC, in "
        f"{ahead_seconds:,.0f} s, which is more than lease_seconds={lease_seconds:g}",
        remedy="compare the clocks of the machines, and the lease_seconds of the programs; other "
        "processes respect the lease for lease_seconds only",
    )


def _due(policy: Policy, state: MemoryState, now: datetime) -> str | None:
    waiting = f"{state.unobserved_tokens:,} tokens wait to be observed"
    if not state.look_tokens:  # no work has been planned yet
        return waiting if observation_due(policy, state) else None
    if state.look_at is None or state.look_at > now:
        return None
    if state.last_sum_tokens > state.look_tokens:
        return waiting
    return f"background work has been due since {state.look_at:%Y-%m-%d %H:%M} UTC"


def diagnose_budget(ref: ConversationRef, state: BudgetState) -> Iterator[Problem]:
    """Yield a problem if a budget that the conversation draws on is at a limit."""
    if state.level == "ok":
        return
    yield Problem(
        conversation=ref,
        level="warning",
        what=f"the {state.budget.scope} budget is at its {state.level} limit: "
        f"{state.spent_usd:.4f} USD, {state.spent_tokens:,} tokens",
        remedy="raise the budget, use a cheaper model, or look at 'remanence usage'",
    )


def diagnose_pause(pause: ModelPause) -> Problem:
    """Return a problem for a model's pause, which ends by itself."""
    return Problem(
        conversation=None,
        level="info",
        what=f"calls of {pause.model} are paused until {pause.until:%Y-%m-%d %H:%M:%S} UTC, as its "
        "provider asked",
        remedy="messages stay raw meanwhile; calls_per_minute or input_tokens_per_minute below the "
        "provider's limits avoid it",
    )


def _failing(policy: Policy, state: MemoryState, failure: Failure) -> Problem:
    next_at = f"at {failure.next_attempt_at:%Y-%m-%d %H:%M} UTC"
    cause = f"{failure.reason}: {failure.message}"
    if failure.left_out:
        return Problem(
            conversation=state.ref,
            level="info",
            what=f"{failure.step} was left out {_times(failure.left_out)}: {cause}",
            remedy=f"messages stay raw meanwhile; the next look is {next_at}",
        )
    latched = is_latched(policy, state, failure)
    return Problem(
        conversation=state.ref,
        level="error" if latched else "warning",
        what=f"{failure.step} failed {_times(failure.failures)}: {cause}",
        remedy="messages stay raw meanwhile; the next try is "
        f"{'with the next message' if latched else next_at}: {_remedy(failure)}; "
        "flush(retry=True) tries at once",
    )


def _remedy(failure: Failure) -> str:
    """Return the remedy for a failed step."""
    if failure.reason == "store":
        return "check the database"
    is_hook = failure.reason.startswith("hook_")
    return "correct the hook" if is_hook else "check the model's access"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
