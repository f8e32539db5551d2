"""What a tool call came to: status, ids, numbers and errors rather than its whole output."""

import json
import re
from collections.abc import Iterator, Sequence

from remanence.types import Message

_MAX_LINES = 40
_SALIENT = re.compile(
    r"error|fail|exception|warn|denied|refused|not found|timeout|invalid|traceback|fatal|success|passed|done|created|total|exit",
    re.I,
)


def outcome_lines(message: Message, messages: Sequence[Message]) -> Iterator[str]:
    """Lines that tell what the tool calls and results of a message amount to."""
    for call in message.tool_calls:
        yield f"{call.name} {_flat(call.arguments)}".strip()
    for result in message.tool_results:
        yield from _result_lines(result.text)


def _flat(text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        return text[:200]
    return ", ".join(_leaves(value, "", 0))[:300]


def _result_lines(text: str) -> Iterator[str]:
    try:
        value = json.loads(text)
    except ValueError:
        yield from _salient(text)
        return
    if not isinstance(value, dict):
        yield ", ".join(_leaves(value, "", 0))[:300]
        return
    for key, inner in list(value.items())[:_MAX_LINES]:
        line = ", ".join(_leaves(inner, key, 0))
        if line:
            yield line[:300]


def _salient(text: str) -> Iterator[str]:
    lines = [line.strip() for line in text[:200_000].splitlines() if line.strip()]
    if len(lines) <= 6:
        yield from (line[:300] for line in lines)
        return
    chosen = {0, len(lines) - 1} | {i for i, line in enumerate(lines) if _SALIENT.search(line)}
    yield from (lines[i][:300] for i in sorted(chosen)[:_MAX_LINES])


def _leaves(value: object, key: str, depth: int) -> Iterator[str]:
    if depth > 4:
        return
    if isinstance(value, dict):
        for inner_key, inner in list(value.items())[:12]:
            yield from _leaves(inner, str(inner_key), depth + 1)
    elif isinstance(value, list):
        for inner in value[:8]:
            yield from _leaves(inner, key, depth + 1)
    elif value not in (None, "", [], {}):
        yield f"{key} {value}".strip() if not isinstance(value, bool) else f"{key} {str(value).lower()}"
