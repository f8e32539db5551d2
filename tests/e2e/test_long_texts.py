"""Long texts are counted, looked through and cut beside the event loop."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from remanence import Memory, Message, Policy

LONG = 30_000
"""Characters that are counted in a thread."""

SMALL = Policy.default(
    observe_tokens=200,
    tail_tokens=400,
    tail_keep_tokens=100,
    keep_last=2,
    reflect_tokens=(150, 600),
    note_ratio=0.01,
)
"""The notes have no room for what the first messages say."""


@contextmanager
def calls_here(function: str, file: str) -> Iterator[list[int]]:
    """The lengths of the texts that a function gets in this thread, which runs the event loop."""
    lengths: list[int] = []

    def note(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name == function and code.co_filename.endswith(file):
            lengths.append(len(frame.f_locals["text"]))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield lengths
    finally:
        sys.setprofile(before)


async def test_a_tail_that_exceeds_the_window_is_cut_beside_the_loop() -> None:
    policy = Policy(max_context_tokens=40_000)
    async with Memory.open("sqlite:///:memory:", policy=policy) as memory:
        chat = memory.conversation("chat")
        await chat.append(Message.user("a'" * LONG * 3))
        with calls_here("count", "estimator.py") as lengths:
            context = await chat.context(system="You help.")

    assert [gap.reason for gap in context.omitted] == ["excerpt"]
    assert max(lengths, default=0) < LONG


async def test_long_knowledge_is_counted_beside_the_loop() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("chat")
        await chat.append(Message.user("Hello."))
        with calls_here("count", "estimator.py") as lengths:
            context = await chat.context(system="You help.", knowledge=["rule. " * LONG])

    assert context.stats.system_tokens > LONG
    assert max(lengths, default=0) < LONG


async def test_a_query_with_a_very_long_word_finds_it() -> None:
    word = "a1" * 200
    async with Memory.open("sqlite:///:memory:", policy=SMALL) as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(Message.user(f"The checksum is {word}."))
        for number in range(40):
            await chat.append(Message.user(f"Step {number} is done, go on with the next one."))
        await chat.flush()
        context = await chat.context(recall=f"Which text was {word}?")

    assert "The checksum is a1a1" in context.volatile


async def test_notes_are_compared_with_their_source_beside_the_loop() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("chat")
        await chat.append(Message.user("I live in Oslo. " * 500))
        with calls_here("check_draft", "checking.py") as lengths:
            state = await chat.flush(everything=True)

    assert state.observed_seq == 1
    assert lengths == []
