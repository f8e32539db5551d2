"""Anthropic's Messages API, read and written.

Shapes: the reference of `POST /v1/messages`, parameters `messages` and `content`.
"""

import json
from typing import Any

from remanence.errors import InvalidMessage
from remanence.types.parts import (
    FilePart,
    ImagePart,
    OtherPart,
    Parsed,
    Part,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

JsonObject = dict[str, Any]  # a provider's JSON: its shape is the provider's


def parse(data: JsonObject) -> Parsed:
    """Read one message; blocks of unknown types are kept whole."""
    role = data.get("role")
    if role not in ("user", "assistant", "system"):
        raise InvalidMessage(f"role {role!r} is unknown: use 'user' or 'assistant'")
    known: Role = role
    content = _content(data.get("content"))
    only_results = bool(content) and all(isinstance(part, ToolResultPart) for part in content)
    return Parsed("tool" if only_results else known, content, None)


def render(role: Role, content: tuple[Part, ...], name: str | None = None) -> list[JsonObject]:
    """Write a message's blocks; tool results and system text go to a user turn.

    The protocol has no place for a speaker's name, so it stands before the first text.
    """
    blocks = [block for part in content if (block := _render_part(part)) is not None]
    if name and role == "user":
        _prefix(blocks, name)
    if not blocks:
        return []
    return [{"role": "assistant" if role == "assistant" else "user", "content": blocks}]


def _prefix(blocks: list[JsonObject], name: str) -> None:
    for block in blocks:
        if block["type"] == "text":
            block["text"] = f"{name}: {block['text']}"
            return


def _content(content: object) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (TextPart(text=content),) if content else ()
    if not isinstance(content, list):
        raise InvalidMessage(
            f"content is of type {type(content).__name__!r}: pass a string or a list of blocks"
        )
    return tuple(_block(block) for block in content)


def _block(data: object) -> Part:
    if not isinstance(data, dict):
        raise InvalidMessage(f"content block {data!r} is not an object: pass {{'type': ..., ...}}")
    data = {key: value for key, value in data.items() if key != "cache_control"}
    match data:
        case {"type": "text", "text": str(text)} if len(data) == 2:
            return TextPart(text=text)
        case {"type": "tool_use", "id": str(id_), "name": str(name), "input": value}:
            arguments = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
            return ToolCallPart(id=id_, name=name, arguments=arguments)
        case {"type": "tool_result", "tool_use_id": str(call_id)}:
            return _tool_result(call_id, data)
        case {"type": "image", "source": dict(source)} if len(data) == 2:
            return _image(source, data)
        case _:
            return OtherPart(dialect="anthropic", raw=json.dumps(data, ensure_ascii=False))


def _tool_result(call_id: str, data: JsonObject) -> ToolResultPart:
    inner = tuple(
        part
        for part in _content(data.get("content") or "")
        if isinstance(part, TextPart | ImagePart | FilePart | OtherPart)
    )
    return ToolResultPart(call_id=call_id, content=inner, is_error=bool(data.get("is_error")))


def _image(source: JsonObject, data: JsonObject) -> Part:
    match source:
        case {"type": "base64", "media_type": str(media_type), "data": str(payload)}:
            return ImagePart(media_type=media_type, data=payload)
        case {"type": "url", "url": str(url)}:
            return ImagePart(url=url)
        case _:
            return OtherPart(dialect="anthropic", raw=json.dumps(data, ensure_ascii=False))


def _render_part(part: Part) -> JsonObject | None:
    match part:
        case TextPart():
            return {"type": "text", "text": part.text} if part.text.strip() else None
        case ToolCallPart():
            return {
                "type": "tool_use",
                "id": part.id,
                "name": part.name,
                "input": _arguments(part.arguments),
            }
        case ToolResultPart():
            return _render_result(part)
        case ImagePart():
            return {"type": "image", "source": _image_source(part)}
        case FilePart():
            return _render_file(part)
        case OtherPart(dialect="anthropic"):
            return part.value
        case _:
            return None


def _arguments(text: str) -> JsonObject:
    """The call's arguments as an object, which the API demands; what is none is wrapped."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {"arguments": text}
    return value if isinstance(value, dict) else {"arguments": value}


def _render_result(part: ToolResultPart) -> JsonObject:
    block: JsonObject = {"type": "tool_result", "tool_use_id": part.call_id}
    rendered = (_render_part(item) for item in part.content)
    inner = [item for item in rendered if item is not None]
    if len(inner) == 1 and inner[0]["type"] == "text":
        block["content"] = inner[0]["text"]
    elif inner:
        block["content"] = inner
    if part.is_error:
        block["is_error"] = True
    return block


def _image_source(part: ImagePart) -> JsonObject:
    if part.url is not None:
        return {"type": "url", "url": part.url}
    return {"type": "base64", "media_type": part.media_type or "image/png", "data": part.data or ""}


def _render_file(part: FilePart) -> JsonObject:
    if part.url is not None:
        return {"type": "document", "source": {"type": "url", "url": part.url}}
    if part.data is None:
        name = part.name or part.file_id or "without a name"
        return {"type": "text", "text": f"[file {name}]"}
    payload = part.data.partition(";base64,")[2] or part.data
    media_type = part.media_type or "application/pdf"
    source = {"type": "base64", "media_type": media_type, "data": payload}
    return {"type": "document", "source": source}
