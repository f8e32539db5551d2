"""Parser and renderer for items of OpenAI's Responses API.

Shapes: the reference of `POST /responses`, parameter `input` and field `output`.
"""

import json
from collections.abc import Iterator
from itertools import groupby

from remanence.errors import InvalidMessage
from remanence.wire.json_value import JsonObject, dumps, json_value
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

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})
_OF_THE_HOST = ("_output", "_response")
"""Suffixes of the types of further items that a host sends."""

_NULLABLE = frozenset({"code", "outputs", "result", "error"})
"""Fields of items that the reference requires even if they are null."""


def parse(data: object) -> tuple[ParsedMessage, ...]:
    """Read items: text, one item, a list of items, or a response.

    Successive items of the model, such as reasoning, calls and text, become one message.
    """
    value = json_value(data, "input")
    if isinstance(value, str):
        value = [{"role": "user", "content": value}]
    if isinstance(value, dict):
        value = value["output"] if isinstance(value.get("output"), list) else [value]
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
    """Write a message as items; a speaker's name is put before the first text."""
    if name and role == "user" and (shown := label(name)):
        content = _prefix_name(content, shown)
    items = list(_assistant_items(content) if role == "assistant" else _host_items(role, content))
    return items or [{"role": "user" if role == "tool" else role, "content": NOTHING_READABLE}]


def parse_part(data: JsonObject) -> Part:
    """Read one content part, or an item that is not a message."""
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
    name, content = item.get("role"), item.get("content")
    role = _ROLES.get(name) if isinstance(name, str) else None
    if role is None:
        raise InvalidMessage(f"role {name!r:.80} is unknown: use one of {sorted(_ROLES)}")
    if isinstance(content, str):
        content = [{"type": "input_text", "text": content}] if content else []
    if not isinstance(content, list):
        raise InvalidMessage(
            f"content is of type {type(content).__name__!r}: pass a string or a list of parts"
        )
    fields: JsonObject = {}
    if role == "assistant":
        fields = {k: v for k, v in item.items() if k not in ("type", "role", "content")}
    return role, tuple(_part(part, fields) for part in content)


def _part(part: object, item: JsonObject | None = None) -> Part:
    if not isinstance(part, dict):
        raise InvalidMessage(f"content part {part!r:.80} is not an object: pass {{'type': ...}}")
    data = {k: v for k, v in part.items() if k != "prompt_cache_breakpoint" and v is not None}
    match data:
        case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
            return TextPart(text=text, extra=_extra(_rest(data, "type", "text"), item))
        case {"type": "refusal", "refusal": str(text)}:
            return TextPart(text=text, extra=_extra(_rest(data, "refusal"), item))
        case {"type": "input_image", "image_url": str(url)} if url:
            # The reference requires `detail`; `auto` is the default.
            rest = {k: v for k, v in data.items() if (k, v) != ("detail", "auto")}
            inline, extra = split_data_url(url), _extra(_rest(rest, "type", "image_url"), item)
            if inline is None:
                return ImagePart(url=url, extra=extra)
            return ImagePart(media_type=inline.media_type, data=inline.data, extra=extra)
        case {"type": "input_file"}:
            return _file(data)
        case {"type": "input_text" | "output_text" | "text" | "refusal"}:
            raise InvalidMessage(f"content part {part!r:.160} is incomplete: it needs a text")
        case {"type": str(kind)} if kind:
            return OtherPart(dialect="openai_responses", raw=dumps(data))
        case _:
            raise InvalidMessage(f"content part {part!r:.80} has no type: add 'type'")


def _rest(data: JsonObject, *known: str) -> JsonObject:
    return {k: v for k, v in data.items() if k not in known and v not in (None, [], {})}


def _extra(part: JsonObject, item: JsonObject | None = None) -> Extra | None:
    fields = {"part": part, "item": item or {}}
    fields = {key: value for key, value in fields.items() if value}
    return Extra(dialect="openai_responses", raw=dumps(fields, sort_keys=True)) if fields else None


def _file(data: JsonObject) -> FilePart:
    name, content, url, file_id = (
        data.get(key) for key in ("filename", "file_data", "file_url", "file_id")
    )
    for value in (name, content, url, file_id):
        if value is not None and not isinstance(value, str):
            raise InvalidMessage(f"{value!r:.80} of a file part is not a string: pass text")
    if not (content or url or file_id):
        raise InvalidMessage(f"content part {data!r:.160} has no file: add file_data or file_id")
    inline = split_data_url(content) if content else None
    known = ("type", "filename", "file_data", "file_url", "file_id")
    return FilePart(
        media_type=inline.media_type if inline else None,
        name=name,
        data=inline.data if inline else content,
        url=url,
        file_id=file_id,
        extra=_extra(_rest(data, *known)),
    )


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
    fields = {k: v for k, v in item.items() if k not in known}
    return ToolCallPart(id=str(id_), name=str(name), arguments=text, extra=_extra(fields))


