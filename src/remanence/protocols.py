"""Protocols of all replaceable parts."""

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from remanence.background import Background
from remanence.types import (
    APIKey,
    Appended,
    Backlog,
    BudgetState,
    CallPermit,
    ConversationRef,
    Draft,
    Erased,
    Erasure,
    Event,
    EventPage,
    EventType,
    Fact,
    FactChanges,
    FactCondition,
    FactDraft,
    FactsPin,
    Failure,
    Hit,
    Keep,
    LogEntry,
    Look,
    MemoryState,
    Message,
    ModelPause,
    Note,
    NoteFormat,
    Owner,
    Problem,
    Pruned,
    Purpose,
    RecallFilter,
    Repetition,
    Retention,
    Segment,
    Snapshot,
    TableSize,
    Usage,
    UsageTotal,
    VectorTask,
)


class CountTokens(Protocol):
    """Counts the tokens of a text. Pure; safe to call from any thread."""

    def __call__(self, text: str, /) -> int: ...


class LivePrompt(Protocol):
    """The prompt of a turn in the format of its provider; a `Context` is one."""

    @property
    def messages(self) -> tuple[Message, ...]: ...

    def to_anthropic(self) -> dict[str, Any]: ...  # JSON: its shape is the provider's

    def to_openai(self, *, cache_breakpoints: bool = False) -> dict[str, Any]: ...  # as above


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserveRequest:
    """Messages to observe: a contiguous range that keeps tool calls and their results together.

    `known` are the newest existing notes. Notes rendered in `note_format` should have at most
    `target_tokens`, as counted by `count_tokens`. `live` is the newest prompt of the conversation, if
    observers are to continue it.
    """

    conversation: ConversationRef
    messages: tuple[Message, ...]
    known: tuple[Note, ...]
    target_tokens: int
    count_tokens: CountTokens
    note_format: NoteFormat
    now: datetime
    user: str | None = None
    live: LivePrompt | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectRequest:
    """Adjacent segments to condense into one of `generation`, with at most `target_tokens`."""

    conversation: ConversationRef
    segments: tuple[Segment, ...]
    generation: int
    target_tokens: int
    count_tokens: CountTokens
    note_format: NoteFormat
    now: datetime
    user: str | None = None


@runtime_checkable
class Observer(Protocol):
    """Makes notes from messages. Called concurrently for different conversations.

    Each note must name messages of the request. Any exception, or a draft that fails a check, counts
    as a failed attempt: nothing is written, and the call is repeated later. An observer with an
    attribute `max_source_tokens` gets at most that many tokens per call, including message heads.
    """

    async def observe(self, request: ObserveRequest) -> Draft:
        """Return notes on the messages of *request*, or a draft of `nothing` if none is worth one."""
        ...


@runtime_checkable
class Reflector(Protocol):
    """Condenses segments. Called concurrently for different conversations; errors as for `Observer`."""

    async def reflect(self, request: ReflectRequest) -> Draft:
        """Return notes that replace those of the segments of *request*."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractRequest:
    """A stretch of a conversation to extract facts about its user from.

    `messages` are its observable messages, and `notes` their notes. `known` are the user's current
    facts, newest first. `before` are messages in front of the stretch, such as the question that it
    begins to answer; no facts are made of them.
    """

    conversation: ConversationRef
    user: str
    messages: tuple[Message, ...]
    notes: tuple[Note, ...]
    known: tuple[Fact, ...]
    now: datetime
    before: tuple[Message, ...] = ()


@runtime_checkable
class FactExtractor(Protocol):
    """Extracts facts that outlive a conversation. Called concurrently; errors as for `Observer`."""

    @property
    def name(self) -> str: ...

    async def extract(self, request: ExtractRequest) -> tuple[FactDraft, ...]:
        """Return the facts in a request's messages; empty if there are none."""


