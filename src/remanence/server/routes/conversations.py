"""Conversations: their messages, contexts, notes and searches."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Final
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Query

from remanence.conversation import Conversation
from remanence.errors import ConversationNotFound, DuplicateMessage
from remanence.http.documents import (
    ContextBody,
    ContextDocument,
    ConversationDocument,
    ConversationsDocument,
    FlushBody,
    ForgetBody,
    ForkBody,
    MessageDocument,
    MessageFormat,
    MessagesDocument,
    Moment,
    Name,
    NewConversation,
    NewMessages,
    Text,
)
from remanence.memory import Memory
from remanence.server.messages import IdempotencyKey, read_message, write_message
from remanence.server.problems import declare
from remanence.server.routes import Limit, Named, OpenMemory, Tenant, User, new_conversation_id
from remanence.types import (
    ConversationRef,
    Hit,
    HitKind,
    LogEntry,
    MemoryState,
    Message,
    Receipt,
    Segment,
)
from remanence.wire.json_value import JsonObject

_OF_ONE: Final = declare("invalid_message", "wrong_user")
_WITH_BODY: Final = declare("unreadable_body", "invalid_message", "wrong_user")

router = APIRouter(prefix="/v1/conversations", tags=["conversations"])

AfterSegment = Annotated[int, Query(ge=0, description="Only segments after this `last_seq`.")]


@router.get("")
async def list_conversations(
    memory: OpenMemory,
    tenant: Tenant,
    user: Annotated[Name | None, Query(min_length=1, description="Only this user's.")] = None,
    after: Annotated[Text | None, Query(description="Only conversations after this id.")] = None,
    limit: Limit = 100,
) -> ConversationsDocument:
    """Return the conversations of a tenant, or of one of its users."""
    start = None if after is None else ConversationRef(tenant, after)
    states = await memory.conversations(tenant=tenant, user=user, after=start, limit=limit)
    more = states[-1].ref.id if len(states) == limit else None
    return ConversationsDocument.model_validate({"conversations": states, "after": more})


@router.post("", status_code=201, responses=_WITH_BODY)
async def begin_conversation(
    memory: OpenMemory,
    tenant: Tenant,
    body: NewConversation | None = None,
    user: User = None,
    key: IdempotencyKey = None,
) -> ConversationDocument:
    """Return a conversation with the given id, or a new one.

    Nothing is stored yet: the conversation is listed and found from its first message on.
    """
    given = None if body is None else body.id
    id_ = new_conversation_id(memory, user, key) if given is None else given
    return ConversationDocument.model_validate(
        await memory.conversation(id_, tenant=tenant, user=user).state()
    )


@router.get("/{id}", responses=declare("invalid_message", "not_found", "wrong_user"))
async def read_conversation(conversation: Named) -> ConversationDocument:
    """Return the state of the conversation; 404 before its first message."""
    return ConversationDocument.model_validate(await _require_begun(conversation))


async def _require_begun(conversation: Conversation) -> MemoryState:
    state = await conversation.state()
    if not state.last_seq:
        raise ConversationNotFound(
            f"there is no conversation {conversation.id!r:.80}: append a message to begin it"
        )
    return state


@router.post(
    "/{id}/messages",
    status_code=201,
    responses=declare("unreadable_body", "invalid_message", "duplicate_message", "wrong_user"),
)
async def append_messages(
    memory: OpenMemory, conversation: Named, body: NewMessages, key: IdempotencyKey = None
) -> MessagesDocument:
    """Append messages to the tape, all or none; they are durable when the response arrives."""

    def read() -> list[Message]:
        return [
            read_message(data, body.format, id_=f"{key}:{index}" if key else None)
            for index, data in enumerate(body.messages)
        ]

    messages = await asyncio.to_thread(read)  # one may have a million values
    is_keyed = key is not None and not any("id" in data for data in body.messages)
    conversation = _in_zone(memory, conversation, body.timezone)
    appended = await conversation.append(*messages, as_one=is_keyed)
    if is_keyed and appended:
        await _require_end(conversation, f"{key}:{len(appended)}", after=appended[-1].seq)
    return await asyncio.to_thread(_messages_document, appended, body.format)


def _in_zone(memory: Memory, conversation: Conversation, name: str | None) -> Conversation:
    """Return a conversation in the time zone of a request, if it names one."""
    return memory.conversation(
        conversation.id,
        tenant=conversation.ref.tenant,
        user=conversation.user,
        timezone=ZoneInfo(name) if name else None,
    )


async def _require_end(conversation: Conversation, next_id: str, *, after: int) -> None:
    """Raise `DuplicateMessage` if an earlier request with the same key also had *next_id*."""
    following = await conversation.messages(after=after, limit=1)
    if following and following[0].id == next_id:
        raise DuplicateMessage(
            f"a request with this Idempotency-Key had more messages, such as {next_id!r}: repeat it as "
            "it was, or use a new key"
        )


@router.get("/{id}/messages", responses=_OF_ONE)
async def read_messages(
    conversation: Named,
    after: Annotated[int, Query(ge=0, description="Only messages with a higher seq.")] = 0,
    limit: Limit = 100,
    format: MessageFormat = "openai",  # noqa: A002 - the query's name
) -> MessagesDocument:
    """Return messages in tape order."""
    return _messages_document(await conversation.messages(after=after, limit=limit), format)


@router.post(
    "/{id}/context",
    responses=declare("unreadable_body", "invalid_message", "wrong_user", "context_overflow"),
)
async def build_context(
    memory: OpenMemory, conversation: Named, body: ContextBody
) -> ContextDocument:
    """Return the context for the next model call, in a provider's format."""
    conversation = _in_zone(memory, conversation, body.timezone)
    context = await conversation.context(**body.model_dump(exclude={"format", "timezone"}))
    if body.format == "text":
        request: JsonObject = {"text": context.to_text()}
    else:
        request = getattr(context, f"to_{body.format}")()
    return ContextDocument(request=request, stats=context.stats, omitted=[*context.omitted])


