"""Parser and renderer for messages of Anthropic's Messages API.

Shapes: the reference of `POST /v1/messages`, parameters `messages` and `content`.
"""

import base64

from remanence.errors import InvalidMessage
from remanence.wire.call_names import acceptable_name
from remanence.wire.content import (
    ERROR_MARK,
    NOTHING_READABLE,
    SYSTEM_MARK,
    Payload,
    arguments_object,
    as_text,
    extra_fields,
    payload,
    present,
    put_name_first,
    read_content,
    read_extra,
    read_fields,
    read_other,
    read_result_parts,
    shortest,
)
from remanence.wire.json_value import JsonObject, dumps, json_object, require_type
from remanence.wire.parts import (
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

MAX_NAME_CHARS = 128
"""The longest ids and names of tool calls that the API accepts."""

_IMAGE_TYPES = {f"image/{kind}": f"image/{kind}" for kind in ("jpeg", "png", "gif", "webp")}
_IMAGE_TYPES["image/jpg"] = "image/jpeg"

_NEEDS = {
    "text": "text, a string",
    "tool_use": "id and name, strings, and input, an object",
    "tool_result": "tool_use_id, a string",
    "image": "source, an object",
    "document": "source, an object",
}


def parse(data: object) -> ParsedMessage:
    """Parse one message, keeping blocks of unknown types and unknown fields of blocks."""
    message = json_object(data, "message")
    role = message.get("role")
    if role not in ("user", "assistant", "system"):
        raise InvalidMessage(f"role {role!r:.80} is unknown: use 'user' or 'assistant'")
    known: Role = role
    content = read_content(message.get("content"), parse_part)
    only_results = bool(content) and all(isinstance(part, ToolResultPart) for part in content)
    return ParsedMessage("tool" if only_results else known, content, None)


def render(
    role: Role, content: tuple[Part, ...], name: str | None = None, *, system_role: bool = False
) -> list[JsonObject]:
    """Render a message's blocks; tool results and system text go to a user turn.

    With *system_role*, system text keeps its role, which not every model accepts.
    """
    if not content:
        return []
    if role == "user":
        content = put_name_first(content, name)
    if role == "system" and system_role:  # which allows only text
        content = tuple(
            part if isinstance(part, TextPart) else TextPart(text=as_text(part) or "")
            for part in content
        )
    if role == "assistant":  # which allows no images and files
        content = tuple(
            TextPart(text=as_text(part) or "") if isinstance(part, ImagePart | FilePart) else part
            for part in content
        )
    blocks = list(filter(None, map(_render_part, content))) or [_text(NOTHING_READABLE)]
    if role == "assistant":
        return [{"role": role, "content": blocks}]
    if role == "system" and system_role:
        return [{"role": "system", "content": blocks}]
    if role == "system":
        blocks.insert(0, _text(SYSTEM_MARK))
    return [{"role": "user", "content": results_first(blocks)}]


def results_first(blocks: list[JsonObject]) -> list[JsonObject]:
    """Put tool results first in a user turn, as the API requires."""
    return sorted(blocks, key=lambda block: block["type"] != "tool_result")


def parse_part(data: object) -> Part:
    """Read one content block."""
    block = read_fields(data, mark="cache_control")
    match block:
        case {"type": "text", "text": str(text)}:
            return TextPart(text=text, extra=read_extra("anthropic", block, "type", "text"))
        case {"type": "tool_use", "id": str(id_), "name": str(name)} if id_ and name:
            value = require_type(block.get("input", {}), dict, "the input of a tool_use block")
            extra = read_extra("anthropic", block, "type", "id", "name", "input")
            return ToolCallPart(id=id_, name=name, arguments=dumps(value), extra=extra)
        case {"type": "tool_result", "tool_use_id": str(call_id)} if call_id:
            known = ("type", "tool_use_id", "content", "is_error")
            inner = read_content(block.get("content", ""), parse_part)
            return ToolResultPart(
                call_id=call_id,
                content=read_result_parts(inner, call_id),
                is_error=bool(block.get("is_error")),
                extra=read_extra("anthropic", block, *known),
            )
        case {"type": "image", "source": dict(source)}:
            return _image(source, block)
        case {"type": "document", "source": dict(source)}:
            return _document(source, block)
        case _:
            return read_other(block, "anthropic", _NEEDS)


def _image(source: JsonObject, block: JsonObject) -> Part:
    extra = read_extra("anthropic", block, "type", "source")
    match source:
        case {"type": "base64", "media_type": str(kind), "data": str(data), **rest} if not rest:
            return ImagePart(media_type=kind, data=data, extra=extra)
        case {"type": "url", "url": str(url), **rest} if not rest:
            return ImagePart(url=url, extra=extra)
        case _:
            return OtherPart(dialect="anthropic", raw=dumps(block))


def _document(source: JsonObject, block: JsonObject) -> Part:
    title = block.get("title")
    name = title if isinstance(title, str) and title else None
    extra = read_extra("anthropic", block, "type", "source", *(["title"] if name else []))
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


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _render_part(part: Part) -> JsonObject | None:
    extra = extra_fields(part, "anthropic")
    match part:
        case TextPart():
            return {**_text(part.text), **extra} if part.text.strip() else None
        case ToolCallPart():
            id_, name = _acceptable_name(part.id), _acceptable_name(part.name)
            value = arguments_object(part.arguments)
            return {"type": "tool_use", "id": id_, "name": name, "input": value, **extra}
        case ToolResultPart():
            return {**_render_result(part), **extra}
        case ImagePart() | FilePart() if media := _render_media(part, extra):
            return media
        case OtherPart(dialect="anthropic", scope="part") if part.type:
            return part.value
        case _:
            text = as_text(part)
            return None if text is None else _text(text)


def _acceptable_name(name: str) -> str:
    return acceptable_name(name, max_chars=MAX_NAME_CHARS)


def _render_result(part: ToolResultPart) -> JsonObject:
    block: JsonObject = {"type": "tool_result", "tool_use_id": _acceptable_name(part.call_id)}
    content: tuple[ResultPart, ...] = part.content
    if part.is_error:  # the API requires text, and only text, in a failure
        block["is_error"] = True
        texts = (p if isinstance(p, TextPart) else TextPart(text=as_text(p) or "") for p in content)
        content = tuple(text for text in texts if text.text.strip())
        content = content or (TextPart(text=ERROR_MARK),)
    if inner := list(filter(None, map(_render_part, content))):
        block["content"] = shortest(inner)
    return block


def _render_media(part: ImagePart | FilePart, extra: JsonObject) -> JsonObject | None:
    """Render an image, a PDF, a text, or the URL of an image or PDF, all that the API accepts."""
    content = payload(part)
    if content and (media_type := _IMAGE_TYPES.get(content.kind)):
        image = {"type": "base64", "media_type": media_type, "data": content.data}
        return {"type": "image", "source": image, **(extra if isinstance(part, ImagePart) else {})}
    source = _document_source(content, part.name) if isinstance(part, FilePart) else None
    fits = isinstance(part, ImagePart) or part.media_type in (None, "", "application/pdf")
    if source is None and fits and (part.url or "").lower().startswith(("https://", "http://")):
        source = {"type": "url", "url": part.url}
    if source is None:
        return None
    if isinstance(part, ImagePart):
        return {"type": "image", "source": source, **extra}
    return {"type": "document", "source": source, **present({"title": part.name or None}), **extra}


def _document_source(content: Payload | None, name: str | None) -> JsonObject | None:
    """Return the source of a PDF or a text, the only file data that the API accepts."""
    if content is None:
        return None
    is_pdf = content.data.startswith("JVBERi") or (name or "").lower().endswith(".pdf")
    if content.kind == "application/pdf" or (not content.kind and is_pdf):
        return {"type": "base64", "media_type": "application/pdf", "data": content.data}
    text = content.text
    if text is None or not text.strip():
        return None
    return {"type": "text", "media_type": "text/plain", "data": text}
