"""Vectors for what is new, made in the background; no turn waits for them."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from remanence import telemetry
from remanence.errors import Closed, ObservationRejected
from remanence.observing.policy import Policy
from remanence.observing.schedule import retry_delay
from remanence.protocols import Embedder, FactVectors, Store
from remanence.types import Owner, VectorTask

BATCH_TEXTS = 64


class Embedding:
    """Looks in the store for texts without vectors until there is none; a signal says look again.

    A failure writes nothing; the next try comes after a growing wait, or with the next signal.
    """

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        policy: Policy,
        fact_vectors: FactVectors | None = None,
    ) -> None:
        self._store = store
        self._fact_vectors = fact_vectors
        self._embedder = embedder
        self._policy = policy
        self._look = asyncio.Event()
        self._settling: list[asyncio.Future[None]] = []
        self._running: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._failures = 0

    def start(self) -> None:
        """Begin to work, in a task of the running loop."""
        self._look.set()
        self._running = asyncio.create_task(self._run(), name="remanence-embedding")

    def signal(self) -> None:
        """Ask for a look; returns at once."""
        self._look.set()

    async def settle(self) -> None:
        """Return when every text has its vector, or the latest try has failed."""
        if self._running is None or self._running.done():
            raise Closed("the memory is closed: no background work is done any more")
        settled = asyncio.get_running_loop().create_future()
        self._settling.append(settled)
        self._look.set()
        await settled

    async def close(self) -> None:
        """End now: what was under way is found again by the next process."""
        if self._timer is not None:
            self._timer.cancel()
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})
        for settled in self._settling:
            settled.cancel()

    async def _run(self) -> None:
        while True:
            await self._look.wait()
            self._look.clear()
            waiting, self._settling = self._settling, []
            await self._catch_up()
            for settled in waiting:
                if not settled.done():
                    settled.set_result(None)

    async def _catch_up(self) -> None:
        try:
            while (task := await self._store.unembedded(self._embedder.name)) is not None:
                await self._keep(task, await self._vectors(task))
        except Exception as error:  # noqa: BLE001 - an embedder may raise anything
            self._failures += 1
            telemetry.embedding_failed(type(error).__name__, str(error), self._failures)
            delay = retry_delay(self._policy, self._failures, jitter=0.0)
            loop = asyncio.get_running_loop()
            if self._timer is not None:
                self._timer.cancel()
            self._timer = loop.call_later(delay.total_seconds(), self._look.set)
        else:
            self._failures = 0

    async def _keep(self, task: VectorTask, vectors: Sequence[Sequence[float]]) -> None:
        """Write the vectors where they belong, and then that this is done."""
        if task.subject == "segment" or self._fact_vectors is None:
            await self._store.save_vectors(task, vectors)
            return
        by_owner: defaultdict[Owner, dict[str, Sequence[float]]] = defaultdict(dict)
        for item, vector in zip(task.items, vectors, strict=True):
            if item.owner is not None:
                by_owner[item.owner][item.fact_id] = vector
        for owner, found in by_owner.items():
            await self._fact_vectors.put(owner, task.model, found)
        await self._store.save_vectors(replace(task, items=()), ())

    async def _vectors(self, task: VectorTask) -> list[Sequence[float]]:
        vectors: list[Sequence[float]] = []
        texts = [item.text for item in task.items]
        for start in range(0, len(texts), BATCH_TEXTS):
            batch = texts[start : start + BATCH_TEXTS]
            async with asyncio.timeout(self._policy.observe_timeout_seconds):
                vectors += check_vectors(self._embedder, batch, await self._embedder.embed(batch))
        return vectors


def check_vectors(
    embedder: Embedder, texts: Sequence[str], vectors: Sequence[Sequence[float]]
) -> Sequence[Sequence[float]]:
    """The vectors, if they are one for each text and of the length that the embedder states."""
    widths = {len(vector) for vector in vectors}
    right = embedder.dimensions is None or widths == {embedder.dimensions}
    if len(vectors) != len(texts) or len(widths) > 1 or 0 in widths or not right:
        raise ObservationRejected(
            "malformed",
            f"{embedder.name} gave {len(vectors)} vectors of {sorted(widths)} dimensions for "
            f"{len(texts)} texts",
        )
    return vectors
