"""`remanence import`: appends histories to their tapes, and observes them."""

import asyncio
import os
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import chain
from typing import Annotated, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from remanence.cli import FAILED, output
from remanence.cli.histories import ID_PREFIX, HistoryMessage, HistoryReader, source_of
from remanence.cli.options import STDIN, AsJson, Database, HistoryFile
from remanence.cli.output import quantity
from remanence.cli.settings import load, require_newest
from remanence.cli.transcripts import open_lines
from remanence.conversation import Conversation
from remanence.errors import (
    ConversationErased,
    ConversationGrown,
    DuplicateMessage,
    InvalidMessage,
    MalformedTranscript,
    RemanenceError,
    WrongUser,
)
from remanence.memory import Memory
from remanence.policy.schedule import FACTS_PAUSE
from remanence.protocols import Store
from remanence.settings import Settings, policy_of
from remanence.stores import open_store
from remanence.types import MemoryState, Message
from remanence.types.usage import TURNS

REPORT_SECONDS: Final = 1.0
PAGE: Final = 500
INDEXED_AT_ONCE: Final = 16
"""Conversations indexed in one transaction, which must take less than the patience of a search."""
MANY_MESSAGES: Final = 500
"""From so many on, processes that make notes without a model save more time than they take to start."""
MAX_IDLE_SECONDS: Final = 3_600.0


@dataclass(slots=True, kw_only=True)
class Imported:
    """The result of an import.

    Of the `messages`, `new` were not on their tape before. `waiting` counts conversations whose notes
    could not all be made, and `left_out` content that messages cannot have, by kind. No facts are kept
    of new messages `without_user`, nor of those that `late_users` conversations had without one.
    """

    messages: int = 0
    new: int = 0
    seconds: float = 0.0
    observed_tokens: int = 0
    cost_usd: float = 0.0
    waiting: int = 0
    without_user: int = 0
    late_users: int = 0
    left_out: dict[str, int] = field(default_factory=dict)


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise typer.BadParameter(
            f"{name!r:.80} is not a time zone: write its name, such as America/Los_Angeles"
        ) from None


async def run(
    *,
    file: HistoryFile,
    conversation: Annotated[
        str | None, typer.Option(metavar="ID", help="The default conversation of messages.")
    ] = None,
    user: Annotated[
        str | None, typer.Option(help="The user of conversations that name none.")
    ] = None,
    tenant: Annotated[str, typer.Option(help="The default tenant of messages.")] = "default",
    timezone: Annotated[
        tzinfo | None,
        typer.Option(
            parser=_zone,
            metavar="ZONE",
            help="The users' time zone: that of times without an offset, and of those in UTC or "
            "since 1970, which get its offset.",
        ),
    ] = None,
    observe: Annotated[
        bool, typer.Option(help="Make the notes now, instead of leaving them to other processes.")
    ] = True,
    db: Database = None,
    as_json: AsJson = False,
) -> int:
    """Import message histories, and observe them.

    Run it again after an interruption: messages on the tape are not added twice.
    """
    settings = load(url=db).settings
    reader = HistoryReader(
        name="stdin" if file == STDIN else file.name,
        source=source_of(file),
        tenant=tenant,
        conversation=conversation,
        user=user,
        max_message_bytes=policy_of(settings).max_message_bytes,
        timezone=timezone or UTC,
    )
    imported = Imported()
    try:
        with open_lines(file) as lines:
            size = file.stat().st_size if file.is_file() else None
            await _append_all(settings, reader, lines, size, imported)
        if observe and policy_of(settings).enabled:
            await _observe_all(settings, imported)
    except (asyncio.CancelledError, KeyboardInterrupt, RemanenceError) as error:
        done = f"after {quantity(imported.messages, 'message')}, {imported.new:,} of them new"
        is_by_user = not isinstance(error, RemanenceError)  # Ctrl-C
        output.warn(
            f"Interrupted {done}; run it again to continue." if is_by_user else f"Stopped {done}."
        )
        raise
    if as_json:
        output.write_json(imported)
    else:
        rate = imported.messages / imported.seconds if imported.seconds else 0
        output.line(
            f"{quantity(imported.messages, 'message')} on tape, {imported.new:,} new and "
            f"{imported.messages - imported.new:,} already there ({rate:,.0f} a second)"
        )
        if imported.observed_tokens:
            tokens = quantity(imported.observed_tokens, "token")
            output.line(f"{tokens} observed for ${imported.cost_usd:.2f}")
        if imported.left_out:
            kinds = (f"{kind} {number:,}" for kind, number in imported.left_out.items())
            output.line(f"left out: {', '.join(kinds)}")
    _warn(imported, reader, has_facts=policy_of(settings).extract_facts)
    return FAILED if imported.waiting or reader.unreadable else 0


