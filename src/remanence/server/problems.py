"""Errors as problem details (RFC 9457)."""

import math
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match

from remanence.errors import ModelError, RemanenceError
from remanence.http.problems import KINDS, MODEL_FAILED, URN

JsonObject = dict[str, Any]  # a problem may have extension members

MEDIA_TYPE: Final = "application/problem+json"
METHODS: Final = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")

DECLARED: Final[dict[int | str, JsonObject]] = {
    status: {
        "description": f"A problem of {whose} (RFC 9457).",
        "content": {
            MEDIA_TYPE: {
                "schema": {
                    "type": "object",
                    "required": ["type", "title", "status", "detail"],
                    "properties": {
                        "type": {"type": "string"},
                        "title": {"type": "string"},
                        "status": {"type": "integer"},
                        "detail": {"type": "string"},
                    },
                }
            }
        },
    }
    for status, whose in (("4XX", "the request"), ("5XX", "the server or a model"))
}
"""The errors of every route, for its documentation."""

_MODEL_STATUSES: Final = {
    "cooling": 503,
    "no_model": 503,
    "overloaded": 503,
    "rate_limit": 503,
    "timeout": 504,
}
_MODEL_STATUS: Final = 502


def handle_problems(app: FastAPI) -> None:
    """Register handlers on *app* that return each error as a problem."""
    app.add_exception_handler(RemanenceError, _of_error)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(HTTPException, _of_http)
    app.add_exception_handler(Exception, _of_error)


def document(error: Exception) -> JsonObject:
    """Return the problem of an error; an unexpected one shows only its type."""
    if not isinstance(error, RemanenceError):
        return _document(500, "failed", f"the request failed: {type(error).__name__}")
    if isinstance(error, ModelError):
        status = _MODEL_STATUSES.get(error.reason, _MODEL_STATUS)
        more = {"reason": error.reason, "retry_after_seconds": error.retry_after_seconds}
        return _document(status, MODEL_FAILED, str(error), **more)
    found = ((status, code) for kind, status, code in KINDS if isinstance(error, kind))
    status, code = next(found, (500, "failed"))
    return _document(status, code, str(error))


def response_to(error: Exception) -> JSONResponse:
    """Return the response for an error."""
    content = document(error)
    seconds = content.get("retry_after_seconds")
    headers = None if seconds is None else {"retry-after": str(math.ceil(seconds))}
    return JSONResponse(content, content["status"], headers=headers, media_type=MEDIA_TYPE)


def problem(
    status: int, code: str, detail: str, *, headers: dict[str, str] | None = None, **more: object
) -> JSONResponse:
    """Return a problem as a response."""
    content = _document(status, code, detail, **more)
    return JSONResponse(content, status, headers=headers, media_type=MEDIA_TYPE)


def _document(status: int, code: str, detail: str, **more: object) -> JsonObject:
    return {
        "type": f"{URN}{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        **{key: value for key, value in more.items() if value is not None},
    }


async def _of_error(request: Request, error: Exception) -> JSONResponse:  # noqa: ARG001 - a handler
    return response_to(error)


async def _of_validation(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    is_json = "json" in request.headers.get("content-type", "")
    errors = [_describe(found, is_json=is_json) for found in error.errors()]
    detail = "; ".join(f"{found['pointer']}: {found['detail']}" for found in errors)
    return problem(422, "invalid_request", detail, errors=errors)


def _describe(found: JsonObject, *, is_json: bool) -> dict[str, str]:
    """Return a pointer to what is wrong, and the remedy where FastAPI's text has none."""
    place, detail = found["loc"][1:], found["msg"]
    if found["type"] == "json_invalid":
        detail = f"the body is not JSON: {found['ctx']['error']} at character {place[0]}"
        place = ()
    elif found["loc"] == ("body",) and not is_json:
        detail = "send the body as JSON, with the header content-type: application/json"
    return {"pointer": "/".join(["#", *map(str, place)]), "detail": detail}


async def _of_http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    detail = f"{request.method} {request.url.path}: {error.detail}"
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = ", ".join(_methods(request))  # Starlette names those of one route
    return problem(error.status_code, "http", detail, headers=headers)


def _methods(request: Request) -> list[str]:
    """Return the methods that a route takes at the path of the request."""
    scopes = {method: {**request.scope, "method": method} for method in METHODS}
    return [
        method
        for method, scope in scopes.items()
        if any(route.matches(scope)[0] is Match.FULL for route in request.app.routes)
    ]
