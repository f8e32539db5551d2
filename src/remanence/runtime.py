"""The parts of an open memory, shared by its conversations."""

import contextlib
import functools
from collections.abc import Container
from dataclasses import dataclass, field
from pathlib import Path

from remanence.archive.blocks import BlockStore
from remanence.archive.daily import DailyNotes
from remanence.arguments import require_name
from remanence.background import Background
from remanence.clock import Clock
from remanence.costs.budgets import Budgets
from remanence.costs.calibration import Calibrator
from remanence.costs.ledger import Ledger
from remanence.engine.retention import Pruner
from remanence.engine.segment_writer import SegmentWriter
from remanence.engine.turns import Turns
from remanence.errors import Closed, RemanenceError, StoreUnavailable
from remanence.facts.api import Facts
from remanence.files import safe_name
from remanence.observers.process_pool import ProcessPool
from remanence.policy.policy import Policy
from remanence.process import OwnProcess
from remanence.protocols import CountTokens, Engine, FactVectors, Store
from remanence.providers.connections import Connections
from remanence.recall.indexer import VectorIndexer
from remanence.recall.search import Search
from remanence.recent import Recent
from remanence.settings import Settings
from remanence.tokens import TokenCounter
from remanence.types import ConversationRef, Owner, Receipt

DEFAULT_TENANT = "default"


@dataclass(slots=True, kw_only=True, eq=False)
class Runtime:
    """The parts of an open memory. Belongs to the event loop that opened it."""

    policy: Policy
    settings: Settings
    clock: Clock
    store: Store
    counter: TokenCounter
    segment_writer: SegmentWriter
    background: Background
    engine: Engine
    turns: Turns
    ledger: Ledger
    budgets: Budgets
    calibrator: Calibrator
    recall_search: Search
    indexer: VectorIndexer | None
    fact_vectors: FactVectors | None
    daily: DailyNotes | None
    pruner: Pruner
    pool: ProcessPool | None
    connections: Connections
    all_users: bool
    read_only: bool
    last_models: Recent[ConversationRef, str] = field(default_factory=lambda: Recent(1_000))
    unfinished_erasures: Recent[object, Receipt | None] = field(
        default_factory=lambda: Recent(1_000)
    )
    """Receipts of erasures that failed in a later step, by subject; None for a fact, which has no receipt."""
    shown: Recent[ConversationRef, Container[int]] = field(default_factory=lambda: Recent(1_000))
    """For each conversation, the messages in its next prompt, according to its last context."""
    facts: Facts = field(init=False)
    count_text: CountTokens = field(init=False)
    process: OwnProcess = field(default_factory=OwnProcess)
    _closed: bool = False

    def __post_init__(self) -> None:
        self.count_text = functools.lru_cache(maxsize=256)(self.counter.text)
        self.facts = Facts(
            store=self.store,
            clock=self.clock,
            search=self.recall_search.facts,
            changed=self.indexer.signal if self.indexer is not None else lambda: None,
            vectors=self.fact_vectors,
            owner=self.owner,
            unfinished_erasures=self.unfinished_erasures,
        )

    def check_open(self) -> None:
        """Raise `Closed` if the memory was closed, and in a forked child process."""
        self.process.require_this()
        if self._closed:
            raise Closed("the memory is closed: open it again with Memory.open(...)")

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
        """Stop the background work; steps in progress have some time to finish."""
        self._closed = True
        seconds = self.settings.shutdown_timeout_seconds
        async with self.connections:
            await self.engine.close(timeout_seconds=seconds)
            if self.pool is not None:
                self.pool.close()
            if self.indexer is not None:
                await self.indexer.close()
            await self.ledger.close(timeout_seconds=seconds)
