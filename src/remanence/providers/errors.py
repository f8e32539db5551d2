"""Texts of a failed call, without secrets."""

import os
import re
from typing import Final

import httpx2

from remanence.errors import ModelError
from remanence.providers.redact import MESSAGE_LENGTH, without_keys
from remanence.providers.spec import ModelSpec

SERVER_ERROR: Final = 500

_STATUS_REASONS: Final = {
    401: "auth",
    402: "quota",
    403: "auth",
    404: "unknown_model",
    408: "timeout",
    413: "too_long",
    429: "rate_limit",
    503: "overloaded",
    529: "overloaded",
}

_WORDS: Final = {
    "auth": "refused the key",
    "bad_answer": "sent an answer that is not of its protocol",
    "bad_request": "rejected the request",
    "connection": "could not be reached, or broke off",
    "overloaded": "is overloaded",
    "quota": "has no quota or credit left",
    "rate_limit": "asks for fewer calls",
    "refused": "refused to answer",
    "server": "failed",
    "timeout": "took too long",
    "too_long": "cannot take so long a request",
    "unknown_model": "is not known to its provider",
}
# For other reasons the provider's text is no help, and may repeat a key or an answer.
_QUOTED: Final = frozenset({"bad_request", "quota", "too_long", "unknown_model"})

# The address helps only here; user and path are left out, as they may be secret.
_UNREACHED: Final = frozenset({"connection", "timeout"})

# Messages of servers that have no error code for a request that is too long.
_TOO_LONG: Final = re.compile(
    r"context (?:length|size|window)|maximum context|prompt is too long|input is too long"
    r"|too many (?:input )?tokens",
    re.IGNORECASE,
)


def describe_failure(
    reason: str,
    spec: ModelSpec,
    *,
    status: int | None = None,
    quote: str = "",
    retry_after_seconds: float | None = None,
) -> ModelError:
    """Return the error of a failed call; it quotes the provider only if that reveals no secret."""
    text = f"{spec.name} {_WORDS[reason]}"
    if reason in _UNREACHED and spec.base_url:
        url = httpx2.URL(spec.base_url)
        text += f", at {url.scheme}://{url.netloc.decode()}"
    if status is not None:
        text += f" (HTTP {status})"
    if reason in _QUOTED and quote:
        text += f": {without_secrets(quote, spec)[:MESSAGE_LENGTH]}"
    return ModelError(reason, text, retry_after_seconds=retry_after_seconds)


def reason_of_status(status: int, quote: str) -> str:
    """Return the reason for an HTTP status and the provider's message."""
    if status in _STATUS_REASONS:
        return _STATUS_REASONS[status]
    if status >= SERVER_ERROR:
        return "server"
    return "too_long" if is_too_long(quote) else "bad_request"


def is_too_long(quote: str) -> bool:
    """Return whether a provider's message means that a request does not fit its model."""
    return bool(_TOO_LONG.search(quote))


def without_secrets(text: str, spec: ModelSpec) -> str:
    """Redact keys of the environment, passwords of the URL, and strings that look like them."""
    secrets = {os.environ.get(spec.key_variable or "", "")}
    if spec.base_url:
        url = httpx2.URL(spec.base_url)
        secrets |= {spec.base_url, url.password, url.query.decode(errors="replace")}
    return without_keys(text, secrets)


def provider_words(body: object) -> str:
    """Return the message in the body of a provider's error, '' if there is none."""
    for _ in range(2):
        if isinstance(body, dict):
            message = body.get("message")
            if isinstance(message, str):
                return message
            body = body.get("error")
    return body if isinstance(body, str) else ""
