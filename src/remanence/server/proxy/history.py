"""Matching the history that a client resends with the tape that already has most of it.

Clients send the whole history with each request. Each message gets an id from a chain of hashes, so
that it is stored once, and an edited history never continues the tape of the original.
"""

import asyncio
import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Final, NamedTuple

from remanence import telemetry
from remanence.conversation import Conversation
from remanence.errors import ConversationErased, ConversationGrown, StoreError, WrongUser
from remanence.memory import Memory
from remanence.recent import Recent
from remanence.server.proxy.branches import MAX_BRANCHES, Branch, read_branches
from remanence.server.proxy.identity import (
    call_ids,
    chain,
    continuation_of,
    count_as_one,
    is_same,
    join,
    key_of,
    keys_and_ids,
    without_rounds,
)
from remanence.server.proxy.naming import Name
from remanence.server.proxy.overlap import MIN_MESSAGES, find_overlap, is_unchanged, may_be_edit
from remanence.types import Keep, MemoryState, Message, TapeVersion, ToolResultPart
from remanence.wire.boundaries import is_settled

_OVERLAP: Final = 8
"""Messages at the end of a tape that a history must repeat, if their beginnings differ."""

_INSIDE: Final = 500
"""Newest messages of a tape among which an edited history without its beginning may begin."""

_MANY_BRANCHES: Final = 8
"""The log warns of so many branches, and whenever their number has doubled."""

_DELETED_AT_ONCE: Final = 2
"""Stale branches that are deleted for each new one, so that their number falls."""

_MAX_WAIT: Final = timedelta(hours=1)
"""A tool call without a result for longer was probably cancelled."""

_PAGE: Final = 50
_MAX_PLACES: Final = 20_000
_MAX_NAMES: Final = 10_000
_LOCKS: Final = 256


class UnknownHistory(Exception):
    """A history cannot be stored; the text gives the reason."""


class DetachedHistory(UnknownHistory):
    """A history continues no tape of its conversation, and may not open one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The tape of a history, whose first *length* messages end at *last_seq* on the tape.

    A later answer that the client began is stored only when the model has ended it. The messages
    at the indices *not_on_tape* are not stored, such as a client's summary of the beginning. If the
    match is *in place*, each of them has the place of another message on the tape. The first *pinned*
    ones repeat the beginning of the tape, and the client leaves out what followed them.
    """

    conversation: Conversation
    version: TapeVersion
    length: int
    last_seq: int
    last_id: str
    not_on_tape: frozenset[int]
    is_in_place: bool
    pinned: int

    @property
    def apart(self) -> Collection[int]:
        """The indices of messages that are not among the newest of the tape, in their order."""
        return () if self.is_in_place else {*range(self.pinned), *self.not_on_tape}


class _History(NamedTuple):
    """A client's history with the keys and ids of its messages; with *question*, also its answer.

    A history *slides* that is about as long as the conversation's previous one. *calls* are the ids of
    its tool calls and results.
    """

    name: Name
    messages: Sequence[Message]
    keys: Sequence[str]
    ids: Sequence[str]
    question: Stored | None
    slides: bool
    calls: Collection[str]


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

    @property
    def id_before_last(self) -> str:
        return (self.end[-2].id or "") if len(self.end) > 1 else ""

    def waits_for_tool(self, now: datetime) -> bool:
        """Return whether the tape ends with a tool call that may still be running."""
        at = self.state.last_message_at
        return at is not None and now - at < _MAX_WAIT and not is_settled(self.end[-1:])


class _Match(NamedTuple):
    """The beginning of a history that is on a tape: its length, and its last message there.

    The client changed messages of it, the last of which is the one with number *changed*. The history
    may be a *sub-agent's*: only its task, which comes while a tool call of the conversation waits for
    its result.
    """

    tape: _Tape
    length: int = 0
    last_seq: int = 0
    last_id: str = ""
    not_on_tape: frozenset[int] = frozenset()
    is_in_place: bool = False
    pinned: int = 0
    changed: int = 0
    is_sub_agent: bool = False

    @property
    def is_continuable(self) -> bool:
        """Return whether the match ends where the tape does, so that the rest of the history follows."""
        return self.last_id == self.tape.last_id

    @property
    def rank(self) -> tuple[int, int, int, bool]:
        """The longest match is best, then one whose changes are far back, which later ones confirm."""
        return self.length, -self.changed, -len(self.not_on_tape), self.is_continuable

    def is_enough(self, messages: Sequence[Message]) -> bool:
        """Return whether the match has all but the newest message, and its last one is unchanged."""
        is_end = self.is_continuable and self.length >= len(messages) - 1
        return is_end and self.changed < self.length


