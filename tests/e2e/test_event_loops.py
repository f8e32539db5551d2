"""A memory belongs to the event loop that opened it; elsewhere its calls are refused at once."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import pytest

from remanence import Memory, Message
from remanence.errors import Closed

Call: TypeAlias = Callable[[Memory], Awaitable[object]]

CALLS: dict[str, Call] = {
    "append": lambda memory: memory.conversation("a").append(Message.user("Again.")),
    "context": lambda memory: memory.conversation("a").context(system="You help."),
    "flush": lambda memory: memory.conversation("a").flush(),
    "end": lambda memory: memory.conversation("a").end(),
    "facts": lambda memory: memory.facts.list(user="ana"),
    "check": lambda memory: memory.check(),
    "close": lambda memory: memory.close(),
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_from_another_event_loop_is_refused_at_once(name: str) -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        await memory.conversation("a").append(Message.user("Hello."))

        with pytest.raises(Closed, match=r"another event loop.*blocking\.Memory"):
            await asyncio.to_thread(call_in_a_loop, CALLS[name], memory)

        state = await memory.conversation("a").flush()
        assert state.last_seq == 1


def call_in_a_loop(call: Call, memory: Memory) -> None:
    async def within_limit() -> None:
        async with asyncio.timeout(10):
            await call(memory)

    asyncio.run(within_limit())
