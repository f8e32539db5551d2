"""Errors as problem details (RFC 9457)."""

from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from remanence.errors import (
    Closed,
    ContextOverflow,
    ConversationNotFound,
    DuplicateMessage,
    InvalidArgument,
    InvalidMessage,
    ModelError,
    RemanenceError,
    StoreUnavailable,
    TurnTaken,
    WrongUser,
)

JsonObject = dict[str, Any]  # a problem may have extension members

MEDIA_TYPE: Final = "application/problem+json"

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

# The first match counts.
_KINDS: Final[tuple[tuple[type[RemanenceError], int, str], ...]] = (
    (InvalidMessage, 422, "invalid_message"),
    (InvalidArgument, 422, "invalid_argument"),
    (DuplicateMessage, 409, "duplicate_message"),
    (TurnTaken, 409, "turn_taken"),
    (WrongUser, 409, "wrong_user"),
    (ConversationNotFound, 404, "not_found"),
    (ContextOverflow, 413, "context_overflow"),
    (StoreUnavailable, 503, "store_unavailable"),
    (Closed, 503, "closed"),
    (RemanenceError, 500, "failed"),
)
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
        return _document(status, "model_failed", str(error), **more)
    status, code = next((status, code) for kind, status, code in _KINDS if isinstance(error, kind))
    return _document(status, code, str(error))


def response_to(error: Exception) -> JSONResponse:
    """Return the response for an error."""
    content = document(error)
    seconds = content.get("retry_after_seconds")
    headers = None if seconds is None else {"retry-after": str(round(seconds))}
    return JSONResponse(content, content["status"], headers=headers, media_type=MEDIA_TYPE)


def problem(
    status: int, code: str, detail: str, *, headers: dict[str, str] | None = None, **more: object
) -> JSONResponse:
    """Return a problem as a response."""
    content = _document(status, code, detail, **more)
    return JSONResponse(content, status, headers=headers, media_type=MEDIA_TYPE)


def _document(status: int, code: str, detail: str, **more: object) -> JsonObject:
    return {
        "type": f"urn:remanence:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        **{key: value for key, value in more.items() if value is not None},
    }


async def _of_error(request: Request, error: Exception) -> JSONResponse:  # noqa: ARG001 - a handler
    return response_to(error)


async def _of_validation(request: Request, error: Exception) -> JSONResponse:  # noqa: ARG001
    assert isinstance(error, RequestValidationError)
    errors = [
        {"pointer": "/".join(["#", *map(str, found["loc"][1:])]), "detail": found["msg"]}
        for found in error.errors()
    ]
    detail = "; ".join(f"{found['pointer']}: {found['detail']}" for found in errors)
    return problem(422, "invalid_request", detail, errors=errors)


async def _of_http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    detail = f"{request.method} {request.url.path}: {error.detail}"
    return problem(error.status_code, "http", detail, headers=dict(error.headers or {}))
