"""Rewriting of clients' requests with the memory of their conversations."""

import asyncio
import hashlib
import json
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from itertools import count, groupby
from operator import itemgetter
from typing import Final

from remanence import telemetry
from remanence.context.context import Context, Omitted, shown_whole
from remanence.engine.openings import opening
from remanence.errors import InvalidMessage, RemanenceError, StoreError
from remanence.memory import Memory
from remanence.notes.program_text import own_text
from remanence.providers.requests import Tokens, tokens_of
from remanence.recent import Recent
from remanence.server.proxy.api import ProxiedAPI, Unit, is_prompt, is_reference, read_units
from remanence.server.proxy.history import DetachedHistory, Histories, Stored, UnknownHistory
from remanence.server.proxy.identity import call_ids, chain, count_as_one, without_rounds
from remanence.server.proxy.instructions import keep_instructions
from remanence.server.proxy.items import Items
from remanence.server.proxy.naming import (
    MEMORY,
    Name,
    conversation_of,
    is_compaction,
    name_of,
    tenants_of,
)
from remanence.types import Message, TapeVersion, Usage
from remanence.wire.boundaries import groups, orphan
from remanence.wire.json_value import JsonObject, read_object
from remanence.wire.links import open_links
from remanence.wire.message_rules import MessageTooLong, storable
from remanence.wire.parts import OtherPart, TextPart
from remanence.wire.turns import volatile_block

_log = logging.getLogger(__name__)

MEMORY_SECONDS: Final = 30.0
"""The time limit for memory; after it, a request goes on without."""

_NOTES: Final = ("facts", "heading", "reflection", "own_facts", "observation", "stand_in")
_SIDE_MESSAGES: Final = 3
"""Requests beside a conversation, such as for its title, have at most so many messages, no answer
among them, and no tools.
"""

_DETACHED_IN_A_ROW: Final = 4
"""The log warns of so many; a chat window sends up to three: for a title, tags, and questions to ask."""

_OUTPUT_LIMITS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_SIDE_TOKENS: Final = 16
"""Requests for at most so many tokens only probe a key or a model."""

_MAX_NAMES: Final = 10_000
_MAX_MODEL_CHARACTERS: Final = 200
"""A model's name is any text of the client, which ledger and metrics keep."""

_USER_DIGITS: Final = 16

_WARN_EVERY: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A stored question, whose answer is stored after it unless it was erased meanwhile."""

    api: ProxiedAPI
    model: str
    name: Name
    messages: Sequence[Message]
    stored: Stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A request to forward; without a *turn* it is unchanged, for the given *reason*.

    *omitted* are messages of the tape that neither the request nor its notes cover in full.
    """

    content: bytes
    turn: Turn | None = None
    omitted: Sequence[Omitted] = ()
    reason: str = ""


class _Unnamed(UnknownHistory):
    """A request names no conversation."""


