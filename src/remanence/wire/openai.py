"""Parser and renderer for messages of OpenAI's Chat Completions.

Shapes: the reference of `POST /chat/completions`, parameter `messages`.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import replace

from remanence.errors import InvalidMessage
from remanence.wire.json_value import JsonObject, dumps, json_object
from remanence.wire.parts import (
    ROLES,
    Extra,
    FilePart,
    ImagePart,
    OtherPart,
    ParsedMessage,
    Part,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    label,
)
from remanence.wire.sdk_objects import (
    ERROR_MARK,
    NOTHING_READABLE,
    extra_fields,
    payload,
    split_data_url,
    stand_in,
)

MESSAGE_FIELDS = frozenset(
    {"role", "content", "name", "refusal", "tool_calls", "tool_call_id", "audio", "function_call"}
)
"""The fields of a message that the reference names."""

_INSTEAD_OF_CONTENT = {"audio", "function_call", "tool_calls"}

_RECORD_FIELDS = frozenset({"id", "created_at", "timestamp"})
"""Fields that transcripts add to a message; the API rejects a request with them."""

_NAME = re.compile(r"[^\s<|\\/>]{1,64}")
"""The names that the API accepts; any other is put before the text."""

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


def parse(data: object) -> ParsedMessage:
    """Read one message; parts of unknown types, and unknown fields of parts, are kept.

    Unknown fields of an answer, such as `reasoning_content`, are kept too; those of a message that
    the host wrote are not the provider's and are left out, as are fields of transcripts.
    """
    message = json_object(data, "message")
    role = _role(message)
    name = message.get("name") or None
    if name is not None and not isinstance(name, str):
        raise InvalidMessage(f"name {name!r:.80} is not a string: pass text or leave it out")
    if role == "tool":
        return ParsedMessage(role, (_tool_result(message),), name)
    content = _content(message.get("content"))
    if role == "assistant":
        content = (*_fields(message), *content, *_refusal(message), *_tool_calls(message))
    return ParsedMessage(role, content, name)


def render(role: Role, content: tuple[Part, ...], name: str | None = None) -> list[JsonObject]:
    """Write a message as one or more dicts: each tool result is a message of its own.

    Images and files of tool results follow in a user message, the only one that may contain them.
    """
    results = [part for part in content if isinstance(part, ToolResultPart)]
    messages = [_render_result(part, name) for part in results]
    media = tuple(item for result in results for item in _media(result))
    if media:
        messages.append({"role": "user", "content": _render_parts("user", media)})
    rest: tuple[Part, ...] = tuple(p for p in content if not isinstance(p, ToolResultPart))
    if not rest and messages:
        return messages
    role = "user" if role == "tool" else role
    message: JsonObject = {"role": role}
    if name and _NAME.fullmatch(name):
        message["name"] = name
    elif name and (shown := label(name)):
        rest = _prefix_name(rest, shown)
    calls = [_render_call(part) for part in rest if isinstance(part, ToolCallPart)]
    message["content"] = _render_content(role, rest)
    if calls:
        message["tool_calls"] = calls
    for part in rest:
        if isinstance(part, OtherPart) and part.dialect == "openai" and part.scope == "message":
            message.update(part.value)
    if message["content"] is None and not message.keys() & _INSTEAD_OF_CONTENT:
        has_fields = role == "assistant" and len(message) > 2
        message["content"] = "" if has_fields else NOTHING_READABLE
    return [*messages, message]


def _prefix_name(content: tuple[Part, ...], name: str) -> tuple[Part, ...]:
    for index, part in enumerate(content):
        if isinstance(part, TextPart):
            named = TextPart(text=f"{name}: {part.text}", extra=part.extra)
            return (*content[:index], named, *content[index + 1 :])
    return (TextPart(text=f"{name}:"), *content)


def _role(data: JsonObject) -> Role:
    name = data.get("role")
    role = _ROLES.get(name) if isinstance(name, str) else None
    if role is None:
        if "choices" in data:
            raise InvalidMessage(
                "a completion is not a message: pass completion.choices[0].message"
            )
        raise InvalidMessage(f"role {name!r:.80} is unknown: use one of {sorted(ROLES)}")
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
    return tuple(parse_part(part) for part in content)


def parse_part(data: object) -> Part:
    """Read one content part."""
    if not isinstance(data, dict):
        raise InvalidMessage(
            f"content part {data!r:.80} is not an object: pass {{'type': ..., ...}}"
        )
    part = {k: v for k, v in data.items() if k != "prompt_cache_breakpoint" and v is not None}
    match part:
        case {"type": "text" | "input_text" | "output_text", "text": str(text)}:
            return TextPart(text=text, extra=_extra(part, "type", "text"))
        case {"type": "refusal", "refusal": str(text)}:
            return TextPart(text=text, extra=_extra(part, "refusal"))
        case {"type": "image_url", "image_url": {"url": str(url)}} if url:
            return _image(url, part)
        case {"type": "file", "file": dict(file)}:
            return _file(file, part)
        case {"type": "text" | "refusal" | "image_url" | "file"}:
            raise InvalidMessage(
                f"content part {data!r:.160} is incomplete: a part of type {part['type']!r} needs "
                f"{_NEEDS[part['type']]}"
            )
        case {"type": str(kind)} if kind:
            return OtherPart(dialect="openai", raw=dumps(part))
        case _:
            raise InvalidMessage(f"content part {data!r:.80} has no type: add 'type': 'text'")


_NEEDS = {
    "text": "text, a string",
    "refusal": "refusal, a string",
    "image_url": "image_url, an object with url",
    "file": "file, an object with file_data or file_id",
}


def _extra(part: JsonObject, *known: str, **inner: JsonObject) -> Extra | None:
    rest = {key: value for key, value in part.items() if key not in known}
    rest |= {key: value for key, value in inner.items() if value}
    return Extra(dialect="openai", raw=dumps(rest, sort_keys=True)) if rest else None


def _image(url: str, part: JsonObject) -> ImagePart:
    fields = {key: value for key, value in _present(part["image_url"]).items() if key != "url"}
    extra = _extra(part, "type", "image_url", image_url=fields)
    inline = split_data_url(url)
    if inline is None:
        return ImagePart(url=url, extra=extra)
    return ImagePart(media_type=inline.media_type, data=inline.data, extra=extra)


def _file(file: JsonObject, part: JsonObject) -> FilePart:
    fields = _present(file)
    name, data, file_id = (fields.pop(k, None) for k in ("filename", "file_data", "file_id"))
    for value in (name, data, file_id):
        if value is not None and not isinstance(value, str):
            raise InvalidMessage(f"{value!r:.80} of a file part is not a string: pass text")
    if not data and not file_id:
        raise InvalidMessage(
            f"content part {part!r:.160} is incomplete: a part of type 'file' needs "
            f"{_NEEDS['file']}"
        )
    inline = split_data_url(data) if data else None
    return FilePart(
        media_type=inline.media_type if inline else None,
        name=name,
        data=inline.data if inline else data,
        file_id=file_id,
        extra=_extra(part, "type", "file", file=fields),
    )


def _fields(message: JsonObject) -> Iterable[OtherPart]:
    """Yield the fields of an answer that do not become parts of their own."""
    known = MESSAGE_FIELDS - {"audio", "function_call"} | _RECORD_FIELDS
    rest = {key: value for key, value in message.items() if key not in known}
    rest = {key: value for key, value in rest.items() if value not in (None, "", [], {})}
    if rest:
        yield OtherPart(dialect="openai", raw=dumps(rest), scope="message")


def _refusal(message: JsonObject) -> Iterable[TextPart]:
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        yield TextPart(text=refusal, extra=Extra(dialect="openai", raw='{"type":"refusal"}'))


def _tool_calls(message: JsonObject) -> Iterable[ToolCallPart]:
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list):
        raise InvalidMessage(f"tool_calls {calls!r:.80} is not a list: pass a list of calls")
    return map(_tool_call, calls)


def _tool_call(call: object) -> ToolCallPart:
    fields: JsonObject = call if isinstance(call, dict) else {}
    kind = "custom" if isinstance(fields.get("custom"), dict) else "function"
    body: JsonObject = dict(_object(fields.get(kind)))
    id_, name = fields.get("id"), body.pop("name", None)
    arguments = body.pop("input" if kind == "custom" else "arguments", None)
    is_complete = all(isinstance(value, str) and value for value in (id_, name))
    if not is_complete or arguments is None:
        raise InvalidMessage(
            f"tool call {call!r:.160} is incomplete: it needs id, function.name and "
            "function.arguments"
        )
    as_text = kind == "function" and isinstance(arguments, str)
    known = ("id", kind, "type") if kind == "function" else ("id", kind)
    extra = _extra({"type": kind, **_present(fields)}, *known, **{kind: body})
    text = arguments if as_text else dumps(arguments)
    return ToolCallPart(id=str(id_), name=str(name), arguments=text, extra=extra)


def _object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _present(fields: JsonObject) -> JsonObject:
    return {key: value for key, value in fields.items() if value is not None}


def _tool_result(data: JsonObject) -> ToolResultPart:
    call_id = data.get("tool_call_id")
    if not isinstance(call_id, str) or not call_id:
        raise InvalidMessage(
            f"a tool message has tool_call_id {call_id!r:.80}: name the call that it answers"
        )
    inner = tuple(
        part
        for part in _content(data.get("content"))
        if isinstance(part, TextPart | ImagePart | FilePart | OtherPart)
    )
    return ToolResultPart(call_id=call_id, content=inner)


def _media(result: ToolResultPart) -> tuple[Part, ...]:
    media = tuple(part for part in result.content if isinstance(part, ImagePart | FilePart))
    if not media:
        return ()
    return (TextPart(text=f"[from the result of tool call {result.call_id}]"), *media)


def _render_result(part: ToolResultPart, name: str | None) -> JsonObject:
    texts: tuple[Part, ...] = tuple(
        p for p in part.content if not isinstance(p, ImagePart | FilePart)
    )
    if part.is_error:
        texts = _mark_error(texts)
    message: JsonObject = {"role": "tool", "tool_call_id": part.call_id}
    if name and _NAME.fullmatch(name):
        message["name"] = name
    message["content"] = _render_content("tool", texts) or ""
    return message


def _mark_error(content: tuple[Part, ...]) -> tuple[Part, ...]:
    if content and isinstance(content[0], TextPart):
        return (replace(content[0], text=f"{ERROR_MARK}\n{content[0].text}"), *content[1:])
    return (TextPart(text=ERROR_MARK), *content)


def _render_call(part: ToolCallPart) -> JsonObject:
    extra = extra_fields(part, "openai")
    inner = extra.pop("function", None) or extra.pop("custom", None) or {}
    if extra.get("type") == "custom":
        body = {"name": part.name, "input": json.loads(part.arguments), **inner}
        return {"id": part.id, **extra, "custom": body}
    function = {"name": part.name, "arguments": part.arguments, **inner}
    return {"id": part.id, "type": "function", "function": function, **extra}


def _render_content(role: Role, content: tuple[Part, ...]) -> str | list[JsonObject] | None:
    blocks = _render_parts(role, content)
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"} and blocks[0]["type"] == "text":
        text: str = blocks[0]["text"]
        return text
    return blocks or None


def _render_parts(role: Role, content: tuple[Part, ...]) -> list[JsonObject]:
    parts = [part for part in content if not isinstance(part, ToolCallPart | ToolResultPart)]
    return [block for part in parts if (block := _render_part(role, part)) is not None]


def _render_part(role: Role, part: Part) -> JsonObject | None:
    match part:
        case TextPart():
            extra = extra_fields(part, "openai")
            if extra.get("type") == "refusal" and role == "assistant":
                return {**extra, "refusal": part.text}
            extra.pop("type", None)
            return {"type": "text", "text": part.text, **extra}
        case ImagePart() if role == "user":
            return _render_image(part)
        case FilePart() if role == "user" and (part.data is not None or part.file_id is not None):
            return _render_file(part)
        case OtherPart(dialect="openai", scope="part") if _is_for(role, part.type):
            return part.value
        case _:
            text = stand_in(part)
            return None if text is None else {"type": "text", "text": text}


def _is_for(role: Role, kind: str) -> bool:
    """Return whether a role may have a part of a type unknown to us: inputs are the user's."""
    return bool(kind) and (role == "user" or not kind.startswith("input_"))


def _render_image(part: ImagePart) -> JsonObject:
    content = payload(part)
    extra = extra_fields(part, "openai")
    image = {"url": content.url if content else part.url, **extra.pop("image_url", {})}
    return {"type": "image_url", "image_url": image, **extra}


def _render_file(part: FilePart) -> JsonObject:
    content = payload(part)
    extra = extra_fields(part, "openai")
    data = None
    if content is not None:
        data = content.url if content.media_type else content.data
    fields = {"filename": part.name, "file_data": data, "file_id": part.file_id}
    file = {key: value for key, value in fields.items() if value is not None}
    return {"type": "file", "file": {**file, **extra.pop("file", {})}, **extra}
