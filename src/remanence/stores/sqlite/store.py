"""The store: each method is one job of the writer, or one of the reader."""

import importlib
import itertools
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Protocol, TypeVar, cast

from remanence.clock import Clock
from remanence.errors import MissingExtra, StoreUnavailable
from remanence.protocols import EVERYTHING
from remanence.stores.optional import write_if_possible
from remanence.stores.rows import state_from_row
from remanence.stores.sqlite import (
    facts,
    forgetting,
    ledger,
    looks,
    search,
    segments,
    snapshots,
    states,
    tape,
    turns,
    unindexed,
    vectors,
)
from remanence.stores.sqlite.backup import back_up
from remanence.stores.sqlite.check import check
from remanence.stores.sqlite.connection import Database
from remanence.stores.sqlite.fts import Connection
from remanence.stores.sqlite.scrub import scrub
from remanence.stores.sqlite.upkeep import Upkeep
from remanence.stores.sqlite.worker import Work, Worker, commit_together, read_each
from remanence.types import (
    Appended,
    ConversationRef,
    Erased,
    Erasure,
    Fact,
    FactChanges,
    FactsPin,
    Failure,
    Hit,
    LogEntry,
    Look,
    MemoryState,
    Message,
    Owner,
    Problem,
    RecallFilter,
    Segment,
    Snapshot,
    Usage,
    UsageTotal,
    VectorTask,
)

T = TypeVar("T")


