"""The tapes of a conversation: the first one, and its numbered branches."""

import re
from collections.abc import Sequence
from itertools import chain
from typing import Final, NamedTuple

from remanence.conversation import Conversation
from remanence.memory import Memory
from remanence.server.proxy.naming import Name
from remanence.types import ConversationRef, MemoryState

MAX_BRANCHES: Final = 1_000

_NUMBER: Final = re.compile("[1-9][0-9]{0,2}")
_PAGE: Final = 20


class Branch(NamedTuple):
    """A tape and its state."""

    conversation: Conversation
    state: MemoryState


class Branches(NamedTuple):
    """The tapes of a conversation in order of their numbers, and a new one unless all are taken."""

    tapes: Sequence[Branch]
    next: Conversation | None


async def read_branches(memory: Memory, name: Name) -> Branches:
    """Return the tapes of a conversation, skipping ids of branches that belong to another user.

    Numbers may be missing, as tapes are deleted. The new tape comes after all existing ones, or
    takes a missing number if there is none after them.

    Raises:
        WrongUser: the conversation itself belongs to another user.
    """

    def conversation(number: int) -> Conversation:
        return memory.conversation(name.tape(number), user=name.user, tenant=name.tenant)

    states = await _read_states(memory, name)
    ours = [number for number in sorted(states) if states[number].user in (None, name.user)]
    if (first := await conversation(0).state()).last_seq:
        states[0] = first
        ours.insert(0, 0)
    behind = ours[-1] + 1 if first.last_seq else 0
    numbers = chain(range(behind, MAX_BRANCHES), range(MAX_BRANCHES))
    free = next((number for number in numbers if number not in states), None)
    return Branches(
        [Branch(conversation(number), states[number]) for number in ours],
        None if free is None else conversation(free),
    )


async def _read_states(memory: Memory, name: Name) -> dict[int, MemoryState]:
    """Return the states of existing conversations with the ids of branches, by branch number."""
    states: dict[int, MemoryState] = {}
    prefix = f"{name.conversation}~"
    after = ConversationRef(name.tenant, prefix)
    while page := await memory.conversations(tenant=name.tenant, after=after, limit=_PAGE):
        for state in page:
            if not state.ref.id.startswith(prefix):
                return states
            if _NUMBER.fullmatch(number := state.ref.id.removeprefix(prefix)):
                states[int(number)] = state
        after = page[-1].ref
    return states
