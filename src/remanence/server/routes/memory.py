"""The state of a conversation's memory, and its erasure."""

from contextlib import suppress
from datetime import datetime

from fastapi import APIRouter
from pydantic import AliasGenerator, AliasPath, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from remanence.errors import ConversationNotFound, WrongUser
from remanence.server.problems import declare
from remanence.server.routes import Named
from remanence.types import Receipt

router = APIRouter(tags=["memory"])


class MemoryStateDocument(BaseModel):
    """The cursors and token accounts of a memory."""

    conversation_id: str = Field(validation_alias=AliasPath("ref", "id"))
    user: str | None
    observed_cursor_message_id: str | None = None
    unobserved_token_count: int = Field(validation_alias="unobserved_tokens")
    observation_token_count: int = 0
    last_observer_run: datetime | None = Field(validation_alias="last_observed_at")
    last_reflector_run: datetime | None = Field(validation_alias="last_reflected_at")
    lock_version: int
    last_seq: int
    observed_seq: int
    active_seq: int
    reflected_seq: int
    failures: int
    next_attempt_at: datetime | None
    last_error: str | None


class _CamelCase(BaseModel):
    """A document with camelCase names, as in the brain design."""

    model_config = ConfigDict(alias_generator=AliasGenerator(serialization_alias=to_camel))


class ObservationLogDocument(_CamelCase):
    """The size of the live notes."""

    version: int
    lock_version: int
    token_count: int
    text_length: int


class MemoryDocument(_CamelCase):
    """A summary of a conversation's memory."""

    memory_state: MemoryStateDocument | None = None
    observation_log: ObservationLogDocument | None = None
    observation_count: int = 0
    total_observation_tokens: int = 0


@router.get("/v1/conversations/{id}/memory", responses=declare("invalid_message"))
@router.get("/conversations/{id}/memory", include_in_schema=False)
async def read_memory(conversation: Named) -> MemoryDocument:
    """Return state, size and version of a conversation's notes; nulls before its first message.

    For another user than *user*, a conversation appears to have no messages.
    """
    try:
        found = await conversation.diagnostics()
    except WrongUser:
        return MemoryDocument()
    document = MemoryDocument.model_validate(found, from_attributes=True)
    if document.memory_state is not None:
        log = document.observation_log
        document.memory_state.observed_cursor_message_id = found.observed_message_id
        document.memory_state.observation_token_count = log.token_count if log else 0
    return document


@router.delete("/v1/conversations/{id}", responses=declare("invalid_message", "not_found"))
async def delete_conversation(conversation: Named) -> Receipt:
    """Erase a conversation with everything derived from it, and return a receipt.

    A turn in progress ends. For another user than *user*, a conversation appears not to exist.
    """
    with suppress(WrongUser):
        if (receipt := await conversation.delete()) is not None:
            return receipt
    raise ConversationNotFound(f"there is no conversation {conversation.id!r:.80} of this user")