def _warn(imported: Imported, reader: HistoryReader, *, has_facts: bool) -> None:
    for reason in reader.unreadable:
        output.warn(f"left out: {reason}")
    if imported.without_user and has_facts:
        output.warn(
            f"{quantity(imported.without_user, 'message')} without a user: no facts are kept of them, "
            "also if a later import names one with --user"
        )
    if imported.late_users and has_facts:
        output.warn(
            f"conversations that got their user after their first messages: {imported.late_users:,}; no "
            "facts are kept of those messages: to have them, delete the conversation and import it again"
        )
    if imported.waiting:
        output.warn(
            f"conversations that wait for another attempt: {imported.waiting:,} "
            "(see 'remanence doctor' for the reasons)"
        )


async def _append_all(
    settings: Settings,
    reader: HistoryReader,
    lines: Iterable[bytes],
    size: int | None,
    imported: Imported,
) -> None:
    started = time.monotonic()
    with output.progress(f"Importing {reader.name}", size) as bar:
        chunks = reader.chunks(_counting(lines, bar.advance))
        first = next(chunks, ())  # a malformed file must fail before a database is created
        await require_newest(settings.url)
        async with AsyncExitStack() as stack:
            opening = Memory.open(settings=replace(settings, workers=0), all_users=True)
            memory = await stack.enter_async_context(opening)
            store = await open_store(settings.url, durability=settings.durability)
            stack.push_async_callback(store.close)
            for chunk in chain([first], chunks):
                await _append(memory, reader, chunk, imported)
                await _index(store, chunk)
    imported.seconds = time.monotonic() - started
    imported.left_out = {kind: number for kind, number in reader.left_out.most_common() if number}


def _counting(lines: Iterable[bytes], advance: Callable[[int], None]) -> Iterator[bytes]:
    for line in lines:
        advance(len(line))
        yield line


async def _append(
    memory: Memory, reader: HistoryReader, chunk: Sequence[HistoryMessage], imported: Imported
) -> None:
    """Append to all conversations of a chunk concurrently."""
    groups: defaultdict[object, list[HistoryMessage]] = defaultdict(list)
    for item in chunk:
        groups[item.ref].append(item)
    with _first_error():
        async with asyncio.TaskGroup() as group:
            for items in groups.values():
                group.create_task(_append_to(memory, reader, items, imported))


async def _index(store: Store, chunk: Sequence[HistoryMessage]) -> None:
    """Bring the text index up to date, as a search would, so that the first one need not."""
    refs = list({item.ref for item in chunk})
    for start in range(0, len(refs), INDEXED_AT_ONCE):
        with _first_error():
            async with asyncio.TaskGroup() as group:
                for ref in refs[start : start + INDEXED_AT_ONCE]:
                    group.create_task(store.search(ref, "", limit=0))


@contextmanager
def _first_error() -> Iterator[None]:
    """Raise only the first error of a task group, which is enough to correct the file."""
    try:
        yield
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None


async def _append_to(
    memory: Memory, reader: HistoryReader, items: Sequence[HistoryMessage], imported: Imported
) -> None:
    """Append to one conversation, and if that fails, one by one, to name the faulty line."""
    users = {item.user for item in items} - {None}
    (tenant, conversation_id), place = items[0].ref, items[0].place
    chat = memory.conversation(conversation_id, user=next(iter(users), None), tenant=tenant)
    # Dated now, they would not have been idle for long enough to have their facts extracted now.
    idle = min(memory.policy.facts_idle_seconds, MAX_IDLE_SECONDS)
    at = memory.clock.now() - timedelta(seconds=idle)
    try:
        if len(users) < 2:
            messages = [item.message for item in items]
            dated = [m if m.created_at else m.replace(created_at=at) for m in messages]
            before, new = await _append_new(chat, dated)
            imported.new, imported.messages = imported.new + new, imported.messages + len(items)
            if before.user is None and users:
                imported.late_users += before.last_seq > 0
            elif before.user is None:
                imported.without_user += new
            return
    except (InvalidMessage, DuplicateMessage, WrongUser) as error:
        if len(items) == 1:
            if items[0].is_exported and not isinstance(error, WrongUser):
                # An earlier export had only the start of this answer; the tape keeps that text.
                is_other_text = isinstance(error, DuplicateMessage)
                kind = "another text of a message on tape" if is_other_text else "unpaired message"
                reader.left_out[kind] += 1
                return
            reason: object = error
            is_generated = str(items[0].message.id).startswith(ID_PREFIX)
            if is_generated and isinstance(error, DuplicateMessage):
                reason = 'another message was imported from this place: give the line an "id"'
            raise MalformedTranscript(f"{reader.name}, {place}: {reason}") from error
    for item in items:
        await _append_to(memory, reader, [item], imported)


