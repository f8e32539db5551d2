"""Parser and renderer for items of OpenAI's Responses API.

Shapes: the reference of `POST /responses`, parameter `input` and field `output`.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from remanence.errors import InvalidMessage
from remanence.wire.content import (
    NOTHING_READABLE,
    as_text,
    extra_fields,
    image_url,
    is_remote,
    mark_error,
    payload,
    put_name_first,
    read_content,
    read_extra,
    read_fields,
    read_other,
    shortest,
)
from remanence.wire.json_value import JsonObject, dumps, json_value
from remanence.wire.openai import CLIENT_FIELDS, read_file, read_image, read_role, render_file
from remanence.wire.parts import (
    Extra,
    FilePart,
    ImagePart,
    OtherPart,
    ParsedMessage,
    Part,
    ResultPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})
_OF_THE_HOST = ("_output", "_response")
"""Suffixes of the types of other items that a host sends."""

_NULLABLE = frozenset({"code", "outputs", "result", "error"})
"""Fields of items that the reference requires even if they are null."""

_NEEDS = dict.fromkeys(("input_text", "output_text", "text", "refusal"), "a text")
_FILE_FIELDS = {"filename": "name", "file_data": "data", "file_url": "url", "file_id": "file_id"}


def parse(data: object) -> tuple[ParsedMessage, ...]:
    """Parse text, one item, a list of items, or a response.

    Successive items of the model, such as reasoning, calls and text, become one message.
    """
    value = json_value(data, "input")
    if isinstance(data, str):
        value = [{"role": "user", "content": data}]
    if isinstance(value, dict):
        is_item = "type" in value or not isinstance(value.get("output"), list)
        value = [value] if is_item else value["output"]
    if not isinstance(value, list):
        raise InvalidMessage(
            f"input {data!r:.80} is a {type(data).__name__}: pass items, a response or text"
        )
    messages: list[ParsedMessage] = []
    for item in value:
        role, parts = _item(item)
        if role == "assistant" and messages and messages[-1].role == "assistant":
            messages[-1] = messages[-1]._replace(content=(*messages[-1].content, *parts))
        else:
            messages.append(ParsedMessage(role, parts, None))
    return tuple(messages)


def render(role: Role, content: tuple[Part, ...], name: str | None = None) -> list[JsonObject]:
    """Render a message as items."""
    if role == "user":
        content = put_name_first(content, name)
    items = list(_assistant_items(content) if role == "assistant" else _host_items(role, content))
    return items or [{"role": "user" if role == "tool" else role, "content": NOTHING_READABLE}]


def with_types_of_calls(items: list[JsonObject]) -> list[JsonObject]:
    """Give the outputs of functions and custom tools the types of their calls."""
    types = {item["call_id"]: item["type"] for item in items if item.get("type") in _CALLS}
    return [
        {**item, "type": f"{types[item['call_id']]}_output"}
        if item.get("type") in _RESULTS and item["call_id"] in types
        else item
        for item in items
    ]


def parse_part(data: JsonObject) -> Part:
    """Parse one content part, or an item that is not a message."""
    if "content" in data and "role" in data:
        raise InvalidMessage(f"part {data!r:.80} is a message: read it as one")
    kind = data.get("type")
    if isinstance(kind, str) and (kind in _CALLS or kind in _RESULTS):
        return _item(data)[1][0]
    return _part(data)


def _item(item: object) -> tuple[Role, tuple[Part, ...]]:
    if not isinstance(item, dict):
        raise InvalidMessage(f"item {item!r:.80} is not an object: pass {{'type': ..., ...}}")
    fields = {k: v for k, v in item.items() if v is not None or k in _NULLABLE}
    kind = fields.get("type", "message" if "role" in fields else None)
    if not isinstance(kind, str) or not kind:
        raise InvalidMessage(f"item {item!r:.80} has no type: add 'type': 'message'")
    if kind == "message":
        return _message(fields)
    if kind in _CALLS:
        return "assistant", (_call(fields, kind),)
    if kind in _RESULTS:
        return "tool", (_result(fields),)
    other = OtherPart(dialect="openai_responses", raw=dumps(fields), scope="message")
    return "user" if kind.endswith(_OF_THE_HOST) else "assistant", (other,)


def _message(item: JsonObject) -> tuple[Role, tuple[Part, ...]]:
    role = read_role(item.get("role"), _ROLES)
    fields: JsonObject = {}
    if role == "assistant":
        fields = {k: v for k, v in item.items() if k not in ("type", "role", "content")}
    content = item.get("content")
    if isinstance(content, str) and content:
        content = [{"type": "input_text", "text": content}]
    return role, read_content(content, lambda part: _part(part, fields))


def _part(part: object, item: JsonObject | None = None) -> ResultPart:
    data = read_fields(part, mark="prompt_cache_breakpoint")
    match data:
        case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
            return TextPart(text=text, extra=_extra(data, "type", "text", item=item))
        case {"type": "refusal", "refusal": str(text)}:
            return TextPart(text=text, extra=_extra(data, "refusal", item=item))
        case {"type": "input_image", "image_url": str(url)} if url:
            if data.get("detail") == "auto":  # the default, which the reference requires
                del data["detail"]
            return read_image(url, _extra(data, "type", "image_url", item=item))
        case {"type": "input_file", **fields}:
            file, rest = read_file(fields, _FILE_FIELDS)
            return replace(file, extra=_extra(rest))
        case _:
            return read_other(data, "openai_responses", _NEEDS)


def _extra(fields: JsonObject, *known: str, item: JsonObject | None = None) -> Extra | None:
    known = (*known, *CLIENT_FIELDS)
    part = {k: v for k, v in fields.items() if k not in known and v not in ([], {})}
    return read_extra("openai_responses", {}, part=part, item=item or {})


def _call(item: JsonObject, kind: str) -> ToolCallPart:
    id_, name, arguments = item.get("call_id"), item.get("name"), item.get(_CALLS[kind])
    if not all(isinstance(value, str) and value for value in (id_, name)) or not isinstance(
        arguments, str
    ):
        raise InvalidMessage(
            f"item {item!r:.160} is incomplete: a {kind} needs call_id, name and {_CALLS[kind]}"
        )
    known = ("call_id", "name", _CALLS[kind], *(["type"] if kind == "function_call" else []))
    text = arguments if kind == "function_call" else dumps(arguments)
    return ToolCallPart(id=str(id_), name=str(name), arguments=text, extra=_item_extra(item, known))


def _result(item: JsonObject) -> ToolResultPart:
    call_id = item.get("call_id")
    if not isinstance(call_id, str) or not call_id:
        raise InvalidMessage(f"item {item!r:.160} has no call_id: name the call that it answers")
    known = ("call_id", "output", *(["type"] if item["type"] == "function_call_output" else []))
    what = f"the output of call {call_id!r:.80}"
    content = read_content(item.get("output"), _part, what=what)
    return ToolResultPart(call_id=call_id, content=content, extra=_item_extra(item, known))


def _item_extra(item: JsonObject, known: tuple[str, ...]) -> Extra | None:
    fields = {k: v for k, v in item.items() if k not in (*known, *CLIENT_FIELDS)}
    return read_extra("openai_responses", {}, part=fields)


def _fields(part: Part, place: str) -> JsonObject:
    value = extra_fields(part, "openai_responses").get(place)
    return dict(value) if isinstance(value, dict) else {}


def _assistant_items(content: tuple[Part, ...]) -> Iterator[JsonObject]:
    for item, parts in groupby(content, key=_message_fields):
        if item is None:
            yield from filter(None, map(_assistant_item, parts))
            continue
        texts = [_output_part(part) for part in parts if isinstance(part, TextPart)]
        fields = json.loads(item)
        if "id" in fields:
            fields = {"type": "message", "status": "completed", **fields}
        yield {"role": "assistant", **fields, "content": texts}


def _message_fields(part: Part) -> str | None:
    """Return the fields of a text's output message, or None if it has none."""
    if not isinstance(part, TextPart):
        return None
    fields = _fields(part, "item")
    return dumps(fields) if "id" in fields or _fields(part, "part") else None


