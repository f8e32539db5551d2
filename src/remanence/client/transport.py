"""Requests to a service: validation of bodies, retries, and problems as errors."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from functools import cache
from typing import Any, Final, TypeAlias, TypeVar
from urllib.parse import quote
from uuid import uuid4

import httpx2
from pydantic import BaseModel, TypeAdapter, ValidationError

from remanence.arguments import require_http_url, require_name
from remanence.errors import (
    Closed,
    InvalidArgument,
    InvalidMessage,
    RemanenceError,
    ServiceError,
    StoreUnavailable,
)
from remanence.http.documents import require_path_name
from remanence.http.problems import error_of
from remanence.recent import Recent
from remanence.wire.json_value import JsonObject, read_object

TRIES: Final = 3
FIRST_PAUSE_SECONDS: Final = 0.2
MAX_PAUSE_SECONDS: Final = 30.0
CONNECT_SECONDS: Final = 10.0
MAX_FAILED: Final = 1_000
_TEMPORARY: Final = (None, 429, 502, 503, 504)

_adapter: Final = cache(TypeAdapter)

B = TypeVar("B", bound=BaseModel)
T = TypeVar("T")
Query: TypeAlias = Mapping[str, object]


class Transport:
    """Sends requests over pooled connections."""

    def __init__(self, url: str, *, key: str | None, timeout_seconds: float) -> None:
        require_http_url(url=url)
        headers = {} if key is None else {"x-remanence-key": key}
        timeout = httpx2.Timeout(timeout_seconds, connect=CONNECT_SECONDS)
        base_url = url.rstrip("/").removesuffix("/v1")  # paths begin with /v1
        self._http = httpx2.AsyncClient(base_url=base_url, headers=headers, timeout=timeout)
        self.failed_turns: Recent[tuple[str | None, str], tuple[str, str]] = Recent(MAX_FAILED)
        """The last turn of a tenant's conversation, if it failed, and the id of its answer."""

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def call(
        self,
        shape: type[T],
        method: str,
        path: str,
        query: Query,
        body: BaseModel | None = None,
        *,
        tries: int = TRIES,
    ) -> T:
        """Return the response to a request, which takes effect only once even if it is retried.

        Raises:
            ServiceError: the service cannot be reached, or refused the request.
            RemanenceError: an error that the service raised.
        """
        headers = {"idempotency-key": uuid4().hex}
        pause_seconds = FIRST_PAUSE_SECONDS
        while True:
            tries -= 1
            try:
                async with self.stream(method, path, query, body, headers=headers) as response:
                    adapter: TypeAdapter[T] = _adapter(shape)  # type: ignore[arg-type]  # a type has a hash
                    return adapter.validate_json(await response.aread() or b"null")
            except RemanenceError as error:
                wait_seconds = max(pause_seconds, getattr(error, "retry_after_seconds", 0) or 0)
                if not (tries and is_temporary(error) and wait_seconds <= MAX_PAUSE_SECONDS):
                    raise
            await asyncio.sleep(wait_seconds)
            pause_seconds *= 4

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        query: Query,
        body: BaseModel | None = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[httpx2.Response]:
        """Open the streamed response to a request, without retries; errors as for `call`.

        Raises:
            InvalidMessage: a message in *body* has a lone surrogate.
            InvalidArgument: a value of *query* has one.
        """
        params: Any = {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in query.items()
            if value is not None
        }
        # Without defaults, as a service of another release may not know their fields.
        json = None if body is None else body.model_dump(mode="json", exclude_defaults=True)
        url = f"{str(self._http.base_url).rstrip('/')}{path}"
        try:
            async with self._http.stream(
                method, path, params=params, json=json, headers=headers
            ) as response:
                if not response.is_success:
                    await response.aread()
                    raise _error(response)
                yield response
        except (ValidationError, httpx2.SSEError) as error:
            text = f"{method} {url}: the answer is not from remanence or from another release of it"
            remedy = "check the address, and update the service before its clients"
            raise ServiceError(f"{text}: {remedy}", status=response.status_code) from error
        except UnicodeEncodeError as error:
            kind = InvalidArgument if body is None else InvalidMessage
            surrogate = error.object[error.start]
            raise kind(
                f"{method} {url}: the request has the lone surrogate {surrogate!r}: decode the text "
                "with errors='replace' first"
            ) from error
        except httpx2.TransportError as error:
            reason = f"{type(error).__name__}: {error}"
            raise ServiceError(
                f"{method} {url}: {reason}: check that the service is running"
            ) from error


def make_body(shape: type[B], **fields: object) -> B:
    """Return the body of a request.

    Raises:
        InvalidMessage: a message is not an object of a provider.
        InvalidArgument: another field has an impossible value.
    """
    try:
        return shape.model_validate(fields)
    except ValidationError as error:
        found = error.errors()[0]
        name, value = str(found["loc"][0]), found["input"]
        if name in ("message", "messages"):
            remedy = "pass an object such as {'role': 'user', 'content': 'Hello.'}"
            raise InvalidMessage(f"message {value!r:.80} is impossible: {remedy}") from None
        problem = found["msg"].removeprefix("Value error, ")
        raise InvalidArgument(f"{name}={value!r:.80} is impossible: {problem}") from None


def quote_name(label: str, name: str) -> str:
    """Return *name* for the path of a request; raise `InvalidMessage` if it cannot be in one."""
    require_name(label, name)
    try:
        return quote(require_path_name(name), safe="")
    except ValueError as error:
        raise InvalidMessage(f"{label} {error}") from None


def is_temporary(error: RemanenceError) -> bool:
    """Return whether the same request may succeed later."""
    if isinstance(error, ServiceError):
        return error.status in _TEMPORARY
    return isinstance(error, StoreUnavailable | Closed)


def _error(response: httpx2.Response) -> RemanenceError:
    other: JsonObject = {"detail": f"{response.request.url.path}: {response.text:.200}"}
    problem = read_object(response.content) or other
    if (seconds := response.headers.get("retry-after", "")).isdecimal():
        problem.setdefault("retry_after_seconds", float(seconds))
    return error_of(problem, response.status_code)
