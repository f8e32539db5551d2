"""An agent loop of one's own, in the shape of Anthropic's Messages API, with tools.

`ScriptedClient` stands for `anthropic.AsyncAnthropic()`: same call, same answer, no network.
"""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from remanence import Conversation, Memory, Message

JsonObject = dict[str, Any]  # a request or answer of the provider

SYSTEM = "You are a travel agent. Use the tools."
FIND_GATE: JsonObject = {
    "name": "find_gate",
    "description": "The gate of a flight.",
    "input_schema": {
        "type": "object",
        "properties": {"flight": {"type": "string"}},
        "required": ["flight"],
    },
}


@dataclass
class ScriptedClient:
    """Gives the answers of a script and keeps the requests that it got."""

    script: list[list[JsonObject]]
    requests: list[JsonObject] = field(default_factory=list)

    async def create(self, **request: Any) -> JsonObject:  # what the provider takes
        self.requests.append(request)
        return {"role": "assistant", "content": self.script.pop(0)}


def find_gate(flight: str) -> str:
    return "B42" if flight == "LH 454" else "unknown"


async def turn(chat: Conversation, client: ScriptedClient, text: str) -> str:
    """Answer *text*: ask the model, and do what it asks for, until it has no further wish."""
    await chat.append(Message.user(text))
    while True:
        context = await chat.context(system=SYSTEM)
        answer = await client.create(
            model="claude-sonnet-5-5", max_tokens=1_024, tools=[FIND_GATE], **context.to_anthropic()
        )
        message = Message.from_anthropic(answer)
        await chat.append(message)
        if not message.tool_calls:
            return message.text
        results = [
            Message.tool(call.id, find_gate(**json.loads(call.arguments)))
            for call in message.tool_calls
        ]
        await chat.append(*results)


async def main() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "find_gate", "input": {"flight": "LH 454"}}
    client = ScriptedClient(
        [
            [{"type": "text", "text": "I look it up."}, call],
            [{"type": "text", "text": "LH 454 leaves from gate B42."}],
        ]
    )
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("trip", user="ana")
        print(await turn(chat, client, "Which gate has LH 454?"))
        for message in await chat.messages():
            print(message.seq, message.full_text)


if __name__ == "__main__":
    asyncio.run(main())