class Histories:
    """Stores clients' histories on tapes: one for each conversation, and one for each branch."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._places: Recent[tuple[Name, str], Stored] = Recent(_MAX_PLACES)
        self._lengths: Recent[Name, int] = Recent(_MAX_NAMES)
        self._begun_anew: Recent[tuple[Name, bool], None] = Recent(_MAX_NAMES)
        self._locks = [asyncio.Lock() for _ in range(_LOCKS)]

    async def absorb(
        self,
        name: Name,
        messages: Sequence[Message],
        *,
        branch: bool = True,
        question: Stored | None = None,
    ) -> Stored:
        """Append the messages that the tape lacks, and return the tape of the history.

        *messages* must be joined. An answer at their end is stored only later, when the model has
        ended it, unless they are a *question* and its answer.

        Raises:
            ConversationErased: messages of the tape, or of the question's tape, were deleted or
                forgotten meanwhile.
            DetachedHistory: the history continues no tape, and *branch* does not allow a new one.
            RemanenceError: a message cannot be stored, or the store failed.
        """
        slides = question is None and 2 * len(messages) > self._lengths.get(name, math.inf)
        keys, ids = await asyncio.to_thread(keys_and_ids, messages)
        history = _History(name, messages, keys, ids, question, slides, call_ids(messages))
        async with self._locks[hash(name) % _LOCKS]:
            while True:
                if question is not None:  # its answer may go to a branch
                    asked = question.conversation
                    if (await asked.state()).tape_version != question.version:
                        raise ConversationErased(asked.id)
                with suppress(ConversationGrown, ConversationErased):  # another process was faster
                    return await self._absorb(history, branch=branch)

    async def _absorb(self, history: _History, *, branch: bool) -> Stored:
        """Match and append.

        Raises:
            ConversationGrown, ConversationErased: the tape, or a new tape's name, changed in between.
        """
        match = await self._match(history, branch=branch)
        tape, done, messages = match.tape, match.length, history.messages
        waits = history.question is None and messages[-1].role == "assistant"
        length = max(done, len(messages) - waits)
        is_whole = waits and done == len(messages)
        new = [] if is_whole else await asyncio.to_thread(_missing, match, messages[:length])
        version = tape.state.tape_version
        if (_version_of(tape.conversation, history.question) or version) != version:
            raise ConversationErased(tape.conversation.id)
        appended = await tape.conversation.append(*new, after=tape.state)
        if match.is_sub_agent:
            await tape.conversation.skip_facts()
        if not version.key:  # it has just begun
            version = TapeVersion((await tape.conversation.state()).key, erasures=0)
        before = Stored(
            conversation=tape.conversation,
            version=version,
            length=done,
            last_seq=tape.last_seq,
            last_id=tape.last_id,
            not_on_tape=match.not_on_tape,
            is_in_place=match.is_in_place,
            pinned=match.pinned,
        )
        stored = replace(before, length=length)
        if appended:
            stored = replace(stored, last_seq=appended[-1].seq, last_id=appended[-1].id or "")
        for one in (before, stored):
            if one.length:
                for name in (history.name, _of_any(history.name)):
                    self._places[name, history.ids[one.length - 1]] = one
        if history.question is None:
            self._lengths[history.name] = len(messages)
        return stored

    async def _match(self, history: _History, *, branch: bool) -> _Match:
        """Return the tape that the history continues, a fork of one, or a new one."""
        known = await self._find_known(history, history.name)
        if known and known.is_enough(history.messages) and not known.changed:
            return known
        branches = await read_branches(self._memory, history.name)
        tapes = [await _read_end(each) for each in reversed(branches.tapes)]
        longest = await _find_longest(known, tapes, history)
        now = self._memory.clock.now()
        is_task = [message.role for message in history.messages] == ["user"]
        is_sub_agent = is_task and any(tape.waits_for_tool(now) for tape in tapes)
        if longest and longest.is_continuable:
            # A request that failed may have stored its task, and skipped no facts yet.
            return longest._replace(is_sub_agent=is_sub_agent and longest.tape.last_seq == 1)
        if not tapes:  # a client may have copied it from another conversation
            other = await self._find_known(history, _of_any(history.name))
            longest = other if other and other.length >= MIN_MESSAGES else None
        longest = longest or await _find_inside(tapes[:_MANY_BRANCHES], history)
        if (empty := branches.next) is None:
            raise UnknownHistory(f"the conversation has {MAX_BRANCHES:,} branches already")
        if longest:
            fork = await _fork(longest, empty, history.question)
            await self._limit_branches(history.name, tapes)
            return fork
        if tapes and not branch:
            raise DetachedHistory(
                "the request continues no earlier one of its conversation, like a request for a title: "
                "resend the history, or name a new conversation"
            )
        state = await empty.state()
        if state.last_seq:
            raise ConversationGrown(f"another process has just begun {empty.id!r}")
        await self._limit_branches(history.name, tapes)
        if tapes and (history.name, is_sub_agent) not in self._begun_anew:
            self._begun_anew[history.name, is_sub_agent] = None
            log = telemetry.proxy_sub_agent if is_sub_agent else telemetry.proxy_began_anew
            log(history.name.conversation, empty.id)
        return _Match(_Tape(empty, state, ()), is_sub_agent=is_sub_agent)

    async def _find_known(self, history: _History, name: Name) -> _Match | None:
        """Match the longest beginning of the history that was found on a tape of *name* before."""
        found = (self._places.get((name, id_)) for id_ in reversed(history.ids))
        for place in [history.question] if history.question else filter(None, found):
            with suppress(WrongUser):  # another user's, since it was deleted
                state = await place.conversation.state()
                if state.key == place.version.key:
                    tape = await _read_end(Branch(place.conversation, state))
                    known = _Match(
                        tape,
                        place.length,
                        place.last_seq,
                        place.last_id,
                        place.not_on_tape,
                        place.is_in_place,
                        place.pinned,
                    )
                    return await _extend(known, history)
        return None

    async def _limit_branches(self, name: Name, tapes: Sequence[_Tape]) -> None:
        """Log that there are 8, 16, 32, ... tapes, and delete branches that are not kept any longer."""
        count = len(tapes)
        if count >= _MANY_BRANCHES and count.bit_count() == 1:
            telemetry.proxy_branches(name.conversation, count)
        if (days := self._memory.settings.branches_keep_days) is None:
            return
        cutoff = Keep(days=days).cutoff(self._memory.clock.now())
        stale = [
            tape
            for tape in tapes
            if tape.state.user == name.user
            and tape.state.ref.id != name.conversation
            and (tape.state.last_message_at or cutoff) < cutoff
        ]
        for tape in stale[-_DELETED_AT_ONCE:]:
            with suppress(StoreError):
                await tape.conversation.delete(scrub=False)  # a request waits


def _of_any(name: Name) -> Name:
    """Return a name that stands for all conversations of the same tenant and user."""
    return replace(name, conversation="")


async def _find_longest(
    known: _Match | None, tapes: Sequence[_Tape], history: _History
) -> _Match | None:
    """Return the longest match, and of equal ones that of the first tape.

    Tapes are searched by the id at their end, then by all their ids, and then by the messages at
    their end, until a match is enough.
    """
    messages = history.messages
    lengths = {id_: number for number, id_ in enumerate(history.ids, 1)}
    others = [tape for tape in tapes if not known or tape.state.key != known.tape.state.key]
    found = [known] if known else []
    found += [
        _Match(tape, lengths[tape.last_id], tape.last_seq, tape.last_id)
        for tape in others
        if tape.last_id in lengths
    ]
    if not any(match.is_enough(messages) for match in found):
        begun = [await _extend(await _find_beginning(tape, lengths), history) for tape in others]
        found += [match for match in begun if match.length]
    longest = max(found, key=lambda match: match.rank, default=None)
    if longest and longest.is_enough(messages):
        return longest
    heads = {match.tape.state.key: match.length for match in found}
    return await _find_overlap(tapes, history, longest, heads) or longest


async def _fork(match: _Match, empty: Conversation, question: Stored | None) -> _Match:
    """Copy the matched part of a tape to an empty one."""
    source = match.tape.conversation
    version = _version_of(source, question) or match.tape.state.tape_version
    state = await source.fork(empty.id, last_seq=match.last_seq, version=version)
    tape = await _read_end(Branch(empty, state))
    return match._replace(tape=tape)


def _version_of(conversation: Conversation, stored: Stored | None) -> TapeVersion | None:
    """Return the tape version in *stored*, if that is of the same conversation."""
    if stored is None or stored.conversation.id != conversation.id:
        return None
    return stored.version


async def _read_end(branch: Branch) -> _Tape:
    """Read at least the newest `_OVERLAP` joined messages of a tape, or all."""
    conversation, state = branch
    first, count = state.last_seq, _OVERLAP + 1
    end: Sequence[Message] = ()
    while first and len(end) <= _OVERLAP:
        first = max(0, state.last_seq - count)
        end = join(await conversation.messages(after=first, limit=state.last_seq - first))
        count *= 2
    # The first may be incomplete, unless the tape begins with it.
    return _Tape(conversation, state, end[1:] if first else end)


async def _find_overlap(
    tapes: Sequence[_Tape], history: _History, longest: _Match | None, heads: Mapping[int, int]
) -> _Match | None:
    """Match a history that overlaps the end of a tape, if that is better than the *longest* match.

    *heads* are the numbers of messages that match the beginnings of tapes, by the tapes' keys.
    An edited history matches no tape. If the same messages differ from two tapes, the client itself
    keeps changing them, and no more branches are opened.
    """
    found: list[tuple[_Match, bool]] = []
    shortest = longest.length if longest else 0
    for tape in tapes:
        overlap = find_overlap(
            tape.end,
            history.messages,
            history.keys,
            slides=history.slides,
            head=heads.get(tape.state.key, 0),
            shortest=shortest,
        )
        if not overlap or (
            longest and (overlap.length, -overlap.changed) <= (shortest, -longest.changed)
        ):
            continue
        match = _Match(tape, overlap.length, tape.last_seq, tape.last_id, changed=overlap.changed)
        begin = history.messages[: match.length]
        stored = join(await tape.conversation.messages())
        if not _is_beginning(stored, begin, first=overlap.first):
            lacking = _not_on_tape(stored, begin)
            placed = match._replace(
                not_on_tape=lacking,
                is_in_place=_is_aligned(stored, begin),
                pinned=_count_pinned(stored, begin),
            )
            found.append((placed, _is_edit(stored, begin, lacking)))
    edits: dict[frozenset[int], _Match] = {}
    for match, is_edit in sorted(found, key=lambda one: one[0].rank, reverse=True):
        if not is_edit:
            return match
        if match.not_on_tape in edits:
            return edits[match.not_on_tape]
        edits[match.not_on_tape] = match
    return None


async def _find_inside(tapes: Sequence[_Tape], history: _History) -> _Match | None:
    """Match a history that lost its beginning and leaves a tape before its end, as by an edit.

    Only its first message, such as a summary, may be missing among the newest of the tape.
    """
    for tape in tapes:
        newest = await _read_joined(tape, max(0, tape.last_seq - _INSIDE), _INSIDE)
        stored = [key_of(message) for message in newest]
        run = SequenceMatcher(None, stored, history.keys, autojunk=False).find_longest_match()
        if run.b <= 1 and run.size >= (_OVERLAP if run.b else MIN_MESSAGES):
            last = newest[run.a + run.size - 1]
            lacking = _not_on_tape(newest, history.messages[: run.b])
            length, pinned = run.b + run.size, run.b - len(lacking)
            return _Match(tape, length, last.seq, last.id or "", lacking, pinned=pinned)
    return None


def _is_beginning(stored: Sequence[Message], messages: Sequence[Message], *, first: int) -> bool:
    """Return whether a history matches the start of a tape, whose end only repeats the same words.

    Some message then has two places on the tape: its own, and one at the end, where the *first* is.
    """
    pairs = zip(stored, messages, strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: is_same(*pair), pairs))
    return len(stored) != len(messages) and shared > first


def _count_pinned(stored: Sequence[Message], messages: Sequence[Message]) -> int:
    """Return how many messages repeat the beginning of a tape, in a history that left some out behind them."""
    pairs = zip(stored, messages, strict=False)
    same = sum(1 for _ in takewhile(lambda pair: is_same(*pair), pairs))
    return same if len(stored) > len(messages) else 0


def _not_on_tape(stored: Sequence[Message], messages: Sequence[Message]) -> frozenset[int]:
    """Return the indices of messages that are nowhere on the tape; forgotten ones count as stored.

    If tape and history are aligned, messages are compared place by place.
    """
    is_aligned = _is_aligned(stored, messages)
    # A history may begin with the words that were beside results.
    copies = () if is_aligned else (*stored, *map(_without_results, stored))
    keys = {key_of(message) for message in copies}
    pairs = zip(reversed(stored), reversed(range(len(messages))), strict=False)
    same = {index for message, index in pairs if is_same(message, messages[index])}
    return frozenset(
        index
        for index, message in enumerate(messages)
        if index not in same
        and key_of(message) not in keys
        and not _spans_gap(stored, messages, index)
    )


def _spans_gap(stored: Sequence[Message], messages: Sequence[Message], index: int) -> bool:
    """Return whether a message is the last one before what a client leaves out, and the first behind it.

    Two answers, without the messages between them, count as one.
    """
    if (gap := len(stored) - len(messages)) <= 0:
        return False
    before, behind = stored[index], stored[index + gap]
    return count_as_one(before, behind) and is_same(join([before, behind])[0], messages[index])


def _is_aligned(stored: Sequence[Message], messages: Sequence[Message]) -> bool:
    """Return whether each message of a history has its place on a tape, though some are changed.

    Two other messages at the beginning are a summary and its answer, which stand for any number.
    """
    return len(stored) == len(messages) and any(map(is_same, stored[:2], messages[:2]))


def _without_results(message: Message) -> Message:
    parts = [part for part in message.content if not isinstance(part, ToolResultPart)]
    return message.replace(role="user", content=tuple(parts)) if parts else message


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


async def _find_beginning(tape: _Tape, lengths: Mapping[str, int]) -> _Match:
    """Find the end of the beginning shared with a tape, by bisection: an id covers all before it."""
    found, beyond = _Match(tape), tape.last_seq + 1
    while beyond - found.last_seq > 1:
        middle = (found.last_seq + beyond) // 2
        joined = await _read_joined(tape, middle - 1, _OVERLAP)
        if joined and (id_ := joined[0].id or "") in lengths:
            found = _Match(tape, lengths[id_], joined[0].seq, id_)
        else:
            beyond = middle
    return found


async def _extend(match: _Match, history: _History) -> _Match:
    """Extend a match by messages that are the same although their client changed them.

    A message that may be an edit counts only if one after it is the same, too, or if it goes on
    where the tape ends and the model is to continue it. The match ends with a message that was
    continued on the tape but not in the history.
    """
    end, messages = match, history.messages
    while end.length < len(messages) and not end.is_continuable:
        if not (page := await _read_shown(end.tape, end.last_seq, history.calls)):
            break
        for (stored, is_gathered), one in zip(page, messages[end.length :], strict=False):
            at = end.length + 1
            is_kept = is_unchanged(stored, one, end.last_id)
            if not is_kept and (before := await _find_continued(end, stored, one)):
                return end._replace(length=at, last_seq=before.seq, last_id=before.id or "")
            if not is_same(stored, one, is_whole=is_gathered):
                return match
            changed = end.changed if is_kept else at
            end = end._replace(
                length=at, last_seq=stored.seq, last_id=stored.id or "", changed=changed
            )
            is_edit = may_be_edit(stored, is_older=at < len(messages))
            goes_on = history.question is None and bool(continuation_of(stored, one))
            if is_kept or goes_on or not is_edit:
                match = end
    return match


async def _find_continued(end: _Match, stored: Message, resent: Message) -> Message | None:
    """Find the message after the *end* that is the resent one, and was continued to the stored one."""
    if not (count := stored.seq - end.last_seq - 1):
        return None
    id_ = next(chain([resent], end.last_id))
    messages = await end.tape.conversation.messages(after=end.last_seq, limit=count)
    return next((message for message in messages if message.id == id_), None)


async def _read_shown(
    tape: _Tape, after: int, calls: Collection[str]
) -> Sequence[tuple[Message, bool]]:
    """Return the next messages of a tape without rounds of other *calls*, as clients leave old ones out.

    Answers before and after such a round count as one, which is marked: a copy must have all their
    text, as a user who goes back to the words before a call resends the first of them only.
    """
    limit = _PAGE
    while page := await _read_joined(tape, after, limit):
        shown = without_rounds(page, calls)
        texts = {message.seq: message.text for message in page}
        marked = [(one, one.text != texts[one.seq]) for one in shown]
        if shown is page or page[-1].seq >= tape.last_seq:
            return marked
        if len(shown) > 1:
            return marked[:-1]  # it may go on behind a round
        limit *= 2
    return ()


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
    tape, done = match.tape, match.length
    previous = tape.last_id
    rest = continuation_of(tape.end[-1], messages[done - 1]) if done else ()
    if rest:
        done -= 1
        previous = tape.id_before_last
    ids = chain(messages[done:], previous)
    new = [message.replace(id=id_) for message, id_ in zip(messages[done:], ids, strict=True)]
    if rest:
        new[0] = new[0].replace(content=rest)
    return new
