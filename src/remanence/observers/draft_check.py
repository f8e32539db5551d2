"""Checks that a draft must pass before it is stored. Pure: no clock, no database."""

import re
from datetime import date, datetime
from itertools import pairwise, takewhile
from typing import get_args

from remanence.arguments import bad_character
from remanence.errors import ObservationRejected
from remanence.types import Draft, Note, Priority, Tag

_DATE = re.compile(r"[0-9]{4}(?:-[0-9]{2}(?:-[0-9]{2}(?:[T ]\S+)?)?)?")
REPEATED_SHARE = 0.5
MIN_PIECES = 8
RUN_WORDS = 5


def check_draft(
    draft: Draft, text: str, *, seqs: range, tokens: int, limit_tokens: int, source_text: str
) -> None:
    """Raise `ObservationRejected` unless *text*, the rendered *draft*, may replace its source.

    Rejects answers that are empty without declaring that nothing was worth noting, name messages
    other than the source's (*seqs*), exceed their source or budget, or repeat themselves more than
    the source does.
    """
    if not text.strip():
        if draft.nothing:
            return
        raise ObservationRejected("empty", f"{draft.made_by} returned no notes")
    check_ranges(draft, seqs)
    if tokens > limit_tokens:
        raise ObservationRejected(
            "too_large",
            f"the notes of {draft.made_by} have {tokens:,} tokens; their source or their "
            f"generation's budget has {limit_tokens:,}",
        )
    check_repetition(text, source_text, made_by=draft.made_by)


def check_values(draft: Draft) -> None:
    """Raise `ObservationRejected` unless a draft can be rendered, stored and read.

    Rejects answers that were cut off, and notes and dropped lines with impossible values.
    """
    made_by: object = draft.made_by
    if not isinstance(made_by, str):
        raise ObservationRejected(
            "bad_value", f"a draft has made_by={made_by!r:.80}: name the observer and its version"
        )
    if not draft.complete:
        raise ObservationRejected(
            "cut_off",
            f"the answer of {draft.made_by} was cut off: raise its output limit",
        )
    for note in draft.notes:
        if problem := _problem(note):
            raise ObservationRejected(
                "bad_value", f"{draft.made_by} returned a note whose {problem}"
            )
    for line in draft.dropped:
        for text in (line.text, line.detail):
            if problem := bad_character(text):
                raise ObservationRejected(
                    "bad_value", f"{draft.made_by} returned a dropped line that {problem}"
                )


def _problem(note: Note) -> str | None:
    """Return the field of a note that has an impossible value, with the remedy."""
    value: object = note
    if not isinstance(value, Note):
        return f"type is {type(value).__name__}: use Note"
    for name in ("text", "referenced_at", "speaker", "topic", "supersedes"):
        text: object = getattr(note, name)
        if not isinstance(text, str) and (name == "text" or text is not None):
            return f"{name}={text!r:.80} is not text: use str"
        if problem := bad_character(str(text or "")):
            return f"{name} {problem}"
    for name in ("first_seq", "last_seq"):
        if not isinstance(seq := getattr(note, name), int):
            return f"{name}={seq!r:.80} is not an int: take the seq of a message"
    for name, value, known in (("tag", note.tag, Tag), ("priority", note.priority, Priority)):
        if value not in get_args(known):
            return f"{name}={value!r} is unknown: use one of {', '.join(get_args(known))}"
    if not note.text.strip():
        return "text is empty: leave the note out"
    return _problem_of_time(note)


def _problem_of_time(note: Note) -> str | None:
    at: object = note.observed_at
    if at is not None and not isinstance(at, datetime):
        return f"observed_at={at!r:.80} is not a datetime: take the created_at of a message"
    if at is not None and at.utcoffset() is None:
        return (
            f"observed_at={at!r} has no time zone: take the created_at of a message, "
            "or give it one, such as datetime.UTC"
        )
    return None


def check_dates(draft: Draft) -> None:
    """Raise `ObservationRejected` if the date of an event is none.

    A reflection may keep those of stored notes, which were not always checked.
    """
    for note in draft.notes:
        if note.referenced_at is not None and not _is_date(note.referenced_at):
            raise ObservationRejected(
                "bad_value",
                f"{draft.made_by} returned a note whose referenced_at={note.referenced_at!r:.80} is "
                "not a date: write it as YYYY-MM-DD, with or without a time, or only its beginning, "
                "such as 2023-05",
            )


def _is_date(text: str) -> bool:
    """Return whether a text is a year, month or day of the calendar in ISO 8601 with hyphens."""
    try:
        return bool(_DATE.fullmatch(text) and date.fromisoformat(f"{text}-01-01"[:10]))
    except ValueError:
        return False


def check_ranges(draft: Draft, seqs: range) -> None:
    """Raise `ObservationRejected` if a note is of messages that are not among *seqs*."""
    for note in draft.notes:
        if not seqs.start <= note.first_seq <= note.last_seq < seqs.stop:
            raise ObservationRejected(
                "out_of_range",
                f"{draft.made_by} returned a note of messages {note.first_seq}..{note.last_seq}, "
                f"and its source is {seqs.start}..{seqs.stop - 1}: take first_seq and last_seq "
                "from the request",
            )


def check_repetition(text: str, source_text: str, *, made_by: str) -> None:
    """Raise `ObservationRejected` for a text that repeats itself more than its source does.

    Notes of a list may each begin with its label.
    """
    repeated = repetition(text, openings=False)
    if repeated >= REPEATED_SHARE and repeated > 2 * repetition(source_text):
        raise ObservationRejected(
            "degenerate", f"{repeated:.0%} of the answer of {made_by} repeats itself"
        )


def repetition(text: str, *, openings: bool = True) -> float:
    """Return the share, 0 to 1, of lines or of five-word runs that repeat earlier ones.

    Without *openings*, runs have no words with which a line begins as the one before it does.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    words = text.split()
    if not openings:
        words = [word for old, line in pairwise(["", *lines]) for word in _new_words(line, old)]
    runs = [" ".join(words[i : i + RUN_WORDS]) for i in range(len(words) - RUN_WORDS + 1)]
    return max(
        1 - len(set(pieces)) / len(pieces) if len(pieces) >= MIN_PIECES else 0.0
        for pieces in (lines, runs)
    )


def _new_words(line: str, before: str) -> list[str]:
    words = line.split()
    same = takewhile(lambda pair: pair[0] == pair[1], zip(words, before.split(), strict=False))
    return words[len(list(same)) :]
