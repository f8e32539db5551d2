"""A client's resent history, and the tape that already has most of it.

Such a client sends all messages with each request. Each gets an id by a chain of hashes, so that a
message is on the tape once, and a history that was edited never continues the tape of another.
"""

import asyncio
import hashlib
import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from remanence.conversation import Conversation
from remanence.memory import Memory
from remanence.recent import Recent
from remanence.server.proxy.naming import Name
from remanence.types import Message
from remanence.wire.content import is_reasoning
from remanence.wire.parts import (
    FilePart,
    ImagePart,
    OtherPart,
    Part,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

_OVERLAP: Final = 8
"""Messages before the end of the tape that a history must repeat, if it does not begin as the tape."""

_LEAST_OVERLAP: Final = 2
_MAX_BRANCHES: Final = 1_000
_KEPT_NAMES: Final = 10_000
_LOCKS: Final = 256


class UnknownHistory(Exception):
    """A history that is not stored; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The tape of a history: the message at an index of the request has the seq index + *shift*.

    The messages at the indices *not_on_tape* are not stored, such as a summary that a client put in
    place of the beginning. Only the first *length* are looked for: an answer that the client began
    waits for its end.
    """

    conversation: Conversation
    shift: int
    length: int
    not_on_tape: frozenset[int] = frozenset()


class _Tape(NamedTuple):
    conversation: Conversation
    last_seq: int
    end: Sequence[Message]

    @property
    def last_id(self) -> str:
        return (self.end[-1].id or "") if self.end else ""


class Histories:
    """Puts histories of clients on tapes: the named one, and one for each branch of it."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._newest: Recent[Name, str] = Recent(_KEPT_NAMES)
        self._locks = [asyncio.Lock() for _ in range(_LOCKS)]

    async def absorb(
        self, name: Name, messages: Sequence[Message], *, branch: bool = True, whole: bool = True
    ) -> Stored:
        """Append the messages that the tape does not have, and return where the history is.

        If it is not *whole*, an answer at its end waits until the model has ended it.

        Raises:
            UnknownHistory: it begins like no tape, and *branch* allows no new one then.
            RemanenceError: a message cannot be stored, or the store failed.
        """
        async with self._locks[hash(name) % _LOCKS]:
            tape, shift, not_on_tape = await self._place(name, messages, branch=branch)
            done = tape.last_seq - shift + 1
            end = len(messages)
            while not whole and end > done and messages[end - 1].role == "assistant":
                end -= 1
            new = zip(messages[done:end], chain(messages[done:end], tape.last_id), strict=True)
            await tape.conversation.append(*(message.replace(id=id_) for message, id_ in new))
            self._newest[name] = tape.conversation.id
        return Stored(
            conversation=tape.conversation,
            shift=shift,
            length=max(done, end),
            not_on_tape=not_on_tape,
        )

    async def _place(
        self, name: Name, messages: Sequence[Message], *, branch: bool
    ) -> tuple[_Tape, int, frozenset[int]]:
        """Return the tape that the history continues, or an empty one, and the place on it."""
        ids = {id_: index for index, id_ in enumerate(chain(messages))}
        used = []
        for id_ in self._ids(name):
            tape = await _read(self._memory.conversation(id_, user=name.user, tenant=name.tenant))
            if not tape.end:
                break
            if ids.get(tape.last_id) == tape.last_seq - 1:
                return tape, 1, frozenset()
            used.append(tape)
        else:
            raise UnknownHistory(f"the conversation has {_MAX_BRANCHES:,} branches already")
        for other in used:
            if (index := _overlap(other.end, messages)) is not None:
                shift = other.last_seq - index
                not_on_tape = await _not_on_tape(other.conversation, messages[: index + 1], shift)
                return other, shift, not_on_tape
        if used and not branch and not any([await _begins(one.conversation, ids) for one in used]):
            raise UnknownHistory(
                "it continues no earlier request of its conversation, like a request for a title: "
                "resend the history, or name a new conversation"
            )
        return tape, 1, frozenset()

    def _ids(self, name: Name) -> Iterator[str]:
        """Yield the id of the tape that was used last, of the named one, then of its branches."""
        newest = self._newest.get(name, name.conversation)
        yield newest
        for number in range(_MAX_BRANCHES):
            id_ = f"{name.conversation}~{number}" if number else name.conversation
            if id_ != newest:
                yield id_


async def _read(conversation: Conversation) -> _Tape:
    last_seq = (await conversation.state()).last_seq
    end = await conversation.messages(after=max(0, last_seq - _OVERLAP), limit=_OVERLAP)
    return _Tape(conversation, last_seq, end)


async def _begins(conversation: Conversation, ids: Collection[str]) -> bool:
    return any(message.id in ids for message in await conversation.messages(limit=1))


async def _not_on_tape(
    conversation: Conversation, messages: Sequence[Message], shift: int
) -> frozenset[int]:
    """Return the indices of the messages that are nowhere on the tape; forgotten ones are on it."""
    stored = await conversation.messages(limit=shift + len(messages) - 1)
    keys = {key_of(message) for message in stored}
    same = {
        message.seq - shift
        for message in stored
        if message.seq >= shift and _is_same(message, messages[message.seq - shift])
    }
    return frozenset(
        index
        for index, message in enumerate(messages)
        if index not in same and key_of(message) not in keys
    )


def _overlap(end: Sequence[Message], messages: Sequence[Message]) -> int | None:
    """Return the index of the message that ends the tape, in a history that lost its beginning."""
    for index in range(len(messages) - 1, _LEAST_OVERLAP - 2, -1):
        count = min(len(end), index + 1)
        stored, resent = end[-count:], messages[index + 1 - count : index + 1]
        known = sum(message.kind != "forgotten" for message in stored)
        if known >= _LEAST_OVERLAP and all(map(_is_same, stored, resent)):
            return index
    return None


def _is_same(stored: Message, resent: Message) -> bool:
    """Compare two messages; an answer may come back with more or less text than was streamed.

    A forgotten message is that of its role, so that its text does not come back on another tape.
    """
    if key_of(stored) == key_of(resent):
        return True
    if stored.kind == "forgotten":
        return stored.role == resent.role
    if not stored.role == resent.role == "assistant" or stored.tool_calls:
        return False
    first, second = stored.text.strip(), resent.text.strip()
    return bool(first and second) and (first.startswith(second) or second.startswith(first))


def chain(messages: Sequence[Message], previous: str = "") -> Iterator[str]:
    """Yield the id of each message, which stands for it and all before it."""
    for message in messages:
        previous = hashlib.sha256(f"{previous} {key_of(message)}".encode()).hexdigest()[:32]
        yield previous


def key_of(message: Message) -> str:
    """Return the same text for a message and the copy that a client resends.

    Tool calls and results count by their ids alone, as clients shorten old results and fill in the
    text beside a call; texts without the space around them; reasoning not at all, as clients drop
    it; unknown fields only where there is nothing else, as clients add some.
    """
    calls = [part for part in message.content if isinstance(part, ToolCallPart)]
    inside = [part for part in message.content if getattr(part, "scope", "part") == "part"]
    for parts in (calls, inside, message.content):
        if keys := [key for key in map(_part_key, parts) if key]:
            return json.dumps([message.role, *keys])
    return json.dumps([message.role])


def _part_key(part: Part) -> list[str] | None:
    match part:
        case TextPart(text=text):
            return ["text", text.strip()] if text.strip() else None
        case ToolCallPart(id=id_):
            return ["call", id_]
        case ToolResultPart(call_id=id_):
            return ["result", id_]
        case ImagePart() | FilePart():
            return ["data", hashlib.sha256((part.data or part.url or "").encode()).hexdigest()]
        case OtherPart():
            return None if is_reasoning(part) else ["other", part.raw]
