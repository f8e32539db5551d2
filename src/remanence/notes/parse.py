"""Parse text into notes; a line in another format becomes the text of a note."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from remanence.notes.marks import (
    ESCAPE,
    INDENT,
    ITEM,
    MARK,
    MARKED_PRIORITIES,
    PRIORITIES,
    date_of,
    is_date_heading,
    labels_of,
    moment,
    take_tag,
    take_was,
    usual_priority,
    without_item_mark,
)
from remanence.types import Note, NoteFormat, Priority, Tag

_STAMPED = re.compile(
    r"\[(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d))?\] (?:(critical|important|note)\b:? )?(.*)",
    re.IGNORECASE | re.DOTALL,
)


def parse_notes(
    text: str, note_format: NoteFormat, *, first_seq: int, last_seq: int
) -> tuple[Note, ...]:
    """Parse the notes in a text, each with the whole range; never fails.

    Times in a text have no offset and are taken as UTC.
    """
    entries = _entries(text)
    base = Note(text="", first_seq=first_seq, last_seq=last_seq)
    match note_format:
        case "compact":
            return tuple(_compact(entries, base))
        case "dated_priority":
            return tuple(_parse_stamp(entry, base) for entry in entries)
        case "tagged" | "prose":
            return tuple(_below_dates(entries, base, tags=note_format == "tagged"))


def _entries(text: str) -> Sequence[str]:
    """Return the lines that are not blank, each with its indented continuation lines."""
    entries: list[str] = []
    for line in text.split("\n"):
        if entries and line.startswith(INDENT):
            entries[-1] += f"\n{line.removeprefix(INDENT)}"
        elif line.strip():
            entries.append(line)
    return entries


def _note(base: Note, text: str, *, tag: Tag = "Fact", priority: Priority = "NOTE") -> Note:
    text, supersedes = take_was(text)
    return replace(base, text=text, tag=tag, priority=priority, supersedes=supersedes)


def _compact(entries: Sequence[str], base: Note) -> Iterator[Note]:
    at: datetime | None = None
    labels = ("", "")
    for index, entry in enumerate(entries):
        if is_date_heading(entry):
            at, labels = date_of(entry), ("", "")
            continue
        followed = index + 1 < len(entries) and ITEM.match(entries[index + 1])
        if followed and not ITEM.match(entry) and (found := labels_of(entry)) is not None:
            labels = found
            continue
        note = _parse_marks(entry[2:] if entry.startswith("- ") else without_item_mark(entry), base)
        yield replace(note, observed_at=at, speaker=labels[0] or None, topic=labels[1] or None)


def _parse_marks(text: str, base: Note) -> Note:
    mark = MARK.match(text)
    tag, text = take_tag(text[mark.end() :] if mark else text)
    priority = MARKED_PRIORITIES[mark[0]] if mark else usual_priority(tag or "Fact")
    return _note(base, text, tag=tag or "Fact", priority=priority)


def _parse_stamp(entry: str, base: Note) -> Note:
    head, _, rest = entry.partition(" ")
    if head in PRIORITIES.values():
        return _note(base, rest, priority=PRIORITIES[head.lower()])
    match = _STAMPED.fullmatch(without_item_mark(entry))
    at = moment(match[1], match[2]) if match else None
    if match is None or at is None:
        return replace(base, text=entry)
    note = _note(base, match[4], priority=PRIORITIES[match[3].lower()] if match[3] else "NOTE")
    return replace(note, observed_at=at)


def _below_dates(entries: Sequence[str], base: Note, *, tags: bool) -> Iterator[Note]:
    at: datetime | None = None
    for entry in entries:
        if is_date_heading(entry):
            at = date_of(entry)
            continue
        tag: Tag | None = None
        if tags:
            tag, text = take_tag(without_item_mark(entry))
        else:
            text = entry.removeprefix(ESCAPE)
        yield replace(_note(base, text, tag=tag or "Fact"), observed_at=at)
