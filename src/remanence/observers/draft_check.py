"""Checks that a draft must pass before it is stored. Pure: no clock, no database."""

from itertools import pairwise, takewhile

from remanence.errors import ObservationRejected
from remanence.types import Draft

REPEATED_SHARE = 0.5
MIN_PIECES = 8
RUN_WORDS = 5


def check_draft(
    draft: Draft, text: str, *, seqs: range, tokens: int, limit_tokens: int, source_text: str
) -> None:
    """Raise `ObservationRejected` unless *text*, the rendered *draft*, may replace its source.

    Rejects answers that were cut off, are empty without declaring that nothing was worth noting,
    name messages other than the source's (*seqs*), exceed their source or budget, or repeat
    themselves more than the source does.
    """
    if not draft.complete:
        raise ObservationRejected(
            "cut_off",
            f"the answer of {draft.made_by} was cut off, and its whole lines make {tokens:,} tokens of "
            "notes: raise its output limit or lower observe_max_tokens",
        )
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
