"""Plain text of a message: mark-up, bulk and blocks of code removed."""

import re
from collections.abc import Generator, Iterator

from remanence.notes.elements import replace_elements
from remanence.notes.excerpts import both_ends
from remanence.observers.extractive.sentences import CODE, ITEM, Span

_MAX_TEXT = 60_000
_MAX_REPEATS = 40
_MAX_SPACES = 16
_REPEATS = re.compile(rf"([^\w\s])\1{{{_MAX_REPEATS},}}")
_SPACES = re.compile(rf"[^\S\n]{{{_MAX_SPACES + 1},}}")
_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*+\n){3,}+")
_ASIDE = re.compile(r"<(think|thinking|details)\b", re.IGNORECASE)
_FENCE = re.compile(
    r"```[^\n]{0,240}+\n(.*?)(?:^[ \t]*```|[^\s+-]```[ \t]*$|\Z)", re.DOTALL | re.MULTILINE
)
"""A block of code or of output; its rows are read as those of a tool's result."""
_DAY = r"(?:[^\W\d_]{3,4} {1,2}\d{1,2} |\d[\d.,/ -]{5,12}[ T])?"
_LOGGED = rf"^[\[( ]{{0,4}}{_DAY}\d\d:\d\d:\d\d(?!\d)[^\n]*"
"""A row that begins with a time of seconds, perhaps behind a day, unlike "The run took 03:42:10"."""
_RUN = r"^\$ [^\W\d_][^\n]*(?:\n[^\n]*\S[^\n]*)*"
"""A command behind a prompt, with its output up to a blank line."""
_OUTPUT = re.compile(f"{_LOGGED}|{_RUN}", re.MULTILINE)
_MARKUP = re.compile(r"^[ \t]*#{1,6}[ \t]+|^[ \t]*[-=_*\\]{3,}[ \t]*$", re.MULTILINE)
_BOLD = r"\*{2,3}(?![\s/*])((?:(?!\*\*)[^\n]){1,500}+)(?<![\s/])\*{2,3}(?![A-Za-z0-9/*])"
_ITALIC = r"\*(?![\s/*.])([^*\n]{1,500}+)(?<![\s/])\*(?![A-Za-z0-9/*])"
_UNDERLINED = r"__(?=[^\s_]+[^\S\n])([^_\n]{1,500}+)(?<!\s)__|_(?![\s_])([^_\n]{1,500}+)(?<!\s)_"
_STARRED = rf"(?<![A-Za-z0-9/*]){_BOLD}|(?<![A-Za-z0-9/*.)\]\\]){_ITALIC}"
_EMPHASIS = re.compile(rf"({CODE})|{_STARRED}|(?<!\w)(?:{_UNDERLINED})(?!\w)")
"""Code, which stays, and bold and italic text.

`2 ** n`, `*args`, `src/**/*.py`, `.*`, `_private` and `__init__.py` are neither.
"""
_ROW = re.compile(r"^[ \t]*\|(.+?)\|?[ \t]*$", re.MULTILINE)
_RULE = re.compile(r"[\s|:-]+")
_TAGS = re.compile(r"^[ \t]*</?[a-zA-Z!][^\n]*>[ \t]*$", re.MULTILINE)
_TAG = re.compile(r"<[^<>]*>")
_TO_OTHER = r"[ \t]+[a-zà-ÿ]+ \d{1,2}\."
_ITEM = re.compile(rf"^([ \t]*)(?:[-*•+]|(\d{{1,2}})[.)](?!{_TO_OTHER}))[ \t]+", re.MULTILINE)
"""A mark of an item, unlike the first of two ordinals: "1. bis 9. Mai"."""
_MIN_INDENT = 2
"""The columns by which an item of an inner list is indented beyond the one it belongs to."""


def readable_text(text: str) -> Generator[None, None, str]:
    """Return the message in plain lines of bounded size, with marks before list items.

    An item has a mark for each list that it is in. Yields between steps.
    """
    text = both_ends(text, _MAX_TEXT)
    # Long runs of spaces, blank lines or one mark would be costly for patterns that look ahead.
    text = _REPEATS.sub(lambda run: run[1] * _MAX_REPEATS, text)
    yield
    text = _SPACES.sub(" " * _MAX_SPACES, text)
    yield
    text = _BLANK_LINES.sub("\n\n\n", text)
    yield
    text = replace_elements(text, _ASIDE, "\n")
    yield
    text = _FENCE.sub("\n", text)
    yield
    text = _ROW.sub(_cells, text)
    yield
    text = _TAGS.sub(lambda line: _TAG.sub(" ", line[0]), text)
    yield
    text = _MARKUP.sub("", text)
    return _mark_items(without_emphasis(text)).strip()


def without_emphasis(text: str) -> str:
    """Return a text without marks of bold and italic text."""
    for _ in range(2):  # "**a *b***"
        text = _EMPHASIS.sub(r"\1\2\3\4\5", text)
    return text


def _mark_items(text: str) -> str:
    """Put marks before list items; a number without its neighbour stays: "40. The rent is 150"."""
    indents: list[int] = []  # of an item and those above it
    numbers = [int(item[2]) for item in _ITEM.finditer(text) if item[2]]
    counted = {0, 1, *(number + step for number in numbers for step in (-1, 1))}

    def marks(item: re.Match[str]) -> str:
        if item[2] and int(item[2]) not in counted:
            return item[0]
        indent = len(item[1].expandtabs(4))
        while indents and indent < indents[-1] + _MIN_INDENT:
            indents.pop()
        indents.append(indent)
        return ITEM * len(indents)

    return _ITEM.sub(marks, text)


def _cells(row: re.Match[str]) -> str:
    """Return a table row as an item, its cells joined by commas; "" for the rule below the head."""
    if _RULE.fullmatch(row[1]):
        return ""
    return ITEM + ", ".join(cell for cell in map(str.strip, row[1].split("|")) if cell)


def blocks(text: str) -> Iterator[str]:
    """Yield the text of each block of code or of output."""
    for block in _FENCE.finditer(text[:_MAX_TEXT]):
        yield block[1]


def output_spans(text: str) -> Iterator[Span]:
    """Yield the stretches of a text that are code or output: blocks, rows of a log, a session."""
    for pattern in (_FENCE, _OUTPUT):
        yield from (Span(*found.span()) for found in pattern.finditer(text[:_MAX_TEXT]))
