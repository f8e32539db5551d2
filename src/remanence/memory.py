"""The facade: `Memory`."""

import asyncio
import importlib
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Self, TypeVar

from remanence.api_keys import APIKeys
from remanence.archive.daily import Consolidation, DailyNotes
from remanence.arguments import (
    is_async,
    is_plain,
    require_async,
    require_async_methods,
    require_choices,
    require_count,
    require_moment,
    require_name,
    require_object,
    require_one_of,
    require_path,
    require_text,
    require_unicode,
    require_words,
)
from remanence.background import Background, finish, is_part_of, start_beside
from remanence.clock import Clock, SystemClock
from remanence.conversation import Conversation
from remanence.engine.hooks import Hooks
from remanence.engine.readiness import find_unready
from remanence.errors import Deadlock, InvalidArgument, InvalidPolicy, NotOpen, StoreUnavailable
from remanence.events import deliver, follow
from remanence.facts.api import Facts
from remanence.files import expand_home
from remanence.forgetting import forget_user
from remanence.policy.diagnosis import (
    diagnose,
    diagnose_blind_budget,
    diagnose_budget,
    diagnose_pause,
    diagnose_stop,
)
from remanence.policy.policy import Policy
from remanence.protocols import BackupStore, FactExtractor, FactVectors, Observer, Reflector, Store
from remanence.providers import ModelOptions, ModelSource
from remanence.providers.connections import Connections
from remanence.recall.embedders import EmbedderSource
from remanence.recall.snippets import within
from remanence.runtime import DEFAULT_TENANT, Runtime, choose_engine
from remanence.settings import Settings, policy_of
from remanence.stores import mask_password, open_store
from remanence.stores.url import name_database
from remanence.types import (
    EVENT_TYPES,
    Backlog,
    Budget,
    ConversationRef,
    DatabaseSize,
    Event,
    EventPage,
    EventType,
    Hit,
    HitKind,
    MemoryState,
    Owner,
    Problem,
    RecallFilter,
    Receipt,
    Unready,
    UsageTotal,
)
from remanence.user_export import export_user

BACKLOG_LIMIT = 1_000
CHECK_PAGE = 200


T_co = TypeVar("T_co", bound="Memory", covariant=True)


