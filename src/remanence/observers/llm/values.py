"""Compare the exact values of a source and its notes: find missing and invented ones."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from remanence.notes.excerpts import beginning, ending, parts
from remanence.notes.literals import Literal, LossReport, find_literals
from remanence.notes.redact import MARK
from remanence.observers.llm.lines import Origin, line_text
from remanence.observers.llm.prompt import Entry, below_times
from remanence.types import DroppedLine, Note

MIN_DIGITS = 3
"""Shorter numbers may be counts ("three runs" becomes "3 runs"); longer ones need a source."""

PASSAGE_CHARACTERS = 160
SLICE_CHARACTERS = 1_000
"""A scan does not release the GIL, so a long text is scanned in slices."""

_KINDS = frozenset({"id", "path", "url", "number"})
_YEARS = re.compile(r"(?:19|20)[0-9]{2}")
_MEASURE = re.compile(
    r"[0-9]+(?:-[a-z]+)+|[a-z]+(?:-[a-z]+)*-[0-9]{1,4}|[0-9]{1,2}[ap]m|[0-9]{2,4}s"
)
"""Ages, times and the like, such as `3-year-old` and `10am`, which look like ids."""

_AMOUNT = re.compile(r"[€$£¥₩%]|[0-9][.,][0-9]")
_PRODUCT = re.compile(r"[A-Z]\w*\.(?:js|io|ai|net)")
"""Names such as Node.js, which look like file names."""

_NO_CENTS = re.compile(r"[.,]0{1,2}$")
_OPTIONAL = re.compile(r"^(?:https?://(?:www\.)?|www\.)")
"""The beginning of a web address that people leave out."""

_NOT_WORDS = re.compile(r"[\W_]+")


class Piece(NamedTuple):
    """A part of the source: its text, its time, who said it, and the entry that shows it.

    `values_required` is false for parts whose values need not be noted, such as tool output.
    """

    first_seq: int
    last_seq: int
    at: datetime | None
    speakers: tuple[str, ...]
    text: str
    entry: Entry
    values_required: bool


def origin_of(pieces: Sequence[Piece], names: Iterable[str] = ()) -> Origin:
    """Return what lines about pieces may refer to; *names* may speak in them besides theirs."""
    # A note has the time of its first message; another note may have that of its last one.
    dated = [(piece, piece.at) for piece in reversed(pieces) if piece.at is not None]
    times = {piece.last_seq: at for piece, at in dated}
    spoken = [(p.first_seq, p.last_seq, name) for p in pieces for name in p.speakers]
    known = dict.fromkeys((*names, *(name for _, _, name in spoken)))
    return Origin(
        first_seq=min(piece.first_seq for piece in pieces),
        last_seq=max(piece.last_seq for piece in pieces),
        times=times | {piece.first_seq: at for piece, at in dated},
        speakers={name.casefold(): name for name in known},
        spoken=spoken,
    )


def missing_values(
    pieces: Sequence[Piece], noted_text: str, *, names: Iterable[str], limit: int
) -> tuple[str, ...]:
    """Return the required ids, amounts, URLs and paths of pieces that *noted_text* lacks.

    *names* never count as missing.
    """
    report = LossReport(noted_text)
    for piece in pieces:
        for part in parts(piece.text if piece.values_required else "", SLICE_CHARACTERS):
            report.add(part)
    noted, known = noted_text.casefold(), {name.casefold() for name in names}
    values = (literal.text for literal in report.missing() if _matters(literal))
    missing = (
        value
        for value in values
        if value.casefold() not in known and not _contains(value.casefold(), noted)
    )
    return tuple(islice(missing, limit))


def passages(pieces: Sequence[Piece], values: Sequence[str]) -> tuple[Entry, ...]:
    """Return excerpts around the first occurrence of each value, under time headings."""
    shown: dict[int, list[str]] = {}
    for value in values:
        for index, piece in enumerate(pieces):
            at = piece.text.find(value)
            if at >= 0:
                if not any(value in text for text in shown.get(index, ())):
                    shown.setdefault(index, []).append(_around(piece.text, at, len(value)))
                break
    timed = (
        (pieces[index].at, Entry(pieces[index].entry.head, "\n".join(texts)))
        for index, texts in sorted(shown.items())
    )
    return tuple(below_times(timed))


def values_note(pieces: Sequence[Piece], values: Sequence[str], at: datetime | None) -> Note:
    """Return a note that lists the values, with their source messages.

    It has the time *at*, or else that of the first of these messages.
    """
    sources = [piece for piece in pieces if any(value in piece.text for value in values)] or pieces
    return Note(
        text=f"Exact values: {'; '.join(values)}",
        first_seq=min(piece.first_seq for piece in sources),
        last_seq=max(piece.last_seq for piece in sources),
        observed_at=at or sources[0].at,
    )


def without_invented(
    notes: Iterable[Note], shown_text: str
) -> tuple[tuple[Note, ...], tuple[DroppedLine, ...]]:
    """Drop the notes with an id, path, URL or number that does not occur in *shown_text*.

    If only the earlier value of a note has one, that value alone is dropped. Dates and years may be
    computed, so they are not checked. Spaces and punctuation are ignored.
    """
    shown = _squeeze(shown_text)
    kept: list[Note] = []
    dropped: list[DroppedLine] = []
    for note in notes:
        was = note.supersedes and _invented_value(note.supersedes, shown)
        valid = replace(note, supersedes=None) if was else note
        if value := _invented_value(text_of([valid]), shown):
            dropped.append(DroppedLine(text=line_text(note), reason="invented", detail=value))
            continue
        kept.append(valid)
        if was:
            earlier = f"(was: {note.supersedes})"
            dropped.append(DroppedLine(text=earlier, reason="invented", detail=was))
    return tuple(kept), tuple(dropped)


def _invented_value(text: str, shown: str) -> str | None:
    """Return the first value of a text that does not occur in the shown one."""
    return next((lit.text for lit in find_literals(text) if _is_invented(lit, shown)), None)


def has_invented_address(text: str, shown_text: str) -> bool:
    """Return whether a text has a URL or e-mail address that does not occur in *shown_text*."""
    addresses = [literal for literal in find_literals(text) if _is_address(literal)]
    shown = _squeeze(shown_text) if addresses else ""
    return any(_is_invented(address, shown) for address in addresses)


def text_of(notes: Iterable[Note]) -> str:
    """Return the text, speakers, topics and earlier values of the notes as one text."""
    return "\n".join(
        " ".join(filter(None, (note.speaker, note.topic, note.text, note.supersedes)))
        for note in notes
    )


def _is_address(literal: Literal) -> bool:
    return literal.kind == "url" or (literal.kind == "id" and "@" in literal.text)


def _is_invented(literal: Literal, shown: str) -> bool:
    if literal.kind not in _KINDS or _PRODUCT.fullmatch(literal.text):
        return False
    text = _OPTIONAL.sub("", literal.text)
    if literal.kind == "url" and "://" not in literal.text:  # perhaps two names: "socket.io/redis"
        return not all(_squeeze(part) in shown for part in text.split("/"))
    squeezed = _squeeze(text)
    is_short = _digits(_YEARS.sub("", squeezed)) < MIN_DIGITS
    if literal.kind in ("id", "number") and is_short and not _is_address(literal):
        return False
    return squeezed not in shown and _squeeze(_NO_CENTS.sub("", literal.text)) not in shown


def _contains(value: str, text: str) -> bool:
    """Return whether a text has the value, even next to letters: `v2.14.0` has `2.14.0`."""
    return re.search(rf"(?<![0-9]){re.escape(value)}(?![0-9])", text) is not None


def _matters(literal: Literal) -> bool:
    text = literal.text
    if "\n" in text or MARK.strip("[]") in text:
        return False
    match literal.kind:
        case "url" | "path":
            return not _PRODUCT.fullmatch(text)
        case "id":
            return not _MEASURE.fullmatch(text)
        case "number":
            is_long = _digits(text) >= MIN_DIGITS and not _YEARS.fullmatch(text)
            return is_long or bool(_AMOUNT.search(text))
        case _:
            return False


def _digits(text: str) -> int:
    return sum(character.isdigit() for character in text)


def _around(text: str, at: int, length: int) -> str:
    """Return the value with the text around it, on one line."""
    value, left, right = text[at : at + length], text[:at], text[at + length :]
    before = ending(left, PASSAGE_CHARACTERS // 2)
    after = beginning(right, PASSAGE_CHARACTERS // 2)
    cut = " ".join(f"{before}{value}{after}".split())
    return f"{'' if before == left else '… '}{cut}{'' if after == right else ' …'}"


def _squeeze(text: str) -> str:
    return _NOT_WORDS.sub("", unicodedata.normalize("NFKC", text).casefold())
