"""A cache of chats: one for each conversation, user, channel, time zone and identity."""

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo

from remanence.chat import Chat, ChatSource, open_chat_model
from remanence.errors import ModelError
from remanence.http.documents import ChatBody
from remanence.memory import Memory
from remanence.providers import ModelOptions
from remanence.recent import Recent
from remanence.tools import memory_tools
from remanence.types import ConversationRef

RECENT: Final = 1_000

_Key: TypeAlias = tuple[ConversationRef, str | None, str | None, str | None, str]


class Chats:
    """Returns the same chat for a conversation that was used recently."""

    def __init__(
        self, memory: Memory, *, model: "ChatSource | None", system: str, identity: str, tools: bool
    ) -> None:
        self._memory = memory
        self._open: Callable[..., Chat] | None = None
        if model is not None:
            options = ModelOptions(connections=memory.connections)
            opened = open_chat_model(model, clock=memory.clock, options=options)
            self._open = partial(Chat, model=opened, system=system)
        self._identity = identity
        self._tools = tools
        self._chats: Recent[_Key, Chat] = Recent(RECENT)

    def get(self, ref: ConversationRef, turn: ChatBody) -> Chat:
        """Return the chat of a conversation for a turn, whose identity replaces the server's.

        Raises:
            InvalidMessage: a name is invalid.
            ModelError: `no_model`; the server was started without one.
        """
        user, channel = turn.user, turn.channel
        zone = ZoneInfo(turn.timezone) if turn.timezone else None
        conversation = self._memory.conversation(
            ref.id, user=user, tenant=ref.tenant, timezone=zone
        )
        if self._open is None:
            raise ModelError(
                "no_model", "this server has no model to chat with: start it with --model"
            )
        identity = self._identity if turn.identity is None else turn.identity
        key = (ref, user, channel, turn.timezone, identity)
        chat = self._chats.get(key)
        if chat is None:
            tools = memory_tools(conversation) if self._tools and user is not None else ()
            chat = self._open(conversation, channel=channel, identity=identity, tools=tools)
        self._chats[key] = chat
        return chat
