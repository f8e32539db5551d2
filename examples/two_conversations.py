"""What a user said on Monday is known on Thursday: facts go from one conversation to the next.

`answer` stands for a model; with a key, name one: `Chat(..., model="anthropic:claude-haiku-4-5")`.
"""

import asyncio
import tempfile
from pathlib import Path

from remanence import Chat, Memory
from remanence.protocols import ModelRequest

SYSTEM = "You are a travel agent."


async def answer(request: ModelRequest) -> str:
    """A model that can look one thing up in its prompt."""
    seen = request.stable + request.prompt
    if "When do I fly?" in request.prompt:
        return "At 13:25, with LH 454." if "LH 454" in seen else "I do not know your flight."
    return "Noted."


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'memory.db'}"

        async with Memory.open(url) as memory:
            monday = memory.conversation("monday", user="ana")
            chat = Chat(monday, model=answer, system=SYSTEM)
            await chat.send("I live in Lisbon. My flight LH 454 leaves on 2026-05-08 at 13:25.")
            await monday.end()

        async with Memory.open(url) as memory:
            for fact in await memory.facts.list(user="ana"):
                print(f"{fact.type}: {fact.summary}")
            for user in ("ana", "bob"):
                thursday = memory.conversation(f"thursday of {user}", user=user)
                reply = await Chat(thursday, model=answer, system=SYSTEM).send("When do I fly?")
                print(f"{user}: {reply.text}")


if __name__ == "__main__":
    asyncio.run(main())
