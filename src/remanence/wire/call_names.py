"""Names and ids of tool calls that providers accept, for calls that came from elsewhere."""

import hashlib
import re
from dataclasses import replace
from typing import Final

from remanence.wire.parts import Part, ToolCallPart, ToolResultPart

OPENAI_ID_CHARS: Final = 40
RESPONSES_ID_CHARS: Final = 64
_OPENAI_NAME_CHARS: Final = 64
_STEM_CHARS: Final = 48
_DIGEST_CHARS: Final = 12


def acceptable_name(name: str, *, max_chars: int) -> str:
    """Return *name*, or one derived from it, of letters, digits, `_` and `-` only."""
    if len(name) <= max_chars and re.fullmatch(r"[a-zA-Z0-9_-]+", name):
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST_CHARS]
    stem = re.sub(r"[^a-zA-Z0-9_-]", "_", name)
    return f"{stem[: min(_STEM_CHARS, max_chars - _DIGEST_CHARS - 1)]}_{digest}"


def with_openai_names(content: tuple[Part, ...], *, id_chars: int) -> tuple[Part, ...]:
    """Return *content* with calls and results as OpenAI accepts them: any id, but not a longer one."""
    return tuple(_with_openai_name(part, id_chars) for part in content)


def _with_openai_name(part: Part, id_chars: int) -> Part:
    match part:
        case ToolCallPart():
            name = acceptable_name(part.name, max_chars=_OPENAI_NAME_CHARS)
            call_id = _shorten(part.id, id_chars)
            is_same = (call_id, name) == (part.id, part.name)
            return part if is_same else replace(part, id=call_id, name=name)
        case ToolResultPart():
            call_id = _shorten(part.call_id, id_chars)
            return part if call_id == part.call_id else replace(part, call_id=call_id)
        case _:
            return part


def _shorten(call_id: str, id_chars: int) -> str:
    return call_id if len(call_id) <= id_chars else acceptable_name(call_id, max_chars=id_chars)