class Memory:
    """A durable memory for conversations; open it with `async with Memory.open(url)`.

    It belongs to the event loop that opened it, and does not close objects passed in.
    """

    def __init__(
        self, runtime: Runtime, *, url: str = "", opened: AsyncExitStack | None = None
    ) -> None:
        """Use `Memory.open`, which closes what it opens."""
        if not isinstance(runtime, Runtime):
            raise InvalidArgument(
                f"Memory({runtime!r:.80}) opens nothing: write async with "
                f"Memory.open({runtime!r:.80}) as memory"
            )
        self._runtime = runtime  # first, as it refuses pickling with the remedy
        self._url = url
        self._opened = opened or AsyncExitStack()
        # A second `close` waits for the first, whose parts it would close in the wrong order.
        self._closing = asyncio.Lock()
        self.policy: Policy = runtime.policy
        self.clock: Clock = runtime.clock
        self.settings: Settings = runtime.settings
        self.connections: Connections = runtime.connections
        self.facts: Facts = runtime.facts
        self.keys: APIKeys = APIKeys(runtime.store, runtime.clock)
        self._store = runtime.store

    def __repr__(self) -> str:
        return f"<Memory at {mask_password(self._url)!r}>"

    @classmethod
    def open(
        cls,
        url: str | Store | None = None,
        *,
        policy: Policy | None = None,
        observer: Observer | ModelSource | None = None,
        reflector: Reflector | ModelSource | None = None,
        model: ModelSource | None = None,
        extractor: FactExtractor | ModelSource | None = None,
        embedder: EmbedderSource | None = None,
        fact_vectors: FactVectors | None = None,
        settings: Settings | Path | str | None = None,
        clock: Clock | None = None,
        model_options: ModelOptions | None = None,
        budgets: Sequence[Budget] | None = None,
        hooks: Hooks | None = None,
        read_only: bool = False,
        all_users: bool = False,
    ) -> "Opening[Self]":
        """Open the tape at *url*, creating it if needed, and start the background work.

        Write `async with Memory.open(...) as memory`; or `memory = await Memory.open(...)`, and
        `await memory.close()` at the end.

        Args:
            url: `sqlite:///file.db`, `sqlite:///:memory:` or `postgresql://user@host/database`; by
                default that of *settings*. Or an open `Store`, such as your own, which you close
                after the memory.
            policy: when memory works; by default the one that *settings* describe.
            observer: makes notes from messages: an `Observer`, or a model to ask, such as
                `anthropic:claude-haiku-4-5`; by default *model*, else the embedded observer.
            reflector: condenses notes: a `Reflector` or a model, with the same defaults.
            model: the default model of observer, reflector and extractor: a name, an async function
                from a request to a text, or a list of them, tried in order.
            extractor: extracts facts that outlive a conversation: a `FactExtractor` or a model, with
                the same defaults.
            embedder: makes vectors, so that recall also matches by meaning: a name such as
                `openai:text-embedding-3-small`, a function from texts to vectors, which runs in a
                thread unless it is async, or an `Embedder`; by default only words are searched.
            fact_vectors: stores the vectors of facts elsewhere, such as
                `remanence.recall.qdrant.QdrantFactVectors`; by default they are in the database.
                Without an embedder, only what is forgotten is erased there.
            settings: a `Settings`, or the path of a settings file, which may also be a `lango.json`,
                a zora configuration, or one with the names of `MEMORY_CONFIG`. Environment variables
                such as `REMANENCE_URL` override the file. By default `Settings()`, which reads
                neither the environment nor a file.
            clock: the source of time and ids.
            model_options: how to call models given by name or as functions; by default without
                retries, as failed steps are tried again later anyway.
            budgets: spending limits of observers, reflectors and extractors; by default those of
                *settings*.
            hooks: called before and after each observation and reflection.
            read_only: open an existing memory without background work. Whatever would change the
                database, daily notes or blocks raises `StoreUnavailable`; backups and exports work.
            all_users: whether a handle without a user may read and change the conversations of every
                user, as an administrator's tools must; by default it may not.

        Raises:
            InvalidPolicy: the settings contradict one another.
            InvalidArgument: another argument has a wrong type.
            ModelError: a model cannot be opened, such as one without its key.
            NotOpen: the event loop is not asyncio's.
            StoreError: the database cannot be opened; the message names the cause and the remedy.
        """
        require_one_of(bool, read_only=read_only, all_users=all_users)
        settings = _read_settings(settings)
        if read_only:
            settings = replace(
                settings, workers=0, model=None, observer_model=None, reflector_model=None
            )
        policy = policy_of(settings) if policy is None else policy
        if not isinstance(policy, Policy):
            raise InvalidPolicy(
                f"policy={policy!r} is not a Policy: use Policy.default(...) or another"
            )
        clock = SystemClock() if clock is None else clock
        url = settings.url if url is None else url

        async def open_memory() -> Self:
            _require_asyncio()
            _require_parts(clock, model_options, budgets, hooks)
            _require_fact_vectors(fact_vectors)
            async with AsyncExitStack() as stack:
                name = type(url).__name__ if isinstance(url, Store) else url
                engine = choose_engine(settings, name)
                if isinstance(url, Store):
                    if read_only:
                        raise InvalidArgument(
                            "read_only=True is for a URL: open the store itself so, with "
                            "open_store(url, read_only=True)"
                        )
                    store = url
                else:
                    store = await open_store(
                        url, clock=clock, durability=settings.durability, read_only=read_only
                    )
                    stack.push_async_callback(
                        lambda: finish(start_beside(store.close(), name="remanence-close"))
                    )
                # In a thread, as importing a provider's package takes seconds.
                runtime = await asyncio.to_thread(
                    Runtime,
                    store,
                    settings=settings,
                    policy=policy,
                    clock=clock,
                    background=await stack.enter_async_context(Background()),
                    observer=observer,
                    reflector=reflector,
                    model=model,
                    extractor=extractor,
                    embedder=embedder,
                    fact_vectors=fact_vectors,
                    model_options=model_options,
                    budgets=budgets,
                    hooks=hooks,
                    read_only=read_only,
                    all_users=all_users,
                    engine=engine,
                )
                runtime.start()
                stack.push_async_callback(runtime.stop)
                return cls(runtime, url=name, opened=stack.pop_all())

        return Opening(open_memory)

    async def close(self) -> None:
        """Finish work in progress within `shutdown_timeout_seconds`, and close the tape.

        `async with` does this by itself. Closing again does nothing, nor does closing in a forked
        child, as the memory belongs to the parent process.

        Raises:
            Closed: the memory was opened in another event loop.
            Deadlock: a hook, or other background work of this memory, called it.
        """
        if self._runtime.process.is_this:
            self._runtime.background.require_loop()
            if is_part_of(self._runtime.background):
                raise Deadlock(
                    "close() was called by background work of the memory, such as a hook or a model's "
                    "function, and would wait for it: close the memory in another task"
                )
            async with self._closing:
                await self._opened.aclose()

    def conversation(
        self,
        id: str,  # noqa: A002 - pinned
        *,
        user: str | None = None,
        tenant: str = "default",
        timezone: tzinfo | None = None,
    ) -> Conversation:
        """Return a handle of the conversation *id*; the first message creates the conversation.

        A conversation belongs to the first *user* named for it, and refuses handles with another
        user or none. Appended messages get the UTC offset of *timezone*, which defines their
        "today"; by default that of their `created_at`, or else of the clock. Contexts show the
        time in *timezone*, by default in the offset of the newest user message.
        """
        require_one_of(tzinfo, timezone=timezone, optional=True)
        require_name("conversation id", id)
        require_name("conversation tenant", tenant)
        if user is not None:
            require_name("conversation user", user)
        return Conversation(self._runtime, ConversationRef(tenant, id), user, timezone)

    async def conversations(
        self,
        *,
        tenant: str | None = None,
        user: str | None = None,
        after: ConversationRef | None = None,
        limit: int = 100,
    ) -> tuple[MemoryState, ...]:
        """Return the states of up to *limit* conversations, in order of (tenant, id).

        A *user* is one of the *tenant*, by default of `default`; without either, those of all
        tenants are listed. For the next page, pass the `ref` of the last state as *after*.
        """
        self._runtime.check_open()
        require_count(limit=limit)
        require_text(tenant=tenant, user=user, optional=True)
        require_unicode(tenant=tenant, user=user)
        require_one_of(ConversationRef, after=after, optional=True)
        if user is not None and tenant is None:
            tenant = DEFAULT_TENANT
        return await self._store.conversations(tenant=tenant, user=user, after=after, limit=limit)

    async def recall(
        self,
        query: str,
        *,
        user: str,
        tenant: str = "default",
        limit: int = 5,
        max_tokens: int | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        kind: HitKind | None = None,
    ) -> tuple[Hit, ...]:
        """Return what matches *query* in all conversations of a user, best first, with sources.

        Like `conversation.recall`, but over all conversations of this tenant and user, and the
        user's facts; each hit names its conversation. The time grows with the matches and vectors
        of this user only: there is one word search per 128 conversations, and one vector search.

        Args:
            query: words to search for, or a question, which also finds facts of its topic; with an
                embedder it also matches by meaning.
            user: whose conversations and facts.
            tenant: the tenant of the user.
            limit: the maximum number of hits.
            max_tokens: the maximum tokens of all snippets together; the best is shortened to fit.
            since: only messages, notes and facts from this time on.
            until: only messages, notes and facts from before this time.
            kind: only notes, messages or facts.

        Raises:
            InvalidPolicy: a filter has an impossible value.
            InvalidMessage: the tenant or the user is not a name.
            InvalidArgument: the query is blank, or another argument has a wrong type.
        """
        owner = self._runtime.owner(user, tenant)
        require_words(query=query)
        require_count(limit=limit)
        require_count(max_tokens=max_tokens, optional=True)
        only = RecallFilter(since=since, until=until, kind=kind)
        hits = await self._runtime.recall_search.search(owner, owner, query, limit=limit, only=only)
        return within(hits, query, max_tokens, self._runtime.count_text)

    async def usage(
        self,
        *,
        tenant: str | None = None,
        conversation: str | None = None,
        user: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> tuple[UsageTotal, ...]:
        """Return tokens and cost of model calls, by purpose and model.

        Args:
            tenant: only calls of this tenant; `default` by default with *conversation* or *user*.
            conversation: only calls for this id; a deleted conversation's calls no longer name it.
            user: only calls for conversations of this user.
            since: only calls from this time on.
            until: only calls from before this time.
        """
        self._runtime.check_open()
        require_moment(since=since, until=until)
        require_text(tenant=tenant, conversation=conversation, user=user, optional=True)
        require_unicode(tenant=tenant, conversation=conversation, user=user)
        if user is not None:
            tenant = tenant or DEFAULT_TENANT
        if conversation is None:
            return await self._runtime.ledger.usage(
                tenant=tenant, user=user, since=since, until=until
            )
        ref = ConversationRef(tenant or DEFAULT_TENANT, conversation)
        return await self._runtime.ledger.usage(
            conversation=ref, user=user, since=since, until=until
        )

    @property
    def calibration(self) -> Mapping[str, float]:
        """Ratios of the token counts that providers report to our own, by model.

        Learned from this memory's calls while it is open. If a model's factor is above 1.0, the
        tokens of a context are multiplied by it before they are compared with `max_context_tokens`.
        The counts of messages do not change.
        """
        return self._runtime.calibrator.factors

    async def check(self) -> tuple[Problem, ...]:
        """Return what is inconsistent, failing, stuck or overdue, with remedies."""
        self._runtime.check_open()
        problems: list[Problem] = []
        try:
            problems += await self._store.check()
            problems += [problem async for problem in self._diagnose()]
        except StoreUnavailable as error:
            reason = str(error).removesuffix(f": {error.remedy}")
            what = f"the database cannot be used: {reason}"
            problems.append(
                Problem(conversation=None, level="error", what=what, remedy=error.remedy)
            )
        except Exception as error:  # noqa: BLE001 - damaged rows are to be reported, all of them
            problems.append(
                Problem(
                    conversation=None,
                    level="error",
                    what=f"conversations cannot be read: {type(error).__name__}: {error}",
                    remedy="restore a backup from before the damage",
                )
            )
        if self._runtime.indexer is not None:
            problems += self._runtime.indexer.problems()
        return tuple(
            replace(problem, remedy=name_database(problem.remedy, self._url))
            for problem in problems
        )

    async def size(self) -> DatabaseSize:
        """Return the sizes of the tables that grow, and what retention would delete from them.

        Reads the whole database.
        """
        self._runtime.check_open()
        return await self._runtime.pruner.measure()

    async def _diagnose(self) -> AsyncIterator[Problem]:
        """Yield what is failing, stuck or overdue under this memory's policy."""
        after: ConversationRef | None = None
        pauses = await self._store.paused_models(now=self.clock.now())
        paused = {pause.model for pause in pauses}
        works = self.policy.enabled and self.settings.workers > 0
        while page := await self._store.conversations(after=after, limit=CHECK_PAGE):
            for state in page:
                now, seconds = self.clock.now(), self._runtime.settings.lease_seconds
                for problem in diagnose(
                    self.policy, state, now=now, lease_seconds=seconds, paused=paused, works=works
                ):
                    yield problem
                for budget in await self._runtime.budgets.states(state.ref, state.user):
                    for problem in diagnose_budget(state.ref, budget):
                        yield problem
            after = page[-1].ref
        for blind, models in (await self._runtime.budgets.blind()).items():
            yield diagnose_blind_budget(blind, models)
        for pause in pauses:
            yield diagnose_pause(pause)
        if failure := self._runtime.background.failure:
            yield diagnose_stop(failure)

    async def unready(self) -> tuple[Unready, ...]:
        """Return the reasons why this memory is not ready; empty if it is.

        Cheap enough for a probe every few seconds, unlike `check`, which reads everything. Background
        work counts only if this memory does it or shares it as jobs (`engine="procrastinate"`), and
        the policy is enabled.
        """
        self._runtime.check_open()
        settings = self._runtime.settings
        works = self.policy.enabled and (settings.workers > 0 or settings.engine == "procrastinate")
        failure = self._runtime.background.failure
        return await find_unready(self._store, clock=self.clock, works=works, failure=failure)

    async def backlog(self) -> Backlog:
        """Return the background work that is due now; as cheap as `unready`."""
        self._runtime.check_open()
        return await self._store.backlog(now=self.clock.now(), limit=BACKLOG_LIMIT)

    async def forget_user(self, user: str, *, tenant: str = "default") -> Receipt:
        """Erase a user: conversations, facts, daily notes, blocks, and the name in the ledger.

        When it returns, no byte of them is left in the files of a SQLite database. If the user had
        no conversation, fact or file, the receipt is empty with `erased=False`; the name is erased
        from the ledger and events all the same.

        Raises:
            StoreUnavailable: a file was in use, the disk too full, or a copy outside of the database
                could not be erased. The memory may still have the user: repeat the call, which then
                returns the whole receipt.
        """
        owner = self._runtime.owner(user, tenant)
        self._runtime.check_writable()
        return await forget_user(self._runtime, owner)

    def export_user(self, user: str, *, tenant: str = "default") -> AsyncGenerator[str, None]:
        """Yield everything stored about a user, as lines of JSON.

        The key `line` names the kind of value: `user`, `conversation`, `message`, `segment`, `log`,
        `fact`, `repetition`, `usage`, `model_call`, `event` or `daily_notes`; the other keys are its
        fields.
        """
        return export_user(self._runtime, self._runtime.owner(user, tenant))

    def events(
        self,
        *,
        after: int | None = None,
        tenant: str = "default",
        conversation: str | None = None,
        types: Sequence[EventType] = (),
    ) -> AsyncGenerator[Event, None]:
        """Yield a tenant's events in order, and wait for more; raises `Closed` with the memory.

        Args:
            after: the id of the last event seen, or 0 for all stored events; by default, or with an
                id beyond the newest, only events from the start of the iteration on.
            tenant: whose events.
            conversation: only events of the conversation with this id.
            types: only these types; by default all.
        """
        self._check_events(after, tenant, conversation, types)
        return follow(self._runtime, tenant, after=after, conversation=conversation, types=types)

    async def read_events(
        self,
        *,
        after: int | None = None,
        tenant: str = "default",
        conversation: str | None = None,
        types: Sequence[EventType] = (),
        limit: int = 100,
    ) -> EventPage:
        """Return up to *limit* events, and the `after` of the next page.

        The other arguments are those of `events`. Without *after* there are no events, only the
        position of the newest one. At least the newest 100,000 events of each tenant are kept.
        """
        self._check_events(after, tenant, conversation, types)
        require_count(limit=limit)
        return await self._store.events(
            tenant, after=after, limit=limit, conversation=conversation, types=types
        )

    async def deliver_events(
        self, consumer: str, send: Callable[[Event], Awaitable[None] | None]
    ) -> None:
        """Call *send* with each event of all tenants, in order for each tenant, until cancelled.

        A sync function runs in a thread. Every event is sent at least once. If *send* raises, the
        event is sent again at growing intervals, while later events of its tenant wait. The database
        stores the position of each *consumer* by name, across restarts; a new consumer begins with
        the oldest stored event. A consumer more than 100,000 events of a tenant behind may miss some.

        Raises:
            Closed: the memory was closed.
        """
        self._runtime.check_open()
        self._runtime.check_writable()
        require_text(consumer=consumer)
        require_unicode(consumer=consumer)
        if not callable(send) or not is_plain(send):
            require_async(send=send)
        await deliver(self._runtime, consumer, send)

    def _check_events(
        self,
        after: int | None,
        tenant: str,
        conversation: str | None,
        types: Sequence[EventType],
    ) -> None:
        self._runtime.check_open()
        require_count(after=after, optional=True)
        require_text(tenant=tenant)
        require_text(conversation=conversation, optional=True)
        require_unicode(tenant=tenant, conversation=conversation)
        require_choices(EVENT_TYPES, types=types)

    async def backup(self, path: str | Path) -> None:
        """Copy a consistent snapshot of the database to a new file, without blocking its users.

        Raises:
            InvalidArgument: the database is not SQLite's; one in memory can be copied, too.
            StoreUnavailable: *path* exists or cannot be written.
        """
        self._runtime.check_open()
        require_path(path=path)
        if not isinstance(self._store, BackupStore):
            raise InvalidArgument(
                "this memory is not in a SQLite file: use the backup tools of its database"
            )
        await self._store.backup(str(path))

    async def note(
        self, text: str, *, user: str, tenant: str = "default", timezone: tzinfo | None = None
    ) -> Path:
        """Add a line to a user's daily notes, and return the path of the file.

        The file is that of *user* in *tenant*. The day and the time are those of *timezone*, by
        default UTC; the line has its UTC offset.

        Raises:
            InvalidPolicy: the setting `daily_directory` is missing.
            StoreUnavailable: the file cannot be written.
        """
        owner = self._runtime.owner(user, tenant)
        require_text(text=text)
        require_one_of(tzinfo, timezone=timezone, optional=True)
        return await self._require_daily().add(text, owner, timezone or UTC)

    async def consolidate(
        self, *, user: str | None = None, tenant: str | None = None
    ) -> tuple[Consolidation, ...]:
        """Summarise old daily notes into `MEMORY.md`, extract their facts, and archive them.

        An open memory does this by itself once a day. It may be repeated or interrupted safely.

        Args:
            user: only the notes of this user of *tenant* (by default `default`).
            tenant: without *user*, only the notes of this tenant's users.

        Raises:
            InvalidPolicy: `daily_directory` is not set, or has notes that belong to no user.
            ObservationRejected, ModelError: a summary failed; that day's file stays.
            ObservationSkipped: a budget is spent, until the error's `until`; that day's file stays.
            StoreUnavailable: a file cannot be read or written.
        """
        for label, name in (("user", user), ("tenant", tenant)):
            if name is not None:
                require_name(label, name)
        daily = self._require_daily()
        await daily.check_layout()
        if user is not None:
            return (await daily.consolidate(Owner(tenant or DEFAULT_TENANT, user)),)
        owners = [owner for owner in await daily.owners() if tenant in (None, owner.tenant)]
        return tuple([await daily.consolidate(owner) for owner in owners])

    def _require_daily(self) -> DailyNotes:
        self._runtime.check_open()
        self._runtime.check_writable()
        if self._runtime.daily is None:
            raise InvalidPolicy(
                "daily_directory is not set, so there are no daily notes: set it in a settings file, by "
                'REMANENCE_DAILY_DIRECTORY, or with Settings(daily_directory="notes")'
            )
        return self._runtime.daily


class Opening(Generic[T_co]):
    """A memory that is about to be opened: enter it with `async with`, or await it."""

    def __init__(self, opened: Callable[[], Awaitable[T_co]]) -> None:
        self._open = opened
        self._memory: T_co | None = None

    def __await__(self) -> Generator[Any, None, T_co]:  # the yield and send types are asyncio's
        return self._open().__await__()

    async def __aenter__(self) -> T_co:
        self._memory = await self._open()
        return self._memory

    async def __aexit__(self, *_: object) -> None:
        if self._memory is not None:
            await self._memory.close()

    def __enter__(self) -> NoReturn:
        raise NotOpen(
            "with Memory.open(...) opens nothing: write async with Memory.open(...) as memory; "
            "without async use remanence.blocking.Memory"
        )

    def __exit__(self, *_: object) -> None: ...

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise NotOpen(
                f"Memory.open(...) has no {name!r} before it is open: write async with "
                "Memory.open(...) as memory, or memory = await Memory.open(...)"
            )


def _require_asyncio() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError as error:
        raise NotOpen(
            "Memory.open(...) needs an event loop of asyncio: run the program with asyncio.run(...), "
            "or call remanence.blocking.Memory in a thread, as under trio"
        ) from error


def _require_parts(
    clock: object,
    model_options: ModelOptions | None,
    budgets: Sequence[Budget] | None,
    hooks: Hooks | None,
) -> None:
    methods = (getattr(clock, name, None) for name in ("now", "new_id"))
    is_plain = all(callable(method) and not is_async(method) for method in methods)
    if isinstance(clock, type) or not is_plain:
        raise InvalidArgument(
            f"clock={clock!r:.80} is impossible: use a Clock with the sync methods now() and "
            "new_id(kind), such as remanence.clock.SystemClock()"
        )
    require_one_of(ModelOptions, model_options=model_options, optional=True)
    require_one_of(Hooks, hooks=hooks, optional=True)
    if not isinstance(budgets, list | tuple | None):
        raise InvalidArgument(f"budgets={budgets!r:.80} is impossible: use a list of Budget(...)")
    for budget in budgets or ():
        require_one_of(Budget, budget=budget)


def _require_fact_vectors(vectors: object) -> None:
    if vectors is None:
        return
    require_object(vectors)
    if not isinstance(vectors, FactVectors):
        raise InvalidArgument(
            f"fact_vectors={vectors!r:.80} is impossible: use an object with async def put, nearest "
            "and forget, such as remanence.recall.qdrant.QdrantFactVectors(client)"
        )
    require_async_methods("fact_vectors", vectors, "put", "nearest", "forget")


def _read_settings(source: Settings | Path | str | None) -> Settings:
    if source is None or isinstance(source, Settings):
        return source or Settings()
    if not isinstance(source, str | Path):
        raise InvalidPolicy(
            f"settings={source!r} is not a Settings object: use Settings(...) or a file's path"
        )
    # Reading files needs pydantic, which is slow to import.
    sources = importlib.import_module("remanence.settings.sources")
    loaded = sources.load_settings(arguments={}, file=expand_home(str(source)))
    settings: Settings = loaded.settings
    return settings
