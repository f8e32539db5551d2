"""Forgetting: the changes of one erasure, and the receipt for it."""

import dataclasses
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from remanence.types.segment import Segment
from remanence.types.state import MemoryState
from remanence.wire.message import Message
from remanence.wire.parts import Part, TextPart, ToolCallPart, ToolResultPart

FORGOTTEN: Final = "[forgotten]"
"""The text of a forgotten message."""


@dataclass(frozen=True, slots=True)
class ForgottenMessage:
    """The location of a forgotten message, and the salted hash of its content.

    A candidate has the first words of its `text` with its speaker, on one line, and no hash.
    """

    conversation: str
    seq: int
    id: str
    digest: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Receipt of an erasure; with `erased=False`, the candidates of a query, or that nothing was left.

    The digest of a message is `digest(message, salt)` of its former content; the salt is stored
    nowhere else, so that short texts cannot be guessed. `segments` are the erased segments, which
    covered a message or named a value of it, and `remade` those live in their place, new ones and
    sources of reflections, in which `notes_gone` notes (also of other messages) are missing and
    `notes_new` are new. `vectors` is the number of erased vectors of messages and notes. `files` were
    rewritten or deleted; `still_in` are files maintained by people, which have the text or are in a
    forgotten user's folder, and were left alone. `kept` is the `chain` of the conversation's messages
    afterwards; empty for a user.
    """

    erased: bool
    at: datetime
    conversations: tuple[str, ...] = ()
    messages: tuple[ForgottenMessage, ...] = ()
    segments: tuple[str, ...] = ()
    remade: tuple[str, ...] = ()
    notes_gone: int = 0
    notes_new: int = 0
    facts: tuple[str, ...] = ()
    vectors: int = 0
    files: tuple[str, ...] = ()
    still_in: tuple[str, ...] = ()
    salt: str = ""
    kept: str = ""

    @property
    def message_ids(self) -> tuple[str, ...]:
        """The ids of the messages."""
        return tuple(message.id for message in self.messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """Tombstones by seq, ids of the segments and facts to erase, and the segments to put in their place.

    A segment of `remade` with the id of a replaced one, a source of an erased reflection, is moved.
    The facts in `named` are erased with their repetitions. `notes_gone` counts live notes that the
    new segments lack, and `notes_new` notes that only they have.
    """

    tombstones: tuple[Message, ...]
    segments: tuple[str, ...] = ()
    remade: tuple[Segment, ...] = ()
    notes_gone: int = 0
    notes_new: int = 0
    facts: tuple[str, ...] = ()
    named: tuple[str, ...] = ()


class Erased(NamedTuple):
    """The state after an erasure, and the number of erased vectors."""

    state: MemoryState
    vectors: int


def digest(message: Message, salt: str) -> str:
    """Return the SHA-256 of a message's name and content after *salt*."""
    return _sha256(salt, message.name, [dataclasses.asdict(part) for part in message.content])


def chain(messages: Iterable[Message], link: str = "") -> str:
    """Return a hash chain over the messages, in order, which continues that of earlier ones.

    The `digest` of a message counts only if the message is a tombstone.
    """
    for message in messages:
        fields = (message.seq, message.id, message.role, message.kind, str(message.created_at))
        link = _sha256(link, *fields, _content_hash(message))
    return link


def _content_hash(message: Message) -> str:
    """Return a hash of the content, and for a tombstone of its digest and the calls and results left."""
    left = digest(message, "")
    if not message.digest or not _is_tombstone(message):
        return left
    is_text = message.content == (TextPart(text=FORGOTTEN),)
    return message.digest if is_text else _sha256(message.digest, left)


def _is_tombstone(message: Message) -> bool:
    return message.kind == "forgotten" and message == tombstone(message, "").replace(
        digest=message.digest
    )


def tombstone(message: Message, salt: str) -> Message:
    """Return a message without its content; tool calls and results stay paired."""
    content = tuple(part for part in map(_empty, message.content) if part is not None)
    return message.replace(
        name=None,
        kind="forgotten",
        content=content or (TextPart(text=FORGOTTEN),),
        digest=digest(message, salt),
    )


def _empty(part: Part) -> Part | None:
    match part:
        case ToolCallPart():
            return ToolCallPart(id=part.id, name=part.name, arguments="{}")
        case ToolResultPart():
            return ToolResultPart(call_id=part.call_id, content=(TextPart(text=FORGOTTEN),))
        case _:
            return None


def _sha256(*values: object) -> str:
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()
