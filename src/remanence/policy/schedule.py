"""The schedule of memory work, as pure functions of a policy and a state."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from remanence.policy.cache_economics import is_cold
from remanence.policy.policy import Policy
from remanence.types import EFFECTS, Failure, MemoryState, Message, Segment, Snapshot
from remanence.wire.boundaries import ends_turn, groups, safe_ends

DEFERRED = "deferred"
"""The failure reason of a call that was not made, because of a rate limit or a pause."""

UNREACHABLE = frozenset(
    [
        "auth",
        "connection",
        "cooling",
        DEFERRED,
        "overloaded",
        "quota",
        "rate_limit",
        "server",
        "store",
        "timeout",
        "unknown_model",
    ]
)
"""Failure reasons of an observer that a reflector would most likely run into, too."""

_WITHOUT_MODEL = ("extractive/", "ExtractiveObserver", "ExtractiveReflector")
"""Beginnings of the names of the embedded extractor, observer and reflector."""

COSTLY_FACTOR = 10
_COSTLY = frozenset({"cut_off"})
"""Failure reasons of attempts that took two calls and would most likely fail again soon."""

MAX_ASKED_SECONDS = 86_400.0
MAX_JITTER = 0.25

FACTS_PAUSE = timedelta(seconds=5)
"""How long facts of messages that are old when they are appended wait for more of them."""

_LAST_MOMENT = datetime.max.replace(tzinfo=UTC)
MAX_AHEAD = timedelta(days=1)
"""How far a time may be ahead of the clock, as clocks and time zones differ."""

MESSAGE_HEAD_TOKENS = 20
"""Tokens that number, speaker and time add to a message in a request."""

HEADING_TOKENS = 20
MIN_HEADED_TOKENS = 64
"""The fewest tokens of notes that leave room beside the heading with day and speaker."""
LONG_CONVERSATION = 2
"""A conversation is long once its notes may have so many times `min_note_tokens`."""

OPEN_TURN_FACTOR = 1.25
"""How far the messages that notes would replace may exceed the budget during an open turn."""

REWRITE_FACTOR = 3
"""How many times as many tokens must leave an open turn as stay, and are cached anew behind the notes."""

OPEN_TURN_SHARE = 4
"""The inverse of the share of a context above which a raw tail is shortened for fewer tokens, too."""

MIN_TURN_SHARE = 0.5
"""A slice is shortened to end with a turn, unless less than this share of it would remain."""

MIN_SLICE_SHARE = 0.25
"""The share of `observe_tokens` below which a slice also includes the next message, however long,
as a few words are not worth a segment."""


def observation_due(policy: Policy, state: MemoryState) -> bool:
    """Return whether messages should be observed now."""
    if not policy.enabled or state.unobserved_tokens == 0:
        return False
    if policy.observe_compare == "gte":
        return observable_tokens(policy, state) >= _threshold(policy)
    return observable_tokens(policy, state) > _threshold(policy)


def _threshold(policy: Policy) -> float:
    return policy.observe_tokens * (policy.precompute_at or 1.0)


def may_interrupt(policy: Policy, state: MemoryState, tail: Sequence[Message]) -> bool:
    """Return whether enough messages can leave the prompt to observe them in the middle of a turn.

    The cache stores anew what stays, so that a turn with long results is interrupted less often.
    """
    leaving, kept = _leaving_tokens(policy, state, tail)
    if leaving <= OPEN_TURN_FACTOR * _threshold(policy):
        return False
    is_large = OPEN_TURN_SHARE * state.tail_tokens > policy.context_tokens
    return leaving > REWRITE_FACTOR * kept or is_large


def is_rest_due(policy: Policy, state: MemoryState, tail: Sequence[Message]) -> bool:
    """Return whether an interrupted turn has more messages to observe, so that they leave together."""
    leaving, _ = _leaving_tokens(policy, state, tail)
    return leaving >= policy.observe_tokens * MIN_SLICE_SHARE


def _leaving_tokens(policy: Policy, state: MemoryState, tail: Sequence[Message]) -> tuple[int, int]:
    """Return the tokens of the messages that notes could replace, and of those that stay raw."""
    newest = tail[max(0, len(tail) - _unobserved_messages(policy)) :]
    kept = sum(message.tokens for message in newest)
    return observable_tokens(policy, state) - kept, kept


def _unobserved_messages(policy: Policy) -> int:
    """Return the number of newest messages that a slice leaves out."""
    return 0 if policy.observe_slice == "all" else policy.keep_last


def look_tokens(policy: Policy, state: MemoryState) -> int:
    """Return the tape size in tokens above which to look at the conversation again.

    An observation becomes due there. The next message is enough if one is due already, or if it
    starts the idle time for facts.
    """
    if _idle_facts(policy, state) and state.facts_seq >= state.last_seq:
        return state.last_sum_tokens
    before = state.last_sum_tokens - observable_tokens(policy, state)
    above = before + _threshold(policy)
    tokens = math.ceil(above) - 1 if policy.observe_compare == "gte" else math.floor(above)
    return max(state.last_sum_tokens, tokens)


def longest_wait(policy: Policy) -> timedelta:
    """Return the longest plausible wait; only a wrong clock schedules a longer one."""
    return timedelta(seconds=policy.retry_max_seconds * (1 + MAX_JITTER))


def observable_tokens(policy: Policy, state: MemoryState) -> int:
    """Return the tokens to compare with `observe_tokens`."""
    if policy.observe_gauge == "unobserved":
        return state.unobserved_tokens
    ready_tokens = state.observed_sum_tokens - state.active_sum_tokens
    return state.tail_tokens - ready_tokens


class Slice(NamedTuple):
    """The messages of an observation; `is_cut` if a token limit shortened it."""

    messages: tuple[Message, ...] = ()
    is_cut: bool = False


def observation_slice(
    policy: Policy,
    state: MemoryState,
    messages: Sequence[Message],
    *,
    everything: bool = False,
    request_tokens: int | None = None,
) -> Slice:
    """Return the slice for the next observation: the oldest of *messages*, or none yet.

    *messages* follow `observed_seq`; a token limit may have truncated them. A slice fits a request of
    *request_tokens*, never ends between a tool call and its result, and leaves `keep_last` messages
    unobserved unless *everything* is set. With a budget, it ends with a turn unless that makes it
    too small.
    """
    newest = state.last_seq - (0 if everything else _unobserved_messages(policy))
    final = everything and bool(messages) and messages[-1].seq == state.last_seq
    ends = [end for end in safe_ends(messages, final=final) if messages[end].seq <= newest]
    most_tokens = policy.slice_tokens
    if policy.observe_slice == "budget":
        most_tokens = min(most_tokens, policy.observe_tokens)
    chosen: int | None = None
    closing: tuple[int, int] | None = None
    before = tokens = counted = 0
    for end in ends:
        tokens += sum(message.tokens for message in messages[counted : end + 1])
        counted = end + 1
        fits = tokens <= most_tokens or before < policy.observe_tokens * MIN_SLICE_SHARE
        read_tokens = tokens + counted * MESSAGE_HEAD_TOKENS
        is_readable = request_tokens is None or read_tokens <= request_tokens
        if chosen is not None and not (fits and is_readable and not _is_full(policy, counted)):
            break
        before = tokens
        chosen = end
        if ends_turn(messages, end):
            closing = end, tokens
    if chosen is None:
        return Slice()
    if policy.observe_slice == "budget":
        if closing and closing[1] >= before * MIN_TURN_SHARE:
            chosen = closing[0]
        return Slice(tuple(messages[: chosen + 1]))
    has_more = counted > chosen + 1 or messages[-1].seq < state.last_seq
    is_cut = has_more and not _is_full(policy, max(counted, chosen + 2))
    return Slice(tuple(messages[: chosen + 1]), is_cut)


def request_size(messages: Sequence[Message]) -> int:
    """Return the tokens of messages in a request, with their heads."""
    return sum(message.tokens + MESSAGE_HEAD_TOKENS for message in messages)


def is_outage(reason: str, made_by: str) -> bool:
    """Return whether another attempt of *made_by* may succeed later with the same messages.

    What calls no model takes too long again.
    """
    return reason in UNREACHABLE and not (reason == "timeout" and calls_no_model(made_by))


def calls_no_model(made_by: str) -> bool:
    """Return whether *made_by* names the embedded extractor, observer or reflector."""
    return made_by.startswith(_WITHOUT_MODEL)


def failure_by(state: MemoryState, step: str, made_by: str) -> Failure | None:
    """Return the last failure of a step, if it was by *made_by*."""
    failure = state.failure_of(step)
    return failure if failure is not None and failure.made_by in ("", made_by) else None


def halve(messages: Sequence[Message], times: int) -> tuple[Message, ...]:
    """Return the first part of *messages* after halving *times*, at least the first run.

    This isolates messages that fail again and again, so that all others are observed.
    """
    ends = safe_ends(messages, final=True)
    return tuple(messages[: ends[max(1, len(ends) >> times) - 1] + 1])


def _is_full(policy: Policy, messages: int) -> bool:
    return policy.observe_slice == "oldest_n" and messages > policy.observe_slice_messages


def activation(
    policy: Policy,
    snapshot: Snapshot,
    *,
    now: datetime,
    model_changed: bool = False,
    overfull: bool = False,
) -> int | None:
    """Return the seq that `active_seq` should move to now, or None.

    An activation is due when the tail is over budget or *overfull*, too large for its context, when
    the prompt cache is cold (as after *model_changed*), or with `when_observed` as soon as there is
    anything to activate. It leaves `tail_keep_tokens` and `keep_last` raw, but moves by at least one
    segment if the tail is over budget or overfull. If no segment is ready, the current `active_seq`
    is returned while such a tail can shed messages that notes already cover.
    """
    state = snapshot.state
    ready = [segment for segment in snapshot.segments if segment.last_seq > state.active_seq]
    over = overfull or state.tail_tokens > policy.tail_tokens
    if not ready:
        if not (over and snapshot.tail):
            return None
        start = tail_start(policy, snapshot.tail, state.active_seq)
        return state.active_seq if start > state.tail_seq else None
    if policy.activate == "when_observed":
        return ready[-1].last_seq
    lifetime = policy.cache_lifetime_seconds
    cold = model_changed or is_cold(snapshot.tail, lifetime=lifetime, now=now)
    if not over and not cold:
        return None
    leaving = [
        segment.last_seq
        for segment in ready
        if state.last_sum_tokens - segment.sum_tokens >= policy.tail_keep_tokens
        and state.last_seq - segment.last_seq >= policy.keep_last
    ]
    if leaving:
        return leaving[-1]
    return ready[0].last_seq if over else None


def tail_start(policy: Policy, tail: Sequence[Message], active_seq: int) -> int:
    """Return the seq of the first message that stays raw when `active_seq` moves to *active_seq*.

    *tail* is the current raw tail. If activation covers all of it (`when_observed`), `keep_last`
    messages and `tail_keep_tokens` stay raw beside their notes. The newest run always stays, as
    providers reject requests without messages.
    """
    tokens = count = 0
    keep_last = max(1, policy.keep_last)
    start = active_seq + 1
    if not tail or active_seq < tail[0].seq:
        return start
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


def facts_end(policy: Policy, state: MemoryState, *, everything: bool = False) -> int | None:
    """Return the seq up to which facts about the user should be extracted now, or None.

    By default up to the reflected messages, whose notes lose detail with each reflection; with
    *everything*, or after a failure, up to all observed messages.
    """
    if not (policy.enabled and policy.extract_facts) or state.user is None:
        return None
    all_of_it = everything or state.facts_failure is not None
    end = state.observed_seq if all_of_it else state.reflected_seq
    return end if end > state.facts_seq else None


def facts_time(policy: Policy, state: MemoryState, *, now: datetime) -> datetime | None:
    """Return when facts of all messages are due if the conversation stays idle, or None.

    Those of a message dated more than a day ahead are due now: its clock is wrong, and not a host's
    local time that was taken for UTC.
    """
    said_at = state.last_message_at
    if not _idle_facts(policy, state) or said_at is None or state.facts_seq >= state.last_seq:
        return None
    idle = timedelta(seconds=policy.facts_idle_seconds)
    return now if said_at - now > MAX_AHEAD else said_at + min(idle, _LAST_MOMENT - said_at)


def batch_time(state: MemoryState, *, now: datetime) -> datetime:
    """Return when facts that are due are extracted in the background, with those of later messages.

    That is the look planned when the first of the messages came.
    """
    pause_end = now + FACTS_PAUSE
    if state.last_sum_tokens > state.look_tokens:
        return pause_end
    return min(state.look_at or now, pause_end)


def _idle_facts(policy: Policy, state: MemoryState) -> bool:
    wanted = policy.enabled and policy.extract_facts and policy.facts_idle_seconds > 0
    return wanted and state.user is not None


def reflection_sources(
    policy: Policy, state: MemoryState, segments: Sequence[Segment]
) -> tuple[Segment, ...]:
    """Return the live segments to condense, adjacent and in order; empty if none are due."""
    if not policy.enabled or not policy.reflect_tokens:
        return ()
    active = tuple(segment for segment in segments if segment.last_seq <= state.active_seq)
    if policy.reflect_scope == "all":
        over = sum(segment.tokens for segment in active) > policy.reflect_tokens[0]
        return active if over else ()
    max_generation = 1 if policy.reflect_scope == "kind" else math.inf
    for generation, budget in enumerate(policy.reflect_tokens):
        sources = tuple(s for s in active if min(s.generation, max_generation) == generation)
        if sum(segment.tokens for segment in sources) > budget:
            return sources
    return ()


def reflection_time(policy: Policy, state: MemoryState, *, now: datetime) -> datetime:
    """Return the earliest time of the next reflection, at most one interval from now."""
    interval = timedelta(seconds=policy.reflect_min_interval_seconds)
    if state.last_reflected_at is None or state.last_reflected_at > now:
        return now
    return state.last_reflected_at + interval


class ReflectionPlan(NamedTuple):
    """The generation of a reflection, its token limit, and the tokens above which it is due again."""

    generation: int
    target_tokens: int
    limit_tokens: int


def plan_reflection(
    policy: Policy, sources: Sequence[Segment], *, final: bool = False
) -> ReflectionPlan:
    """Plan the reflection of *sources*.

    The top generation, and notes at the end of a conversation (*final*), are condensed only as far
    as their budget requires.
    """
    tokens = sum(segment.tokens for segment in sources)
    generations = [segment.generation for segment in sources]
    generation, budgets = max(generations) + 1, policy.reflect_tokens
    budget, keeps_all = budgets[-1], final
    if policy.reflect_scope == "generation":
        generation = max(1, min(generation, len(budgets) - 1))
        budget, keeps_all = budgets[generation], final or min(generations) == generation
    share = tokens if keeps_all else int(tokens * policy.reflect_ratio)
    least = min(tokens, MIN_HEADED_TOKENS)  # room for a note with date and speaker
    target = max(1, int(min(max(share, least), budget * 0.75, policy.max_output_tokens)))
    return ReflectionPlan(generation, target, min(tokens, budget))


def observation_target(policy: Policy, source_tokens: int, noted_tokens: int = 0) -> int:
    """Return the most tokens of the notes on a source; a very short one may be noted in full.

    *noted_tokens* are those of the messages before it, which have notes.
    """
    share = source_tokens * policy.note_ratio
    usual = policy.observe_tokens * policy.note_ratio
    short = min(policy.min_note_tokens, usual, source_tokens / 2)
    if noted_tokens * policy.note_ratio >= LONG_CONVERSATION * policy.min_note_tokens:
        short = 0
    least = min(source_tokens + HEADING_TOKENS, MIN_HEADED_TOKENS)
    return int(min(max(share, short, least), policy.max_output_tokens))


def may_try(
    policy: Policy, state: MemoryState, failure: Failure | None, *, now: datetime, made_by: str
) -> bool:
    """Return whether *made_by* may retry a step after *failure*, unless that was another's."""
    if failure is None or failure.made_by not in ("", made_by):
        return True
    return not _is_waiting(failure, now) and not is_latched(policy, state, failure)


