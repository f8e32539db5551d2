"""Conversations: their messages, contexts, notes and searches."""

from datetime import datetime
from typing import Annotated, Any, Final, Literal, TypeAlias

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from remanence.context.context import Context, ContextStats, Omitted
from remanence.errors import InvalidMessage
from remanence.server.routes import Named, OpenMemory, Tenant, User
from remanence.types import (
    ConversationRef,
    Hit,
    HitKind,
    LogEntry,
    MemoryState,
    Message,
    MessageKind,
    Receipt,
    Role,
    Segment,
)
from remanence.wire import anthropic, openai

router = APIRouter(prefix="/v1/conversations", tags=["conversations"])

JsonObject: TypeAlias = dict[str, Any]  # a provider's: its shape is the provider's
MessageFormat = Literal["openai", "anthropic"]
RequestFormat = Literal["anthropic", "openai", "openai_responses", "gemini", "text"]

_READERS: Final = {"openai": Message.from_openai, "anthropic": Message.from_anthropic}
_WRITERS: Final = {"openai": openai.render, "anthropic": anthropic.render}


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NewConversation(_Body):
    """A conversation to begin; without an id it gets a new one."""

    id: str | None = None


class ConversationDocument(BaseModel):
    """A conversation: its tape ends with `last_seq`, its notes cover it up to `observed_seq`."""

    id: str
    tenant: str
    user: str | None
    created_at: datetime
    last_seq: int
    observed_seq: int
    active_seq: int
    last_message_at: datetime | None

    @classmethod
    def of(cls, state: MemoryState) -> "ConversationDocument":
        """Return the document of a state."""
        return cls.model_validate(
            {name: getattr(state, name, None) for name in cls.model_fields}
            | {"id": state.ref.id, "tenant": state.ref.tenant}
        )


class ConversationsDocument(BaseModel):
    """A page of conversations in the order of tenant and id; go on with `after`."""

    conversations: list[ConversationDocument]
    after: str | None = Field(description="The `after` of the next page; null at the end.")


class NewMessages(_Body):
    """Messages in the format of a provider; each may have an `id` and a `created_at` of its own.

    The same message under the same id is kept once, so a request may be repeated.
    """

    messages: list[JsonObject] = Field(
        examples=[[{"role": "user", "content": "My flight is LH 454.", "id": "m-1"}]]
    )
    format: MessageFormat = "openai"


class MessageDocument(BaseModel):
    """A message on the tape; `rendered` is what a provider would get for it."""

    seq: int
    id: str | None
    role: Role
    kind: MessageKind
    created_at: datetime | None
    tokens: int
    text: str
    rendered: list[JsonObject]


class MessagesDocument(BaseModel):
    """Messages in the order of the tape."""

    messages: list[MessageDocument]


class ContextBody(_Body):
    """Additions of the caller to a context; see `conversation.context` of the library."""

    system: str = ""
    identity: str = ""
    knowledge: list[str] = []
    recall: str | None = None
    channel: str | None = Field(default=None, max_length=100)
    model: str | None = None
    format: RequestFormat = "anthropic"


class ContextDocument(BaseModel):
    """A context: the fields of a provider's request, its tokens, and what it leaves out."""

    request: JsonObject
    stats: ContextStats
    omitted: list[Omitted]


class ForgetBody(_Body):
    """Messages and facts to forget by id, or a query that only finds candidates."""

    message_ids: list[str] = []
    facts: list[str] = []
    query: str | None = None


