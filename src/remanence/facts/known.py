"""The known facts of users, with which new ones are merged."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from weakref import WeakValueDictionary

from remanence.clock import Clock
from remanence.facts.merge import merge_facts, needs_past
from remanence.facts.requests import content_of
from remanence.protocols import Store
from remanence.types import ConversationRef, Fact, FactChanges, FactDraft, Owner

KNOWN_FACTS = 2_000
"""The number of an owner's newest facts that new ones are compared with, and of older ones that share
words with a request to forget."""

RELATED_FACTS = 100
"""The number of older facts that share words with a new one and are compared with it."""

TRIES = 20
"""Attempts to save facts while others save facts of the same owner; each fails only if another wins."""

_APOSTROPHES = str.maketrans("'’", "  ")
"""The index has both words of "l'asthme"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFacts:
    """Compares new facts with those of a store; stateless but for its locks."""

    store: Store
    clock: Clock
    # One lock per owner and maker of facts: of merges at once all but one are in vain, but a save does
    # not wait for an extraction.
    _locks: WeakValueDictionary[tuple[Owner, str], asyncio.Lock] = field(
        default_factory=WeakValueDictionary, init=False
    )

    def lock(self, owner: Owner, made_by: str) -> asyncio.Lock:
        """Return the lock of an owner's facts of a maker, held from a merge until its changes are saved."""
        return self._locks.setdefault((owner, made_by), asyncio.Lock())

    async def find(self, owner: Owner, drafts: Sequence[FactDraft]) -> tuple[Fact, ...]:
        """Return the newest facts, and behind them older ones that share words with the drafts."""
        known = await self.store.facts(owner, limit=KNOWN_FACTS)
        if len(known) < KNOWN_FACTS:
            return known
        newest, older = {fact.id for fact in known}, set[Fact]()
        for draft in drafts:
            said = draft.summary.translate(_APOSTROPHES)
            words = " ".join(sorted(content_of(said)))
            limit = KNOWN_FACTS if draft.forgets else RELATED_FACTS
            older.update(
                await self.store.search_facts(
                    owner, words, limit=limit, only=lambda fact: fact.id not in newest
                )
            )
        return (*known, *sorted(older, key=attrgetter("id"), reverse=True))

    async def merge(
        self,
        drafts: Sequence[FactDraft],
        owner: Owner,
        source: ConversationRef | None,
        *,
        made_by: str,
        known: Sequence[Fact] | None = None,
    ) -> FactChanges:
        """Run `merge_facts` with *known*, by default those of `find`, in a thread as it takes long."""
        if known is None:
            known = await self.find(owner, drafts)
        newest = await self.store.facts(owner, history=True, limit=1)
        past: Sequence[Fact] = ()
        if needs_past(drafts, now=self.clock.now()):
            past = await self.store.facts(owner, history=True, limit=KNOWN_FACTS)
        merge = partial(merge_facts, owner=owner, source=source, made_by=made_by, clock=self.clock)
        changes = await asyncio.to_thread(merge, drafts, known, past=past)
        if changes.newest is None:
            return changes
        # A fact that was outdated when it was said is never among the known ones.
        return replace(changes, newest_ever="".join(fact.id for fact in newest))
