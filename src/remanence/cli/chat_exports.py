"""Exports of ChatGPT and Claude and messages of the Vercel AI SDK, as `remanence import` reads them.

The exports are not documented: what is not understood is left out, and counted.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from remanence.cli.transcript_lines import SESSION_KEYS
from remanence.errors import InvalidMessage
from remanence.wire.json_value import JsonObject, quote
from remanence.wire.message_rules import storable

LeftOut: TypeAlias = Counter[str]
"""How often each kind of content was left out, by its name in the export where it has one."""

OTHER_BRANCH: Final = "message of another branch"
EMPTY: Final = "message without text"

_SYSTEM: Final = ("system", "systemInstruction", "system_instruction", "instructions")
"""Keys of system texts beside the messages of a request to Anthropic, Gemini or OpenAI's Responses."""

_CONVERSATIONS: Final = ({"title", "mapping"}, {"uuid", "chat_messages"}, {"uuid", "account"})
"""Keys of a conversation of ChatGPT or Claude, even if its messages are missing."""

_READABLE: Final = frozenset({"role", "type", "parts", *SESSION_KEYS})
"""Keys of messages, of which an object beside exported conversations has one unless it is damaged."""

_ROLES: Final = {"user": "user", "human": "user", "assistant": "assistant"}
_REFERENCE: Final = re.compile("\ue200[^\ue201]*+\ue201")
"""A reference within an answer of ChatGPT, such as to a page that it found."""


class ExportedConversation(dict[str, Any]):  # JSON
    """An exported conversation as `{"conversation": its id, "messages": [...]}`.

    The messages are those of the shown branch that have a text, each with its id and its time, or
    else the time of the one before.
    """


def read_export(value: JsonObject, left_out: LeftOut) -> JsonObject:
    """Return an exported conversation or message, or *value* if it is not one; add to *left_out*.

    Raises:
        InvalidMessage: an exported conversation has no list or tree of messages.
    """
    if isinstance(value.get("mapping"), dict):
        return _chatgpt(value, left_out)
    if isinstance(value.get("chat_messages"), list):
        return _claude(value, left_out)
    parts = _objects(value.get("parts"))
    if "content" not in value and any("type" in part for part in parts):  # Gemini's have no type
        texts = [part for part in parts if part.get("type") == "text"]
        left_out.update(str(part.get("type")) for part in parts if part not in texts)
        others = {key: each for key, each in value.items() if key != "parts"}
        return {**others, "content": "\n\n".join(_texts(texts, left_out))}
    if "role" not in value and "type" not in value:
        _check_conversation(value)
        left_out.update(key for key in _SYSTEM if value.get(key))
    return value


def _check_conversation(value: JsonObject) -> None:
    if any(keys <= value.keys() for keys in _CONVERSATIONS) and "messages" not in value:
        raise InvalidMessage(_damage(value))


def _damage(value: JsonObject) -> str:
    key = "chat_messages" if "uuid" in value else "mapping"
    id_, title = (
        next(filter(None, map(value.get, names)), None)
        for names in (("conversation_id", "id", "uuid"), ("title", "name"))
    )
    return (
        f"conversation {quote(id_)}, {quote(title)}: its {key} is {quote(value.get(key))}, without "
        "messages: export it again"
    )


def damaged_entries(entries: list[object]) -> dict[int, str]:
    """Return the indexes of what has no messages beside conversations of an export, with the reason."""
    if not any(map(_is_conversation, entries)):
        return {}
    return {
        index: _damage(entry)
        if isinstance(entry, dict)
        else f"conversation {index + 1} is {quote(entry)}: export it again"
        for index, entry in enumerate(entries)
        if not _is_conversation(entry) and _READABLE.isdisjoint(_object(entry))
    }


def _is_conversation(value: object) -> bool:
    fields = _object(value)
    return isinstance(fields.get("mapping"), dict) or isinstance(fields.get("chat_messages"), list)


