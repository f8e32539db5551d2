"""How long a hostile input keeps the event loop: the longest stall for 100,000 characters of it."""

import argparse
import asyncio
import contextlib
import faulthandler
import gc
import json
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple, TypeAlias

from benchmarks.hostile import SHAPES, Shape
from benchmarks.rows import Row, show
from remanence import Conversation, Memory, Message, Policy
from remanence.archive.blocks import BlockStore
from remanence.types import ToolCallPart

CHARACTERS = 100_000
TARGET_MILLISECONDS = 50.0
BEAT_SECONDS = 0.0005
RUNS = 3
MAX_RUNS = 8
"""Other programs on the same processors only lengthen a stall: a long one is measured again."""
QUERY_CHARACTERS = 2_000
FACT_CHARACTERS = 500
POLICY = Policy(max_message_bytes=64 * 1024 * 1024)
ORDINARY = "What is loaded once is no stall, Ana: on Monday, 不是, é. " * 20


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


class Stall(NamedTuple):
    """The longest time between two beats, and the processor time of the loop's thread in it."""

    seconds: float = 0.0
    loop_seconds: float = 0.0


class Heartbeat:
    """Beats on the event loop, and notes the longest time between two beats by the wall clock.

    With *trace_seconds*, a beat that comes later than that prints where the threads are meanwhile.
    """

    def __init__(self, trace_seconds: float | None) -> None:
        self._longest = Stall()
        self._trace_seconds = trace_seconds

    async def beat(self) -> None:
        before, loop_before = time.perf_counter(), time.thread_time()
        while True:
            if self._trace_seconds is not None:
                faulthandler.dump_traceback_later(self._trace_seconds)
            await asyncio.sleep(BEAT_SECONDS)
            now, loop_now = time.perf_counter(), time.thread_time()
            self._longest = max(self._longest, Stall(now - before, loop_now - loop_before))
            before, loop_before = now, loop_now

    async def take(self) -> Stall:
        """The longest stall since the last call."""
        await asyncio.sleep(4 * BEAT_SECONDS)
        longest, self._longest = self._longest, Stall()
        return longest


@asynccontextmanager
async def heartbeat(trace_seconds: float | None) -> AsyncIterator[Heartbeat]:
    """A heart that beats beside the body."""
    heart = Heartbeat(trace_seconds)
    beating = asyncio.create_task(heart.beat(), name="heartbeat")
    try:
        yield heart
    finally:
        faulthandler.cancel_dump_traceback_later()
        beating.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await beating


async def _append(chat: Conversation, text: str) -> None:
    arguments = json.dumps({"text": text}, ensure_ascii=False)
    call = ToolCallPart(id="c1", name="run", arguments=arguments)
    await chat.append(
        Message.user(f"Look: {text}"),
        Message.assistant(tool_calls=[call]),
        Message.tool("c1", text),
        Message.assistant("Done."),
    )


async def _observe(chat: Conversation, _text: str) -> None:
    await chat.flush(everything=True)


async def _facts(chat: Conversation, text: str) -> None:
    await chat.facts.save(f"Note: {text[:FACT_CHARACTERS]}", user="ana")
    await chat.facts.search(text[:QUERY_CHARACTERS], user="ana")


async def _recall(chat: Conversation, text: str) -> None:
    await chat.recall(text[:QUERY_CHARACTERS])


async def _quote(chat: Conversation, text: str) -> None:
    await chat.context(system="You help.", recall=text[-QUERY_CHARACTERS:])
    await chat.context(system="You help.", recall=text)


async def _render(chat: Conversation, _text: str) -> None:
    context = await chat.context(system="You help.")
    for render in (
        context.to_anthropic,
        context.to_openai,
        context.to_openai_responses,
        context.to_gemini,
        context.to_text,
    ):
        await asyncio.sleep(BEAT_SECONDS)
        render()


async def _export(chat: Conversation, _text: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        await chat.export_blocks(BlockStore(directory))
    await chat.diagnostics()
    await chat.end()


Step: TypeAlias = Callable[[Conversation, str], Awaitable[None]]
STEPS: Mapping[str, Step] = {
    "append": _append,
    "observe": _observe,
    "facts": _facts,
    "recall": _recall,
    "quote": _quote,
    "render": _render,
    "export": _export,
}
"""What is done with an input; the stalls of each are measured by themselves."""


def measure(names: Sequence[str] = SOME, *, trace_seconds: float | None = None) -> list[Row]:
    """A row for each input."""
    asyncio.run(stalls_of(ORDINARY))
    gc.collect()
    gc.freeze()  # a collection looks at the objects of an input, and not at those of the modules
    return [_row(name, SHAPES[name], trace_seconds) for name in names]


def _row(name: str, shape: Shape, trace_seconds: float | None) -> Row:
    text = shape(CHARACTERS).replace("\0", "\ufffd")  # a tape refuses NUL
    began = time.process_time()
    best = asyncio.run(stalls_of(text, trace_seconds=trace_seconds))
    cpu_seconds, runs = time.process_time() - began, 1
    while runs < RUNS or (runs < MAX_RUNS and not _is_short(best)):
        again = asyncio.run(stalls_of(text))
        best = {step: min(best[step], again[step]) for step in STEPS}
        runs += 1
    step = max(best, key=lambda step: best[step])
    return Row(
        what=f"longest stall, {name}",
        measured=best[step].seconds * 1_000,
        unit="ms",
        target=TARGET_MILLISECONDS,
        reference="100,000 characters as text, as arguments and as a tool's result",
        detail=f"{step}; {best[step].loop_seconds * 1_000:.1f} ms of it on the loop's thread; "
        f"{cpu_seconds:.1f} s of CPU in all",
    )


def _is_short(stalls: Mapping[str, Stall]) -> bool:
    return max(stalls.values()).seconds * 1_000 <= TARGET_MILLISECONDS


async def stalls_of(text: str, *, trace_seconds: float | None = None) -> dict[str, Stall]:
    """The longest stall of each step."""
    stalls: dict[str, Stall] = {}
    async with Memory.open("sqlite:///:memory:", policy=POLICY) as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(Message.user("Let us begin. I live in Oslo and prefer trains."))
        await chat.flush(everything=True)
        async with heartbeat(trace_seconds) as heart:
            await heart.take()
            for name, step in STEPS.items():
                await step(chat, text)
                stalls[name] = await heart.take()
    return stalls


def main() -> None:
    """Print the table, the longest stalls first."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stalls", description=__doc__)
    parser.add_argument(
        "inputs", nargs="*", metavar="INPUT", help="names of inputs, by default all"
    )
    parser.add_argument(
        "--trace",
        type=float,
        metavar="MS",
        help="print where the threads are when a stall lasts so many milliseconds",
    )
    arguments = parser.parse_args()
    trace_seconds = arguments.trace / 1_000 if arguments.trace else None
    rows = measure(arguments.inputs or list(SHAPES), trace_seconds=trace_seconds)
    show(sorted(rows, key=lambda row: -(row.measured or 0.0)))


if __name__ == "__main__":
    main()
