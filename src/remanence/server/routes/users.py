"""Users: everything kept of one, and its erasure."""

from collections.abc import AsyncIterator

from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from remanence.server.routes import OpenMemory, Tenant
from remanence.types import Receipt

router = APIRouter(prefix="/v1/users", tags=["users"])

LINES = "application/x-ndjson"


@router.get("/{user}/export", responses={200: {"content": {LINES: {}}}}, response_model=None)
async def export_user(memory: OpenMemory, tenant: Tenant, user: str) -> StreamingResponse:
    """Return everything kept of a user, a line of JSON each."""

    async def lines() -> AsyncIterator[str]:
        async for line in memory.export_user(user, tenant=tenant):
            yield f"{line}\n"

    return StreamingResponse(lines(), media_type=LINES)


@router.delete("/{user}")
async def forget_user(memory: OpenMemory, tenant: Tenant, user: str) -> Receipt:
    """Erase a user's conversations, facts, notes and blocks, and return a receipt."""
    return await memory.forget_user(user, tenant=tenant)
