"""Notes of a long coding session with tool output: what the user lays down stays in them."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from tests.builders import count_utf8_tokens

from remanence import Memory, Message, Policy
from remanence.types import Segment, ToolCallPart

STATEMENTS = {
    "I am allergic to penicillin.": "allergic penicillin",
    "From now on, never touch clock.py; ask me first.": "never clock.py ask first",
    "Please always answer in Portuguese.": "always Portuguese",
    "I prefer tabs over spaces.": "prefer tabs over spaces",
    "I'm the on-call engineer for the billing team this month.": "on-call billing team",
    "My manager is Tom Reed.": "manager Tom Reed",
    "We decided to use PostgreSQL for the ledger.": "decided PostgreSQL ledger",
    "Don't mention the roof again.": "Don't mention roof",
    "I work at Globex as a data engineer.": "work Globex data engineer",
    "Let's go with Redis Streams for the outbox.": "Redis Streams outbox",
    "Never push to the main branch without asking.": "Never push main branch",
    "My daughter Ines starts school in September.": "daughter Ines school September",
}
"""What the user says besides the questions, with the words by which a note still says it."""

TURNS = 200
_START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
_MODULES = ("parser", "ledger", "router", "cache", "billing", "export", "search", "mailer")


def _session() -> list[Message]:
    """Return the messages of the session, with a statement every few turns."""
    messages: list[Message] = []
    for turn in range(TURNS):
        module, line = _MODULES[turn % len(_MODULES)], 40 + turn * 7
        asked = f"Can you look at {module}.py line {line}?"
        if turn % 16 == 8 and turn // 16 < len(STATEMENTS):
            asked = f"{list(STATEMENTS)[turn // 16]} {asked}"
        call = ToolCallPart(id=f"c{turn}", name="run_tests", arguments=f'{{"path": "{module}"}}')
        output = [f"tests/test_{module}_{n}.py::test_case_{n} PASSED in 0.{n}3s" for n in range(20)]
        output.append(f"FAILED tests/test_{module}.py::test_{turn} - KeyError: 'k{turn}'")
        messages += [
            Message.user(asked),
            Message.assistant(tool_calls=[call]),
            Message.tool(f"c{turn}", "\n".join(output)),
            Message.assistant(
                f"The lookup of k{turn} in {module}.py fails at line {line}. "
                f"I have changed it to use get with a default, and the test passes now."
            ),
        ]
    return [
        message.replace(created_at=_START + timedelta(minutes=n))
        for n, message in enumerate(messages)
    ]


@pytest.fixture(scope="module")
def segments() -> tuple[Segment, ...]:
    async def written() -> tuple[Segment, ...]:
        async with Memory.open("sqlite:///:memory:", policy=Policy.default()) as memory:
            chat = memory.conversation("coding")
            await chat.append(*_session())
            await chat.flush(everything=True)
            return (*await chat.reflections(), *await chat.observations())

    return asyncio.run(written())


def test_what_the_user_lays_down_survives_reflection(segments: tuple[Segment, ...]) -> None:
    texts = [note.text for segment in segments for note in segment.notes]
    lost = [
        said
        for said, words in STATEMENTS.items()
        if not any(all(word in text for word in words.split()) for text in texts)
    ]
    assert any(segment.generation > 0 for segment in segments)
    assert lost == []


def test_output_of_tools_is_a_small_share_of_the_notes(segments: tuple[Segment, ...]) -> None:
    notes = [note for segment in segments for note in segment.notes]
    total = sum(count_utf8_tokens(note.text) for note in notes)
    output = sum(count_utf8_tokens(note.text) for note in notes if note.speaker == "tool")
    assert output <= 0.15 * total
