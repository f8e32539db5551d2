"""Render notes as text.

`compact` writes each date, and each speaker and topic, once as a heading. It writes a tag unless it
is Fact, and a priority (`!!` CRITICAL, `!` IMPORTANT, `~` NOTE) unless it is the default of its
tag::

    2023-05-08
    Ana / move:
    - signed lease 2023-05-07
    - [Decision] movers on Friday 2023-05-12 (was: Thursday)

`dated_priority` writes `[2023-05-08 13:56] CRITICAL Ana / move: text`, `tagged` writes `[Decision]
Ana / move: text` below date headings, `prose` writes `Ana / move: text` below date headings.
"""

from collections.abc import Iterable, Iterator, Sequence

from remanence.notes.marks import (
    ESCAPE,
    INDENT,
    MARK,
    PRIORITY_MARKS,
    UNDATED,
    day_of,
    is_date_heading,
    label_heading,
    one_line,
    take_tag,
    usual_priority,
    with_was,
)
from remanence.types import Note, NoteFormat


def render_notes(notes: Sequence[Note], note_format: NoteFormat) -> str:
    """Render the notes in the given order; the bytes of each line of a note stay the same."""
    match note_format:
        case "compact":
            return "\n".join(_compact(notes))
        case "dated_priority":
            return "\n".join(_indent(_stamp(note)) for note in notes)
        case "tagged":
            return "\n".join(_below_dates(notes, tags=True))
        case "prose":
            return "\n".join(_below_dates(notes, tags=False))


def _compact(notes: Iterable[Note]) -> Iterator[str]:
    day, labels = UNDATED, ("", "")
    for note in notes:
        if (today := day_of(note.observed_at) or UNDATED) != day:
            yield today
            day, labels = today, ("", "")
        mine = (one_line(note.speaker or ""), one_line(note.topic or ""))
        if mine != labels:
            yield label_heading(*mine)
            labels = mine
        text = with_was(note.text, note.supersedes)
        yield _indent(f"- {_marks(note, text)}{text}")


def _marks(note: Note, text: str) -> str:
    mark = "" if note.priority == usual_priority(note.tag) else PRIORITY_MARKS[note.priority]
    looks_marked = bool(MARK.match(text)) or take_tag(text)[0] is not None
    return f"{mark}[{note.tag}] " if note.tag != "Fact" or looks_marked else mark


def _stamp(note: Note) -> str:
    at = note.observed_at
    stamp = f"[{day_of(at)} {at:%H:%M}] " if at else ""
    return f"{stamp}{note.priority} {_attribute(note)}"


def _attribute(note: Note) -> str:
    """Return the text of a note with its speaker and topic before it and the earlier value after."""
    labels = [one_line(label) for label in (note.speaker, note.topic) if label]
    who = f"{' / '.join(labels)}: " if labels else ""
    return with_was(f"{who}{note.text}", note.supersedes)


def _below_dates(notes: Iterable[Note], *, tags: bool) -> Iterator[str]:
    day = UNDATED
    for note in notes:
        if (today := day_of(note.observed_at) or UNDATED) != day:
            yield today
            day = today
        entry = _attribute(note)
        yield _indent(f"[{note.tag}] {entry}" if tags else _escape(entry))


def _escape(entry: str) -> str:
    """Escape an entry whose first line would be skipped or misread."""
    first = entry.partition("\n")[0]
    ambiguous = not first.strip() or first.startswith((ESCAPE, INDENT)) or is_date_heading(first)
    return f"{ESCAPE}{entry}" if ambiguous else entry


def _indent(entry: str) -> str:
    return entry.replace("\n", f"\n{INDENT}")