Request = TypeVar("Request", ObserveRequest, ReflectRequest, ExtractRequest)
Result = TypeVar("Result")
Steps: TypeAlias = Callable[[Request], Generator[None, None, Result]]
"""A computation on a request that yields between small steps."""


class Compute(Protocol):
    """Runs a stepwise computation to its end, and returns the result."""

    async def __call__(self, steps: Steps[Request, Result], request: Request, /) -> Result: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One call of a language model, without tools.

    `stable` comes first and is the same in many calls, so that it can be cached; `prompt` is
    specific to this call. With `live`, both follow that prompt, whose prefix the provider has
    cached. `is_follow_up` marks later calls of a step, such as a repair, which no rate limit defers.
    """

    stable: str
    prompt: str
    max_output_tokens: int
    purpose: Purpose
    conversation: ConversationRef | None
    user: str | None = None
    live: LivePrompt | None = None
    is_follow_up: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """A model's text; `complete` is false if it was cut off at the output limit."""

    text: str
    complete: bool
    usage: Usage


@runtime_checkable
class Model(Protocol):
    """A language model. Called concurrently.

    Raises:
        ModelError: the call failed; `reason` is a short code, and `retry_after_seconds` the delay
            that the provider asked for. The message never contains keys.
    """

    @property
    def name(self) -> str: ...

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Return the model's answer to one request."""


@runtime_checkable
class ModelChain(Model, Protocol):
    """Several models, tried in order."""

    def after(self, name: str) -> Model | None:
        """Return the models behind the one of this name, if any, as its answer was of no use."""


@runtime_checkable
class Embedder(Protocol):
    """Makes vectors of texts, all of the same length. Called concurrently.

    After an exception, only words are searched, and vectors are made later. A text that fails while
    others do not is tried a few times, unless a `ModelError` says `bad_request`, `refused` or
    `too_long`.
    """

    @property
    def name(self) -> str:
        """The name under which its vectors are kept; a model that makes others needs another one.

        That of a function is `function:` with its qualified name.
        """
        ...

    @property
    def dimensions(self) -> int | None:
        """The length of its vectors; None if it is not known yet."""
        ...

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return a vector for each text, in the same order."""
        ...


@runtime_checkable
class FactVectors(Protocol):
    """Stores vectors of facts instead of the store. Called concurrently.

    The store is authoritative: ids that it does not know are skipped in results, and erased here.
    The facts put into it are tracked under the name of its class; see also `NamedFactVectors`.
    """

    async def put(self, owner: Owner, model: str, vectors: Mapping[str, Sequence[float]]) -> None:
        """Store vectors of one owner's facts, by fact id."""

    async def nearest(
        self, owner: Owner, model: str, vector: Sequence[float], *, limit: int
    ) -> tuple[str, ...]:
        """Return ids of the owner's facts, nearest first."""

    async def forget(self, owner: Owner, fact_ids: Sequence[str]) -> None:
        """Erase the vectors of facts, from all models; whatever this raises, the facts stay."""


@runtime_checkable
class NamedFactVectors(FactVectors, Protocol):
    """Fact vectors of which there may be several, and which notice that they were lost."""

    @property
    def name(self) -> str:
        """The name under which the facts put into it are tracked."""
        ...

    async def holds(self, model: str) -> bool:
        """Return whether there are vectors of *model*; if not, all facts are put again."""
        ...


EVERYTHING = RecallFilter()


