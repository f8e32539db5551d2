"""Diagnosis of overdue, failing or stuck work of a conversation, with remedies."""

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from remanence.catalog import chain_links
from remanence.policy.policy import Policy
from remanence.policy.schedule import calls_no_model, effect_of, is_latched, observation_due
from remanence.types import (
    Budget,
    BudgetState,
    ConversationRef,
    Failure,
    MemoryState,
    ModelPause,
    Problem,
)

_LIMITS: Final = "calls_per_minute or input_tokens_per_minute below the provider's limits"
_SECOND_MODEL: Final = "if it goes on, name a second model, which is tried when the first one fails"
_TIME: Final = "raise observe_timeout_seconds, or give the machine more processor time"
_OTHER_MODEL: Final = "if it happens again, use another model"

_REMEDIES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("bad_answer", "bad_request", "degenerate", "empty", "invented"), _OTHER_MODEL),
    **dict.fromkeys(("malformed", "refused", "too_large"), _OTHER_MODEL),
    **dict.fromkeys(("cooling", "overloaded", "server"), _SECOND_MODEL),
    **dict.fromkeys(("hook_failed", "hook_timeout"), "correct the hook"),
    "auth": "check the model's key",
    "connection": "check the model's address and the network",
    "cut_off": "raise max_output_tokens, or use a model that keeps to the length asked for",
    "failed": "correct the model's function",
    "missing_package": "install the package",
    "process_ended": "give the machine more memory, or set observer_processes to 0",
    "quota": "check the account at the model's provider",
    "rate_limit": f"set {_LIMITS}",
    "store": "check the database",
    "timeout": "raise observe_timeout_seconds or use a faster model",
    "too_long": "lower max_output_tokens, observe_max_tokens and reflect_tokens",
    "unknown_model": "check the model's name, and your access to it",
}
"""Remedies by the reason of a failure; an observer of your own may have other reasons."""

_MAKERS: Final = {"observe": "observer", "reflect": "reflector", "facts": "extractor"}


def diagnose(
    policy: Policy,
    state: MemoryState,
    *,
    now: datetime,
    lease_seconds: float,
    paused: Collection[str] = (),
    works: bool = False,
) -> Iterator[Problem]:
    """Yield the problems of one conversation that an operator should know about.

    Due work is judged by the look scheduled in the state, or by *policy* if there is none yet. No
    retry calls the *paused* models. *works* says that the memory that is checked does due work.
    """
    for failure in (state.observe_failure, state.reflect_failure, state.facts_failure):
        if failure is not None:
            yield _failing(policy, state, failure, paused)
    if (lease := _lease_problem(state, now, lease_seconds)) is not None:
        yield lease
    if state.observe_failure is None and (due := _due(policy, state, now)):
        elsewhere = f"open the memory in a running program, or run '{flush_command(state.ref)}'"
        here = "nothing to do: this memory works on it; flush() waits for it"
        yield Problem(
            conversation=state.ref, level="info", what=due, remedy=here if works else elsewhere
        )


def flush_command(ref: ConversationRef) -> str:
    """Return the shell command that does a conversation's due work."""
    return f"remanence flush {shlex.quote(ref.id)} --tenant {shlex.quote(ref.tenant)}"


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
    if state.unobserved_tokens and state.last_sum_tokens > state.look_tokens:
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


def diagnose_blind_budget(budget: Budget, models: Sequence[str]) -> Problem:
    """Return a problem for a budget in dollars that calls of *models* without a price do not reach."""
    return Problem(
        conversation=None,
        level="warning",
        what=f"the {budget.scope} budget of {budget.hard_usd:g} USD does not count calls of "
        f"{', '.join(models)}, whose price is unknown",
        remedy="set hard_tokens, which counts them, or their prices with the setting 'prices'",
    )


def diagnose_pause(pause: ModelPause) -> Problem:
    """Return a problem for a model's pause, which ends by itself."""
    return Problem(
        conversation=None,
        level="info",
        what=f"calls of {pause.model} are paused until {pause.until:%Y-%m-%d %H:%M:%S} UTC, as its "
        "provider asked",
        remedy=f"messages stay raw meanwhile; {_LIMITS} avoid it",
    )


def diagnose_stop(failure: str) -> Problem:
    """Return a problem for background work that has stopped because of *failure*."""
    return Problem(
        conversation=None,
        level="error",
        what=failure,
        remedy="messages stay raw meanwhile: see the log for the reason, close the memory and open "
        "it again",
    )


def _failing(
    policy: Policy, state: MemoryState, failure: Failure, paused: Collection[str]
) -> Problem:
    next_at = f"at {failure.next_attempt_at:%Y-%m-%d %H:%M} UTC"
    cause = f"{failure.reason}: {failure.message}"
    meanwhile = f"{effect_of(policy, failure.step, failure.failures)} meanwhile"
    if failure.left_out:
        return Problem(
            conversation=state.ref,
            level="info",
            what=f"the {failure.step} step was skipped {_times(failure.left_out)}: {cause}",
            remedy=f"{meanwhile}; the next look is {next_at}",
        )
    latched = is_latched(policy, state, failure)
    next_try = "with the next message" if latched else next_at
    own = f"check the {_MAKERS[failure.step]}"
    remedy = _REMEDIES.get(failure.reason, own)
    if remedy == _OTHER_MODEL and ":" not in failure.made_by:  # the name of a class, not of a model
        remedy = own
    if failure.reason == "timeout" and calls_no_model(failure.made_by):
        remedy = _TIME
    if not _is_paused(failure, paused):
        remedy += f"; '{flush_command(state.ref)} --retry' or flush(retry=True) tries at once"
    return Problem(
        conversation=state.ref,
        level="error" if latched else "warning",
        what=f"the {failure.step} step failed {_times(failure.failures)}: {cause}",
        remedy=f"{meanwhile}; the next try is {next_try}: {remedy}",
    )


def _is_paused(failure: Failure, paused: Collection[str]) -> bool:
    """Return whether all models of a failed step are paused; an extractor's name has a version."""
    return all(link.rpartition(" ")[2] in paused for link in chain_links(failure.made_by))


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
