"""Users: recall over, export and erasure of everything stored about a user."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from remanence.http.documents import Moment, Name, Text
from remanence.server.paths import PathName
from remanence.server.problems import declare
from remanence.server.routes import OpenMemory, Tenant
from remanence.types import Hit, HitKind, Receipt

router = APIRouter(prefix="/v1", tags=["users"])

LINES = "application/x-ndjson"


@router.get(
    "/users/{user}/export",
    response_class=StreamingResponse,
    responses=declare("invalid_message") | {200: {"content": {LINES: {}}}},
)
async def export_user(memory: OpenMemory, tenant: Tenant, user: PathName) -> StreamingResponse:
    """Return everything stored about a user, as lines of JSON."""
    export = memory.export_user(user, tenant=tenant)

    async def lines() -> AsyncIterator[str]:
        async for line in export:
            yield f"{line}\n"

    return StreamingResponse(lines(), media_type=LINES)


@router.delete("/users/{user}", responses=declare("invalid_message"))
async def forget_user(memory: OpenMemory, tenant: Tenant, user: PathName) -> Receipt:
    """Erase a user's conversations, facts, notes and blocks, and return a receipt."""
    return await memory.forget_user(user, tenant=tenant)


@router.get("/recall", responses=declare("invalid_message"))
async def recall_of_user(
    memory: OpenMemory,
    tenant: Tenant,
    user: Annotated[Name, Query(min_length=1, description="Whose conversations and facts.")],
    query: Text,
    limit: Annotated[int, Query(ge=1, le=100)] = 5,
    kind: HitKind | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
) -> tuple[Hit, ...]:
    """Return hits from all conversations of a user, best first; each names its conversation."""
    return await memory.recall(
        query, user=user, tenant=tenant, limit=limit, kind=kind, since=since, until=until
    )
