"""Errors as problem details (RFC 9457)."""

import json
import logging
import math
from collections.abc import Collection, Iterator, Sequence
from http import HTTPStatus
from typing import Final, get_args, get_origin

from fastapi import FastAPI, Request
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

from remanence.errors import ModelError, RemanenceError, StoreError, StoreUnavailable
from remanence.http.problems import KINDS, MODEL_FAILED, URN
from remanence.server.paths import PROXIES, path_of
from remanence.wire.json_value import JsonObject
from remanence.wire.message_rules import storable

_log = logging.getLogger(__name__)

MEDIA_TYPE: Final = "application/problem+json"
METHODS: Final = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")

STORE_RETRY_SECONDS: Final = 2
"""The `Retry-After` of responses while the store is unavailable."""

_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "message"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "message": {"type": "string"},
        "reason": {"type": "string", "description": "Why a model failed."},
        "retry_after_seconds": {"type": "number", "description": "As `Retry-After`."},
        "error": {
            "type": "object",
            "description": "At the proxies: detail and code, where clients of providers read them.",
            "required": ["message", "type", "code"],
            "properties": {name: {"type": "string"} for name in ("message", "type", "code")},
        },
        "errors": {
            "type": "array",
            "description": "Each fault of an invalid request.",
            "items": {
                "type": "object",
                "required": ["pointer", "detail"],
                "properties": {"pointer": {"type": "string"}, "detail": {"type": "string"}},
            },
        },
    },
}
"""A problem may have more members."""

_EXAMPLES: Final[tuple[tuple[int, str, str], ...]] = (
    (
        400,
        "unreadable_body",
        "POST /v1/facts: the body cannot be read (invalid start byte): send JSON in UTF-8",
    ),
    (401, "no_key", "no valid key: send one in x-remanence-key or x-api-key, or as a bearer token"),
    (403, "not_allowed", "this request needs a key with the scope 'erase': use one that has it"),
    (403, "wrong_tenant", "GET /v1/facts: this key is for another tenant: leave the tenant out"),
    (403, "foreign_origin", "pages of 'https://example.com' may not use this server"),
    (404, "not_found", "there is no conversation 'trip': append a message to begin it"),
    (408, "body_timeout", "the body did not arrive within 60 s: send it at once"),
    (409, "conversation_grown", "conversation 'trip' already has messages: use another id"),
    (409, "duplicate_message", "message id 'm-1' is taken by message 4 of conversation 'trip'"),
    (409, "turn_taken", "another turn of conversation 'trip' is in progress: try again later"),
    (409, "wrong_user", "conversation 'trip' is not open to user 'bo': name its user"),
    (413, "body_too_large", "the body has more than 33,554,432 bytes"),
    (413, "context_overflow", "the system text leaves no room for messages"),
    (414, "url_too_long", "path and query have more than 16,384 bytes: use shorter names"),
    (421, "not_local", "this server does not accept the host 'app', only localhost"),
    (422, "invalid_request", "#/limit: Input should be greater than or equal to 1"),
    (422, "invalid_message", "the message has no role"),
    (422, "invalid_argument", "conversation 'trip' has no message 'm-9'"),
    (429, "too_many_requests", "more than 600 requests a minute: wait 0.4 s"),
    (500, "failed", "the request failed: RuntimeError"),
    (502, MODEL_FAILED, "the model's answer was cut off"),
    (503, MODEL_FAILED, "the model is overloaded: try again in 4 s"),
    (504, MODEL_FAILED, "the model did not answer within 60 s"),
    (503, "store_unavailable", "memory.db: the disk is full: free some space"),
    (503, "closed", "the memory is closed: open it again with Memory.open(...)"),
)
"""The statuses and codes of errors of routes, each with an example of its detail."""

OF_ALL: Final = (
    *("foreign_origin", "body_timeout", "body_too_large", "url_too_long", "not_local"),
    *("too_many_requests", "failed"),
)
_OF_MEMORY: Final = (
    *(*OF_ALL, "no_key", "not_allowed", "wrong_tenant", "invalid_request", "invalid_argument"),
    *("store_unavailable", "closed"),
)

_HTTP_CODES: Final = {
    400: "unreadable_body",
    403: "wrong_tenant",
    404: "unknown_path",
    405: "method_not_allowed",
}
"""Codes for errors that FastAPI or a route raises as a bare status."""

_LENGTHS: Final = {"too_short": "at least {min_length:,}", "too_long": "at most {max_length:,}"}
"""Remedies for texts whose length pydantic counts in items."""