@router.get("/{id}/observations", responses=_OF_ONE)
async def read_observations(
    conversation: Named, after: AfterSegment = 0, limit: Limit = 100
) -> tuple[Segment, ...]:
    """Return live observations, oldest first."""
    return await conversation.observations(after=after, limit=limit)


@router.get("/{id}/reflections", responses=_OF_ONE)
async def read_reflections(
    conversation: Named, after: AfterSegment = 0, limit: Limit = 100
) -> tuple[Segment, ...]:
    """Return live reflections, oldest first."""
    return await conversation.reflections(after=after, limit=limit)


@router.get("/{id}/log", responses=_OF_ONE)
async def read_log(
    conversation: Named,
    after: Annotated[int, Query(ge=0, description="Only changes with a higher version.")] = 0,
    limit: Limit = 100,
) -> tuple[LogEntry, ...]:
    """Return committed changes of the memory, oldest first."""
    return await conversation.log(after=after, limit=limit)


@router.get("/{id}/recall", responses=_OF_ONE)
async def recall(
    conversation: Named,
    query: Text,
    limit: Annotated[int, Query(ge=1, le=100)] = 5,
    kind: HitKind | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
) -> tuple[Hit, ...]:
    """Return matching notes, messages and facts, best first, with their sources."""
    return await conversation.recall(query, limit=limit, kind=kind, since=since, until=until)


@router.post("/{id}/end", responses=declare("invalid_message", "not_found", "wrong_user"))
async def end_conversation(conversation: Named) -> ConversationDocument:
    """Observe all remaining messages and extract facts about the user; waits for the models."""
    await _require_begun(conversation)
    return ConversationDocument.model_validate(await conversation.end())


@router.post(
    "/{id}/flush",
    responses=declare("unreadable_body", "invalid_message", "not_found", "wrong_user"),
)
async def flush_conversation(
    conversation: Named, body: FlushBody | None = None
) -> ConversationDocument:
    """Wait until no background work is due; the response reports failed steps."""
    await _require_begun(conversation)
    given = {} if body is None else body.model_dump()
    return ConversationDocument.model_validate(await conversation.flush(**given))


@router.post(
    "/{id}/fork",
    status_code=201,
    responses=declare(
        *("unreadable_body", "invalid_message", "not_found", "conversation_grown", "wrong_user")
    ),
)
async def fork_conversation(conversation: Named, body: ForkBody) -> ConversationDocument:
    """Begin another conversation with the messages up to one of them, and their notes."""
    await _require_begun(conversation)
    return ConversationDocument.model_validate(
        await conversation.fork(body.id, last_seq=body.last_seq)
    )


@router.post("/{id}/forget", responses=_WITH_BODY)
async def forget_messages(conversation: Named, body: ForgetBody) -> Receipt:
    """Erase messages and facts with everything derived from them, and return a receipt."""
    return await conversation.forget(
        *body.message_ids, facts=body.facts, query=body.query, everywhere=body.everywhere
    )


def _messages_document(messages: Sequence[Message], kind: MessageFormat) -> MessagesDocument:
    documents = []
    for message in messages:
        document = MessageDocument.model_validate(message, from_attributes=True)
        document.rendered = write_message(message, kind)
        documents.append(document)
    return MessagesDocument(messages=documents)