def _result(item: JsonObject) -> ToolResultPart:
    call_id, output = item.get("call_id"), item.get("output")
    if not isinstance(call_id, str) or not call_id:
        raise InvalidMessage(f"item {item!r:.160} has no call_id: name the call that it answers")
    if isinstance(output, str):
        output = [{"type": "input_text", "text": output}] if output else []
    if not isinstance(output, list):
        raise InvalidMessage(
            f"the output of call {call_id!r:.80} is a {type(output).__name__}: pass a string or a "
            "list of parts"
        )
    content: list[ResultPart] = []
    for part in map(_part, output):
        if isinstance(part, ToolCallPart | ToolResultPart):
            raise InvalidMessage(f"the output of call {call_id!r:.80} holds a tool call or result")
        content.append(part)
    known = ("call_id", "output", *(["type"] if item["type"] == "function_call_output" else []))
    fields = {k: v for k, v in item.items() if k not in known}
    return ToolResultPart(call_id=call_id, content=tuple(content), extra=_extra(fields))


def _prefix_name(content: tuple[Part, ...], name: str) -> tuple[Part, ...]:
    for index, part in enumerate(content):
        if isinstance(part, TextPart):
            named = TextPart(text=f"{name}: {part.text}", extra=part.extra)
            return (*content[:index], named, *content[index + 1 :])
    return (*content, TextPart(text=f"{name}:"))


def _fields(part: Part, place: str) -> JsonObject:
    value = extra_fields(part, "openai_responses").get(place)
    return dict(value) if isinstance(value, dict) else {}


def _assistant_items(content: tuple[Part, ...]) -> Iterator[JsonObject]:
    for item, parts in groupby(content, key=_message_of):
        if item is None:
            for part in parts:
                yield from _assistant_item(part)
            continue
        texts = [_output_part(part) for part in parts if isinstance(part, TextPart)]
        status = {"status": "completed", **json.loads(item)}
        yield {"type": "message", "role": "assistant", **status, "content": texts}


def _message_of(part: Part) -> str | None:
    """Return the fields of the output message of a text, None if that has no id."""
    fields = _fields(part, "item") if isinstance(part, TextPart) else {}
    return dumps(fields) if "id" in fields else None


def _output_part(part: TextPart) -> JsonObject:
    extra = _fields(part, "part")
    if extra.get("type") == "refusal":
        return {**extra, "refusal": part.text}
    return {"type": "output_text", "text": part.text, "annotations": [], **extra}


def _assistant_item(part: Part) -> Iterator[JsonObject]:
    match part:
        case ToolCallPart():
            extra = _fields(part, "part")
            call = {"call_id": part.id, "name": part.name}
            if extra.get("type") == "custom_tool_call":
                yield {**extra, **call, "input": json.loads(part.arguments)}
            else:
                yield {"type": "function_call", **call, "arguments": part.arguments, **extra}
        case OtherPart(dialect="openai_responses", scope="message"):
            yield part.value
        case TextPart(text=text) if not text.strip():
            return
        case _:
            shown = stand_in(part)
            if shown is not None:
                yield {"role": "assistant", **_fields(part, "item"), "content": shown}


def _host_items(role: Role, content: tuple[Part, ...]) -> Iterator[JsonObject]:
    parts: list[Part] = []
    for part in content:
        if isinstance(part, ToolResultPart):
            yield _result_item(part)
        elif isinstance(part, OtherPart) and _is_item(part):
            yield part.value
        else:
            parts.append(part)
    blocks = [block for part in parts if (block := _input_part(part)) is not None]
    if blocks:
        yield {"role": "user" if role == "tool" else role, "content": _shortest(blocks)}


def _is_item(part: OtherPart) -> bool:
    return part.dialect == "openai_responses" and part.scope == "message"


def _result_item(part: ToolResultPart) -> JsonObject:
    blocks = [block for item in part.content if (block := _input_part(item)) is not None]
    if part.is_error and blocks and blocks[0]["type"] == "input_text":
        blocks[0] = {**blocks[0], "text": f"{ERROR_MARK}\n{blocks[0]['text']}"}
    elif part.is_error:
        blocks.insert(0, {"type": "input_text", "text": ERROR_MARK})
    item = {"type": "function_call_output", "call_id": part.call_id}
    return {**item, "output": _shortest(blocks) if blocks else "", **_fields(part, "part")}


def _shortest(blocks: list[JsonObject]) -> str | list[JsonObject]:
    if len(blocks) == 1 and blocks[0].keys() == {"type", "text"}:
        text: str = blocks[0]["text"]
        return text
    return blocks


def _input_part(part: Part) -> JsonObject | None:
    extra = _fields(part, "part")
    match part:
        case TextPart():
            extra.pop("type", None)
            return {"type": "input_text", "text": part.text, **extra} if part.text else None
        case ImagePart():
            content = payload(part)
            url = content.url if content else part.url
            return {"type": "input_image", "detail": "auto", "image_url": url, **extra}
        case FilePart() if part.data or part.url or part.file_id:
            return _input_file(part, extra)
        case OtherPart(dialect="openai_responses", scope="part"):
            return part.value
        case _:
            text = stand_in(part)
            return None if text is None else {"type": "input_text", "text": text}


def _input_file(part: FilePart, extra: JsonObject) -> JsonObject:
    content = payload(part)
    data = None
    if content is not None:
        data = content.url if content.media_type else content.data
    fields = {
        "filename": part.name,
        "file_data": data,
        "file_url": part.url,
        "file_id": part.file_id,
    }
    present = {key: value for key, value in fields.items() if value is not None}
    return {"type": "input_file", **present, **extra}