async def _append_new(chat: Conversation, messages: Sequence[Message]) -> tuple[MemoryState, int]:
    """Append and return the state before and the number of new messages, also while others append."""
    while True:
        before = await chat.state()
        with suppress(ConversationErased, ConversationGrown):
            appended = await chat.append(*messages, after=before)
            return before, len(
                {message.seq for message in appended if message.seq > before.last_seq}
            )


async def _observe_all(settings: Settings, imported: Imported) -> None:
    workers = settings.workers or Settings().workers
    # A model answers several requests at once; the embedded observer would gain nothing.
    slices = max(
        workers if settings.observer_model or settings.model else 1, settings.parallel_slices
    )
    processes = settings.observer_processes
    if not processes and imported.messages >= MANY_MESSAGES:
        processes = os.cpu_count() or 1
    working = replace(
        settings, workers=workers, parallel_slices=slices, observer_processes=processes
    )
    async with Memory.open(settings=working, all_users=True) as memory:
        started = memory.clock.now()
        tokens = unread = 0
        async for state in _due(memory):
            tokens, unread = tokens + state.unobserved_tokens, unread + _unread(state)
        slots = asyncio.Semaphore(workers)
        with output.progress("Observing", unread) as bar:
            observation = _Observation(memory, started, tokens, imported, bar)
            with _first_error():
                async with asyncio.TaskGroup() as group:
                    async for state in _due(memory):
                        await slots.acquire()
                        task = group.create_task(observation.observe(state))
                        task.add_done_callback(lambda _: slots.release())
        imported.cost_usd = await observation.spent()


async def _due(memory: Memory) -> AsyncIterator[MemoryState]:
    """Yield the conversations with work, also where facts wait for more messages of an import."""
    after = None
    while page := await memory.conversations(after=after, limit=PAGE):
        latest = memory.clock.now() + FACTS_PAUSE
        for state in page:
            if state.look_at is not None and state.look_at <= latest:
                yield state
        after = page[-1].ref


def _unread(state: MemoryState) -> int:
    """Return how many messages are still to be read for notes, and for facts of a user."""
    for_facts = state.last_seq - state.facts_seq if state.user is not None else 0
    return state.last_seq - state.observed_seq + for_facts


@dataclass(frozen=True, slots=True)
class _Observation:
    """Observation of due conversations, with progress and a cost estimate."""

    memory: Memory
    started: datetime
    total_tokens: int
    imported: Imported
    bar: output.Bar

    async def observe(self, state: MemoryState) -> None:
        chat = self.memory.conversation(state.ref.id, tenant=state.ref.tenant)
        is_done = False
        while not is_done:
            with suppress(TimeoutError):
                async with asyncio.timeout(REPORT_SECONDS):
                    await chat.flush()
                    is_done = True
            now = await chat.state()
            self.bar.advance(_unread(state) - _unread(now))
            await self._report(state.unobserved_tokens - now.unobserved_tokens)
            state = now
        self.imported.waiting += state.failures > 0

    async def _report(self, tokens: int) -> None:
        self.imported.observed_tokens += tokens
        if spent := await self.spent():
            estimate = spent / max(1, self.imported.observed_tokens) * self.total_tokens
            self.bar.describe(f"Observing, ${spent:.2f} of about ${estimate:.2f}")

    async def spent(self) -> float:
        """Return the cost of model calls so far, in dollars."""
        totals = await self.memory.usage(since=self.started)
        return sum(total.cost_usd or 0.0 for total in totals if total.purpose not in TURNS)
