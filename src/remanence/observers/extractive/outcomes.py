"""Outcomes of tool calls: status, ids, numbers and errors instead of the whole output."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from remanence.types import Message

_MAX_LINES = 24
_MAX_CHARS = 160
_MAX_LINE_CHARS = 4_000
"""Characters of a line that decide whether it is kept; the note quotes fewer."""
_MAX_DEPTH = 5
_MAX_ROWS = 3
_MAX_FIELDS = 12
_FEW = 6
_SALIENT = re.compile(
    r"error|fail|exception|warn|denied|refused|not found|timeout|invalid|fatal|success"
    r"|passed|\bdone\b|created|total|exit|ошибк|错误|失败|エラー|오류",
    re.IGNORECASE,
)
_ORNAMENT = re.compile(r"[=_\-*#~]{4,}")
_PROGRESS = re.compile(r"^\W*+[.sxFE\s]*+\[?\s*+\d{1,3}%\W*+$")
_JSON = re.compile(r'"\s*:')
_MARKS = re.compile(r'\\?[{}\[\]"]')
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_NAMES = re.compile(r"^(?:id|name|title|reference|number)$|_(?:id|reference|number)$")
_FLAGS = ("true", "false")
_LAST_RANK = 2
_WORD = re.compile(r"[^\W\d_]{2,}")
_FIRST = ("error", "code", "message", "reason", "status", "state", "result")
_SECOND = re.compile(
    r"(?:^|_)(?:id|reference|number|total|count|amount|price|due|date|at|name|title|balance)$"
)
_SELF_EXPLANATORY = frozenset(
    {"id", "name", "title", "message", "text", "result", "content", "description", "error", "url"}
)


class Outcome(NamedTuple):
    """A line about a tool call; `about` is the arguments of the call.

    `is_call` marks lines without a result yet: the call itself, or one row of a search result.
    A detail is neither the status nor the name of the result.
    """

    text: str
    about: str = ""
    is_call: bool = False
    is_detail: bool = False


class _Leaf(NamedTuple):
    key: str
    value: str

    @property
    def text(self) -> str:
        key = self.key.replace("_", " ").strip()
        return self.value if not key or key in _SELF_EXPLANATORY else f"{key} {self.value}"


def outcomes(message: Message, asked: dict[str, str]) -> Iterator[Outcome | None]:
    """Yield the outcomes of the tool calls and results of a message, None between steps.

    *asked* maps ids of earlier calls to their arguments; the calls of this message are added.
    """
    for call in message.tool_calls:
        arguments = _arguments(call.arguments)
        asked[call.id] = arguments
        yield Outcome(f"{call.name} {arguments}".strip(), is_call=True)
    for result in message.tool_results:
        about = asked.get(result.call_id, "")
        for line in _result_lines(result.text):
            yield line and line._replace(about=about)


def _arguments(text: str) -> str:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return shorten(_plain(text))
    return _line(
        [leaf for leaf in _leaves(value, "", 0) if len(leaf.value) <= _MAX_CHARS], keys=False
    )


def _result_lines(text: str) -> Iterator[Outcome | None]:
    """Yield the lines of a result; the rows of one without status or name are offers."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        for line in _salient_lines(text):
            yield None if line is None else Outcome(line)
        return
    leaves = [leaf for leaf in _leaves(value, "", 0, records=False) if not _is_link(leaf)]
    first = [leaf for leaf in leaves if _rank(leaf.key) == 0]
    second = [leaf for leaf in leaves if _rank(leaf.key) == 1]
    rest = [] if _is_failure(value) else [x for x in leaves if _rank(x.key) == _LAST_RANK]
    yield from map(Outcome, _lines([*first, *second]))
    for line in _lines(rest):
        yield Outcome(line, is_detail=True)
    is_offer = not (first or second)
    whose = _name(value)
    for record in _records(value):
        for line in _row(record):
            yield Outcome(f"{whose}{line}", is_call=is_offer, is_detail=True)


def _is_failure(value: object) -> bool:
    """Return whether a result reports an error, so that its other fields are not outcomes."""
    return isinstance(value, dict) and bool(value.get("error") or value.get("errors"))


def _name(value: object) -> str:
    """Return the name of a record as a prefix for the records in it, or ""."""
    fields = value.items() if isinstance(value, dict) else ()
    named = (inner for key, inner in fields if isinstance(inner, str) and _NAMES.search(key))
    return next((f"{name}: " for name in named), "")


