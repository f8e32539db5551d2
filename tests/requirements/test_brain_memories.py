"""REQUIREMENTS 1.3: the long-term memories that the brain preset adds to a turn."""

import pytest
from tests.requirements.samples import IN_MEMORY

from remanence import Context, Memory, Message, Policy


async def with_bees(characters: int) -> Context:
    """A turn about bees of a user with eight memories of them, of so many characters each."""
    async with Memory.open(IN_MEMORY, policy=Policy.brain(show_clock=False)) as memory:
        for number in range(8):
            fact = f"Ana keeps bees in garden {number}".ljust(characters, "z")
            await memory.facts.save(fact, user="ana")
        chat = memory.conversation("a", user="ana")
        await chat.append(Message.user("How are my bees?"))
        return await chat.context(system="You help.")


@pytest.mark.req("B-78")
async def test_five_memories_of_usual_length_take_some_five_hundred_tokens() -> None:
    context = await with_bees(300)

    assert context.volatile.count("(id: ") == 5
    assert 400 <= context.stats.volatile_tokens <= 600


@pytest.mark.req("B-78")
async def test_long_memories_are_left_out_beyond_their_budget() -> None:
    context = await with_bees(2_400)

    assert 1 <= context.volatile.count("(id: ") < 5
    assert context.stats.volatile_tokens <= context_budget()


def context_budget() -> int:
    return Policy.brain().facts_tokens