class Requests:
    """Prepares requests, and stores their answers.

    With *recognize*, a conversation without a name is recognised by its first message.
    """

    def __init__(self, memory: Memory, *, recognize: bool) -> None:
        self._memory = memory
        self._recognize = recognize
        self._warned: dict[str, datetime] = {}
        self._warned_unnamed = False
        self._histories = Histories(memory)
        self._items = Items(memory)
        self._tenants: Recent[str, str] = Recent(_MAX_NAMES)
        self._volatile: Recent[tuple[str, TapeVersion], tuple[int, str]] = Recent(_MAX_NAMES)
        self._unanswered: Recent[Name, None] = Recent(_MAX_NAMES)
        self._detached: Recent[Name, int] = Recent(_MAX_NAMES)

    async def prepare(
        self, api: ProxiedAPI, headers: Mapping[str, str], content: bytes, tenant: str | None
    ) -> Prepared:
        """Return the request with old messages replaced by notes; unchanged if that is impossible."""
        if headers.get(MEMORY, "").lower() == "off":
            telemetry.proxy_requested("off", "client")
            return Prepared(content=content, reason="the client asked for none")
        detail = ""
        try:
            async with asyncio.timeout(MEMORY_SECONDS):
                prepared = await self._with_memory(api, headers, content, tenant)
        except UnknownHistory as error:
            kind, reason = "history", str(error)
            if isinstance(error, _Unnamed) and not self._warned_unnamed:
                self._warned_unnamed = True
                telemetry.proxy_unnamed(api.provider)
        except StoreError as error:
            kind, reason = "store", error.public
            detail = str(error)
        except RemanenceError as error:
            kind, reason = "refused", str(error)
            detail = _detail_of(error)
        except TimeoutError:
            kind, reason = "timeout", f"the memory took longer than {MEMORY_SECONDS:g} s"
        except Exception as error:  # noqa: BLE001 - the request goes on, whatever failed
            _log.exception("the memory of a request failed")
            kind, reason = "failed", f"the memory failed: {type(error).__name__}"
        else:
            telemetry.proxy_requested("on", "")
            return prepared
        telemetry.proxy_requested("off", kind)
        if self._is_to_warn(kind):
            body = await asyncio.to_thread(read_object, content)
            named = conversation_of(headers, body or {})
            telemetry.proxy_without_memory(named, kind, detail or reason)
        return Prepared(content=content, reason=reason)

    def _is_to_warn(self, kind: str) -> bool:
        """Return whether to warn of a request without memory: once a minute for each kind of failure."""
        now, last = self._memory.clock.now(), self._warned.get(kind)
        if kind == "history" or (last is not None and now - last < _WARN_EVERY):
            return False  # a history is expected to fail, such as one of a side request or a probe
        self._warned[kind] = now
        return True

    def leave_unanswered(self, turn: Turn) -> None:
        """Let a conversation begin with another text if its first turn got no answer."""
        if not _has_answer(turn.messages):
            self._unanswered[turn.name] = None

    async def keep(self, turn: Turn, answer: Sequence[JsonObject]) -> Stored:
        """Append an answer to the conversation, and return the tape that has it.

        Raises:
            ConversationErased: messages were deleted or forgotten while the model answered.
            RemanenceError: the answer cannot be stored; the client's next request has it again.
        """
        units = await asyncio.to_thread(read_units, turn.api, answer)  # may have many parts
        before, said = list(turn.messages), [unit.message for unit in units]
        if said and before[-1].role == "assistant":  # the client began the answer
            said[0] = _prepend(before.pop(), said[0])
        return await self._histories.absorb(turn.name, [*before, *said], question=turn.stored)

    async def record(self, turn: Turn, usage: JsonObject, *, outcome: str = "ok") -> None:
        """Add the model call of a turn to the ledger, with the usage that the provider reported."""
        tokens, now = asdict(tokens_of(usage) or Tokens()), self._memory.clock.now()
        call = Usage(purpose="proxy", model=turn.model, at=now, outcome=outcome, **tokens)
        await turn.stored.conversation.record_call(call)

    async def _with_memory(
        self, api: ProxiedAPI, headers: Mapping[str, str], content: bytes, tenant: str | None
    ) -> Prepared:
        body = await asyncio.to_thread(_read_body, headers, content)  # may have a million values
        conversation = conversation_of(headers, body)
        if conversation is None and not self._recognize:
            raise _Unnamed("the request names no conversation")
        prompts, own = await asyncio.to_thread(api.split, body)
        whole = next((at for at, one in enumerate(own) if is_reference(one)), len(own))
        units = await asyncio.to_thread(read_units, api, own[:whole] or own)
        if not units:
            raise UnknownHistory("the request has no messages")
        # Conversations with equal beginnings become branches of one name, like edited histories.
        begin = [units[0].message]
        tenant = tenant or await self._tenant_of(headers)
        name = name_of(headers, conversation or f"begins-{next(chain(begin))}", tenant)
        if conversation is None and name.user is not None:  # others may begin with the same words
            of_user = hashlib.sha256(name.user.encode()).hexdigest()[:_USER_DIGITS]
            name = replace(name, conversation=f"{name.conversation}-{of_user}")
        if whole < len(own):
            items = await self._items.read(name, api)
            units = await asyncio.to_thread(read_units, api, own, items)
        messages = [unit.message for unit in units]
        for field in _OUTPUT_LIMITS:
            if isinstance(most := body.get(field), int) and most <= _SIDE_TOKENS:
                raise UnknownHistory(f"{field}={most} leaves no room for an answer, as in a probe")
        if is_compaction(headers, messages[-1].text):
            raise UnknownHistory("the client asks for a summary of the conversation")
        is_side = (
            len(messages) <= _SIDE_MESSAGES
            and not (body.get("tools") or _has_answer(messages))
            and name not in self._unanswered
        )
        stored = await self._absorb(name, messages, branch=not is_side)
        if not stored.length:
            raise UnknownHistory("the request has only the beginning of an answer")
        newest = await asyncio.to_thread(_newest_of_user, messages)  # may read all of them
        is_asked = newest == stored.length - 1 and self._volatile_of(stored)[0] != stored.last_seq
        model = storable(f"{api.provider}:{body.get('model')}")[:_MAX_MODEL_CHARACTERS]
        # Only the first request of a turn shows what is recalled for it.
        query = _words_of_user(messages[stored.length - 1]) if is_asked else None
        context = await _context_beside(body, prompts, units, stored, recall=query, model=model)
        turn = Turn(api=api, model=model, name=name, messages=messages, stored=stored)
        rewritten = await self._rewrite(api, body, units, stored, context, newest)
        if rewritten is None:
            return Prepared(content=content, turn=turn)
        written, omitted = rewritten
        content = await asyncio.to_thread(_dump, written)
        return Prepared(content=content, turn=turn, omitted=omitted)

    async def _tenant_of(self, headers: Mapping[str, str]) -> str:
        """Return the tenant of a provider key; that of an earlier version if only it has tapes."""
        tenant, earlier = tenants_of(headers)
        if tenant not in self._tenants:
            ours, theirs = [
                await self._memory.conversations(tenant=one, limit=1) for one in (tenant, earlier)
            ]
            self._tenants[tenant] = earlier if theirs and not ours else tenant
        return self._tenants[tenant]

    async def _absorb(self, name: Name, messages: Sequence[Message], *, branch: bool) -> Stored:
        """Store a history, and log once if several requests in a row do not continue theirs."""
        count = self._detached.get(name, 0)
        try:
            stored = await self._histories.absorb(name, messages, branch=branch)
        except DetachedHistory:
            self._detached[name] = count = count + 1
            if count == _DETACHED_IN_A_ROW:
                telemetry.proxy_detached(name.conversation, count)
            raise
        if count < _DETACHED_IN_A_ROW:
            self._detached.pop(name, None)
        self._unanswered.pop(name, None)
        return stored

    async def _rewrite(
        self,
        api: ProxiedAPI,
        body: JsonObject,
        units: Sequence[Unit],
        stored: Stored,
        context: Context,
        newest: int | None,
    ) -> tuple[JsonObject, Sequence[Omitted]] | None:
        """Return the request with notes, the newest messages and recalled passages, and its gaps.

        Older messages that are not on the tape, and so not in the notes, are kept before the
        client's own newest ones, as are prompts and instructions of the client's program. None if
        there is nothing to change.
        """
        notes = "\n\n".join(block.text for block in context.system if block.kind in _NOTES)
        messages = _raw_messages(context)
        indices = _indices(messages, units, stored)
        whole = shown_whole(messages, context.omitted)
        cut: set[int] = set()
        for n, (index, message) in enumerate(zip(indices, messages, strict=True)):
            if index < 0 or message.seq in whole:
                continue
            if _own_links(message) == _own_links(units[index].message):
                cut.add(index)
            else:  # an excerpt would part a call from its result
                messages[n] = units[index].message.replace(seq=message.seq)
        seqs = {index: message.seq for index, message in zip(indices, messages, strict=True)}
        volatile = self._volatile_text(
            stored, context, None if newest is None else seqs.get(newest)
        )
        if not notes and not volatile and not context.omitted:
            return None
        if context.stats.last_seq != stored.last_seq:
            raise UnknownHistory("another request of this conversation was faster")
        first = _first_shown(indices, stored)
        units, opened = _with_opening(api, units, first, context, pinned=stored.pinned)
        # The first one may include results that the tape has before it.
        whole_units = _runs_of(units, {*stored.not_on_tape, first, *opened}, before=first)
        whole_units = _without_shown(whole_units, units[: stored.pinned], messages)
        own = [units[at].message for at in whole_units]
        if (lost := orphan([*own, *messages])) is not None:
            raise UnknownHistory(f"the result of {lost!r} would lose its call")
        kept = await asyncio.to_thread(keep_instructions, units[:first], frozenset(whole_units))
        if volatile and newest is not None:
            units = [*units]
            units[newest] = _with_text(units[newest], volatile, api.text_type)
        shown = zip(messages, indices, strict=True)
        tail = list(_render(api, units, shown, first=first, cut=cut))
        gaps = _gaps(kept.dropped, stored, first, first_seq=context.stats.first_raw_seq)
        return api.rewrite(body, notes, kept.objects, tail), [*context.omitted, *gaps]

    def _volatile_text(self, stored: Stored, context: Context, seq: int | None) -> str:
        """Return the volatile text for the user's newest message, which has this *seq*.

        The text stays the same throughout the tool calls of a turn.
        """
        if seq is None:
            return ""
        known, text = self._volatile_of(stored)
        if known != seq:
            is_last = seq == context.stats.last_seq
            text = volatile_block(context.volatile) if is_last and context.volatile else ""
        self._volatile[stored.conversation.ref.tenant, stored.version] = (seq, text)
        return text

    def _volatile_of(self, stored: Stored) -> tuple[int, str]:
        """Return the seq of the last message of a tape with a volatile text, and the text."""
        return self._volatile.get((stored.conversation.ref.tenant, stored.version), (0, ""))


