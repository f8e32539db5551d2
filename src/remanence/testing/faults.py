"""A store whose calls fail, lose their result, or wait, as scripted by a test."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias, TypeVar

from remanence.protocols import EVERYTHING, Store
from remanence.types import (
    Appended,
    ConversationRef,
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
When: TypeAlias = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class Gate:
    """A point where a call waits: the call sets `reached`, the test sets `opened`."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    opened: asyncio.Event = field(default_factory=asyncio.Event)

    async def pass_by(self) -> None:
        """Set `reached`, and wait until the test opens the gate."""
        self.reached.set()
        await self.opened.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """The effect on one call: an error, a gate, or neither."""

    when: When = "before"
    error: Exception | None = None
    gate: Gate | None = None

    async def happen(self, when: When) -> None:
        """Apply the fault if it is due at this point."""
        if when != self.when:
            return
        if self.gate is not None:
            await self.gate.pass_by()
        if self.error is not None:
            raise self.error


class FaultyStore:
    """Forwards calls to *inner*, except for the faults set with `fail` and `hold`.

    The faults of a method apply in the order in which they were set. A fault `before` the inner
    call means nothing was written; `after` it, only the result is lost or late. `calls` are the
    names of all calls so far.
    """

    def __init__(self, inner: Store) -> None:
        self._inner = inner
        self._faults: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self.calls: list[str] = []

    def fail(
        self, method: str, error: Exception, *, when: When = "before", times: int = 1, skip: int = 0
    ) -> None:
        """Raise *error* in *times* calls of *method*, after *skip* calls without a fault."""
        self._faults[method].extend([Fault()] * skip)
        self._faults[method].extend([Fault(when=when, error=error)] * times)

    def hold(self, method: str, *, when: When = "before", skip: int = 0) -> Gate:
        """Block the next call of *method* until the test opens the gate."""
        gate = Gate()
        self._faults[method].extend([Fault()] * skip)
        self._faults[method].append(Fault(when=when, gate=gate))
        return gate

    async def _call(self, method: str, inner: Callable[[], Awaitable[T]]) -> T:
        self.calls.append(method)
        waiting = self._faults[method]
        fault = waiting.popleft() if waiting else Fault()
        await fault.happen("before")
        answer = await inner()
        await fault.happen("after")
        return answer

    async def append(
        self,
        ref: ConversationRef,
        messages: Sequence[Message],
        *,
        user: str | None,
        turn: str | None = None,
        any_user: bool = False,
    ) -> Appended:
        return await self._call(
            "append",
            lambda: self._inner.append(ref, messages, user=user, turn=turn, any_user=any_user),
        )

    async def state(self, ref: ConversationRef) -> MemoryState | None:
        return await self._call("state", lambda: self._inner.state(ref))

    async def snapshot(self, ref: ConversationRef, *, tail_tokens: int) -> Snapshot | None:
        return await self._call(
            "snapshot", lambda: self._inner.snapshot(ref, tail_tokens=tail_tokens)
        )

    async def messages(
        self, ref: ConversationRef, *, after: int, limit: int | None, max_tokens: int | None = None
    ) -> tuple[Message, ...]:
        return await self._call(
            "messages",
            lambda: self._inner.messages(ref, after=after, limit=limit, max_tokens=max_tokens),
        )

    async def segments(self, ref: ConversationRef, *, live: bool) -> tuple[Segment, ...]:
        return await self._call("segments", lambda: self._inner.segments(ref, live=live))

    async def segment(self, ref: ConversationRef, segment_id: str) -> Segment | None:
        return await self._call("segment", lambda: self._inner.segment(ref, segment_id))

    async def commit_observation(self, state: MemoryState, segment: Segment) -> MemoryState | None:
        return await self._call(
            "commit_observation", lambda: self._inner.commit_observation(state, segment)
        )

    async def replace_observation(
        self, state: MemoryState, segment: Segment, replaced: str
    ) -> MemoryState | None:
        return await self._call(
            "replace_observation", lambda: self._inner.replace_observation(state, segment, replaced)
        )

    async def commit_reflection(
        self,
        state: MemoryState,
        segment: Segment,
        replaced: Sequence[str],
        *,
        purge: bool = False,
    ) -> MemoryState | None:
        return await self._call(
            "commit_reflection",
            lambda: self._inner.commit_reflection(state, segment, replaced, purge=purge),
        )

    async def activate(
        self, state: MemoryState, *, active_seq: int, tail_seq: int, at: datetime
    ) -> MemoryState | None:
        return await self._call(
            "activate",
            lambda: self._inner.activate(state, active_seq=active_seq, tail_seq=tail_seq, at=at),
        )

    async def record_failure(self, state: MemoryState, failure: Failure) -> MemoryState | None:
        return await self._call(
            "record_failure", lambda: self._inner.record_failure(state, failure)
        )

    async def lease(
        self, state: MemoryState, *, owner: str, now: datetime, until: datetime
    ) -> bool:
        return await self._call(
            "lease", lambda: self._inner.lease(state, owner=owner, now=now, until=until)
        )

    async def release(self, state: MemoryState, *, owner: str) -> None:
        await self._call("release", lambda: self._inner.release(state, owner=owner))

    async def take_turn(
        self,
        ref: ConversationRef,
        *,
        owner: str,
        now: datetime,
        until: datetime,
        dead: datetime | None = None,
    ) -> datetime | None:
        return await self._call(
            "take_turn",
            lambda: self._inner.take_turn(ref, owner=owner, now=now, until=until, dead=dead),
        )

    async def prolong_turn(self, ref: ConversationRef, *, owner: str, until: datetime) -> bool:
        return await self._call(
            "prolong_turn", lambda: self._inner.prolong_turn(ref, owner=owner, until=until)
        )

    async def end_turn(self, ref: ConversationRef, *, owner: str) -> None:
        await self._call("end_turn", lambda: self._inner.end_turn(ref, owner=owner))

    async def looks(self, *, after: tuple[datetime, int] | None, limit: int) -> tuple[Look, ...]:
        return await self._call("looks", lambda: self._inner.looks(after=after, limit=limit))

    async def rest(self, state: MemoryState, *, at: datetime | None, tokens: int) -> bool:
        return await self._call("rest", lambda: self._inner.rest(state, at=at, tokens=tokens))

    async def use_look_rules(self, digest: str, *, at: datetime) -> bool:
        return await self._call("use_look_rules", lambda: self._inner.use_look_rules(digest, at=at))

    async def forget_failures(self, state: MemoryState, *, at: datetime) -> MemoryState | None:
        return await self._call(
            "forget_failures", lambda: self._inner.forget_failures(state, at=at)
        )

    async def log(self, ref: ConversationRef) -> tuple[LogEntry, ...]:
        return await self._call("log", lambda: self._inner.log(ref))

    async def outcomes(self, *, since: datetime, limit: int) -> tuple[LogEntry, ...]:
        return await self._call("outcomes", lambda: self._inner.outcomes(since=since, limit=limit))

    async def conversations(
        self, *, tenant: str | None = None, after: ConversationRef | None = None, limit: int = 100
    ) -> tuple[MemoryState, ...]:
        return await self._call(
            "conversations",
            lambda: self._inner.conversations(tenant=tenant, after=after, limit=limit),
        )

    async def search(
        self, ref: ConversationRef, query: str, *, limit: int, only: RecallFilter = EVERYTHING
    ) -> tuple[Hit, ...]:
        return await self._call(
            "search", lambda: self._inner.search(ref, query, limit=limit, only=only)
        )

    async def facts(
        self, owner: Owner, *, history: bool = False, limit: int | None = None
    ) -> tuple[Fact, ...]:
        return await self._call(
            "facts", lambda: self._inner.facts(owner, history=history, limit=limit)
        )

    async def fact(self, owner: Owner, fact_id: str) -> Fact | None:
        return await self._call("fact", lambda: self._inner.fact(owner, fact_id))

    async def search_facts(self, owner: Owner, query: str, *, limit: int) -> tuple[Fact, ...]:
        return await self._call(
            "search_facts", lambda: self._inner.search_facts(owner, query, limit=limit)
        )

    async def save_facts(self, changes: FactChanges) -> tuple[Fact, ...] | None:
        return await self._call("save_facts", lambda: self._inner.save_facts(changes))

    async def commit_facts(
        self, state: MemoryState, changes: FactChanges, *, facts_seq: int, at: datetime
    ) -> MemoryState | None:
        return await self._call(
            "commit_facts",
            lambda: self._inner.commit_facts(state, changes, facts_seq=facts_seq, at=at),
        )

    async def forget_fact(self, owner: Owner, fact_id: str) -> bool:
        return await self._call("forget_fact", lambda: self._inner.forget_fact(owner, fact_id))

    async def pin_facts(self, state: MemoryState, owner: Owner, pin: FactsPin) -> bool:
        return await self._call("pin_facts", lambda: self._inner.pin_facts(state, owner, pin))

    async def next_vector_task(self, model: str) -> VectorTask | None:
        return await self._call("next_vector_task", lambda: self._inner.next_vector_task(model))

    async def save_vectors(self, task: VectorTask, found: Sequence[Sequence[float]]) -> None:
        await self._call("save_vectors", lambda: self._inner.save_vectors(task, found))

    async def nearest(
        self,
        ref: ConversationRef,
        model: str,
        vector: Sequence[float],
        *,
        limit: int,
        only: RecallFilter = EVERYTHING,
    ) -> tuple[Hit, ...]:
        return await self._call(
            "nearest", lambda: self._inner.nearest(ref, model, vector, limit=limit, only=only)
        )

    async def nearest_facts(
        self, owner: Owner, model: str, vector: Sequence[float], *, limit: int
    ) -> tuple[Fact, ...]:
        return await self._call(
            "nearest_facts", lambda: self._inner.nearest_facts(owner, model, vector, limit=limit)
        )

    async def delete(self, ref: ConversationRef) -> bool:
        return await self._call("delete", lambda: self._inner.delete(ref))

    async def record_usage(self, usages: Sequence[Usage]) -> None:
        await self._call("record_usage", lambda: self._inner.record_usage(usages))

    async def usage(
        self,
        *,
        tenant: str | None = None,
        conversation: ConversationRef | None = None,
        user: str | None = None,
        since: datetime | None = None,
    ) -> tuple[UsageTotal, ...]:
        return await self._call(
            "usage",
            lambda: self._inner.usage(
                tenant=tenant, conversation=conversation, user=user, since=since
            ),
        )

    async def scrub(self) -> None:
        await self._call("scrub", self._inner.scrub)

    async def check(self) -> tuple[Problem, ...]:
        return await self._call("check", self._inner.check)

    async def close(self) -> None:
        await self._call("close", self._inner.close)
