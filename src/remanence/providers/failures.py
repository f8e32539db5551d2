"""Reasons and texts of failed calls, without secrets."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Final

import httpx2

from remanence.clock import SystemClock
from remanence.errors import ModelError
from remanence.providers.clients import body_error
from remanence.providers.redact import MESSAGE_LENGTH, without_keys
from remanence.providers.spec import ModelSpec

ERROR_STATUS: Final = 400
SERVER_ERROR: Final = 500

MAX_PAUSE_SECONDS: Final = 7 * 86_400.0
"""The cap on pauses that providers ask for, as a header may have any number."""

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

# Values of `type` or `code` in an error that are more specific than the HTTP status.
_CODES: Final = {
    "api_error": "server",
    "authentication_error": "auth",
    "content_filter": "refused",
    "context_length_exceeded": "too_long",
    "insufficient_quota": "quota",
    "overloaded_error": "overloaded",
    "rate_limit_error": "rate_limit",
    "rate_limit_exceeded": "rate_limit",
    "server_error": "server",
}

TRANSPORT: Final[tuple[tuple[type[Exception], str], ...]] = (
    (TimeoutError, "timeout"),
    (httpx2.TimeoutException, "timeout"),
    (httpx2.TransportError, "connection"),
    (ValueError, "bad_answer"),  # no UTF-8, JSON or valid value
    (RecursionError, "bad_answer"),  # JSON that is nested too deeply
)
"""Reasons for errors of the HTTP layer, which all providers' clients share."""

_WORDS: Final = {
    "auth": "refused the key",
    "bad_answer": "sent an answer that is not of its protocol",
    "bad_request": "rejected the request",
    "connection": "could not be reached, or broke off",
    "cut_off": "reached the output limit before any text: raise max_output_tokens",
    "empty": "returned nothing: send again",
    "overloaded": "is overloaded",
    "quota": "has no quota or credit left",
    "rate_limit": "asks for fewer calls",
    "refused": "refused to answer",
    "server": "failed",
    "timeout": "took too long",
    "too_long": "cannot take so long a request",
    "unknown_model": "is not known to its provider",
}
# Only these quote the provider's text: others do not help, and may repeat a key or an answer.
_QUOTED: Final = frozenset({"bad_request", "quota", "too_long", "unknown_model"})

# The address only helps with these; user and path are left out, as they may be secret.
_WITH_ADDRESS: Final = frozenset({"connection", "server", "timeout"})

# Texts for an overlong request, from servers without an error code for it.
_CONTEXT: Final = r"context (?:length|size|window)|maximum context"
_TOO_LONG: Final = re.compile(
    rf"{_CONTEXT}|(?:prompt|input) is too long|too many (?:input )?tokens", re.IGNORECASE
)

_NO_CREDIT: Final = re.compile(r"credit balance is too low", re.IGNORECASE)
"""Words of Anthropic, whose error has the status 400 and no code of its own."""


def to_model_error(
    error: Exception,
    spec: ModelSpec,
    reasons: Sequence[tuple[type[Exception], str | None]],
    *,
    timeout_seconds: float,
) -> ModelError:
    """Return the `ModelError` for a failed call; *reasons* maps the client's errors."""
    if problem := body_error(error):
        return ModelError(problem.reason, f"{spec.name}: the answer {problem}")
    body: object = getattr(error, "body", None)
    status: object = getattr(error, "status_code", None)
    if not isinstance(status, int) or status < ERROR_STATUS:
        status = _code_status(body)  # an error within a stream or an answer has its status, 200
    quote = _provider_words(body)
    own = next(code for kind, code in reasons if isinstance(error, kind))
    reason = _code_reason(body) or own or _status_reason(status, quote)
    text = f"{spec.name} {_WORDS[reason]}"
    if reason == "timeout":
        text += f", a call may take {timeout_seconds:g} s"
    address, end = "", "" if status is None else f" (HTTP {status})"
    if reason in _WITH_ADDRESS and spec.base_url:
        url = httpx2.URL(spec.base_url)
        address = f", at {url.scheme}://{url.netloc.decode()}"
    retry_after = _retry_after(error)
    hint = _hint(spec, reason, retry_after)
    log_text = f"{text}{address}{end}{hint}"
    if reason in _QUOTED and quote:
        end += f": {without_secrets(quote, spec)[:MESSAGE_LENGTH]}"
    return ModelError(
        reason,
        f"{text}{address}{end}{hint}",
        retry_after_seconds=retry_after,
        public=f"{text}{end}",
        log_text=log_text,
    )


