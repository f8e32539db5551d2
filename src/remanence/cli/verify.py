"""Checks of a replayed memory: coverage, valid requests and a bounded tail."""

from collections.abc import Iterator, Mapping, Sequence

from remanence.cli.quantity import quantity
from remanence.context.context import Context
from remanence.policy.policy import Policy
from remanence.policy.schedule import OPEN_TURN_FACTOR
from remanence.stores.transitions import coverage_fault
from remanence.types import MemoryState, Message, Segment
from remanence.wire.boundaries import groups, is_turn_open
from remanence.wire.validate import anthropic_problems, openai_problems

PROMISES = {
    "tiling": "live segments tile the tape",
    "anthropic": "valid for Anthropic's Messages API",
    "openai": "valid for OpenAI's Chat Completions",
    "tail": "raw tail within its budget",
}


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

    During an open turn, the tail may be a quarter larger.
    """
    factor = OPEN_TURN_FACTOR if is_turn_open(tail) else 1
    if state.tail_tokens <= policy.tail_tokens * factor:
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
