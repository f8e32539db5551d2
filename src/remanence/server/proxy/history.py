"""A client's resent history, and the tape that already has most of it.

Such a client sends all messages with each request. Each gets an id by a chain of hashes, so that a
message is on the tape once, and a history that was edited never continues the tape of another.
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
    is_equal,
    is_same,
    is_shortened,
    join,
    key_of,
    rest_of,
)
from remanence.server.proxy.naming import Name
from remanence.types import MemoryState, Message, TapeVersion

_OVERLAP: Final = 8
"""Messages at the end of the tape that a history must repeat, if it does not begin as the tape."""

_OVERLAP_MESSAGES: Final = 6
_OVERLAP_TEXT: Final = 80
_OVERLAP_CALL: Final = 8
"""Evidence that a history without its beginning is that of a tape: two messages or more, of which
there are so many, or that have so many characters of the user, or the id of a call with so many.

A greeting and its answer are in the conversations of many.
"""

_PAGE: Final = 50
_KEPT_PLACES: Final = 10_000
_LOCKS: Final = 256

_Same: TypeAlias = Callable[[Message, Message], bool]
"""Compares a message of a tape with one that was resent."""


class UnknownHistory(Exception):
    """A history that is not stored; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The tape of a history: of the first *length* messages, the last one has the seq *last_seq*.

    An answer that the client began waits for its end behind them. The messages at the indices
    *not_on_tape* are not stored, such as a summary that a client put in place of the beginning.
    """

    conversation: Conversation
    last_seq: int
    length: int
    not_on_tape: frozenset[int]
    version: TapeVersion


class _Tape(NamedTuple):
    """A tape and its newest messages, as histories have them."""

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
    """A tape, and the number of messages of a history that end where the tape does."""

    tape: _Tape
    length: int = 0
    not_on_tape: frozenset[int] = frozenset()


class _Place(NamedTuple):
    """The end of a history that was found on a tape: the message with the id *last_id*.

    The tape has a key, as its name may be another one's after it was deleted.
    """

    conversation: Conversation
    key: int
    last_id: str
    last_seq: int
    not_on_tape: frozenset[int]


class _Shared(NamedTuple):
    """The beginning that a history shares with a tape: so many messages, and the last on the tape."""

    tape: _Tape
    length: int = 0
    last_seq: int = 0
    last_id: str = ""
    not_on_tape: frozenset[int] = frozenset()


class Histories:
    """Puts histories of clients on tapes: the named one, and one for each branch of it."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._places: Recent[tuple[Name, str], _Place] = Recent(_KEPT_PLACES)
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
        """Append the messages that the tape does not have, and return where the history is.

        Successive *messages* are joined. If they are not *whole*, an answer at their end
        waits until the model has ended it. With *question* they are it and its answer.

        Raises:
            ConversationErased: the tape, or that of the question, was deleted, or made to forget,
                meanwhile.
            UnknownHistory: it begins like no tape, and *branch* allows no new one then.
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
            ConversationGrown: the tape, or the name of a new one, changed in between.
            ConversationErased: the same.
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
        """Return the tape that the history continues, or an empty one."""
        known = await self._longest_known(name, ids)
        found = _go_on(known, messages, is_equal) if known else None
        if found and found.length >= len(messages) - 1:
            return found
        branches = await read_branches(self._memory, name)
        tapes = [await _read_end(each) for each in branches.tapes]
        lengths = {id_: number for number, id_ in enumerate(ids, 1)}
        ends = [_Match(tape, lengths[tape.last_id]) for tape in tapes if tape.last_id in lengths]
        found = max(filter(None, (found, *ends)), key=lambda match: match.length, default=None)
        if found and found.length >= len(messages) - 1:
            return found
        if not found and known and (match := _go_on(known, messages, is_same)):
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
                "it continues no earlier request of its conversation, like a request for a title: "
                "resend the history, or name a new conversation"
            )
        return _Match(await _require_empty(empty))

    async def _longest_known(self, name: Name, ids: Sequence[str]) -> _Shared | None:
        """Return how much of the history was found on a tape before."""
        for length in range(len(ids), 0, -1):
            if place := self._places.get((name, ids[length - 1])):
                with suppress(WrongUser):  # who has its name since it was deleted
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
    """Return the version that a conversation had when it was stored, if it is that one."""
    if stored is None or stored.conversation.id != conversation.id:
        return None
    return stored.version


async def _read_end(branch: Branch) -> _Tape:
    """Read the newest `_OVERLAP` messages of a tape, of however many parts each is, or all."""
    conversation, state = branch
    last_seq, count = state.last_seq, _OVERLAP + 1
    end: Sequence[Message] = ()
    while last_seq:
        first = max(0, last_seq - count)
        end = join(await conversation.messages(after=first, limit=last_seq - first))
        if not first:
            break
        if len(end) > _OVERLAP:
            end = end[1:]  # which may be the rest of one
            break
        count *= 2
    return _Tape(conversation, state, end)


def _go_on(known: _Shared, messages: Sequence[Message], compare: _Same) -> _Match | None:
    """Match a history whose beginning was on a tape before."""
    ids = [message.id for message in known.tape.end]
    if known.last_id not in ids:
        return None
    new = len(ids) - ids.index(known.last_id) - 1
    end = known.length + new
    if end > len(messages):
        return None
    if not _agree(known.tape, new, messages[:end], compare, newest=messages[-1]):
        return None
    return _Match(known.tape, end, known.not_on_tape)


def _agree(
    tape: _Tape, count: int, messages: Sequence[Message], compare: _Same, *, newest: Message
) -> bool:
    """Return whether *messages* end with the last *count* of a tape.

    The newest of the history may be an edit of what the tape ends with.
    """
    if not count:
        return True
    pairs = zip(tape.end[-count:], messages[-count:], strict=True)
    is_edited = messages[-1] is newest and _is_edited(tape, newest)
    return not is_edited and all(compare(before, now) for before, now in pairs)


def _is_edited(tape: _Tape, newest: Message) -> bool:
    """Return whether a message takes the place of the one that a tape ends with.

    It is shorter, as clients shorten only older ones, or not the one that was forgotten there.
    """
    *before, stored = tape.end
    if stored.kind == "forgotten":
        return stored.id != next(chain([newest], (before[-1].id or "") if before else ""))
    return is_shortened(stored, newest)


async def _find_overlap(
    tapes: Sequence[_Tape], messages: Sequence[Message], *, beyond: int
) -> _Match | None:
    """Match a history that ends like a tape, *beyond* the beginning that it shares with another.

    Of several tapes it continues the one that has most of it, and of these the latest branch. One
    that was edited matches none. A message that was changed twice is changed by the client itself,
    and opens no more branches.
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
    """Return how many messages of a history end with the tape, or 0."""
    for length in range(len(messages), 1, -1):
        count = min(len(tape.end), length)
        stored, resent = tape.end[-count:], messages[length - count : length]
        known = [new for old, new in zip(stored, resent, strict=True) if old.kind != "forgotten"]
        is_enough = len(known) > 1 and _is_evident(known)
        if is_enough and _agree(tape, count, resent, is_same, newest=messages[-1]):
            return length
    return 0


