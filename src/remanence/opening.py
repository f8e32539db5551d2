"""Assembly of a memory: every part is made once, from the arguments of `Memory.open`."""

from collections.abc import Callable, Sequence
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
from remanence.engine.hooks import NO_HOOKS, Hooks
from remanence.engine.leases import Leases
from remanence.engine.live_prompts import LivePrompts
from remanence.engine.local import LocalEngine
from remanence.engine.reconciler import Reconciler
from remanence.engine.segment_writer import SegmentWriter
from remanence.engine.turns import Turns
from remanence.facts.extraction import Extraction
from remanence.model_sources import ObserverFactory
from remanence.observers.extractive import ExtractiveObserver
from remanence.policy.policy import Policy
from remanence.protocols import Engine, FactExtractor, FactVectors, Observer, Reflector, Store
from remanence.providers import ModelOptions, ModelSource
from remanence.providers.connections import Connections
from remanence.recall.embedders import EmbedderSource, open_embedder
from remanence.recall.indexer import VectorIndexer
from remanence.recall.search import Search
from remanence.runtime import Runtime
from remanence.settings import Settings
from remanence.tokens import counter_for
from remanence.types import Budget

TRIED_ONCE = ModelOptions(attempts=1)


class EngineFactory(Protocol):
    """Makes the engine of a memory; `LocalEngine` is one.

    The engine runs steps of *reconciler*, at most *workers* at a time in this process, and calls
    *progressed* after each that made something.
    """

    def __call__(
        self, reconciler: Reconciler, *, workers: int, progressed: Callable[[], None]
    ) -> Engine: ...


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
    ledger, calibrator, live_prompts = Ledger(store), Calibrator(), LivePrompts()
    spending = Budgets(settings.budgets if budgets is None else budgets, ledger=ledger, clock=clock)
    connections = Connections()
    counter = counter_for(policy.token_counter or policy.model)
    factory = ObserverFactory(
        policy=policy,
        clock=clock,
        record=ledger.record,
        compare=calibrator.compare,
        count=counter.text,
        options=(model_options or TRIED_ONCE).with_connections(connections),
        budgets=spending,
        over_budget=settings.over_budget,
    )
    model = model or settings.model
    segment_writer = SegmentWriter(
        store=store,
        policy=policy,
        observer=await _open_observer(factory, settings, observer, model),
        reflector=await _open_reflector(factory, settings, reflector, model),
        clock=clock,
        count_text=counter.text,
        hooks=hooks or NO_HOOKS,
        live_prompt=live_prompts.newest,
    )
    extraction = Extraction(
        store=store,
        policy=policy,
        extractor=await _open_extractor(factory, settings, extractor, model),
        clock=clock,
    )
    vectors = None
    if embedder is not None:
        vectors = open_embedder(embedder, connections=connections)
    search = Search(store=store, embedder=vectors, policy=policy, fact_vectors=fact_vectors)
    indexer = None  # a memory for reading searches the vectors that exist
    if vectors is not None and not read_only:
        indexer = VectorIndexer(store, vectors, policy, fact_vectors)
    texts_changed = indexer.signal if indexer is not None else lambda: None
    reconciler = _reconciler(segment_writer, extraction, background, settings.lease_seconds)
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
        recall_search=search,
        indexer=indexer,
        fact_vectors=fact_vectors,
        daily=_daily_notes(settings, segment_writer, extraction, texts_changed),
        live_prompts=live_prompts,
        connections=connections,
        all_users=all_users,
    )


async def _open_observer(
    factory: ObserverFactory,
    settings: Settings,
    observer: "Observer | ModelSource | None",
    model: "ModelSource | None",
) -> Observer:
    """Return the observer; no model is opened for one that is never used."""
    if not factory.policy.enabled:
        return ExtractiveObserver()
    own = observer or settings.observer_model
    key = settings.observer_key_variable or (None if own else settings.model_key_variable)
    return await factory.observer(own or model, key_variable=key)


async def _open_reflector(
    factory: ObserverFactory,
    settings: Settings,
    reflector: "Reflector | ModelSource | None",
    model: "ModelSource | None",
) -> Reflector:
    """Return the reflector, as above; daily notes need it, too."""
    if not _reflects(factory.policy, settings):
        return await factory.reflector(None)
    own = reflector or settings.reflector_model
    key = settings.reflector_key_variable or (None if own else settings.model_key_variable)
    return await factory.reflector(own or model, key_variable=key)


async def _open_extractor(
    factory: ObserverFactory,
    settings: Settings,
    extractor: "FactExtractor | ModelSource | None",
    model: "ModelSource | None",
) -> FactExtractor:
    """Return the extractor, as above."""
    if not _reflects(factory.policy, settings):
        return await factory.extractor(None)
    key = None if extractor else settings.model_key_variable
    return await factory.extractor(extractor or model, key_variable=key)


def _reflects(policy: Policy, settings: Settings) -> bool:
    return policy.enabled or settings.daily_directory is not None


def _reconciler(
    segment_writer: SegmentWriter,
    extraction: Extraction,
    background: Background,
    lease_seconds: float,
) -> Reconciler:
    store, policy, clock = segment_writer.store, segment_writer.policy, segment_writer.clock
    return Reconciler(
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
            seconds=lease_seconds,
        ),
        backoff=Backoff(store=store, policy=policy, clock=clock),
    )


def _daily_notes(
    settings: Settings,
    segment_writer: SegmentWriter,
    extraction: Extraction,
    texts_changed: Callable[[], None],
) -> DailyNotes | None:
    if settings.daily_directory is None:
        return None
    count_text = segment_writer.count_text
    return DailyNotes(
        directory=Path(settings.daily_directory).expanduser(),
        keep_days=settings.daily_keep_days,
        reflector=segment_writer.reflector,
        policy=segment_writer.policy,
        count_text=count_text,
        clock=segment_writer.clock,
        extract=DayFacts(extraction=extraction, count_text=count_text, changed=texts_changed),
    )
