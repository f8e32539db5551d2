"""The routes of the server, a module for each resource.

All dependencies are async, as FastAPI runs others in threads, of which there are few.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import Annotated
from urllib.parse import unquote, unquote_to_bytes

from fastapi import Depends, HTTPException, Path, Query, Request
from fastapi.exceptions import RequestValidationError

from remanence.conversation import Conversation
from remanence.http.documents import MAX_NAME, Name, Text
from remanence.memory import Memory
from remanence.runtime import DEFAULT_TENANT
from remanence.server.access import Authenticate, Caller, scope_of
from remanence.server.paths import PathName, path_of
from remanence.server.problems import body_fields, query_parameters


async def open_memory(request: Request) -> Memory:
    """Return the served memory."""
    memory: Memory = request.app.state.memory
    return memory


async def is_still_allowed(request: Request) -> bool:
    """Return whether the caller of a long response would still be allowed to request it."""
    authenticate: Authenticate | None = getattr(request.state, "authenticate", None)
    return authenticate is None or await authenticate(request) == request.state.caller


def allowed_tenant(request: Request, tenant: str | None) -> str:
    """Return the tenant of a request; with a caller, refuse any other than the caller's."""
    caller: Caller | None = getattr(request.state, "caller", None)
    if caller is None:
        return DEFAULT_TENANT if tenant is None else tenant
    if tenant not in (None, caller.tenant):
        raise HTTPException(403, "this key is for another tenant: leave the tenant out")
    return caller.tenant


def may_erase(request: Request) -> bool:
    """Return whether a request may erase, which depends on its caller, if there is one."""
    caller: Caller | None = getattr(request.state, "caller", None)
    return caller is None or "erase" in caller.scopes


async def require_known_query(request: Request) -> None:
    """Reject query parameters that the route does not have, such as a misspelt `user`.

    Only lists may be repeated, as a server in front may have checked another of two users. Path and
    query must be UTF-8. The error lists the route's parameters.
    """
    known = query_parameters(request.scope["route"].dependant)
    rest = f"use {', '.join(sorted(known))}" if known else "leave it out"
    in_body = body_fields(request)
    unknown = [
        {
            "type": "extra",
            "loc": ("query", name),
            "msg": f"unknown query parameter: {'put it into the body' if name in in_body else rest}",
        }
        for name in request.query_params
        if name not in known
    ]
    repeated = [
        {"type": "extra", "loc": ("query", name), "msg": "the parameter is repeated: send it once"}
        for name, is_list in known.items()
        if not is_list and len(request.query_params.getlist(name)) > 1
    ]
    if errors := [*unknown, *repeated, *_errors_of_bytes(request)]:
        raise RequestValidationError(errors)


async def require_short_names(request: Request) -> None:
    """Reject long names where something may begin under them; those of older databases can be read."""
    if scope_of(request.method, path_of(request.scope)) != "write":
        return
    names = [("path", "id", unquote(request.path_params.get("id", "")))]
    names += [("query", name, request.query_params.get(name, "")) for name in ("tenant", "user")]
    if errors := [
        {
            "type": "string_too_long",
            "loc": (part, name),
            "msg": f"it has {len(value):,} characters, more than {MAX_NAME}: shorten it",
        }
        for part, name, value in names
        if len(value) > MAX_NAME
    ]:
        raise RequestValidationError(errors)


def _errors_of_bytes(request: Request) -> Iterator[dict[str, object]]:
    """Yield an error if the path or the query is not UTF-8, as two names would then become one."""
    for part, encoded in (
        ("path", request.scope.get("raw_path") or b""),
        ("query", request.scope["query_string"]),
    ):
        try:
            unquote_to_bytes(encoded).decode()
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            detail = f"the {part} is not UTF-8 (byte 0x{byte:02x}): percent-encode names as UTF-8"
            yield {"type": "value_error", "loc": (part,), "msg": detail}


async def tenant_in_query(
    request: Request,
    tenant: Annotated[
        Text | None,
        Query(min_length=1, description="The tenant; by default `default`, or that of the key."),
    ] = None,
) -> str:
    """Return the tenant of a request."""
    return allowed_tenant(request, tenant)


def new_conversation_id(memory: Memory, user: str | None, key: str | None) -> str:
    """Return a new conversation id, the same for a user's repeated requests with one *key*."""
    if key is None:
        return memory.clock.new_id("conv")
    return f"conv_{hashlib.sha256(json.dumps([user, key]).encode()).hexdigest()[:32]}"


OpenMemory = Annotated[Memory, Depends(open_memory)]
Tenant = Annotated[str, Depends(tenant_in_query)]
Limit = Annotated[int, Query(ge=1, le=1_000, description="The maximum number of results.")]
User = Annotated[
    Name | None, Query(min_length=1, description="The user of the conversation, if it has one.")
]


async def named_conversation(
    memory: OpenMemory,
    tenant: Tenant,
    id: Annotated[PathName, Path(description="The name of the conversation.")],  # noqa: A002 - in paths
    user: User = None,
) -> Conversation:
    """Return the conversation of a path."""
    return memory.conversation(id, tenant=tenant, user=user)


Named = Annotated[Conversation, Depends(named_conversation)]
