"""Conversion of pydantic-ai's errors to `ModelError`, without secrets in its text."""

import json
import re
from typing import Final

import httpx2
from pydantic import ValidationError
from pydantic_ai import exceptions as wire

from remanence.errors import ModelError
from remanence.providers.bounded_client import body_error
from remanence.providers.errors import (
    describe_failure,
    is_too_long,
    provider_words,
    reason_of_status,
    without_secrets,
)
from remanence.providers.spec import ModelSpec

# The first match counts, so subclasses come before their bases.
_REASONS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (wire.ModelAuthenticationError, "auth"),
    (wire.ModelNotFoundError, "unknown_model"),
    (wire.ModelContextWindowExceededError, "too_long"),
    (wire.ModelQuotaExceededError, "quota"),
    (wire.ModelRateLimitError, "rate_limit"),
    (wire.ModelOverloadedError, "overloaded"),
    (wire.ModelUnavailableError, "server"),
    (wire.ModelServerError, "server"),
    (wire.ModelRequestTimeout, "timeout"),
    (wire.ModelTimeoutError, "timeout"),
    (wire.ModelConnectionError, "connection"),
    (wire.ModelRequestRejectedError, "bad_request"),
    (wire.ContentFilterError, "refused"),
    (httpx2.TimeoutException, "timeout"),
    (httpx2.TransportError, "connection"),
    (json.JSONDecodeError, "bad_answer"),
    (ValidationError, "bad_answer"),
)

# Failures for which pydantic-ai has no type of its own.
_OWN_STATUS_REASONS: Final = frozenset({408, 413})
_KEY_VARIABLE: Final = re.compile(r"\b[A-Z][A-Z0-9_]*_(?:KEY|TOKEN)\b")


def to_model_error(error: Exception, spec: ModelSpec) -> ModelError:
    """Return the `ModelError` of a failed call."""
    if problem := body_error(error):
        return ModelError("bad_answer", f"{spec.name}: the answer {problem}")
    return describe_failure(
        _reason(error),
        spec,
        status=error.status_code if isinstance(error, wire.ModelHTTPError) else None,
        quote=provider_words(getattr(error, "body", None)),
        retry_after_seconds=error.retry_after if isinstance(error, wire.ModelAPIError) else None,
    )


def opening_failure(error: Exception, spec: ModelSpec) -> ModelError:
    """Return the error of a model that cannot be opened: no key, or an unknown provider."""
    if variable := _KEY_VARIABLE.search(str(error)):
        return ModelError("auth", f"{spec.name} needs a key: set {variable[0]}")
    return ModelError("unknown_model", f"{spec.name}: {without_secrets(str(error), spec)}")


def _reason(error: Exception) -> str:
    if isinstance(error, wire.ModelHTTPError) and error.status_code in _OWN_STATUS_REASONS:
        return reason_of_status(error.status_code, "")
    reason = next((code for kind, code in _REASONS if isinstance(error, kind)), "bad_answer")
    if reason == "bad_request" and is_too_long(provider_words(getattr(error, "body", None))):
        return "too_long"
    return reason
