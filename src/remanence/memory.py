"""The facade: a memory, and the conversations it keeps."""

import asyncio
import contextlib
import dataclasses
import difflib
import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Self

from remanence import telemetry
from remanence.blocks import BlockStore
from remanence.clock import Clock, SystemClock
from remanence.config import Settings
from remanence.config.sources import load_settings
from remanence.daily import Consolidation, DailyNotes
from remanence.engine.budgets import Budgets
from remanence.engine.embedding import Embedding
from remanence.engine.hooks import NO_HOOKS, Hooks
from remanence.engine.ledger import Ledger
from remanence.engine.live_prompts import LivePrompts
from remanence.engine.local import LocalEngine
from remanence.engine.makers import Makers
from remanence.engine.recalling import Recalling
from remanence.engine.reconcile import Reconciler
from remanence.engine.remembering import shown_facts
from remanence.errors import Closed, ConversationNotFound, InvalidMessage, InvalidPolicy
from remanence.exchange import ImportReport, export_segments, import_blocks
from remanence.facts import Facts
from remanence.files import safe_name
from remanence.models import ModelOptions, ModelSource
from remanence.models.embedding import EmbedderSource, open_embedder
from remanence.observing.asked import AskedModels
from remanence.observing.assembly import ContextRequest, build_context, plain_context
from remanence.observing.context import Context
from remanence.observing.diagnosis import diagnose, diagnose_budget
from remanence.observing.facts.rendering import memories_text
from remanence.observing.history import snapshot_at, state_at
from remanence.observing.policy import Policy
from remanence.observing.recall import within
from remanence.observing.schedule import observation_due
from remanence.protocols import Embedder, FactExtractor, FactVectors, Observer, Reflector, Store
from remanence.stores import open_store
from remanence.tokens import TokenCounter, counter_for
from remanence.types import (
    Budget,
    BudgetState,
    ConversationRef,
    Diagnostics,
    Hit,
    LogEntry,
    MemoryState,
    Message,
    ObservationLog,
    Owner,
    Priority,
    Problem,
    RecallFilter,
    Role,
    Segment,
    Snapshot,
    Tag,
    TextPart,
    UsageTotal,
    check_message,
)

LONG_TEXT = 50_000
"""Characters from which counting tokens leaves the event loop."""

STAND_IN_SOURCE_TOKENS = 8_000
"""Tokens before an overfull tail that are read for its stand-in."""

RECALLED = 5
DEFAULT_TENANT = "default"
TRIED_ONCE = ModelOptions(attempts=1)
CHECK_PAGE = 200