def _chatgpt(value: JsonObject, left_out: LeftOut) -> ExportedConversation:
    nodes = {id_: _object(node) for id_, node in value["mapping"].items()}
    said = {id_: _object(node.get("message")) for id_, node in nodes.items()}
    times = {id_: message.get("create_time") for id_, message in said.items()}
    shown = _branch(
        {id_: node.get("parent") for id_, node in nodes.items()}, times, value.get("current_node")
    )
    for id_ in nodes.keys() - shown.keys():
        # Nodes without a text only hold the tree together.
        left_out[OTHER_BRANCH] += any(_chatgpt_texts(said[id_], Counter()))
    messages = []
    for id_ in shown:
        message = said[id_]
        texts = [*_chatgpt_texts(message, left_out)]
        role = str(_object(message.get("author")).get("role"))
        if _object(message.get("metadata")).get("is_visually_hidden_from_conversation"):
            left_out["hidden message"] += bool(texts)
        elif message.get("recipient", "all") not in ("all", None):
            left_out["tool call"] += 1
        elif role in _ROLES:
            messages.append(_message(id_, role, texts, times[id_]))
        else:
            left_out[f"{role} message"] += bool(texts)
    named = f"{value.get('title')} {value.get('create_time')}"
    id_ = value.get("conversation_id") or value.get("id") or named
    return _conversation(id_, messages, value.get("create_time"), left_out)


def _chatgpt_texts(message: JsonObject, left_out: LeftOut) -> Iterator[str]:
    content, metadata = _object(message.get("content")), _object(message.get("metadata"))
    shown = {
        str(reference.get("matched_text")): str(reference.get("alt") or "")
        for reference in _objects(metadata.get("content_references"))
    }
    for text in _texts(content.get("parts", [content]), left_out):
        yield _REFERENCE.sub(lambda found: shown.get(found[0], ""), text)
    pointers = str(content)  # an image is a part and an attachment
    files = [str(file.get("id")) for file in _objects(metadata.get("attachments"))]
    left_out["attachment"] += sum(id_ not in pointers for id_ in files)


def _claude(value: JsonObject, left_out: LeftOut) -> ExportedConversation:
    said = {
        str(message.get("uuid") or number): message
        for number, message in enumerate(_objects(value["chat_messages"]))
    }
    times = {id_: message.get("created_at") for id_, message in said.items()}
    parents = {id_: message.get("parent_message_uuid") for id_, message in said.items()}
    shown = dict.fromkeys(said)
    if any(parents.values()):  # older exports have none, and no branches
        shown = _branch(parents, times, value.get("current_leaf_message_uuid"))
    left_out[OTHER_BRANCH] += len(said) - len(shown)
    messages = []
    for id_ in shown:
        message = said[id_]
        texts = [*_texts(message.get("content") or [message.get("text")], left_out)]
        left_out["attachment"] += len(_objects(message.get("attachments")))
        left_out["file"] += len(_objects(message.get("files")))
        role = str(message.get("sender"))
        if role in _ROLES:
            messages.append(_message(id_, role, texts, times[id_]))
        else:
            left_out[f"{role} message"] += bool(texts)
    return _conversation(value.get("uuid"), messages, value.get("created_at"), left_out)


def _branch(
    parents: Mapping[str, object], times: Mapping[str, object], leaf: object
) -> dict[str, None]:
    """Return the ids from the root to *leaf*, or else to the newest message."""
    if not isinstance(leaf, str) or leaf not in parents:
        # Times of one export have one form, and as many digits.
        leaf = max(reversed([*parents]), key=lambda id_: str(times[id_] or ""), default=None)
    path: dict[str, None] = {}
    while isinstance(leaf, str) and leaf in parents and leaf not in path:
        path[leaf] = None
        leaf = parents[leaf]
    return dict.fromkeys(reversed(path))


def _texts(parts: object, left_out: LeftOut) -> Iterator[str]:
    """Yield the texts of a message's parts, also what was said aloud."""
    for part in parts if isinstance(parts, list) else ():
        fields = _object(part)
        text = part if isinstance(part, str) else fields.get("text")
        if isinstance(text, str):
            if text.strip():
                yield storable(text)
        elif part:
            left_out[str(fields.get("content_type") or fields.get("type") or "other part")] += 1


def _message(id_: str, role: str, texts: list[str], at: object) -> JsonObject:
    return {"id": id_, "role": _ROLES[role], "content": "\n\n".join(texts), "created_at": at}


def _conversation(
    id_: object, messages: list[JsonObject], at: object, left_out: LeftOut
) -> ExportedConversation:
    said = [message for message in messages if message["content"]]
    left_out[EMPTY] += len(messages) - len(said)
    for message in said:
        at = message["created_at"] = message["created_at"] or at
    return ExportedConversation(conversation=id_, messages=said)


def _object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> list[JsonObject]:
    return [*map(_object, value)] if isinstance(value, list) else []