class Tape(Protocol):
    """The messages and the state of each conversation."""

    async def append(
        self,
        ref: ConversationRef,
        messages: Sequence[Message],
        *,
        user: str | None,
        turn: str | None = None,
        any_user: bool = False,
        after: MemoryState | None = None,
        as_one: bool = False,
    ) -> Appended:
        """Append messages to the tape, all or none; they are durable when this returns.

        Returns the messages with seq, id and created_at, and the new state. The conversation is
        created on first use, and belongs to the first user named; messages from before that yield
        no facts. A message whose id is already on the tape with equal content is returned as stored.

        Raises:
            DuplicateMessage: an id is taken by another message; or, with *as_one*, only some of the
                messages are already on the tape.
            InvalidMessage: a tool result answers no call on this tape.
            TurnTaken: *turn* is given and does not own the conversation's turn.
            ConversationErased: messages were deleted or forgotten since the state *after*.
            ConversationGrown: the tape does not end where the state *after* does.
            WrongUser: the conversation belongs to another user than *user*. Without a *user*, any
                owner is allowed only with *any_user*.
            StoreUnavailable: nothing was written.
        """

    async def state(self, ref: ConversationRef) -> MemoryState | None: ...

    async def snapshot(self, ref: ConversationRef, *, tail_tokens: int) -> Snapshot | None:
        """Return the state, live segments and the end of the raw tail in one consistent read.

        The tail has as many of the newest messages as fit *tail_tokens*, and at least one. Each
        message counts for at most a quarter of *tail_tokens*.
        """

    async def message(self, ref: ConversationRef, message_id: str) -> Message | None: ...

    async def messages(
        self, ref: ConversationRef, *, after: int, limit: int | None, max_tokens: int | None = None
    ) -> tuple[Message, ...]:
        """Return messages with a seq above *after*, in order; at least one if there is any."""

    async def conversations(
        self,
        *,
        tenant: str | None = None,
        user: str | None = None,
        after: ConversationRef | None = None,
        limit: int = 100,
    ) -> tuple[MemoryState, ...]:
        """Return states in order of (tenant, id), for paging."""

    async def fork(
        self, state: MemoryState, ref: ConversationRef, *, last_seq: int, at: datetime
    ) -> MemoryState | None:
        """Create the conversation *ref*, of the same user, with the messages up to *last_seq*.

        Messages keep their ids, times and tokens; tombstones stay tombstones. Notes are copied, so
        that nothing is observed and no facts are extracted again. Returns None and writes nothing
        if *ref* already has messages, or if the source was deleted, erased from or given its user
        since *state* was read.

        Raises:
            StoreError: *last_seq* is not on the tape, or *ref* belongs to another tenant.
        """

    async def forget(self, state: MemoryState, erasure: Erasure, *, at: datetime) -> Erased | None:
        """Write tombstones and remade segments, and erase the old segments and facts.

        A remade segment with the id of a replaced one takes over its row, with a new version.
        Their indexed words and vectors are erased, too, as are error texts, repetitions of facts
        from the messages, and all repetitions of facts named by the caller. Any other erased fact is
        replaced by its earliest repetition, unless that is older than a fact it superseded; a fork
        that has its messages counts as repeating it. Facts superseded by an erased fact become
        current again; of those with the same words, the newest.
        Work in progress on the conversation, and on the user's others if facts were erased, is
        voided. Returns None and writes nothing if the memory has changed since *state* was read.

        Raises:
            StoreError: the live segments would no longer cover the tape.
        """

    async def delete(self, ref: ConversationRef) -> int | None:
        """Erase a conversation and everything derived from it, including facts.

        Returns the number of erased vectors of messages and notes, or None if it does not exist.
        Repetitions replace erased facts as in `forget`. Model calls stay in the ledger under their
        user, without the conversation's name.
        """

    async def forget_user(self, owner: Owner) -> int:
        """Erase a user's conversations and facts, and the user's name in the ledger.

        Returns the number of erased vectors of messages and notes.
        """