class Memory:
    """A durable memory for conversations; open it with `async with Memory.open(url)`.

    Belongs to the event loop that opened it. What is passed in is not closed by it.
    """

    def __init__(
        self,
        *,
        store: Store,
        policy: Policy,
        observer: Observer,
        reflector: Reflector,
        extractor: FactExtractor,
        embedder: Embedder | None,
        fact_vectors: FactVectors | None,
        clock: Clock,
        settings: Settings,
        ledger: Ledger,
        budgets: Budgets,
        hooks: Hooks,
    ) -> None:
        """Use `Memory.open`, which closes what it opens."""
        self.policy = policy
        self.clock = clock
        self._store = store
        self._ledger = ledger
        self._budgets = budgets
        self._live_prompts = LivePrompts()
        self._clock = clock
        self._counter: TokenCounter = counter_for(policy.token_counter or policy.model)
        self._count_text = functools.lru_cache(maxsize=256)(self._counter.text)
        self._reconciler = Reconciler(
            store=store,
            policy=policy,
            observer=observer,
            reflector=reflector,
            extractor=extractor,
            clock=clock,
            count_text=self._counter.text,
            owner=clock.new_id("owner"),
            lease_seconds=settings.lease_seconds,
            hooks=hooks,
            live_prompt=self._live_prompts.newest,
        )
        self._fact_vectors = fact_vectors
        self._recalling = Recalling(
            store=store, embedder=embedder, policy=policy, fact_vectors=fact_vectors
        )
        self._embedding = Embedding(store, embedder, policy, fact_vectors) if embedder else None
        self._engine = LocalEngine(
            self._reconciler, workers=settings.workers, progressed=self._changed
        )
        self._settings = settings
        self._closed = False
        self.facts = Facts(
            store=store,
            clock=clock,
            search=self._recalling.facts,
            changed=self._changed,
            vectors=fact_vectors,
            check_open=self._check_open,
        )
        self._daily = self._daily_notes(reflector)
        self._asked = AskedModels()

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
        policy = policy or policy_of(settings)
        clock = clock or SystemClock()
        async with AsyncExitStack() as stack:
            store = await open_store(
                url or settings.url, clock=clock, durability=settings.durability
            )
            stack.push_async_callback(store.close)
            ledger = Ledger(store)
            spending = Budgets(
                settings.budgets if budgets is None else budgets, ledger=ledger, clock=clock
            )
            makers = Makers(
                policy=policy,
                clock=clock,
                record=ledger.record,
                options=model_options or TRIED_ONCE,
                budgets=spending,
                over_budget=settings.over_budget,
            )
            memory = cls(
                store=store,
                policy=policy,
                observer=await makers.observer(
                    observer or settings.observer_model or model or settings.model
                ),
                reflector=await makers.reflector(
                    reflector or settings.reflector_model or model or settings.model
                ),
                extractor=await makers.extractor(extractor or model or settings.model),
                embedder=open_embedder(embedder) if embedder is not None else None,
                fact_vectors=fact_vectors,
                clock=clock,
                settings=settings,
                ledger=ledger,
                budgets=spending,
                hooks=hooks or NO_HOOKS,
            )
            ledger.start()
            memory._engine.start()
            if memory._embedding is not None:
                memory._embedding.start()
            stack.push_async_callback(memory._stop)
            if memory._daily is not None and settings.workers:
                await stack.enter_async_context(_running(memory._daily.keep_up()))
            yield memory

    def conversation(
        self,
        id: str,  # noqa: A002 - pinned
        *,
        user: str | None = None,
        tenant: str = "default",
    ) -> "Conversation":
        """The conversation named *id* of a tenant; it comes to be with its first message."""
        for name, value in (("id", id), ("tenant", tenant)):
            if not value or not value.isprintable():
                raise InvalidMessage(f"conversation {name} {value!r} is not a name: use plain text")
        return Conversation(self, ConversationRef(tenant, id), user)

    async def conversations(
        self,
        *,
        tenant: str | None = None,
        after: ConversationRef | None = None,
        limit: int = 100,
    ) -> tuple[MemoryState, ...]:
        """The states of up to *limit* conversations by (tenant, id), for paging with *after*."""
        self._check_open()
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
        self._check_open()
        if conversation is None:
            return await self._ledger.usage(tenant=tenant, user=user, since=since)
        ref = ConversationRef(tenant or "default", conversation)
        return await self._ledger.usage(conversation=ref, user=user, since=since)

    async def check(self) -> tuple[Problem, ...]:
        """What is inconsistent, failing, stuck or overdue, and how to mend it."""
        self._check_open()
        problems = list(await self._store.check())
        after: ConversationRef | None = None
        while page := await self._store.conversations(after=after, limit=CHECK_PAGE):
            for state in page:
                problems += diagnose(self.policy, state, now=self._clock.now())
                for budget in await self._budgets.states(state.ref, state.user):
                    problems += diagnose_budget(state.ref, budget)
            after = page[-1].ref
        return tuple(problems)

    def _blocks(self, tenant: str) -> BlockStore | None:
        """Where notes of a tenant are exported to when a conversation ends."""
        settings = self._settings
        if settings.blocks_directory is None:
            return None
        directory = Path(settings.blocks_directory).expanduser()
        if tenant != DEFAULT_TENANT:
            directory /= safe_name(tenant)
        return BlockStore(directory, keep_last=settings.blocks_keep_last)

    def _built(self, snapshot: Snapshot, request: ContextRequest) -> Context:
        return build_context(
            snapshot,
            request,
            self.policy,
            count_text=self._count_text,
            count_message=self._counter.message,
        )

    def _changed(self) -> None:
        """Have vectors made of what is new."""
        if self._embedding is not None:
            self._embedding.signal()

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

    def _daily_notes(self, reflector: Reflector) -> DailyNotes | None:
        if self._settings.daily_directory is None:
            return None
        return DailyNotes(
            directory=Path(self._settings.daily_directory).expanduser(),
            keep_days=self._settings.daily_keep_days,
            reflector=reflector,
            policy=self.policy,
            count_text=self._counter.text,
            clock=self._clock,
        )

    def _require_daily(self) -> DailyNotes:
        self._check_open()
        if self._daily is None:
            raise InvalidPolicy(
                "daily_directory=None has no daily notes: set it to a directory of yours"
            )
        return self._daily

    async def _stop(self) -> None:
        self._closed = True
        seconds = self._settings.shutdown_timeout_seconds
        await self._engine.close(timeout_seconds=seconds)
        if self._embedding is not None:
            await self._embedding.close()
        await self._ledger.close(timeout_seconds=seconds)

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("the memory is closed: open it again with Memory.open(...)")


