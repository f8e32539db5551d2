"""The facts that the contexts of a conversation show."""

from collections.abc import Awaitable, Callable
from datetime import datetime

from remanence.facts.render import facts_text, prefix_marker, render_curated
from remanence.policy.cache_economics import is_cold
from remanence.policy.policy import Policy
from remanence.protocols import CountTokens, Store
from remanence.stores.optional import write_if_possible
from remanence.types import FactsPin, Owner, Snapshot

SHOWN_FACTS = 1_000


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
