"""The raw tail keeps its budget under every preset, whatever is said."""

import asyncio
import itertools
import os
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from remanence import Memory, Message, Policy
from remanence.cli.verify import tail_problems
from remanence.context.tail import PARTS, STAND_IN_TOKENS, fit_tail
from remanence.testing import FixedClock, ScriptedObserver, ScriptedReflector, check_coverage
from remanence.testing.clock import START
from remanence.types import ToolCallPart

pytestmark = pytest.mark.timeout(1_800)

BUDGETS = {"default": 8_000, "lango": 8_000, "zora": 30_000, "brain": 30_000}
TOKEN_FIELDS = ("observe_tokens", "observe_max_tokens", "tail_tokens", "tail_keep_tokens")
POLICIES = {
    "default": Policy(),
    "lango": Policy.lango(enabled=True),
    "zora": Policy.zora(),
    "brain": Policy.brain(),
}

IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
LIVES = itertools.count()
"""Each conversation begins on a day of its own, so that they are told apart."""
WORDS = st.one_of(st.integers(1, 30), st.integers(1, 30), st.integers(30, 400))


def scaled(policy: Policy, share: float) -> Policy:
    """The policy for a small window: all its budgets in proportion."""
    changes: dict[str, Any] = {
        name: max(1, int(tokens * share))
        for name in TOKEN_FIELDS
        if (tokens := getattr(policy, name)) is not None
    }
    changes["tail_keep_tokens"] = min(changes["tail_keep_tokens"], changes["tail_tokens"] - 1)
    changes["reflect_tokens"] = tuple(
        max(50, int(tokens * share)) for tokens in policy.reflect_tokens
    )
    return policy.replace(**changes)


def text(words: int) -> str:
    return " ".join(f"word{number}" for number in range(words))


@st.composite
def turns(draw: st.DrawFn) -> list[list[Message]]:
    """Turns of a question, a few rounds of tools, and an answer."""
    found: list[list[Message]] = []
    for number in range(draw(st.integers(4, 14))):
        turn = [Message.user(text(draw(WORDS)))]
        for place in range(draw(st.sampled_from([0, 0, 0, 1, 3]))):
            call = f"{number}-{place}"
            part = ToolCallPart(id=call, name="look", arguments="{}")
            turn.append(Message(role="assistant", content=(part,)))
            turn.append(Message.tool(call, text(draw(WORDS))))
        turn.append(Message.assistant(text(draw(WORDS))))
        found.append(turn)
    return found


@settings(max_examples=2_000 if IS_LONG else 15)
@given(preset=st.sampled_from(list(POLICIES)), turns=turns(), budget=st.integers(100, 2_000))
def test_the_raw_tail_keeps_its_budget_at_the_end_of_each_turn(
    preset: str, turns: list[list[Message]], budget: int
) -> None:
    asyncio.run(keep_budget(scaled(POLICIES[preset], budget / BUDGETS[preset]), turns))


async def keep_budget(policy: Policy, turns: list[list[Message]]) -> None:
    async with Memory.open(
        "sqlite:///:memory:",
        policy=policy,
        observer=ScriptedObserver(),
        reflector=ScriptedReflector(),
        clock=FixedClock(START + timedelta(days=next(LIVES))),
    ) as memory:
        chat = memory.conversation("a")
        for turn in turns:
            await chat.append(*turn)
            await chat.flush()
            await chat.context()
            snapshot = await chat.snapshot()
            assert (
                list(tail_problems(policy, snapshot.state, snapshot.tail, snapshot.segments)) == []
            )
        check_coverage(await chat.context(), snapshot.state, snapshot.segments)


@settings(max_examples=5_000 if IS_LONG else 200)
@given(
    sizes=st.lists(
        st.one_of(st.integers(1, 300), st.integers(300, 6_000), st.just(500_000)),
        min_size=1,
        max_size=60,
    ),
    budget=st.integers(2_000, 20_000),
)
def test_a_message_is_left_out_only_where_excerpts_of_a_quarter_leave_no_room_for_it(
    sizes: list[int], budget: int
) -> None:
    """Each is counted as it is, or as a quarter of the room; what is shown fills a quarter."""
    messages = [
        Message.user("word" * size).replace(seq=seq, tokens=size)
        for seq, size in enumerate(sizes, start=1)
    ]
    fitted = fit_tail(
        messages,
        first_seq=1,
        last_sum_tokens=sum(sizes),
        budget=budget,
        keep_last=0,
        count=lambda message: -(-len(message.text) // 4),
    )
    room = budget - min(STAND_IN_TOKENS, budget // 2)
    part = room // PARTS
    shown = {message.seq: message for message in fitted.messages}
    named = {seq for gap in fitted.omitted for seq in range(gap.first_seq, gap.last_seq + 1)}

    whole = {seq for seq, message in shown.items() if message is messages[seq - 1]}
    assert whole.isdisjoint(named)
    assert whole | named == set(range(1, len(sizes) + 1))
    assert sum(message.tokens for message in fitted.messages) <= budget
    assert all(sizes[seq - 1] > part for seq in shown.keys() - whole)
    if len(shown) < len(sizes):
        assert sum(min(size, part) for size in sizes) > room
        assert sum(min(sizes[seq - 1], part) for seq in shown) >= part
