"""Assembly of a memory from the arguments of `Memory.open`."""

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from remanence.archive.daily import DailyNotes
from remanence.archive.day_facts import DayFacts
from remanence.background import Background
from remanence.clock import Clock
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
from remanence.errors import InvalidPolicy, MissingExtra
from remanence.facts.extraction import Extraction
from remanence.model_sources import ObserverFactory
from remanence.observers.process_pool import ProcessPool
from remanence.pacing import compute_in_slices
from remanence.policy.policy import Policy
from remanence.protocols import Engine, FactExtractor, FactVectors, Observer, Reflector, Store
from remanence.providers import ModelOptions, ModelSource
from remanence.providers.connections import Connections
from remanence.providers.shared_limit import SharedLimit
from remanence.recall.embedders import EmbedderSource, open_embedder
from remanence.recall.indexer import VectorIndexer
from remanence.recall.search import Search
from remanence.runtime import Runtime
from remanence.settings import Settings
from remanence.stores import mask_password
from remanence.tokens import counter_for
from remanence.types import Budget

TRIED_ONCE = ModelOptions(attempts=1)


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
    try:
        module = importlib.import_module("remanence.engine.procrastinate")
    except ModuleNotFoundError as error:
        raise MissingExtra("postgres", error.name or "procrastinate") from error
    return partial(module.make_engine, url=url)


async def assemble(
    store: Store,
    *,
    settings: Settings,
    policy: Policy,
    clock: Clock,
    background: Background,
    observer: "Observer | ModelSource | None" = None,
    reflector: "Reflector | ModelSource | None" = None,
    model: "ModelSource | None" = None,
    extractor: "FactExtractor | ModelSource | None" = None,
    embedder: "EmbedderSource | None" = None,
    fact_vectors: FactVectors | None = None,
    model_options: ModelOptions | None = None,
    budgets: Sequence[Budget] | None = None,
    hooks: Hooks | None = None,
    read_only: bool = False,
    all_users: bool = False,
    engine: EngineFactory = LocalEngine,
) -> Runtime:
    """Assemble the parts of a memory on *store*, without starting them.

    Raises:
        InvalidPolicy, ModelError: a part cannot be made.
    """
    ledger, calibrator = Ledger(store), Calibrator()
    limits = settings.budgets if budgets is None else budgets
    pruner = Pruner(store=store, clock=clock, rules=retention_rules(settings, limits))
    spending = Budgets(limits, ledger=ledger, events=store, clock=clock)
    connections = Connections()
    counter_name = policy.token_counter or policy.model
    counter = counter_for(counter_name)
    processes = settings.observer_processes
    pool = ProcessPool(processes, counter=counter_name) if processes else None
    factory = ObserverFactory(
        policy=policy,
        settings=settings,
        clock=clock,
        record=ledger.record,
        compare=calibrator.compare,
        count=counter.text,
        options=(model_options or TRIED_ONCE).with_connections(connections),
        budgets=spending,
        limit=SharedLimit(
            calls=store,
            clock=clock,
            calls_per_minute=settings.calls_per_minute,
            input_tokens_per_minute=settings.input_tokens_per_minute,
        ),
        model=model or settings.model,
        compute=pool or compute_in_slices,
    )
    segment_writer = SegmentWriter(
        store=store,
        policy=policy,
        observer=await factory.observer(observer),
        reflector=await factory.reflector(reflector),
        clock=clock,
        count_text=counter.text,
        hooks=hooks or Hooks(),
    )
    extraction = Extraction(
        store=store, policy=policy, extractor=await factory.extractor(extractor), clock=clock
    )
    vectors = open_embedder(embedder, connections=connections) if embedder is not None else None
    indexer = None  # a read-only memory searches existing vectors
    if vectors is not None and not read_only:
        indexer = VectorIndexer(
            store, vectors, policy, fact_vectors, clock=clock, keep=pruner.rules.vectors
        )
    texts_changed = indexer.signal if indexer is not None else lambda: None
    reconciler = Reconciler(
        store=store,
        policy=policy,
        clock=clock,
        segment_writer=segment_writer,
        extraction=extraction,
        leases=Leases(
            store=store,
            clock=clock,
            background=background,
            owner=clock.new_id("owner"),
            seconds=settings.lease_seconds,
        ),
        backoff=Backoff(store=store, policy=policy, clock=clock),
        pruner=pruner,
        parallel_slices=settings.parallel_slices,
    )
    daily = None
    if settings.daily_directory is not None:
        daily = DailyNotes(
            directory=_expand(settings.daily_directory),
            keep_days=settings.daily_keep_days,
            reflector=segment_writer.reflector,
            policy=policy,
            count_text=counter.text,
            clock=clock,
            extract=DayFacts(extraction=extraction, count_text=counter.text, changed=texts_changed),
        )
    return Runtime(
        policy=policy,
        settings=settings,
        clock=clock,
        store=store,
        counter=counter,
        segment_writer=segment_writer,
        background=background,
        engine=engine(reconciler, workers=settings.workers, progressed=texts_changed),
        turns=Turns(
            store=store,
            clock=clock,
            background=background,
            lease_seconds=settings.lease_seconds,
            wait_seconds=settings.turn_wait_seconds,
        ),
        ledger=ledger,
        budgets=spending,
        calibrator=calibrator,
        recall_search=Search(
            store=store, embedder=vectors, policy=policy, fact_vectors=fact_vectors
        ),
        indexer=indexer,
        fact_vectors=fact_vectors,
        daily=daily,
        pruner=pruner,
        pool=pool,
        connections=connections,
        all_users=all_users,
        read_only=read_only,
    )


def _expand(directory: str) -> Path:
    return Path(directory).expanduser()
