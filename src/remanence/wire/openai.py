"""Parser and renderer for messages of OpenAI's Chat Completions.

Shapes: the reference of `POST /chat/completions`, parameter `messages`.
"""

import json
import re
from collections.abc import Iterable, Mapping, Set as AbstractSet
from dataclasses import replace
from mimetypes import MimeTypes

from remanence.errors import InvalidMessage
from remanence.wire.content import (
    NOTHING_READABLE,
    as_text,
    extra_fields,
    image_url,
    mark_error,
    payload,
    present,
    put_name_first,
    read_content,
    read_extra,
    read_fields,
    read_other,
    shortest,
    split_data_url,
)
from remanence.wire.json_value import JsonObject, dumps, json_object, require_type
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

MESSAGE_FIELDS = frozenset(
    {"role", "content", "name", "refusal", "tool_calls", "tool_call_id", "audio", "function_call"}
)
"""The fields of a message in OpenAI's reference."""

_INSTEAD_OF_CONTENT = {"function_call", "tool_calls"}

_RECORD_FIELDS = frozenset({"id", "created_at", "timestamp"})
"""Fields that transcripts add to messages, and that the API rejects."""

CLIENT_FIELDS = frozenset({"parsed", "parsed_arguments"})
"""Fields that `parse()` of OpenAI's client adds to answers, and that the API rejects."""

_NAME = re.compile(r"[^\s<|\\/>]{1,64}")
"""Names that the API accepts; any other name is put before the text."""

_MIME_TYPES = MimeTypes()  # without those of the machine, as a prompt is the same everywhere

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_NEEDS = {
    "text": "text, a string",
    "refusal": "refusal, a string",
    "image_url": "image_url, an object with url",
    "file": "file, an object with file_data or file_id",
}

FILE_FIELDS = {"filename": "name", "file_data": "data", "file_id": "file_id"}
"""The API's fields of a file, and our own."""


def parse(data: object) -> ParsedMessage:
    """Parse one message, keeping parts of unknown types and unknown fields of parts.

    Unknown fields of an answer, such as `reasoning_content`, are kept, too. Those of other messages
    come from the host and are dropped, as are fields of transcripts.
    """
    message = json_object(data, "message")
    if "role" not in message and "choices" in message:
        raise InvalidMessage("a completion is not a message: pass completion.choices[0].message")
    role = read_role(message.get("role"), _ROLES)
    name = require_type(message.get("name") or "", str, "the name of a message") or None
    written = message.get("content")
    content = () if written is None else read_content(written, parse_part)
    if role == "tool":
        call_id = message.get("tool_call_id")
        if not isinstance(call_id, str) or not call_id:
            raise InvalidMessage(
                f"a tool message has tool_call_id {call_id!r:.80}: name the call that it answers"
            )
        return ParsedMessage(role, (ToolResultPart(call_id=call_id, content=content),), name)
    if role == "assistant":
        spoken = () if content else tuple(_transcript(message.get("audio")))
        after = tuple(_after(message))
        ids = {part.id for part in after if isinstance(part, ToolCallPart)}
        once = (part for part in content if not _is_of_call(part, ids))
        return ParsedMessage(role, (*_beside(message), *once, *spoken, *after), name)
    return ParsedMessage(role, content, name)


def render(role: Role, content: tuple[Part, ...], name: str | None = None) -> list[JsonObject]:
    """Render a message as one or more dicts; each tool result is a separate message.

    Images and files of tool results follow in a user message, as only those may contain them.
    """
    field = {"name": name} if name and _NAME.fullmatch(name) else {}
    results = [part for part in content if isinstance(part, ToolResultPart)]
    messages = [_render_result(part, field) for part in results]
    if media := [item for result in results for item in _media(result)]:
        messages.append({"role": "user", "content": _render_parts("user", media)})
    rest: tuple[Part, ...] = tuple(p for p in content if not isinstance(p, ToolResultPart))
    if not rest and messages:
        return messages
    role = "user" if role == "tool" else role
    if not field:
        rest = put_name_first(rest, name)
    message: JsonObject = {"role": role, **field}
    blocks = _render_parts(role, rest)
    message["content"] = shortest(blocks) if blocks else None
    if calls := [_render_call(part) for part in rest if isinstance(part, ToolCallPart)]:
        message["tool_calls"] = calls
    for part in rest:
        if isinstance(part, OtherPart) and part.dialect == "openai" and part.scope == "message":
            message |= {name: value for name, value in part.value.items() if name != "audio"}
    if message["content"] is None and not message.keys() & _INSTEAD_OF_CONTENT:
        has_fields = role == "assistant" and len(message) > 2
        message["content"] = "" if has_fields else NOTHING_READABLE
    return [*messages, message]


