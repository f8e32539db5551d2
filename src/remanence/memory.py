"""The facade: a memory, and what it is opened with."""

import asyncio
import importlib
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Self

from remanence.clock import Clock, SystemClock
from remanence.config import Settings
from remanence.conversation import Conversation
from remanence.daily import Consolidation, DailyNotes
from remanence.engine.hooks import Hooks
from remanence.errors import InvalidMessage, InvalidPolicy
from remanence.models import ModelOptions, ModelSource
from remanence.models.embedding import EmbedderSource
from remanence.observing.diagnosis import diagnose, diagnose_budget
from remanence.observing.policy import Policy
from remanence.observing.preset import policy_of
from remanence.opening import Parts, assembled
from remanence.protocols import FactExtractor, FactVectors, Observer, Reflector
from remanence.runtime import DEFAULT_TENANT, Runtime
from remanence.stores import open_store
from remanence.types import Budget, ConversationRef, MemoryState, Problem, UsageTotal

CHECK_PAGE = 200


class Memory:
    """A durable memory for conversations; open it with `async with Memory.open(url)`.

    Belongs to the event loop that opened it. What is passed in is not closed by it.
    """

    def __init__(self, runtime: Runtime, daily: DailyNotes | None) -> None:
        """Use `Memory.open`, which closes what it opens."""
        self.policy = runtime.policy
        self.clock = runtime.clock
        self.facts = runtime.facts
        self._runtime = runtime
        self._store = runtime.store
        self._daily = daily

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        url: str | None = None,
        *,
        policy: Policy | None = None,
        observer: "Observer | ModelSource | None" = None,
        reflector: "Reflector | ModelSource | None" = None,
        model: "ModelSource | None" = None,
        extractor: "FactExtractor | ModelSource | None" = None,
        embedder: "EmbedderSource | None" = None,
        fact_vectors: FactVectors | None = None,
        settings: Settings | Path | str | None = None,
        clock: Clock | None = None,
        model_options: ModelOptions | None = None,
        budgets: Sequence[Budget] | None = None,
        hooks: Hooks | None = None,
    ) -> AsyncIterator[Self]:
        """Open the tape at *url*, creating it where needed, and start the background work.

        Args:
            url: `sqlite:///file.db` or `sqlite:///:memory:`; by default that of *settings*.
            policy: when memory works; by default the one that *settings* describe.
            observer: makes notes from messages: an `Observer`, or a model to ask, such as
                `anthropic:claude-haiku-4-5`; by default *model*, else the embedded observer.
            reflector: condenses notes: a `Reflector` or a model, with the same defaults.
            model: what observer, reflector and extractor ask where they name no model of their
                own: a name, an async function from a request to a text, or several, tried in order.
            extractor: makes facts that outlive a conversation: a `FactExtractor` or a model, with
                the same defaults.
            embedder: makes vectors, so that recall also finds what says the same in other words: a
                name such as `openai:text-embedding-3-small`, an async function from texts to
                vectors, or an `Embedder`; by default words alone are searched.
            fact_vectors: keeps the vectors of facts elsewhere, such as
                `remanence.stores.qdrant.QdrantFactVectors`; by default they are in the database.
            settings: by default `Settings()`; or the path of a file to read, which may also be a
                `lango.json`, a zora configuration, or one with the names of `MEMORY_CONFIG`.
            clock: the source of time and ids.
            model_options: how models are called that are given by name or as functions; by
                default each call is made once, as a failed step is tried again later anyway.
            budgets: what observers and reflectors may spend; by default those of *settings*.
            hooks: what is called before and after each observation and reflection.

        Raises:
            InvalidPolicy: the settings contradict one another.
            StoreError: the database cannot be opened; the text says why and what to do.
        """
        settings = _settings(settings)
        policy = policy_of(settings) if policy is None else policy
        if not isinstance(policy, Policy):
            raise InvalidPolicy(
                f"policy={policy!r} is no Policy: use Policy.default(...) or another"
            )
        clock = clock or SystemClock()
        async with AsyncExitStack() as stack:
            store = await open_store(
                settings.url if url is None else url, clock=clock, durability=settings.durability
            )
            stack.push_async_callback(store.close)
            runtime, daily = await assembled(
                store,
                Parts(
                    settings=settings,
                    policy=policy,
                    clock=clock,
                    observer=observer,
                    reflector=reflector,
                    model=model,
                    extractor=extractor,
                    embedder=embedder,
                    fact_vectors=fact_vectors,
                    model_options=model_options,
                    budgets=settings.budgets if budgets is None else budgets,
                    hooks=hooks,
                ),
            )
            memory = cls(runtime, daily)
            runtime.start()
            stack.push_async_callback(runtime.stop)
            if memory._daily is not None and settings.workers:
                await stack.enter_async_context(_running(memory._daily.keep_up()))
            yield memory

    def conversation(
        self,
        id: str,  # noqa: A002 - pinned
        *,
        user: str | None = None,
        tenant: str = "default",
    ) -> Conversation:
        """The conversation named *id* of a tenant; it comes to be with its first message."""
        names = {"id": id, "tenant": tenant} | ({} if user is None else {"user": user})
        for name, value in names.items():
            if not value or not value.isprintable():
                raise InvalidMessage(f"conversation {name} {value!r} is not a name: use plain text")
        return Conversation(self._runtime, ConversationRef(tenant, id), user)

    async def conversations(
        self,
        *,
        tenant: str | None = None,
        after: ConversationRef | None = None,
        limit: int = 100,
    ) -> tuple[MemoryState, ...]:
        """The states of up to *limit* conversations by (tenant, id), for paging with *after*."""
        self._runtime.check_open()
        return await self._store.conversations(tenant=tenant, after=after, limit=limit)

    async def usage(
        self,
        *,
        tenant: str | None = None,
        conversation: str | None = None,
        user: str | None = None,
        since: datetime | None = None,
    ) -> tuple[UsageTotal, ...]:
        """What model calls took, by purpose and model: of all, or of those that fit.

        Args:
            tenant: whose calls; with a *conversation* by default `default`.
            conversation: the id of one; the calls of a deleted one no longer name it.
            user: whose conversations.
            since: calls from then on.
        """
        self._runtime.check_open()
        if conversation is None:
            return await self._runtime.ledger.usage(tenant=tenant, user=user, since=since)
        ref = ConversationRef(tenant or DEFAULT_TENANT, conversation)
        return await self._runtime.ledger.usage(conversation=ref, user=user, since=since)

    @property
    def calibration(self) -> Mapping[str, float]:
        """What our token counts are multiplied with to meet what the provider of a model reports.

        Learned from the calls of this memory while it is open; a context for a model with more
        than 1.0 is held against `max_context_tokens` with it. Counts of messages stay as they are.
        """
        return self._runtime.calibrating.factors

    async def check(self) -> tuple[Problem, ...]:
        """What is inconsistent, failing, stuck or overdue, and how to mend it."""
        self._runtime.check_open()
        problems = list(await self._store.check())
        after: ConversationRef | None = None
        while page := await self._store.conversations(after=after, limit=CHECK_PAGE):
            for state in page:
                problems += diagnose(self.policy, state, now=self.clock.now())
                for budget in await self._runtime.budgets.states(state.ref, state.user):
                    problems += diagnose_budget(state.ref, budget)
            after = page[-1].ref
        return tuple(problems)

    async def note(self, text: str, *, user: str, tenant: str = "default") -> Path:
        """Add a line to a user's daily notes, and tell in which file it stands.

        Raises:
            InvalidPolicy: the setting `daily_directory` is missing.
            StoreUnavailable: the file cannot be written.
        """
        return await self._require_daily().add(text, user=user, tenant=tenant)

    async def consolidate(
        self, *, user: str | None = None, tenant: str | None = None
    ) -> tuple[Consolidation, ...]:
        """Summarise old daily notes into `MEMORY.md`, keep their facts, archive them.

        A memory that is open does it by itself once a day. May be repeated and interrupted.

        Args:
            user: whose notes, of *tenant* (`default`); by default those of everybody.
            tenant: without a user: only its users.

        Raises:
            InvalidPolicy: the setting `daily_directory` is missing.
            ObservationRejected, ModelError: a summary could not be made; that day's file stays.
            StoreUnavailable: a file cannot be read or written.
        """
        daily = self._require_daily()
        if user is not None:
            return (await daily.consolidate(user=user, tenant=tenant or DEFAULT_TENANT),)
        users = [each for each in await daily.users() if tenant in (None, each[0])]
        return tuple([await daily.consolidate(user=name, tenant=of) for of, name in users])

    def _require_daily(self) -> DailyNotes:
        self._runtime.check_open()
        if self._daily is None:
            raise InvalidPolicy(
                "daily_directory=None has no daily notes: name a directory of yours, as in "
                'Memory.open(settings=Settings(daily_directory="notes")) or by '
                "REMANENCE_DAILY_DIRECTORY"
            )
        return self._daily


def _settings(source: Settings | Path | str | None) -> Settings:
    if source is None or isinstance(source, Settings):
        return source or Settings()
    if not isinstance(source, str | Path):
        raise InvalidPolicy(f"settings={source!r} are none: use Settings(...) or a file's path")
    file = Path(source)
    # Reading files needs pydantic, which takes longer to load than all the rest.
    sources = importlib.import_module("remanence.config.sources")
    loaded: Settings = sources.load_settings(
        Policy, arguments={}, directory=file.parent, file=file
    ).settings
    return loaded


@asynccontextmanager
async def _running(work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Do *work* beside the body, and end it with it."""
    task = asyncio.create_task(work, name="remanence-daily")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