_MODEL_STATUSES: Final = {
    "cooling": 503,
    "no_model": 503,
    "overloaded": 503,
    "rate_limit": 503,
    "timeout": 504,
}
_MODEL_STATUS: Final = 502


def declare(*codes: str, of_all: Collection[str] = _OF_MEMORY) -> dict[int | str, JsonObject]:
    """Return the errors of a route for its documentation.

    *codes* are added to *of_all*, by default the errors of all routes that read the memory.
    """
    declared: dict[int | str, JsonObject] = {}
    for status, code, _ in _EXAMPLES:
        if code in codes or code in of_all:
            media = {"schema": {"$ref": "#/components/schemas/Problem"}, "examples": {}}
            new = {
                "description": f"A problem (RFC 9457): {HTTPStatus(status).phrase}.",
                "content": {MEDIA_TYPE: media},
            }
            examples = declared.setdefault(status, new)["content"][MEDIA_TYPE]["examples"]
            examples[code] = {"$ref": f"#/components/examples/{status}_{code}"}
    return declared


def add_components(documentation: JsonObject) -> None:
    """Add the schema of problems and an example of each, which the declarations refer to."""
    components = documentation["components"]
    components["schemas"]["Problem"] = _SCHEMA
    components["examples"] = {
        f"{status}_{code}": {"value": _document(status, code, detail)}
        for status, code, detail in _EXAMPLES
    }


def handle_problems(app: FastAPI) -> None:
    """Register handlers on *app* that return each error as a problem."""
    app.add_exception_handler(RemanenceError, _of_error)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(HTTPException, _of_http)
    app.add_exception_handler(Exception, _of_error)


def document(error: Exception) -> JsonObject:
    """Return an error as a problem; an unexpected error shows only its type.

    Details of an error that only the operator may read are logged.
    """
    if not isinstance(error, RemanenceError):
        return _document(500, "failed", f"the request failed: {type(error).__name__}")
    if isinstance(error, ModelError):
        status = _MODEL_STATUSES.get(error.reason, _MODEL_STATUS)
        more = {"reason": error.reason, "retry_after_seconds": error.retry_after_seconds}
        if error.public != str(error):
            _log.warning("%s: %s", MODEL_FAILED, error)
        return _document(status, MODEL_FAILED, error.public, **more)
    found = ((status, code) for kind, status, code in KINDS if isinstance(error, kind))
    status, code = next(found, (500, "failed"))
    if not isinstance(error, StoreError):
        return _document(status, code, str(error))
    _log.warning("%s: %s", code, error)
    wait_seconds = STORE_RETRY_SECONDS if isinstance(error, StoreUnavailable) else None
    return _document(status, code, error.public, retry_after_seconds=wait_seconds)


def response_to(error: Exception) -> JSONResponse:
    """Return the response for an error."""
    content = document(error)
    seconds = content.get("retry_after_seconds")
    headers = None if seconds is None else {"retry-after": str(math.ceil(seconds))}
    return _Problem(content, content["status"], headers=headers)


def problem(
    status: int, code: str, detail: str, *, headers: dict[str, str] | None = None, **more: object
) -> JSONResponse:
    """Return a problem as a response."""
    content = _document(status, code, detail, **more)
    return _Problem(content, status, headers=headers)


class _Problem(JSONResponse):
    """A problem; at the proxies it has the member `error`, too, as errors of the providers do."""

    media_type = MEDIA_TYPE

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if path_of(scope).startswith(PROXIES):
            content = json.loads(bytes(self.body))
            code = content["type"].removeprefix(URN)
            error = {"message": content["detail"], "type": code, "code": code}
            self.body = self.render({**content, "error": error})
            self.headers["content-length"] = str(len(self.body))
        await super().__call__(scope, receive, send)


def _document(status: int, code: str, detail: str, **more: object) -> JsonObject:
    detail = storable(detail)  # a model's error may quote what no response can encode
    return {
        "type": f"{URN}{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "message": detail,  # the only text that some clients of Anthropic show
        **{key: value for key, value in more.items() if value is not None},
    }


async def _of_error(request: Request, error: Exception) -> JSONResponse:  # noqa: ARG001 - a handler
    return response_to(error)