class Conversation:
    """One conversation of a memory. Cheap to make; holds no messages itself."""

    def __init__(self, memory: Memory, ref: ConversationRef, user: str | None) -> None:
        self._memory = memory
        self._store = memory._store
        self._engine = memory._engine
        self._user = user
        self.user = user
        self.clock = memory.clock
        self.ref = ref

    @property
    def id(self) -> str:
        """The conversation's id."""
        return self.ref.id

    @property
    def facts(self) -> Facts:
        """The facts of all users of this memory."""
        return self._memory.facts

    async def owner(self) -> Owner | None:
        """Whose facts this conversation knows: those of the user whom its tape names."""
        return self._owner(await self.state())

    async def append(self, *messages: Message) -> tuple[Message, ...]:
        """Put messages at the end of the tape, all or none; durable when it returns.

        They come back with seq, id, created_at and tokens. Never waits for a model.

        Raises:
            InvalidMessage: a message is empty, too large, not Unicode, or answers no tool call.
            DuplicateMessage: an id is taken by another message.
            StoreError: the database refused. In each case nothing was written.
        """
        self._memory._check_open()
        if not messages:
            return ()
        for message in messages:
            check_message(message, max_bytes=self._memory.policy.max_message_bytes)
        counted = [await self._counted(message) for message in messages]
        appended = await self._store.append(self.ref, counted, user=self._user)
        telemetry.messages_appended(len(messages))
        if observation_due(self._memory.policy, appended.state):
            self._engine.signal(self.ref)
        return appended.messages

    async def context(
        self,
        *,
        system: str = "",
        identity: str = "",
        knowledge: Sequence[str] = (),
        recall: str | None = None,
        channel: str | None = None,
        now: datetime | None = None,
        model: str | None = None,
    ) -> Context:
        """What the model should see now. Never waits for a model, unless `block_after` is set.

        Args:
            system: the base system prompt.
            identity: who the assistant is, in a block of its own before *system*.
            knowledge: stable texts that follow it.
            recall: a query; what it finds goes to the volatile block.
            channel: where the user writes from, for the volatile block; `web` needs no hint.
            now: the time that the volatile block tells, by default the clock's.
            model: which one is asked; where it is another than before, no prompt cache is lost, so
                notes that are ready are used.

        Raises:
            ContextOverflow: the system text leaves no room for messages.
        """
        memory = self._memory
        memory._check_open()
        now = now or memory._clock.now()
        request = ContextRequest(
            now=now,
            system=system,
            identity=identity,
            knowledge=tuple(knowledge),
            recall=await self._recalled(recall),
            channel=channel,
        )
        if not memory.policy.enabled:
            messages = await self.messages()
            return plain_context(messages, request, count_text=memory._count_text)
        snapshot = await self._current(now, model_changed=memory._asked.changed(self.ref, model))
        context = memory._built(snapshot, await self._with_facts(request, snapshot, recall))
        if memory.policy.observer_mode == "continuation":
            memory._live_prompts.keep(self.ref, context)
        hidden = sum(gap.last_seq - gap.first_seq + 1 for gap in context.omitted)
        telemetry.context_built(
            snapshot.state, context, tokens=context.stats.context_tokens, omitted=hidden
        )
        return context

    async def messages(self, *, after: int = 0, limit: int | None = None) -> tuple[Message, ...]:
        """Messages with a seq above *after*, in order, at most *limit*."""
        self._memory._check_open()
        return await self._store.messages(self.ref, after=after, limit=limit)

    async def observations(self) -> tuple[Segment, ...]:
        """The live observations, oldest first; those after `active_seq` are kept ready."""
        return tuple(s for s in await self._segments() if s.generation == 0)

    async def reflections(self) -> tuple[Segment, ...]:
        """The live reflections, oldest first."""
        return tuple(s for s in await self._segments() if s.generation > 0)

    async def state(self) -> MemoryState:
        """The cursors, token accounts and failures; all zero before the first message."""
        self._memory._check_open()
        state = await self._store.state(self.ref)
        return state or MemoryState(
            ref=self.ref, key=0, user=self._user, created_at=self._memory._clock.now()
        )

    async def snapshot(self, version: int | None = None) -> Snapshot:
        """State, live segments and raw tail as of one instant, for looking at the whole.

        Args:
            version: a version of the log, to see what it was until the next change came; 0 is
                the time before the first one. By default now.

        Raises:
            ConversationNotFound: there is no such version.
        """
        self._memory._check_open()
        if version is None:
            return await self._snapshot()
        state = state_at(await self.state(), await self._store.log(self.ref), version)
        first, last = state.tail_seq, state.last_seq
        tail = await self._store.messages(self.ref, after=first - 1, limit=last - first + 1)
        return snapshot_at(state, await self._store.segments(self.ref, live=False), tail)

    async def context_at(
        self, version: int, *, system: str = "", knowledge: Sequence[str] = ()
    ) -> Context:
        """What the model saw of this conversation while *version* of the log was the newest.

        The raw tail goes as far as the tape did when the next version came. The time that it tells
        is that of its newest message; nothing is recalled or changed.

        Raises:
            ConversationNotFound: there is no such version.
            ContextOverflow: the system text leaves no room for messages.
        """
        memory = self._memory
        snapshot = await self.snapshot(version)
        now = snapshot.state.last_message_at or memory._clock.now()
        request = ContextRequest(now=now, system=system, knowledge=tuple(knowledge))
        return memory._built(snapshot, request)

    async def diagnostics(self) -> Diagnostics:
        """The memory in a few numbers: state, size and version of its notes."""
        self._memory._check_open()
        state = await self._store.state(self.ref)
        segments = await self._store.segments(self.ref, live=False)
        observations = [segment for segment in segments if segment.generation == 0]
        seq = state.observed_seq if state else 0
        newest = await self._store.messages(self.ref, after=seq - 1, limit=1) if seq else ()
        return Diagnostics(
            memory_state=state,
            observed_message_id=newest[0].id if newest else None,
            observation_log=_observation_log([segment for segment in segments if segment.live]),
            observation_count=len(observations),
            total_observation_tokens=sum(segment.tokens for segment in observations),
        )

    async def log(self, version: int | None = None) -> tuple[LogEntry, ...]:
        """Every committed change of this memory, oldest first, up to *version*."""
        self._memory._check_open()
        entries = await self._store.log(self.ref)
        return tuple(entry for entry in entries if version is None or entry.version <= version)

    async def recall(
        self,
        query: str,
        *,
        limit: int = 5,
        max_tokens: int | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        tag: Tag | None = None,
        priority: Priority | None = None,
        role: Role | None = None,
        conversation: str | None = None,
    ) -> tuple[Hit, ...]:
        """Notes, raw messages and facts of the user that match *query*, best first, with sources.

        Args:
            query: words, or with an embedder also what means the same.
            limit: the most hits.
            max_tokens: the most tokens of all snippets together.
            since: only what was said or held at this time or later.
            until: only what was said or held before this time.
            tag: only notes of this tag.
            priority: only notes of this priority.
            role: only messages of this role.
            conversation: search another conversation of the same user instead of this one.

        Raises:
            ConversationNotFound: this user has no such conversation.
        """
        self._memory._check_open()
        ref, owner = await self._searched(conversation)
        hits = await self._memory._recalling.search(
            ref,
            owner,
            query,
            limit=limit,
            only=RecallFilter(since=since, until=until, tag=tag, priority=priority, role=role),
            source=conversation,
        )
        return within(hits, max_tokens, self._memory._count_text)

    async def source(
        self,
        segment_id: str,
        *,
        after: int = 0,
        limit: int | None = None,
        max_tokens: int | None = None,
    ) -> tuple[Message, ...]:
        """The messages that a segment stands for: those after the seq *after*, for paging.

        Raises:
            ConversationNotFound: this conversation has no such segment.
        """
        self._memory._check_open()
        segment = await self._store.segment(self.ref, segment_id)
        if segment is None:
            raise ConversationNotFound(
                f"conversation {self.id!r} has no segment {segment_id!r}: list observations() and "
                "reflections()"
            )
        start = max(after, segment.first_seq - 1)
        length = max(0, segment.last_seq - start)
        if limit is not None:
            length = min(length, limit)
        if length < 1:
            return ()
        return await self._store.messages(
            self.ref, after=start, limit=length, max_tokens=max_tokens
        )

    async def flush(self, *, everything: bool = False) -> MemoryState:
        """Wait until no background work is due, or what is due waits after a failure.

        Args:
            everything: do also what is not due yet: observe all messages, and keep facts.
        """
        self._memory._check_open()
        await self._engine.settle(self.ref, everything=everything)
        if self._memory._embedding is not None:
            await self._memory._embedding.settle()
        return await self.state()

    async def end(self) -> MemoryState:
        """Close the conversation's accounts; it may still go on.

        All of it is observed, and facts about its user are kept for later conversations. With the
        setting `blocks_directory` its notes are exported there too, and pruned.
        """
        state = await self.flush(everything=True)
        if (blocks := self._memory._blocks(self.ref.tenant)) is not None:
            await self.export_blocks(blocks)
            await blocks.prune(self.id)
        return state

    async def export_blocks(self, store: BlockStore) -> int:
        """Append the live segments that *store* does not hold yet, and say how many those were.

        Raises:
            StoreUnavailable: a file cannot be written.
        """
        return await export_segments(store, self.id, await self._segments())

    async def import_blocks(self, store: BlockStore) -> ImportReport:
        """Make observations of the blocks of this conversation whose messages are on the tape.

        Nothing that is observed already is replaced; the report says what was left out and why.

        Raises:
            StoreUnavailable: a file cannot be read.
        """
        self._memory._check_open()
        return await import_blocks(store, self.ref, self._memory._reconciler)

    async def usage(self) -> tuple[UsageTotal, ...]:
        """What the model calls of this conversation took, by purpose and model."""
        return await self._memory.usage(tenant=self.ref.tenant, conversation=self.id)

    async def budget(self) -> tuple[BudgetState, ...]:
        """How much is spent of each budget that this conversation draws on."""
        user = (await self.state()).user
        return await self._memory._budgets.states(self.ref, user or self._user)

    async def delete(self) -> bool:
        """Erase messages, notes, log, facts and exported blocks, also of work in progress.

        Its model calls stay in the ledger, under their user, and no longer name it. Returns false
        if there is no such conversation.
        """
        self._memory._check_open()
        self._memory._live_prompts.forget(self.ref)
        owner, vectors = await self.owner(), self._memory._fact_vectors
        mine: list[str] = []
        if vectors is not None and owner is not None:
            facts = await self._store.facts(owner, history=True)
            mine = [fact.id for fact in facts if fact.conversation == self.id]
        deleted = await self._store.delete(self.ref)
        if vectors is not None and owner is not None and deleted:
            await vectors.forget(owner, mine)
        if (blocks := self._memory._blocks(self.ref.tenant)) is not None:
            await blocks.delete(self.id)
        return deleted

    async def _counted(self, message: Message) -> Message:
        count = self._memory._counter.message
        size = sum(len(part.text) for part in message.content if isinstance(part, TextPart))
        tokens = await asyncio.to_thread(count, message) if size > LONG_TEXT else count(message)
        return message.replace(tokens=tokens)

    async def _current(self, now: datetime, *, model_changed: bool) -> Snapshot:
        """A snapshot with what is ready activated, after a bounded wait where one is asked for."""
        policy = self._memory.policy
        snapshot = await self._snapshot()
        if policy.block_after is not None:
            limit = policy.block_after * policy.tail_tokens
            if snapshot.state.inactive_tokens > limit:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(policy.sync_timeout_seconds):
                        await self._engine.settle(self.ref)
                snapshot = await self._snapshot()
        if await self._memory._reconciler.activate_if_due(
            snapshot, now=now, model_changed=model_changed
        ):
            self._engine.signal(self.ref)
            snapshot = await self._snapshot()
        return snapshot

    async def _snapshot(self) -> Snapshot:
        tail_tokens = self._memory.policy.context_tokens + STAND_IN_SOURCE_TOKENS
        snapshot = await self._store.snapshot(self.ref, tail_tokens=tail_tokens)
        return snapshot or Snapshot(state=await self.state(), segments=(), tail=())

    async def _segments(self) -> tuple[Segment, ...]:
        self._memory._check_open()
        return await self._store.segments(self.ref, live=True)

    async def _with_facts(
        self, request: ContextRequest, snapshot: Snapshot, recall: str | None
    ) -> ContextRequest:
        """The request with what is known about the user, where there is one."""
        memory, policy = self._memory, self._memory.policy
        owner = self._owner(snapshot.state)
        if owner is None or not policy.facts_tokens:
            return request
        if policy.facts_place == "prefix":
            text = await shown_facts(
                self._store,
                policy,
                snapshot,
                owner,
                now=request.now,
                count_text=memory._count_text,
            )
            return dataclasses.replace(request, facts=text)
        query = recall or _newest_question(snapshot.tail)
        found = await memory._recalling.facts(owner, query, RECALLED)
        text = memories_text(found, max_tokens=policy.facts_budget, count_text=memory._count_text)
        return dataclasses.replace(request, memories=text)

    def _owner(self, state: MemoryState) -> Owner | None:
        """Whose facts this conversation may see: those of the user that its tape names."""
        user = state.user if state.key else self._user
        return Owner(self.ref.tenant, user) if user else None

    async def _searched(self, conversation: str | None) -> tuple[ConversationRef, Owner | None]:
        """What a recall looks through: this conversation or another one, and the user's facts."""
        owner = await self.owner()
        if conversation is None or conversation == self.id:
            return self.ref, owner
        ref = ConversationRef(self.ref.tenant, conversation)
        other = await self._store.state(ref)
        if owner is None or other is None or other.user != owner.user:
            raise ConversationNotFound(
                f"the user of {self.id!r} has no conversation {conversation!r}: recall names "
                "another conversation of the same user"
            )
        return ref, owner

    async def _recalled(self, query: str | None) -> tuple[str, ...]:
        """What a query finds, as lines of the volatile block."""
        if not query:
            return ()
        hits = await self.recall(query, limit=2 * RECALLED)
        # A fact, a note and the message that both come from say the same: the best of them is shown.
        said = {(hit.conversation, hit.first_seq or hit.source_id): hit for hit in reversed(hits)}
        shown = [hit for hit in hits if hit in said.values()][:RECALLED]
        return tuple(f"{hit.snippet} ({_place(hit)})" for hit in shown)


