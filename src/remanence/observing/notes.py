"""Notes as text: four formats, each of which parses back to what it shows.

`compact` writes a date once for the notes below it, a speaker and topic once for theirs, a tag
unless it is Fact, and a priority (`!!` CRITICAL, `!` IMPORTANT, `~` NOTE) only where it is not the
usual one of its tag::

    2023-05-08
    Ana / move:
    - signed lease 2023-05-07
    - [Decision] movers on Friday 2023-05-12 (was: Thursday)

`dated_priority` writes `[2023-05-08 13:56] CRITICAL Ana: text`, `tagged` writes `[Decision] Ana:
text` below date headings, `prose` writes `Ana: text` below date headings.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, get_args

from remanence.types import Note, NoteFormat, Priority, Tag

_UNDATED = "undated"
_MAX_HEADING = 80
_MARKS: dict[Priority, str] = {"CRITICAL": "!! ", "IMPORTANT": "! ", "NOTE": "~ "}
_MARKED: dict[str, Priority] = {mark: name for name, mark in _MARKS.items()}
_PRIORITIES: dict[str, Priority] = {name.lower(): name for name in get_args(Priority)}
_TAGS: dict[str, Tag] = {name.lower(): name for name in get_args(Tag)}
_TAG_NAMES = "|".join(_TAGS)

_DATE_LINE = re.compile(
    r"(?:#+ |\*\*)?(?:date: )?(\d{4}-\d\d-\d\d)(?: \(\w{2,9}\))?:?(?:\*\*)?", re.IGNORECASE
)
_MARK = re.compile(r"(?:!!?|~) ")
_TAG = re.compile(rf"\[({_TAG_NAMES})\] ", re.IGNORECASE)
_WAS = re.compile(r"(.*) \(was: (.*)\)", re.DOTALL)
_STAMPED = re.compile(
    r"\[(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d))?\] (?:(critical|important|note)\b:? )?(.*)",
    re.IGNORECASE | re.DOTALL,
)
_ITEM = re.compile(r"\s*(?:[-*•]|\d{1,3}[.)]) ")


def one_line(text: str) -> str:
    """The text on one line, as a note's text must be: runs of white space become a space."""
    return " ".join(text.split())


def usual_priority(tag: Tag) -> Priority:
    """The priority that `compact` does not write beside a tag."""
    return "NOTE" if tag in ("Fact", "NextStep") else "IMPORTANT"


def render_notes(notes: Sequence[Note], note_format: NoteFormat) -> str:
    """The notes in their order as text; the bytes of a note's own text are never altered."""
    match note_format:
        case "compact":
            return "\n".join(_compact(notes))
        case "dated_priority":
            return "\n".join(_stamped(note) for note in notes)
        case "tagged":
            return "\n".join(_below_dates(notes, tags=True))
        case "prose":
            return "\n".join(_below_dates(notes, tags=False))


