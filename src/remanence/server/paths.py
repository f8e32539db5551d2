"""Paths with names that may contain a slash: `%2F` stays encoded until routing is done."""

from typing import Annotated, Final
from urllib.parse import unquote

from pydantic import BeforeValidator
from starlette.types import Scope

from remanence.http.documents import Name

_ENCODED: Final = {"%": "%25", "/": "%2F"}
"""Characters of names that stay percent-encoded until routing is done."""

PROXIES: Final = ("/openai/", "/anthropic/")
"""The beginnings of the proxies' paths."""

PathName = Annotated[Name, BeforeValidator(unquote)]
"""A name in a path."""


def path_of(scope: Scope) -> str:
    """Return the path of a request, relative to where a host program mounts the service."""
    path: str = scope["path"]
    prefix: str = scope.get("root_path", "")
    return path.removeprefix(prefix) if path.startswith(f"{prefix}/") else path


def with_encoded_names(scope: Scope) -> Scope:
    """Return the scope of a request whose path keeps `%` and `/` in names encoded."""
    path: str = scope["path"]
    raw = (scope.get("raw_path") or b"").decode("latin-1")
    if unquote(raw) != path:  # no raw path, or a host program changed the path
        return {**scope, "path": path.replace("%", "%25")}
    return {**scope, "path": "/".join(map(_partly_decoded, raw.split("/")))}


def _partly_decoded(name: str) -> str:
    return "".join(_ENCODED.get(character, character) for character in unquote(name))