def _is_waiting(failure: Failure, now: datetime) -> bool:
    """Return whether the next attempt is due later; a failure in the future is from a wrong clock."""
    return failure.at <= now < failure.next_attempt_at


def takes_over(policy: Policy, state: MemoryState, observer: str) -> bool:
    """Return whether the embedded observer stands in for *observer*, which keeps failing."""
    failure = failure_by(state, "observe", observer)
    return failure is not None and _stands_in(policy, failure.failures)


def effect_of(policy: Policy, step: str, failures: int) -> str:
    """Return the effect on a conversation of a step that failed *failures* times in a row."""
    if step == "observe" and _stands_in(policy, failures):
        return "the embedded observer stands in"
    return EFFECTS[step]


def _stands_in(policy: Policy, failures: int) -> bool:
    after = policy.fallback_after_failures
    return after is not None and failures >= after


def restore_time(state: MemoryState, *, now: datetime, observer: str) -> datetime | None:
    """Return when *observer* may replace stand-in notes; None means now.

    A failure never latches this: the messages already have notes, and no new ones trigger it.
    """
    failure = failure_by(state, "observe", observer)
    return failure.next_attempt_at if failure is not None and _is_waiting(failure, now) else None


def is_latched(policy: Policy, state: MemoryState, failure: Failure) -> bool:
    """Return whether a step failed so often that it waits for new messages."""
    return failure.failures >= policy.max_failures and state.last_seq <= failure.last_seq


def retry_delay(
    policy: Policy, failures: int, *, jitter: float, reason: str = "", asked_seconds: float = 0.0
) -> timedelta:
    """Return the wait after the *failures*-th failure in a row.

    *jitter* in 0..1 adds up to `MAX_JITTER`. The wait is at least *asked_seconds*, the delay that a
    provider asked for, capped at a day.
    """
    exponent = min(failures - 1, 30)
    first_seconds = policy.retry_seconds * (COSTLY_FACTOR if reason in _COSTLY else 1)
    seconds = min(first_seconds * 2**exponent, policy.retry_max_seconds) * (1 + jitter * MAX_JITTER)
    return timedelta(seconds=max(seconds, min(asked_seconds, MAX_ASKED_SECONDS)))


def later_steps_wait(state: MemoryState, *, now: datetime, observer: str) -> bool:
    """Return whether other steps should wait because the observer's model was unreachable."""
    failure = failure_by(state, "observe", observer)
    return failure is not None and failure.reason in UNREACHABLE and _is_waiting(failure, now)
