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

    def shorten(call_id: str) -> str:
        is_short = len(call_id) <= id_chars
        return call_id if is_short else acceptable_name(call_id, max_chars=id_chars)

    parts: list[Part] = []
    for part in content:
        match part:
            case ToolCallPart(id=call_id):
                name = acceptable_name(part.name, max_chars=_OPENAI_NAME_CHARS)
                parts.append(replace(part, id=shorten(call_id), name=name))
            case ToolResultPart(call_id=call_id):
                parts.append(replace(part, call_id=shorten(call_id)))
            case _:
                parts.append(part)
    return tuple(parts)
