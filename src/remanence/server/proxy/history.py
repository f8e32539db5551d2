"""Matching the history that a client resends with the tape that already has most of it.

Clients send the whole history with each request. Each message gets an id from a chain of hashes, so
that it is stored once, and an edited history never continues the tape of the original.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from typing import Final, NamedTuple, TypeAlias

from remanence.conversation import Conversation
from remanence.errors import ConversationErased, ConversationGrown, WrongUser
from remanence.memory import Memory
from remanence.recent import Recent
from remanence.server.proxy.branches import MAX_BRANCHES, Branch, read_branches
from remanence.server.proxy.identity import (
    chain,
    continuation_of,
    is_equal,
    is_same,
    is_shortened,
    join,
    key_of,
)
from remanence.server.proxy.naming import Name
from remanence.types import MemoryState, Message, TapeVersion

_OVERLAP: Final = 8
"""Messages at the end of a tape that a history must repeat, if their beginnings differ."""

_OVERLAP_MESSAGES: Final = 6
_OVERLAP_TEXT: Final = 80
_OVERLAP_CALL: Final = 8
"""Evidence that a history with another beginning belongs to a tape. At least two messages must
overlap, and reach one of these: number of messages, characters of the user, length of a call's id.

Less is not enough: many conversations share a greeting and its answer.
"""

_PAGE: Final = 50
_MAX_PLACES: Final = 10_000
_LOCKS: Final = 256

_Same: TypeAlias = Callable[[Message, Message], bool]
"""Compares a stored message with a resent one."""


class UnknownHistory(Exception):
    """A history cannot be stored; the text gives the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The tape of a history, whose first *length* messages end at *last_seq* on the tape.

    A later answer that the client began is stored only when the model has ended it. The messages
    at the indices *not_on_tape* are not stored, such as a client's summary of the beginning.
    """

    conversation: Conversation
    last_seq: int
    length: int
    not_on_tape: frozenset[int]
    version: TapeVersion


class _Tape(NamedTuple):
    """A tape and its newest messages, joined as in histories."""

    conversation: Conversation
    state: MemoryState
    end: Sequence[Message]

    @property
    def last_seq(self) -> int:
        return self.state.last_seq

    @property
    def last_id(self) -> str:
        return (self.end[-1].id or "") if self.end else ""


class _Match(NamedTuple):
    """A tape, and how many messages of a history lead up to its end."""

    tape: _Tape
    length: int = 0
    not_on_tape: frozenset[int] = frozenset()


class _Place(NamedTuple):
    """The last message of a history that was found on a tape before.

    The *key* identifies the tape, whose name may be reused after a deletion.
    """

    conversation: Conversation
    key: int
    last_id: str
    last_seq: int
    not_on_tape: frozenset[int]


class _Shared(NamedTuple):
    """The beginning that a history shares with a tape: its length, and its last message on the tape."""

    tape: _Tape
    length: int = 0
    last_seq: int = 0
    last_id: str = ""
    not_on_tape: frozenset[int] = frozenset()


class Histories:
    """Stores clients' histories on tapes: one for each conversation, and one for each branch."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._places: Recent[tuple[Name, str], _Place] = Recent(_MAX_PLACES)
        self._locks = [asyncio.Lock() for _ in range(_LOCKS)]

    async def absorb(
        self,
        name: Name,
        messages: Sequence[Message],
        *,
        branch: bool = True,
        whole: bool = True,
        question: Stored | None = None,
    ) -> Stored:
        """Append the messages that the tape lacks, and return the tape of the history.

        *messages* must be joined. If they are not *whole*, an answer at their end is stored only
        later, when the model has ended it. With *question*, they are that history and its answer.

        Raises:
            ConversationErased: messages of the tape, or of the question's tape, were deleted or
                forgotten meanwhile.
            UnknownHistory: the history continues no tape, and *branch* does not allow a new one.
            RemanenceError: a message cannot be stored, or the store failed.
        """
        async with self._locks[hash(name) % _LOCKS]:
            while True:
                if question is not None:
                    await _require_unerased(question)  # the answer may go to a branch
                with suppress(ConversationGrown, ConversationErased):  # another process was faster
                    return await self._absorb(
                        name, messages, branch=branch, whole=whole, question=question
                    )

    async def _absorb(
        self,
        name: Name,
        messages: Sequence[Message],
        *,
        branch: bool,
        whole: bool,
        question: Stored | None,
    ) -> Stored:
        """Match and append.

        Raises:
            ConversationGrown, ConversationErased: the tape, or a new tape's name, changed in between.
        """
        ids = list(chain(messages))
        match = await self._match(name, messages, ids, branch=branch, question=question)
        tape, done, not_on_tape = match
        waits = not whole and messages[-1].role == "assistant"
        length = max(done, len(messages) - waits)
        new = [] if waits and done == len(messages) else _missing(match, messages[:length])
        version = tape.state.tape_version
        if (_version_of(tape.conversation, question) or version) != version:
            raise ConversationErased(tape.conversation.id)
        appended = await tape.conversation.append(*new, after=tape.state)
        if not version.key:  # it has just begun
            version = TapeVersion((await tape.conversation.state()).key, erasures=0)
        last_id = (new[-1].id or "") if new else tape.last_id
        last_seq = appended[-1].seq if appended else tape.last_seq
        ends = (done, tape.last_id, tape.last_seq), (length, last_id, last_seq)
        for end, end_id, end_seq in ends:
            if end:
                place = _Place(tape.conversation, version.key, end_id, end_seq, not_on_tape)
                self._places[name, ids[end - 1]] = place
        return Stored(
            conversation=tape.conversation,
            last_seq=last_seq,
            length=length,
            not_on_tape=not_on_tape,
            version=version,
        )

    async def _match(
        self,
        name: Name,
        messages: Sequence[Message],
        ids: Sequence[str],
        *,
        branch: bool,
        question: Stored | None,
    ) -> _Match:
        """Return the tape that the history continues, a fork of one, or a new one."""
        known = await self._longest_known(name, ids)
        found = _match_known(known, messages, is_equal) if known else None
        if found and found.length >= len(messages) - 1:
            return found
        branches = await read_branches(self._memory, name)
        tapes = [await _read_end(each) for each in branches.tapes]
        lengths = {id_: number for number, id_ in enumerate(ids, 1)}
        ends = [_Match(tape, lengths[tape.last_id]) for tape in tapes if tape.last_id in lengths]
        found = max(filter(None, (found, *ends)), key=lambda match: match.length, default=None)
        if found and found.length >= len(messages) - 1:
            return found
        if not found and known and (match := _match_known(known, messages, is_same)):
            return match
        shared = await _find_shared(known, tapes, messages, ids)
        if found and (not shared or shared.length <= found.length):
            return found
        if shared and shared.last_id == shared.tape.last_id:
            return _Match(shared.tape, shared.length, shared.not_on_tape)
        if match := await _find_overlap(tapes, messages, beyond=shared.length if shared else 0):
            return match
        if (empty := branches.next) is None:
            raise UnknownHistory(f"the conversation has {MAX_BRANCHES:,} branches already")
        if shared:
            source = shared.tape.conversation
            version = _version_of(source, question) or shared.tape.state.tape_version
            state = await source.fork(empty.id, last_seq=shared.last_seq, version=version)
            forked = await _read_end(Branch(empty, state))
            return _Match(forked, shared.length, shared.not_on_tape)
        if tapes and not branch:
            raise UnknownHistory(
                "the request continues no earlier one of its conversation, like a request for a title: "
                "resend the history, or name a new conversation"
            )
        return _Match(await _require_empty(empty))

    async def _longest_known(self, name: Name, ids: Sequence[str]) -> _Shared | None:
        """Return the longest beginning of the history that was found on a tape before."""
        for length in range(len(ids), 0, -1):
            if place := self._places.get((name, ids[length - 1])):
                with suppress(WrongUser):  # another user's, since it was deleted
                    tape = await _read_end(
                        Branch(place.conversation, await place.conversation.state())
                    )
                    if tape.state.key == place.key:
                        return _Shared(
                            tape, length, place.last_seq, place.last_id, place.not_on_tape
                        )
        return None


