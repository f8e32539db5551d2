"""Problems (RFC 9457) for errors of the library, for the service and its client."""

from collections.abc import Mapping
from typing import Any, Final

from remanence.errors import (
    Closed,
    ContextOverflow,
    ConversationGrown,
    ConversationNotFound,
    DuplicateMessage,
    InvalidArgument,
    InvalidMessage,
    ModelError,
    RemanenceError,
    ServiceError,
    StoreUnavailable,
    TurnTaken,
    WrongUser,
)

URN: Final = "urn:remanence:problem:"
MODEL_FAILED: Final = "model_failed"

KINDS: Final[tuple[tuple[type[RemanenceError], int, str], ...]] = (
    (InvalidMessage, 422, "invalid_message"),
    (ConversationGrown, 409, "conversation_grown"),
    (InvalidArgument, 422, "invalid_argument"),
    (DuplicateMessage, 409, "duplicate_message"),
    (TurnTaken, 409, "turn_taken"),
    (WrongUser, 409, "wrong_user"),
    (ConversationNotFound, 404, "not_found"),
    (ContextOverflow, 413, "context_overflow"),
    (StoreUnavailable, 503, "store_unavailable"),
    (Closed, 503, "closed"),
)
"""Errors with their status and code; the first match applies."""

_ERRORS: Final = {code: kind for kind, _, code in KINDS} | {"invalid_request": InvalidArgument}


def error_of(problem: Mapping[str, Any], status: int) -> RemanenceError:
    """Return the error behind a problem; `ServiceError` if it is the service's own."""
    detail = str(problem.get("detail", problem))
    code = str(problem.get("type", "")).removeprefix(URN)
    wait_seconds = problem.get("retry_after_seconds")
    if code == MODEL_FAILED:
        return ModelError(str(problem["reason"]), detail, retry_after_seconds=wait_seconds)
    if kind := _ERRORS.get(code):
        return kind.__new__(kind, detail)  # some make their text of other values
    return ServiceError(detail, status=status, code=code, retry_after_seconds=wait_seconds)
