"""Text of a user's message that is likely pasted, recognised by its form alone.

It may still be the user's own, so it is read as data and states facts, but asks for nothing.
"""

import re
from collections.abc import Iterator

from remanence.notes.elements import element_spans
from remanence.observers.extractive.sentences import Span
from remanence.observers.learned.openings import hands_over

_LONG = 1_500
"""Characters from which a text is rather pasted than typed."""
_END = 300
"""Characters at the beginning and at the end of a long text that may be typed around it."""
_FRAME = re.compile(
    r"^[^\S\n]*(?:[-=_*~+#]{3}[^\n]*|[A-Z]{2,20} ([A-Z][A-Z\d ]{1,60}?))[^\S\n]*$", re.MULTILINE
)
"""A line that frames a text together with another: "-----", "=== Page 2", "BEGIN DOCUMENT"."""
_SOURCE = re.compile(r"^[^\S\n]*(?:#{1,6}[^\S\n]+\S|https?://\S+[^\S\n]*\n\s*+\S)", re.MULTILINE)
"""A heading, or an address in a line of its own with text behind it."""
_LABEL = r"[^\W\d_][^\n:：]{0,40}[:：]"
_FIELD = re.compile(rf"^{_LABEL}[^\S\n]*$", re.MULTILINE)
"""A label with its text below, as in "Context:"."""
_NEXT_FIELD = re.compile(rf"\n[^\S\n]*\n(?={_LABEL}(?:\s|$))")
_SPEAKER = re.compile(rf"^[^\S\n]*({_LABEL})(?=[^\S\n])", re.MULTILINE)
_ROW = re.compile(r"^[^\S\n]*+\|[^\n]*", re.MULTILINE)
"""A row of a table."""
_MAX_CLOSING = 120


def typed_text(text: str) -> str:
    """Return a user's text without what is likely pasted; of a long one both ends."""
    at, typed = 0, []
    for start, end in sorted(_pasted_spans(text)):
        typed.append(text[at:start])
        at = max(at, end)
    own = "\n\n".join((*typed, text[at:]))
    return own if len(own) <= _LONG else f"{own[:_END]}\n\n{own[-_END:]}"


def _pasted_spans(text: str) -> Iterator[Span]:
    """Yield the stretches of a text that are likely pasted; some overlap."""
    for start, end in element_spans(text):
        yield Span(start, end)
    yield from _between_frames(text)
    yield from (Span(*row.span()) for row in _ROW.finditer(text))
    if source := _SOURCE.search(text):
        yield Span(source.start(), len(text))
    field = _FIELD.search(text)
    following = [found.end() for found in _NEXT_FIELD.finditer(text)]
    if field and following and field.end() < following[-1]:
        yield Span(field.start(), following[-1])
    speakers = list(_SPEAKER.finditer(text))
    if len({speaker[1] for speaker in speakers}) < len(speakers):
        yield Span(speakers[0].start(), len(text))
    before, gap, closing = text.rstrip().rpartition("\n\n")
    if gap and len(closing) <= _MAX_CLOSING and hands_over(closing):
        yield Span(0, len(before))


def _between_frames(text: str) -> Iterator[Span]:
    """Yield the stretches from the first to the last line of the same frame."""
    first: dict[str | None, int] = {}
    last: dict[str | None, int] = {}
    for line in _FRAME.finditer(text):
        first.setdefault(line[1], line.start())
        last[line[1]] = line.end()
    for name, start in first.items():
        if text.find("\n", start) < last[name]:
            yield Span(start, last[name])
