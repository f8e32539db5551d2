"""Facts of a user are never seen by another user, nor by the same name in another tenant."""

import asyncio

import pytest
from hypothesis import given, settings, strategies as st

from remanence import Memory, Message, Policy
from remanence.tools import memory_tools

TENANTS = st.sampled_from(["t", "t2", "T", "t u", "default"])
USERS = st.sampled_from(["ana", "Ana", "ana2", "t", "bob", "u1"])
OWNERS = st.tuples(TENANTS, USERS)
WAYS = st.sampled_from(["said", "saved", "tool"])
ACTIONS = st.lists(st.tuples(OWNERS, WAYS), min_size=2, max_size=6)
PLANTED = "codeword"


@pytest.mark.timeout(1_800)
@settings(max_examples=8)
@given(ACTIONS)
def test_what_one_user_tells_is_known_to_that_user_alone(
    actions: list[tuple[tuple[str, str], str]],
) -> None:
    asyncio.run(_check(actions))


async def _check(actions: list[tuple[tuple[str, str], str]]) -> None:
    planted: dict[tuple[str, str], set[str]] = {}
    async with Memory.open("sqlite:///:memory:", policy=Policy.default(note_ratio=1.0)) as memory:
        for number, (owner, way) in enumerate(actions):
            word = f"{PLANTED}{number:03}x"
            planted.setdefault(owner, set()).add(word)
            await _plant(memory, owner, way, number, f"My name is {word}, I live in {word}.")
        for owner in {*planted, ("t", "nobody"), ("elsewhere", "ana")}:
            foreign = set().union(*(words for other, words in planted.items() if other != owner))
            seen = await _everything_seen(memory, owner)
            assert not {word for word in foreign if word in seen}
            assert all(word in seen for word in _latest(planted, owner, seen))


async def _plant(memory: Memory, owner: tuple[str, str], way: str, number: int, text: str) -> None:
    tenant, user = owner
    if way == "saved":
        await memory.facts.save(text, user=user, tenant=tenant)
        return
    chat = memory.conversation(f"chat {number}", user=user, tenant=tenant)
    await chat.append(Message.user("Hello." if way == "tool" else text))
    if way == "tool":
        save = next(tool for tool in memory_tools(chat) if tool.name == "memory_save")
        await save.handler({"summary": text})
    else:
        await chat.end()


async def _everything_seen(memory: Memory, owner: tuple[str, str]) -> str:
    """All that any call of a user shows of facts."""
    tenant, user = owner
    chat = memory.conversation(f"{user} looks", user=user, tenant=tenant)
    await chat.append(Message.user("What do you know?"))
    query = f"{PLANTED} name live " + " ".join(f"{PLANTED}{n:03}x" for n in range(6))
    tools = {tool.name: tool.handler for tool in memory_tools(chat)}
    pieces: list[object] = [
        await memory.facts.list(user=user, tenant=tenant, history=True),
        await memory.facts.search(query, user=user, tenant=tenant, limit=50),
        (await chat.context(recall=query)).to_text(),
        await chat.recall(query, limit=50),
        await tools["memory_search"]({"query": query, "limit": 20}),
        await tools["recall"]({"query": query, "limit": 20}),
    ]
    return "\n".join(str(piece) for piece in pieces)


def _latest(
    planted: dict[tuple[str, str], set[str]], owner: tuple[str, str], seen: str
) -> set[str]:
    """The user's own newest word, which supersedes the older ones."""
    own = planted.get(owner, set())
    return {max(own)} if own else set()