@router.get("")
async def list_conversations(
    memory: OpenMemory,
    tenant: Tenant,
    after: Annotated[str | None, Query(description="An id: only those that follow it.")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> ConversationsDocument:
    """Return the conversations of a tenant."""
    start = None if after is None else ConversationRef(tenant, after)
    states = await memory.conversations(tenant=tenant, after=start, limit=limit)
    more = states[-1].ref.id if len(states) == limit else None
    return ConversationsDocument(
        conversations=[ConversationDocument.of(state) for state in states], after=more
    )


@router.post("", status_code=201)
async def begin_conversation(
    memory: OpenMemory, tenant: Tenant, body: NewConversation, user: User = None
) -> ConversationDocument:
    """Return a conversation, by its id or with a new one; its first message writes it."""
    id_ = memory.clock.new_id("conv") if body.id is None else body.id
    return ConversationDocument.of(await memory.conversation(id_, tenant=tenant, user=user).state())


@router.get("/{id}")
async def read_conversation(conversation: Named) -> ConversationDocument:
    """Return where the conversation stands; all zero before its first message."""
    return ConversationDocument.of(await conversation.state())


@router.post("/{id}/messages", status_code=201)
async def append_messages(conversation: Named, body: NewMessages) -> MessagesDocument:
    """Put messages at the end of the tape, all or none; they are durable when it answers."""
    messages = [_read_message(data, body.format) for data in body.messages]
    return _messages_document(await conversation.append(*messages), body.format)


@router.get("/{id}/messages")
async def read_messages(
    conversation: Named,
    after: Annotated[int, Query(ge=0, description="Only messages with a higher seq.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    format: MessageFormat = "openai",  # noqa: A002 - the query's name
) -> MessagesDocument:
    """Return messages in the order of the tape."""
    return _messages_document(await conversation.messages(after=after, limit=limit), format)


@router.post("/{id}/context")
async def build_context(conversation: Named, body: ContextBody) -> ContextDocument:
    """Return the context for the next call of a model, in the format of its provider."""
    given = body.model_dump(exclude={"format"})
    context = await conversation.context(**given)
    return ContextDocument(
        request=_request(context, body.format), stats=context.stats, omitted=[*context.omitted]
    )


@router.get("/{id}/observations")
async def read_observations(conversation: Named) -> tuple[Segment, ...]:
    """Return the live observations, oldest first."""
    return await conversation.observations()


@router.get("/{id}/reflections")
async def read_reflections(conversation: Named) -> tuple[Segment, ...]:
    """Return the live reflections, oldest first."""
    return await conversation.reflections()


@router.get("/{id}/log")
async def read_log(conversation: Named) -> tuple[LogEntry, ...]:
    """Return every committed change of the memory, oldest first."""
    return await conversation.log()


@router.get("/{id}/recall")
async def recall(
    conversation: Named,
    query: str,
    limit: Annotated[int, Query(ge=1, le=100)] = 5,
    kind: HitKind | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> tuple[Hit, ...]:
    """Return notes, messages and facts that match, best first, with their sources."""
    return await conversation.recall(query, limit=limit, kind=kind, since=since, until=until)


@router.post("/{id}/end")
async def end_conversation(conversation: Named) -> ConversationDocument:
    """Observe all that is left and keep facts about the user; waits for the models."""
    return ConversationDocument.of(await conversation.end())


@router.post("/{id}/forget")
async def forget_messages(conversation: Named, body: ForgetBody) -> Receipt:
    """Erase messages and facts with all that was made from them, and return a receipt."""
    return await conversation.forget(*body.message_ids, facts=body.facts, query=body.query)


def _read_message(data: JsonObject, kind: MessageFormat) -> Message:
    fields = {key: value for key, value in data.items() if key not in ("id", "created_at")}
    id_, at = data.get("id"), data.get("created_at")
    if id_ is not None and not isinstance(id_, str):
        raise InvalidMessage(f"the id {id_!r:.80} of a message is no text")
    message = _READERS[kind](fields).replace(id=id_)
    return message if at is None else message.replace(created_at=_time(at))


def _time(value: object) -> datetime:
    try:
        at = datetime.fromisoformat(str(value))
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise InvalidMessage(
            f"created_at {value!r:.80} of a message is no time: use ISO 8601 with an offset, such "
            "as 2026-05-01T09:30:00+02:00"
        )
    return at


def _messages_document(messages: tuple[Message, ...], kind: MessageFormat) -> MessagesDocument:
    return MessagesDocument(
        messages=[
            MessageDocument(
                rendered=_WRITERS[kind](message.role, message.content, message.name),
                **{
                    name: getattr(message, name)
                    for name in MessageDocument.model_fields
                    if name != "rendered"
                },
            )
            for message in messages
        ]
    )


def _request(context: Context, kind: RequestFormat) -> JsonObject:
    if kind == "text":
        return {"text": context.to_text()}
    request: JsonObject = getattr(context, f"to_{kind}")()
    return request
