"""Embedding new texts in the background, so that no turn waits for it."""

import asyncio
import contextlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from remanence import telemetry
from remanence.background import Background, Waiters, closed_error, guard_host_code
from remanence.clock import Clock
from remanence.errors import ModelError, ObservationRejected, StoreUnavailable
from remanence.notes.redact import redact
from remanence.policy.policy import Policy
from remanence.policy.schedule import retry_delay
from remanence.protocols import Embedder, FactVectors, NamedFactVectors, Store
from remanence.providers.fallback import OF_THE_REQUEST
from remanence.providers.redact import MESSAGE_LENGTH, without_keys
from remanence.types import Keep, Owner, Problem, VectorItem, VectorTask

BATCH_TEXTS = 64
MAX_CHARACTERS = 8_000
"""Maximum characters of a text, as embedders cut or refuse longer ones."""
MAX_VALUE = 3.4e38
"""The largest value of a vector; beyond it, a 32-bit float is infinite."""
EMBEDDER = "the embedder"
"""Its name in logs and problems."""
PROBE = "hello"
"""A text that every embedder accepts."""
MAX_TRIES = 4
"""Attempts at a text that fails alone, before it is left without a vector."""
SURE_REFUSALS = OF_THE_REQUEST | {"not_finite"}
"""Reasons for which a text is left without a vector at once."""

_Subject: TypeAlias = Literal["segment", "fact"]


