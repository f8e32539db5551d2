"""A conversation of a service."""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from hashlib import sha256
from typing import Final, TypeAlias, TypeVar
from uuid import uuid4

from httpx2 import EventSource
from pydantic import BaseModel, TypeAdapter

from remanence.client.transport import Transport, make_body, quote_name
from remanence.errors import ConversationNotFound, DuplicateMessage
from remanence.http.documents import (
    ChatBody,
    ContextBody,
    ContextDocument,
    ConversationDocument,
    FlushBody,
    ForgetBody,
    ForkBody,
    MessageDocument,
    MessageFormat,
    MessagesDocument,
    NewMessages,
    ReplyDocument,
    RequestFormat,
    TextDocument,
    ToolCallDocument,
    ToolResultDocument,
)
from remanence.http.problems import error_of
from remanence.types import Event, Hit, HitKind, LogEntry, Receipt, Segment
from remanence.wire.json_value import JsonObject

T = TypeVar("T")
TurnEvent: TypeAlias = TextDocument | ToolCallDocument | ToolResultDocument | Event | ReplyDocument

_TURN_EVENTS: Final[dict[str, TypeAdapter[TurnEvent]]] = {
    "text": TypeAdapter(TextDocument),
    "tool_call": TypeAdapter(ToolCallDocument),
    "tool_result": TypeAdapter(ToolResultDocument),
    "memory": TypeAdapter(Event),
    "done": TypeAdapter(ReplyDocument),
}
_PROBLEM: Final = TypeAdapter(JsonObject)


