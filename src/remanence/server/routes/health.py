"""Whether the server runs."""

from importlib.metadata import version

from fastapi import APIRouter

router = APIRouter(tags=["health"])


@router.get("/healthz")
async def health() -> dict[str, str]:
    """Tells that the process answers."""
    return {"status": "ok", "version": version("remanence")}
