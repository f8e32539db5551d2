"""Extract facts from messages and merge them with the known ones."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from remanence.clock import Clock
from remanence.facts.merge import merge_facts
from remanence.policy.policy import Policy
from remanence.protocols import ExtractRequest, FactExtractor, Store
from remanence.types import ConversationRef, FactChanges, Message, Note, Owner

KNOWN_FACTS = 2_000
"""The number of an owner's facts that new ones are compared with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """Runs an extractor and compares its facts with the known ones; stateless."""

    store: Store
    policy: Policy
    extractor: FactExtractor
    clock: Clock

    async def changes(
        self,
        owner: Owner,
        source: ConversationRef,
        *,
        messages: Sequence[Message],
        notes: Sequence[Note],
    ) -> FactChanges:
        """Return the new facts in the messages, and the known ones that they replace."""
        known = await self.store.facts(owner, limit=KNOWN_FACTS)
        request = ExtractRequest(
            conversation=source,
            user=owner.user,
            messages=tuple(messages),
            notes=tuple(notes),
            known=known,
            now=self.clock.now(),
        )
        async with asyncio.timeout(self.policy.observe_timeout_seconds):
            drafts = await self.extractor.extract(request)
        # Comparing with thousands of facts would block the event loop.
        return await asyncio.to_thread(
            merge_facts,
            drafts,
            known,
            owner=owner,
            source=source,
            made_by=self.extractor.name,
            clock=self.clock,
        )
