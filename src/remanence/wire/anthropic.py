"""Parser and renderer for messages of Anthropic's Messages API.

Shapes: the reference of `POST /v1/messages`, parameters `messages` and `content`.
"""

import base64
import hashlib
import re

from remanence.errors import InvalidMessage
from remanence.wire.json_value import JsonObject, dumps, json_object, loads
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
    NOTHING_READABLE,
    SYSTEM_MARK,
    Payload,
    extra_fields,
    payload,
    stand_in,
)

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
"""The ids and names of tool calls that the API accepts."""

_IMAGE_TYPES = {
    "image/jpeg": "image/jpeg",
    "image/jpg": "image/jpeg",
    "image/png": "image/png",
    "image/gif": "image/gif",
    "image/webp": "image/webp",
}


def parse(data: object) -> ParsedMessage:
    """Read one message; blocks of unknown types and unknown fields of blocks are kept."""
    message = json_object(data, "message")
    role = message.get("role")
    if role not in ("user", "assistant", "system"):
        raise InvalidMessage(f"role {role!r:.80} is unknown: use 'user' or 'assistant'")
    known: Role = role
    content = _content(message.get("content"))
    only_results = bool(content) and all(isinstance(part, ToolResultPart) for part in content)
    return ParsedMessage("tool" if only_results else known, content, None)


def render(
    role: Role,
    content: tuple[Part, ...],
    name: str | None = None,
    *,
    system_role: bool = False,
) -> list[JsonObject]:
    """Write a message's blocks; tool results and system text go to a user turn.

    The protocol has no field for a speaker's name, so it is put before the first text. With
    *system_role* system text keeps its role, which not every model accepts.
    """
    blocks = [block for part in content if (block := _render_part(part)) is not None]
    if not blocks and content:
        blocks = [_text(NOTHING_READABLE)]
    if not blocks:
        return []
    if role == "system" and system_role:
        texts = [block for block in blocks if block["type"] == "text"]
        return [{"role": "system", "content": texts}]
    if role == "system":
        blocks.insert(0, _text(SYSTEM_MARK))
    if name and role == "user" and (shown := label(name)):
        _prefix(blocks, shown)
    if role == "assistant":
        return [{"role": role, "content": blocks}]
    return [{"role": "user", "content": results_first(blocks)}]


def results_first(blocks: list[JsonObject]) -> list[JsonObject]:
    """Sort the blocks of a user turn into the order that the API requires."""
    return sorted(blocks, key=lambda block: block["type"] != "tool_result")


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _prefix(blocks: list[JsonObject], name: str) -> None:
    for block in blocks:
        if block["type"] == "text":
            block["text"] = f"{name}: {block['text']}"
            return
    results = sum(block["type"] == "tool_result" for block in blocks)
    blocks.insert(results, _text(f"{name}:"))


def _content(content: object) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (TextPart(text=content),) if content else ()
    if not isinstance(content, list):
        raise InvalidMessage(
            f"content is of type {type(content).__name__!r}: pass a string or a list of blocks"
        )
    return tuple(parse_part(block) for block in content)


def parse_part(data: object) -> Part:
    """Read one content block."""
    if not isinstance(data, dict):
        raise InvalidMessage(
            f"content block {data!r:.80} is not an object: pass {{'type': ..., ...}}"
        )
    block = {k: v for k, v in data.items() if k != "cache_control" and v is not None}
    match block:
        case {"type": "text", "text": str(text)}:
            return TextPart(text=text, extra=_extra(block, "text"))
        case {"type": "tool_use", "id": str(id_), "name": str(name)} if id_ and name:
            arguments = dumps(_input(block.get("input", {})))
            extra = _extra(block, "id", "name", "input")
            return ToolCallPart(id=id_, name=name, arguments=arguments, extra=extra)
        case {"type": "tool_result", "tool_use_id": str(call_id)} if call_id:
            return _tool_result(call_id, block)
        case {"type": "image", "source": dict(source)}:
            return _image(source, block)
        case {"type": "document", "source": dict(source)}:
            return _document(source, block)
        case {"type": "text" | "tool_use" | "tool_result" | "image" | "document"}:
            raise InvalidMessage(
                f"content block {data!r:.160} is incomplete: a {block['type']} block needs "
                f"{_NEEDS[block['type']]}"
            )
        case {"type": str(kind)} if kind:
            return OtherPart(dialect="anthropic", raw=dumps(block))
        case _:
            raise InvalidMessage(f"content block {data!r:.80} has no type: add 'type': 'text'")


_NEEDS = {
    "text": "text, a string",
    "tool_use": "id and name, strings, and input, an object",
    "tool_result": "tool_use_id, a string",
    "image": "source, an object",
    "document": "source, an object",
}


def _extra(block: JsonObject, *known: str) -> Extra | None:
    rest = {key: value for key, value in block.items() if key != "type" and key not in known}
    return Extra(dialect="anthropic", raw=dumps(rest, sort_keys=True)) if rest else None


def _input(value: object) -> JsonObject:
    if not isinstance(value, dict):
        raise InvalidMessage(f"input {value!r:.80} of a tool_use block is not an object")
    return value


