"""Replay of a transcript on a tape, turn by turn, as if it happened live.

The result is checked: coverage, valid requests and a bounded tail.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from remanence.cli.output import quantity
from remanence.cli.transcripts import ID_PREFIX, Entry, Transcript
from remanence.clock import SystemClock
from remanence.context.context import Context
from remanence.errors import DuplicateMessage, InvalidArgument, WrongUser
from remanence.memory import Memory
from remanence.policy.policy import Policy
from remanence.policy.schedule import may_interrupt, observation_due
from remanence.settings import Settings, policy_of
from remanence.stores.transitions import coverage_fault
from remanence.types import MemoryState, Message, Segment
from remanence.wire.boundaries import groups, is_turn_open
from remanence.wire.validate import anthropic_problems, openai_problems

MEMORY_URL = "sqlite:///:memory:"

RATIO_OBSERVE_TOKENS = 8_000
"""Tokens per observation with a ratio: selection improves with the amount to choose from."""

RATIO_TAIL_TOKENS = 1_000
RATIO_KEEP_LAST = 4
BATCH = 50
"""Maximum messages per batch; a user message begins a new batch."""

PROMISES = {
    "tiling": "live segments tile the tape",
    "anthropic": "valid for Anthropic's Messages API",
    "openai": "valid for OpenAI's Chat Completions",
    "tail": "raw tail within its budget",
}


class TapeClock(SystemClock):
    """A clock at the time of the newest replayed message, so that pauses and caches behave as live.

    It follows the machine's clock if no message has a timestamp.
    """

    def __init__(self) -> None:
        self._now: datetime | None = None

    def reach(self, at: datetime | None) -> None:
        """Advance to the time of a message; never goes back."""
        if at is not None and (self._now is None or at > self._now):
            self._now = at.astimezone(UTC)

    def now(self) -> datetime:
        return self._now or super().now()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """The memory of a replayed transcript: its live segments, oldest first, and a context.

    `violations` lists the violations of each promise, normally none.
    """

    state: MemoryState
    segments: tuple[Segment, ...]
    context: Context
    violations: Mapping[str, Sequence[str]]


def replay_policy(settings: Settings, *, ratio: float | None) -> Policy:
    """Return the policy of *settings*, enabled, and with *ratio* set to observe the whole tape."""
    policy = policy_of(settings)
    if "enabled" not in settings.policy:
        policy = policy.replace(enabled=True)
    if ratio is None:
        return policy
    return policy.replace(
        note_ratio=ratio,
        min_note_tokens=0,
        observe_tokens=RATIO_OBSERVE_TOKENS,
        observe_max_tokens=RATIO_OBSERVE_TOKENS,
        observe_slice="budget",
        max_output_tokens=max(policy.max_output_tokens, math.ceil(RATIO_OBSERVE_TOKENS * ratio)),
        activate="when_observed",
        tail_tokens=RATIO_TAIL_TOKENS,
        tail_keep_tokens=0,
        keep_last=RATIO_KEEP_LAST,
        reflect_tokens=(),
    )


async def replay(
    transcript: Transcript,
    conversation: str,
    *,
    url: str,
    settings: Settings,
    policy: Policy,
    everything: bool,
    advance: Callable[[int], None],
) -> ReplayResult:
    """Append a transcript, let memory work, observe *everything* if asked, and verify the result.

    *advance* is called with the number of messages appended. An in-memory database follows the time
    of the transcript; any other one the machine's clock.

    Raises:
        DuplicateMessage: the conversation already has other messages.
        InvalidArgument: the conversation belongs to a user.
    """
    clock = TapeClock()
    in_memory = url == MEMORY_URL
    async with Memory.open(
        url, policy=policy, settings=settings, clock=clock if in_memory else None
    ) as memory:
        chat = memory.conversation(conversation)
        others = DuplicateMessage(
            f"conversation {conversation!r} holds other messages: name another one with "
            "--conversation"
        )
        try:
            first = await chat.messages(limit=1)
        except WrongUser as error:
            raise InvalidArgument(
                f"conversation {conversation!r} belongs to a user, and a replay has none: name "
                "another one with --conversation, or use 'remanence import --user'"
            ) from error
        if first and not (first[0].id or "").startswith(ID_PREFIX):
            raise others
        try:
            for batch in batches(transcript.entries()):
                for message in batch:
                    clock.reach(message.created_at)
                await chat.append(*batch)  # skips messages that are on the tape already
                if is_due(policy, await chat.state()):
                    await chat.flush()
                advance(len(batch))
        except DuplicateMessage as error:
            raise others from error
        await chat.flush(everything=everything)
        context, snapshot = await chat.context(), await chat.snapshot()
        state, segments = snapshot.state, snapshot.segments
        tail = await chat.messages(after=state.tail_seq - 1)
    found = verify(policy, state, segments, tail, context)
    return ReplayResult(state=state, segments=segments, context=context, violations=found)


def batches(entries: Iterable[Entry]) -> Iterator[tuple[Message, ...]]:
    """Yield batches as they would arrive: a user message with everything up to the next one."""
    batch: list[Message] = []
    for entry in entries:
        if batch and (entry.message.role == "user" or len(batch) >= BATCH):
            yield tuple(batch)
            batch = []
        batch.append(entry.message)
    if batch:
        yield tuple(batch)


def is_due(policy: Policy, state: MemoryState) -> bool:
    """Return whether work is due for the conversation."""
    is_over = state.inactive_tokens > policy.tail_tokens and state.observed_seq > state.active_seq
    return is_over or observation_due(policy, state)


def verify(
    policy: Policy,
    state: MemoryState,
    segments: Sequence[Segment],
    tail: Sequence[Message],
    context: Context,
) -> Mapping[str, Sequence[str]]:
    """Return the violations of each promise in the live *segments*, the *tail* and a *context*."""
    fault = coverage_fault(
        segments, reflected_seq=state.reflected_seq, observed_seq=state.observed_seq
    )
    return {
        "tiling": [fault] if fault else [],
        "anthropic": anthropic_problems(context.to_anthropic()),
        "openai": openai_problems(context.to_openai()),
        "tail": [*tail_problems(policy, state, tail, segments)],
    }


def tail_problems(
    policy: Policy, state: MemoryState, tail: Sequence[Message], segments: Sequence[Segment]
) -> Iterator[str]:
    """Yield a problem if the tail is over budget though an activation could have shortened it.

    During an open turn, the tail may be larger.
    """
    may_shorten = not is_turn_open(tail) or may_interrupt(policy, state, tail)
    if state.tail_tokens <= policy.tail_tokens or not may_shorten:
        return
    oldest = next(groups(tail), ())
    end = min(
        (segment.last_seq for segment in segments if segment.last_seq > state.active_seq),
        default=oldest[-1].seq if oldest else state.last_seq,
    )
    if sum(message.seq > end for message in tail) < max(1, policy.keep_last):
        return
    why = f"; {state.last_error}" if state.last_error else ""
    yield (
        f"it holds {state.tail_tokens:,} tokens in {quantity(len(tail), 'message')}, and tail_tokens is "
        f"{policy.tail_tokens:,}{why}"
    )
