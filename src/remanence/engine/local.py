"""The embedded engine: background work as tasks in the host's event loop."""

import asyncio
import contextlib
import math
from collections import defaultdict
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple, TypeAlias
from weakref import WeakValueDictionary

from remanence import telemetry
from remanence.background import (
    Background,
    Waiters,
    closed_error,
    guard_host_code,
    is_part_of,
    part_of,
)
from remanence.engine.reconciler import Reconciler
from remanence.engine.steps import Outcome, Step
from remanence.errors import Deadlock
from remanence.policy.schedule import longest_wait, retry_delay
from remanence.recent import Recent
from remanence.telemetry.spans import Cause, caused_by, current_cause
from remanence.types import ConversationRef

RESCAN_SECONDS = 60.0
"""The longest time between scans: another process may schedule a look and die before it."""
MAX_PAUSES = 10_000
"""Maximum number of pauses kept, as a paused conversation may never be looked at again."""
LEASE_POLL_SECONDS = 0.1
SCAN_PAGE = 500
LAST_KEY = 2**63 - 1

LookAt: TypeAlias = Callable[[ConversationRef], Awaitable[None]]
"""Works on a conversation until nothing is due for it, or another process works on it."""
Jobs: TypeAlias = Callable[[Reconciler, LookAt, int], Awaitable[None]]
"""Takes shared jobs and looks at their conversations, up to a limit at a time, until cancelled."""


class Pause(NamedTuple):
    """A pause until a time of the event loop, and the number of errors in a row that led to it."""

    errors: int
    until: float


