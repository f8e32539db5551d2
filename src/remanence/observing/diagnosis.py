"""What is overdue, failing or stuck in a conversation's memory, and how to mend it."""

from collections.abc import Iterator
from datetime import datetime

from remanence.observing.policy import Policy
from remanence.observing.schedule import is_latched, observation_due
from remanence.types import BudgetState, ConversationRef, Failure, MemoryState, Problem


def diagnose(policy: Policy, state: MemoryState, *, now: datetime) -> Iterator[Problem]:
    """Yield what a person should know about one conversation."""
    for failure in (state.observe_failure, state.reflect_failure, state.facts_failure):
        if failure is not None and failure.skips:
            yield _skipped(state, failure)
        elif failure is not None:
            yield _failing(policy, state, failure)
    if state.lease_owner is not None and state.lease_until is not None and state.lease_until <= now:
        yield Problem(
            conversation=state.ref,
            level="info",
            what=f"process {state.lease_owner!r} stopped while it worked on this conversation",
            remedy="nothing to do: its lease has run out and another process may take over",
        )
    if state.observe_failure is None and observation_due(policy, state):
        yield Problem(
            conversation=state.ref,
            level="info",
            what=f"{state.unobserved_tokens:,} tokens wait to be observed",
            remedy="open the memory in a running program, or run 'remanence inspect --flush'",
        )


def diagnose_budget(ref: ConversationRef, state: BudgetState) -> Iterator[Problem]:
    """Yield what a person should know about a budget that a conversation draws on."""
    if state.level == "ok":
        return
    yield Problem(
        conversation=ref,
        level="warning",
        what=f"the {state.budget.scope} budget is at its {state.level} limit: "
        f"{state.spent_usd:.4f} USD, {state.spent_tokens:,} tokens",
        remedy="raise the budget, use a cheaper model, or look at 'remanence usage'",
    )


def _skipped(state: MemoryState, failure: Failure) -> Problem:
    return Problem(
        conversation=state.ref,
        level="info",
        what=f"{failure.step} was left out {failure.skips} times: "
        f"{failure.reason}: {failure.message}",
        remedy="messages stay raw meanwhile; the next look is at "
        f"{failure.next_attempt_at:%Y-%m-%d %H:%M} UTC",
    )


def _failing(policy: Policy, state: MemoryState, failure: Failure) -> Problem:
    latched = is_latched(policy, state, failure)
    when = (
        "with the next message" if latched else f"at {failure.next_attempt_at:%Y-%m-%d %H:%M} UTC"
    )
    return Problem(
        conversation=state.ref,
        level="error" if latched else "warning",
        what=f"{failure.step} failed {failure.failures} times: {failure.reason}: {failure.message}",
        remedy=f"messages stay raw meanwhile; the next try is {when}: check the model's access; "
        "flush(retry=True) tries at once",
    )
