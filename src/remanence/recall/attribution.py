"""Attribution of passages: words of somebody else in a user's message are quoted with their opening."""

from typing import Final

from remanence.notes import one_line
from remanence.notes.excerpts import ending
from remanence.notes.redact import redact
from remanence.observers.extractive.quotations import QUOTATION
from remanence.observers.extractive.quoted_text import quoted_spans
from remanence.observers.extractive.sentences import Span, sentences

REACH: Final = 10_000
"""Characters before and after a passage in which quotations are looked for."""

MAX_OPENING: Final = 80
"""Characters of the sentence before a quotation."""


def attribute(text: str, passage: Span) -> str:
    """Return a passage in which the words of somebody else are within a pair of quotation marks.

    One that begins among these words has the sentence before them: "Tom wrote: “I live in Leipzig.”".
    """
    low = max(0, passage.start - REACH)
    near, start, end = text[low : passage.end + REACH], passage.start - low, passage.end - low
    reached = (
        (min(end, span.end) - max(start, span.start), span.end - span.start, span)
        for span in quoted_spans(near)
    )
    shared, _, quoted = max(reached, default=(0, 0, Span(0, 0)))
    if shared <= 0:
        return near[start:end]
    has_marks = QUOTATION.fullmatch(near, max(0, quoted.start - 1), quoted.end + 1) is not None
    outer, opening, closing = Span(quoted.start, len(near[: quoted.end].rstrip())), "“", "”"
    if has_marks:
        outer = Span(quoted.start - 1, quoted.end + 1)
        opening, closing = near[outer.start], near[quoted.end]
        if start < outer.start and outer.end <= end:
            return near[start:end]
    before = near[start : outer.start] if start < outer.start else _opening(near, outer.start)
    inside = near[max(start, quoted.start) : min(end, quoted.end)].strip()
    return f"{before.rstrip()} {opening}{inside}{closing}{near[outer.end : end]}".lstrip()


def _opening(text: str, end: int) -> str:
    """Return the sentence before a quotation or letter, without a letter's salutation, and redacted."""
    before = redact(text[max(0, end - 3 * MAX_OPENING) : end]).rstrip()
    if before.endswith((",", "，")) and text.startswith("\n", end - 1) and text[end] != ">":
        before = before.rpartition("\n")[0].rstrip()
    *_, last = (Span(0, 0), *sentences(before))
    return ending(one_line(before[last.start : last.end]), MAX_OPENING)