def _tool_result(call_id: str, block: JsonObject) -> ToolResultPart:
    inner: list[ResultPart] = []
    for part in _content(block.get("content", "")):
        if isinstance(part, ToolCallPart | ToolResultPart):
            raise InvalidMessage(f"the result of tool call {call_id!r} holds a tool call or result")
        inner.append(part)
    return ToolResultPart(
        call_id=call_id,
        content=tuple(inner),
        is_error=bool(block.get("is_error")),
        extra=_extra(block, "tool_use_id", "content", "is_error"),
    )


def _image(source: JsonObject, block: JsonObject) -> Part:
    extra = _extra(block, "source")
    match source:
        case {"type": "base64", "media_type": str(media_type), "data": str(data), **rest} if (
            not rest
        ):
            return ImagePart(media_type=media_type, data=data, extra=extra)
        case {"type": "url", "url": str(url), **rest} if not rest:
            return ImagePart(url=url, extra=extra)
        case _:
            return OtherPart(dialect="anthropic", raw=dumps(block))


def _document(source: JsonObject, block: JsonObject) -> Part:
    title = block.get("title")
    name = title if isinstance(title, str) and title else None
    extra = _extra(block, "source", *(["title"] if name else []))
    match source:
        case {"type": "base64", "media_type": "application/pdf", "data": str(data), **rest} if (
            not rest
        ):
            return FilePart(media_type="application/pdf", name=name, data=data, extra=extra)
        case {"type": "text", "media_type": "text/plain", "data": str(text), **rest} if (
            text.strip() and not rest
        ):
            return FilePart(media_type="text/plain", name=name, data=_encode(text), extra=extra)
        case {"type": "url", "url": str(url), **rest} if not rest:
            return FilePart(name=name, url=url, extra=extra)
        case _:
            return OtherPart(dialect="anthropic", raw=dumps(block))


def _encode(text: str) -> str:
    try:
        return base64.b64encode(text.encode()).decode()
    except UnicodeEncodeError as error:
        raise InvalidMessage(f"a document's text is not Unicode ({error}): decode it") from error


def _render_part(part: Part) -> JsonObject | None:
    match part:
        case TextPart():
            block = {**_text(part.text), **extra_fields(part, "anthropic")}
            return block if part.text.strip() else None
        case ToolCallPart():
            return {
                "type": "tool_use",
                "id": _acceptable_name(part.id),
                "name": _acceptable_name(part.name),
                "input": _arguments(part.arguments),
                **extra_fields(part, "anthropic"),
            }
        case ToolResultPart():
            return _render_result(part)
        case ImagePart():
            return _render_image(part)
        case FilePart():
            return _render_file(part)
        case OtherPart(dialect="anthropic", scope="part") if part.type:
            return part.value
        case _:
            text = stand_in(part)
            return None if text is None else _text(text)


def _acceptable_name(name: str) -> str:
    """Return the id or name if the API accepts it, otherwise one derived from it."""
    if _NAME.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:12]
    return f"{re.sub('[^a-zA-Z0-9_-]', '_', name)[:48]}_{digest}"


def _arguments(text: str) -> JsonObject:
    """Return the call's arguments as an object, as the API requires; other values are wrapped."""
    try:
        value = loads(text or "{}")
    except ValueError:
        return {"arguments": text}
    return value if isinstance(value, dict) else {"arguments": value}


def _render_result(part: ToolResultPart) -> JsonObject:
    block: JsonObject = {"type": "tool_result", "tool_use_id": _acceptable_name(part.call_id)}
    rendered = (_render_part(item) for item in part.content)
    inner = [item for item in rendered if item is not None]
    if len(inner) == 1 and inner[0].keys() == {"type", "text"}:
        block["content"] = inner[0]["text"]
    elif inner:
        block["content"] = inner
    if part.is_error:
        block["is_error"] = True
    return {**block, **extra_fields(part, "anthropic")}


def _render_image(part: ImagePart) -> JsonObject:
    source = _image_source(payload(part)) or _url_source(part.url)
    if source is None:
        return _text(stand_in(part) or "")
    return {"type": "image", "source": source, **extra_fields(part, "anthropic")}


def _image_source(content: Payload | None) -> JsonObject | None:
    media_type = _IMAGE_TYPES.get(content.kind) if content else None
    if content is None or media_type is None:
        return None
    return {"type": "base64", "media_type": media_type, "data": content.data}


def _url_source(url: str | None) -> JsonObject | None:
    if url is None or not url.lower().startswith(("https://", "http://")):
        return None
    return {"type": "url", "url": url}


def _render_file(part: FilePart) -> JsonObject:
    content = payload(part)
    if image := _image_source(content):
        return {"type": "image", "source": image}
    source = _document_source(content, part.name) or _url_source(part.url)
    if source is None:
        return _text(stand_in(part) or "")
    title = {"title": part.name} if part.name else {}
    return {"type": "document", "source": source, **title, **extra_fields(part, "anthropic")}


def _document_source(content: Payload | None, name: str | None) -> JsonObject | None:
    """Return the source of a PDF or a text; the API accepts no other data."""
    if content is None:
        return None
    is_pdf = content.data.startswith("JVBERi") or (name or "").lower().endswith(".pdf")
    if content.kind == "application/pdf" or (not content.kind and is_pdf):
        return {"type": "base64", "media_type": "application/pdf", "data": content.data}
    text = content.text
    if text is None or not text.strip():
        return None
    return {"type": "text", "media_type": "text/plain", "data": text}