class SQLiteStore:
    """A `Store` in one SQLite file.

    One thread writes, and commits all waiting jobs in one transaction; another thread reads and
    never waits for a write. A database in memory has one connection and one thread for both.
    """

    def __init__(self, database: Database, *, clock: Clock, version: str) -> None:
        self._database = database
        self._clock = clock
        self._upkeep = Upkeep()
        self._writer = Worker(
            "writer",
            path=database.path,
            connect=lambda: database.open_writer(clock, version),
            serve=commit_together(database.path),
            idle=self._upkeep.step,
        )
        self._reader = self._writer
        self._read_snapshot = snapshots.read
        if not database.in_memory:
            self._read_snapshot = snapshots.Snapshots().read
            self._reader = Worker(
                "reader",
                path=database.path,
                connect=database.open_unwritten if database.read_only else database.open_reader,
                serve=read_each(database.path),
            )
        if database.read_only:
            self._writer = self._reader

    async def open(self) -> None:
        """Open the file; an error is raised here and leaves nothing open."""
        await self._writer.start()
        if self._reader is not self._writer:
            try:
                await self._reader.start()
            except BaseException:
                await self._writer.close()
                raise

    async def append(
        self,
        ref: ConversationRef,
        messages: Sequence[Message],
        *,
        user: str | None,
        turn: str | None = None,
        any_user: bool = False,
    ) -> Appended:
        now = self._clock.now()
        entries = [tape.entry(message, self._clock, now) for message in messages]
        written = await self._write(
            partial(self._append, ref, tape.Access(user, turn, any_user), now, entries)
        )
        stored = (
            place if isinstance(place, Message) else item.message_at(place)
            for item, place in zip(entries, written.places, strict=True)
        )
        return Appended(tuple(stored), state_from_row(written.state))

    async def state(self, ref: ConversationRef) -> MemoryState | None:
        return await self._read(lambda connection: states.by_ref(connection, ref))

    async def snapshot(self, ref: ConversationRef, *, tail_tokens: int) -> Snapshot | None:
        return await self._read(
            lambda connection: self._read_snapshot(connection, ref, tail_tokens=tail_tokens)
        )

    async def messages(
        self, ref: ConversationRef, *, after: int, limit: int | None, max_tokens: int | None = None
    ) -> tuple[Message, ...]:
        return await self._read(
            lambda connection: tape.messages(
                connection, ref, after=after, limit=limit, max_tokens=max_tokens
            )
        )

    async def segments(self, ref: ConversationRef, *, live: bool) -> tuple[Segment, ...]:
        read = segments.live_of if live else segments.every
        return await self._read(lambda connection: read(connection, ref))

    async def segment(self, ref: ConversationRef, segment_id: str) -> Segment | None:
        return await self._read(lambda connection: segments.one(connection, ref, segment_id))

    async def commit_observation(self, state: MemoryState, segment: Segment) -> MemoryState | None:
        return await self._write(
            lambda connection: segments.commit_observation(connection, state, segment)
        )

    async def replace_observation(
        self, state: MemoryState, segment: Segment, replaced: str
    ) -> MemoryState | None:
        return await self._write(
            lambda connection: segments.replace_observation(connection, state, segment, replaced)
        )

    async def commit_reflection(
        self,
        state: MemoryState,
        segment: Segment,
        replaced: Sequence[str],
        *,
        purge: bool = False,
    ) -> MemoryState | None:
        return await self._write(
            lambda connection: segments.commit_reflection(
                connection, state, segment, replaced, purge=purge
            )
        )

    async def activate(
        self, state: MemoryState, *, active_seq: int, tail_seq: int, at: datetime
    ) -> MemoryState | None:
        return await self._write(
            lambda connection: segments.activate(
                connection, state, active_seq=active_seq, tail_seq=tail_seq, at=at
            )
        )

    async def record_failure(self, state: MemoryState, failure: Failure) -> MemoryState | None:
        return await self._write(
            lambda connection: segments.record_failure(connection, state, failure)
        )

    async def lease(
        self, state: MemoryState, *, owner: str, now: datetime, until: datetime
    ) -> bool:
        return await self._write(
            lambda connection: states.lease(
                connection, state.key, owner=owner, now=now, until=until
            )
        )

    async def looks(self, *, after: tuple[datetime, int] | None, limit: int) -> tuple[Look, ...]:
        return await self._read(lambda connection: looks.page(connection, after=after, limit=limit))

    async def rest(self, state: MemoryState, *, at: datetime | None, tokens: int) -> bool:
        return await self._write(
            lambda connection: looks.rest(connection, state, at=at, tokens=tokens)
        )

    async def use_look_rules(self, digest: str, *, at: datetime) -> bool:
        return await self._write(lambda connection: looks.use_rules(connection, digest, at=at))

    async def forget_failures(self, state: MemoryState, *, at: datetime) -> MemoryState | None:
        return await self._write(
            lambda connection: segments.forget_failures(connection, state, at=at)
        )

    async def release(self, state: MemoryState, *, owner: str) -> None:
        await self._write(lambda connection: states.release(connection, state.key, owner=owner))

    async def take_turn(
        self,
        ref: ConversationRef,
        *,
        owner: str,
        now: datetime,
        until: datetime,
        dead: datetime | None = None,
    ) -> datetime | None:
        return await self._write(
            lambda connection: turns.take(
                connection, ref, owner=owner, now=now, until=until, dead=dead
            )
        )

    async def prolong_turn(self, ref: ConversationRef, *, owner: str, until: datetime) -> bool:
        return await self._write(
            lambda connection: turns.prolong(connection, ref, owner=owner, until=until)
        )

    async def end_turn(self, ref: ConversationRef, *, owner: str) -> None:
        await self._write(lambda connection: turns.end(connection, ref, owner=owner))

    async def log(self, ref: ConversationRef) -> tuple[LogEntry, ...]:
        return await self._read(lambda connection: states.log(connection, ref))

    async def outcomes(self, *, since: datetime, limit: int) -> tuple[LogEntry, ...]:
        return await self._read(
            lambda connection: states.outcomes(connection, since=since, limit=limit)
        )

    async def conversations(
        self, *, tenant: str | None = None, after: ConversationRef | None = None, limit: int = 100
    ) -> tuple[MemoryState, ...]:
        return await self._read(
            lambda connection: states.page(connection, tenant=tenant, after=after, limit=limit)
        )

    async def search(
        self,
        ref: ConversationRef,
        query: str,
        *,
        limit: int,
        only: RecallFilter = EVERYTHING,
    ) -> tuple[Hit, ...]:
        state = await self.state(ref)
        if state is None:
            return ()
        key = state.key
        while more := await write_if_possible(self._write(lambda c: search.index_some(c, key))):
            pass
        found = await self._read(lambda c: search.find(c, ref, query, limit=limit, only=only))
        if more is not None:
            return found
        outside = await self._read(lambda c: unindexed.find(c, ref, query, limit=limit, only=only))
        # Scores of two indexes are not comparable; ranks are.
        ranked = itertools.zip_longest(outside, found)
        return tuple(hit for pair in ranked for hit in pair if hit is not None)[:limit]

    async def facts(
        self, owner: Owner, *, history: bool = False, limit: int | None = None
    ) -> tuple[Fact, ...]:
        return await self._read(
            lambda connection: facts.of_owner(connection, owner, history=history, limit=limit)
        )

    async def fact(self, owner: Owner, fact_id: str) -> Fact | None:
        return await self._read(lambda connection: facts.one(connection, owner, fact_id))

    async def search_facts(self, owner: Owner, query: str, *, limit: int) -> tuple[Fact, ...]:
        return await self._read(
            lambda connection: facts.find(connection, owner, query, limit=limit)
        )

    async def save_facts(self, changes: FactChanges) -> tuple[Fact, ...] | None:
        return await self._write(lambda connection: facts.save(connection, changes))

    async def commit_facts(
        self, state: MemoryState, changes: FactChanges, *, facts_seq: int, at: datetime
    ) -> MemoryState | None:
        return await self._write(
            lambda connection: facts.commit(connection, state, changes, facts_seq=facts_seq, at=at)
        )

    async def forget_fact(self, owner: Owner, fact_id: str) -> bool:
        return await self._write(lambda connection: facts.forget(connection, owner, fact_id))

    async def pin_facts(self, state: MemoryState, owner: Owner, pin: FactsPin) -> bool:
        return await self._write(lambda connection: facts.pin(connection, state, owner, pin))

    async def next_vector_task(self, model: str) -> VectorTask | None:
        return await self._read(lambda connection: vectors.next_task(connection, model))

    async def save_vectors(self, task: VectorTask, found: Sequence[Sequence[float]]) -> None:
        await self._write(lambda connection: vectors.save(connection, task, found))

    async def nearest(
        self,
        ref: ConversationRef,
        model: str,
        vector: Sequence[float],
        *,
        limit: int,
        only: RecallFilter = EVERYTHING,
    ) -> tuple[Hit, ...]:
        find = _nearest().find
        return await self._read(
            lambda connection: find(connection, ref, model, vector, limit=limit, only=only)
        )

    async def nearest_facts(
        self, owner: Owner, model: str, vector: Sequence[float], *, limit: int
    ) -> tuple[Fact, ...]:
        find = _nearest().find_facts
        return await self._read(
            lambda connection: find(connection, owner, model, vector, limit=limit)
        )

    async def forget(self, state: MemoryState, erasure: Erasure, *, at: datetime) -> Erased | None:
        return await self._write(lambda c: forgetting.forget(c, state, erasure, at=at))

    async def delete(self, ref: ConversationRef) -> bool:
        return await self._write(partial(self._delete, ref))

    async def forget_user(self, owner: Owner) -> None:
        await self._write(partial(self._forget_user, owner))

    async def scrub(self) -> None:
        self._require_writable()
        await self._writer.submit(scrub, alone=True)

    async def record_usage(self, usages: Sequence[Usage]) -> None:
        await self._write(lambda connection: ledger.record(connection, usages))

    async def usage(
        self,
        *,
        tenant: str | None = None,
        conversation: ConversationRef | None = None,
        user: str | None = None,
        since: datetime | None = None,
    ) -> tuple[UsageTotal, ...]:
        return await self._read(
            lambda connection: ledger.totals(
                connection, tenant=tenant, conversation=conversation, user=user, since=since
            )
        )

    async def check(self) -> tuple[Problem, ...]:
        return await self._run_apart(check)

    async def backup(self, path: str) -> None:
        await self._run_apart(partial(back_up, path=path), alone=True)

    async def _run_apart(self, work: Work[T], *, alone: bool = False) -> T:
        """Run work that reads the whole file on a thread of its own, so that nobody waits for it."""
        if self._database.in_memory:
            return await self._writer.submit(work, alone=alone)
        self._writer.require_open()
        worker = Worker(
            "apart",
            path=self._database.path,
            connect=self._database.open_reader,
            serve=read_each(self._database.path),
        )
        await worker.start()
        try:
            return await worker.submit(work, alone=alone)
        finally:
            await worker.close()

    async def close(self) -> None:
        if self._reader is not self._writer:
            await self._reader.close()
        await self._writer.close()

    async def _write(self, work: Work[T]) -> T:
        self._require_writable()
        return await self._writer.submit(work)

    def _require_writable(self) -> None:
        if self._database.read_only:
            self._writer.require_open()
            raise StoreUnavailable(
                f"{self._database.path!r} is open for reading only: open it without read_only=True"
            )

    async def _read(self, work: Work[T]) -> T:
        return await self._reader.submit(work)

    def _append(
        self,
        ref: ConversationRef,
        access: tape.Access,
        now: datetime,
        entries: Sequence[tape.Entry],
        connection: Connection,
    ) -> tape.TapeWrite:
        written = tape.append(connection, ref, access, now, entries)
        self._upkeep.note_append(written.conversation, unindexed=written.unindexed)
        return written

    def _delete(self, ref: ConversationRef, connection: Connection) -> bool:
        turns.forget(connection, ref)
        key = tape.delete(connection, ref)
        if key is not None:
            facts.erase_of_conversation(connection, ref)
            self._upkeep.note_deletion(connection, key)
        return key is not None

    def _forget_user(self, owner: Owner, connection: Connection) -> None:
        for ref in tape.conversations_of(connection, owner):
            self._delete(ref, connection)
        facts.forget_owner(connection, owner)
        ledger.forget_user(connection, owner)


class _Nearest(Protocol):
    """The module that needs numpy."""

    find: Callable[..., tuple[Hit, ...]]
    find_facts: Callable[..., tuple[Fact, ...]]


def _nearest() -> _Nearest:
    try:
        module = importlib.import_module("remanence.stores.sqlite.nearest")
    except ModuleNotFoundError as error:
        raise MissingExtra("vectors", error.name or "numpy") from error
    return cast(_Nearest, module)  # a module has its functions as attributes
