"""Which facts about the user a conversation gives, and which of them it shows."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from remanence import telemetry
from remanence.facts.extraction import Extraction
from remanence.facts.render import facts_text, prefix_marker, render_curated
from remanence.observers.observation_input import observable_messages
from remanence.policy.cache_economics import is_cold
from remanence.policy.policy import Policy
from remanence.protocols import CountTokens, Store
from remanence.stores.optional import write_if_possible
from remanence.types import FactChanges, FactsPin, MemoryState, Note, Owner, Segment, Snapshot

SHOWN_FACTS = 1_000
EXTRACT_TOKENS = 8_000
"""Messages of one extraction, where the policy names no size of an observation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationFacts:
    """Makes facts of a conversation's messages. Holds no state of its own."""

    extraction: Extraction

    async def remember(self, snapshot: Snapshot, end: int) -> bool:
        """Extract and commit the facts of the next messages up to *end*; false if another was first."""
        state, store = snapshot.state, self.extraction.store
        messages = await store.messages(
            state.ref,
            after=state.facts_seq,
            limit=end - state.facts_seq,
            max_tokens=self.extraction.policy.observe_max_tokens or EXTRACT_TOKENS,
        )
        if not messages:
            return False
        last_seq = messages[-1].seq
        changes = FactChanges()
        seen, owner = await observable_messages(messages), owner_of(state)
        if seen and owner is not None:
            notes = tuple(_notes(snapshot.segments, after=state.facts_seq, last_seq=last_seq))
            changes = await self.extraction.changes(owner, state.ref, messages=seen, notes=notes)
        committed = await store.commit_facts(
            state, changes, facts_seq=last_seq, at=self.extraction.clock.now()
        )
        if committed is not None:
            telemetry.facts_committed(state.ref.id, len(changes.facts), len(changes.replaced))
        return committed is not None


def owner_of(state: MemoryState) -> Owner | None:
    """Whose facts a conversation may see: those of the user that its tape names."""
    return Owner(state.ref.tenant, state.user) if state.user else None


async def facts_block(
    store: Store,
    policy: Policy,
    snapshot: Snapshot,
    owner: Owner,
    *,
    now: datetime,
    count_text: CountTokens,
    curated: Callable[[], Awaitable[str]],
) -> str:
    """The block of facts for a context: the same bytes until the prefix changes anyway.

    It is chosen anew when what a context shows of the notes has changed, and when the prompt cache
    is cold. What *curated* gives, a text that the user keeps by hand, stands before the facts.
    """
    state = snapshot.state
    marker, pin = prefix_marker(state, snapshot.segments), snapshot.facts
    if pin is not None and pin.marker == marker:
        lifetime = policy.cache_lifetime_seconds
        if not is_cold(snapshot.tail, lifetime=lifetime, now=now, warmed_at=pin.at):
            return pin.text
    facts = await store.facts(owner, limit=SHOWN_FACTS)
    by_hand = render_curated(
        await curated(), max_tokens=policy.facts_budget // 2, count_text=count_text
    )
    known = facts_text(
        facts,
        conversation=state.ref.id,
        max_tokens=policy.facts_budget - count_text(by_hand),
        count_text=count_text,
    )
    text = "\n\n".join(text for text in (by_hand, known) if text)
    if state.key:  # before its first message a conversation has nothing to hold a pin
        pin = FactsPin(marker=marker, text=text, at=now)
        await write_if_possible(store.pin_facts(state, owner, pin))
    return text


def _notes(segments: Sequence[Segment], *, after: int, last_seq: int) -> Iterator[Note]:
    """The notes whose messages end in the range."""
    for segment in segments:
        if segment.last_seq > after and segment.first_seq <= last_seq:
            yield from (note for note in segment.notes if after < note.last_seq <= last_seq)
