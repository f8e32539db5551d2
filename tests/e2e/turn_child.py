"""A process that makes one turn of a conversation, and asks on its standard input when to answer.

`python turn_child.py FILE TEXT WAIT_SECONDS LEASE_SECONDS` tells on its standard output what happens: `begins`,
then `asked` with the roles that its model was shown and `answered`, or `taken`. A line on its
standard input lets its model answer.
"""

import asyncio
import json
import sys

from remanence import Chat, Memory, Settings
from remanence.errors import TurnTaken
from remanence.protocols import ModelRequest


def tell(*words: object) -> None:
    sys.stdout.write(f"{json.dumps(words)}\n")
    sys.stdout.flush()


async def answer(request: ModelRequest) -> str:
    tell("asked", request.prompt)
    await asyncio.to_thread(sys.stdin.readline)
    return "Gate B42."


async def main(file: str, text: str, wait: float, lease: float) -> None:
    settings = Settings(turn_wait_seconds=wait, lease_seconds=lease, workers=0)
    async with Memory.open(f"sqlite:///{file}", settings=settings) as memory:
        tell("begins")
        try:
            await Chat(memory.conversation("trip"), model=answer).send(text)
        except TurnTaken:
            tell("taken")
        else:
            tell("answered")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], *map(float, sys.argv[3:])))
