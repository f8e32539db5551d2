"""Notes as the data of a request: one line each, under headings for days and topics."""

from collections.abc import Iterable, Iterator, Sequence

from remanence.notes import one_line
from remanence.notes.redact import redact
from remanence.observers.llm.lines import format_line
from remanence.observers.llm.order import by_topic
from remanence.observers.llm.prompt import Entry
from remanence.observers.llm.time_headings import TimedEntry, below_days
from remanence.types import Note

NO_TOPIC = "other"
"""Heading for lines without a topic that follow those of one."""


def note_entries(notes: Sequence[Note]) -> tuple[Entry, ...]:
    """Return the notes by day and topic, without secrets."""
    return tuple(below_days(_with_times(by_topic(notes))))


def _with_times(notes: Iterable[Note]) -> Iterator[TimedEntry]:
    day, topic = "", ""
    for note in notes:
        today = note.observed_at.date().isoformat() if note.observed_at else day
        if today != day:
            day, topic = today, ""
        if (mine := one_line(note.topic or "")) != topic:
            topic = mine
            yield TimedEntry(note.observed_at, Entry(f"## {redact(topic) or NO_TOPIC}", ""))
        yield TimedEntry(note.observed_at, Entry("", redact(format_line(note))))
