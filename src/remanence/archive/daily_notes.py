"""The text of daily notes, and of the memory file with their summaries.

A memory file is curated by hand. Its first line signs the rest, so that an edit since the last
summary is detected. A line above each summary names its day and source text, so that the summary is
written only once.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from typing import Literal, NamedTuple, TypeAlias

from remanence.dates.local_time import zone_of
from remanence.notes import one_line, render_notes
from remanence.types import Note, NoteFormat

Signature: TypeAlias = Literal["absent", "unsigned", "intact", "edited"]

_SIGNED = re.compile(r"^<!-- remanence: sha256 of the rest is ([0-9a-f]{64}) -->\n", re.MULTILINE)
_MARKER = re.compile(r"^<!-- remanence: summary of \S+, source \S+ -->\n", re.MULTILINE)
_ITEM = re.compile(r"^(?:[-*+]|\d{1,3}[.)])\s+")
_TIME = re.compile(
    r"^((?:[01]?[0-9]|2[0-3]):[0-5][0-9])(?: UTC([+-](?:[01][0-9]|2[0-3])(?::[0-5][0-9]){1,2}))? "
)
"""The time of a line, such as `21:30` or `21:30 UTC-07:00`; `10:00-11:00` may be a period."""
_HEADING = re.compile(r"#{1,6}\s+(.*)")
_MAX_TOPIC = 80


class Read(NamedTuple):
    """A memory file without its signature, and the state of the signature."""

    body: str
    signature: Signature


@dataclass(frozen=True, slots=True, kw_only=True)
class DayNotes:
    """The notes of a day, one per line; `source` is the fingerprint of their text."""

    day: date
    notes: tuple[Note, ...]
    source: str


def entry(text: str, at: datetime) -> str:
    """Format a note as a line of its day's file; its time has the UTC offset, unless it is zero."""
    offset = f" {zone_of(at)}" if at.utcoffset() else ""
    return f"- {at:%H:%M}{offset} {one_line(text)}"


def notes_of_day(text: str, day: date) -> tuple[Note, ...]:
    """Return a note for each non-empty line, numbered by line; headings become topics.

    A note was observed at the time with which its line begins, in UTC without an offset; its text
    keeps the time, but no offset.
    """
    notes: list[Note] = []
    topic: str | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if heading := _HEADING.fullmatch(stripped):
            title = heading[1].strip()
            topic = None if title == day.isoformat() else title[:_MAX_TOPIC] or None
        elif stripped:
            item = _ITEM.sub("", stripped, count=1)
            notes.append(
                Note(
                    text=_TIME.sub(r"\1 ", item),
                    first_seq=number,
                    last_seq=number,
                    observed_at=datetime.combine(day, _time_of(item)),
                    topic=topic,
                )
            )
    return tuple(notes)


def without_time(text: str) -> str:
    """Remove the time at the beginning of a line."""
    return _TIME.sub("", text)


def _time_of(line: str) -> time:
    if (found := _TIME.match(line)) is None:
        return time(12, tzinfo=UTC)  # the same day in nearly all zones
    return time.fromisoformat(found[1].zfill(5) + (found[2] or "+00:00"))


def fingerprint(text: str) -> str:
    """Return a short hash that identifies the source text of a summary."""
    return _digest(text)[:16]


def marker(day: date, source: str) -> str:
    """Return the line above the summary of a day's text *source*."""
    return f"<!-- remanence: summary of {day.isoformat()}, source {source} -->"


def without_markers(body: str) -> str:
    """Remove the lines written by `marker`."""
    return _MARKER.sub("", body)


def summary(day: date, source: str, notes: Sequence[Note], note_format: NoteFormat) -> str:
    """Format the section of a day; its heading has the date, the notes do not."""
    undated = [replace(note, observed_at=None) for note in notes]
    text = render_notes(undated, note_format) or "Nothing to keep."
    return f"{marker(day, source)}\n## {day.isoformat()}\n\n{text}\n"


def read_memory(content: str | None) -> Read:
    """Return the curated text of a memory file, and the state of its signature."""
    if content is None:
        return Read("", "absent")
    signed = _SIGNED.search(content)
    if signed is None:
        return Read(content, "unsigned")
    body = content[: signed.start()] + content[signed.end() :]
    is_intact = signed.start() == 0 and _digest(body) == signed[1]
    return Read(body, "intact" if is_intact else "edited")


def with_section(body: str, section: str) -> str:
    """Return a signed memory file: *body*, byte for byte, with a section at its end."""
    gap = "" if not body or body.endswith("\n\n") else "\n" if body.endswith("\n") else "\n\n"
    whole = f"{body}{gap}{section}"
    return f"<!-- remanence: sha256 of the rest is {_digest(whole)} -->\n{whole}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
