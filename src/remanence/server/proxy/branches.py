"""The tapes of a conversation: its first one, and its branches by their numbers."""

from typing import Final, NamedTuple

from remanence.conversation import Conversation
from remanence.errors import WrongUser
from remanence.memory import Memory
from remanence.server.proxy.naming import Name
from remanence.types import MemoryState

MAX_BRANCHES: Final = 1_000


class Branch(NamedTuple):
    """A tape, which may be empty, and its state."""

    conversation: Conversation
    state: MemoryState


async def read_branch(memory: Memory, name: Name, number: int) -> Branch | None:
    """Return the tape of a number; None if another user has a conversation of its name.

    Raises:
        WrongUser: the conversation itself is another user's.
    """
    conversation = memory.conversation(name.tape(number), user=name.user, tenant=name.tenant)
    try:
        return Branch(conversation, await conversation.state())
    except WrongUser:
        if not number:
            raise
        return None