def parse_notes(
    text: str, note_format: NoteFormat, *, first_seq: int, last_seq: int
) -> tuple[Note, ...]:
    """The notes that a text shows, each given the whole range; never fails.

    A line that is not in the format is kept as the text of a note.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    base = Note(text="", first_seq=first_seq, last_seq=last_seq)
    match note_format:
        case "compact":
            return tuple(_parse_compact(lines, base))
        case "dated_priority":
            return tuple(_parse_stamped(line, base) for line in lines)
        case "tagged":
            return tuple(_parse_below_dates(lines, base, tags=True))
        case "prose":
            return tuple(_parse_below_dates(lines, base, tags=False))


class _Group(NamedTuple):
    """What notes below one heading share."""

    speaker: str | None
    topic: str | None


def _compact(notes: Iterable[Note]) -> Iterator[str]:
    day = _UNDATED
    group = _Group(None, None)
    for note in notes:
        if (today := _day(note)) != day:
            yield today
            day, group = today, _Group(None, None)
        mine = _Group(note.speaker or None, note.topic or None)
        if mine != group:
            yield _group_heading(mine)
            group = mine
        yield f"- {_marks(note)}{note.text}{_was(note)}"


def _day(note: Note) -> str:
    return note.observed_at.date().isoformat() if note.observed_at else _UNDATED


def _group_heading(group: _Group) -> str:
    if group.topic is not None:
        return f"{group.speaker or ''} / {group.topic}:"
    speaker = group.speaker or ""
    return f"{speaker} / :" if " / " in speaker else f"{speaker}:"


def _marks(note: Note) -> str:
    mark = "" if note.priority == usual_priority(note.tag) else _MARKS[note.priority]
    looks_marked = bool(_MARK.match(note.text) or _TAG.match(note.text))
    return f"{mark}[{note.tag}] " if note.tag != "Fact" or looks_marked else mark


def _was(note: Note) -> str:
    if note.supersedes:
        return f" (was: {note.supersedes})"
    return " (was: )" if _WAS.fullmatch(note.text) else ""


def _stamped(note: Note) -> str:
    stamp = note.observed_at.strftime("%Y-%m-%d %H:%M") if note.observed_at else None
    head = f"[{stamp}] {note.priority} " if stamp else f"{note.priority} "
    return f"{head}{_said(note)}{_was(note)}"


def _said(note: Note) -> str:
    return f"{note.speaker}: {note.text}" if note.speaker else note.text


def _below_dates(notes: Iterable[Note], *, tags: bool) -> Iterator[str]:
    day = _UNDATED
    for note in notes:
        if (today := _day(note)) != day:
            yield today
            day = today
        yield f"{f'[{note.tag}] ' if tags else ''}{_said(note)}{_was(note)}"


def _parse_compact(lines: Sequence[str], base: Note) -> Iterator[Note]:
    at: datetime | None = None
    group = _Group(None, None)
    for index, line in enumerate(lines):
        day = _date_of(line)
        if day is not None or line == _UNDATED:
            at, group = day, _Group(None, None)
            continue
        followed = index + 1 < len(lines) and _ITEM.match(lines[index + 1])
        if followed and not _ITEM.match(line) and (found := _group_of(line)) is not None:
            group = found
            continue
        yield _note(line, base, at, group)


def _date_of(line: str) -> datetime | None:
    match = _DATE_LINE.fullmatch(line.strip())
    return _moment(match[1], None) if match else None


def _group_of(line: str) -> _Group | None:
    if not line.endswith(":") or len(line) > _MAX_HEADING:
        return None
    speaker, separator, topic = line[:-1].rpartition(" / ")
    if not separator:
        return _Group(topic or None, None)
    return _Group(speaker or None, topic or None)


def _note(line: str, base: Note, at: datetime | None, group: _Group) -> Note:
    text = line[2:] if line.startswith("- ") else _ITEM.sub("", line, count=1)
    mark = _MARK.match(text)
    tag, text = _take_tag(text[mark.end() :] if mark else text)
    priority = _MARKED[mark[0]] if mark else usual_priority(tag)
    text, supersedes = _take_was(text)
    return _with(base, text, at, priority, tag, supersedes, group)


def _take_tag(text: str) -> tuple[Tag, str]:
    match = _TAG.match(text)
    return (_TAGS[match[1].lower()], text[match.end() :]) if match else ("Fact", text)


def _take_was(text: str) -> tuple[str, str | None]:
    match = _WAS.fullmatch(text)
    return (match[1], match[2] or None) if match else (text, None)


def _with(
    base: Note,
    text: str,
    at: datetime | None,
    priority: Priority,
    tag: Tag,
    supersedes: str | None,
    group: _Group,
) -> Note:
    return Note(
        text=text,
        first_seq=base.first_seq,
        last_seq=base.last_seq,
        observed_at=at,
        priority=priority,
        tag=tag,
        speaker=group.speaker,
        topic=group.topic,
        supersedes=supersedes,
    )


def _parse_stamped(line: str, base: Note) -> Note:
    head, _, rest = line.partition(" ")
    nobody = _Group(None, None)
    if head in _MARKS:
        text, supersedes = _take_was(rest)
        return _with(base, text, None, _PRIORITIES[head.lower()], "Fact", supersedes, nobody)
    match = _STAMPED.fullmatch(_ITEM.sub("", line, count=1))
    at = _moment(match[1], match[2]) if match else None
    if match is None or at is None:
        return _with(base, line, None, "NOTE", "Fact", None, nobody)
    text, supersedes = _take_was(match[4])
    priority = _PRIORITIES[match[3].lower()] if match[3] else "NOTE"
    return _with(base, text, at, priority, "Fact", supersedes, nobody)


def _moment(day: str, time: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(f"{day}T{time or '00:00'}").replace(tzinfo=UTC)
    except ValueError:
        return None


def _parse_below_dates(lines: Sequence[str], base: Note, *, tags: bool) -> Iterator[Note]:
    at: datetime | None = None
    for line in lines:
        day = _date_of(line)
        if day is not None or line == _UNDATED:
            at = day
            continue
        tag, text = _take_tag(_ITEM.sub("", line, count=1)) if tags else ("Fact", line)
        text, supersedes = _take_was(text)
        yield _with(base, text, at, "NOTE", tag, supersedes, _Group(None, None))