async def _of_validation(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    is_json = "json" in request.headers.get("content-type", "")
    fields, in_query = body_fields(request), query_parameters(request.scope["route"].dependant)
    errors = [
        _describe(found, is_json=is_json, fields=fields, in_query=in_query)
        for found in error.errors()
    ]
    detail = "; ".join(f"{found['pointer']}: {found['detail']}" for found in errors)
    return problem(422, "invalid_request", detail, errors=errors)


def body_fields(request: Request) -> Sequence[str]:
    """Return the field names of a route's body."""
    field = getattr(request.scope.get("route"), "body_field", None)
    annotation = None if field is None else field.field_info.annotation
    models = (annotation, *get_args(annotation))  # of `Body | None`
    return [
        info.alias or name
        for model in models
        if isinstance(model, type) and issubclass(model, BaseModel)
        for name, info in model.model_fields.items()
    ]


def query_parameters(dependant: Dependant) -> dict[str, bool]:
    """Return the names of a route's query parameters, and whether each is a list."""
    names = {field.alias: _is_list(field.field_info.annotation) for field in dependant.query_params}
    for dependency in dependant.dependencies:
        names |= query_parameters(dependency)
    return names


def _is_list(annotation: object) -> bool:
    """Return whether an annotation is that of a list, or of a list or None."""
    return any(get_origin(part) is list for part in (annotation, *get_args(annotation)))


def _describe(
    found: JsonObject, *, is_json: bool, fields: Sequence[str], in_query: Collection[str]
) -> dict[str, str]:
    """Return a pointer to the faulty value, and a text with a remedy where FastAPI's has none."""
    place, detail = found["loc"][1:], found["msg"].removeprefix("Value error, ")
    if found["type"] == "json_invalid":
        detail = f"the body is not JSON: {found['ctx']['error']} at character {place[0]}"
        place = ()
    elif found["loc"] == ("body",) and not is_json:
        detail = "send the body as JSON, with the header content-type: application/json"
    elif found["type"] == "extra_forbidden" and len(place) == 1 and fields:
        rest = f"use {', '.join(fields)}"
        detail = f"unknown field: {'put it into the query' if place[0] in in_query else rest}"
    elif found["type"] in _LENGTHS and isinstance(found["input"], str):
        wanted = _LENGTHS[found["type"]].format(**found["ctx"])
        detail = f"the text is {len(found['input']):,} characters long: use {wanted}"
    elif found["type"].startswith(("datetime_", "timezone_")):
        detail = (
            f"{found['input']!r:.80} is not a time: use ISO 8601 with an offset, such as "
            "2026-05-01T09:30:00+02:00, and in a URL %2B for the +"
        )
    return {"pointer": "/".join(["#", *map(str, place)]), "detail": detail}


async def _of_http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    detail = f"{request.method} {request.url.path}: {error.detail}"
    if error.status_code == HTTPStatus.BAD_REQUEST and (cause := error.__cause__) is not None:
        why = str(cause).partition("; use sys.")[0]  # of a number with thousands of digits
        remedy = "send JSON in UTF-8, with plain numbers and little nesting"
        if encoding := request.headers.get("content-encoding"):
            why = f"it is compressed, as its content-encoding is {encoding!r:.20}"
            remedy = "send it without content-encoding"
        detail = f"{request.method} {request.url.path}: the body cannot be read ({why}): {remedy}"
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.NOT_FOUND:
        detail = "; ".join((detail, *_known_paths(request)))
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        # Starlette lists the methods of one route only.
        headers["Allow"] = ", ".join(_methods(request))
        detail += f": use {headers['Allow']}"
    code = _HTTP_CODES.get(error.status_code, "http")
    return problem(error.status_code, code, detail, headers=headers)


def _known_paths(request: Request) -> Iterator[str]:
    """Yield where the paths of the server are, for a request to an unknown one."""
    has_proxies = request.app.state.has_proxies
    proxy = request.url.path.strip("/").partition("/")[0]
    if proxy in ("openai", "anthropic"):
        yield f"the base URL ends in /{proxy}/v1" if has_proxies else "this server has no proxies"
        return
    if request.app.openapi_url:
        document_path = f"{request.scope.get('root_path', '')}{request.app.openapi_url}"
        yield f"GET {document_path} lists the paths"
    if has_proxies:
        yield "the base URL of a client of OpenAI ends in /openai/v1, of Anthropic in /anthropic"


def _methods(request: Request) -> list[str]:
    """Return the methods that any route accepts at the path of the request."""
    scopes = {method: {**request.scope, "method": method} for method in METHODS}
    return [
        method
        for method, scope in scopes.items()
        if any(route.matches(scope)[0] is Match.FULL for route in request.app.routes)
    ]