async def _require_empty(conversation: Conversation) -> _Tape:
    state = await conversation.state()
    if state.last_seq:
        raise ConversationGrown(f"another process has just begun {conversation.id!r}")
    return _Tape(conversation, state, ())


async def _require_unerased(stored: Stored) -> None:
    conversation = stored.conversation
    if (await conversation.state()).tape_version != stored.version:
        raise ConversationErased(conversation.id)


def _version_of(conversation: Conversation, stored: Stored | None) -> TapeVersion | None:
    """Return the tape version in *stored*, if that is of the same conversation."""
    if stored is None or stored.conversation.id != conversation.id:
        return None
    return stored.version


async def _read_end(branch: Branch) -> _Tape:
    """Read at least the newest `_OVERLAP` joined messages of a tape, or all."""
    conversation, state = branch
    last_seq, count = state.last_seq, _OVERLAP + 1
    end: Sequence[Message] = ()
    while last_seq:
        first = max(0, last_seq - count)
        end = join(await conversation.messages(after=first, limit=last_seq - first))
        if not first:
            break
        if len(end) > _OVERLAP:
            end = end[1:]  # the first may be incomplete
            break
        count *= 2
    return _Tape(conversation, state, end)


def _match_known(known: _Shared, messages: Sequence[Message], compare: _Same) -> _Match | None:
    """Match a history whose beginning was found on a tape before."""
    ids = [message.id for message in known.tape.end]
    if known.last_id not in ids:
        return None
    new = len(ids) - ids.index(known.last_id) - 1
    end = known.length + new
    if end > len(messages):
        return None
    if not _ends_match(known.tape, new, messages[:end], compare, newest=messages[-1]):
        return None
    return _Match(known.tape, end, known.not_on_tape)


