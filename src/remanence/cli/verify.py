"""Checks of a replayed memory: coverage, valid requests and a bounded tail."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from remanence.context.context import Context
from remanence.policy.policy import Policy
from remanence.policy.schedule import OPEN_TURN_FACTOR
from remanence.types import MemoryState, Message, Segment
from remanence.wire.boundaries import groups, is_turn_open
from remanence.wire.validate import anthropic_problems, openai_problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The violations of each promise, one sentence each; normally there are none."""

    tiling: tuple[str, ...]
    anthropic: tuple[str, ...]
    openai: tuple[str, ...]
    tail: tuple[str, ...]

    @property
    def violations(self) -> tuple[str, ...]:
        """All violations, each with the promise that it breaks."""
        named = {
            "tiling": self.tiling,
            "anthropic request": self.anthropic,
            "openai request": self.openai,
            "raw tail": self.tail,
        }
        return tuple(f"{name}: {what}" for name, found in named.items() for what in found)


def verify(
    policy: Policy,
    state: MemoryState,
    segments: Sequence[Segment],
    tail: Sequence[Message],
    context: Context,
) -> Verdict:
    """Check the live *segments*, the raw *tail* and a *context* of one conversation."""
    return Verdict(
        tiling=tuple(tiling_problems(state, segments)),
        anthropic=anthropic_problems(context.to_anthropic()),
        openai=openai_problems(context.to_openai()),
        tail=tuple(tail_problems(policy, state, tail, segments)),
    )


def tiling_problems(state: MemoryState, segments: Sequence[Segment]) -> Iterator[str]:
    """Yield where reflections do not tile (0, reflected], or observations (reflected, observed]."""
    end = 0
    for segment in segments:
        if segment.first_seq != end + 1:
            yield f"segment {segment.id} begins at message {segment.first_seq}, not at {end + 1}"
        if segment.last_seq < segment.first_seq:
            yield f"segment {segment.id} ends at {segment.last_seq}, before its begin"
        if (segment.generation > 0) != (segment.last_seq <= state.reflected_seq):
            yield (
                f"segment {segment.id} of generation {segment.generation} ends at message "
                f"{segment.last_seq}, and reflected_seq is {state.reflected_seq}"
            )
        end = segment.last_seq
    if end != state.observed_seq:
        yield f"the segments end at message {end}, and observed_seq is {state.observed_seq}"


def tail_problems(
    policy: Policy, state: MemoryState, tail: Sequence[Message], segments: Sequence[Segment]
) -> Iterator[str]:
    """Yield a tail over its budget that could lose a segment and keep its newest messages.

    An open turn allows a quarter more.
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
        f"it holds {state.tail_tokens:,} tokens in {len(tail)} messages, and tail_tokens is "
        f"{policy.tail_tokens:,}{why}"
    )