class AsyncConversation:
    """One conversation, like `remanence.Conversation`; messages are a provider's JSON objects."""

    def __init__(
        self, transport: Transport, conversation_id: str, *, tenant: str | None, user: str | None
    ) -> None:
        """Use `client.conversation`."""
        self.id = conversation_id
        self.tenant = tenant
        self.user = user
        self._transport = transport
        self._path = f"/v1/conversations/{quote_name('conversation id', conversation_id)}"

    async def state(self) -> ConversationDocument:
        """Return the state; raises `ConversationNotFound` before the first message."""
        return await self._get(ConversationDocument, "")

    async def append(
        self,
        *messages: JsonObject,
        format: MessageFormat = "openai",  # noqa: A002 - the field's name
        timezone: str | None = None,
    ) -> list[MessageDocument]:
        """Append messages to the tape, all or none; they are durable when this returns.

        *timezone* is the name of the user's time zone, such as "Europe/Berlin".
        """
        body = make_body(NewMessages, messages=[*messages], format=format, timezone=timezone)
        return (await self._post(MessagesDocument, "/messages", body)).messages

    async def messages(
        self,
        *,
        after: int = 0,
        limit: int = 100,
        format: MessageFormat = "openai",  # noqa: A002 - the field's name
    ) -> list[MessageDocument]:
        """Return up to *limit* messages with a seq above *after*, in order."""
        query = {"after": after, "limit": limit, "format": format}
        return (await self._get(MessagesDocument, "/messages", **query)).messages

    async def context(
        self,
        *,
        system: str = "",
        identity: str = "",
        knowledge: Sequence[str] = (),
        recall: str | None = None,
        channel: str | None = None,
        model: str | None = None,
        format: RequestFormat = "anthropic",  # noqa: A002 - the field's name
        timezone: str | None = None,
    ) -> ContextDocument:
        """Return the context for the next model call, in a provider's format.

        Days are those of *timezone*, by default of the newest user message.
        """
        body = make_body(
            ContextBody,
            system=system,
            identity=identity,
            knowledge=[*knowledge],
            recall=recall,
            channel=channel,
            model=model,
            format=format,
            timezone=timezone,
        )
        return await self._post(ContextDocument, "/context", body)

    async def chat(
        self,
        message: str | JsonObject | None = None,
        *,
        format: MessageFormat = "openai",  # noqa: A002 - the field's name
        channel: str | None = None,
        identity: str | None = None,
        timezone: str | None = None,
    ) -> ReplyDocument:
        """Return the answer of the service's model to a text or a message.

        By default, the unanswered message on the tape is answered. *timezone* is the name of the
        user's time zone, such as "Europe/Berlin".

        After an error, the same message again continues its turn, or returns its answer if only that
        was lost on the way.
        """
        given = {"channel": channel, "identity": identity, "timezone": timezone}
        with self._answer_id(message) as answer_id:
            body = self._turn(message, format=format, answer_id=answer_id, **given)
            return await self._post(ReplyDocument, "/chat", body)

    async def stream(
        self,
        message: str | JsonObject | None = None,
        *,
        format: MessageFormat = "openai",  # noqa: A002 - the field's name
        channel: str | None = None,
        identity: str | None = None,
        timezone: str | None = None,
    ) -> AsyncGenerator[TurnEvent, None]:
        """Yield the pieces of an answer, then changes of the memory, and finally the whole reply.

        The request is not retried. Leaving the iteration stops the model; the tape keeps the answer
        so far.
        """
        given = {"channel": channel, "identity": identity, "timezone": timezone}
        path, last = f"{self._path}/chat", None
        with self._answer_id(message) as answer_id:
            body = self._turn(message, format=format, answer_id=answer_id, **given, stream=True)
            async with self._transport.stream("POST", path, {}, body) as response:
                async for event in EventSource(response, max_event_size=None):
                    if event.event == "error":
                        problem = _PROBLEM.validate_json(event.data)
                        raise error_of(problem, problem.get("status", 500))
                    if event.event == "done":
                        last = _TURN_EVENTS["done"].validate_json(event.data)
                    elif known := _TURN_EVENTS.get(event.event):  # a newer service may send more
                        yield known.validate_json(event.data)
        if last is not None:  # a reader who leaves now has read all of the turn
            yield last

    async def observations(self, *, after: int = 0, limit: int = 100) -> tuple[Segment, ...]:
        """Return live observations of messages above the seq *after*, oldest first."""
        return await self._get(tuple[Segment, ...], "/observations", after=after, limit=limit)

    async def reflections(self, *, after: int = 0, limit: int = 100) -> tuple[Segment, ...]:
        """Return live reflections of messages above the seq *after*, oldest first."""
        return await self._get(tuple[Segment, ...], "/reflections", after=after, limit=limit)

    async def log(self, *, after: int = 0, limit: int = 100) -> tuple[LogEntry, ...]:
        """Return committed changes of the memory above the version *after*, oldest first."""
        return await self._get(tuple[LogEntry, ...], "/log", after=after, limit=limit)

    async def recall(
        self,
        query: str,
        *,
        limit: int = 5,
        kind: HitKind | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> tuple[Hit, ...]:
        """Return matching notes, messages and facts, best first, with their sources."""
        given = {"query": query, "limit": limit, "kind": kind, "since": since, "until": until}
        return await self._get(tuple[Hit, ...], "/recall", **given)

    async def flush(self, *, everything: bool = False, retry: bool = False) -> ConversationDocument:
        """Wait until no background work is due, apart from steps that wait after a failure.

        *everything* includes work that is not due yet; *retry* includes failed steps that wait.
        """
        body = make_body(FlushBody, everything=everything, retry=retry)
        return await self._post(ConversationDocument, "/flush", body)

    async def end(self) -> ConversationDocument:
        """Observe all remaining messages and extract facts about the user; waits for the models."""
        return await self._post(ConversationDocument, "/end")

    async def fork(self, id: str, *, last_seq: int) -> ConversationDocument:  # noqa: A002 - the field's name
        """Begin the conversation *id* with the messages up to *last_seq*, and return its state.

        The request is not retried. Raises `ConversationGrown` if that conversation has messages.
        """
        body = make_body(ForkBody, id=id, last_seq=last_seq)
        return await self._post(ConversationDocument, "/fork", body, tries=1)

    async def forget(
        self,
        *message_ids: str,
        facts: Sequence[str] = (),
        query: str | None = None,
        everywhere: bool = False,
    ) -> Receipt:
        """Erase messages and facts with everything derived from them; a query only finds candidates.

        With *everywhere*, the query searches all conversations of the user.
        """
        body = make_body(
            ForgetBody,
            message_ids=[*message_ids],
            facts=[*facts],
            query=query,
            everywhere=everywhere,
        )
        return await self._post(Receipt, "/forget", body, tries=1)

    async def delete(self) -> Receipt | None:
        """Erase the conversation with its notes and facts; None if it did not exist."""
        try:
            return await self._transport.call(Receipt, "DELETE", self._path, self._query, tries=1)
        except ConversationNotFound:
            return None

    @property
    def _query(self) -> dict[str, object]:
        return {"tenant": self.tenant, "user": self.user}

    async def _get(self, shape: type[T], path: str, **query: object) -> T:
        return await self._transport.call(shape, "GET", self._path + path, self._query | query)

    async def _post(
        self, shape: type[T], path: str, body: BaseModel | None = None, *, tries: int = 3
    ) -> T:
        query = {} if isinstance(body, ChatBody) else self._query
        return await self._transport.call(
            shape, "POST", self._path + path, query, body, tries=tries
        )

    @contextmanager
    def _answer_id(self, message: str | JsonObject | None) -> Iterator[str]:
        """Yield the id of a turn's answer: that of the last turn if it failed and was the same."""
        failed, conversation, turn = (
            self._transport.failed_turns,
            (self.tenant, self.id),
            sha256(repr(message).encode("utf-8", "surrogatepass")).hexdigest(),
        )
        last, answer_id = failed.pop(conversation, ("", ""))
        if message is not None and last != turn:
            answer_id = ""
        answer_id = answer_id or uuid4().hex
        try:
            yield answer_id
        except DuplicateMessage:  # another turn has the id by now
            raise
        except BaseException:
            failed[conversation] = (turn, answer_id)
            raise

    def _turn(self, message: str | JsonObject | None, **fields: object) -> ChatBody:
        kind = "text" if isinstance(message, str) else "message"
        return make_body(ChatBody, **{kind: message, **self._query, **fields})
