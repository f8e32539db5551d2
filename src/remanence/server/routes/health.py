"""Liveness, readiness, and metrics for Prometheus."""

from importlib.metadata import version
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Header, Request, Response
from prometheus_client import REGISTRY
from prometheus_client.exposition import choose_encoder
from pydantic import BaseModel, ConfigDict

from remanence.server.problems import declare
from remanence.server.routes import OpenMemory
from remanence.telemetry.backlog import refresh_backlog

router = APIRouter(tags=["health"])

_METRICS: Final = {"content": {"text/plain": {"schema": {"type": "string"}}}}


class ReasonDocument(BaseModel):
    """A reason why the server is not ready."""

    model_config = ConfigDict(from_attributes=True)

    code: Literal["store", "stopped", "overdue", "failing", "ending"]
    detail: str


class ReadinessDocument(BaseModel):
    """The readiness of the server; `reasons` is empty if it is ready."""

    status: Literal["ready", "not_ready"]
    version: str
    reasons: list[ReasonDocument]


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz")
async def health() -> dict[str, str]:
    """Return 200 while the process responds."""
    return {"status": "ok", "version": version("remanence")}


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", responses={503: {"model": ReadinessDocument}})
async def readiness(request: Request, memory: OpenMemory, response: Response) -> ReadinessDocument:
    """Return 200 if the store is readable and writable and background work keeps up, else 503."""
    reasons = [ReasonDocument.model_validate(reason) for reason in await memory.unready()]
    if request.app.state.ending.is_set():
        reasons.append(ReasonDocument(code="ending", detail="the server is shutting down"))
    response.headers["cache-control"] = "no-store"
    response.status_code = 503 if reasons else 200
    status: Literal["ready", "not_ready"] = "not_ready" if reasons else "ready"
    return ReadinessDocument(status=status, version=version("remanence"), reasons=reasons)


@router.get("/metrics", response_class=Response, responses={200: _METRICS, **declare()})
async def metrics(memory: OpenMemory, accept: Annotated[str, Header()] = "") -> Response:
    """Return the metrics of the process in Prometheus text format, or as OpenMetrics."""
    await refresh_backlog(memory.backlog)
    encode, content_type = choose_encoder(accept)
    return Response(encode(REGISTRY), headers={"content-type": content_type})
