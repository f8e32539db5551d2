"""Liveness and readiness of the server."""

from importlib.metadata import version
from typing import Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from remanence.memory import Memory

router = APIRouter(tags=["health"])


class ReasonDocument(BaseModel):
    """A reason why the server is not ready."""

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
async def readiness(request: Request, response: Response) -> ReadinessDocument:
    """Return 200 if the store is readable and background work keeps up, otherwise 503."""
    state = request.app.state
    memory: Memory = state.memory
    reasons = [
        ReasonDocument(code=reason.code, detail=reason.detail) for reason in await memory.unready()
    ]
    if state.ending.is_set():
        reasons.append(ReasonDocument(code="ending", detail="the server is shutting down"))
    response.headers["cache-control"] = "no-store"
    response.status_code = 503 if reasons else 200
    return ReadinessDocument(
        status="not_ready" if reasons else "ready", version=version("remanence"), reasons=reasons
    )
