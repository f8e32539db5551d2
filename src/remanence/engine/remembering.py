"""Extracting facts about the user from notes, and which of them a conversation shows."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from remanence import telemetry
from remanence.clock import Clock
from remanence.engine.seeing import seen_messages
from remanence.observing.cache_economics import is_cold
from remanence.observing.facts.merging import merged
from remanence.observing.facts.rendering import facts_text, prefix_marker
from remanence.observing.policy import Policy
from remanence.protocols import CountTokens, ExtractRequest, FactExtractor, Store
from remanence.types import (
    FactChanges,
    FactsPin,
    MemoryState,
    Message,
    Note,
    Owner,
    Segment,
    Snapshot,
)

KNOWN_FACTS = 2_000
SHOWN_FACTS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembering:
    """Makes facts of a conversation's notes. Holds no state of its own."""

    store: Store
    policy: Policy
    extractor: FactExtractor
    clock: Clock

    async def remember(self, snapshot: Snapshot, end: int) -> bool:
        """Extract and commit the facts of the next messages up to *end*; false if another was first."""
        state = snapshot.state
        messages = await self.store.messages(
            state.ref,
            after=state.facts_seq,
            limit=end - state.facts_seq,
            max_tokens=self.policy.observe_max_tokens,
        )
        if not messages:
            return False
        last_seq = messages[-1].seq
        changes = FactChanges()
        if seen := await seen_messages(messages):
            notes = tuple(_notes(snapshot.segments, after=state.facts_seq, last_seq=last_seq))
            changes = await self._changes(state, seen, notes)
        committed = await self.store.commit_facts(
            state, changes, facts_seq=last_seq, at=self.clock.now()
        )
        if committed is not None:
            telemetry.facts_committed(state.ref.id, len(changes.facts), len(changes.replaced))
        return committed is not None

    async def _changes(
        self, state: MemoryState, messages: tuple[Message, ...], notes: tuple[Note, ...]
    ) -> FactChanges:
        assert state.user is not None
        owner = Owner(state.ref.tenant, state.user)
        known = await self.store.facts(owner, limit=KNOWN_FACTS)
        request = ExtractRequest(
            conversation=state.ref,
            user=owner.user,
            messages=messages,
            notes=notes,
            known=known,
            now=self.clock.now(),
        )
        async with asyncio.timeout(self.policy.observe_timeout_seconds):
            drafts = await self.extractor.extract(request)
        # Comparing with thousands of facts takes a while: the event loop goes on meanwhile.
        return await asyncio.to_thread(
            merged,
            drafts,
            known,
            owner=owner,
            source=state.ref,
            made_by=self.extractor.name,
            clock=self.clock,
        )


async def shown_facts(
    store: Store,
    policy: Policy,
    snapshot: Snapshot,
    owner: Owner,
    *,
    now: datetime,
    count_text: CountTokens,
) -> str:
    """The block of facts for a context: the same bytes until the prefix changes anyway.

    It is chosen anew when what a context shows of the notes has changed, and when the prompt cache
    is cold.
    """
    state = snapshot.state
    marker, pin = prefix_marker(state, snapshot.segments), snapshot.facts
    same = pin is not None and pin.marker == marker
    if (
        pin
        and same
        and not is_cold(
            snapshot.tail, lifetime=policy.cache_lifetime_seconds, now=now, warmed_at=pin.at
        )
    ):
        return pin.text
    facts = await store.facts(owner, limit=SHOWN_FACTS)
    text = facts_text(
        facts,
        conversation=state.ref.id,
        max_tokens=policy.facts_budget,
        count_text=count_text,
    )
    if state.key:  # before its first message a conversation has nothing to hold a pin
        await store.pin_facts(state, owner, FactsPin(marker=marker, text=text, at=now))
    return text


def _notes(segments: Sequence[Segment], *, after: int, last_seq: int) -> Iterator[Note]:
    """The notes whose messages end in the range."""
    for segment in segments:
        if segment.last_seq > after and segment.first_seq <= last_seq:
            yield from (note for note in segment.notes if after < note.last_seq <= last_seq)
