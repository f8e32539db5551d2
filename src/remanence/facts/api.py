"""The facade of facts: what a memory knows about its users beyond their conversations."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import get_args

from remanence.arguments import (
    require_count,
    require_moment,
    require_name,
    require_text,
    require_texts,
)
from remanence.clock import Clock
from remanence.errors import InvalidMessage, StoreError
from remanence.facts.extraction import KNOWN_FACTS
from remanence.facts.merge import merge_facts
from remanence.notes.redact import redact
from remanence.protocols import FactVectors, Store
from remanence.types import Fact, FactChanges, FactDraft, FactType, Owner

TRIES = 5
LONGEST_SUMMARY = 4_000

Search = Callable[[Owner, str, int], Awaitable[tuple[Fact, ...]]]


class Facts:
    """Facts by user: each call names a user of a tenant, and sees nobody else's."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        search: Search,
        changed: Callable[[], None],
        vectors: FactVectors | None,
        check_open: Callable[[], None],
    ) -> None:
        """Use `memory.facts`."""
        self._store = store
        self._clock = clock
        self._search = search
        self._changed = changed
        self._vectors = vectors
        self._check_open = check_open

    async def search(
        self, query: str, *, user: str, tenant: str = "default", limit: int = 5
    ) -> tuple[Fact, ...]:
        """The user's facts that hold and match *query*, best first."""
        require_text(query=query)
        require_count(limit=limit)
        return await self._search(self._owner(tenant, user), query, limit)

    async def save(
        self,
        summary: str,
        *,
        user: str,
        tenant: str = "default",
        type: FactType = "knowledge",  # noqa: A002 - the field's name
        tags: Sequence[str] = (),
        valid_from: datetime | None = None,
        replaces: str | None = None,
    ) -> Fact:
        """Keep a fact; the one that says the same is returned where it is known already.

        A fact that it contradicts, or the one with the id *replaces*, is superseded by it.

        Raises:
            InvalidMessage: the summary is empty or too long, or the type unknown.
            InvalidArgument: another value is not of its type.
        """
        owner = self._owner(tenant, user)
        require_text(summary=summary, **({} if replaces is None else {"replaces": replaces}))
        require_moment(valid_from=valid_from)
        require_texts(tags=tags)
        if type not in get_args(FactType):
            raise InvalidMessage(f"fact type {type!r} is unknown: use one of {get_args(FactType)}")
        draft = FactDraft(
            summary=_check_summary(summary),
            type=type,
            tags=tuple(tags),
            valid_from=valid_from,
            replaces=replaces,
        )
        for _ in range(TRIES):
            known = await self._store.facts(owner, limit=KNOWN_FACTS)
            changes = merge_facts(
                [draft], known, owner=owner, source=None, made_by="saved", clock=self._clock
            )
            if not changes.facts:
                return await self._the_same(owner, draft)
            saved = await self._store.save_facts(changes)
            if saved is not None:
                self._changed()
                return saved[0]
        raise StoreError(f"the facts of user {user!r} changed {TRIES} times meanwhile: save again")

    async def forget(self, fact_id: str, *, user: str, tenant: str = "default") -> bool:
        """Erase a fact and the earlier ones that it superseded; false if there is none."""
        owner = self._owner(tenant, user)
        require_text(fact_id=fact_id)
        before = await self._store.facts(owner, history=True) if self._vectors else ()
        erased = await self._store.forget_fact(owner, fact_id)
        if self._vectors is not None and erased:
            left = {fact.id for fact in await self._store.facts(owner, history=True)}
            gone = [fact.id for fact in before if fact.id not in left]
            await self._vectors.forget(owner, gone)
        return erased

    async def list(
        self,
        *,
        user: str,
        tenant: str = "default",
        history: bool = False,
        limit: int | None = None,
    ) -> tuple[Fact, ...]:
        """The user's facts, the newest first: those that hold, with *history* superseded ones too."""
        require_count(limit=limit, optional=True)
        return await self._store.facts(self._owner(tenant, user), history=history, limit=limit)

    async def get(self, fact_id: str, *, user: str, tenant: str = "default") -> Fact | None:
        """The user's fact of this id, also one that holds no more."""
        require_text(fact_id=fact_id)
        return await self._store.fact(self._owner(tenant, user), fact_id)

    def _owner(self, tenant: str, user: str) -> Owner:
        self._check_open()
        require_name("tenant", tenant)
        require_name("user", user)
        return Owner(tenant, user)

    async def _the_same(self, owner: Owner, draft: FactDraft) -> Fact:
        """The known fact that says what a draft says."""
        known = await self._store.facts(owner, limit=KNOWN_FACTS)
        for fact in known:
            again = merge_facts(
                [draft], [fact], owner=owner, source=None, made_by="", clock=self._clock
            )
            if again == FactChanges():
                return fact
        raise StoreError(f"the facts of user {owner.user!r} changed meanwhile: save again")


def _check_summary(summary: str) -> str:
    text = " ".join(summary.replace("\0", "").encode(errors="replace").decode().split())
    if not text:
        raise InvalidMessage("the fact is empty: say what is to be remembered")
    if len(text) > LONGEST_SUMMARY:
        raise InvalidMessage(
            f"the fact has {len(text):,} characters, more than {LONGEST_SUMMARY:,}: a fact is a "
            "sentence; keep the rest elsewhere and name it"
        )
    return redact(text)
