"""The checks of a replayed memory report each promise that does not hold."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.builders import numbered, state

from remanence import Message, Policy
from remanence.cli.replay import tail_problems, verify
from remanence.context.context import Context, ContextStats
from remanence.testing.store_contract.samples import observation, reflection
from remanence.types import MemoryState, Segment

OBSERVED = state(observed_seq=8, reflected_seq=4, last_seq=9)
STATS = ContextStats(
    system_tokens=0, working_tokens=1, history_tokens=9, first_raw_seq=9, last_seq=9
)
CONTEXT = Context(system=(), messages=(Message.user("Hello."),), omitted=(), stats=STATS)
TILES = (reflection(1, 4), observation(5, 6), observation(7, 8))


@pytest.mark.parametrize(
    ("segments", "problems"),
    [
        (TILES, []),
        (TILES[:2], ["segments end at 6, but observed_seq is 8"]),
        ((TILES[0], TILES[2]), ["there is a gap between 5 and segment 'g0-7-8' at 7"]),
        (
            (observation(1, 4), *TILES[1:]),
            ["segment 'g0-1-4' of generation 0 ends at 4, but reflected_seq is 4"],
        ),
        ((*TILES, observation(9, 8)), ["segment 'g0-9-8' ends at 8, before it begins"]),
    ],
)
def test_segments_that_do_not_tile_the_observed_messages_are_named(
    segments: Sequence[Segment], problems: list[str]
) -> None:
    assert verify(Policy(), OBSERVED, segments, (), CONTEXT)["tiling"] == problems


def tail_state(tokens: int, **changes: Any) -> MemoryState:  # fields by name
    return state(last_seq=4, last_sum_tokens=tokens, **changes)


def test_a_tail_over_its_budget_is_reported_unless_its_newest_messages_fill_it() -> None:
    policy = Policy(tail_tokens=100, tail_keep_tokens=0, keep_last=2)
    tail = numbered(*[Message.user("Hello."), Message.assistant("Hi.")] * 2)

    assert list(tail_problems(policy, tail_state(100), tail, ())) == []
    [problem] = tail_problems(policy, tail_state(200), tail, ())
    assert problem == "it holds 200 tokens in 4 messages, and tail_tokens is 100"
    assert list(tail_problems(policy.replace(keep_last=4), tail_state(200), tail, ())) == []
