"""Liveness and readiness of the server."""

from importlib.metadata import version
from typing import Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict

from remanence.server.routes import OpenMemory

router = APIRouter(tags=["health"])


class ReasonDocument(BaseModel):
    """A reason why the server is not ready."""

    model_config = ConfigDict(from_attributes=True)

    code: Literal["store", "overdue", "failing", "ending"]
    detail: str


class ReadinessDocument(BaseModel):
    """The readiness of the server; `reasons` is empty if it is ready."""

    status: Literal["ready", "not_ready"]
    version: str
    reasons: list[ReasonDocument]


@router.get("/healthz")
async def health() -> dict[str, str]:
    """Return 200 while the process responds."""
    return {"status": "ok", "version": version("remanence")}


@router.get("/readyz", responses={503: {"model": ReadinessDocument}})
async def readiness(request: Request, memory: OpenMemory, response: Response) -> ReadinessDocument:
    """Return 200 if the store is readable and background work keeps up, otherwise 503."""
    reasons = [ReasonDocument.model_validate(reason) for reason in await memory.unready()]
    if request.app.state.ending.is_set():
        reasons.append(ReasonDocument(code="ending", detail="the server is shutting down"))
    response.headers["cache-control"] = "no-store"
    response.status_code = 503 if reasons else 200
    status: Literal["ready", "not_ready"] = "not_ready" if reasons else "ready"
    return ReadinessDocument(status=status, version=version("remanence"), reasons=reasons)