class Segments(Protocol):
    """Observations and reflections, and the cursors that they move."""

    async def segments(self, ref: ConversationRef, *, live: bool) -> tuple[Segment, ...]:
        """Return the live segments in tape order, or all segments, oldest version first."""

    async def segment(self, ref: ConversationRef, segment_id: str) -> Segment | None: ...

    async def commit_observation(self, state: MemoryState, segment: Segment) -> MemoryState | None:
        """Add an observation and move `observed_seq` to its end, if it still follows the cursor."""

    async def replace_observation(
        self, state: MemoryState, segment: Segment, replaced: str
    ) -> MemoryState | None:
        """Replace the observation with the id *replaced*, if that is still live.

        Raises:
            StoreError: the ranges differ.
        """

    async def commit_reflection(
        self, state: MemoryState, segment: Segment, replaced: Sequence[str], *, purge: bool = False
    ) -> MemoryState | None:
        """Replace segments, if all are still live, and move `reflected_seq` if needed.

        Replaced segments stay readable unless *purge* is set, which deletes them.
        """

    async def activate(
        self, state: MemoryState, *, active_seq: int, tail_seq: int, at: datetime
    ) -> MemoryState | None:
        """Move `active_seq`, if it still has the value of *state*."""


class WorkQueue(Protocol):
    """Scheduling of background work: leases, failures, looks and the log."""

    async def lease(
        self, state: MemoryState, *, owner: str, now: datetime, until: datetime
    ) -> bool:
        """Acquire or renew the lease of a conversation; false while another owner has it.

        If another owner's lease ends after *until*, its clock is ahead, and the end is moved to
        *until*.
        """

    async def release(self, state: MemoryState, *, owner: str) -> None: ...

    async def record_failure(self, state: MemoryState, failure: Failure) -> MemoryState | None:
        """Store *failure* for its step, if the cursors are still those of *state*."""

    async def forget_failures(self, state: MemoryState, *, at: datetime) -> MemoryState | None:
        """Clear a conversation's failures, so that all steps may be retried; None without failures."""

    async def looks(self, *, after: tuple[datetime, int] | None, limit: int) -> tuple[Look, ...]:
        """Return scheduled looks in order of time, then key, for paging; uses an index.

        Every change of a conversation's memory schedules an immediate look in its own transaction;
        so does an append that brings the tape above `look_tokens`.
        """

    async def backlog(self, *, now: datetime, limit: int) -> Backlog:
        """Summarise the first *limit* due looks, including those in progress; uses an index."""

    async def rest(self, state: MemoryState, *, at: datetime | None, tokens: int) -> bool:
        """Schedule the next look: at a time (None: never), or when the tape exceeds *tokens*.

        Returns false and writes nothing if the conversation has changed since *state* was read.
        """

    async def use_look_rules(self, digest: str, *, at: datetime) -> bool:
        """Schedule a look at every conversation, if the digest of the rules has changed."""

    async def log(
        self, ref: ConversationRef, *, after: int = 0, limit: int | None = None
    ) -> tuple[LogEntry, ...]:
        """Return committed changes with a version above *after*, oldest first."""

    async def outcomes(self, *, since: datetime, limit: int) -> tuple[LogEntry, ...]:
        """Return the newest log entries of completed or failed steps, from all conversations.

        Newest first; uses an index.
        """


class TurnLeases(Protocol):
    """The right to a conversation's turn, one holder at a time."""

    async def take_turn(
        self,
        ref: ConversationRef,
        *,
        owner: str,
        now: datetime,
        until: datetime,
        dead: datetime | None = None,
    ) -> datetime | None:
        """Take the turn of a conversation, which need not have messages yet.

        Returns None on success, otherwise the end of another owner's turn. A turn that ends at
        *dead* is taken over even before that time. Deleting the conversation ends its turn.
        """

    async def prolong_turn(self, ref: ConversationRef, *, owner: str, until: datetime) -> bool:
        """Renew a turn; false if *owner* no longer holds it."""

    async def end_turn(self, ref: ConversationRef, *, owner: str) -> None: ...


class SearchIndex(Protocol):
    """Word search over live notes and messages."""

    async def search(
        self,
        of: ConversationRef | Owner,
        query: str,
        *,
        limit: int,
        only: RecallFilter = EVERYTHING,
    ) -> tuple[Hit, ...]:
        """Return live notes and raw messages that match *query* and the filter, best first.

        Searches one conversation, or all conversations of a user.
        """