def _detail_of(error: RemanenceError) -> str:
    """Return the reason for the log; that of other errors may quote a message."""
    if isinstance(error, MessageTooLong):
        return str(error)
    return f"{type(error).__name__}: the response has the reason, in {MEMORY}"


def _read_body(headers: Mapping[str, str], content: bytes) -> JsonObject:
    if (body := read_object(content)) is not None:
        return body
    if encoding := headers.get("content-encoding"):
        raise InvalidMessage(
            f"the body is compressed ({encoding:.20}): send it without content-encoding"
        )
    raise InvalidMessage("the body is not a JSON object")


def _dump(body: JsonObject) -> bytes:
    return json.dumps(body).encode()


def _has_answer(messages: Sequence[Message]) -> bool:
    return any(message.role == "assistant" for message in messages)


def _newest_of_user(messages: Sequence[Message]) -> int | None:
    """Return the index of the newest message with words of the user."""
    backwards = reversed(range(len(messages)))
    return next((at for at in backwards if _words_of_user(messages[at]).strip()), None)


def _words_of_user(message: Message) -> str:
    """Return the text of a user's message without that of the client's program."""
    if message.role != "user":
        return ""
    texts = (part.text for part in message.content if isinstance(part, TextPart))
    return "\n".join(own for text in texts if (own := own_text(text)))


