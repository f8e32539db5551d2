"""Parser and renderer for Gemini's contents and parts.

Shapes: the reference of `generateContent`, fields `contents`, `Content` and `Part`. The renderer
writes the JSON names, such as `functionCall`; the parser also reads those of the Python client.
"""

import re
from collections import Counter
from collections.abc import Mapping

from remanence.errors import InvalidMessage
from remanence.wire.content import (
    NOTHING_READABLE,
    SYSTEM_MARK,
    arguments_object,
    as_text,
    extra_fields,
    payload,
    present,
    put_name_first,
    read_extra,
    read_result_parts,
)
from remanence.wire.json_value import JsonObject, dumps, json_object, require_type
from remanence.wire.parts import (
    FilePart,
    ImagePart,
    OtherPart,
    ParsedMessage,
    Part,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

NAMELESS_ID = "call:"
"""Prefix of generated ids for calls without one, which are never sent to the API."""

_KNOWN = ("text", "inlineData", "fileData", "functionCall", "functionResponse")
_WORD = re.compile(r"_([a-z0-9])")


def parse(data: object) -> ParsedMessage:
    """Parse one content, keeping parts of unknown kinds and unknown fields of parts.

    Calls and responses without an id get one from their name and their position among those of the
    same name.
    """
    content = json_object(data, "content")
    for other in ("candidates", "content"):
        if other in content and "parts" not in content:
            raise InvalidMessage(
                f"an object with {other} is not a content, which has parts: pass "
                "response.candidates[0].content"
            )
    role = content.get("role") or "user"
    if role not in ("user", "model", "function"):
        raise InvalidMessage(f"role {role!r:.80} is unknown: use 'user' or 'model'")
    values = require_type(content.get("parts") or [], list, "the field parts of a content")
    counts: Counter[str] = Counter()
    parts = tuple(parse_part(value, counts) for value in values)
    if role == "model":
        return ParsedMessage("assistant", parts, None)
    only_results = bool(parts) and all(isinstance(part, ToolResultPart) for part in parts)
    return ParsedMessage("tool" if only_results else "user", parts, None)


def render(
    role: Role,
    content: tuple[Part, ...],
    name: str | None = None,
    *,
    tools: Mapping[str, str] | None = None,
) -> JsonObject:
    """Render a message as a content; *tools* maps call ids to tool names, for results."""
    if role == "user":
        content = put_name_first(content, name)
    parts = list(filter(None, (_render_part(part, tools or {}) for part in content)))
    parts = parts or [{"text": NOTHING_READABLE}]
    if role == "system":
        parts.insert(0, {"text": SYSTEM_MARK})
    return {"role": "model" if role == "assistant" else "user", "parts": parts}


def parse_part(data: object, counts: Counter[str] | None = None) -> Part:
    """Parse one part; *counts* has the number of calls without an id so far, by name."""
    if not isinstance(data, dict):
        raise InvalidMessage(f"part {data!r:.80} is not an object: pass {{'text': ...}}")
    part = _camel(data)
    kinds = [key for key in part if key in _KNOWN]
    if len(kinds) > 1:
        raise InvalidMessage(f"part {data!r:.80} is of several kinds: give each its own part")
    if not kinds or part.get("thought"):
        if not part:
            raise InvalidMessage(f"part {data!r:.80} is empty: pass {{'text': ...}}")
        return OtherPart(dialect="gemini", raw=dumps(_whole(part)))
    (kind,) = kinds
    value = part.pop(kind)
    if kind == "text":
        text = require_type(value, str, "the text of a part")
        return TextPart(text=text, extra=read_extra("gemini", part))
    value = _camel(require_type(value, dict, f"the {kind} of a part"))
    if kind in ("inlineData", "fileData"):
        return _media(kind, value, part)
    read = _call if kind == "functionCall" else _response
    return read(value, part, Counter() if counts is None else counts)


def _camel(fields: JsonObject) -> JsonObject:
    return present({_WORD.sub(lambda found: found[1].upper(), k): v for k, v in fields.items()})


def _whole(part: JsonObject) -> JsonObject:
    return {
        key: _camel(value) if isinstance(value, dict) and key != "partMetadata" else value
        for key, value in part.items()
    }


def _name_and_id(value: JsonObject, counts: Counter[str]) -> tuple[str, str]:
    name, id_ = value.pop("name", None), value.pop("id", None) or None
    if not isinstance(name, str) or not name:
        raise InvalidMessage(f"a function call or response has the name {name!r:.80}: name it")
    if id_ is None:
        counts[name] += 1
        id_ = f"{NAMELESS_ID}{name}:{counts[name]}"
    return name, require_type(id_, str, "the id of a function call")


def _call(value: JsonObject, part: JsonObject, counts: Counter[str]) -> ToolCallPart:
    name, id_ = _name_and_id(value, counts)
    arguments = require_type(value.pop("args", {}), dict, "the field args of a function call")
    extra = read_extra("gemini", part, functionCall=value)
    return ToolCallPart(id=id_, name=name, arguments=dumps(arguments), extra=extra)


def _response(value: JsonObject, part: JsonObject, counts: Counter[str]) -> ToolResultPart:
    name, id_ = _name_and_id(value, counts)
    response = require_type(value.pop("response", {}), dict, "the response of a function")
    content = read_result_parts(map(parse_part, value.pop("parts", None) or []), name)
    text, failed = _response_text(response)
    value["name"] = name
    if response != _plain_response(text, is_error=failed):
        value["response"] = response
    texts = (TextPart(text=text),) if text else ()
    return ToolResultPart(
        call_id=id_,
        content=(*texts, *content),
        is_error=failed,
        extra=read_extra("gemini", part, functionResponse=value),
    )


def _response_text(response: JsonObject) -> tuple[str, bool]:
    """Return the text of a response, and whether it is an error."""
    match response:
        case {"error": str(text), **rest} if not rest:
            return text, True
        case {"output": str(text), **rest} if not rest:
            return text, False
        case {}:
            return dumps(response, sort_keys=True) if response else "", False


def _plain_response(text: str, *, is_error: bool) -> JsonObject:
    return {"error" if is_error else "output": text}


def _media(kind: str, value: JsonObject, part: JsonObject) -> Part:
    media_type, name = value.pop("mimeType", None), value.pop("displayName", None)
    place = value.pop("data" if kind == "inlineData" else "fileUri", None)
    has_type = isinstance(media_type, str) or (media_type is None and kind == "fileData")
    if not isinstance(place, str) or not place or not has_type:
        raise InvalidMessage(f"{kind} {value!r:.80} is incomplete: it needs its data and mimeType")
    if kind == "fileData" and place.startswith("data:"):
        raise InvalidMessage(f"fileUri {place!r:.80} holds data: use inlineData")
    if name is not None:
        require_type(name, str, f"the displayName of a {kind}")
    extra = read_extra("gemini", part, **{kind: value})
    data, url = (place, None) if kind == "inlineData" else (None, place)
    if (media_type or "").startswith("image/") and name is None:
        return ImagePart(media_type=media_type, data=data, url=url, extra=extra)
    return FilePart(media_type=media_type, name=name, data=data, url=url, extra=extra)


def _render_part(part: Part, tools: Mapping[str, str]) -> JsonObject | None:
    extra = extra_fields(part, "gemini")
    match part:
        case TextPart():
            return {"text": part.text, **extra} if part.text.strip() or extra else None
        case ToolCallPart():
            call = {"name": part.name, "args": arguments_object(part.arguments), **_id(part.id)}
            return {"functionCall": {**call, **_inner(extra, "functionCall")}, **extra}
        case ToolResultPart():
            return {"functionResponse": _render_result(part, extra, tools), **extra}
        case ImagePart() | FilePart():
            return _render_media(part, extra)
        case OtherPart(dialect="gemini", scope="part"):
            return part.value
        case _:
            text = as_text(part)
            return None if text is None else {"text": text}


def _inner(extra: JsonObject, kind: str) -> JsonObject:
    value = extra.pop(kind, None)
    return value if isinstance(value, dict) else {}


def _id(id_: str) -> JsonObject:
    return {} if id_.startswith(NAMELESS_ID) else {"id": id_}


def _render_result(part: ToolResultPart, extra: JsonObject, tools: Mapping[str, str]) -> JsonObject:
    written = _inner(extra, "functionResponse")
    texts = [_text_of(item) for item in part.content]
    text = "\n".join(text for text in texts if text is not None)
    response = written.get("response")
    # A result that was shortened or redacted differs from the stored response.
    if not isinstance(response, dict) or _response_text(response) != (text, part.is_error):
        response = _plain_response(text, is_error=part.is_error)
    name = tools.get(part.call_id) or written.get("name") or part.call_id
    media = [item for item in part.content if _text_of(item) is None]
    parts = list(filter(None, (_render_part(item, tools) for item in media)))
    shown = {"parts": parts} if parts else {}
    return {**written, **_id(part.call_id), "name": name, "response": response, **shown}


def _text_of(part: Part) -> str | None:
    """Return the text of a result's part; None if the part is sent separately."""
    if isinstance(part, ImagePart | FilePart):
        return None if "text" not in (_render_media(part, {})) else as_text(part)
    return as_text(part) or ""


def _render_media(part: ImagePart | FilePart, extra: JsonObject) -> JsonObject:
    content = payload(part)
    name = {"displayName": part.name} if isinstance(part, FilePart) and part.name else {}
    if content is not None:
        media_type = content.media_type or "application/octet-stream"
        blob = {"mimeType": media_type, "data": content.data, **name}
        return {"inlineData": {**blob, **_inner(extra, "inlineData")}, **extra}
    if part.url is None or part.url.lower().startswith(("data:", "file:")):
        return {"text": as_text(part) or NOTHING_READABLE}
    media = {"mimeType": part.media_type} if part.media_type else {}
    file = {**media, "fileUri": part.url, **name, **_inner(extra, "fileData")}
    return {"fileData": file, **extra}
