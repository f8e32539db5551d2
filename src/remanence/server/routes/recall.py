"""Recall over all conversations of a user."""

from typing import Annotated

from fastapi import APIRouter, Query

from remanence.http.documents import Moment
from remanence.server.problems import declare
from remanence.server.routes import OpenMemory, Tenant
from remanence.types import Hit, HitKind

router = APIRouter(tags=["users"])


@router.get("/v1/recall", responses=declare("invalid_message"))
async def recall_of_user(
    memory: OpenMemory,
    tenant: Tenant,
    user: Annotated[str, Query(min_length=1, description="Whose conversations and facts.")],
    query: str,
    limit: Annotated[int, Query(ge=1, le=100)] = 5,
    kind: HitKind | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
) -> tuple[Hit, ...]:
    """Return what matches in all conversations of a user, best first; each hit names its own."""
    return await memory.recall(
        query, user=user, tenant=tenant, limit=limit, kind=kind, since=since, until=until
    )
