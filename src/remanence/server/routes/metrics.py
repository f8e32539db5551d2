"""The numbers of the process for Prometheus."""

from typing import Annotated

from fastapi import APIRouter, Header, Response
from prometheus_client import REGISTRY
from prometheus_client.exposition import choose_encoder

from remanence.server.routes import OpenMemory
from remanence.telemetry.backlog import refresh_backlog

router = APIRouter(tags=["health"])


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(memory: OpenMemory, accept: Annotated[str, Header()] = "") -> Response:
    """Return the metrics of the process in the text format of Prometheus, or as OpenMetrics."""
    await refresh_backlog(memory.backlog)
    encode, content_type = choose_encoder(accept)
    return Response(encode(REGISTRY), headers={"content-type": content_type})