def parse_part(data: object) -> ResultPart:
    """Read one content part."""
    part = read_fields(data, mark="prompt_cache_breakpoint")
    match part:
        case {"type": "text" | "input_text" | "output_text", "text": str(text)}:
            return TextPart(text=text, extra=read_extra("openai", part, "type", "text"))
        case {"type": "refusal", "refusal": str(text)}:
            return TextPart(text=text, extra=read_extra("openai", part, "refusal"))
        case {"type": "image_url", "image_url": {"url": str(url)}} if url:
            inner = {key: v for key, v in present(part["image_url"]).items() if key != "url"}
            extra = read_extra("openai", part, "type", "image_url", image_url=inner)
            return read_image(url, extra)
        case {"type": "file", "file": dict()}:
            file, inner = read_file(present(part["file"]), FILE_FIELDS)
            return replace(file, extra=read_extra("openai", part, "type", "file", file=inner))
        case _:
            return read_other(part, "openai", _NEEDS)


def read_role(name: object, roles: Mapping[str, Role]) -> Role:
    """Return our role for a provider's role."""
    if not isinstance(name, str) or name not in roles:
        known = ", ".join(sorted(set(roles.values())))
        raise InvalidMessage(f"role {name!r:.80} is unknown: use one of {known}")
    return roles[name]


def read_image(url: str, extra: Extra | None) -> ImagePart:
    """Parse the URL of an image, which may be a data URL."""
    if inline := split_data_url(url):
        return ImagePart(media_type=inline.media_type, data=inline.data, extra=extra)
    return ImagePart(url=url, extra=extra)


def read_file(fields: JsonObject, names: Mapping[str, str]) -> tuple[FilePart, JsonObject]:
    """Parse a file with fields of these *names*; also return the unknown fields."""
    known = {ours: fields.get(name) for name, ours in names.items()}
    for name in names:
        require_type(fields.get(name, ""), str, f"the {name} of a file")
    if not (known["data"] or known["file_id"] or known.get("url")):
        raise InvalidMessage(f"content part {fields!r:.160} has no file: add file_data or file_id")
    if inline := split_data_url(known["data"] or ""):
        known |= inline._asdict()
    return FilePart(**known), {key: value for key, value in fields.items() if key not in names}


def _transcript(audio: object) -> Iterable[TextPart]:
    """Yield the transcript of a spoken answer, as its audio id is only valid for an hour."""
    match audio:
        case {"transcript": str(text)} if text:
            yield TextPart(text=text)
        case dict():
            yield TextPart(text="[spoken answer without its transcript]")


def _beside(message: JsonObject) -> Iterable[OtherPart]:
    """Yield the fields of an answer that do not become separate parts."""
    known = MESSAGE_FIELDS - {"audio", "function_call"} | _RECORD_FIELDS | CLIENT_FIELDS
    rest = {key: value for key, value in message.items() if key not in known}
    rest = {key: value for key, value in rest.items() if value not in (None, "", [], {})}
    if rest:
        yield OtherPart(dialect="openai", raw=dumps(rest), scope="message")


def _after(message: JsonObject) -> Iterable[Part]:
    """Yield the refusal and the tool calls of an answer."""
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        yield TextPart(text=refusal, extra=Extra(dialect="openai", raw='{"type":"refusal"}'))
    calls = require_type(message.get("tool_calls") or [], list, "the field tool_calls of a message")
    yield from map(_tool_call, calls)


