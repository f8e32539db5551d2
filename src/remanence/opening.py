"""Assembly of a memory: every part is made once, from the arguments of `Memory.open`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

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
from remanence.facts.api import Facts
from remanence.facts.conversation_facts import ConversationFacts
from remanence.facts.extraction import Extraction
from remanence.model_sources import ObserverFactory
from remanence.observers.extractive import ExtractiveObserver
from remanence.policy.policy import Policy
from remanence.protocols import FactExtractor, FactVectors, Observer, Reflector, Store
from remanence.providers import ModelOptions, ModelSource
from remanence.recall.embedders import EmbedderSource, open_embedder
from remanence.recall.indexer import VectorIndexer
from remanence.recall.search import Search
from remanence.runtime import Gate, Runtime
from remanence.settings import Settings
from remanence.tokens import TokenCounter, counter_for
from remanence.types import Budget

TRIED_ONCE = ModelOptions(attempts=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryParts:
    """The arguments of `Memory.open`, with defaults applied."""

    settings: Settings
    policy: Policy
    clock: Clock
    observer: "Observer | ModelSource | None"
    reflector: "Reflector | ModelSource | None"
    model: "ModelSource | None"
    extractor: "FactExtractor | ModelSource | None"
    embedder: "EmbedderSource | None"
    fact_vectors: FactVectors | None
    model_options: ModelOptions | None
    budgets: Sequence[Budget]
    hooks: Hooks | None
    all_users: bool = False
    background: Background


class Assembly(NamedTuple):
    """The runtime, and the daily notes if there is a directory for them."""

    runtime: Runtime
    daily: DailyNotes | None


class _NoteWriters(NamedTuple):
    observer: Observer
    reflector: Reflector
    extractor: FactExtractor


async def assemble(store: Store, parts: MemoryParts) -> Assembly:
    """Assemble the parts of a memory on *store*, without starting them.

    Raises:
        InvalidPolicy, ModelError: a part cannot be made.
    """
    settings, policy, clock = parts.settings, parts.policy, parts.clock
    ledger = Ledger(store)
    budgets = Budgets(parts.budgets, ledger=ledger, clock=clock)
    counter = counter_for(policy.token_counter or policy.model)
    calibrator, live_prompts, gate = Calibrator(), LivePrompts(), Gate()
    factory = ObserverFactory(
        policy=policy,
        clock=clock,
        record=ledger.record,
        compare=calibrator.compare,
        count=counter.text,
        options=parts.model_options or TRIED_ONCE,
        budgets=budgets,
        over_budget=settings.over_budget,
    )
    writers = await _make_parts(factory, parts)
    extraction = Extraction(store=store, policy=policy, extractor=writers.extractor, clock=clock)
    reconciler = _reconciler(store, parts, writers, extraction, counter, live_prompts)
    embedder = open_embedder(parts.embedder) if parts.embedder is not None else None
    vectors = parts.fact_vectors
    recall_search = Search(store=store, embedder=embedder, policy=policy, fact_vectors=vectors)
    indexer = VectorIndexer(store, embedder, policy, vectors) if embedder else None
    changed = _texts_changed(indexer)
    daily = _daily_notes(parts, writers.reflector, extraction, counter, changed)
    runtime = Runtime(
        policy=policy,
        settings=settings,
        clock=clock,
        store=store,
        counter=counter,
        reconciler=reconciler,
        background=parts.background,
        engine=LocalEngine(reconciler, workers=settings.workers, progressed=changed),
        turns=Turns(
            store=store,
            clock=clock,
            background=parts.background,
            lease_seconds=settings.lease_seconds,
            wait_seconds=settings.turn_wait_seconds,
        ),
        ledger=ledger,
        budgets=budgets,
        calibrator=calibrator,
        facts=Facts(
            store=store,
            clock=clock,
            search=recall_search.facts,
            changed=changed,
            vectors=vectors,
            check_open=gate.check,
        ),
        recall_search=recall_search,
        indexer=indexer,
        fact_vectors=vectors,
        daily=daily,
        live_prompts=live_prompts,
        gate=gate,
        all_users=parts.all_users,
    )
    return Assembly(runtime, daily)


async def _make_parts(factory: ObserverFactory, parts: MemoryParts) -> _NoteWriters:
    """Make observer, reflector and extractor; open no model for a part that is never used."""
    settings = parts.settings
    shared = parts.model or settings.model
    observes = parts.policy.enabled
    reflects = observes or settings.daily_directory is not None
    observer = parts.observer or settings.observer_model
    reflector = parts.reflector or settings.reflector_model
    shared_key = settings.model_key_variable
    observer_key = settings.observer_key_variable or (None if observer else shared_key)
    reflector_key = settings.reflector_key_variable or (None if reflector else shared_key)
    return _NoteWriters(
        observer=await factory.observer(observer or shared, key_variable=observer_key)
        if observes
        else ExtractiveObserver(),
        reflector=await factory.reflector(
            (reflector or shared) if reflects else None, key_variable=reflector_key
        ),
        extractor=await factory.extractor(
            (parts.extractor or shared) if reflects else None,
            key_variable=None if parts.extractor else shared_key,
        ),
    )


def _reconciler(
    store: Store,
    parts: MemoryParts,
    writers: _NoteWriters,
    extraction: Extraction,
    counter: TokenCounter,
    live_prompts: LivePrompts,
) -> Reconciler:
    policy, clock = parts.policy, parts.clock
    segment_writer = SegmentWriter(
        store=store,
        policy=policy,
        observer=writers.observer,
        reflector=writers.reflector,
        clock=clock,
        count_text=counter.text,
        hooks=parts.hooks or NO_HOOKS,
        live_prompt=live_prompts.newest,
    )
    leases = Leases(
        store=store,
        clock=clock,
        background=parts.background,
        owner=clock.new_id("owner"),
        seconds=parts.settings.lease_seconds,
    )
    return Reconciler(
        store=store,
        policy=policy,
        clock=clock,
        segment_writer=segment_writer,
        conversation_facts=ConversationFacts(extraction=extraction),
        leases=leases,
        backoff=Backoff(store=store, policy=policy, clock=clock),
    )


def _texts_changed(indexer: VectorIndexer | None) -> Callable[[], None]:
    """Return a callback for new texts, which signals the indexer if there is one."""
    return indexer.signal if indexer is not None else lambda: None


def _daily_notes(
    parts: MemoryParts,
    reflector: Reflector,
    extraction: Extraction,
    counter: TokenCounter,
    changed: Callable[[], None],
) -> DailyNotes | None:
    if parts.settings.daily_directory is None:
        return None
    return DailyNotes(
        directory=Path(parts.settings.daily_directory).expanduser(),
        keep_days=parts.settings.daily_keep_days,
        reflector=reflector,
        policy=parts.policy,
        count_text=counter.text,
        clock=parts.clock,
        extract=DayFacts(extraction=extraction, count_text=counter.text, changed=changed),
    )