class FactStore(Protocol):
    """Facts of users."""

    async def facts(
        self,
        owner: Owner,
        *,
        history: bool = False,
        after: str | None = None,
        limit: int | None = None,
    ) -> tuple[Fact, ...]:
        """Return the current facts of one owner, or with *history* all, last written first.

        For paging, only those behind the fact with the id *after*, or behind its place by the order of
        ids if it was erased.
        """

    async def lasting_facts(self, owner: Owner, *, limit: int) -> tuple[Fact, ...]:
        """Return the current facts of the highest worth, last written first."""

    async def adopt_facts(self, ref: ConversationRef, facts: Sequence[Fact]) -> tuple[Fact, ...]:
        """Return the facts with *ref* as the source of those whose messages it has, too, as a fork."""

    async def unshared_facts(self, ref: ConversationRef, facts: Sequence[Fact]) -> tuple[Fact, ...]:
        """Return the facts of *ref* whose messages no other conversation, such as a fork, has, too."""

    async def fact(self, owner: Owner, fact_id: str) -> Fact | None: ...

    async def search_facts(
        self, owner: Owner, query: str, *, limit: int, only: FactCondition | None = None
    ) -> tuple[Fact, ...]:
        """Return current facts of the owner that match *query* and the condition, best first."""

    async def repetitions(self, owner: Owner) -> tuple[Repetition, ...]:
        """Return all repetitions of the owner's facts, oldest first."""

    async def save_facts(self, changes: FactChanges) -> tuple[Fact, ...] | None:
        """Write new facts and repetitions of one owner, and end the facts they replace, all or none.

        If a current fact has the same words, it is returned and the new one is stored as its
        repetition. Repetitions from the same source, or of a fact without a conversation, are
        not stored; if neither has a conversation, the fact gets the other's tags, as long as it has
        fewer than 100, and its start if that is earlier and the fact has replaced none. If a fact is
        replaced, the owner's pins are removed. Returns None and writes nothing if a replaced fact
        already has another successor, a repeated fact or a successor is gone, or `changes.newest` is
        not the owner's newest fact.
        """

    async def commit_facts(
        self, state: MemoryState, changes: FactChanges, *, facts_seq: int, at: datetime
    ) -> MemoryState | None:
        """Save facts of a conversation, and move `facts_seq` if it still has the value of *state*."""

    async def forget_fact(self, owner: Owner, fact_id: str) -> bool:
        """Erase a fact, the facts it superseded, and all repetitions; false if there is none."""

    async def pin_facts(self, state: MemoryState, owner: Owner, pin: FactsPin) -> bool:
        """Store the facts that a conversation's contexts show; false if some may have been erased."""


class VectorIndex(Protocol):
    """Vectors of messages, notes and facts."""

    async def next_vector_task(
        self, model: str, *, keep: Keep, at: datetime, place: str = ""
    ) -> VectorTask | None:
        """Return observed messages and notes, or facts, that lack vectors of *model*.

        Leaves out messages whose vectors *keep* would delete at *at*. *place* names where the vectors
        of facts are kept, if that is not the store; each place gets those of all facts.
        """

    async def save_vectors(self, task: VectorTask, found: Sequence[Sequence[float]]) -> None:
        """Store the vectors of a task, one per item, skipping items deleted meanwhile.

        Raises:
            ObservationRejected: their length is not that of the vectors stored for this model.
        """

    async def nearest(
        self,
        of: ConversationRef | Owner,
        model: str,
        vector: Sequence[float],
        *,
        limit: int,
        only: RecallFilter = EVERYTHING,
    ) -> tuple[Hit, ...]:
        """Return live notes and raw messages, as for `search`, by cosine similarity."""

    async def nearest_facts(
        self,
        owner: Owner,
        model: str,
        vector: Sequence[float],
        *,
        limit: int,
        only: FactCondition | None = None,
    ) -> tuple[Fact, ...]:
        """Return current facts of the owner that meet the condition, by cosine similarity, nearest first."""


