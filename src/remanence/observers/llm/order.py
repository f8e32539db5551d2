"""Order a model's notes and group them under shared headings."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from remanence.types import Note, NoteFormat

MAX_TOPICS = 5
"""More headings than this cost more tokens than they are worth."""

MIN_LINES = 2
"""A single line needs no heading."""

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


def by_topic(notes: Sequence[Note]) -> tuple[Note, ...]:
    """Return the notes sorted by day, then by topic, then by message."""
    headed = _with_few_topics(notes)
    topics = _places(note.topic for note in headed)
    return tuple(sorted(headed, key=lambda note: (_day(note), topics[note.topic], note.first_seq)))


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
    return note.observed_at.date().isoformat() if note.observed_at else ""
