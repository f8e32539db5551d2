"""Opens a memory, forks, and prints what the child gets from it and from one of its own."""

import asyncio
import os
import sys

from remanence import Memory, Message, blocking
from remanence.errors import Closed


def tell(*words: object) -> None:
    sys.stdout.write(f"{' '.join(map(str, words))}\n")
    sys.stdout.flush()


async def use(memory: Memory) -> None:
    await memory.conversation("a").append(Message.user("Hello."))


async def use_own(url: str) -> None:
    async with Memory.open(url) as memory:
        await use(memory)
        tell("own", len(await memory.conversation("a").messages()))


def in_child(url: str, memory: Memory, blocked: blocking.Memory) -> None:
    try:
        asyncio.run(use(memory))
    except Closed as error:
        tell("awaited", error)
    try:
        blocked.conversation("a").append(Message.user("Hello."))
    except Closed as error:
        tell("blocking", error)
    blocked.close()
    asyncio.run(memory.close())
    # SQLite itself bears no file that was open at the fork.
    asyncio.run(use_own(f"{url}.child"))


def main(url: str) -> None:
    loop = asyncio.new_event_loop()
    memory: Memory = loop.run_until_complete(_open(url))
    with blocking.Memory.open(url) as blocked:
        if child := os.fork():
            os.waitpid(child, 0)
            loop.run_until_complete(use(memory))
            blocked.conversation("a").append(Message.user("Hello."))
            loop.run_until_complete(memory.close())
            return
        try:
            in_child(url, memory, blocked)
        finally:
            os._exit(0)


async def _open(url: str) -> Memory:
    return await Memory.open(url)


if __name__ == "__main__":
    main(sys.argv[1])
    tell("parent went on")