def _prepend(begun: Message, answer: Message) -> Message:
    """Return an answer with the beginning that the client gave it, joining the adjacent texts."""
    match begun.content, answer.content:
        case [*head, TextPart(text=text, extra=None)], [TextPart() as goes_on, *end]:
            content = (*head, replace(goes_on, text=text + goes_on.text), *end)
        case _:
            content = (*begun.content, *answer.content)
    return begun.replace(content=content)


def _indices(messages: Sequence[Message], units: Sequence[Unit], stored: Stored) -> list[int]:
    """Return the index of each stored message in the history, whose stored part ends with them.

    Messages before the start of the history have negative indices, and those that it leaves out later
    the index of the one after them.
    """
    skipped = stored.apart
    first = next(at for at in count() if at not in skipped)
    shown = call_ids(unit.message for unit in units)
    indices: list[int] = []
    index = stored.length
    later: Message | None = None
    for message in reversed(messages):
        if first >= index or without_rounds([message], shown):
            if not (later and count_as_one(message, later)):
                index = next(at for at in count(index - 1, -1) if at not in skipped)
            later = message
        indices.append(index)
    return indices[::-1]


def _render(
    api: ProxiedAPI,
    units: Sequence[Unit],
    shown: Iterable[tuple[Message, int]],
    *,
    first: int,
    cut: Collection[int],
) -> Iterator[JsonObject]:
    """Yield the *shown* messages of the tape, and all units from the *first* on that are not on it.

    They are the client's own, except for those before its history and the *cut* ones.
    """
    end, open_calls = first, set[str]()
    for index, group in groupby(shown, key=itemgetter(1)):
        messages = [message for message, _ in group]
        if index < 0 or index in cut:
            yield from _objects(units[end : max(end, index)])
            rendered = [one for message in messages for one in api.render(message)]
            yield from rendered if index < 0 else units[index].replace_by(rendered)
            open_calls |= {call.id for message in messages for call in message.tool_calls}
        else:
            # Calls that the client no longer resends need their results from the tape, too.
            missing = open_calls - {one.call_id for one in units[index].message.tool_results}
            for message in messages:
                results = tuple(one for one in message.tool_results if one.call_id in missing)
                if results:
                    yield from api.render(message.replace(content=results))
                yield from _objects(units[end : index + 1])
                end = index + 1
        end = max(end, index + 1)
    yield from _objects(units[end:])


