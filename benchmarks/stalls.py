"""How long a hostile input keeps the event loop: the longest stall for 100,000 characters of it."""

import argparse
import asyncio
import contextlib
import json
import time
from collections.abc import Sequence

from benchmarks.hostile import SHAPES, Shape
from benchmarks.rows import Row, show
from remanence import Memory, Message, Policy
from remanence.types import ToolCallPart

CHARACTERS = 100_000
TARGET_MILLISECONDS = 50.0
BEAT_SECONDS = 0.0005
POLICY = Policy(max_message_bytes=64 * 1024 * 1024)


SOME = (
    "spaces",
    "dots",
    "dots in a tool's progress",
    "blank lines in a code fence",
    "spaces in a decision",
    "think tags",
    "backticks",
    "log lines",
    "next",
    "addresses",
    "deep list of json",
    "random punctuation",
)


class Heartbeat:
    """Beats on the event loop, and notes the longest time between two beats.

    Time is that of this process on its processors: what other programs take does not count.
    """

    def __init__(self) -> None:
        self.longest = 0.0

    async def beat(self) -> None:
        before = time.process_time()
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            now = time.process_time()
            self.longest = max(self.longest, now - before)
            before = now


def measure(names: Sequence[str] = SOME) -> list[Row]:
    """A row for each input: appended as messages of three kinds, observed, recalled and shown."""
    asyncio.run(_stall("What is loaded once is no stall, Ana: on Monday, 不是, é. " * 20))
    return [_row(name, SHAPES[name]) for name in names]


def _row(name: str, shape: Shape) -> Row:
    began = time.process_time()
    text = shape(CHARACTERS).replace("\0", "\ufffd")  # a tape refuses NUL
    stall = min(asyncio.run(_stall(text)) for _ in range(2))
    return Row(
        what=f"longest stall, {name}",
        measured=stall * 1_000,
        unit="ms",
        target=TARGET_MILLISECONDS,
        reference="100,000 characters as text and as a tool's result",
        detail=f"{(time.process_time() - began) / 2:.1f} s of CPU in all",
    )


async def _stall(text: str) -> float:
    heart = Heartbeat()
    async with Memory.open("sqlite:///:memory:", policy=POLICY) as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(Message.user("Let us begin. I live in Oslo and prefer trains."))
        await chat.flush(everything=True)
        beating = asyncio.create_task(heart.beat(), name="heartbeat")
        await asyncio.sleep(0.01)
        heart.longest = 0.0
        call = ToolCallPart(id="c1", name="run", arguments=json.dumps({"text": text}))
        await chat.append(
            Message.user(f"Look: {text}"),
            Message.assistant(tool_calls=[call]),
            Message.tool("c1", text),
            Message.assistant("Done."),
        )
        await chat.flush(everything=True)
        await chat.recall(text[:2_000])
        context = await chat.context(system="You help.", recall=text[-2_000:])
        context.to_anthropic()
        context.to_openai()
        beating.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await beating
    return heart.longest


def main() -> None:
    """Print the table, the longest stalls first."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stalls", description=__doc__)
    parser.add_argument(
        "inputs", nargs="*", metavar="INPUT", help="names of inputs, by default all"
    )
    arguments = parser.parse_args()
    rows = measure(arguments.inputs)
    show(sorted(rows, key=lambda row: -(row.measured or 0.0)))


if __name__ == "__main__":
    main()
