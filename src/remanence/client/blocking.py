"""The same client without `await`."""

from typing import Self

from remanence.client.conversation import AsyncConversation
from remanence.client.service import TIMEOUT_SECONDS, AsyncClient, AsyncFacts
from remanence.portal import Handle, Portal, blocking, iterating


class Conversation(Handle[AsyncConversation]):
    """Like `AsyncConversation`, without `await`."""

    state = blocking(AsyncConversation.state)
    append = blocking(AsyncConversation.append)
    messages = blocking(AsyncConversation.messages)
    context = blocking(AsyncConversation.context)
    chat = blocking(AsyncConversation.chat)
    stream = iterating(AsyncConversation.stream)
    observations = blocking(AsyncConversation.observations)
    reflections = blocking(AsyncConversation.reflections)
    log = blocking(AsyncConversation.log)
    recall = blocking(AsyncConversation.recall)
    flush = blocking(AsyncConversation.flush)
    end = blocking(AsyncConversation.end)
    fork = blocking(AsyncConversation.fork)
    forget = blocking(AsyncConversation.forget)
    delete = blocking(AsyncConversation.delete)


class Facts(Handle[AsyncFacts]):
    """Like `AsyncFacts`, without `await`."""

    save = blocking(AsyncFacts.save)
    list = blocking(AsyncFacts.list)
    search = blocking(AsyncFacts.search)
    forget = blocking(AsyncFacts.forget)


class Client(Handle[AsyncClient]):
    """Like `AsyncClient`, without `await`: `with Client(url) as client`. Safe to use from any thread."""

    def __init__(
        self, url: str, *, key: str | None = None, timeout_seconds: float = TIMEOUT_SECONDS
    ) -> None:
        portal = Portal("the client is closed: open it again with Client(url)")
        client = portal.open(lambda: AsyncClient(url, key=key, timeout_seconds=timeout_seconds))
        super().__init__(client, portal)
        self.facts = Facts(client.facts, portal)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._portal.close()

    def conversation(
        self,
        id: str,  # noqa: A002 - the library's name
        *,
        user: str | None = None,
        tenant: str | None = None,
    ) -> Conversation:
        """Return a handle of the conversation *id* of a tenant, by default that of the key."""
        return Conversation(self._awaited.conversation(id, user=user, tenant=tenant), self._portal)

    conversations = blocking(AsyncClient.conversations)
    recall = blocking(AsyncClient.recall)
    usage = blocking(AsyncClient.usage)
    export_user = iterating(AsyncClient.export_user)
    forget_user = blocking(AsyncClient.forget_user)
    events = iterating(AsyncClient.events)
