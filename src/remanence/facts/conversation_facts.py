"""Extract facts about the user from a conversation, and choose those that its context shows."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import datetime
from typing import TypeAlias

from remanence import telemetry
from remanence.facts.extraction import Extraction
from remanence.facts.render import facts_text, prefix_marker, render_curated
from remanence.policy.cache_economics import is_cold
from remanence.policy.policy import Policy
from remanence.protocols import CountTokens, Store
from remanence.stores.optional import write_if_possible
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

SHOWN_FACTS = 1_000
EXTRACT_TOKENS = 8_000
"""Tokens of messages per extraction, if the policy does not set `observe_max_tokens`."""


Visible: TypeAlias = Callable[[MemoryState, Sequence[Message]], Awaitable[Sequence[Message]]]


async def extract_facts(
    extraction: Extraction, snapshot: Snapshot, end: int, visible: Visible
) -> bool:
    """Extract and commit the facts of the next messages of a conversation, up to *end*.

    The extractor sees of them what *visible* returns.
    Returns False if there are no messages, or if another worker committed first.
    """
    state, store = snapshot.state, extraction.store
    messages = await store.messages(
        state.ref,
        after=state.facts_seq,
        limit=end - state.facts_seq,
        max_tokens=extraction.policy.observe_max_tokens or EXTRACT_TOKENS,
    )
    if not messages:
        return False
    last_seq = messages[-1].seq
    changes = FactChanges()
    owner = owner_of(state)
    if owner is not None and (seen := await visible(state, messages)):
        notes = tuple(_notes(snapshot.segments, after=state.facts_seq, last_seq=last_seq))
        changes = await extraction.changes(owner, state.ref, messages=seen, notes=notes)
    committed = await store.commit_facts(
        state, changes, facts_seq=last_seq, at=extraction.clock.now()
    )
    if committed is not None:
        telemetry.facts_committed(state.ref.id, len(changes.facts), len(changes.replaced))
    return committed is not None


def owner_of(state: MemoryState) -> Owner | None:
    """Return the owner of the facts that a conversation may see; None if its tape has no user."""
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
    """Return the block of facts for a context; its bytes stay the same while the prefix does.

    The facts are chosen anew when the reflections of the context have changed or the prompt cache
    is cold. The text from *curated*, which the user maintains by hand, precedes the facts.
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
    if state.key:  # a conversation without messages has no row to pin to
        pin = FactsPin(marker=marker, text=text, at=now)
        await write_if_possible(store.pin_facts(state, owner, pin))
    return text


def _notes(segments: Sequence[Segment], *, after: int, last_seq: int) -> Iterator[Note]:
    """Yield the notes whose last message is in the range."""
    for segment in segments:
        if segment.last_seq > after and segment.first_seq <= last_seq:
            yield from (note for note in segment.notes if after < note.last_seq <= last_seq)