def _settings(source: Settings | Path | str | None) -> Settings:
    if source is None or isinstance(source, Settings):
        return source or Settings()
    file = Path(source)
    return load_settings(Policy, arguments={}, directory=file.parent, file=file).settings


def _observation_log(live: Sequence[Segment]) -> ObservationLog | None:
    if not live:
        return None
    return ObservationLog(
        version=max(segment.version for segment in live),
        token_count=sum(segment.tokens for segment in live),
        text_length=sum(len(segment.text) for segment in live),
    )


def _place(hit: Hit) -> str:
    """Where a hit is from, in a few words."""
    return f"fact {hit.source_id}" if hit.kind == "fact" else f"message {hit.first_seq}"


def _newest_question(tail: Sequence[Message]) -> str:
    """What the user said last."""
    return next((m.text for m in reversed(tail) if m.role == "user" and m.text.strip()), "")


@asynccontextmanager
async def _running(work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Do *work* beside the body, and end it with it."""
    task = asyncio.create_task(work, name="remanence-daily")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


def policy_of(settings: Settings) -> Policy:
    """The policy that *settings* describe: a preset and changes of it.

    Raises:
        InvalidPolicy: a field is unknown, or its value contradicts the others.
    """
    known = {field.name for field in dataclasses.fields(Policy)}
    for name in settings.policy:
        if name not in known:
            nearest = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {nearest[0]!r}?" if nearest else f"known are {sorted(known)}"
            raise InvalidPolicy(f"policy.{name} is unknown: {hint}")
    make: Callable[..., Policy] = getattr(Policy, settings.preset)
    return make(**settings.policy)
