"""The embedded engine: background work as tasks in the host's event loop."""

import asyncio
from collections import defaultdict
from collections.abc import Callable

from remanence import telemetry
from remanence.engine.reconcile import Reconciler
from remanence.engine.steps import Outcome, Step
from remanence.errors import Closed
from remanence.observing.schedule import facts_end, observation_due
from remanence.types import ConversationRef

RETRY_SECONDS = 30.0
SCAN_PAGE = 200


class LocalEngine:
    """Looks at conversations until nothing is due for them.

    A signal only names a conversation, so a lost or doubled one does no harm. Conversations take
    turns, one step each, after which *progressed* is called; at most *workers* are worked on at once, each by one worker.
    """

    def __init__(
        self,
        reconciler: Reconciler,
        *,
        workers: int,
        progressed: Callable[[], None] = lambda: None,
    ) -> None:
        self._progressed = progressed
        self._reconciler = reconciler
        self._workers = workers
        self._queue: asyncio.Queue[ConversationRef | None] = asyncio.Queue()
        self._queued: set[ConversationRef] = set()
        self._busy: set[ConversationRef] = set()
        self._again: set[ConversationRef] = set()
        self._everything: set[ConversationRef] = set()
        self._settling: defaultdict[ConversationRef, list[asyncio.Future[None]]] = defaultdict(list)
        self._timers: dict[ConversationRef, asyncio.TimerHandle] = {}
        self._closed = False
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to work, in tasks of the running loop."""
        self._running = asyncio.create_task(self._run(), name="remanence-engine")

    def signal(self, ref: ConversationRef) -> None:
        """Ask for a look at a conversation; returns at once."""
        if self._closed or ref in self._queued:
            return
        if ref in self._busy:
            self._again.add(ref)
            return
        self._cancel_timer(ref)
        self._queued.add(ref)
        self._queue.put_nowait(ref)

    async def settle(self, ref: ConversationRef, *, everything: bool = False) -> None:
        """Return when nothing is due for a conversation, or what is due has to wait.

        *everything* also does what is not due yet.
        """
        if self._closed:
            raise Closed("the memory is closed: no background work is done any more")
        if everything:
            self._everything.add(ref)
        if not self._workers:
            await self._work_off(ref)
            return
        settled = asyncio.get_running_loop().create_future()
        self._settling[ref].append(settled)
        self.signal(ref)
        await settled

    async def _work_off(self, ref: ConversationRef) -> None:
        """Do what is due here and now; without workers nobody else does."""
        while (await self._step(ref)).outcome is Outcome.PROGRESS:
            self._progressed()
        self._everything.discard(ref)

    async def close(self, *, timeout_seconds: float) -> None:
        """Take no new work, let steps in progress finish within the time, then end."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for _ in range(self._workers):
            self._queue.put_nowait(None)
        if self._running is not None:
            _, unfinished = await asyncio.wait({self._running}, timeout=timeout_seconds)
            for task in unfinished:
                task.cancel()
            await asyncio.wait({self._running})
        for waiting in self._settling.values():
            for settled in waiting:
                settled.cancel()

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._scan(), name="remanence-scan")
            for number in range(self._workers):
                group.create_task(self._work(), name=f"remanence-worker-{number}")

    async def _scan(self) -> None:
        """Find what an earlier process left undone."""
        after: ConversationRef | None = None
        while not self._closed:
            page = await self._reconciler.store.conversations(after=after, limit=SCAN_PAGE)
            for state in page:
                policy = self._reconciler.policy
                if observation_due(policy, state) or facts_end(policy, state) is not None:
                    self.signal(state.ref)
            if len(page) < SCAN_PAGE:
                return
            after = page[-1].ref

    async def _work(self) -> None:
        while not self._closed:
            ref = await self._queue.get()
            if ref is None or self._closed:
                return
            self._queued.discard(ref)
            self._busy.add(ref)
            try:
                step = await self._step(ref)
            finally:
                self._busy.discard(ref)
            self._follow(ref, step)

    async def _step(self, ref: ConversationRef) -> Step:
        try:
            return await self._reconciler.step(ref, everything=ref in self._everything)
        except Exception as error:  # noqa: BLE001 - one conversation must not stop the others
            telemetry.step_failed("look", ref.id, type(error).__name__, str(error), 1)
            return Step(Outcome.WAIT, RETRY_SECONDS)

    def _follow(self, ref: ConversationRef, step: Step) -> None:
        """Queue the conversation again where there is more to do; else it has settled."""
        again = ref in self._again
        self._again.discard(ref)
        if step.outcome is Outcome.PROGRESS:
            self._progressed()
        if step.outcome is Outcome.PROGRESS or again:
            self.signal(ref)
            return
        if step.outcome is not Outcome.LEASED:
            self._everything.discard(ref)
            for settled in self._settling.pop(ref, ()):
                if not settled.done():
                    settled.set_result(None)
        if step.outcome is not Outcome.IDLE and not self._closed:
            loop = asyncio.get_running_loop()
            self._cancel_timer(ref)
            self._timers[ref] = loop.call_later(step.wait_seconds, self._wake, ref)

    def _wake(self, ref: ConversationRef) -> None:
        self._timers.pop(ref, None)
        self.signal(ref)

    def _cancel_timer(self, ref: ConversationRef) -> None:
        timer = self._timers.pop(ref, None)
        if timer is not None:
            timer.cancel()
