"""Saving the facts of a day's notes."""

from collections.abc import Callable
from dataclasses import dataclass

from remanence.archive.daily_notes import DayNotes, without_time
from remanence.errors import StoreError
from remanence.facts.extraction import Extraction
from remanence.facts.known import TRIES
from remanence.protocols import CountTokens
from remanence.types import ConversationRef, Message, Note, Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class DayFacts:
    """Extracts facts from a day's notes; each names its day and line as its source.

    All facts of a text are saved in one transaction, after which the text is not read again.
    """

    extraction: Extraction
    count_text: CountTokens
    changed: Callable[[], None]

    async def __call__(self, day: DayNotes, owner: Owner) -> int:
        """Save the facts, and return the number of new ones."""
        if not self.extraction.policy.extract_facts:
            return 0
        source = ConversationRef(owner.tenant, f"daily notes {day.day.isoformat()} {day.source}")
        messages = tuple(self._message(note) for note in day.notes)
        store, drafts = self.extraction.store, None
        for _ in range(TRIES):
            history = await store.facts(owner, history=True)
            if any(fact.conversation == source.id for fact in history):
                return 0
            if drafts is None:
                drafts = await self.extraction.draft(
                    owner, source, messages=messages, notes=day.notes
                )
            saved = await store.save_facts(await self.extraction.merge(drafts, owner, source))
            if saved is not None:
                self.changed()
                return len(saved)
        raise StoreError(
            f"the facts of user {owner.user!r} changed {TRIES} times meanwhile: consolidate again"
        )

    def _message(self, note: Note) -> Message:
        """Return a line as a user message, without the time with which it begins."""
        message = Message.user(without_time(note.text))
        return message.replace(
            seq=note.first_seq,
            created_at=note.observed_at,
            tokens=self.count_text(message.text),
        )
