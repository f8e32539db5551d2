"""Identity of messages: recognises a stored message in the copy that its client resends."""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Final

from remanence.errors import InvalidMessage
from remanence.types import Message
from remanence.wire.content import is_reasoning
from remanence.wire.json_value import dumps, json_value
from remanence.wire.parts import (
    FilePart,
    ImagePart,
    OtherPart,
    Part,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

_MARK: Final = re.compile(r"\[\d+\]|[*_`#~]")
"""What clients remove from answers, beside white space: Markdown, references such as `[1]`."""

_MARK_OR_CHARACTER: Final = re.compile(rf"{_MARK.pattern}|\S")

_GAP: Final = re.compile(r"\W")

_JOINED_ROLES: Final = {("assistant", "assistant"), ("tool", "tool"), ("tool", "user")}


def chain(messages: Sequence[Message], previous: str = "") -> Iterator[str]:
    """Yield the id of each message, a hash of that message and all before it."""
    return _chain(map(key_of, messages), previous)


def keys_and_ids(messages: Sequence[Message]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the keys of the messages of a history, and their ids."""
    keys = [key_of(message) for message in messages]
    return keys, list(_chain(keys, ""))


def _chain(keys: Iterable[str], previous: str) -> Iterator[str]:
    for key in keys:
        previous = hashlib.sha256(f"{previous} {key}".encode()).hexdigest()[:32]
        yield previous


def key_of(message: Message) -> str:
    """Return a key that is the same for a message and the copy that a client resends.

    Clients change messages, so the key has only what they keep:

    * tool calls without the text beside them, as clients add some, and the ids of results, as
      clients shorten these;
    * the ids of spoken answers and of the provider's own calls, as clients reorder their fields;
    * texts, joined and stripped; no reasoning, as clients drop it;
    * unknown fields only if there is nothing else, as clients add some.
    """
    calls = [part for part in message.content if isinstance(part, ToolCallPart)]
    keys = _keys(calls) or _spoken_keys(message.content) or _inside_keys(message.content)
    keys = keys or _keys(message.content)
    return json.dumps([message.role, *keys])


def compactions(message: Message) -> set[str]:
    """Return the ids, or else the JSON, of a message's items that replace all before them."""
    others = (part for part in message.content if isinstance(part, OtherPart))
    return {_part_key(part)[-1] for part in others if part.type == "compaction"}


def is_equal(stored: Message, resent: Message) -> bool:
    """Return whether two messages have the same key."""
    return key_of(stored) == key_of(resent)


def is_same(stored: Message, resent: Message, *, is_whole: bool = False) -> bool:
    """Return whether a resent message is the stored one, allowing for changes by the client.

    An answer may have more or less text than was streamed (less not if it must be *whole*), or lack
    calls, or Markdown. Calls may have shorter arguments, or more or fewer. A user message may lack
    images, files, or what its client had put around the text. A forgotten message matches any of its
    role, so that its text is not stored again on another tape.
    """
    return is_equal(stored, resent) or is_changed_copy(stored, resent, is_whole=is_whole)


def is_changed_copy(stored: Message, resent: Message, *, is_whole: bool = False) -> bool:
    """Return whether a resent message that has another key than the stored one is the same."""
    if stored.role != resent.role and not count_as_one(stored, resent):
        return False
    if continuation_of(stored, resent):
        return True
    if stored.kind == "forgotten" or stored.role != resent.role:
        return stored.role == resent.role
    if stored.role != "assistant":
        return _is_without_media(stored, resent) or _is_shortened(stored, resent)
    if calls := resent.tool_calls:
        known = {call.id: call for call in stored.tool_calls}
        return all(call.id in known and _is_same_call(known[call.id], call) for call in calls)
    said, whole = _text(resent.content), _text(stored.content)
    is_begun = not is_whole and whole.startswith(said)
    return bool(said) and (is_begun or _is_without_marks(whole, said))


def continuation_of(stored: Message, resent: Message) -> tuple[Part, ...]:
    """Return the parts by which a message continues the stored one; empty if it does not.

    Answers continue each other, as do the results of one round of calls.
    """
    if stored.kind == "forgotten" or not count_as_one(stored, resent):
        return ()
    text = said = _text(stored.content)
    others = [key for key in _keys(stored.content) if key[0] != "text"]
    if not (said or others):
        return ()
    rest: list[Part] = []
    for part in resent.content:
        if isinstance(part, TextPart):
            shown = part.text.lstrip() if text is said else part.text
            if not (shown.startswith(text) or text.startswith(shown)):
                return ()
            text, shown = text[len(shown) :], shown[len(text) :]
            if shown.strip():
                rest.append(replace(part, text=shown))
        elif (key := _part_key(part)) in others:
            others.remove(key)
        elif not text and not (_is_reasoning(part) and part in stored.content):
            rest.append(part)
    is_whole = not text and not any(key in others for key in _inside_keys(stored.content))
    goes_on = is_whole and _inside_keys(rest) and not is_equal(stored, resent)
    return tuple(rest) if goes_on else ()


def count_as_one(before: Message, message: Message) -> bool:
    """Return whether two successive messages count as one: answers, or results and text beside them.

    Chat Completions has separate messages for these, Anthropic a single one.
    """
    return (before.role, message.role) in _JOINED_ROLES


def join(messages: Iterable[Message]) -> list[Message]:
    """Return messages without prompts, and with those joined that count as one.

    A joined message has the seq and the id of the last of its messages.
    """
    joined: list[Message] = []
    for message in messages:
        if message.role == "system":
            continue
        if joined and count_as_one(joined[-1], message):
            before = joined.pop()
            kind = "forgotten" if before.kind == "forgotten" else message.kind
            content = (*before.content, *message.content)
            joined.append(message.replace(content=content, kind=kind))
        else:
            joined.append(message)
    return joined


def call_ids(messages: Iterable[Message]) -> set[str]:
    """Return the ids of the calls in messages, and of those that they have results of."""
    ids = {_call_id(part) for message in messages for part in message.content}
    return {id_ for id_ in ids if id_ is not None}


def without_rounds(messages: Sequence[Message], shown: Collection[str]) -> Sequence[Message]:
    """Return joined messages without the calls, and their results, whose ids are not *shown*."""
    kept = [_without_round(message, shown) for message in messages]
    is_whole = all(one is message for one, message in zip(kept, messages, strict=True))
    return messages if is_whole else join(filter(None, kept))


def _without_round(message: Message, shown: Collection[str]) -> Message | None:
    """Return a message without calls and results that are not *shown*; None if it has no others."""
    ids = map(_call_id, message.content)
    content = tuple(
        part for part, id_ in zip(message.content, ids, strict=True) if id_ is None or id_ in shown
    )
    if len(content) == len(message.content):
        return message
    has_results = any(isinstance(part, ToolResultPart) for part in content)
    role = "user" if message.role == "tool" and not has_results else message.role
    return message.replace(role=role, content=content) if content else None


def _call_id(part: Part) -> str | None:
    match part:
        case ToolCallPart(id=id_) | ToolResultPart(call_id=id_):
            return id_
    return None


def _keys(parts: Sequence[Part]) -> list[list[str]]:
    keys: list[list[str]] = []
    told = [part for part in parts if not _is_reasoning(part)]
    for is_text, run in groupby(told, key=lambda part: isinstance(part, TextPart)):
        if not is_text:
            keys += map(_part_key, run)
        elif text := _text(run):
            keys.append(["text", text])
    return keys


def _inside_keys(parts: Sequence[Part]) -> list[list[str]]:
    """Return the keys of parts in the content, without fields of the message or items beside it."""
    inside = [part for part in parts if not isinstance(part, OtherPart) or part.scope == "part"]
    return _keys(inside)


def _spoken_keys(parts: Sequence[Part]) -> list[list[str]]:
    """Return the audio ids of a Chat Completions answer."""
    beside = [part for part in parts if isinstance(part, OtherPart) and part.scope == "message"]
    audio = [part.value.get("audio") for part in beside if '"audio"' in part.raw]
    return [["audio", one["id"]] for one in audio if isinstance(one, dict) and one.get("id")]


def _part_key(part: Part) -> list[str]:
    match part:
        case TextPart(text=text):
            return ["text", text]
        case ToolCallPart(id=id_, name=name):
            arguments = _arguments(part)
            value = part.arguments.strip() if arguments is None else arguments
            return ["call", id_, name, _hash(json.dumps(value, sort_keys=True))]
        case ToolResultPart(call_id=id_):
            return ["result", id_]
        case ImagePart(data=data, url=url):
            return ["data", _hash(data or url or "")]
        case FilePart(data=data, url=url, file_id=file_id):
            return ["data", _hash(data or url or file_id or "")]
        case OtherPart(value=value):
            ids = [value.get(field) for field in ("call_id", "tool_use_id", "id")]
            known = next((id_ for id_ in ids if isinstance(id_, str) and id_), None)
            return ["other", part.type, known or dumps(value, sort_keys=True)]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _arguments(call: ToolCallPart) -> Any:  # any JSON
    return _json(call.arguments.strip() or "{}")


def _json(text: str) -> Any:
    """Parse JSON, or return `None` if a text is not JSON; 1 and 1.0 are the same."""
    try:
        value = json.loads(text, parse_int=_number)
        return json_value(value, "the call")  # refuses what is nested too deep to compare
    except (ValueError, RecursionError, InvalidMessage):
        return None


def _number(text: str) -> int | float:
    """Parse an integer as a float, as keys are text, unless that is another number."""
    number, rounded = int(text), float(text)
    return rounded if rounded == number else number


def _is_same_call(stored: ToolCallPart, resent: ToolCallPart) -> bool:
    """Return whether a call is the stored one, whose arguments its client may have normalised.

    Clients repair broken arguments, add defaults, parse quoted values, and leave out unknown, empty
    or old arguments. Claude Code removes `cd` to its own folder, and white space at the ends of lines.
    """
    arguments = _arguments(stored)
    is_same = arguments is None or _is_normalised(arguments, _arguments(resent))
    return stored.name == resent.name and is_same


def _is_normalised(stored: Any, resent: Any) -> bool:  # any JSON
    match stored, resent:
        case dict(), dict():
            shared = stored.keys() & resent.keys()
            return all(_is_normalised(stored[key], resent[key]) for key in shared)
        case list(), list():
            return len(stored) == len(resent) and all(map(_is_normalised, stored, resent))
        case str(), str():
            return stored.split() == resent.split() or _has_words(stored, resent)
        case str(), _:
            return _is_normalised(_json(stored), resent)
    return bool(stored == resent)


def _has_words(whole: str, text: str) -> bool:
    """Return whether a text is whole words of another one in a row, or empty."""
    start = whole.find(text) if text else -1
    while start >= 0:
        end = start + len(text)
        if not re.search(r"\w", whole[max(0, start - 1) : start] + whole[end : end + 1]):
            return True
        gap = _GAP.search(whole, start)
        start = whole.find(text, gap.end()) if gap else -1
    return not text


def _is_without_media(stored: Message, resent: Message) -> bool:
    if not any(map(_is_media, stored.content)):
        return False
    keys = _keys(resent.content)
    kept = [p for p in stored.content if not _is_media(p) or _part_key(p) in keys]
    return bool(kept) and is_equal(stored.replace(content=tuple(kept)), resent)


def _is_shortened(stored: Message, resent: Message) -> bool:
    """Return whether a user message has whole words of the stored text in a row, and nothing new.

    Clients add passages or the time to the newest message, and resend it later without them.
    """
    text, whole = _text(resent.content), _text(stored.content)
    if not text or text == whole or not stored.role == resent.role == "user":
        return False
    if not _has_words(whole, text):
        return False
    keys = _keys(stored.content)
    return all(key in keys for key in _keys(resent.content) if key[0] != "text")


def _is_without_marks(whole: str, said: str) -> bool:
    """Return whether *said* is the whole text without some of its white space, Markdown, references."""
    bare, at = "".join(said.split()), 0
    for part in _MARK_OR_CHARACTER.finditer(whole):
        if bare.startswith(part[0], at):
            at += len(part[0])
        elif not _MARK.fullmatch(part[0]):
            return False
    return at == len(bare)


def _is_reasoning(part: Part) -> bool:
    return isinstance(part, OtherPart) and is_reasoning(part)


def _is_media(part: Part) -> bool:
    return isinstance(part, ImagePart | FilePart)


def _text(parts: Iterable[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, TextPart)).strip()
