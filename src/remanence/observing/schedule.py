"""When something is due, and how much of it: pure functions of a policy and a state."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from remanence.observing.boundaries import groups, safe_ends
from remanence.observing.cache_economics import is_cold
from remanence.observing.policy import Policy
from remanence.types import Failure, MemoryState, Message, Segment, Snapshot

UNREACHABLE = frozenset(
    {
        "auth",
        "connection",
        "cooling",
        "overloaded",
        "quota",
        "rate_limit",
        "server",
        "timeout",
        "unknown_model",
    }
)
"""Failures of an observer that a reflector would most likely meet, too."""

COSTLY_FACTOR = 10
_COSTLY = frozenset({"cut_off"})
"""Failures of a try that takes two calls and would most likely end the same way soon after."""

LONGEST_ASKED_SECONDS = 86_400.0

HEADING_TOKENS = 20
LEAST_NOTE_TOKENS = 64
"""The day and the speaker stand above notes: fewer tokens would have no room for anything else."""

LEAST_SLICE = 0.25
"""The share of `observe_tokens` below which a slice also takes the next message, however long:
a few words alone are not worth a segment."""


def observation_due(policy: Policy, state: MemoryState) -> bool:
    """Whether messages should be observed now."""
    if not policy.enabled or state.unobserved_tokens == 0:
        return False
    threshold = policy.observe_tokens * (policy.precompute_at or 1.0)
    if policy.observe_compare == "gte":
        return gauged_tokens(policy, state) >= threshold
    return gauged_tokens(policy, state) > threshold


def gauged_tokens(policy: Policy, state: MemoryState) -> int:
    """The tokens that are compared with `observe_tokens`."""
    if policy.observe_gauge == "unobserved":
        return state.unobserved_tokens
    ready_tokens = state.observed_sum_tokens - state.active_sum_tokens
    return state.tail_tokens - ready_tokens


def observation_slice(
    policy: Policy, state: MemoryState, messages: Sequence[Message], *, everything: bool = False
) -> tuple[Message, ...]:
    """The messages that the next observation covers: the oldest of *messages*, or none yet.

    *messages* follow `observed_seq`. A slice never ends between a tool call and its result, and
    leaves `keep_last` messages unobserved, unless *everything* is asked for.
    """
    newest = state.last_seq if everything else _newest_observable(policy, state)
    final = everything and bool(messages) and messages[-1].seq == state.last_seq
    ends = [end for end in safe_ends(messages, final=final) if messages[end].seq <= newest]
    chosen: int | None = None
    before = tokens = counted = 0
    for end in ends:
        tokens += sum(message.tokens for message in messages[counted : end + 1])
        counted = end + 1
        too_small = before < policy.observe_tokens * LEAST_SLICE
        fits = _fits(policy, end + 1, tokens) or (too_small and not _is_full(policy, end + 1))
        if chosen is not None and not fits:
            break
        before = tokens
        chosen = end
    return () if chosen is None else tuple(messages[: chosen + 1])


def _newest_observable(policy: Policy, state: MemoryState) -> int:
    if policy.observe_slice == "all":
        return state.last_seq
    return state.last_seq - policy.keep_last


def _is_full(policy: Policy, messages: int) -> bool:
    return policy.observe_slice == "oldest_n" and messages > policy.observe_slice_messages


def _fits(policy: Policy, messages: int, tokens: int) -> bool:
    if tokens > policy.observe_max_tokens:
        return False
    match policy.observe_slice:
        case "budget":
            return tokens <= policy.observe_tokens
        case "oldest_n":
            return not _is_full(policy, messages)
        case "all":
            return True


def activation(
    policy: Policy, snapshot: Snapshot, *, now: datetime, model_changed: bool = False
) -> int | None:
    """The seq that `active_seq` should move to now, or None.

    Due when the tail is over its budget, when the prompt cache is
    cold (so also when *model_changed*), or (`when_observed`) as soon as there is anything to activate. It moves as far as leaves
    `tail_keep_tokens` and `keep_last`; a tail over its budget moves by one segment at least.
    """
    state = snapshot.state
    ready = [segment for segment in snapshot.segments if segment.last_seq > state.active_seq]
    if not ready:
        return None
    if policy.activate == "when_observed":
        return ready[-1].last_seq
    over = state.inactive_tokens > policy.tail_tokens
    lifetime = policy.cache_lifetime_seconds
    cold = model_changed or is_cold(snapshot.tail, lifetime=lifetime, now=now)
    if not over and not cold:
        return None
    leaving = [segment.last_seq for segment in ready if _leaves_enough(policy, state, segment)]
    if leaving:
        return leaving[-1]
    return ready[0].last_seq if over else None


def tail_start(policy: Policy, tail: Sequence[Message], active_seq: int) -> int:
    """The first message that stays raw when `active_seq` moves to *active_seq*.

    *tail* are the newest messages, raw so far. Where activation may take all of them
    (`when_observed`), `keep_last` messages and `tail_keep_tokens` stay raw beside their notes, and
    the newest run of messages in any case: no provider takes a request without one.
    """
    tokens = count = 0
    keep_last = max(1, policy.keep_last)
    start = active_seq + 1
    for run in reversed(list(groups(tail))):
        run_tokens = sum(message.tokens for message in run)
        if run[-1].seq <= active_seq and count >= keep_last:
            full = tokens + run_tokens > policy.tail_tokens
            if full or tokens >= policy.tail_keep_tokens:
                break
        tokens += run_tokens
        count += len(run)
        start = min(start, run[0].seq)
    return start


def _leaves_enough(policy: Policy, state: MemoryState, segment: Segment) -> bool:
    tokens_left = state.last_sum_tokens - segment.sum_tokens
    messages_left = state.last_seq - segment.last_seq
    return tokens_left >= policy.tail_keep_tokens and messages_left >= policy.keep_last


def facts_end(policy: Policy, state: MemoryState, *, everything: bool = False) -> int | None:
    """The message up to which facts of the user should be extracted now, or None.

    That is what was reflected, as its notes are condensed ever more; of *everything*, and after a
    failure, all that was observed.
    """
    if not (policy.enabled and policy.extract_facts) or state.user is None:
        return None
    all_of_it = everything or state.facts_failure is not None
    end = state.observed_seq if all_of_it else state.reflected_seq
    return end if end > state.facts_seq else None


def reflection_sources(
    policy: Policy, state: MemoryState, segments: Sequence[Segment], *, now: datetime
) -> tuple[Segment, ...]:
    """The live segments that should be condensed now, adjacent and in order; empty if none."""
    if not policy.enabled or not policy.reflect_tokens:
        return ()
    if state.last_reflected_at is not None:
        interval = timedelta(seconds=policy.reflect_min_interval_seconds)
        if now - state.last_reflected_at < interval:
            return ()
    active = tuple(segment for segment in segments if segment.last_seq <= state.active_seq)
    if policy.reflect_scope == "all":
        over = sum(segment.tokens for segment in active) > policy.reflect_tokens[0]
        return active if over else ()
    for generation, budget in enumerate(policy.reflect_tokens):
        sources = tuple(s for s in active if _rank(policy, s) == generation)
        if sum(segment.tokens for segment in sources) > budget:
            return sources
    return ()


def _rank(policy: Policy, segment: Segment) -> int:
    """Which of the budgets a segment counts for."""
    return min(segment.generation, 1) if policy.reflect_scope == "kind" else segment.generation


def reflection_generation(policy: Policy, sources: Sequence[Segment]) -> int:
    """The generation of what *sources* are condensed to."""
    newest = max(segment.generation for segment in sources)
    if policy.reflect_scope != "generation":
        return newest + 1
    return max(1, min(newest + 1, len(policy.reflect_tokens) - 1))


def reflection_target(policy: Policy, sources: Sequence[Segment]) -> int:
    """The most tokens that a reflection of *sources* should have.

    What is in the top generation already is condensed no more than its budget asks.
    """
    tokens = sum(segment.tokens for segment in sources)
    budget = _reflection_budget(policy, sources)
    if not _is_top(policy, sources):
        tokens = int(tokens * policy.reflect_ratio)
    return max(1, int(min(tokens, budget * 0.75, policy.max_output_tokens)))


def reflection_limit(policy: Policy, sources: Sequence[Segment]) -> int:
    """The most tokens that a reflection of *sources* may have: more would be due again at once."""
    tokens = sum(segment.tokens for segment in sources)
    return min(tokens, _reflection_budget(policy, sources))


def _is_top(policy: Policy, sources: Sequence[Segment]) -> bool:
    """Whether a generation condenses into itself."""
    oldest = min(segment.generation for segment in sources)
    return policy.reflect_scope == "generation" and oldest == reflection_generation(policy, sources)


def _reflection_budget(policy: Policy, sources: Sequence[Segment]) -> int:
    if policy.reflect_scope != "generation":
        return policy.reflect_tokens[-1]
    return policy.reflect_tokens[reflection_generation(policy, sources)]


def observation_target(policy: Policy, source_tokens: int) -> int:
    """The most tokens that the notes of a source may have; of a few words all that they say."""
    share = source_tokens * policy.note_ratio
    least = min(source_tokens + HEADING_TOKENS, LEAST_NOTE_TOKENS)
    return max(1, int(min(max(share, least), policy.max_output_tokens)))


def may_try(policy: Policy, state: MemoryState, failure: Failure | None, *, now: datetime) -> bool:
    """Whether a step may be tried now that has *failure* behind it."""
    if failure is None:
        return True
    return now >= failure.next_attempt_at and not is_latched(policy, state, failure)


def is_latched(policy: Policy, state: MemoryState, failure: Failure) -> bool:
    """Whether failures stopped all tries of a step until new messages come."""
    return failure.failures >= policy.max_failures and state.last_seq <= failure.last_seq


def retry_delay(
    policy: Policy, failures: int, *, jitter: float, reason: str = "", asked_seconds: float = 0.0
) -> timedelta:
    """The wait after the *failures*-th failure in a row; *jitter* in 0..1 adds up to a quarter.

    It is at least what a provider *asked* for, within a day.
    """
    exponent = min(failures - 1, 30)
    first_seconds = policy.retry_seconds * (COSTLY_FACTOR if reason in _COSTLY else 1)
    seconds = min(first_seconds * 2**exponent, policy.retry_max_seconds) * (1 + jitter / 4)
    return timedelta(seconds=max(seconds, min(asked_seconds, LONGEST_ASKED_SECONDS)))


def later_steps_wait(state: MemoryState, *, now: datetime) -> bool:
    """Whether the model of the observer was unreachable lately: then no other one is asked."""
    failure = state.observe_failure
    return failure is not None and failure.reason in UNREACHABLE and now < failure.next_attempt_at