class VectorIndexer:
    """Embeds the texts in the store that lack vectors, and looks again at each signal.

    A failure writes nothing, and is retried after a growing wait, or when a caller waits for it. A
    text that the embedder refuses, or that failed `MAX_TRIES` times while others did not, is left
    without a vector, so that it does not block the others. Vectors made before a failure are reused.
    """

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        policy: Policy,
        fact_vectors: FactVectors | None = None,
        *,
        clock: Clock,
        keep: Keep,
    ) -> None:
        self._store = store
        self._clock = clock
        self._keep_rule = keep
        self._fact_vectors = fact_vectors
        self._place = "" if fact_vectors is None else _place(fact_vectors)
        self._is_lost = False
        self._embedder = embedder
        self._policy = policy
        self._look = asyncio.Event()
        self._awaited = asyncio.Event()
        self._waiting = Waiters()
        self._served = Waiters()  # by the attempt in progress
        self._background: Background | None = None
        self._running: asyncio.Task[None] | None = None
        self._closed = False
        self._part, self._failures, self._failure = EMBEDDER, 0, ""
        self._made: dict[VectorItem, Sequence[float] | None] = {}
        self._tries: Counter[VectorItem] = Counter()
        self._refused: defaultdict[_Subject, list[int]] = defaultdict(list)  # where to begin again
        self._refusal = ""
        self._retry = False

    def start(self, background: Background) -> None:
        """Start the background task."""
        self._background = background
        background.on_failure(self._settle)
        self._running = background.spawn("embedding", self._run)

    def signal(self) -> None:
        """Request a look; returns at once."""
        self._look.set()

    async def settle(self, *, retry: bool = False) -> None:
        """Wait until every text has its vector, or the latest attempt has failed.

        With *retry*, also the texts that this process left without one.
        """
        if self._closed:
            raise closed_error()
        if self._background is not None:
            self._background.require_running()
        settled = self._waiting.add()
        self._retry |= retry
        self._look.set()
        self._awaited.set()
        await settled

    def problems(self) -> Iterator[Problem]:
        """Yield a problem if the last attempt failed, and one if texts were left without a vector."""
        if self._failures:
            yield Problem(
                conversation=None,
                level="warning",
                what=f"{self._part} failed {self._failure}",
                remedy="only words are searched meanwhile, and vectors are made later: correct "
                f"{self._part}, or use another",
            )
        if count := sum(map(len, self._refused.values())):
            yield Problem(
                conversation=None,
                level="warning",
                what=f"{EMBEDDER} refused {count} texts, the last one with {self._refusal}",
                remedy="they are found only by their words: correct the embedder, and call "
                "flush(retry=True) before the memory is closed",
            )

    async def close(self) -> None:
        """Stop at once; the next process finds the remaining texts again."""
        self._closed = True
        self._look.set()  # for a task that goes on although it is cancelled
        self._awaited.set()
        if self._background is not None and self._running is not None:
            await self._background.stop(self._running)
        self._settle(closed_error())

    def _settle(self, error: Exception) -> None:
        self._served.settle(error)
        self._waiting.settle(error)

    async def _run(self) -> None:
        while not self._closed:
            self._look.clear()
            self._awaited.clear()
            self._served, self._waiting = self._waiting, Waiters()
            pause = await self._catch_up()
            self._served.settle()
            signal = self._look if pause is None else self._awaited
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await signal.wait()

    async def _catch_up(self) -> float | None:
        """Make the missing vectors; after a failure, return the seconds until the next attempt."""
        self._part = EMBEDDER
        try:
            if self._retry:
                await self._begin_again()
            while (task := await self._next_task()) is not None:
                with guard_host_code():
                    await self._keep(*await self._vectors(task))
                refused = [item.key for item in task.items if self._made[item] is None]
                if task.subject == "segment":  # its items have keys of their own
                    refused = [task.cursor] * len(refused)
                self._refused[task.subject] += refused
                self._made.clear()
                self._tries.clear()
        except Exception as error:  # noqa: BLE001 - an embedder may raise anything
            self._failures += 1
            if isinstance(error, StoreUnavailable):
                self._part = "the database"
            reason, cause = _cause(error)
            self._failure = f"({reason}, {self._failures} in a row){_shown(error)}"
            telemetry.embedding_failed(self._part, reason, str(error), self._failures, cause=cause)
            return retry_delay(self._policy, self._failures, jitter=0.0).total_seconds()
        self._failures, self._failure = 0, ""
        return None

    async def _begin_again(self) -> None:
        """Have the store return the texts again that were left without a vector."""
        for subject, keys in self._refused.items():
            if keys:
                await self._begin_at(subject, min(keys) - 1)
                keys.clear()
        self._retry = False

    async def _begin_at(self, subject: _Subject, cursor: int) -> None:
        place = self._place if subject == "fact" else ""
        model = self._embedder.name
        task = VectorTask(model=model, subject=subject, cursor=cursor, items=(), place=place)
        await self._store.save_vectors(task, ())

    async def _next_task(self) -> VectorTask | None:
        task = await self._store.next_vector_task(
            self._embedder.name, keep=self._keep_rule, at=self._clock.now(), place=self._place
        )
        if (task is None or task.subject == "fact") and await self._notice_loss():
            return await self._next_task()
        return task

    async def _notice_loss(self) -> bool:
        """Begin at the first fact if there are no vectors any more; return whether this was news."""
        if not isinstance(self._fact_vectors, NamedFactVectors):
            return False
        self._part, was_lost = type(self._fact_vectors).__name__, self._is_lost
        self._is_lost = not await self._fact_vectors.holds(self._embedder.name)
        self._part = EMBEDDER
        if not self._is_lost or was_lost:
            return False
        await self._begin_at("fact", 0)
        return True

    async def _keep(self, task: VectorTask, vectors: Sequence[Sequence[float]]) -> None:
        """Write the vectors, and then mark the task as done."""
        if task.subject == "segment" or self._fact_vectors is None:
            await self._store.save_vectors(task, vectors)
            return
        by_owner: defaultdict[Owner, dict[str, Sequence[float]]] = defaultdict(dict)
        for item, vector in zip(task.items, vectors, strict=True):
            if item.owner is not None:
                by_owner[item.owner][item.fact_id] = vector
        ended: defaultdict[Owner, list[str]] = defaultdict(list)
        for owner, fact_id in task.ended:
            ended[owner].append(fact_id)
        self._part = type(self._fact_vectors).__name__
        for owner, owned in by_owner.items():
            await self._fact_vectors.put(owner, task.model, owned)
            found = [await self._store.fact(owner, fact_id) for fact_id in owned]
            gone = [fact_id for fact_id, fact in zip(owned, found, strict=True) if fact is None]
            if gone:  # they were forgotten meanwhile
                await self._fact_vectors.forget(owner, gone)
        for owner, fact_ids in ended.items():
            await self._fact_vectors.forget(owner, fact_ids)
        self._part = EMBEDDER
        await self._store.save_vectors(replace(task, items=()), ())

    async def _vectors(self, task: VectorTask) -> tuple[VectorTask, list[Sequence[float]]]:
        """Return the task without texts that the embedder refuses, and the vectors of the rest."""
        missing = [item for item in task.items if item not in self._made]
        errors = [
            await self._embed(missing[start : start + BATCH_TEXTS])
            for start in range(0, len(missing), BATCH_TEXTS)
        ]
        for error in filter(None, errors):
            raise error
        vectors = {item: vector for item, vector in self._made.items() if vector is not None}
        items = tuple(item for item in task.items if item in vectors)
        return replace(task, items=items), [vectors[item] for item in items]

    async def _embed(self, batch: Sequence[VectorItem]) -> Exception | None:
        """Make the vectors of a batch; halve a batch that fails because of one of its texts.

        Returns the error of a text that is to be tried again later.
        """
        texts = [item.text for item in batch]
        try:
            vectors = await self._vectors_of(texts)
        except Exception as error:
            if not await self._fails_alone(error):
                raise
            if len(batch) == 1:
                return self._refuse(batch[0], error)
            half = len(batch) // 2
            first = await self._embed(batch[:half])
            return await self._embed(batch[half:]) or first
        self._made |= dict(zip(batch, vectors, strict=True))
        return None

    def _refuse(self, item: VectorItem, error: Exception) -> Exception | None:
        """Leave a text without a vector; or return *error* if it may pass."""
        self._tries[item] += 1
        reason, _ = _cause(error)
        if reason not in SURE_REFUSALS and self._tries[item] < MAX_TRIES:
            return error
        telemetry.text_not_embedded(self._embedder.name, reason, str(error))
        self._refusal = f"{reason}{_shown(error)}"
        self._made[item] = None
        return None

    async def _fails_alone(self, error: Exception) -> bool:
        """Return whether the embedder still accepts another text, so that this one may be the cause."""
        if isinstance(error, OSError | TimeoutError):
            return False
        if isinstance(error, ModelError) and error.reason not in OF_THE_REQUEST:
            return False
        try:
            await self._vectors_of([PROBE])
        except Exception:  # noqa: BLE001 - it fails for any text
            return False
        return True

    async def _vectors_of(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        async with asyncio.timeout(self._policy.observe_timeout_seconds):
            with guard_host_code():
                return await embed(self._embedder, texts)


async def embed(embedder: Embedder, texts: Sequence[str]) -> Sequence[Sequence[float]]:
    """Return a vector for each text, with secrets redacted before.

    Raises:
        ObservationRejected: these are not vectors, or have wrong lengths, or values that are not
            finite 32-bit floats.
    """
    clean = await asyncio.to_thread(lambda: [redact(text)[:MAX_CHARACTERS] for text in texts])
    vectors = await embedder.embed(clean)
    try:
        count, widths = len(vectors), {len(vector) for vector in vectors}
        odd = [value for vector in vectors for value in vector if not abs(value) <= MAX_VALUE]
    except TypeError as error:
        raise ObservationRejected(
            "malformed",
            f"{embedder.name} gave a value of type {_type_name(vectors)}: return a list with one list "
            "of numbers for each text",
        ) from error
    right = embedder.dimensions is None or widths == {embedder.dimensions}
    if count != len(texts) or len(widths) > 1 or 0 in widths or not right:
        length = "all of the same length"
        if embedder.dimensions is not None:
            length = f"each of dimensions={embedder.dimensions!r}"
        raise ObservationRejected(
            "malformed",
            f"{embedder.name} gave {count} vectors of {sorted(widths)} dimensions for "
            f"{len(texts)} texts: return one vector for each text, {length}",
        )
    if odd:
        raise ObservationRejected(
            "not_finite",
            f"{embedder.name} gave a vector with the value {odd[0]!r}, which cannot be compared: "
            "have the model return finite numbers, or use another embedder",
        )
    return vectors


def _type_name(value: object) -> str:
    """Return the name of a type, such as `list[NoneType | list[float]]`; it quotes no value."""
    name = type(value).__name__
    if not isinstance(value, list | tuple):
        return name
    return f"{name}[{' | '.join(sorted({_type_name(part) for part in value}))}]"


def _place(fact_vectors: FactVectors) -> str:
    if isinstance(fact_vectors, NamedFactVectors):
        return fact_vectors.name
    return type(fact_vectors).__name__


def _cause(error: Exception) -> tuple[str, str]:
    """Return a short code for a failure, and a text for logs, which quotes nothing."""
    match error:
        case ModelError():
            return error.reason, error.log_text
        case ObservationRejected():
            return error.reason, str(error)
        case _:
            return type(error).__name__, ""


def _shown(error: Exception) -> str:
    """Return the text of a failure for `check()`, which may quote it."""
    shown = _cause(error)[1] or without_keys(str(error))[:MESSAGE_LENGTH]
    return f": {shown}" if shown else ""
