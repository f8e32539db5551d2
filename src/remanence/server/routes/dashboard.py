"""The dashboard: a page that shows conversations, their notes and facts through the API."""

import base64
import hashlib
import re
from importlib import resources
from typing import Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

router = APIRouter()

_PAGE: Final = resources.files("remanence.server").joinpath("dashboard.html").read_text("utf-8")


def _source(tag: str) -> str:
    """Return a CSP source that allows exactly the inline content of a tag."""
    (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", _PAGE, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"{tag}-src 'sha256-{digest}'"


_HEADERS: Final = {
    "content-security-policy": (
        f"default-src 'none'; connect-src 'self'; {_source('script')}; {_source('style')}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-cache",
    "referrer-policy": "no-referrer",
}


@router.get("/", include_in_schema=False)
async def dashboard() -> HTMLResponse:
    """Return the page, which contains no data and is public."""
    return HTMLResponse(_PAGE, headers=_HEADERS)
