"""A store in a SQL database: each method is one transaction of a backend."""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Protocol, TypeAlias, TypeVar, cast

from remanence.clock import Clock
from remanence.errors import MissingExtra
from remanence.protocols import EVERYTHING
from remanence.stores.rows import state_from_row
from remanence.stores.sql import (
    facts,
    forgetting,
    ledger,
    looks,
    segments,
    states,
    tape,
    turns,
    vectors,
)
from remanence.stores.sql.connection import Connection
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
    RecallFilter,
    Segment,
    Snapshot,
    Usage,
    UsageTotal,
    VectorTask,
)

T = TypeVar("T")
Work: TypeAlias = Callable[[Connection], T]
ReadSnapshot: TypeAlias = Callable[..., Snapshot | None]


class SQLStore(ABC):
    """The methods of a `Store` whose statements every backend shares.

    A backend runs work in a transaction, and decides how a tape grows and how it is deleted.
    """

    _clock: Clock
    _read_snapshot: ReadSnapshot

    @abstractmethod
    async def _write(self, work: Work[T]) -> T:
        """Run *work* in a transaction; it may be run again after a rollback."""

    @abstractmethod
    async def _read(self, work: Work[T]) -> T:
        """Run *work* on one state of the database."""

    @abstractmethod
    def _append(
        self,
        ref: ConversationRef,
        access: tape.Access,
        now: datetime,
        entries: Sequence[tape.Entry],
        connection: Connection,
    ) -> tape.TapeWrite: ...

    @abstractmethod
    def _delete(self, ref: ConversationRef, connection: Connection) -> bool: ...

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
        module = importlib.import_module("remanence.stores.sql.nearest")
    except ModuleNotFoundError as error:
        raise MissingExtra("vectors", error.name or "numpy") from error
    return cast(_Nearest, module)  # a module has its functions as attributes
