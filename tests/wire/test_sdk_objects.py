"""What the providers' own clients give can be appended as it is: objects, and their dumps."""

from collections.abc import Callable
from typing import Any, TypeAlias

import anthropic
import openai
import pytest
from pydantic import BaseModel
from tests.wire.dialects import Call, Reply
from tests.wire.reach import KEY
from tests.wire.servers import ModelServer

from remanence import Memory, Message

Give: TypeAlias = Callable[[BaseModel], Any]  # an SDK's object in one of its shapes

REPLY = Reply(
    text="My locker code is 4471.", calls=(Call(id="toolu_1", name="look", arguments={"at": "it"}),)
)
SHAPES: dict[str, Give] = {
    "the object": lambda message: message,
    "its dump": lambda message: message.model_dump(),
    "its dump as JSON": lambda message: message.model_dump(mode="json"),
    "its dump without unset fields": lambda message: message.model_dump(exclude_unset=True),
}
ASKED: Any = [{"role": "user", "content": "Which code?"}]


async def anthropic_message(server: ModelServer, *, streamed: bool) -> anthropic.types.Message:
    async with anthropic.AsyncAnthropic(base_url=server.url, api_key=KEY) as client:
        arguments: Any = {"model": "claude-haiku-4-5", "max_tokens": 99, "messages": ASKED}
        if not streamed:
            message: anthropic.types.Message = await client.messages.create(**arguments)
            return message
        async with client.messages.stream(**arguments) as stream:
            return await stream.get_final_message()


async def openai_message(server: ModelServer) -> openai.types.chat.ChatCompletionMessage:
    async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=KEY) as client:
        completion = await client.chat.completions.create(model="gpt-5-mini", messages=ASKED)
    return completion.choices[0].message


def expect_whole(message: Message) -> None:
    assert message.text == "My locker code is 4471."
    assert [call.name for call in message.tool_calls] == ["look"]
    assert message.tool_calls[0].arguments.replace(" ", "") == '{"at":"it"}'


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_an_answer_of_anthropics_client_is_read_whole(
    server: ModelServer, shape: str, *, streamed: bool
) -> None:
    server.script(REPLY)
    message = Message.from_anthropic(
        SHAPES[shape](await anthropic_message(server, streamed=streamed))
    )
    expect_whole(message)


@pytest.mark.parametrize("shape", SHAPES)
async def test_an_answer_of_openais_client_is_read_whole(server: ModelServer, shape: str) -> None:
    server.script(REPLY)
    expect_whole(Message.from_openai(SHAPES[shape](await openai_message(server))))


async def test_a_dict_may_hold_objects_of_the_clients(server: ModelServer) -> None:
    server.script(REPLY, REPLY)
    blocks = (await anthropic_message(server, streamed=False)).content
    expect_whole(Message.from_anthropic({"role": "assistant", "content": blocks}))
    said = await openai_message(server)
    answer = {"role": "assistant", "content": said.content, "tool_calls": said.tool_calls}
    expect_whole(Message.from_openai(answer))


async def test_a_dumped_answer_is_observed_recalled_and_sent_to_the_other_provider(
    server: ModelServer,
) -> None:
    server.script(Reply(text=REPLY.text))
    dumped = (await anthropic_message(server, streamed=False)).model_dump()
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("a")
        await chat.append(Message.user("Which code?"), Message.from_anthropic(dumped))
        await chat.flush(everything=True)
        hits = await chat.recall("locker code")
        notes = "".join(segment.text for segment in await chat.observations())
        context = await chat.context()

    assert "4471" in notes
    assert any("4471" in hit.snippet for hit in hits)
    assert context.to_openai()["messages"][-1]["content"] == REPLY.text


async def test_both_clients_take_back_what_they_gave(server: ModelServer) -> None:
    server.script(REPLY, REPLY)
    answers = [
        Message.from_anthropic(await anthropic_message(server, streamed=False)),
        Message.from_openai(await openai_message(server)),
    ]
    for answer in answers:
        async with Memory.open("sqlite:///:memory:") as memory:
            chat = memory.conversation("a")
            await chat.append(Message.user("Which code?"), answer, Message.tool("toolu_1", "4471"))
            context = await chat.context(system="You help.")
        async with anthropic.AsyncAnthropic(base_url=server.url, api_key=KEY) as client:
            sent: Any = context.to_anthropic()
            await client.messages.create(model="claude-haiku-4-5", max_tokens=99, **sent)
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=KEY) as client:
            sent = context.to_openai()
            await client.chat.completions.create(model="gpt-5-mini", **sent)

    assert [request.path for request in server.received[2:]] == [
        "/v1/messages",
        "/v1/chat/completions",
    ] * 2


async def test_a_whole_completion_is_refused_with_the_remedy(server: ModelServer) -> None:
    async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=KEY) as client:
        completion = await client.chat.completions.create(model="gpt-5-mini", messages=ASKED)
    with pytest.raises(ValueError, match=r"pass completion\.choices\[0\]\.message"):
        Message.from_openai(completion)
