"""The raw tail keeps its budget under every preset, whatever is said."""

import asyncio
import itertools
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from remanence import Memory, Message, Policy
from remanence.cli.replay import tail_problems
from remanence.context.context import Context
from remanence.context.tail import PARTS, STAND_IN_TOKENS, fit_tail
from remanence.testing import FixedClock, ScriptedObserver, ScriptedReflector, check_coverage
from remanence.testing.clock import START
from remanence.testing.invariants import cached_prefix, flatten
from remanence.types import ToolCallPart
from remanence.wire.validate import anthropic_problems, openai_problems

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


@settings(max_examples=2_000 if IS_LONG else 6)
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


@settings(max_examples=5_000 if IS_LONG else 30)
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


TEXTS = st.builds(
    lambda unit, length: (unit * length)[: max(len(unit), length)],
    st.sampled_from(
        ["word ", "旅", "か\u3099", "👩‍👩‍👧", "👍🏽", "x", "ก็", "1234567", '{"k": 1}, ', "a\u2028"]
    ),
    st.sampled_from([1, 1, 20, 20, 80, 400, 3_000, 40_000]),
)
ARGUMENTS = TEXTS.map(lambda text: json.dumps({"text": text}, ensure_ascii=False))


@st.composite
def rounds(draw: st.DrawFn) -> list[list[Message]]:
    """Messages of any sizes, and calls with all, some or none of their results, in each form."""
    found: list[list[Message]] = []
    for number in range(draw(st.integers(1, 12))):
        if draw(st.booleans()):
            is_user, said = draw(st.booleans()), draw(TEXTS)
            found.append([Message.user(said) if is_user else Message.assistant(said)])
            continue
        ids = [f"{number}-{place}" for place in range(draw(st.sampled_from([1, 2, 5, 60])))]
        arguments = draw(ARGUMENTS)
        calls = [ToolCallPart(id=id_, name="look", arguments=arguments) for id_ in ids]
        answered = draw(st.permutations(ids))[: draw(st.sampled_from([0, 1, 60, 60]))]
        said = draw(TEXTS)
        results = [Message.tool(id_, said) for id_ in answered]
        is_one_message = draw(st.booleans())
        if results and is_one_message:
            content = tuple(part for message in results for part in message.content)
            results = [Message(role="tool", content=content)]
        if draw(st.booleans()):
            found.append([Message.assistant(tool_calls=calls), *results])
        else:
            found += [[Message.assistant(tool_calls=[call]) for call in calls], results]
    return [messages for messages in found if messages]


@asynccontextmanager
async def memory_without_notes(window: int) -> AsyncIterator[Memory]:
    """A memory for a small window, whose observer fails each time."""
    async with Memory.open(
        "sqlite:///:memory:",
        policy=Policy(
            max_context_tokens=window,
            observe_tokens=window // 6,
            tail_tokens=window // 4,
            tail_keep_tokens=window // 16,
            keep_last=2,
            reflect_tokens=(window // 10, window // 8),
        ),
        observer=ScriptedObserver([RuntimeError("down")] * 1_000),
        clock=FixedClock(START + timedelta(days=next(LIVES))),
    ) as memory:
        yield memory


@settings(max_examples=2_000 if IS_LONG else 12)
@given(rounds=rounds(), window=st.sampled_from([800, 1_000, 2_000, 4_000, 9_000]))
def test_every_message_of_any_size_is_accounted_for_while_the_observer_is_down(
    rounds: list[list[Message]], window: int
) -> None:
    asyncio.run(account_for_all(rounds, window))


async def account_for_all(rounds: list[list[Message]], window: int) -> None:
    async with memory_without_notes(window) as memory:
        chat = memory.conversation("a")
        for messages in rounds:
            await chat.append(*messages)
            context = await chat.context(system="You help.")
            check_accounts(context, {message.seq: message for message in await chat.messages()})
            assert context.stats.context_tokens <= window
            assert anthropic_problems(context.to_anthropic()) == ()
            assert openai_problems(context.to_openai()) == ()


def check_accounts(context: Context, tape: dict[int, Message]) -> None:
    """Each message is whole, named with an excerpt that is shorter, a line, or named."""
    named = {reason: set[int]() for reason in ("excerpt", "stand_in", "over_budget")}
    for gap in context.omitted:
        named[gap.reason].update(range(gap.first_seq, gap.last_seq + 1))
    shown = {message.seq: message for message in context.messages}
    whole = {seq for seq, message in shown.items() if message == tape[seq]}
    stand_in = [block.text for block in context.system if block.kind == "stand_in"]
    lines = {int(line[1:].split()[0]) for text in stand_in for line in text.splitlines()[1:]}

    assert lines == named["stand_in"]
    assert max(tape) in shown
    assert sum(map(len, (whole, *named.values()))) == len(tape), "each is named once"
    assert whole.union(*named.values()) == set(tape)
    assert shown.keys() - whole <= named["excerpt"]
    first = min(shown)  # which says how many calls are left out
    assert all(shown[seq].tokens < tape[seq].tokens for seq in shown.keys() - whole - {first})


@settings(max_examples=300 if IS_LONG else 10)
@given(
    huge=st.lists(st.sampled_from([2_000, 9_000, 60_000]), min_size=1, max_size=5),
    words=st.integers(1, 30),
)
def test_a_full_tail_moves_once_for_a_quarter_of_its_room_and_not_with_each_message(
    huge: list[int], words: int
) -> None:
    asyncio.run(count_moves(huge, words))


async def count_moves(huge: list[int], words: int) -> None:
    window, moves, new = 6_000, 0, 0
    async with memory_without_notes(window) as memory:
        chat = memory.conversation("a")
        await chat.append(*[Message.user(text(size)) for size in huge])
        before = await chat.context(system="You help.")
        for _ in range(30):
            (message,) = await chat.append(Message.user(text(words)))
            new += message.tokens
            context = await chat.context(system="You help.")
            prefix = cached_prefix(before)
            moves += flatten(context)[: len(prefix)] != prefix
            before = context
    assert moves <= PARTS + new // (window // 2 // (2 * PARTS))