class LocalEngine:
    """Runs the due steps of conversations as asyncio tasks.

    Conversations take turns, one step each, after which *progressed* is called. At most *workers*
    conversations are worked on at once; without workers, only waiting callers do work. Looks are
    scheduled in the store: a scan finds those that are due, and sleeps until the next one. With
    *jobs*, jobs replace signals and scans. After an error outside of the steps, such as a failed
    store, the next look is delayed like a failed step.
    """

    def __init__(
        self,
        reconciler: Reconciler,
        *,
        workers: int,
        progressed: Callable[[], None] = lambda: None,
        jobs: Jobs | None = None,
    ) -> None:
        self._jobs = jobs
        self._progressed = progressed
        self._reconciler = reconciler
        self._workers = workers
        self._queue: asyncio.Queue[ConversationRef] = asyncio.Queue()
        self._queued: set[ConversationRef] = set()
        self._busy: set[ConversationRef] = set()
        self._again: set[ConversationRef] = set()
        self._causes: dict[ConversationRef, Cause] = {}
        self._everything: set[ConversationRef] = set()
        self._waiting: defaultdict[ConversationRef, Waiters] = defaultdict(Waiters)
        self._watching: defaultdict[ConversationRef, Waiters] = defaultdict(Waiters)
        self._looking: defaultdict[ConversationRef, Waiters] = defaultdict(Waiters)
        self._leased: set[ConversationRef] = set()
        self._pauses: Recent[ConversationRef, Pause] = Recent(MAX_PAUSES)
        # Callers that do the work themselves share a lease, so they take turns by this lock.
        self._locks: WeakValueDictionary[ConversationRef, asyncio.Lock] = WeakValueDictionary()
        self._rescan = asyncio.Event()
        self._next_scan = math.inf
        self._closed = self._ended = False
        self._background: Background | None = None
        self._working: set[asyncio.Task[None]] = set()
        self._looks: asyncio.Task[None] | None = None

    def start(self, background: Background) -> None:
        if not self._workers:
            return
        self._background = background
        background.on_failure(self._settle_all)
        if self._reconciler.policy.enabled:
            if self._jobs is None:
                self._looks = background.spawn("scan", self._watch)
            else:
                look_at = partial(self._wait, self._looking)
                take = partial(self._jobs, self._reconciler, look_at, self._workers)
                self._looks = background.spawn("looks", take)
        if self._jobs is None:
            background.spawn("retention", self._reconciler.pruner.keep_pruning)
        for number in range(self._workers):
            self._working.add(background.spawn(f"worker-{number}", self._work))

    def signal(self, ref: ConversationRef) -> None:
        if not self._closed and self._jobs is None and not self._paused_seconds(ref):
            self._enqueue(ref)

    async def settle(
        self, ref: ConversationRef, *, everything: bool = False, retry: bool = False
    ) -> None:
        store, clock = self._reconciler.store, self._reconciler.clock
        if retry and (state := await store.state(ref)) is not None:
            await store.forget_failures(state, at=clock.now())
        await self._settle(ref, everything=everything)
        if retry and await self._reconciler.retry_failed(ref):
            await self._settle(ref, everything=everything)

    async def finish(self, ref: ConversationRef) -> None:
        await self._settle(ref, everything=True)
        await self._reconciler.roll_up(ref)

    def _require_running(self) -> None:
        if self._closed:
            raise closed_error()
        if self._background is not None:
            self._background.require_running()

    async def _settle(self, ref: ConversationRef, *, everything: bool) -> None:
        self._require_running()
        if is_part_of((self, ref)):
            raise Deadlock(
                f"work on conversation {ref.id!r}, such as a hook, would wait for its own end: call "
                "flush() or end() after it, or in another task"
            )
        if not self._workers:
            async with self._locks.setdefault(ref, asyncio.Lock()):
                await self._run_here(ref, everything=everything)
            return
        if everything:
            self._everything.add(ref)
        await self._wait(self._waiting, ref)
        while ref in self._leased:
            await asyncio.sleep(LEASE_POLL_SECONDS)
            await self._wait(self._waiting, ref)

    async def _run_here(self, ref: ConversationRef, *, everything: bool) -> None:
        """Run all due steps in the caller's task, once no other owner holds the lease."""
        if everything:
            self._everything.add(ref)
        try:
            while (step := await self._step(ref)).outcome is not Outcome.IDLE:
                if self._closed:
                    raise closed_error()
                if step.outcome is Outcome.LEASED:
                    await asyncio.sleep(LEASE_POLL_SECONDS)
                else:
                    self._progressed()
        finally:
            self._everything.discard(ref)
        if step.error is not None:
            raise step.error

    async def progress(self, ref: ConversationRef) -> None:
        self._require_running()
        if is_part_of((self, ref)):  # as in a hook: the step goes on once the caller does
            return
        if self._workers:
            await self._wait(self._watching, ref)
        else:
            await self._step(ref)

    async def _wait(
        self, calls: defaultdict[ConversationRef, Waiters], ref: ConversationRef
    ) -> None:
        """Request a look, and wait until *calls* resolves this caller's future."""
        self._require_running()
        settled = calls[ref].add()
        self._enqueue(ref)
        await settled

    async def close(self, *, timeout_seconds: float) -> None:
        self._closed = True
        if self._background is not None:
            await self._stop(self._background, timeout_seconds)
        self._settle_all(closed_error())
        if self._background is not None and self._looks is not None:
            await self._background.stop(self._looks)

    async def _stop(self, background: Background, timeout_seconds: float) -> None:
        """Take no more looks, and end the workers once they are idle or the time is over."""
        if self._looks is not None:
            background.cancel(self._looks)
        workers = {task for task in self._working if not task.done()}
        if workers and not background.failure:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout_seconds):
                    await self._queue.join()
        await background.stop(*workers)
        self._ended = True

    def _settle_all(self, error: Exception) -> None:
        """Raise *error* in all waiting calls."""
        for calls in (self._waiting, self._watching, self._looking):
            for waiters in calls.values():
                waiters.settle(error)

    def _enqueue(self, ref: ConversationRef) -> None:
        if self._workers and (cause := current_cause()) is not None:
            self._causes[ref] = cause
        if ref in self._queued:
            return
        if ref in self._busy:
            self._again.add(ref)
            return
        self._queued.add(ref)
        self._queue.put_nowait(ref)

    async def _watch(self) -> None:
        """Scan for due looks, and sleep until the next one."""
        await self._reconciler.use_rules()
        while True:
            self._rescan.clear()
            self._next_scan = math.inf
            seconds = await self._scan()
            self._next_scan = asyncio.get_running_loop().time() + seconds
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._rescan.wait()

    async def _scan(self) -> float:
        """Signal the conversations that are due, and return the seconds until the next one.

        A look scheduled later than the longest possible wait comes from a wrong clock, and is due.
        """
        store, now = self._reconciler.store, self._reconciler.clock.now()
        next_at = now + timedelta(seconds=RESCAN_SECONDS)
        after: tuple[datetime, int] | None = None
        beyond = now + longest_wait(self._reconciler.policy), LAST_KEY
        while page := await store.looks(after=after, limit=SCAN_PAGE):
            for look in page:
                after = look.at, look.key
                at = self._reconciler.leases.free_at(look, now=now)
                at = max(at, now + timedelta(seconds=self._paused_seconds(look.ref)))
                if at <= now or look.at > beyond[0]:
                    self.signal(look.ref)
                else:
                    next_at = min(next_at, at)
            if len(page) < SCAN_PAGE:
                break
            if page[-1].at > now:
                after = max(beyond, (page[-1].at, page[-1].key))
        return (next_at - now).total_seconds()

    def _scan_within(self, seconds: float) -> None:
        if self._next_scan > asyncio.get_running_loop().time() + seconds:
            self._rescan.set()

    async def _work(self) -> None:
        while not self._ended:  # as for one that was left behind in a step
            ref = await self._queue.get()
            self._queued.discard(ref)
            self._busy.add(ref)
            try:
                with caused_by(self._causes.get(ref)):
                    step = await self._step(ref)
            finally:
                self._busy.discard(ref)
            self._follow(ref, step)
            self._queue.task_done()

    async def _step(self, ref: ConversationRef) -> Step:
        try:
            is_waited_for = any(calls.get(ref) for calls in (self._waiting, self._watching))
            with part_of((self, ref)), guard_host_code():
                step = await self._reconciler.step(
                    ref,
                    everything=ref in self._everything,
                    eager=is_waited_for or not self._workers,
                )
        except Exception as error:  # noqa: BLE001 - one conversation must not stop the others
            self._pause(ref, error)
            return Step(Outcome.IDLE, error=error)
        self._pauses.pop(ref, None)
        return step

    def _pause(self, ref: ConversationRef, error: Exception) -> None:
        """Log the error of a look, and delay the next one."""
        policy, jitter = self._reconciler.policy, self._reconciler.backoff.jitter()
        errors = 1 + (self._pauses[ref].errors if ref in self._pauses else 0)
        seconds = retry_delay(policy, errors, jitter=jitter).total_seconds()
        self._pauses[ref] = Pause(errors, asyncio.get_running_loop().time() + seconds)
        telemetry.step_failed("look", ref.id, type(error).__name__, str(error), errors)
        self._scan_within(seconds)

    def _paused_seconds(self, ref: ConversationRef) -> float:
        pause = self._pauses.get(ref)
        left = 0.0 if pause is None else pause.until - asyncio.get_running_loop().time()
        return max(0.0, left)

    def _follow(self, ref: ConversationRef, step: Step) -> None:
        """Queue the conversation again if there is more to do; otherwise settle its waiters."""
        again = ref in self._again
        self._again.discard(ref)
        if ref in self._watching and (step.outcome is Outcome.PROGRESS or not again):
            self._watching.pop(ref).settle(step.error)
        if step.outcome is Outcome.PROGRESS:
            self._progressed()
        if step.outcome is Outcome.PROGRESS or again:
            if again or not self._closed:  # the rest is due when the memory is opened again
                self._enqueue(ref)
            return
        self._causes.pop(ref, None)
        if step.outcome is Outcome.LEASED:
            self._leased.add(ref)
        else:
            self._leased.discard(ref)
            self._everything.discard(ref)
        if ref in self._waiting:
            self._waiting.pop(ref).settle(step.error)
        if ref in self._looking:  # with jobs, an interrupted look is scheduled again
            self._looking.pop(ref).settle()
        if step.until is not None:
            wait = step.until - self._reconciler.clock.now()
            self._scan_within(max(0.0, wait.total_seconds()))