def _records(value: object) -> Iterator[Mapping[str, object]]:
    """Yield the first few records of each list in a value."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from _records(inner)
    elif isinstance(value, list):
        for inner in value[:_MAX_ROWS]:
            if isinstance(inner, dict):
                yield inner
            else:
                yield from _records(inner)


def _row(record: Mapping[str, object]) -> Iterator[str]:
    """Yield a record on as few lines as possible: its texts, and its salient numbers by key."""
    leaves = [leaf for leaf in _leaves(record, "", 0) if not _is_link(leaf)]
    texts = [leaf for leaf in leaves if not _NUMBER.fullmatch(leaf.value)]
    numbers = [leaf for leaf in leaves if leaf not in texts and _rank(leaf.key) < _LAST_RANK]
    shown = [_Leaf("", leaf.value) for leaf in texts[:_FEW] if leaf.value not in _FLAGS]
    yield from _lines([*shown, *numbers[:_FEW]])


def _is_link(leaf: _Leaf) -> bool:
    return leaf.value.startswith("http")


def _plain(text: str) -> str:
    """Return a line without the punctuation of JSON, which an output may contain in part."""
    return " ".join(_MARKS.sub("", text).split()) if _JSON.search(text) else text


def _rank(key: str) -> int:
    if any(part in key.lower() for part in _FIRST):
        return 0
    return 1 if _SECOND.search(key.lower()) else _LAST_RANK


def _lines(leaves: Sequence[_Leaf]) -> Iterator[str]:
    """Yield the leaves on lines of bounded length."""
    start = 0
    for _ in range(_MAX_FIELDS):
        line, size = "", 0
        for leaf in leaves[start:]:
            longer = f"{line}, {leaf.text}" if line else shorten(leaf.text)
            if line and len(longer) > _MAX_CHARS:
                break
            line, size = longer, size + 1
        if not line:
            return
        yield line
        start += size


def _line(leaves: Iterable[_Leaf], *, keys: bool = True) -> str:
    texts = [_Leaf(leaf.key if keys else "", leaf.value) for leaf in leaves]
    return next(_lines(texts), "")


def shorten(text: str) -> str:
    """Return the text, cut at a word to fit on a line."""
    if len(text) <= _MAX_CHARS:
        return text
    cut = text.rfind(" ", _MAX_CHARS // 2, _MAX_CHARS)
    return text[: cut if cut > 0 else _MAX_CHARS] + " …"


def _salient_lines(text: str) -> Iterator[str | None]:
    """Yield the lines of a short output; of a long one the first, errors and results.

    Yields None between steps.
    """
    lines: list[str] = []
    salient: list[int] = []
    for whole in text[:200_000].splitlines():
        yield None
        line = whole.strip()[:_MAX_LINE_CHARS]
        if _has_content(line):
            if _SALIENT.search(line):
                salient.append(len(lines))
            lines.append(line)
    if len(lines) > _FEW:
        chosen = {0, *salient[: _MAX_LINES // 2], *salient[-_MAX_LINES // 2 :]}
        lines = list(dict.fromkeys(lines[i] for i in sorted(chosen)))
    for line in lines:
        yield shorten(_plain(_ORNAMENT.sub(" ", line).strip()))


def _has_content(line: str) -> bool:
    """Return whether a line has content: not a rule, a decorated heading or a progress bar."""
    if _PROGRESS.match(line) or not _WORD.search(line):
        return False
    return not _ORNAMENT.search(line) or any(c.isdigit() for c in line)


def _leaves(value: object, key: str, depth: int, *, records: bool = True) -> Iterator[_Leaf]:
    """Yield the scalar values in a value with their keys, optionally without records in lists."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, dict):
        for inner_key, inner in list(value.items())[:_MAX_FIELDS]:
            yield from _leaves(inner, str(inner_key), depth + 1, records=records)
    elif isinstance(value, list):
        for inner in value[:_MAX_ROWS]:
            if records or not isinstance(inner, dict):
                yield from _leaves(inner, key, depth + 1, records=records)
    elif isinstance(value, bool):
        yield _Leaf(key, str(value).lower())
    elif value not in (None, ""):
        yield _Leaf(key, str(value))
