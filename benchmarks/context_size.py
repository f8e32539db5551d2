"""Whether building a context takes longer as a conversation grows."""

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.rows import Row, show
from benchmarks.texts import prose
from remanence import Memory, Message, Policy
from remanence.testing import ScriptedObserver, ScriptedReflector

SIZES = (1_000, 10_000, 100_000)
FULL_SIZES = (*SIZES, 1_000_000)
BATCH = 1_000
CHARACTERS = 80
TURNS = 80

# Small budgets, so that a thousand messages fill them and contexts of all sizes are alike.
BUDGETS = {"reflect_tokens": (500, 500, 1_000), "max_context_tokens": 18_000}
OBSERVED = Policy.default(**BUDGETS)
UNOBSERVED = Policy.default(observe_tokens=10**12, **BUDGETS)


class Timing(NamedTuple):
    """Medians over a cycle of the tail: from one activation to the next."""

    milliseconds: float
    context_tokens: float
    filled_seconds: float


def measure(*, full: bool = False) -> list[Row]:
    """The time of `context` at each size, everything observed and nothing, and its growth."""
    sizes = FULL_SIZES if full else SIZES
    with tempfile.TemporaryDirectory() as folder:
        timings = [asyncio.run(at_size(Path(folder) / f"{size}.db", size)) for size in sizes]
    rows: list[Row] = []
    for place, state in enumerate(("nothing observed", "everything observed")):
        of_state = [timing[place] for timing in timings]
        rows += [_row(size, state, timing) for size, timing in zip(sizes, of_state, strict=True)]
        ratio = of_state[-1].milliseconds / of_state[0].milliseconds
        rows.append(
            Row(
                what=f"context at {sizes[-1]:,} messages ÷ at 1,000, {state}",
                measured=ratio,
                target=1.2,
            )
        )
    return rows


def _row(size: int, state: str, timing: Timing) -> Row:
    return Row(
        what=f"context at {size:,} messages, {state}",
        measured=timing.milliseconds,
        unit="ms",
        detail=f"{timing.context_tokens:,.0f} tokens; prepared in {timing.filled_seconds:.0f} s",
    )


async def at_size(path: Path, size: int) -> tuple[Timing, Timing]:
    """The timing before and after everything is observed."""
    url = f"sqlite:///{path}"
    began = time.perf_counter()
    async with Memory.open(url, policy=UNOBSERVED) as memory:
        await fill(memory, size)
        filled = time.perf_counter() - began
        unobserved = await cycle(memory, filled)
    began = time.perf_counter()
    async with Memory.open(
        url, policy=OBSERVED, observer=ScriptedObserver(), reflector=ScriptedReflector()
    ) as memory:
        await memory.conversation("chat").end()
        observed = await cycle(memory, time.perf_counter() - began)
    return unobserved, observed


async def fill(memory: Memory, size: int) -> None:
    """Append so many short messages, a thousand at once."""
    source = random.Random(1)
    texts = [prose(source, CHARACTERS) for _ in range(BATCH)]
    batch = [
        Message.assistant(text) if place % 2 else Message.user(text)
        for place, text in enumerate(texts)
    ]
    chat = memory.conversation("chat")
    for _ in range(size // BATCH):
        await chat.append(*batch)
    await chat.recall("weather", limit=1)  # a search ends the indexing that goes on in idle time


async def cycle(memory: Memory, filled_seconds: float) -> Timing:
    """Go on with the conversation, and time the context of each turn."""
    chat = memory.conversation("chat")
    source = random.Random(2)
    taken: list[float] = []
    tokens: list[int] = []
    for _ in range(TURNS):
        await chat.append(Message.user(prose(source, 2 * CHARACTERS)))
        began = time.perf_counter()
        context = await chat.context(system="You are a helpful assistant.")
        taken.append((time.perf_counter() - began) * 1_000)
        tokens.append(context.stats.context_tokens)
        await chat.append(Message.assistant(prose(source, 4 * CHARACTERS)))
        await chat.flush()
    return Timing(statistics.median(taken), statistics.median(tokens), filled_seconds)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="go up to 1,000,000 messages")
    show(measure(full=parser.parse_args().full))


if __name__ == "__main__":
    main()
