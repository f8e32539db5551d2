"""OpenAI's Chat Completions messages, read and written.

Shapes: the reference of `POST /chat/completions`, parameter `messages`.
"""

import json
import re
from typing import Any

from remanence.errors import InvalidMessage
from remanence.types.parts import (
    ROLES,
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

_NAME = re.compile(r"[^\s<|\\/>]{1,64}")
"""The names that the API accepts; any other stands before the text."""

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


def parse(data: JsonObject) -> Parsed:
    """Read one message; parts of unknown types are kept whole."""
    role = _role(data)
    name = data.get("name")
    if name is not None and not isinstance(name, str):
        raise InvalidMessage(f"name {name!r} is not a string: pass text or leave it out")
    if role == "tool":
        return Parsed(role, (_tool_result(data),), name)
    content = _content(data.get("content"))
    if role == "assistant":
        refusal = data.get("refusal")
        if isinstance(refusal, str) and refusal:
            content = (*content, TextPart(text=refusal))
        content = (*content, *(_tool_call(call) for call in data.get("tool_calls") or ()))
    return Parsed(role, content, name)


def render(role: Role, content: tuple[Part, ...], name: str | None = None) -> list[JsonObject]:
    """Write a message as one or more dicts: each tool result is a message of its own."""
    messages: list[JsonObject] = [_render_result(part) for part in _results(content)]
    rest: tuple[Part, ...] = tuple(p for p in content if not isinstance(p, ToolResultPart))
    if not rest and messages:
        return messages
    message: JsonObject = {"role": role}
    if name and role != "tool":
        if _NAME.fullmatch(name):
            message["name"] = name
        else:
            rest = _prefixed(rest, name)
    calls = [_render_call(part) for part in rest if isinstance(part, ToolCallPart)]
    message["content"] = _render_content(rest)
    if calls:
        message["tool_calls"] = calls
    return [*messages, message]


def _prefixed(content: tuple[Part, ...], name: str) -> tuple[Part, ...]:
    for index, part in enumerate(content):
        if isinstance(part, TextPart):
            named = TextPart(text=f"{name}: {part.text}")
            return (*content[:index], named, *content[index + 1 :])
    return content


def _role(data: JsonObject) -> Role:
    name = data.get("role")
    role = _ROLES.get(name) if isinstance(name, str) else None
    if role is None:
        raise InvalidMessage(f"role {name!r} is unknown: use one of {sorted(ROLES)}")
    return role


def _content(content: object) -> tuple[Part, ...]:
    if content is None:
        return ()
    if isinstance(content, str):
        return (TextPart(text=content),) if content else ()
    if not isinstance(content, list):
        raise InvalidMessage(
            f"content is of type {type(content).__name__!r}: pass a string or a list of parts"
        )
    return tuple(_part(part) for part in content)


def _part(data: object) -> Part:
    if not isinstance(data, dict):
        raise InvalidMessage(f"content part {data!r} is not an object: pass {{'type': ..., ...}}")
    match data:
        case {"type": "text" | "input_text" | "output_text", "text": str(text)}:
            return TextPart(text=text)
        case {"type": "image_url", "image_url": {"url": str(url)}} if len(data) == 2:
            return _image(url, data)
        case {"type": "file", "file": dict(file)}:
            return FilePart(
                name=file.get("filename"), data=file.get("file_data"), file_id=file.get("file_id")
            )
        case _:
            return OtherPart(dialect="openai", raw=json.dumps(data, ensure_ascii=False))


def _image(url: str, data: JsonObject) -> Part:
    if set(data["image_url"]) != {"url"}:
        return OtherPart(dialect="openai", raw=json.dumps(data, ensure_ascii=False))
    head, separator, payload = url.partition(";base64,")
    if separator and head.startswith("data:"):
        return ImagePart(media_type=head.removeprefix("data:"), data=payload)
    return ImagePart(url=url)


def _tool_call(call: JsonObject) -> ToolCallPart:
    match call:
        case {"id": str(id_), "function": {"name": str(name), "arguments": arguments}}:
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            return ToolCallPart(id=id_, name=name, arguments=text)
        case {"id": str(id_), "custom": {"name": str(name), "input": str(text)}}:
            return ToolCallPart(id=id_, name=name, arguments=json.dumps(text))
        case _:
            raise InvalidMessage(
                f"tool call {call!r} is incomplete: it needs id, function.name and "
                "function.arguments"
            )


def _tool_result(data: JsonObject) -> ToolResultPart:
    call_id = data.get("tool_call_id")
    if not isinstance(call_id, str) or not call_id:
        raise InvalidMessage(
            f"a tool message has tool_call_id {call_id!r}: name the call that it answers"
        )
    inner = tuple(
        part
        for part in _content(data.get("content"))
        if isinstance(part, TextPart | ImagePart | FilePart | OtherPart)
    )
    return ToolResultPart(call_id=call_id, content=inner)


def _results(content: tuple[Part, ...]) -> list[ToolResultPart]:
    return [part for part in content if isinstance(part, ToolResultPart)]


def _render_result(part: ToolResultPart) -> JsonObject:
    return {
        "role": "tool",
        "tool_call_id": part.call_id,
        "content": _render_content(part.content) or "",
    }


def _render_call(part: ToolCallPart) -> JsonObject:
    function = {"name": part.name, "arguments": part.arguments}
    return {"id": part.id, "type": "function", "function": function}


def _render_content(content: tuple[Part, ...]) -> str | list[JsonObject] | None:
    parts = [part for part in content if not isinstance(part, ToolCallPart | ToolResultPart)]
    if not parts:
        return None
    if len(parts) == 1 and isinstance(parts[0], TextPart):
        return parts[0].text
    blocks = [block for part in parts if (block := _render_part(part)) is not None]
    return blocks or None


def _render_part(part: Part) -> JsonObject | None:
    match part:
        case TextPart():
            return {"type": "text", "text": part.text}
        case ImagePart():
            url = part.url or f"data:{part.media_type or 'image/png'};base64,{part.data or ''}"
            return {"type": "image_url", "image_url": {"url": url}}
        case FilePart(url=str(url)) if part.data is None and part.file_id is None:
            return {"type": "text", "text": f"[file {part.name or 'without a name'}: {url}]"}
        case FilePart():
            fields = {"filename": part.name, "file_data": part.data, "file_id": part.file_id}
            return {"type": "file", "file": {k: v for k, v in fields.items() if v is not None}}
        case OtherPart(dialect="openai"):
            return part.value
        case _:
            return None
