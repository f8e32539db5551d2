"""The parts of an open memory, shared by its conversations."""

import asyncio
import contextlib
import functools
import importlib
from collections.abc import AsyncGenerator, Callable, Container, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Protocol
from weakref import WeakSet, WeakValueDictionary

from remanence.archive.blocks import BlockStore
from remanence.archive.daily import DailyNotes
from remanence.archive.day_facts import DayFacts
from remanence.arguments import require_name
from remanence.background import Background
from remanence.clock import Clock
from remanence.context.tail import CountMessage
from remanence.costs.budgets import Budgets
from remanence.costs.calibration import Calibrator
from remanence.costs.ledger import Ledger
from remanence.engine.backoff import Backoff
from remanence.engine.hooks import Hooks
from remanence.engine.leases import Leases
from remanence.engine.local import LocalEngine
from remanence.engine.reconciler import Reconciler
from remanence.engine.retention import Pruner, retention_rules
from remanence.engine.segment_writer import SegmentWriter
from remanence.engine.turns import Turns
from remanence.errors import (
    Closed,
    InvalidArgument,
    InvalidPolicy,
    RemanenceError,
    StoreUnavailable,
    needs_extra,
)
from remanence.facts.api import Facts
from remanence.facts.extraction import Extraction
from remanence.facts.known import KnownFacts
from remanence.files import safe_name
from remanence.model_sources import ObserverFactory
from remanence.observers.process_pool import ProcessPool
from remanence.pacing import compute_in_slices
from remanence.policy.policy import Policy
from remanence.process import OwnProcess
from remanence.protocols import (
    CountTokens,
    Engine,
    FactExtractor,
    FactVectors,
    Observer,
    Reflector,
    Store,
)
from remanence.providers import ModelOptions, ModelSource
from remanence.providers.connections import Connections
from remanence.providers.shared_limit import SharedLimit
from remanence.recall.embedders import EmbedderSource, open_embedder
from remanence.recall.indexer import VectorIndexer
from remanence.recall.search import Search
from remanence.recent import Recent
from remanence.settings import Settings, own_prices
from remanence.stores import mask_password
from remanence.tokens import counter_for
from remanence.types import Budget, ConversationRef, Message, Owner, Receipt, TapeVersion

DEFAULT_TENANT = "default"
MAX_CONVERSATIONS = 1_000
"""Conversations whose last context is remembered, and erasures that may be repeated."""
MAX_OPENINGS = 200

TRIED_ONCE = ModelOptions(attempts=1)


class Opening(NamedTuple):
    """The user's messages before the raw tail of a tape that opened its first turn."""

    version: TapeVersion
    tail_seq: int
    messages: tuple[Message, ...]


class EngineFactory(Protocol):
    """Makes the engine of a memory; `LocalEngine` is one.

    The engine runs the reconciler's steps, at most *workers* at a time in this process, and calls
    *progressed* after each step that changed something.
    """

    def __call__(
        self, reconciler: Reconciler, *, workers: int, progressed: Callable[[], None]
    ) -> Engine: ...


def choose_engine(settings: Settings, url: str) -> EngineFactory:
    """Return the engine that *settings* name, for the database at *url*.

    Raises:
        InvalidPolicy: the engine needs another database.
        MissingExtra: the engine needs a package that is not installed.
    """
    if settings.engine == "local":
        return LocalEngine
    if not url.startswith(("postgresql://", "postgres://")):
        raise InvalidPolicy(
            f"engine={settings.engine!r}, which leaves work to `remanence worker`, needs a PostgreSQL "
            f"database, but the URL is {mask_password(url)!r}: use one such as "
            "postgresql://user@host/database"
        )
    with needs_extra("postgres"):
        module = importlib.import_module("remanence.engine.procrastinate")
    return functools.partial(LocalEngine, jobs=functools.partial(module.take_jobs, url))