class UsageLog(Protocol):
    """The ledger of model calls."""

    async def record_usage(self, usages: Sequence[Usage]) -> None:
        """Add model calls to the ledger, all or none.

        A call for a conversation that does not exist (any more) is stored without the conversation.
        A call without a user is recorded under the conversation's user.
        """

    async def usage(
        self,
        *,
        tenant: str | None = None,
        conversation: ConversationRef | None = None,
        user: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> tuple[UsageTotal, ...]:
        """Return totals of the matching calls by purpose and model, sorted by these names.

        A call at *since* matches, and one at *until* does not.
        """

    async def model_calls(self, owner: Owner) -> tuple[Usage, ...]:
        """Return a user's calls, in the order in which they were recorded."""


class EventLog(Protocol):
    """Reports of committed changes, each written in the transaction of its change.

    At least the newest 100,000 events of each tenant are kept. A tenant's ids follow the order of
    commits: an event never becomes visible before one with a smaller id.
    """

    async def events(
        self,
        tenant: str,
        *,
        after: int | None,
        limit: int,
        conversation: str | None = None,
        types: Sequence[EventType] = (),
    ) -> EventPage:
        """Return a tenant's matching events above *after*; with None, only the newest id."""

    async def pending_events(
        self, consumer: str, *, limit: int, without: Collection[str] = ()
    ) -> tuple[Event, ...]:
        """Return up to *limit* events per tenant that were not delivered to *consumer* yet.

        Covers the first hundred tenants that have such events, except those in *without*.
        """

    async def mark_delivered(self, consumer: str, event: Event) -> None:
        """Record that an event and all earlier ones of its tenant were delivered to *consumer*.

        The position never moves back.
        """

    async def record_budget(
        self, ref: ConversationRef, state: BudgetState, *, at: datetime
    ) -> None:
        """Write an event that a conversation reached a budget's limit, if it still exists."""


class CallLimits(Protocol):
    """Rate limits of model calls, shared by all processes on a database."""

    async def take_call(
        self, model: str, *, share: float, is_follow_up: bool, waited: bool, now: datetime
    ) -> CallPermit:
        """Count a call that uses *share* of a minute's allowance, unless it must wait.

        Waiting calls get different times, in the order of their requests; a call that *waited* goes
        before new ones. A later call of a step (*is_follow_up*) is counted, but waits for pauses only.
        After a pause, one call is let through every five seconds until one is answered.
        """

    async def pause_calls(self, model: str, *, until: datetime) -> None:
        """Pause the calls of a model, unless a longer pause is in effect."""

    async def resume_calls(self, model: str, *, paused_until: datetime) -> None:
        """End a pause, unless it was extended."""

    async def paused_models(self, *, now: datetime) -> tuple[ModelPause, ...]:
        """Return the pauses in effect, by model."""


class KeyStore(Protocol):
    """API keys for clients of the service."""

    async def save_key(self, key: APIKey) -> None:
        """Add a key."""

    async def key(self, key_id: str) -> APIKey | None:
        """Return the key with this id, even if it is revoked or expired."""

    async def keys(self) -> tuple[APIKey, ...]:
        """Return all keys, oldest first."""

    async def revoke_key(self, key_id: str, *, at: datetime) -> bool:
        """Revoke a key; return false if it does not exist or was already revoked."""


class PrunedStore(Protocol):
    """Deletion of rows by retention rules.

    Live segments, messages and cursors are never touched, nor are rows younger than a day.
    """

    async def prune(
        self, states: Sequence[MemoryState], rules: Retention, *, at: datetime, limit: int
    ) -> Pruned:
        """Delete up to *limit* rows of each kind from these conversations, oldest first."""

    async def prune_usage(self, rules: Retention, *, at: datetime, limit: int) -> int:
        """Delete at most *limit* model calls from the ledger, oldest first; return their number."""

    async def prunable(
        self, states: Sequence[MemoryState], rules: Retention, *, at: datetime
    ) -> Pruned:
        """Count what `prune` would delete without a limit."""

    async def prunable_usage(self, rules: Retention, *, at: datetime) -> int:
        """Count what `prune_usage` would delete without a limit."""

    async def table_sizes(self) -> tuple[TableSize, ...]:
        """Return the sizes of the tables that grow, the largest first; reads the whole database."""


@runtime_checkable
class BackupStore(Protocol):
    """A store that can copy itself to a file."""

    async def backup(self, path: str) -> None:
        """Copy a consistent snapshot of the database to a new file, without blocking writers.

        Raises:
            StoreUnavailable: *path* exists or cannot be written; no partial file is left.
        """


@runtime_checkable
class Store(
    Tape,
    Segments,
    WorkQueue,
    TurnLeases,
    SearchIndex,
    FactStore,
    VectorIndex,
    UsageLog,
    EventLog,
    CallLimits,
    KeyStore,
    PrunedStore,
    Protocol,
):
    """The durable tape and the data derived from it.

    Each method is one transaction. Safe for concurrent calls from one event loop, and beside other
    processes on the same database. A `commit_*`, `activate` or `record_failure` that lost a race
    writes nothing and returns None; so does every call on a conversation that was deleted since
    *state* was read.
    """

    async def scrub(self, *, if_due: bool = False) -> bool:
        """Remove all bytes of erased rows from the files.

        With *if_due*, only if an erasure has not been scrubbed yet, or an earlier call found a file in
        use; returns False if nothing was due. Blocks writes meanwhile: it may rewrite the whole
        database.

        Raises:
            StoreUnavailable: a file was in use, or the disk is too full: call again later.
        """

    async def check(self) -> tuple[Problem, ...]:
        """Return violations of coverage and accounting, and damage to the database."""

    async def probe(self) -> None:
        """Test that the database can be written, unless it is open read-only; leaves no change.

        Cheap enough for a probe every few seconds.

        Raises:
            StoreUnavailable: nothing can be written now.
        """

    async def close(self) -> None: ...


class Engine(Protocol):
    """Runs due steps of conversations: observes, reflects and extracts facts.

    Due work is read from the cursors in the store, so lost, doubled or late signals do no harm. Safe
    for concurrent calls from one event loop, and beside engines of other processes on the same
    database, one of which does each step. A failed step is recorded in the conversation's state,
    never raised.
    """

    def start(self, background: Background) -> None:
        """Start working in tasks of *background*, also on work that other processes left behind."""

    def signal(self, ref: ConversationRef) -> None:
        """Request a look at a conversation; returns at once, and does nothing once closed."""

    async def settle(
        self, ref: ConversationRef, *, everything: bool = False, retry: bool = False
    ) -> None:
        """Wait until nothing is due for a conversation, apart from steps that have to wait.

        Does not need `start`, unless other processes do the work. *everything* includes steps that
        are not due yet; *retry* includes steps that wait after a failure, and messages left without
        notes after too many failures.

        Raises:
            Closed: the engine is closed, or was closed meanwhile, or its tasks have stopped.
            StoreError: with *retry*, the database failed.
        """

    async def progress(self, ref: ConversationRef) -> None:
        """Wait for the next look at a conversation, whatever its outcome; errors as for `settle`.

        A caller within such a look, such as a hook, does not wait.
        """

    async def finish(self, ref: ConversationRef) -> None:
        """Settle everything for a conversation that ends, and condense its notes if the policy asks.

        The conversation may still go on. Errors as for `settle`.
        """

    async def close(self, *, timeout_seconds: float) -> None:
        """Stop accepting signals, and finish queued work within *timeout_seconds*.

        Calls still waiting then raise `Closed`.
        """
