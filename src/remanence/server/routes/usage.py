"""Tokens and cost of model calls."""

from typing import Annotated

from fastapi import APIRouter, Query

from remanence.http.documents import Moment, Name
from remanence.server.problems import declare
from remanence.server.routes import OpenMemory, Tenant
from remanence.types import UsageTotal

router = APIRouter(prefix="/v1", tags=["usage"])


@router.get("/usage", responses=declare("invalid_message"))
async def read_usage(
    memory: OpenMemory,
    tenant: Tenant,
    user: Annotated[
        Name | None, Query(min_length=1, description="Only calls for conversations of this user.")
    ] = None,
    conversation: Annotated[
        Name | None, Query(min_length=1, description="Only calls for this conversation.")
    ] = None,
    since: Annotated[Moment | None, Query(description="Only calls from this time on.")] = None,
    until: Annotated[Moment | None, Query(description="Only calls from before this time.")] = None,
) -> tuple[UsageTotal, ...]:
    """Return tokens and cost of the model calls of a tenant, by purpose and model."""
    return await memory.usage(
        tenant=tenant, user=user, conversation=conversation, since=since, until=until
    )
