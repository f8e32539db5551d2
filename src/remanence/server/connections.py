"""A timeout for the head of a request."""

import asyncio
from typing import Final, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS: Final = 20.0
"""Timeout for the head of a request; uvicorn itself has none."""


class PatientProtocol(H11Protocol):
    """HTTP/1.1 that closes a connection whose next request does not arrive in time."""

    head_seconds: float = HEAD_SECONDS
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast("asyncio.Transport", transport))  # as asyncio makes it
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        """Start the timer at the first byte of a head; idle connections have their own timeout."""
        if not self._misses_head():
            if self._waiting is not None:
                self._waiting.cancel()
                self._waiting = None
        elif self._waiting is None:
            self._waiting = self.loop.call_later(self.head_seconds, self._give_up)

    def _misses_head(self) -> bool:
        return self.conn.their_state is h11.IDLE

    def _give_up(self) -> None:
        self._waiting = None
        if self._misses_head() and not self.transport.is_closing():
            self.transport.close()