def _hint(spec: ModelSpec, reason: str, retry_after: float | None) -> str:
    variable = spec.key_variable or f"{spec.provider.upper()}_API_KEY"
    if reason == "auth" and variable in os.environ:
        return f": check {variable}"
    return f": try again in {retry_after:,.0f} s" if retry_after else ""


def unusable(reason: str, spec: ModelSpec, *, cut_off: bool = False) -> ModelError:
    """Return the error for an unusable answer; one that was cut off may be all reasoning."""
    if cut_off and reason == "empty":
        reason = "cut_off"
    text = f"{spec.name} {_WORDS[reason]}"
    return ModelError(reason, text, log_text=text)


def without_secrets(text: str, spec: ModelSpec) -> str:
    """Redact keys from the environment, passwords in the URL, and strings that look like keys."""
    secrets = {os.environ.get(spec.key_variable or "", "")}
    if spec.base_url:
        url = httpx2.URL(spec.base_url)
        secrets |= {spec.base_url, url.password, url.query.decode(errors="replace")}
    return without_keys(text, secrets)


def _status_reason(status: int | None, quote: str) -> str:
    """Return the reason for an HTTP status, which an error within a stream does not have."""
    if status in _STATUS_REASONS:
        return _STATUS_REASONS[status]
    if status is None or status >= SERVER_ERROR:
        return "server"
    if _NO_CREDIT.search(quote):
        return "quota"
    return "too_long" if _TOO_LONG.search(quote) else "bad_request"


def _levels(body: object) -> Iterator[object]:
    """Yield a provider's error at each level of nesting."""
    yield body
    for _ in range(2):
        body = body.get("error") if isinstance(body, dict) else None
        yield body


def _code_reason(body: object) -> str | None:
    levels = (level for level in _levels(body) if isinstance(level, dict))
    codes = (str(level.get(key)) for level in levels for key in ("code", "type"))
    return next((_CODES[code] for code in codes if code in _CODES), None)


def _code_status(body: object) -> int | None:
    """Return the HTTP status that a provider's error has as its code."""
    codes = (level.get("code") for level in _levels(body) if isinstance(level, dict))
    return next((code for code in codes if isinstance(code, int) and code >= ERROR_STATUS), None)


def _provider_words(body: object) -> str:
    """Return the message in a provider's error, '' if there is none."""
    for level in _levels(body):
        words = level.get("message") if isinstance(level, dict) else level
        if isinstance(words, str):
            return words
    return ""


def _retry_after(error: Exception) -> float | None:
    """Return the seconds that a provider asks to wait; a header has them, milliseconds, or a date."""
    seconds: object = getattr(error, "retry_after", None)
    if isinstance(seconds, int | float):
        return _at_most_a_week(seconds)
    response = getattr(error, "response", None)
    headers = {} if response is None else response.headers
    for name, per_second in (("retry-after-ms", 1_000), ("retry-after", 1)):
        with suppress(KeyError, ValueError):
            return _at_most_a_week(float(headers[name]) / per_second)
    try:
        at = parsedate_to_datetime(headers["retry-after"])
        return _at_most_a_week((at - SystemClock().now()).total_seconds())
    except (KeyError, TypeError, ValueError):
        return None


def _at_most_a_week(seconds: float) -> float:
    return min(max(0.0, seconds), MAX_PAUSE_SECONDS)
