"""One conversation: its tape, its notes, and its contexts."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from itertools import takewhile
from typing import Final, Self

from remanence import telemetry
from remanence.archive.blocks import BlockStore, Tier
from remanence.archive.exchange import ImportReport, export_segments, import_blocks
from remanence.arguments import (
    require_count,
    require_moment,
    require_name,
    require_one_of,
    require_text,
    require_texts,
    require_unicode,
    require_words,
)
from remanence.catalog import chain_links
from remanence.context.context import Context
from remanence.context.history import snapshot_at, state_at
from remanence.context.layout import ContextRequest
from remanence.context_reader import ContextReader
from remanence.costs.ledger import require_usage
from remanence.errors import (
    ConversationErased,
    ConversationGrown,
    ConversationNotFound,
    InvalidArgument,
    InvalidMessage,
    StoreError,
)
from remanence.facts.api import Facts
from remanence.facts.known import TRIES
from remanence.forgetting import (
    conversations_of,
    delete_conversation,
    find_mentions,
    finish_forgetting,
    forget_messages,
)
from remanence.pacing import FOREGROUND, Pacer
from remanence.policy.policy import Policy
from remanence.policy.schedule import observation_due
from remanence.recall.snippets import within
from remanence.runtime import Runtime
from remanence.types import (
    BudgetState,
    ConversationRef,
    Diagnostics,
    FactChanges,
    Hit,
    HitKind,
    LogEntry,
    MemoryState,
    Message,
    ObservationLog,
    Owner,
    Priority,
    RecallFilter,
    Receipt,
    Role,
    Segment,
    Snapshot,
    Tag,
    TapeVersion,
    Usage,
    UsageTotal,
    check_parts,
    measure_messages,
)
from remanence.wire.nameless_calls import OpenCalls, has_nameless

LOG_SEPARATOR = "\n\n---\n\n"
"""Separates the segments of an observation log, as in the view `observation_log`."""

ROUND: Final = 100
"""Number of newest messages searched for the tool calls of the turn in progress."""

CANDIDATES: Final = 20
"""Number of recall hits offered as candidates for `forget`."""

LONG_MESSAGE = 20_000
"""Bytes from which parts are checked and tokens counted in a thread, off the event loop."""


def require_conversation(value: object) -> None:
    """Raise `InvalidArgument` unless *value* is a `Conversation` other than that of `blocking`."""
    if not isinstance(value, Conversation):
        raise InvalidArgument(
            f"conversation is a {type(value).__module__}.{type(value).__qualname__}: use "
            "memory.conversation(...) of remanence.Memory, in a coroutine"
        )


def runtime_of(conversation: "Conversation") -> Runtime:
    """Return the parts of a conversation's memory, which its chats share."""
    return conversation._runtime


