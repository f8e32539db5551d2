"""A store whose calls fail, lose their result, or wait, as scripted by a test."""

import asyncio
import functools
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Concatenate, Literal, ParamSpec, TypeAlias, TypeVar, cast

from remanence.protocols import Store

P = ParamSpec("P")
AwaitableT = TypeVar("AwaitableT", bound=Awaitable[Any])
When: TypeAlias = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class Gate:
    """A point at which a call waits: the call sets `reached`, the test sets `opened`."""

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


def _forward(
    method: Callable[Concatenate[Any, P], AwaitableT],  # of any store
) -> Callable[Concatenate["FaultyStore", P], AwaitableT]:
    """Return a method that injects faults, with the signature and docstring of *method*."""

    @functools.wraps(method)
    async def call(self: "FaultyStore", /, *args: P.args, **kwargs: P.kwargs) -> Any:
        return await self._call(method.__name__, *args, **kwargs)

    forward: Any = call  # type checkers have different types for what an async function returns
    return cast("Callable[Concatenate[FaultyStore, P], AwaitableT]", forward)


class FaultyStore:
    """Forwards calls to *inner*, except for the faults set with `fail` and `hold`.

    The faults of a method apply in the order in which they were set. With a fault `before` the
    inner call, nothing is written; with one `after` it, only the result is lost or late. `calls` has
    the names of all calls so far.
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

    async def _call(self, method: str, *args: Any, **kwargs: Any) -> Any:  # of any method
        self.calls.append(method)
        waiting = self._faults[method]
        fault = waiting.popleft() if waiting else Fault()
        await fault.happen("before")
        answer = await getattr(self._inner, method)(*args, **kwargs)
        await fault.happen("after")
        return answer

    append = _forward(Store.append)
    state = _forward(Store.state)
    snapshot = _forward(Store.snapshot)
    message = _forward(Store.message)
    messages = _forward(Store.messages)
    segments = _forward(Store.segments)
    segment = _forward(Store.segment)
    commit_observation = _forward(Store.commit_observation)
    replace_observation = _forward(Store.replace_observation)
    commit_reflection = _forward(Store.commit_reflection)
    activate = _forward(Store.activate)
    record_failure = _forward(Store.record_failure)
    lease = _forward(Store.lease)
    release = _forward(Store.release)
    take_turn = _forward(Store.take_turn)
    prolong_turn = _forward(Store.prolong_turn)
    end_turn = _forward(Store.end_turn)
    looks = _forward(Store.looks)
    backlog = _forward(Store.backlog)
    rest = _forward(Store.rest)
    use_look_rules = _forward(Store.use_look_rules)
    forget_failures = _forward(Store.forget_failures)
    log = _forward(Store.log)
    outcomes = _forward(Store.outcomes)
    conversations = _forward(Store.conversations)
    search = _forward(Store.search)
    facts = _forward(Store.facts)
    lasting_facts = _forward(Store.lasting_facts)
    adopt_facts = _forward(Store.adopt_facts)
    unshared_facts = _forward(Store.unshared_facts)
    fact = _forward(Store.fact)
    search_facts = _forward(Store.search_facts)
    repetitions = _forward(Store.repetitions)
    save_facts = _forward(Store.save_facts)
    commit_facts = _forward(Store.commit_facts)
    forget_fact = _forward(Store.forget_fact)
    pin_facts = _forward(Store.pin_facts)
    next_vector_task = _forward(Store.next_vector_task)
    save_vectors = _forward(Store.save_vectors)
    nearest = _forward(Store.nearest)
    nearest_facts = _forward(Store.nearest_facts)
    fork = _forward(Store.fork)
    forget = _forward(Store.forget)
    delete = _forward(Store.delete)
    forget_user = _forward(Store.forget_user)
    take_call = _forward(Store.take_call)
    pause_calls = _forward(Store.pause_calls)
    resume_calls = _forward(Store.resume_calls)
    paused_models = _forward(Store.paused_models)
    save_key = _forward(Store.save_key)
    key = _forward(Store.key)
    keys = _forward(Store.keys)
    revoke_key = _forward(Store.revoke_key)
    events = _forward(Store.events)
    pending_events = _forward(Store.pending_events)
    mark_delivered = _forward(Store.mark_delivered)
    record_budget = _forward(Store.record_budget)
    record_usage = _forward(Store.record_usage)
    usage = _forward(Store.usage)
    model_calls = _forward(Store.model_calls)
    prune = _forward(Store.prune)
    prune_usage = _forward(Store.prune_usage)
    prunable = _forward(Store.prunable)
    prunable_usage = _forward(Store.prunable_usage)
    table_sizes = _forward(Store.table_sizes)
    scrub = _forward(Store.scrub)
    check = _forward(Store.check)
    probe = _forward(Store.probe)
    close = _forward(Store.close)