def _is_of_call(part: Part, ids: AbstractSet[str]) -> bool:
    """Return whether a part is one of the calls *ids* in a provider's format, as LangChain adds it."""
    return isinstance(part, OtherPart) and not ids.isdisjoint(
        {part.head.get("id"), part.head.get("call_id")}
    )


def _tool_call(call: object) -> ToolCallPart:
    fields: JsonObject = present(call) if isinstance(call, dict) else {}
    is_custom = isinstance(fields.get("custom"), dict)
    kind, place = ("custom", "input") if is_custom else ("function", "arguments")
    body = dict(fields[kind]) if isinstance(fields.get(kind), dict) else {}
    body.pop("parsed_arguments", None)
    id_, name, value = fields.get("id"), body.pop("name", None), body.pop(place, None)
    if not all(isinstance(text, str) and text for text in (id_, name)) or value is None:
        raise InvalidMessage(
            f"tool call {call!r:.160} is incomplete: it needs id, function.name and "
            "function.arguments"
        )
    arguments = dumps(value) if is_custom or not isinstance(value, str) else value
    known = ("id", kind) if is_custom else ("id", kind, "type")
    extra = read_extra("openai", {"type": kind, **fields}, *known, **{kind: body})
    return ToolCallPart(id=str(id_), name=str(name), arguments=arguments, extra=extra)


def _media(result: ToolResultPart) -> tuple[Part, ...]:
    media = tuple(part for part in result.content if isinstance(part, ImagePart | FilePart))
    if not media:
        return ()
    return (TextPart(text=f"[from the result of tool call {result.call_id}]"), *media)


def _render_result(part: ToolResultPart, name: JsonObject) -> JsonObject:
    texts = tuple(p for p in part.content if not isinstance(p, ImagePart | FilePart))
    content = _render_parts("tool", mark_error(texts) if part.is_error else texts)
    return {
        "role": "tool",
        "tool_call_id": part.call_id,
        **name,
        "content": shortest(content) or "",
    }


def _render_call(part: ToolCallPart) -> JsonObject:
    extra = extra_fields(part, "openai")
    inner = extra.pop("function", None) or extra.pop("custom", None) or {}
    if extra.get("type") == "custom":
        body = {"name": part.name, "input": json.loads(part.arguments), **inner}
        return {"id": part.id, **extra, "custom": body}
    function = {"name": part.name, "arguments": part.arguments, **inner}
    return {"id": part.id, "type": "function", "function": function, **extra}


def _render_parts(role: Role, content: Iterable[Part]) -> list[JsonObject]:
    parts = (part for part in content if not isinstance(part, ToolCallPart | ToolResultPart))
    return list(filter(None, (_render_part(role, part) for part in parts)))


def _render_part(role: Role, part: Part) -> JsonObject | None:
    extra = extra_fields(part, "openai")
    match part:
        case TextPart():
            if extra.get("type") == "refusal" and role == "assistant":
                return {**extra, "refusal": part.text}
            extra.pop("type", None)
            return {"type": "text", "text": part.text, **extra}
        case ImagePart() if role == "user" and (url := image_url(part)):
            image = {"url": url, **extra.pop("image_url", {})}
            return {"type": "image_url", "image_url": image, **extra}
        case FilePart() if role == "user" and (part.data is not None or part.file_id is not None):
            file = {**render_file(part, FILE_FIELDS), **extra.pop("file", {})}
            return {"type": "file", "file": file, **extra}
        case OtherPart(dialect="openai", scope="part", type=kind) if kind and (
            role == "user" or not kind.startswith("input_")  # only users send inputs
        ):
            return part.value
        case _:
            text = as_text(part)
            return None if text is None else {"type": "text", "text": text}


def render_file(part: FilePart, names: Mapping[str, str]) -> JsonObject:
    """Render a file with fields of these *names*; data needs a name, so one is made up."""
    content = payload(part)
    if content is not None:
        name = part.name or f"file{_MIME_TYPES.guess_extension(content.kind) or ''}"
        part = replace(part, name=name, data=content.url if content.media_type else content.data)
    return present({name: getattr(part, ours) for name, ours in names.items()})
