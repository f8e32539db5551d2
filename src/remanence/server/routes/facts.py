"""Facts of users, which outlive conversations."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from remanence.errors import InvalidArgument
from remanence.http.documents import FactsDocument, Name, NewFact, Text
from remanence.server.paths import PathName
from remanence.server.problems import declare, problem
from remanence.server.routes import Limit, OpenMemory, Tenant
from remanence.types import Fact

router = APIRouter(tags=["facts"])

FactsUser = Annotated[Name, Query(min_length=1, description="The user that the facts are about.")]


@router.post("/v1/facts", status_code=201, responses=declare("unreadable_body", "invalid_message"))
async def save_fact(memory: OpenMemory, tenant: Tenant, user: FactsUser, body: NewFact) -> Fact:
    """Save a fact of a user, or return an existing one that says the same."""
    return await memory.facts.save(user=user, tenant=tenant, **body.model_dump())


@router.get("/v1/facts", responses=declare("invalid_message"))
async def list_facts(
    memory: OpenMemory,
    tenant: Tenant,
    user: FactsUser,
    query: Annotated[Text | None, Query(description="Only facts that match, best first.")] = None,
    history: Annotated[bool, Query(description="Include expired facts.")] = False,  # noqa: FBT002 - a query
    after: Annotated[Text | None, Query(description="Only facts after this id.")] = None,
    limit: Limit = 100,
) -> FactsDocument:
    """Return the facts of a user. A *query* searches current facts only, and has one page."""
    if query is not None:
        if history or after is not None:
            raise InvalidArgument(
                "a query finds current facts in one page: leave out history and after"
            )
        found = await memory.facts.search(query, user=user, tenant=tenant, limit=limit)
        return FactsDocument(facts=[*found], after=None)
    found = await memory.facts.list(
        user=user, tenant=tenant, history=history, after=after, limit=limit
    )
    more = found[-1].id if len(found) == limit else None
    return FactsDocument(facts=[*found], after=more)


@router.delete("/v1/facts/{id}", status_code=204, responses=declare("invalid_message", "not_found"))
async def forget_fact(
    memory: OpenMemory,
    id: PathName,  # noqa: A002 - the path's name
    tenant: Tenant,
    user: FactsUser,
) -> Response:
    """Erase a fact of the user, and the earlier facts that it superseded.

    Its source messages stay on their tapes.
    """
    if await memory.facts.forget(id, user=user, tenant=tenant):
        return Response(status_code=204)
    detail = f"this user has no fact {id!r:.80}: GET /v1/facts lists them"
    return problem(404, "not_found", detail)
