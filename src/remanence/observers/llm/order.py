"""Order notes and group them under shared headings, for a segment or as data of a request."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from remanence.notes import day_of, one_line
from remanence.notes.redact import redact
from remanence.observers.llm.lines import format_line
from remanence.observers.llm.prompt import Entry, day_heading
from remanence.types import Note, NoteFormat

MAX_TOPICS = 5
"""More headings than this cost more tokens than they are worth."""

MIN_LINES = 2
"""A single line needs no heading."""

NO_TOPIC = "other"
"""Heading for lines without a topic that follow those of one."""

_EARLIEST = datetime.min.replace(tzinfo=UTC)


def arrange(notes: Sequence[Note], note_format: NoteFormat) -> tuple[Note, ...]:
    """Return the notes sorted by day, and grouped within a day if the format has headings.

    Only the topics with the most lines are kept. Lines without a heading come first, because
    nothing could end the group before them.
    """
    if note_format != "compact":
        return tuple(sorted(notes, key=lambda note: note.observed_at or _EARLIEST))
    headed = _with_few_topics(notes)
    topics = _places(note.topic for note in headed)
    speakers = _places(note.speaker for note in headed)
    return tuple(
        sorted(headed, key=lambda note: (_day(note), topics[note.topic], speakers[note.speaker]))
    )


def note_entries(notes: Sequence[Note]) -> tuple[Entry, ...]:
    """Return the notes by day, topic and message as data, a line each, without secrets."""
    headed = _with_few_topics(notes)
    topics = _places(note.topic for note in headed)
    headed.sort(key=lambda note: (_day(note), topics[note.topic], note.first_seq))
    return tuple(_with_headings(headed))


def _with_headings(notes: Iterable[Note]) -> Iterator[Entry]:
    day, topic = "", ""
    for note in notes:
        at = note.observed_at
        if at is not None and (today := day_heading(at)) != day:
            day, topic = today, ""
            yield Entry(day, "")
        if (mine := one_line(note.topic or "")) != topic:
            topic = mine
            yield Entry(f"## {redact(topic) or NO_TOPIC}", "")
        yield Entry("", redact(format_line(note)))


def _with_few_topics(notes: Sequence[Note]) -> list[Note]:
    lines = Counter((_day(note), note.topic) for note in notes if note.topic)
    sizes = Counter[str]()
    for (_, topic), count in lines.items():
        sizes[topic or ""] += count if count >= MIN_LINES else 0
    kept = {topic for topic, count in sizes.most_common(MAX_TOPICS) if count}
    return [
        note
        if note.topic is None or (note.topic in kept and lines[_day(note), note.topic] >= MIN_LINES)
        else replace(note, topic=None)
        for note in notes
    ]


def _places(labels: Iterable[str | None]) -> dict[str | None, int]:
    """Map each label to the order of its first use; None comes first."""
    return {label: place for place, label in enumerate(dict.fromkeys((None, *labels)))}


def _day(note: Note) -> str:
    return day_of(note.observed_at)
