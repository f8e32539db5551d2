"""Exact values between a source and its notes: which are missing, and which were made up."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from remanence.observing.literals import LossReport, find_literals
from remanence.observing.model.prompting import Entry
from remanence.observing.secrets import MARK
from remanence.types import Note

LEAST_INVENTED_DIGITS = 3
"""Smaller numbers may be counted ("three runs" is "3 runs"); larger ones come from a source."""

PASSAGE_CHARACTERS = 160
SLICE_CHARACTERS = 1_000
"""One scan holds the interpreter, so a long text is scanned in slices."""

_LOST = 200
_CHECKED_KINDS = frozenset({"id", "path", "url", "number"})
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")
_NOT_WORDS = re.compile(r"[\W_]+")


class Piece(NamedTuple):
    """A part of the source: its `text`, and the entry that shows it.

    Of a part that is not `telling` only repeated values are looked for.
    """

    first_seq: int
    last_seq: int
    text: str
    entry: Entry
    telling: bool


def missing_values(
    pieces: Sequence[Piece], held_text: str, *, names: Iterable[str], limit: int
) -> tuple[str, ...]:
    """Values of the source that *held_text* does not have, the most telling first.

    Those of telling pieces come first; ids, paths, URLs, amounts and dates before code and names.
    *names* are known anyway.
    """
    told = _lost((piece.text for piece in pieces if piece.telling), held_text)
    said = _lost((piece.text for piece in pieces if not piece.telling), held_text)
    everything = "\n".join(piece.text for piece in pieces)
    repeated = [value for value in said if everything.count(value) > 1]
    known = {name.casefold() for name in names}
    found = dict.fromkeys(value for value in (*told, *repeated) if _matters(value, known))
    return tuple(list(found)[:limit])


def passages(pieces: Sequence[Piece], values: Sequence[str]) -> tuple[Entry, ...]:
    """The places of the pieces where the values first stand, below the heads of these pieces."""
    shown: dict[int, list[str]] = {}
    for value in values:
        for index, piece in enumerate(pieces):
            at = piece.entry.body.find(value)
            if at >= 0:
                around = _around(piece.entry.body, at, len(value))
                if not any(value in text for text in shown.get(index, ())):
                    shown.setdefault(index, []).append(around)
                break
    return tuple(
        Entry(pieces[i].entry.head, "\n".join(texts)) for i, texts in sorted(shown.items())
    )


def values_note(pieces: Sequence[Piece], values: Sequence[str], like: Note) -> Note:
    """A note that holds nothing but the values, from the pieces where they stand.

    It has the time of *like*.
    """
    holding = [piece for piece in pieces if any(value in piece.text for value in values)]
    return Note(
        text=f"Exact values: {'; '.join(values)}",
        first_seq=min((piece.first_seq for piece in holding), default=like.first_seq),
        last_seq=max((piece.last_seq for piece in holding), default=like.last_seq),
        observed_at=like.observed_at,
    )


def without_invented(notes: Iterable[Note], shown_text: str) -> tuple[Note, ...]:
    """The notes without those that name an id, path, URL or larger number that was not shown.

    Dates may be reckoned, so they are not looked at; nor do spaces and punctuation count.
    """
    shown = _squeezed(shown_text)
    return tuple(note for note in notes if not any(_invented(note, shown)))


def held_by(notes: Iterable[Note]) -> str:
    """All that the notes say, as one text."""
    return "\n".join(
        " ".join(filter(None, (note.speaker, note.topic, note.text, note.supersedes)))
        for note in notes
    )


def _invented(note: Note, shown: str) -> Iterable[bool]:
    for literal in find_literals(held_by([note])):
        squeezed = _squeezed(literal.text)
        digits = sum(character.isdigit() for character in squeezed)
        checked = literal.kind in _CHECKED_KINDS and (
            literal.kind in ("path", "url") or digits >= LEAST_INVENTED_DIGITS
        )
        yield checked and not _YEAR.fullmatch(squeezed) and squeezed not in shown


def _lost(texts: Iterable[str], held_text: str) -> tuple[str, ...]:
    report = LossReport(held_text)
    for text in texts:
        for start in range(0, len(text), SLICE_CHARACTERS):
            report.add(text[start : start + SLICE_CHARACTERS])
    return report.lost(limit=_LOST)


def _matters(value: str, names: set[str]) -> bool:
    return (
        len(value) > 1
        and "\n" not in value
        and MARK.strip("[]") not in value
        and value.casefold() not in names
    )


def _around(text: str, at: int, length: int) -> str:
    start = max(0, at - PASSAGE_CHARACTERS // 2)
    end = at + length + PASSAGE_CHARACTERS // 2
    cut = " ".join(text[start:end].split())
    return f"{'… ' if start else ''}{cut}{' …' if end < len(text) else ''}"


def _squeezed(text: str) -> str:
    return _NOT_WORDS.sub("", unicodedata.normalize("NFKC", text).casefold())
