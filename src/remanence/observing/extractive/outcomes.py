"""What a tool call came to: status, ids, numbers and errors rather than its whole output."""

import json
import re
from collections.abc import Iterable, Iterator

from remanence.types import Message

_MAX_LINES = 24
_MAX_CHARS = 160
_MAX_DEPTH = 5
_MAX_ROWS = 3
_MAX_FIELDS = 12
_SALIENT = re.compile(
    r"error|fail|exception|warn|denied|refused|not found|timeout|invalid|traceback|fatal|success"
    r"|passed|done|created|total|exit|ошибк|错误|失败|エラー|오류",
    re.IGNORECASE,
)


def outcome_lines(message: Message) -> Iterator[str]:
    """Lines that tell what the tool calls and results of a message amount to."""
    for call in message.tool_calls:
        yield f"{call.name} {_arguments(call.arguments)}".strip()
    for result in message.tool_results:
        yield from _result_lines(result.text)


def _arguments(text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        return text[:_MAX_CHARS]
    if isinstance(value, dict):
        return _cut([str(leaf) for inner in value.values() for leaf in _leaves(inner, "", 0)])
    return _cut(_leaves(value, "", 0))


def _result_lines(text: str) -> Iterator[str]:
    try:
        value = json.loads(text)
    except ValueError:
        yield from _salient(text)
        return
    if not isinstance(value, dict):
        yield _cut(_leaves(value, "", 0))
        return
    for key, inner in list(value.items())[:_MAX_LINES]:
        if line := _cut(_leaves(inner, key, 0)):
            yield line


def _cut(leaves: Iterable[str]) -> str:
    """As many leaves as fit on a line, none cut short but the first."""
    line = ""
    for leaf in leaves:
        longer = f"{line}, {leaf}" if line else leaf[:_MAX_CHARS]
        if len(longer) > _MAX_CHARS:
            break
        line = longer
    return line


def _salient(text: str) -> Iterator[str]:
    lines = [line.strip() for line in text[:200_000].splitlines() if line.strip()]
    if len(lines) <= 6:
        yield from (line[:_MAX_CHARS] for line in lines)
        return
    telling = [i for i, line in enumerate(lines) if _SALIENT.search(line)]
    chosen = {0, len(lines) - 1, *telling[: _MAX_LINES // 2], *telling[-_MAX_LINES // 2 :]}
    yield from dict.fromkeys(lines[i][:_MAX_CHARS] for i in sorted(chosen))


def _leaves(value: object, key: str, depth: int) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, dict):
        for inner_key, inner in list(value.items())[:_MAX_FIELDS]:
            yield from _leaves(inner, str(inner_key), depth + 1)
    elif isinstance(value, list):
        for inner in value[:_MAX_ROWS]:
            yield from _leaves(inner, key, depth + 1)
    elif isinstance(value, bool):
        yield f"{key} {str(value).lower()}".strip()
    elif value not in (None, ""):
        yield f"{key} {value}".strip()