class Conversation:
    """A handle of one conversation; cheap to create, as it holds no messages.

    Its asynchronous methods raise `WrongUser` if the conversation belongs to another user, except
    `record_call`, which does not read it.
    """

    def __init__(
        self,
        runtime: Runtime,
        ref: ConversationRef,
        user: str | None,
        timezone: tzinfo | None = None,
    ) -> None:
        """Use `memory.conversation`."""
        self._runtime = runtime
        self._store = runtime.store
        self._timezone = timezone
        self.ref: ConversationRef = ref
        self.user: str | None = user
        self._reader = ContextReader(runtime=runtime, ref=ref, user=user, timezone=timezone)
        self._clock = runtime.clock

    def __repr__(self) -> str:
        user = "no user" if self.user is None else f"user {self.user!r}"
        tenant = "" if self.ref.tenant == "default" else f" in tenant {self.ref.tenant!r}"
        return f"<Conversation {self.id!r} of {user}{tenant}>"

    @property
    def id(self) -> str:
        """The conversation's id."""
        return self.ref.id

    @property
    def policy(self) -> Policy:
        """The policy of its memory."""
        return self._runtime.policy

    @property
    def facts(self) -> Facts:
        """The facts of all users of this memory."""
        return self._runtime.facts

    async def owner(self) -> Owner | None:
        """Return the owner of this conversation's facts: its tenant and user."""
        return (await self.state()).owner

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[str]:
        """Hold the conversation's turn, so that other turns wait, in this process and in others.

        Yields an id of the turn for `append`. For your own agent loop; a `Chat` does this by itself.

        Raises:
            TurnTaken: another turn did not end within the setting `turn_wait_seconds`, or it
                waits for this call, as of a tool or in the block of the turn.
            WrongUser: the conversation belongs to another user.
        """
        await self._require_ours()
        async with self._runtime.turns.hold(self.ref) as turn:
            yield turn

    async def append(
        self,
        *messages: Message,
        turn: str | None = None,
        after: MemoryState | None = None,
        as_one: bool = False,
    ) -> tuple[Message, ...]:
        """Append messages to the tape, all or none; they are durable when this returns.

        Returns the messages with seq, id, created_at and tokens. Never waits for a model. Calls of one
        process for one conversation are written in the order in which they begin to run. A message
        whose id is already on the tape with equal content is not written again: the stored one is
        returned, or the tombstone if it was forgotten.

        Args:
            messages: the messages to append.
            turn: the turn they belong to; fails if the turn was lost.
            after: the state they were based on; fails if another process appended since then, or
                the conversation was deleted or erased from.
            as_one: fail if only some of the messages are already on the tape.

        Raises:
            InvalidMessage: a message is empty, too large, not Unicode, or answers no tool call.
            DuplicateMessage: an id is taken by another message.
            TurnTaken: *turn* was lost: the conversation was deleted, or another process took over.
            ConversationErased: messages were deleted or forgotten since the state *after*.
            ConversationGrown: the tape does not end where the state *after* does.
            WrongUser: the conversation belongs to another user.
            StoreError: the database failed. After any of these errors, nothing was written.
        """
        self._runtime.check_open()
        require_text(turn=turn, optional=True)
        require_one_of(MemoryState, after=after, optional=True)
        require_one_of(bool, as_one=as_one)
        if not messages:
            return ()
        max_bytes = self._runtime.policy.max_message_bytes
        sizes = measure_messages(messages, max_bytes=max_bytes)
        lock = self._runtime.appending.setdefault(self.ref, asyncio.Lock())
        async with lock:
            if sum(sizes) > LONG_MESSAGE:  # a part may have a million values
                await asyncio.to_thread(check_parts, messages)
            else:
                check_parts(messages)
            with FOREGROUND:
                paired = await self._pair_results(self._in_timezone(messages))
                counted = await self._count_tokens(paired, sizes)
                appended = await self._store.append(
                    self.ref,
                    counted,
                    user=self.user,
                    turn=turn,
                    any_user=self.user is None and self._runtime.all_users,
                    after=after,
                    as_one=as_one,
                )
        telemetry.messages_appended(len(messages))
        look_at = appended.state.look_at
        planned = look_at is not None and look_at <= self._clock.now()
        if planned or observation_due(self._runtime.policy, appended.state):
            self._runtime.engine.signal(self.ref)
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
        """Return the context for the next model call; waits for a model only with `block_after`.

        Args:
            system: the base system prompt.
            identity: who the assistant is, as a block before *system*.
            knowledge: stable texts, as blocks after *system*.
            recall: a query, or the user's whole message. Matching passages of earlier messages and
                facts go to the volatile block, up to `Policy.recall_tokens`, unless the context
                shows them anyway.
            channel: where the user writes from, for the volatile block; `web` needs no hint.
            now: the time in the volatile block, with `Policy.show_clock`. By default the clock's, shown
                only beside notes or after a pause of an hour.
            model: the model that will be called. Its window bounds the context, if the model is
                known. A change of model activates ready notes, as there is no prompt cache to lose.

        Raises:
            ContextOverflow: the system text leaves no room for messages, or the newest message
                cannot be shortened enough.
            WrongUser: the conversation belongs to another user.
            InvalidArgument: an argument has a wrong type, or is not Unicode (NUL, lone surrogates).
        """
        self._runtime.check_open()
        require_text(system=system, identity=identity)
        require_texts(knowledge=knowledge)
        require_text(recall=recall, channel=channel, model=model, optional=True)
        require_unicode(
            system=system, identity=identity, knowledge=knowledge, recall=recall, channel=channel
        )
        require_moment(now=now)
        request = ContextRequest(
            now=now or self._clock.now(),
            timezone=self._timezone,
            states_time=now is not None,
            system=system,
            identity=identity,
            knowledge=tuple(knowledge),
            channel=channel,
            token_factor=self._runtime.calibrator.window_factor(
                chain_links(model) if model else ()
            ),
            max_tokens=self.policy.context_tokens_for(model),
        )
        return await self._reader.current(request, query=recall, model=model)

    async def messages(self, *, after: int = 0, limit: int | None = None) -> tuple[Message, ...]:
        """Return up to *limit* messages with a seq above *after*, in order; by default all."""
        require_count(after=max(after, 0) if isinstance(after, int) else after)
        require_count(limit=limit, optional=True)
        await self._require_ours()
        return await self._store.messages(self.ref, after=after, limit=limit)

    async def observations(
        self, *, after: int = 0, limit: int | None = None
    ) -> tuple[Segment, ...]:
        """Return the live observations, oldest first; those after `active_seq` are not active yet.

        For the next page, pass the `last_seq` of the last observation as *after*.
        """
        segments = await self._segments(after, limit)
        return tuple(s for s in segments if s.generation == 0)[:limit]

    async def reflections(self, *, after: int = 0, limit: int | None = None) -> tuple[Segment, ...]:
        """Return the live reflections, oldest first; *after* as for `observations`."""
        segments = await self._segments(after, limit)
        return tuple(s for s in segments if s.generation > 0)[:limit]

    async def state(self) -> MemoryState:
        """Return the cursors, token accounts and failures; all zero before the first message."""
        self._runtime.check_open()
        return await self._reader.state()

    async def snapshot(self, version: int | None = None) -> Snapshot:
        """Return a consistent snapshot of state, live segments and raw tail, for inspection.

        Args:
            version: a past version in the log, as it was until the next change; 0 is before the
                first change. By default the present, whose tail has the newest messages that fit a
                context.

        Raises:
            ConversationNotFound: there is no such version, or its segments were deleted.
        """
        self._runtime.check_open()
        require_count(version=version, optional=True)
        present = await self._reader.snapshot()
        if version in (None, present.state.lock_version):
            return present
        state = state_at(present.state, await self._store.log(self.ref), version)
        first, last = state.tail_seq, state.last_seq
        tail = await self._store.messages(self.ref, after=first - 1, limit=last - first + 1)
        past = snapshot_at(state, await self._store.segments(self.ref, live=False), tail)
        return replace(past, opening=await self._reader.opening(state))

    async def context_at(
        self, version: int, *, system: str = "", knowledge: Sequence[str] = ()
    ) -> Context:
        """Return the context as it was while *version* was the newest in the log.

        The raw tail ends where the tape ended when the next version was written, and the context's
        time is that of its newest message. Nothing is recalled or changed.

        Raises:
            ConversationNotFound: there is no such version, or its segments were deleted.
            ContextOverflow: the system text leaves no room for messages, or the newest message
                cannot be shortened enough.
        """
        require_count(version=version)
        require_text(system=system)
        require_texts(knowledge=knowledge)
        require_unicode(system=system, knowledge=knowledge)
        snapshot = await self.snapshot(version)
        now = snapshot.state.last_message_at or self._clock.now()
        request = ContextRequest(
            now=now, timezone=self._timezone, system=system, knowledge=tuple(knowledge)
        )
        return await self._reader.render(snapshot, request)

    async def diagnostics(self) -> Diagnostics:
        """Return a summary of this memory: its state, and the size and version of its notes."""
        state = await self.state()
        segments = await self._store.segments(self.ref, live=False)
        observations = [segment for segment in segments if segment.generation == 0]
        seq = state.observed_seq
        newest = await self._store.messages(self.ref, after=seq - 1, limit=1) if seq else ()
        notes = None
        if live := [segment for segment in segments if segment.live]:
            texts = [segment.text for segment in live if segment.text]
            notes = ObservationLog(
                version=max(segment.notes_version for segment in live),
                lock_version=max(segment.version for segment in live),
                token_count=sum(segment.tokens for segment in live),
                text_length=len(LOG_SEPARATOR.join(texts)),
            )
        return Diagnostics(
            memory_state=state if state.key else None,
            observed_message_id=newest[0].id if newest else None,
            observation_log=notes,
            observation_count=len(observations),
            total_observation_tokens=sum(segment.tokens for segment in observations),
        )

    async def log(
        self, version: int | None = None, *, after: int = 0, limit: int | None = None
    ) -> tuple[LogEntry, ...]:
        """Return the committed changes of this memory, oldest first.

        Args:
            version: only changes up to this version.
            after: only changes above this version.
            limit: the maximum number of changes.
        """
        require_count(after=after)
        require_count(version=version, limit=limit, optional=True)
        await self._require_ours()
        entries = await self._store.log(self.ref, after=after, limit=limit)
        return tuple(entry for entry in entries if version is None or entry.version <= version)

    async def recall(
        self,
        query: str,
        *,
        limit: int = 5,
        max_tokens: int | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        kind: HitKind | None = None,
        tag: Tag | None = None,
        priority: Priority | None = None,
        role: Role | None = None,
        conversation: str | None = None,
        unseen: bool = False,
    ) -> tuple[Hit, ...]:
        """Return notes, messages and facts that match *query*, best first, with sources.

        Args:
            query: words to search for, or a question, which also finds facts of its topic; with an
                embedder it also matches by meaning.
            limit: the maximum number of hits.
            max_tokens: the maximum tokens of all snippets together; the best is shortened to fit.
            since: only messages, notes and facts from this time on.
            until: only messages, notes and facts from before this time.
            kind: only notes, messages or facts.
            tag: only notes of this tag.
            priority: only notes of this priority.
            role: only messages of this role.
            conversation: search another conversation of the same user instead of this one.
            unseen: leave out hits from messages that the next prompt shows word for word: those of
                this conversation's last context, and those appended since.

        Raises:
            ConversationNotFound: this user has no such conversation.
            InvalidPolicy: a filter has an impossible value.
            InvalidArgument: the query is blank, or another argument has a wrong type.
        """
        self._runtime.check_open()
        require_words(query=query)
        require_text(conversation=conversation, optional=True)
        require_count(limit=limit)
        require_count(max_tokens=max_tokens, optional=True)
        only = RecallFilter(
            since=since, until=until, kind=kind, tag=tag, priority=priority, role=role
        )
        require_one_of(bool, unseen=unseen)
        ref, owner = await self._search_scope(conversation)
        shown = self._runtime.shown.get(self.ref, ()) if unseen and ref == self.ref else ()
        hits = await self._runtime.recall_search.search(
            ref, owner, query, limit=limit, only=only, source=conversation, shown=shown
        )
        return within(hits, query, max_tokens, self._runtime.count_text)

    async def source(
        self,
        segment_id: str,
        *,
        after: int = 0,
        limit: int | None = None,
        max_tokens: int | None = None,
    ) -> tuple[Message, ...]:
        """Return the messages that a segment covers; for the next page, pass the last seq as *after*.

        Args:
            segment_id: the `id` of an observation or a reflection, also of a replaced one.
            after: only messages with a seq above this.
            limit: the maximum number of messages.
            max_tokens: the maximum tokens of all messages together, of which the first is returned
                in any case.

        Raises:
            ConversationNotFound: this conversation has no such segment.
        """
        require_text(segment_id=segment_id)
        require_count(after=max(after, 0) if isinstance(after, int) else after)
        require_count(limit=limit, max_tokens=max_tokens, optional=True)
        await self._require_ours()
        segment = await self._store.segment(self.ref, segment_id)
        if segment is None:
            raise ConversationNotFound(
                f"conversation {self.id!r} has no segment {segment_id!r:.80}: use the id of a live "
                "segment, or of one from an earlier version"
            )
        start = max(after, segment.first_seq - 1)
        length = segment.last_seq - start
        length = length if limit is None else min(length, limit)
        if length < 1:
            return ()
        return await self._store.messages(
            self.ref, after=start, limit=length, max_tokens=max_tokens
        )

    async def flush(self, *, everything: bool = False, retry: bool = False) -> MemoryState:
        """Wait until no background work is due, apart from steps that wait after a failure.

        Args:
            everything: also do work that is not due yet: observe all messages, extract facts.
            retry: retry failed steps at once, including messages left without notes after too many
                failures, and texts left without a vector. A model is not called during a pause that its provider asked for.

        Raises:
            Closed: the memory was closed meanwhile, or its background work has stopped.
            Deadlock: a hook, or other work on this conversation, called it.
            StoreError: the database failed, or is open read-only.
        """
        require_one_of(bool, everything=everything, retry=retry)
        self._runtime.check_writable()
        await self._require_ours()
        await self._runtime.engine.settle(self.ref, everything=everything, retry=retry)
        if self._runtime.indexer is not None:
            await self._runtime.indexer.settle(retry=retry)
        return await self.state()

    async def end(self) -> MemoryState:
        """Observe all messages, and extract facts about the user for later conversations.

        The conversation may still go on afterwards. With the policy `reflect_at_end`, its notes are
        condensed to one reflection. With the setting `blocks_directory`, its notes are exported to
        that directory and pruned; the reflection also goes to the blocks of all conversations.
        """
        self._runtime.check_writable()
        await self._require_ours()
        await self._runtime.engine.finish(self.ref)
        if self._runtime.indexer is not None:
            await self._runtime.indexer.settle()
        if (blocks := self._runtime.blocks(self.ref.tenant)) is not None:
            await finish_forgetting(self._runtime, self.ref, blocks)
            await self.export_blocks(blocks)
            if self._runtime.policy.reflect_at_end:
                reflections = await self.reflections()
                await self._export(blocks, reflections, tier="cross-session")
            await blocks.prune(self.id)
        return await self.state()

    async def skip_facts(self) -> MemoryState:
        """Extract no facts from the messages now on the tape, such as those of another agent.

        Facts that the extractor commits meanwhile are kept.

        Raises:
            StoreError: the database failed, or the conversation kept changing meanwhile.
        """
        state = await self.state()
        key, last_seq = state.key, state.last_seq
        for _ in range(TRIES):
            if state.key != key or state.facts_seq >= last_seq:  # another one if it was deleted
                return state
            committed = await self._store.commit_facts(
                state, FactChanges(), facts_seq=last_seq, at=self._clock.now()
            )
            if committed is not None:
                return committed
            state = await self.state()
        raise StoreError(f"conversation {self.id!r} changed {TRIES} times meanwhile: try again")

    async def export_blocks(self, store: BlockStore) -> int:
        """Append the live segments that *store* lacks, and return their number.

        Raises:
            StoreUnavailable: a file cannot be written.
        """
        require_one_of(BlockStore, store=store)
        return await self._export(store, await self._segments())

    async def import_blocks(self, store: BlockStore) -> ImportReport:
        """Import this conversation's blocks as observations, if their messages are on the tape.

        Existing observations are not replaced; the report lists the skipped blocks and why.

        Raises:
            StoreUnavailable: a file cannot be read.
        """
        require_one_of(BlockStore, store=store)
        await self._require_ours()
        return await import_blocks(store, self.ref, self._runtime.segment_writer)

    async def record_call(self, usage: Usage, *, estimated_tokens: int | None = None) -> None:
        """Add a model call for this conversation to the ledger; a `Chat` does this by itself.

        Returns at once; the ledger is written in the background. A missing cost is calculated from
        the installed price list. A conversation without messages is not named in the ledger.

        Args:
            usage: the usage that the provider reported; its conversation is this one.
            estimated_tokens: our count of the same request, such as `context.stats.context_tokens`
                for a call without tools; it corrects later counts (`memory.calibration`).
        """
        self._runtime.check_writable()
        require_usage(usage)
        require_count(estimated_tokens=estimated_tokens, optional=True)
        if estimated_tokens is not None:
            self._runtime.calibrator.compare(usage, estimated_tokens)
        mine = replace(usage, conversation=self.ref, user=usage.user or self.user)
        self._runtime.ledger.record(mine)

    async def usage(self) -> tuple[UsageTotal, ...]:
        """Return tokens and cost of this conversation's model calls, by purpose and model."""
        await self._require_ours()
        return await self._runtime.ledger.usage(conversation=self.ref)

    async def budget(self) -> tuple[BudgetState, ...]:
        """Return the state of each budget that applies to this conversation."""
        user = (await self.state()).user
        return await self._runtime.budgets.states(self.ref, user or self.user)

    async def forget(
        self,
        *message_ids: str,
        facts: Sequence[str] = (),
        query: str | None = None,
        everywhere: bool = False,
    ) -> Receipt:
        """Erase messages, facts of the user, and everything derived from them; return a receipt.

        A message leaves a tombstone on the tape, with role, time and a salted hash. Notes that
        covered it are remade from the other messages: at once by the embedded observer, and later by
        the configured one. When this returns, no byte of the text is left in the files of a SQLite
        database. A repeated call finishes one that failed; if nothing is left to erase, it changes
        nothing, and the receipt has `erased=False`.

        Args:
            message_ids: the messages to forget.
            facts: ids of facts of the conversation's user to forget.
            query: a description of what to forget. Nothing is erased yet: the receipt lists
                candidates for a person to choose from, with `erased=False`.
            everywhere: search all conversations of the user for *query*. Forget the messages in the
                conversation that the receipt names for each.

        Raises:
            InvalidArgument: a message or fact does not exist, or nothing is named.
            StoreUnavailable: a file was in use, the disk too full, or a copy outside of the database
                could not be erased. The memory may still have the text: repeat the call.
        """
        for message_id in message_ids:
            require_text(message_id=message_id)
        require_texts(facts=facts)
        require_text(query=query, optional=True)
        require_one_of(bool, everywhere=everywhere)
        if query is None and not (message_ids or facts):
            raise InvalidArgument(
                "there is nothing to forget: pass ids of messages or facts, or a query"
            )
        if query is not None and (message_ids or facts or not query.strip()):
            raise InvalidArgument(
                f"query={query!r:.80} only finds candidates: use a text with words, without ids"
            )
        if everywhere and query is None:
            raise InvalidArgument(
                "only a query looks everywhere: forget messages by id in their own conversation"
            )
        owner = await self.owner()
        if query is None:
            return await forget_messages(self._runtime, self.ref, owner, message_ids, facts)
        of: ConversationRef | Owner = self.ref
        refs = [self.ref]
        if everywhere:
            if owner is None:
                raise InvalidArgument(
                    "only the conversations of a user are searched everywhere, and this one has no user"
                )
            of, refs = owner, [ref async for ref in conversations_of(self._runtime, owner)]
        hits = await self._runtime.recall_search.search(
            of, owner, query, limit=CANDIDATES, only=RecallFilter(), by_topic=False
        )
        return await find_mentions(self._runtime, refs, owner, query, hits)

    def sibling(self, id: str) -> Self:  # noqa: A002 - as in `memory.conversation`
        """Return the handle of another conversation of the same tenant and user."""
        require_name("conversation id", id)
        ref = ConversationRef(self.ref.tenant, id)
        return type(self)(self._runtime, ref, self.user, self._timezone)

    async def fork(
        self,
        id: str,  # noqa: A002 - as in `sibling`
        *,
        last_seq: int,
        version: TapeVersion | None = None,
    ) -> MemoryState:
        """Start another conversation with the messages up to *last_seq*, and their notes.

        Nothing is observed again, and forgotten messages stay forgotten. Returns the state of the
        fork; get its handle from `sibling`.

        Args:
            id: the new conversation, of the same tenant and user.
            last_seq: the last message that both share.
            version: fail unless this conversation still has this `tape_version`.

        Raises:
            InvalidArgument: there is no such message.
            ConversationGrown: the new conversation already has messages.
            ConversationErased: the tape no longer has *version*.
            WrongUser: the conversation belongs to another user.
        """
        require_count(last_seq=last_seq)
        require_one_of(TapeVersion, version=version, optional=True)
        ref = self.sibling(id).ref
        forked = None
        while forked is None:  # the source changed in between
            state = await self.state()
            if version not in (None, state.tape_version):
                raise ConversationErased(self.id)
            if not 1 <= last_seq <= state.last_seq:
                raise InvalidArgument(
                    f"last_seq={last_seq} is not on the tape of conversation {self.id!r}, which "
                    f"ends at {state.last_seq}"
                )
            forked = await self._store.fork(state, ref, last_seq=last_seq, at=self._clock.now())
            if forked is None and await self._store.state(ref) is not None:
                raise ConversationGrown(f"conversation {id!r} already has messages: use another id")
        self._runtime.engine.signal(ref)
        self._runtime.texts_changed()
        return forked

    async def delete(self, *, scrub: bool = True) -> Receipt | None:
        """Erase messages, notes, log, facts and exported blocks, and discard work in progress.

        When this returns, no byte of the text is left in the files of a SQLite database. For that,
        the file is rewritten, which blocks writers for 10 to 25 ms for each megabyte; without *scrub*
        it is not, until the next erasure or the next start of a memory. Model calls stay in the
        ledger under their user, without the conversation's name. Returns a receipt, or None if there is
        nothing of the conversation.

        Raises:
            StoreUnavailable: as for `forget`; the memory may still have the text: call again.
        """
        require_one_of(bool, scrub=scrub)
        owner = await self.owner()
        return await delete_conversation(self._runtime, self.ref, owner, scrub=scrub)

    def _in_timezone(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return the messages with times in the handle's time zone, if it has one."""
        if (zone := self._timezone) is None:
            return messages
        now = self._clock.now()
        try:
            return tuple(
                # By way of UTC, as a time in the hour skipped in spring is kept by its own zone.
                message.replace(
                    created_at=(message.created_at or now).astimezone(UTC).astimezone(zone)
                )
                for message in messages
            )
        except OverflowError as error:
            raise InvalidMessage(
                f"a created_at is outside of the years 1 to 9999 in time zone {zone}: use another time"
            ) from error

    async def _pair_results(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages with missing call ids of tool results filled in."""
        if not has_nameless(messages):
            return messages
        last = (await self.state()).last_seq
        before = await self._store.messages(self.ref, after=max(0, last - ROUND), limit=ROUND)
        again = {message.id for message in messages if message.id}
        calls = OpenCalls(list(takewhile(lambda message: message.id not in again, before)))
        return [calls.pair(message) for message in messages]

    async def _count_tokens(
        self, messages: Sequence[Message], sizes: Sequence[int]
    ) -> list[Message]:
        """Return the messages with token counts, made in a thread if they are long."""
        count, counted, pacer = self._runtime.counter.message, [], Pacer()
        for message, size in zip(messages, sizes, strict=True):
            if pacer.is_due():
                await asyncio.sleep(0)
                pacer = Pacer()
            is_long = size > LONG_MESSAGE
            tokens = await asyncio.to_thread(count, message) if is_long else count(message)
            counted.append(message.replace(tokens=tokens))
        return counted

    async def _export(
        self, blocks: BlockStore, segments: tuple[Segment, ...], *, tier: Tier = "session"
    ) -> int:
        return await export_segments(blocks, segments, source=self._store, ref=self.ref, tier=tier)

    async def _segments(self, after: int = 0, limit: int | None = None) -> tuple[Segment, ...]:
        """Return the live segments that begin after the seq *after*."""
        require_count(after=after)
        require_count(limit=limit, optional=True)
        await self._require_ours()
        segments = await self._store.segments(self.ref, live=True)
        return tuple(segment for segment in segments if segment.first_seq > after)

    async def _require_ours(self) -> None:
        """Raise `Closed` if the memory is closed, `WrongUser` if the tape is another user's."""
        await self.state()

    async def _search_scope(self, conversation: str | None) -> tuple[ConversationRef, Owner | None]:
        """Return the scope of a recall: the conversation to search, and the owner of the facts."""
        owner = await self.owner()
        if conversation is None or conversation == self.id:
            return self.ref, owner
        ref = ConversationRef(self.ref.tenant, conversation)
        other = await self._store.state(ref)
        if owner is None or other is None or other.user != owner.user:
            raise ConversationNotFound(
                f"the user of {self.id!r} has no conversation {conversation!r}: name one of the "
                "same user"
            )
        return ref, owner
