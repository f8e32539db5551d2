"""Conversion of errors of the providers' clients to `ModelError`."""

from collections.abc import Sequence
from typing import Final

from remanence.errors import ModelError
from remanence.providers.bounded_client import body_error
from remanence.providers.errors import describe_failure, provider_words, reason_of_status
from remanence.providers.spec import ModelSpec

# Values of `type` or `code` in a provider's error that are more specific than the status.
_CODES: Final = {
    "api_error": "server",
    "authentication_error": "auth",
    "context_length_exceeded": "too_long",
    "insufficient_quota": "quota",
    "overloaded_error": "overloaded",
    "rate_limit_error": "rate_limit",
    "rate_limit_exceeded": "rate_limit",
    "server_error": "server",
}


def to_model_error(
    error: Exception, spec: ModelSpec, reasons: Sequence[tuple[type[Exception], str]]
) -> ModelError:
    """Return the `ModelError` of a failed call; *reasons* are codes of errors without a status."""
    if problem := body_error(error):
        return ModelError("bad_answer", f"{spec.name}: the answer {problem}")
    body: object = getattr(error, "body", None)
    status = _status_of(error)
    quote = provider_words(body)
    reason = _code_reason(body)
    if reason is None and status is not None:
        reason = reason_of_status(status, quote)
    if reason is None:
        reason = next(code for kind, code in reasons if isinstance(error, kind))
    return describe_failure(
        reason, spec, status=status, quote=quote, retry_after_seconds=_retry_after(error)
    )


def _status_of(error: Exception) -> int | None:
    """Return the HTTP status; an error within a stream has the status of the stream, 200."""
    status: object = getattr(error, "status_code", None)
    return status if isinstance(status, int) and status >= 400 else None


def _code_reason(body: object) -> str | None:
    for _ in range(2):
        if isinstance(body, dict):
            for key in ("code", "type"):
                if body.get(key) in _CODES:
                    return _CODES[body[key]]
            body = body.get("error")
    return None


def _retry_after(error: Exception) -> float | None:
    response = getattr(error, "response", None)
    text = response.headers.get("retry-after") if response is not None else None
    try:
        return max(0.0, float(text)) if text is not None else None
    except ValueError:
        return None
