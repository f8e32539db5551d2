"""A store in a SQL database: each method is one transaction of a backend."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from remanence.clock import Clock
from remanence.stores.rows import NO_LIMIT, state_from_row
from remanence.stores.sql import (
    api_keys,
    call_limits,
    events as events_sql,
    facts as facts_sql,
    forgetting,
    forking,
    ledger,
    looks as looks_sql,
    retention,
    search,
    segments as segments_sql,
    snapshots,
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
    MemoryState,
    Message,
    Owner,
    Snapshot,
)

P = ParamSpec("P")
T = TypeVar("T")
Work: TypeAlias = Callable[[Connection], T]
Operation: TypeAlias = Callable[Concatenate[Connection, P], T]
Method: TypeAlias = Callable[Concatenate["SQLStore", P], Coroutine[Any, Any, T]]


def read_method(operation: Operation[P, T]) -> Method[P, T]:
    """Return a store method that runs an operation on a consistent snapshot."""

    @wraps(operation)
    async def method(store: "SQLStore", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await store._read(lambda connection: operation(connection, *args, **kwargs))

    return method


def write_method(operation: Operation[P, T]) -> Method[P, T]:
    """Return a store method that runs an operation in a write transaction."""

    @wraps(operation)
    async def method(store: "SQLStore", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await store._write(lambda connection: operation(connection, *args, **kwargs))

    return method


class SQLStore(ABC):
    """The methods of a `Store` whose statements every backend shares.

    A backend runs work in transactions, and decides when messages are indexed.
    """

    _clock: Clock
    _snapshots: snapshots.Snapshots | None = None

    @abstractmethod
    async def _write(self, work: Work[T]) -> T:
        """Run *work* in a transaction; it may be run again after a rollback."""

    @abstractmethod
    async def _read(self, work: Work[T]) -> T:
        """Run *work* on a consistent snapshot of the database."""

    @abstractmethod
    def _index(self, connection: Connection, conversation: int, *, unindexed: int) -> None:
        """Index new messages now or schedule it, in the transaction that wrote them."""

    @abstractmethod
    def _plan_scrub(self, connection: Connection) -> None:
        """Record, with an erasure, that a scrub is due, so that an interrupted one is resumed."""

    async def append(
        self,
        ref: ConversationRef,
        messages: Sequence[Message],
        *,
        user: str | None,
        turn: str | None = None,
        any_user: bool = False,
        after: MemoryState | None = None,
        as_one: bool = False,
    ) -> Appended:
        now = self._clock.now()
        entries = [tape.entry(message, self._clock, now) for message in messages]

        def write(connection: Connection) -> tape.TapeWrite:
            written = tape.append(
                connection,
                ref,
                entries,
                now,
                user=user,
                turn=turn,
                any_user=any_user,
                after=after,
                as_one=as_one,
            )
            self._index(connection, written.conversation, unindexed=written.unindexed)
            return written

        written = await self._write(write)
        stored = (
            place
            if isinstance(place, Message)
            else item.message.replace(id=item.id, created_at=item.created_at, seq=place)
            for item, place in zip(entries, written.places, strict=True)
        )
        return Appended(tuple(stored), state_from_row(written.state))

    async def snapshot(self, ref: ConversationRef, *, tail_tokens: int) -> Snapshot | None:
        cache = snapshots.Snapshots() if self._snapshots is None else self._snapshots
        return await self._read(partial(cache.read, ref=ref, tail_tokens=tail_tokens))

    async def delete(self, ref: ConversationRef) -> int | None:
        now = self._clock.now()

        def delete(connection: Connection) -> tape.Deleted | None:
            forking.leave_facts(connection, ref, self._clock)
            deleted = self._delete(connection, ref)
            if deleted is not None:
                data = {"conversations": 1}
                events_sql.add(connection, "forgotten", now, data, about=ref, user=deleted.user)
            return deleted

        deleted = await self._erase(delete)
        return None if deleted is None else deleted.vectors

    async def forget_user(self, owner: Owner) -> int:
        now = self._clock.now()

        def forget(connection: Connection) -> int:
            refs = tape.lock_all(connection, owner)  # before the owner: the order of all writers
            facts = facts_sql.forget_owner(connection, owner)
            deleted = [self._delete(connection, ref) for ref in refs]
            ledger.forget_user(connection, owner)
            events_sql.forget_user(connection, owner)
            if refs or facts:
                data = {"conversations": len(refs), "facts": facts}
                events_sql.add(connection, "forgotten", now, data, about=owner.tenant)
            self._plan_scrub(connection)
            return sum(one.vectors for one in deleted if one is not None)

        return await self._write(forget)

    def _delete(self, connection: Connection, ref: ConversationRef) -> tape.Deleted | None:
        deleted = tape.delete(connection, ref)
        if deleted is not None:
            facts_sql.erase_of_conversation(connection, ref, deleted.user)
            connection.remove_scope("text_index", search.scope(deleted.key))
            events_sql.forget_conversation(connection, ref)
        return deleted

    async def forget(self, state: MemoryState, erasure: Erasure, *, at: datetime) -> Erased | None:
        return await self._erase(
            partial(forgetting.forget, state=state, erasure=erasure, at=at, clock=self._clock)
        )

    async def fork(
        self, state: MemoryState, ref: ConversationRef, *, last_seq: int, at: datetime
    ) -> MemoryState | None:
        def fork(connection: Connection) -> MemoryState | None:
            forked = forking.fork(connection, state, ref, last_seq=last_seq, at=at)
            if forked is not None:
                self._index(connection, forked.key, unindexed=last_seq)
            return forked

        return await self._write(fork)

    async def forget_fact(self, owner: Owner, fact_id: str) -> bool:
        now = self._clock.now()
        return await self._erase(partial(facts_sql.forget, owner=owner, fact_id=fact_id, at=now))

    async def _erase(self, work: Work[T]) -> T:
        """Run *work* in a transaction; if it erased anything, also schedule a scrub."""

        def erase(connection: Connection) -> T:
            erased = work(connection)
            if erased:
                self._plan_scrub(connection)
            return erased

        return await self._write(erase)

    state = read_method(states.by_ref)
    message = read_method(tape.message)
    messages = read_method(tape.messages)
    conversations = read_method(states.page)

    segments = read_method(segments_sql.of_ref)
    segment = read_method(segments_sql.get)
    commit_observation = write_method(segments_sql.commit_observation)
    replace_observation = write_method(segments_sql.replace_observation)
    commit_reflection = write_method(segments_sql.commit_reflection)
    activate = write_method(segments_sql.activate)

    lease = write_method(states.lease)
    release = write_method(states.release)
    record_failure = write_method(segments_sql.record_failure)
    forget_failures = write_method(segments_sql.forget_failures)
    looks = read_method(looks_sql.page)
    backlog = read_method(looks_sql.backlog)
    rest = write_method(looks_sql.rest)
    use_look_rules = write_method(looks_sql.use_rules)
    log = read_method(states.log)
    outcomes = read_method(states.outcomes)

    take_turn = write_method(turns.take)
    prolong_turn = write_method(turns.prolong)
    end_turn = write_method(turns.end)

    facts = read_method(facts_sql.of_owner)
    lasting_facts = read_method(facts_sql.lasting)
    adopt_facts = read_method(forking.adopt_facts)
    unshared_facts = read_method(forking.unshared_facts)
    fact = read_method(facts_sql.get)
    search_facts = read_method(facts_sql.find)
    repetitions = read_method(facts_sql.repetitions)
    save_facts = write_method(facts_sql.save)
    commit_facts = write_method(facts_sql.commit)
    pin_facts = write_method(facts_sql.pin)

    next_vector_task = read_method(vectors.next_task)
    save_vectors = write_method(vectors.save)
    nearest = read_method(vectors.nearest)
    nearest_facts = read_method(vectors.nearest_facts)

    events = read_method(events_sql.page)
    pending_events = read_method(events_sql.pending)
    mark_delivered = write_method(events_sql.mark_delivered)
    record_budget = write_method(states.record_budget)

    take_call = write_method(call_limits.take)
    pause_calls = write_method(call_limits.pause)
    resume_calls = write_method(call_limits.resume)
    paused_models = read_method(call_limits.pauses)

    save_key = write_method(api_keys.save)
    key = read_method(api_keys.get)
    keys = read_method(api_keys.list_keys)
    revoke_key = write_method(api_keys.revoke)

    prune = write_method(retention.prune)
    prune_usage = write_method(retention.prune_usage)
    prunable = read_method(partial(retention.prune, limit=NO_LIMIT, only_count=True))
    prunable_usage = read_method(partial(retention.prune_usage, limit=NO_LIMIT, only_count=True))

    record_usage = write_method(ledger.record)
    usage = read_method(ledger.totals)
    model_calls = read_method(ledger.calls)