class Runtime:
    """The parts of an open memory. Belongs to the event loop that opened it."""

    def __init__(
        self,
        store: Store,
        *,
        settings: Settings,
        policy: Policy,
        clock: Clock,
        background: Background,
        observer: Observer | ModelSource | None = None,
        reflector: Reflector | ModelSource | None = None,
        model: ModelSource | None = None,
        extractor: FactExtractor | ModelSource | None = None,
        embedder: EmbedderSource | None = None,
        fact_vectors: FactVectors | None = None,
        model_options: ModelOptions | None = None,
        budgets: Sequence[Budget] | None = None,
        hooks: Hooks | None = None,
        read_only: bool = False,
        all_users: bool = False,
        engine: EngineFactory = LocalEngine,
    ) -> None:
        """Assemble the parts on *store*, without starting them.

        Takes seconds where it imports a provider's package.

        Raises:
            InvalidPolicy, ModelError: a part cannot be made.
        """
        limits = settings.budgets if budgets is None else budgets
        counter_name = policy.token_counter or policy.model
        processes = settings.observer_processes
        self.policy = policy
        self.settings = settings
        self.clock = clock
        self.store = store
        self.background = background
        self.fact_vectors = fact_vectors
        self.read_only = read_only
        self.all_users = all_users
        self.process = OwnProcess()
        self._closed = False
        self.last_models: Recent[ConversationRef, str] = Recent(MAX_CONVERSATIONS)
        self.shown: Recent[ConversationRef, Container[int]] = Recent(MAX_CONVERSATIONS)
        """For each conversation, the messages in its next prompt, according to its last context."""
        self.openings: Recent[ConversationRef, Opening] = Recent(MAX_OPENINGS)
        self.unfinished_erasures: Recent[object, Receipt | None] = Recent(MAX_CONVERSATIONS)
        """Receipts of erasures that failed in a later step, by subject; None for a fact, which has no receipt."""

        self.appending: WeakValueDictionary[ConversationRef, asyncio.Lock] = WeakValueDictionary()
        """One lock per conversation whose appends this process prepares: they land in their order."""
        self.streams: WeakSet[AsyncGenerator[Any, None]] = WeakSet()
        """Turns whose events are read one by one; closing the memory ends them."""

        self.counter = counter_for(counter_name)
        cached = self.counter.with_cache()
        self.count_text: CountTokens = cached.text
        self.count_message: CountMessage = cached.message
        """For contexts, which shorten the same messages to the same excerpts each time."""
        self.connections = Connections()
        self.ledger = Ledger(store, own_prices(settings.prices))
        self.calibrator = Calibrator()
        self.budgets = Budgets(limits, ledger=self.ledger, events=store, clock=clock)
        self.pruner = Pruner(store=store, clock=clock, rules=retention_rules(settings, limits))
        self.pool = ProcessPool(processes, counter=counter_name) if processes else None
        factory = ObserverFactory(
            policy=policy,
            settings=settings,
            clock=clock,
            record=self.ledger.record,
            compare=self.calibrator.compare,
            count=self.counter.text,
            options=(model_options or TRIED_ONCE).with_connections(self.connections),
            budgets=self.budgets,
            limit=SharedLimit(
                calls=store,
                clock=clock,
                calls_per_minute=settings.calls_per_minute,
                input_tokens_per_minute=settings.input_tokens_per_minute,
            ),
            model=(settings.model or None) if model is None else model,
            compute=self.pool or compute_in_slices,
        )
        self.segment_writer = SegmentWriter(
            store=store,
            policy=policy,
            observer=factory.observer(observer),
            reflector=factory.reflector(reflector),
            clock=clock,
            count_text=self.counter.text,
            hooks=hooks or Hooks(),
        )
        known_facts = KnownFacts(store=store, clock=clock)
        extraction = Extraction(
            store=store,
            policy=policy,
            extractor=factory.extractor(extractor),
            clock=clock,
            known=known_facts,
        )
        vectors = None
        if embedder is not None:
            vectors = open_embedder(embedder, clock=clock, connections=self.connections)
        self.recall_search = Search(
            store=store, embedder=vectors, policy=policy, fact_vectors=fact_vectors
        )
        self.indexer: VectorIndexer | None = None  # a read-only memory searches existing vectors
        if vectors is not None and not read_only:
            keep = self.pruner.rules.vectors
            self.indexer = VectorIndexer(
                store, vectors, policy, fact_vectors, clock=clock, keep=keep
            )
        self.facts = Facts(
            store=store,
            clock=clock,
            known=known_facts,
            search=self.recall_search.facts,
            changed=self.texts_changed,
            vectors=fact_vectors,
            owner=self.owner,
            unfinished_erasures=self.unfinished_erasures,
        )
        self.daily = self._daily_notes(extraction)
        self.engine = self._engine(engine, extraction)
        self.turns = Turns(
            store=store,
            clock=clock,
            background=background,
            lease_seconds=settings.lease_seconds,
            wait_seconds=settings.turn_wait_seconds,
        )

    def __reduce__(self) -> NoReturn:
        raise InvalidArgument(
            "an open memory and its conversations cannot be pickled: pass the URL and the ids, and "
            "open the memory in the other process"
        )

    def _daily_notes(self, extraction: Extraction) -> DailyNotes | None:
        if self.settings.daily_directory is None:
            return None
        count = self.counter.text
        return DailyNotes(
            directory=Path(self.settings.daily_directory).expanduser(),
            keep_days=self.settings.daily_keep_days,
            reflector=self.segment_writer.reflector,
            policy=self.policy,
            count_text=count,
            clock=self.clock,
            extract=DayFacts(extraction=extraction, count_text=count, changed=self.texts_changed),
        )

    def _engine(self, make_engine: EngineFactory, extraction: Extraction) -> Engine:
        store, policy, clock, settings = self.store, self.policy, self.clock, self.settings
        reconciler = Reconciler(
            store=store,
            policy=policy,
            clock=clock,
            segment_writer=self.segment_writer,
            extraction=extraction,
            leases=Leases(
                store=store,
                clock=clock,
                background=self.background,
                owner=clock.new_id("owner"),
                seconds=settings.lease_seconds,
            ),
            backoff=Backoff(store=store, policy=policy, clock=clock),
            pruner=self.pruner,
            parallel_slices=settings.parallel_slices,
        )
        return make_engine(reconciler, workers=settings.workers, progressed=self.texts_changed)

    def check_open(self) -> None:
        """Raise `Closed` if the memory was closed, and in a forked child or another event loop."""
        self.process.require_this()
        if self._closed:
            raise Closed("the memory is closed: open it again with Memory.open(...)")
        self.background.require_loop()

    def drop_prompts(self, ref: ConversationRef) -> None:
        """Drop the texts of a conversation that this process keeps for its next prompts."""
        self.segment_writer.live_prompts.pop(ref, None)
        self.openings.pop(ref, None)

    def texts_changed(self) -> None:
        """Have new texts embedded, if there is an embedder."""
        if self.indexer is not None:
            self.indexer.signal()

    def owner(self, user: str, tenant: str) -> Owner:
        """Return a user of a tenant; errors as for `check_open` and `require_name`."""
        self.check_open()
        require_name("user", user)
        require_name("tenant", tenant)
        return Owner(tenant, user)

    def check_writable(self) -> None:
        """Raise `StoreUnavailable` if the memory was opened read-only."""
        if self.read_only:
            raise StoreUnavailable("the memory is open read-only: open it without read_only=True")

    def blocks(self, tenant: str) -> BlockStore | None:
        """Return the block store to which ending conversations of a tenant are exported, if any."""
        if self.settings.blocks_directory is None:
            return None
        directory = Path(self.settings.blocks_directory).expanduser()
        if tenant != DEFAULT_TENANT:
            directory /= safe_name(tenant)
        return BlockStore(directory, keep_last=self.settings.blocks_keep_last)

    def start(self) -> None:
        """Start the background work."""
        if not self.read_only:
            self.background.spawn("scrub", self._finish_erasure)
        self.ledger.start(self.background)
        self.engine.start(self.background)
        if self.indexer is not None:
            self.indexer.start(self.background)
        if self.daily is not None and self.settings.workers:
            self.background.spawn("daily", self.daily.keep_up)

    async def _finish_erasure(self) -> None:
        """Erase bytes left behind by a `forget` call whose process was killed."""
        with contextlib.suppress(RemanenceError):  # a file is in use: `check` reports it
            await self.store.scrub(if_due=True)

    async def stop(self) -> None:
        """End the turns, and stop the background work; steps in progress have some time to finish."""
        seconds = self.settings.shutdown_timeout_seconds
        await self.turns.interrupt(timeout_seconds=seconds)
        for events in tuple(self.streams):  # between two events
            with contextlib.suppress(Exception):
                async with asyncio.timeout(seconds):
                    await events.aclose()
        await self.turns.close()
        self._closed = True
        async with self.connections:
            await self.engine.close(timeout_seconds=seconds)
            if self.pool is not None:
                self.pool.close()
            if self.indexer is not None:
                await self.indexer.close()
            await self.ledger.close(timeout_seconds=seconds)