def _with_opening(
    api: ProxiedAPI, units: Sequence[Unit], first: int, context: Context, *, pinned: int
) -> tuple[Sequence[Unit], Collection[int]]:
    """Return the units, and the indices of those that opened the turn of the *first* one shown.

    Those that the context shows as excerpts are excerpts here, too.
    """
    opened = [m for m in context.messages if m.seq < context.stats.first_raw_seq]
    at = opening([unit.message for unit in units[: first + 1]])[-len(opened) :] if opened else ()
    is_pinned = any(index < pinned for index in at)
    if len(at) < len(opened) or first in at or is_pinned:  # the client's history begins after them
        return units, ()
    whole, changed = shown_whole(opened, context.omitted), [*units]
    for index, message in zip(at, opened, strict=True):
        if message.seq not in whole:
            objects = units[index].replace_by(api.render(message))
            changed[index] = units[index]._replace(objects=objects)
    return changed, at


def _own_links(message: Message) -> tuple[Collection[str], Collection[str]]:
    """Return the links of a message that are in the provider's own format."""
    own = tuple(part for part in message.content if isinstance(part, OtherPart))
    return open_links(message.replace(content=own))


def _objects(units: Iterable[Unit]) -> Iterator[JsonObject]:
    return (one for unit in units for one in unit.objects)


def _with_text(unit: Unit, text: str, kind: str) -> Unit:
    """Append a text part of type *kind* to the user message of a unit."""
    objects = [*unit.objects]
    at = max(i for i, one in enumerate(objects) if one.get("role") == "user")
    content = objects[at].get("content")
    parts = [{"type": kind, "text": content}] if isinstance(content, str) else list(content or ())
    objects[at] = {**objects[at], "content": [*parts, {"type": kind, "text": text}]}
    return unit._replace(objects=objects)


def _runs_of(units: Sequence[Unit], indices: Collection[int], *, before: int) -> list[int]:
    """Return those *indices* that are before an index, and those of their calls and results."""
    kept: list[int] = []
    begin = 0
    for run in groups([unit.message for unit in units]):
        end = begin + len(run)
        if any(index in indices for index in range(begin, end)):
            kept += range(begin, min(end, before))
        begin = end
    return kept


def _without_shown(
    indices: Iterable[int], pinned: Sequence[Unit], messages: Iterable[Message]
) -> list[int]:
    """Return the *indices* without those of *pinned* units with calls that the *messages* show.

    The last pinned answer and the first one behind the gap are one unit.
    """
    calls = {call.id for message in messages for call in message.tool_calls}
    shown = {
        index
        for index, unit in enumerate(pinned)
        if any(call.id in calls for call in unit.message.tool_calls)
    }
    return [index for index in indices if index not in shown]


async def _context_beside(
    body: JsonObject,
    prompts: Sequence[JsonObject],
    units: Sequence[Unit],
    stored: Stored,
    *,
    recall: str | None,
    model: str,
) -> Context:
    """Return the context that fits beside prompts and instructions behind the notes.

    Those among the messages shown count with these, which an activation or a full window makes
    fewer.
    """
    state = await stored.conversation.state()
    first = raw = max(0, stored.length - (state.last_seq - state.tail_seq + 1))
    while True:
        kept = await asyncio.to_thread(keep_instructions, units[:first])
        beside: list[object] = [*prompts, *kept.objects]
        # Repeated ones among the raw messages are forwarded, too.
        beside += [one for unit in units[first:] for one in filter(is_prompt, unit.objects)]
        beside += [units[at].message.full_text for at in stored.not_on_tape]
        context = await stored.conversation.context(
            system=await asyncio.to_thread(_overhead, body, beside), recall=recall, model=model
        )
        shown = _first_shown(_indices(_raw_messages(context), units, stored), stored)
        if shown <= first:
            return context
        first = shown if first == raw else len(units)


def _raw_messages(context: Context) -> list[Message]:
    first_seq = context.stats.first_raw_seq
    return [m for m in context.messages if m.role != "system" and m.seq >= first_seq]


def _first_shown(indices: Sequence[int], stored: Stored) -> int:
    """Return the index of the first message shown, of those with *indices* in a history."""
    return max(stored.pinned, min(indices, default=stored.length))


def _gaps(
    dropped: Iterable[int], stored: Stored, first: int, *, first_seq: int
) -> Iterator[Omitted]:
    """Yield the messages at the indices *dropped*, which precede the *first* one shown."""
    for index in dropped:
        before = first - index - sum(index <= at < first for at in stored.apart)
        seq = index + 1 if index < stored.pinned else max(1, first_seq - before)
        yield Omitted(first_seq=seq, last_seq=seq, reason="over_budget")


def _overhead(body: JsonObject, prompts: Sequence[object]) -> str:
    """Return the text of everything that takes room beside the conversation."""
    parts = [body.get("system"), body.get("instructions"), body.get("tools"), *prompts]
    return storable("\n".join(json.dumps(part, ensure_ascii=False) for part in parts if part))
