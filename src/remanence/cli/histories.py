"""Histories of many conversations, as a stream of messages that name their conversations."""

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from remanence.arguments import require_name
from remanence.cli.chat_exports import (
    EMPTY,
    ExportedConversation,
    LeftOut,
    damaged_entries,
    read_export,
)
from remanence.cli.coding_sessions import SessionReader
from remanence.cli.transcript_lines import Record, records
from remanence.cli.transcripts import READ_KEYS, TIME_KEYS, read_message
from remanence.errors import InvalidMessage, MalformedTranscript
from remanence.recent import Recent
from remanence.types import ConversationRef, Message, check_message
from remanence.wire.json_value import quote

ID_PREFIX: Final = "import:"
"""Prefix of generated message ids, followed by the file and the position in it."""

_READ_KEYS: Final = READ_KEYS | {"conversation", "user", "tenant"}
_CHUNK_MESSAGES: Final = 1_000
_CHUNK_CHARACTERS: Final = 4_000_000
_MAX_CONVERSATIONS: Final = 10_000
"""Newest conversations whose user and last time are known, for later messages without one."""

_NOT_IN_IDS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")

_MAX_UNDATED: Final = 100
"""Messages that wait for the first time of their conversation beyond a chunk."""


def source_of(file: Path) -> str:
    """Return a file's name with a digest of its full path; for a pipe only the name.

    Characters that no message id may have are replaced.
    """
    name = _NOT_IN_IDS.sub("?", file.name)
    if not file.is_file():
        return name
    return f"{name} {hashlib.sha256(os.fsencode(file.resolve())).hexdigest()[:12]}"


