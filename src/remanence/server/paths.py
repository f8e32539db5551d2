"""Paths whose names may have a slash: `%2F` stays encoded until the route is known."""

from typing import Annotated, Final
from urllib.parse import unquote

from pydantic import AfterValidator
from starlette.types import Scope

_KEPT: Final = {"%": "%25", "/": "%2F"}
"""Characters of a name in a path that are decoded once its route is known."""

PathName = Annotated[str, AfterValidator(unquote)]
"""A name in a path."""


def path_of(scope: Scope) -> str:
    """Return the path of a request below the prefix at which a host program mounts the service."""
    path: str = scope["path"]
    prefix: str = scope.get("root_path", "")
    return path.removeprefix(prefix) if path.startswith(f"{prefix}/") else path


def with_encoded_names(scope: Scope) -> Scope:
    """Return the scope of a request with the `%` and `/` of names still encoded in its path."""
    path: str = scope["path"]
    raw = (scope.get("raw_path") or b"").decode("latin-1")
    if unquote(raw) != path:  # a server that sends none, or a host program that changed the path
        return {**scope, "path": path.replace("%", "%25")}
    return {**scope, "path": "/".join(map(_partly_decoded, raw.split("/")))}


def _partly_decoded(name: str) -> str:
    return "".join(_KEPT.get(character, character) for character in unquote(name))
