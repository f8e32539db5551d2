"""Whether building a context takes longer as a conversation grows."""

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

from benchmarks.rows import Row, show
from benchmarks.texts import prose
from remanence import Conversation, Memory, Message, Policy
from remanence.testing import ScriptedObserver, ScriptedReflector

SIZES = (1_000, 10_000, 100_000)
FULL_SIZES = (*SIZES, 1_000_000)
BATCH = 1_000
CHARACTERS = 80
TURNS = 80

# Small budgets, so that a thousand messages fill them and contexts of all sizes are alike.
BUDGETS = {"reflect_tokens": (500, 500, 1_000), "max_context_tokens": 18_000}
OBSERVED = Policy.default(**BUDGETS)
UNOBSERVED = Policy.default(observe_tokens=10**10, **BUDGETS)


class Timing(NamedTuple):
    """Medians over a cycle of the tail: from one activation to the next."""

    milliseconds: float
    context_tokens: float


def measure(*, full: bool = False) -> list[Row]:
    """The time of `context` at each size, nothing observed and everything, and its growth.

    Observing takes the longest, so it is left out at the largest size.
    """
    sizes = FULL_SIZES if full else SIZES
    with tempfile.TemporaryDirectory() as folder:
        urls = {size: f"sqlite:///{Path(folder) / str(size)}.db" for size in sizes}
        unobserved = asyncio.run(with_nothing_observed(urls))
        observed = asyncio.run(with_everything_observed({s: urls[s] for s in sizes[:-1]}))
    return [
        *_rows("nothing observed", unobserved),
        *_rows("everything observed", observed),
    ]


def _rows(state: str, timings: Mapping[int, Timing]) -> Iterator[Row]:
    for size, timing in timings.items():
        yield Row(
            what=f"context at {size:,} messages, {state}",
            measured=timing.milliseconds,
            unit="ms",
            detail=f"{timing.context_tokens:,.0f} tokens",
        )
    smallest, largest = min(timings), max(timings)
    yield Row(
        what=f"context at {largest:,} messages ÷ at {smallest:,}, {state}",
        measured=timings[largest].milliseconds / timings[smallest].milliseconds,
        target=1.2,
    )


async def with_nothing_observed(urls: Mapping[int, str]) -> dict[int, Timing]:
    """The timing of tapes of each size that no observer has seen."""
    async with AsyncExitStack() as stack:
        chats: dict[int, Conversation] = {}
        for size, url in urls.items():
            memory = await stack.enter_async_context(Memory.open(url, policy=UNOBSERVED))
            chats[size] = memory.conversation("chat")
            await fill(chats[size], size)
        return await cycle(chats)


async def with_everything_observed(urls: Mapping[int, str]) -> dict[int, Timing]:
    """The timing of the same tapes after all of them is observed."""
    async with AsyncExitStack() as stack:
        chats: dict[int, Conversation] = {}
        for size, url in urls.items():
            opening = Memory.open(
                url, policy=OBSERVED, observer=ScriptedObserver(), reflector=ScriptedReflector()
            )
            memory = await stack.enter_async_context(opening)
            chats[size] = memory.conversation("chat")
            await chats[size].end()
        return await cycle(chats)


async def fill(chat: Conversation, size: int) -> None:
    """Append so many short messages, a thousand at once."""
    source = random.Random(1)
    texts = [prose(source, CHARACTERS) for _ in range(BATCH)]
    batch = [
        Message.assistant(text) if place % 2 else Message.user(text)
        for place, text in enumerate(texts)
    ]
    for _ in range(size // BATCH):
        await chat.append(*batch)
    await chat.recall("weather", limit=1)  # a search ends the indexing that goes on in idle time


async def cycle(chats: Mapping[int, Conversation]) -> dict[int, Timing]:
    """Go on with the conversations by turns, so that what else the machine does hits all alike."""
    source = random.Random(2)
    taken: dict[int, list[float]] = {size: [] for size in chats}
    tokens: dict[int, list[int]] = {size: [] for size in chats}
    for _ in range(TURNS):
        user, reply = prose(source, 2 * CHARACTERS), prose(source, 4 * CHARACTERS)
        for size, chat in chats.items():
            await chat.append(Message.user(user))
            began = time.perf_counter()
            context = await chat.context(system="You are a helpful assistant.")
            taken[size].append((time.perf_counter() - began) * 1_000)
            tokens[size].append(context.stats.context_tokens)
            await chat.append(Message.assistant(reply))
            await chat.flush()
    return {
        size: Timing(statistics.median(taken[size]), statistics.median(tokens[size]))
        for size in chats
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="go up to 1,000,000 messages")
    show(measure(full=parser.parse_args().full))


if __name__ == "__main__":
    main()
