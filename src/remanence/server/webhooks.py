"""Webhooks: events are posted to URLs, signed according to Standard Webhooks."""

import asyncio
import base64
import hashlib
import hmac
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import Final
from urllib.parse import urlsplit

import httpx2

from remanence.arguments import require_http_url
from remanence.background import Background
from remanence.clock import Clock
from remanence.errors import InvalidArgument
from remanence.http.documents import EVENT
from remanence.memory import Memory
from remanence.providers.clients import no_cookies, tls_context
from remanence.types import Event

_PREFIX: Final = "whsec_"
TIMEOUT_SECONDS: Final = 15.0
_MIN_SECRET_BYTES: Final = 24


class Webhook:
    """A receiver of events at *url*, and the secret for their signatures.

    Raises:
        InvalidArgument: *url* is not an HTTP URL, or *secret* is not `whsec_` followed by at least
            24 bytes as base64.
    """

    def __init__(self, url: str, *, secret: str) -> None:
        require_http_url(webhook=url)
        self._url = url
        self._key = _key_of(secret)
        digest = hashlib.sha256(url.encode()).hexdigest()
        self.name = f"webhook {urlsplit(url).hostname} {digest[:16]}"
        """The name of the consumer, without the URL, which may contain a token."""

    def headers(self, event: Event, body: bytes, *, at: datetime) -> Mapping[str, str]:
        """Return the headers of an attempt; the id is the same for all attempts."""
        source = f"{event.tenant}\n{event.id}\n{event.at.isoformat()}".encode()
        id_ = f"evt_{hashlib.sha256(source).hexdigest()[:32]}"
        timestamp = str(int(at.timestamp()))
        signed = f"{id_}.{timestamp}.".encode() + body
        signature = base64.b64encode(hmac.digest(self._key, signed, "sha256")).decode()
        return {
            "content-type": "application/json",
            "webhook-id": id_,
            "webhook-timestamp": timestamp,
            "webhook-signature": f"v1,{signature}",
        }

    async def post(self, client: httpx2.AsyncClient, clock: Clock, event: Event) -> None:
        """Post an event.

        Raises:
            ConnectionError: the receiver's status was not 2xx.
            httpx2.HTTPError, TimeoutError: the receiver did not answer, or not in time.
        """
        body = EVENT.dump_json(event)
        headers = self.headers(event, body, at=clock.now())
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                response = await client.post(self._url, content=body, headers=headers)
        except (TimeoutError, httpx2.TimeoutException):
            raise TimeoutError(f"no answer within {TIMEOUT_SECONDS:g} s") from None
        if not response.is_success:
            raise ConnectionError(f"the receiver answered {response.status_code}")


@asynccontextmanager
async def post_events(memory: Memory, webhooks: Sequence[Webhook]) -> AsyncIterator[None]:
    """Post the events of all tenants of an open *memory* to each webhook while the block runs.

    Each event is posted at growing intervals until it is accepted, in order for each tenant. The
    database stores the position of each URL.
    """
    async with (
        httpx2.AsyncClient(
            timeout=TIMEOUT_SECONDS,
            verify=tls_context(),
            follow_redirects=False,
            cookies=no_cookies(),
        ) as client,
        Background() as background,
    ):
        for webhook in webhooks:
            send = partial(webhook.post, client, memory.clock)
            background.spawn(webhook.name, partial(memory.deliver_events, webhook.name, send))
        yield


def _key_of(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except ValueError:
        key = b""
    if not secret.startswith(_PREFIX) or len(key) < _MIN_SECRET_BYTES:
        raise InvalidArgument(
            "the secret of webhooks is missing or too weak: set REMANENCE_WEBHOOK_SECRET to "
            f"{_PREFIX} and {_MIN_SECRET_BYTES} random bytes or more as base64, such as of "
            "'openssl rand -base64 32'"
        )
    return key