class HistoryMessage(NamedTuple):
    """A message of a history, with its place in the file."""

    place: str
    ref: ConversationRef
    user: str | None
    message: Message
    is_exported: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryReader:
    """Reads JSON Lines of messages; keys of a message override those of the objects around it.

    `conversation`, `user` and `tenant` are defaults, `user` in conversations of which no earlier
    message names one; `name` is for errors, `source` for generated
    message ids. Content of an export that a message cannot have is counted in `left_out`, and keys
    of a user's message that are not read; `unreadable` names conversations and messages of an export
    that are damaged, with the reason. A message without a time has that of the one before in its
    conversation, or else of a later one nearby. Times without an offset, or in UTC, get the offset of
    `timezone`.
    """

    name: str
    source: str
    tenant: str
    conversation: str | None
    user: str | None
    max_message_bytes: int
    timezone: tzinfo = UTC
    left_out: LeftOut = field(default_factory=Counter)
    unreadable: list[str] = field(default_factory=list)
    _times: Recent[ConversationRef, datetime] = field(
        default_factory=lambda: Recent(_MAX_CONVERSATIONS), init=False
    )
    _users: Recent[ConversationRef, str] = field(
        default_factory=lambda: Recent(_MAX_CONVERSATIONS), init=False
    )

    def chunks(self, lines: Iterable[bytes]) -> Iterator[Sequence[HistoryMessage]]:
        """Yield the messages in order, in chunks of bounded size.

        Raises:
            MalformedTranscript: a line is not a message, or names no conversation.
        """
        chunk: list[HistoryMessage] = []
        characters = 0
        try:
            for read in self._messages(lines):
                chunk.append(read)
                characters += len(read.message.full_text)
                if len(chunk) >= _CHUNK_MESSAGES or characters >= _CHUNK_CHARACTERS:
                    ready, chunk = _part_undated(_date_openings(chunk))
                    yield ready
                    characters = 0
        except MalformedTranscript:
            if chunk:
                yield _date_openings(chunk)
            raise
        if chunk:
            yield _date_openings(chunk)

    def _messages(self, lines: Iterable[bytes]) -> Iterator[HistoryMessage]:
        convert = partial(self._convert, SessionReader(self.left_out))
        for record in records(lines, name=self.name, convert=convert):
            try:
                yield self._read(record)
            except InvalidMessage as error:
                if not _is_exported(record):
                    raise MalformedTranscript(f"{self.name}, {record.place}: {error}") from error
                id_, conversation = record.value.get("id"), record.outer[-1].get("conversation")
                self._leave_out(
                    "message", f"conversation {quote(conversation)}, message {quote(id_)}: {error}"
                )

    def _convert(self, sessions: SessionReader, value: object) -> object:
        if isinstance(value, list):
            return self._without_damaged(value)
        if not isinstance(value, dict):
            return value
        try:
            return read_export(sessions.read(value), self.left_out)
        except InvalidMessage as error:
            self._leave_out("conversation", str(error))
            return ExportedConversation(messages=[])

    def _without_damaged(self, entries: list[object]) -> list[object]:
        damaged = damaged_entries(entries)
        for reason in damaged.values():
            self._leave_out("conversation", reason)
        none = ExportedConversation(messages=[])
        return [none if index in damaged else entry for index, entry in enumerate(entries)]

    def _leave_out(self, kind: str, reason: str) -> None:
        self.left_out[f"unreadable {kind}"] += 1
        self.unreadable.append(f"{self.name}, {reason}")

    def _read(self, record: Record) -> HistoryMessage:
        own = record.value.get("id") or f"{ID_PREFIX}{self.source}, {record.place}"
        message, is_empty = read_message(record, str(own), self.timezone)
        self.left_out[EMPTY] += is_empty
        check_message(message, max_bytes=self.max_message_bytes)
        conversation = _text(record, "conversation") or self.conversation
        if conversation is None:
            raise InvalidMessage(
                f'{quote(record.value)} names no conversation: add "conversation": "its id", or '
                "set a default with --conversation"
            )
        tenant = _text(record, "tenant") or self.tenant
        ref = ConversationRef(tenant, conversation)
        if user := _text(record, "user") or self._users.get(ref):
            self._users[ref] = user
        if message.role == "user":
            is_kind = message.kind != "message" or record.value.get("kind") == "message"
            known = _READ_KEYS | {"kind"} if is_kind else _READ_KEYS
            keys = record.value.items()
            self.left_out.update(key for key, value in keys if value and key not in known)
        dated = self._date(message, ref, record)
        return HistoryMessage(record.place, ref, user or self.user, dated, _is_exported(record))

    def _date(self, message: Message, ref: ConversationRef, record: Record) -> Message:
        """Return a message without a time of its own as late as the one before, if that has one."""
        if all(record.value.get(key) is None for key in TIME_KEYS):
            times = filter(None, (message.created_at, self._times.get(ref)))
            message = message.replace(created_at=max(times, default=None))
        if message.created_at is not None:
            self._times[ref] = message.created_at
        return message


def _is_exported(record: Record) -> bool:
    return any(isinstance(outer, ExportedConversation) for outer in record.outer)


def _part_undated(
    chunk: list[HistoryMessage],
) -> tuple[list[HistoryMessage], list[HistoryMessage]]:
    """Return a chunk without the conversations that have no time yet, and these if they are few."""
    rest = [item for item in chunk if item.message.created_at is None]
    if len(rest) > _MAX_UNDATED or 2 * _characters(rest) > _CHUNK_CHARACTERS:
        return chunk, []
    return [item for item in chunk if item.message.created_at is not None], rest


def _characters(chunk: Iterable[HistoryMessage]) -> int:
    return sum(len(item.message.full_text) for item in chunk)


def _date_openings(chunk: list[HistoryMessage]) -> list[HistoryMessage]:
    """Date the messages before the first dated one of their conversation like that one."""
    times: dict[ConversationRef, datetime] = {}
    for index, item in reversed(list(enumerate(chunk))):
        if item.message.created_at is not None:
            times[item.ref] = item.message.created_at
        elif item.ref in times:
            dated = item.message.replace(created_at=times[item.ref])
            chunk[index] = item._replace(message=dated)
    return chunk


def _text(record: Record, key: str) -> str | None:
    """Return a key's text from the record, or else from the innermost object around it."""
    for values in (record.value, *reversed(record.outer)):
        if (value := values.get(key)) is not None:
            require_name(key, value)
            return str(value)
    return None