def _ends_match(
    tape: _Tape, count: int, messages: Sequence[Message], compare: _Same, *, newest: Message
) -> bool:
    """Return whether *messages* end with the last *count* messages of a tape.

    They do not if the *newest* message of the history is an edit of the tape's last message.
    """
    if not count:
        return True
    pairs = zip(tape.end[-count:], messages[-count:], strict=True)
    is_edited = messages[-1] is newest and _is_edited(tape, newest)
    return not is_edited and all(compare(before, now) for before, now in pairs)


def _is_edited(tape: _Tape, newest: Message) -> bool:
    """Return whether the newest message of a history replaces the last message of a tape.

    It does if it is shortened, as clients shorten only older messages, or if it differs from the
    message that was forgotten there.
    """
    *before, stored = tape.end
    if stored.kind == "forgotten":
        return stored.id != next(chain([newest], (before[-1].id or "") if before else ""))
    return is_shortened(stored, newest)


async def _find_overlap(
    tapes: Sequence[_Tape], messages: Sequence[Message], *, beyond: int
) -> _Match | None:
    """Match a history that overlaps the end of a tape, for more than its first *beyond* messages.

    Of several tapes, the one with the longest match wins, then the latest branch. An edited history
    matches no tape. If the same messages differ from two tapes, the client itself keeps changing
    them, and no more branches are opened.
    """
    edits: dict[frozenset[int], _Match] = {}
    overlaps = ((_overlap(tape, messages), tape) for tape in reversed(tapes))
    for length, tape in sorted(overlaps, key=lambda overlap: overlap[0], reverse=True):
        if length <= beyond:
            break
        stored = join(await tape.conversation.messages())
        if _is_beginning(stored, messages[:length], overlap=min(len(tape.end), length)):
            continue
        match = _Match(tape, length, _not_on_tape(stored, messages[:length]))
        if not _is_edit(stored, messages[:length], match.not_on_tape):
            return match
        if match.not_on_tape in edits:
            return edits[match.not_on_tape]
        edits[match.not_on_tape] = match
    return None


def _overlap(tape: _Tape, messages: Sequence[Message]) -> int:
    """Return the length of the history up to where the tape ends, or 0 without an overlap."""
    for length in range(len(messages), 1, -1):
        count = min(len(tape.end), length)
        stored, resent = tape.end[-count:], messages[length - count : length]
        known = [new for old, new in zip(stored, resent, strict=True) if old.kind != "forgotten"]
        is_enough = len(known) > 1 and _is_evident(known)
        if is_enough and _ends_match(tape, count, resent, is_same, newest=messages[-1]):
            return length
    return 0


def _is_evident(known: Sequence[Message]) -> bool:
    """Return whether overlapping messages are unlikely to occur in two conversations."""
    calls = [call.id for message in known for call in message.tool_calls]
    results = [result.call_id for message in known for result in message.tool_results]
    texts = {message.text for message in known if message.role == "user"}
    return (
        len(known) >= _OVERLAP_MESSAGES
        or sum(map(len, texts)) >= _OVERLAP_TEXT
        or any(len(id_) >= _OVERLAP_CALL for id_ in (*calls, *results))
    )


def _is_beginning(stored: Sequence[Message], messages: Sequence[Message], *, overlap: int) -> bool:
    """Return whether a history matches the start of a tape, whose end only repeats the same words.

    Some message then has two places on the tape: its own, and one in the *overlap*.
    """
    pairs = zip(stored, messages, strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: is_same(*pair), pairs))
    return len(stored) != len(messages) and shared > len(messages) - overlap


