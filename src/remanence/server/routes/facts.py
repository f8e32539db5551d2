"""Facts of a user that outlive their conversations."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel

from remanence.server.problems import problem
from remanence.server.routes import OpenMemory, Tenant
from remanence.types import FactType

router = APIRouter(tags=["facts"])


class FactDocument(BaseModel):
    """A fact; it is valid while `valid_to` is null; its source is `conversation` with two seqs."""

    id: str
    summary: str
    type: FactType
    tags: tuple[str, ...]
    conversation: str | None
    first_seq: int | None
    last_seq: int | None
    created_at: datetime
    valid_from: datetime
    valid_to: datetime | None
    superseded_by: str | None


class FactsDocument(BaseModel):
    """Facts of one user, the newest first, or for a query the best match first."""

    facts: list[FactDocument]


@router.get("/v1/facts")
async def list_facts(
    memory: OpenMemory,
    tenant: Tenant,
    user: str,
    query: Annotated[str | None, Query(description="Only facts that match, best first.")] = None,
    history: Annotated[bool, Query(description="Include expired facts.")] = False,  # noqa: FBT002 - a query
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> FactsDocument:
    """Return the facts of a user. A *query* searches only valid facts."""
    if query is not None:
        found = await memory.facts.search(query, user=user, tenant=tenant, limit=limit)
    else:
        found = await memory.facts.list(user=user, tenant=tenant, history=history, limit=limit)
    return FactsDocument.model_validate({"facts": found}, from_attributes=True)


@router.delete("/v1/facts/{id}", status_code=204)
async def forget_fact(
    memory: OpenMemory,
    id: str,  # noqa: A002 - the path's name
    tenant: Tenant,
    user: str,
) -> Response:
    """Erase a fact of the user, and the earlier ones that it superseded.

    Its source messages stay on their tapes.
    """
    if await memory.facts.forget(id, user=user, tenant=tenant):
        return Response(status_code=204)
    detail = f"this user has no fact {id!r:.80}: GET /v1/facts lists them"
    return problem(404, "not_found", detail)
