"""Calls and results of tools as rows: a line of output, or the fields of an object of JSON."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from remanence.notes.excerpts import both_ends
from remanence.observers.extractive.passage import TOOL
from remanence.observers.extractive.readable import blocks
from remanence.types import Message, ToolCallPart

_MAX_CHARS = 160
_MAX_TEXT = 200_000
"""Characters of a result that are looked at, half of them at its end."""
_MAX_DEPTH = 5
_MAX_RECORDS = 20
"""Records of a list of JSON that are looked at."""
_ORNAMENT = re.compile(r"[=_\-*#~]{4,}")
_PROGRESS = re.compile(r"^\W*+[.sxFE\s]*+\[?\s*+\d{1,3}%\W*+$")
_WORD = re.compile(r"[^\W\d_]{2,}")
_JSON = re.compile(r'"\s*:')
_ERROR = "error"
_MARKS = re.compile(r'\\?[{}\[\]"]')


class Row(NamedTuple):
    """A row of the call of a tool or of its result; `about` is the arguments of the call.

    A user may paste a result, too.
    """

    text: str
    speaker: str
    about: str = ""
    is_call: bool = False


def rows_of_tools(message: Message, asked: dict[str, str]) -> Iterator[Row | None]:
    """Yield the rows of the tool calls and results of a message, None between steps.

    *asked* maps ids of earlier calls to their arguments; the calls of this message are added.
    """
    for call in message.tool_calls:
        asked[call.id] = _arguments(call)
        yield Row(f"{call.name} {asked[call.id]}".strip(), message.speaker, is_call=True)
    pasted = blocks(message.text) if message.role == "user" else ()
    for block in pasted:
        yield from (Row(row, message.speaker) if row else None for row in _rows(block))
    is_named = message.role == TOOL and message.speaker != TOOL
    tool = f"{TOOL} {message.speaker}" if is_named else TOOL
    for result in message.tool_results:
        about = asked.get(result.call_id, "")
        for row in _rows(result.text):
            is_unsaid = result.is_error and row and _ERROR not in row.casefold()
            yield Row(f"{_ERROR}: {row}" if is_unsaid else row, tool, about) if row else None


def _arguments(call: ToolCallPart) -> str:
    """Return the values of the arguments of a call on one line."""
    try:
        value = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return shorten(_plain(call.arguments))
    return next(_pack(text for text in _values(value) if len(text) <= _MAX_CHARS), "")


def _values(value: object) -> Iterator[str]:
    """Yield the texts, numbers and truths in a value, however deep they are."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict | list):
            waiting += reversed(one.values() if isinstance(one, dict) else one)
        elif one not in (None, ""):
            yield str(one).lower() if isinstance(one, bool) else str(one)


def _rows(text: str) -> Iterator[str | None]:
    """Yield the rows of a result, of one that words an error this alone; None between steps."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        yield from _lines(text)
        return
    fields = value if isinstance(value, dict) else {}
    worded = {key: one for key, one in fields.items() if one and isinstance(one, str | dict | list)}
    errors = {key: worded[key] for key in ("error", "errors") if key in worded}
    yield from _records(errors or value, "", 0)


def _lines(text: str) -> Iterator[str | None]:
    """Yield the lines of an output, None for those without content."""
    for line in both_ends(text, _MAX_TEXT).splitlines():
        row = line.strip()[: 2 * _MAX_CHARS]
        yield shorten(_plain(_ORNAMENT.sub(" ", row).strip())) if _has_content(row) else None


def _has_content(line: str) -> bool:
    """Return whether a line has content: not a rule, a decorated heading or a progress bar."""
    if _PROGRESS.match(line) or not _WORD.search(line):
        return False
    return not _ORNAMENT.search(line) or any(map(str.isdigit, line))


def _records(value: object, name: str, depth: int) -> Iterator[str | None]:
    """Yield the rows of a value: the fields of an object, then those of the objects and texts in it."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, str):
        yield from _lines(value)
    elif not isinstance(value, dict | list):
        yield from map(shorten, _values(value))
    elif isinstance(value, list):
        for record in value[:_MAX_RECORDS]:
            yield from _records(record, "", depth + 1)
    else:
        lead = f"{name} " if name else ""
        flat = {key: inner for key, inner in value.items() if _is_flat(inner)}
        yield from _pack(
            f"{lead}{_name_of(key)} {' '.join(_values(one))}"
            for key, one in flat.items()
            if one not in (None, "", []) and not str(one).startswith("http")
        )
        for key in [key for key in value if key not in flat]:
            yield from _records(value[key], _name_of(key), depth + 1)


def _is_flat(value: object) -> bool:
    """Return whether a value stands on the row of its object: no object, nor a text of lines."""
    items = value if isinstance(value, list) else [value]
    return not any(isinstance(item, dict | list) or "\n" in str(item).strip() for item in items)


def _name_of(key: str) -> str:
    return key.replace("_", " ").strip()


def _pack(texts: Iterable[str]) -> Iterator[str]:
    """Yield the texts on as few rows as possible."""
    row = ""
    for text in map(shorten, texts):
        if row and len(row) + len(text) > _MAX_CHARS:
            yield row
            row = ""
        row = f"{row}, {text}" if row else text
    if row:
        yield row


def _plain(text: str) -> str:
    """Return a line without the punctuation of JSON, which an output may contain in part."""
    return " ".join(_MARKS.sub("", text).split()) if _JSON.search(text) else text


def shorten(text: str) -> str:
    """Return the text, cut at a word to fit on a line."""
    if len(text) <= _MAX_CHARS:
        return text
    cut = text.rfind(" ", _MAX_CHARS // 2, _MAX_CHARS)
    return text[: cut if cut > 0 else _MAX_CHARS] + " …"
