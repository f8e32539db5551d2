"""Models that take explicit breakpoints of the prompt cache get them; others get plain text."""

import pytest
from openai.types.chat import ChatCompletionMessageParam
from pydantic import TypeAdapter
from tests.wire.reach import PATHS
from tests.wire.servers import ModelServer
from tests.wire.talking import ONE_TRY, SMALL, SYSTEM, conversing

from remanence import Chat
from remanence.types import Message


@pytest.mark.parametrize(
    ("model", "takes"),
    [
        ("gpt-5.6", True),
        ("gpt-5.6-mini", True),
        ("gpt-6", True),
        ("gpt-5", False),
        ("gpt-4o", False),
    ],
)
async def test_the_ends_of_notes_and_of_the_settled_tail_are_marked(
    server: ModelServer, model: str, *, takes: bool
) -> None:
    spec = f"openai:{model}@{server.url}{PATHS['openai']}"
    async with conversing(SMALL) as conversation:
        for number in range(60):
            await conversation.append(
                Message.user(f"Note {number}: the code of locker {number} is {number}7{number}."),
                Message.assistant("Noted."),
            )
        await conversation.flush()
        await Chat(conversation, model=spec, system=SYSTEM, options=ONE_TRY).send("Which codes?")
        shown = await conversation.context(system=SYSTEM)

    messages = server.received[0].body["messages"]
    TypeAdapter(list[ChatCompletionMessageParam]).validate_python(messages)
    marked = [
        (index, part["text"])
        for index, message in enumerate(messages)
        if isinstance(message["content"], list)
        for part in message["content"]
        if "prompt_cache_breakpoint" in part
    ]
    if not takes:
        assert not marked
        assert isinstance(messages[0]["content"], str)
        return
    assert [index for index, _ in marked][-1] == len(messages) - 1
    assert 2 <= len(marked) <= 3
    assert marked[-2][1].endswith(shown.system[-1].text)
