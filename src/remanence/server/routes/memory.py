"""The state of a conversation's memory, and its erasure."""

from datetime import datetime
from typing import Final

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from remanence.errors import WrongUser
from remanence.memory import Memory
from remanence.server.problems import problem
from remanence.types import Diagnostics

router = APIRouter(tags=["memory"])

NOTHING: Final = Diagnostics(
    memory_state=None,
    observed_message_id=None,
    observation_log=None,
    observation_count=0,
    total_observation_tokens=0,
)


class MemoryStateDocument(BaseModel):
    """The cursors and accounts of a memory."""

    conversation_id: str
    user: str | None
    observed_cursor_message_id: str | None
    unobserved_token_count: int
    observation_token_count: int
    last_observer_run: datetime | None
    last_reflector_run: datetime | None
    lock_version: int
    last_seq: int
    observed_seq: int
    active_seq: int
    reflected_seq: int
    failures: int
    next_attempt_at: datetime | None
    last_error: str | None


class ObservationLogDocument(BaseModel):
    """The size of the live notes."""

    version: int
    lockVersion: int  # noqa: N815 - same style as the others
    tokenCount: int  # noqa: N815 - the brain design's name
    textLength: int  # noqa: N815 - the brain design's name


class MemoryDocument(BaseModel):
    """A memory in a few numbers."""

    memoryState: MemoryStateDocument | None  # noqa: N815 - the brain design's name
    observationLog: ObservationLogDocument | None  # noqa: N815 - the brain design's name
    observationCount: int  # noqa: N815 - the brain design's name
    totalObservationTokens: int  # noqa: N815 - the brain design's name


@router.get("/v1/conversations/{id}/memory")
@router.get("/conversations/{id}/memory", include_in_schema=False)
async def diagnostics(
    request: Request,
    id: str,  # noqa: A002 - the path's name
    tenant: str = "default",
    user: str | None = None,
) -> MemoryDocument:
    """State, size and version of a conversation's notes; nulls before its first message.

    A conversation of another user than *user* looks as if it had no messages.
    """
    memory: Memory = request.app.state.memory
    try:
        found = await memory.conversation(id, user=user, tenant=tenant).diagnostics()
    except WrongUser:
        found = NOTHING
    return _document(found)


@router.delete("/v1/conversations/{id}", status_code=204)
async def delete(
    request: Request,
    id: str,  # noqa: A002 - the path's name
    tenant: str = "default",
    user: str | None = None,
) -> Response:
    """Erase a conversation with its messages, notes, log and facts; a turn in progress ends.

    A conversation of another user than *user* looks as if it did not exist.
    """
    memory: Memory = request.app.state.memory
    try:
        deleted = await memory.conversation(id, user=user, tenant=tenant).delete()
    except WrongUser:
        deleted = False
    if deleted:
        return Response(status_code=204)
    return problem(404, "not_found", f"there is no conversation {id!r:.80} of this user")


def _document(found: Diagnostics) -> MemoryDocument:
    log = found.observation_log
    return MemoryDocument(
        memoryState=_state_document(found),
        observationLog=None
        if log is None
        else ObservationLogDocument(
            version=log.version,
            lockVersion=log.lock_version,
            tokenCount=log.token_count,
            textLength=log.text_length,
        ),
        observationCount=found.observation_count,
        totalObservationTokens=found.total_observation_tokens,
    )


def _state_document(found: Diagnostics) -> MemoryStateDocument | None:
    state, log = found.memory_state, found.observation_log
    if state is None:
        return None
    return MemoryStateDocument(
        conversation_id=state.ref.id,
        user=state.user,
        observed_cursor_message_id=found.observed_message_id,
        unobserved_token_count=state.unobserved_tokens,
        observation_token_count=log.token_count if log else 0,
        last_observer_run=state.last_observed_at,
        last_reflector_run=state.last_reflected_at,
        lock_version=state.lock_version,
        last_seq=state.last_seq,
        observed_seq=state.observed_seq,
        active_seq=state.active_seq,
        reflected_seq=state.reflected_seq,
        failures=state.failures,
        next_attempt_at=state.next_attempt_at,
        last_error=state.last_error,
    )
