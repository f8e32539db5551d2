"""Saving the facts of a day's notes."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, time

from remanence.archive.daily_notes import DayNotes
from remanence.errors import StoreError
from remanence.facts.extraction import Extraction
from remanence.protocols import CountTokens
from remanence.types import ConversationRef, Message, Note, Owner

TRIES = 5
_TIMED = re.compile(r"(\d\d:\d\d) (.+)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class DayFacts:
    """Extracts the facts of a day's notes; each names its day and line as source.

    All facts of a text are saved in one transaction; after that it is not read again.
    """

    extraction: Extraction
    count_text: CountTokens
    changed: Callable[[], None]

    async def __call__(self, day: DayNotes, *, user: str, tenant: str) -> int:
        """Save the facts and return how many are new."""
        if not self.extraction.policy.extract_facts:
            return 0
        owner = Owner(tenant, user)
        source = ConversationRef(tenant, f"daily notes {day.day.isoformat()} {day.source}")
        for _ in range(TRIES):
            history = await self.extraction.store.facts(owner, history=True)
            if any(fact.conversation == source.id for fact in history):
                return 0
            kept = await self._keep(day, owner, source)
            if kept is not None:
                return kept
        raise StoreError(
            f"the facts of user {user!r} changed {TRIES} times meanwhile: consolidate again"
        )

    async def _keep(self, day: DayNotes, owner: Owner, source: ConversationRef) -> int | None:
        """Return how many facts are new; None if others changed the facts meanwhile."""
        messages = tuple(self._messages(day))
        changes = await self.extraction.changes(owner, source, messages=messages, notes=day.notes)
        if not changes.facts:
            return 0
        saved = await self.extraction.store.save_facts(changes)
        if saved is None:
            return None
        self.changed()
        return len(saved)

    def _messages(self, day: DayNotes) -> Iterator[Message]:
        """Yield each line as a message of its user, at the time that it begins with."""
        for note in day.notes:
            text, at = _with_time(note)
            tokens = self.count_text(text)
            yield Message.user(text).replace(seq=note.first_seq, created_at=at, tokens=tokens)


def _with_time(note: Note) -> tuple[str, datetime | None]:
    found = _TIMED.fullmatch(note.text)
    if found is None or note.observed_at is None:
        return note.text, note.observed_at
    try:
        at = time.fromisoformat(found[1])
    except ValueError:  # such as 27:80
        return note.text, note.observed_at
    return found[2], note.observed_at.replace(hour=at.hour, minute=at.minute)