def _not_on_tape(stored: Sequence[Message], messages: Sequence[Message]) -> frozenset[int]:
    """Return the indices of messages that are nowhere on the tape; forgotten ones count as stored.

    If tape and history have the same length, messages are compared place by place.
    """
    is_aligned = len(stored) == len(messages)
    keys = frozenset() if is_aligned else {key_of(message) for message in stored}
    pairs = zip(reversed(stored), reversed(range(len(messages))), strict=False)
    same = {index for message, index in pairs if is_same(message, messages[index])}
    return frozenset(
        index
        for index, message in enumerate(messages)
        if index not in same and key_of(message) not in keys
    )


def _is_edit(
    stored: Sequence[Message], messages: Sequence[Message], lacking: Collection[int]
) -> bool:
    """Return whether a history differs from a tape of the same length by edited messages.

    A changed first message does not count: clients put a summary or the current date there.
    """
    return (
        len(stored) == len(messages)
        and is_same(stored[0], messages[0])
        and any(messages[index].role in ("user", "assistant") for index in lacking)
    )


async def _find_shared(
    known: _Shared | None, tapes: Sequence[_Tape], messages: Sequence[Message], ids: Sequence[str]
) -> _Shared | None:
    """Return the longest beginning that a history shares with a tape, preferring later branches."""
    found = [await _find_beginning(tape, ids) for tape in reversed(tapes)]
    if known and await _exists(known):
        found.insert(0, known)
    found = [await _extend(one, messages) for one in found]
    longest = max(found, key=lambda one: one.length, default=None)
    return longest if longest and longest.length else None


async def _exists(known: _Shared) -> bool:
    """Return whether the tape still has the last message of a known history."""
    found = await known.tape.conversation.messages(after=known.last_seq - 1, limit=1)
    return [message.id for message in found] == [known.last_id]


async def _find_beginning(tape: _Tape, ids: Sequence[str]) -> _Shared:
    """Find the end of the beginning shared with a tape, by bisection: an id covers all before it."""
    lengths = {id_: number for number, id_ in enumerate(ids, 1)}
    shared, beyond = _Shared(tape), tape.last_seq + 1
    while beyond - shared.last_seq > 1:
        middle = (shared.last_seq + beyond) // 2
        joined = await _read_joined(tape, middle - 1, _OVERLAP)
        if joined and (id_ := joined[0].id) in lengths:
            shared = _Shared(tape, lengths[id_], joined[0].seq, id_)
        else:
            beyond = middle
    return shared


async def _extend(shared: _Shared, messages: Sequence[Message]) -> _Shared:
    """Extend a shared beginning by messages that match although their client changed them.

    A forgotten message matches by its id, or if the message after it does. The newest message of
    the history must be unchanged.
    """
    at, end_id, end_seq = shared.length, shared.last_id, shared.last_seq
    while at < len(messages) and (page := await _read_joined(shared.tape, end_seq, _PAGE)):
        for stored in page[: len(messages) - at]:
            one, at = messages[at], at + 1
            is_known = is_equal(stored, one) or stored.id == next(chain([one], end_id))
            if not is_known and (at == len(messages) or not is_same(stored, one)):
                return shared
            end_id, end_seq = stored.id or "", stored.seq
            if is_known or stored.kind != "forgotten":
                shared = shared._replace(length=at, last_seq=end_seq, last_id=end_id)
    return shared


async def _read_joined(tape: _Tape, after: int, limit: int) -> Sequence[Message]:
    """Return the next messages of a tape, joined as in histories, and none of them incomplete."""
    while True:
        read = await tape.conversation.messages(after=after, limit=limit)
        joined = join(read)
        if len(read) < limit or read[-1].seq >= tape.last_seq:
            return joined
        if len(joined) > 1:
            return joined[:-1]
        limit *= 2


def _missing(match: _Match, messages: Sequence[Message]) -> list[Message]:
    """Return the messages that the tape lacks, with their ids.

    The first may be the rest of an answer. It gets the id of the whole answer, by which the history
    is found again.
    """
    tape, done, _ = match
    previous = tape.last_id
    rest = continuation_of(tape.end[-1], messages[done - 1]) if done else ()
    if rest:
        done -= 1
        previous = (tape.end[-2].id or "") if len(tape.end) > 1 else ""
    ids = chain(messages[done:], previous)
    new = [message.replace(id=id_) for message, id_ in zip(messages[done:], ids, strict=True)]
    if rest:
        new[0] = new[0].replace(content=rest)
    return new
