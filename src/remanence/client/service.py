"""The async client of a service: conversations, facts, users and events."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import Final, Self

from httpx2 import EventSource

from remanence.client.conversation import AsyncConversation
from remanence.client.transport import Transport, is_temporary, make_body, quote_name
from remanence.errors import ConversationNotFound, RemanenceError
from remanence.http.documents import (
    EVENT,
    ConversationsDocument,
    FactsDocument,
    NewFact,
)
from remanence.types import Event, EventType, Fact, FactType, Hit, HitKind, Receipt, UsageTotal

TIMEOUT_SECONDS: Final = 120.0
RECONNECT_SECONDS: Final = 1.0


class AsyncFacts:
    """The facts of users, like `memory.facts`."""

    def __init__(self, transport: Transport) -> None:
        """Use `client.facts`."""
        self._transport = transport

    async def save(
        self,
        summary: str,
        *,
        user: str,
        tenant: str | None = None,
        type: FactType = "knowledge",  # noqa: A002 - the field's name
        tags: Sequence[str] = (),
        valid_from: datetime | None = None,
        replaces: str | None = None,
        conversation: str | None = None,
    ) -> Fact:
        """Save a fact, or return an existing one that says the same."""
        body = make_body(
            NewFact,
            summary=summary,
            type=type,
            tags=[*tags],
            valid_from=valid_from,
            replaces=replaces,
            conversation=conversation,
        )
        query = {"tenant": tenant, "user": user}
        return await self._transport.call(Fact, "POST", "/v1/facts", query, body)

    async def search(
        self, query: str, *, user: str, tenant: str | None = None, limit: int = 5
    ) -> list[Fact]:
        """Return the user's current facts that match *query*, best first."""
        return await self._find(query=query, user=user, tenant=tenant, limit=limit)

    async def forget(self, fact_id: str, *, user: str, tenant: str | None = None) -> bool:
        """Erase a fact of the user and those it superseded; false if it does not exist."""
        path = f"/v1/facts/{quote_name('fact id', fact_id)}"
        query = {"tenant": tenant, "user": user}
        try:
            await self._transport.call(type(None), "DELETE", path, query, tries=1)
        except ConversationNotFound:
            return False
        return True

    async def _find(self, **query: object) -> list[Fact]:
        return (await self._transport.call(FactsDocument, "GET", "/v1/facts", query)).facts

    async def list(
        self,
        *,
        user: str,
        tenant: str | None = None,
        history: bool = False,
        after: str | None = None,
        limit: int = 100,
    ) -> "list[Fact]":
        """Return up to *limit* of the user's facts, last written first; *history* includes expired ones.

        For the next page, pass the id of the last fact as *after*.
        """
        return await self._find(user=user, tenant=tenant, history=history, after=after, limit=limit)


class AsyncClient:
    """A client of `remanence serve`: `async with AsyncClient(url) as client`.

    Refused requests raise the same errors of `remanence.errors` as the library. If the service cannot
    be reached, requests that do not erase are tried three times.

    Args:
        url: the address of the service, with or without `/v1`.
        key: an API key from `remanence keys`, if the service needs one.
        timeout_seconds: how long to wait for the service, while its models may be working.
    """

    def __init__(
        self, url: str, *, key: str | None = None, timeout_seconds: float = TIMEOUT_SECONDS
    ) -> None:
        self._transport = Transport(url, key=key, timeout_seconds=timeout_seconds)
        self.facts = AsyncFacts(self._transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._transport.close()

    def conversation(
        self,
        id: str,  # noqa: A002 - the library's name
        *,
        user: str | None = None,
        tenant: str | None = None,
    ) -> AsyncConversation:
        """Return a handle of the conversation *id* of a tenant, by default that of the key."""
        return AsyncConversation(self._transport, id, tenant=tenant, user=user)

    async def conversations(
        self,
        *,
        tenant: str | None = None,
        user: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> ConversationsDocument:
        """Return a page of a tenant's or a user's conversations; pass its `after` for the next one."""
        query = {"tenant": tenant, "user": user, "after": after, "limit": limit}
        return await self._transport.call(ConversationsDocument, "GET", "/v1/conversations", query)

    async def recall(
        self,
        query: str,
        *,
        user: str,
        tenant: str | None = None,
        limit: int = 5,
        kind: HitKind | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> tuple[Hit, ...]:
        """Return hits from all conversations of a user, best first, with sources."""
        of = {"tenant": tenant, "user": user}
        given = {"query": query, "limit": limit, "kind": kind, "since": since, "until": until}
        return await self._transport.call(tuple[Hit, ...], "GET", "/v1/recall", of | given)

    async def usage(
        self,
        *,
        tenant: str | None = None,
        conversation: str | None = None,
        user: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> tuple[UsageTotal, ...]:
        """Return tokens and cost of a tenant's model calls, or a user's, by purpose and model."""
        of = {"tenant": tenant, "conversation": conversation, "user": user}
        given = of | {"since": since, "until": until}
        return await self._transport.call(tuple[UsageTotal, ...], "GET", "/v1/usage", given)

    async def export_user(
        self, user: str, *, tenant: str | None = None
    ) -> AsyncGenerator[str, None]:
        """Yield everything stored about a user, as lines of JSON."""
        path = f"/v1/users/{quote_name('user', user)}/export"
        async with self._transport.stream("GET", path, {"tenant": tenant}) as response:
            async for line in response.aiter_lines():
                yield line

    async def forget_user(self, user: str, *, tenant: str | None = None) -> Receipt:
        """Erase a user's conversations, facts, notes and blocks, and return a receipt."""
        path = f"/v1/users/{quote_name('user', user)}"
        return await self._transport.call(Receipt, "DELETE", path, {"tenant": tenant}, tries=1)

    async def events(
        self,
        *,
        after: int | None = None,
        tenant: str | None = None,
        conversation: str | None = None,
        types: Sequence[EventType] = (),
    ) -> AsyncGenerator[Event, None]:
        """Yield events in order, and wait for more; reconnects when a connection ends.

        Args:
            after: the id of the last event seen, or 0 for all stored events; by default only new
                events.
            tenant: whose events; by default that of the key.
            conversation: only events of this conversation.
            types: only events of these types.
        """
        query = {"tenant": tenant, "conversation": conversation, "type": [*types]}
        is_connected = False
        while True:
            try:
                async with self._transport.stream(
                    "GET", "/v1/events", {**query, "after": after}
                ) as response:
                    async for event in EventSource(response, max_event_size=None):
                        is_connected, after = True, int(event.id)
                        if event.data:
                            yield EVENT.validate_json(event.data)
            except RemanenceError as error:
                if not (is_connected and is_temporary(error)):
                    raise
            await asyncio.sleep(RECONNECT_SECONDS)
