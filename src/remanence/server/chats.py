"""A cache of chats by conversation, user, channel, time zone and identity."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo

from remanence.chat import Chat, ChatSource, open_chat_model
from remanence.conversation import Conversation
from remanence.errors import ModelError
from remanence.http.documents import ChatBody
from remanence.memory import Memory
from remanence.providers import ModelOptions
from remanence.recent import Recent
from remanence.server.audit import log_tool_erasure
from remanence.tools import memory_tools
from remanence.types import ConversationRef, Tool
from remanence.wire.json_value import JsonObject

RECENT: Final = 1_000

_FORGET: Final = "memory_forget"

_Key: TypeAlias = tuple[ConversationRef, str | None, str | None, str | None, str, bool]


class Chats:
    """Returns the same chat for a recently used conversation."""

    def __init__(
        self, memory: Memory, *, model: ChatSource | None, system: str, identity: str, tools: bool
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

    def get(self, ref: ConversationRef, turn: ChatBody, *, may_erase: bool) -> Chat:
        """Return the chat for a turn, whose identity, if any, replaces the server's.

        The model gets tools that erase only with *may_erase*.

        Raises:
            InvalidMessage: a name is invalid.
            ModelError: `no_model`: the server was started without a model.
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
        key = (ref, user, channel, turn.timezone, identity, may_erase)
        chat = self._chats.get(key)
        if chat is None:
            has_tools = self._tools and user is not None
            tools = _tools_of(conversation, user, may_erase=may_erase) if has_tools else ()
            chat = self._open(conversation, channel=channel, identity=identity, tools=tools)
        self._chats[key] = chat
        return chat


def _tools_of(conversation: Conversation, user: str | None, *, may_erase: bool) -> tuple[Tool, ...]:
    """Return the tools of a chat, whose erasures are audited."""
    return tuple(
        _with_audit(tool, conversation.ref, user) if tool.name == _FORGET else tool
        for tool in memory_tools(conversation)
        if may_erase or tool.name != _FORGET
    )


def _with_audit(tool: Tool, ref: ConversationRef, user: str | None) -> Tool:
    async def handler(given: JsonObject) -> str:
        if given.get("query"):  # which erases nothing
            return await tool.handler(given)
        named, status = given.get("conversation"), 0
        of = ConversationRef(ref.tenant, named) if isinstance(named, str) and named else ref
        try:
            text = await tool.handler(given)
            status = 200 if text.startswith("Forgotten") else 422
            return text
        finally:
            log_tool_erasure(tool.name, ref=of, user=user, status=status)

    return replace(tool, handler=handler)
