"""What 300 turns cost with memory, beside the whole history with a prompt cache."""

import argparse
import asyncio
from datetime import UTC, datetime
from typing import NamedTuple

from benchmarks.planted import planted
from benchmarks.prompt_cost import SYSTEM, TURN_SECONDS, Bill, rendered
from benchmarks.rows import Row, show
from benchmarks.texts import turns
from remanence import Memory, Message, Policy, count_tokens
from remanence.testing import FixedClock

TURNS = 300
TURN_TOKENS = 1_500
CHARACTERS = 4_130

WHOLE = Policy.default(enabled=False)


class Costs(NamedTuple):
    """Millions of characters, weighed by what they cost, and tokens of a turn."""

    memory: float
    full_history: float
    turn_tokens: float


def measure(*, count: int = TURNS) -> list[Row]:
    """The ratio of the two; a cached character costs 0.1, a new one 1.25 of a plain one."""
    costs = asyncio.run(_converse(count))
    detail = (
        f"{costs.memory:.2f} M and {costs.full_history:.2f} M characters; "
        f"{costs.turn_tokens:,.0f} tokens a turn"
    )
    what = f"cost of {count} turns of {TURN_TOKENS:,} tokens ÷ full history with caching"
    return [Row(what=what, measured=costs.memory / costs.full_history, target=0.33, detail=detail)]


async def _converse(count: int) -> Costs:
    """Both hold the same conversation; the embedded observer costs nothing."""
    clock = FixedClock(datetime(2027, 1, 4, 9, tzinfo=UTC))
    with_memory, whole = Bill(), Bill()
    tokens = 0
    url = "sqlite:///:memory:"
    async with (
        Memory.open(url, clock=clock) as memory,
        Memory.open(url, policy=WHOLE, clock=clock) as plain,
    ):
        chats = (memory.conversation("chat"), plain.conversation("chat"))
        for turn in turns(planted(count), characters=CHARACTERS):
            tokens += count_tokens(turn.user) + count_tokens(turn.assistant)
            clock.advance(TURN_SECONDS / 2)
            for chat, bill in zip(chats, (with_memory, whole), strict=True):
                await chat.append(Message.user(turn.user))
                bill.add(rendered(await chat.context(system=SYSTEM, recall=turn.user)))
            clock.advance(TURN_SECONDS / 2)
            for chat in chats:
                await chat.append(Message.assistant(turn.assistant))
                await chat.flush()
    return Costs(with_memory.million, whole.million, tokens / count)


def main() -> None:
    """Print the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS)
    show(measure(count=parser.parse_args().turns))


if __name__ == "__main__":
    main()