def _output_part(part: TextPart) -> JsonObject:
    extra = _fields(part, "part")
    if extra.get("type") == "refusal":
        return {**extra, "refusal": part.text}
    return {"type": "output_text", "text": part.text, "annotations": [], **extra}


def _assistant_item(part: Part) -> JsonObject | None:
    match part:
        case ToolCallPart():
            extra = _fields(part, "part")
            call = {"call_id": part.id, "name": part.name}
            if extra.get("type") == "custom_tool_call":
                value = json.loads(part.arguments)
                text = value if isinstance(value, str) else part.arguments  # as in an excerpt
                return {**extra, **call, "input": text}
            return {"type": "function_call", **call, "arguments": part.arguments, **extra}
        case OtherPart(dialect="openai_responses", scope="message"):
            return part.value
        case OtherPart(dialect="openai_responses", scope="part"):
            return {"role": "assistant", "content": [part.value]}
        case TextPart(text=text) if not text.strip():
            return None
        case _:
            shown = as_text(part)
            if shown is None:
                return None
            return {"role": "assistant", **_fields(part, "item"), "content": shown}


def _host_items(role: Role, content: tuple[Part, ...]) -> Iterator[JsonObject]:
    blocks: list[JsonObject] = []
    for part in content:
        match part:
            case ToolResultPart():
                inner = mark_error(part.content) if part.is_error else part.content
                output = shortest(list(filter(None, map(_input_part, inner)))) or ""
                item = {"type": "function_call_output", "call_id": part.call_id, "output": output}
                yield item | _fields(part, "part")
            case OtherPart(dialect="openai_responses", scope="message"):
                yield part.value
            case _ if block := _input_part(part):
                blocks.append(block)
    if blocks:
        yield {"role": "user" if role == "tool" else role, "content": shortest(blocks)}


def _input_part(part: Part) -> JsonObject | None:
    extra = _fields(part, "part")
    match part:
        case TextPart():
            extra.pop("type", None)
            return {"type": "input_text", "text": part.text, **extra} if part.text else None
        case ImagePart() if url := image_url(part):
            return {"type": "input_image", "detail": "auto", "image_url": url, **extra}
        case FilePart(media_type=kind) if not (kind or "").startswith(("audio/", "video/")) and (
            payload(part) or part.file_id or is_remote(part)
        ):
            return {"type": "input_file", **render_file(part, _FILE_FIELDS), **extra}
        case OtherPart(dialect="openai_responses", scope="part"):
            return part.value
        case _:
            text = as_text(part)
            return None if text is None else {"type": "input_text", "text": text}