def _is_evident(known: Sequence[Message]) -> bool:
    """Return whether so many messages at the end of a tape are hardly in two conversations."""
    calls = [call.id for message in known for call in message.tool_calls]
    results = [result.call_id for message in known for result in message.tool_results]
    texts = {message.text for message in known if message.role == "user"}
    return (
        len(known) >= _OVERLAP_MESSAGES
        or sum(map(len, texts)) >= _OVERLAP_TEXT
        or any(len(id_) >= _OVERLAP_CALL for id_ in (*calls, *results))
    )


def _is_beginning(stored: Sequence[Message], messages: Sequence[Message], *, overlap: int) -> bool:
    """Return whether a history begins as a tape that only ends with the same words again.

    Then a message of it would have two places on the tape: its own, and one in the *overlap*.
    """
    pairs = zip(stored, messages, strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: is_same(*pair), pairs))
    return len(stored) != len(messages) and shared > len(messages) - overlap


def _not_on_tape(stored: Sequence[Message], messages: Sequence[Message]) -> frozenset[int]:
    """Return the indices of the messages that are nowhere on the tape; forgotten ones are on it.

    Where both are of the same length, each message has its place.
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
    """Return whether a history only says something else where the tape has another text.

    A first message that changed is the client's own, such as a summary or the date of today.
    """
    return (
        len(stored) == len(messages)
        and is_same(stored[0], messages[0])
        and any(messages[index].role in ("user", "assistant") for index in lacking)
    )


async def _find_shared(
    known: _Shared | None, tapes: Sequence[_Tape], messages: Sequence[Message], ids: Sequence[str]
) -> _Shared | None:
    """Return the longest beginning that a history shares with a tape, the latest of several."""
    found = [await _find_beginning(tape, ids) for tape in reversed(tapes)]
    if known and await _is_there(known):
        found.insert(0, known)
    found = [await _extend(one, messages) for one in found]
    longest = max(found, key=lambda one: one.length, default=None)
    return longest if longest and longest.length else None


async def _is_there(known: _Shared) -> bool:
    """Return whether the tape still has the message with which a known history ends."""
    found = await known.tape.conversation.messages(after=known.last_seq - 1, limit=1)
    return [message.id for message in found] == [known.last_id]


async def _find_beginning(tape: _Tape, ids: Sequence[str]) -> _Shared:
    """Return where a history with these ids leaves the tape: each stands for all before it."""
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
    """Return a shared beginning with the messages behind it that their client changed.

    A forgotten message is known by its id, or by the one behind it; the newest is never changed.
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
    """Return the next messages of a tape, as histories have them, and no part of one."""
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

    The first may be the rest of an answer: it has the id of the whole, by which its history is
    found again.
    """
    tape, done, _ = match
    previous = tape.last_id
    rest = rest_of(tape.end[-1], messages[done - 1]) if done else ()
    if rest:
        done -= 1
        previous = (tape.end[-2].id or "") if len(tape.end) > 1 else ""
    ids = chain(messages[done:], previous)
    new = [message.replace(id=id_) for message, id_ in zip(messages[done:], ids, strict=True)]
    if rest:
        new[0] = new[0].replace(content=rest)
    return new
