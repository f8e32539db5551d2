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
    """Messages to be observed: a contiguous range that separates no tool call from its result.

    `known` are the newest notes made before. The rendered notes should have at most
    `target_tokens`, as counted by `count_tokens` in `note_format`. `live` is the newest prompt of the
    conversation, where observers shall go on from it.
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
    """Adjacent segments to be condensed into one of `generation`, of at most `target_tokens`."""

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

    Any exception counts as a failed try: nothing is written and the call is repeated later. An
    observer with `max_source_tokens` gets at most that many tokens at a time, heads included.
    """

    async def observe(self, request: ObserveRequest) -> Draft: ...


@runtime_checkable
class Reflector(Protocol):
    """Condenses segments. Called concurrently for different conversations; errors as above."""

    async def reflect(self, request: ReflectRequest) -> Draft: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractRequest:
    """A stretch of a conversation from which facts about its user are to be kept.

    `messages` are what may be observed of it, and `notes` what was noted of them. `known` are facts
    of that user that hold already, the last written first. `before` are messages in front of the
    stretch, such as the question that it begins to answer; they make no facts of their own.
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
    """Makes facts that outlive a conversation. Called concurrently; errors as for `Observer`."""

    @property
    def name(self) -> str: ...

    async def extract(self, request: ExtractRequest) -> tuple[FactDraft, ...]: ...


Request = TypeVar("Request", ObserveRequest, ReflectRequest, ExtractRequest)
Result = TypeVar("Result")
Steps: TypeAlias = Callable[[Request], Generator[None, None, Result]]
"""A function that yields between small steps on a request."""


class Compute(Protocol):
    """Runs the steps of a request, and returns their result."""

    async def __call__(self, steps: Steps[Request, Result], request: Request, /) -> Result: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One call of a language model, without tools.

    `stable` comes first and is the same in many calls, so that it can be cached; `prompt` is
    specific to this call. With `live` both follow that prompt, whose prefix the provider has
    cached. `begun` marks the later calls of a piece of work, such as a repair, which no limit defers.
    """

    stable: str
    prompt: str
    max_output_tokens: int
    purpose: Purpose
    conversation: ConversationRef | None
    user: str | None = None
    live: LivePrompt | None = None
    begun: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """A model's text; `complete` is false where it was cut off at the output limit."""

    text: str
    complete: bool
    usage: Usage


@runtime_checkable
class Model(Protocol):
    """A language model. Called concurrently.

    Raises:
        ModelError: the call failed; its `reason` is a short code and `retry_after_seconds` what
            the provider asked for. Its message never contains keys.
    """

    @property
    def name(self) -> str: ...

    async def complete(self, request: ModelRequest) -> ModelAnswer: ...


@runtime_checkable
class Embedder(Protocol):
    """Makes vectors of texts, all of one length. Called concurrently.

    `name` identifies its vectors; `dimensions` is their length, if known.
    Any exception counts as a failed try: words alone are searched, and vectors are made later.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimensions(self) -> int | None: ...

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]: ...


class FactVectors(Protocol):
    """Stores vectors of facts instead of the store. Called concurrently.

    The store is authoritative: ids that it does not know are skipped and forgotten here.
    """

    async def put(self, owner: Owner, model: str, vectors: Mapping[str, Sequence[float]]) -> None:
        """Keep the vectors of one owner's facts, by their ids."""

    async def nearest(
        self, owner: Owner, model: str, vector: Sequence[float], *, limit: int
    ) -> tuple[str, ...]:
        """Return ids of the owner's facts, nearest first."""

    async def forget(self, owner: Owner, fact_ids: Sequence[str]) -> None:
        """Erase the vectors of facts, of every model."""


EVERYTHING = RecallFilter()


class Tape(Protocol):
    """The messages of conversations, and where each conversation stands."""

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
        """Put messages at the end of the tape, all or none; durable when it returns.

        They come back with seq, id and created_at, and with the state after them. The conversation
        is created on first use, and belongs to the first user that is named: what stands on it
        before gives no facts. A message whose id is on the tape with equal content is returned as
        it stands there.

        Raises:
            DuplicateMessage: an id is taken by another message; or *as_one* is set, and some of the
                messages are on the tape and others are not.
            InvalidMessage: a tool result answers no call of this tape.
            TurnTaken: *turn* is named and does not own the conversation's turn.
            ConversationErased: the tape was deleted, or made to forget, since the state *after*.
            ConversationGrown: it does not end where that state does.
            WrongUser: the conversation belongs to a user, and *user* is another one, or none
                without *any_user*.
            StoreUnavailable: nothing was written.
        """

    async def state(self, ref: ConversationRef) -> MemoryState | None: ...

    async def snapshot(self, ref: ConversationRef, *, tail_tokens: int) -> Snapshot | None:
        """Return state, live segments and the newest messages of the raw tail in one read.

        The tail is cut at its old end as soon as it holds more than *tail_tokens*, of which each
        message counts for at most a quarter; its newest message is always there.
        """

    async def messages(
        self, ref: ConversationRef, *, after: int, limit: int | None, max_tokens: int | None = None
    ) -> tuple[Message, ...]:
        """Messages with a seq above *after*, in order; at least one where there is any."""

    async def conversations(
        self, *, tenant: str | None = None, after: ConversationRef | None = None, limit: int = 100
    ) -> tuple[MemoryState, ...]:
        """States in order of (tenant, id), for paging."""

    async def fork(
        self, state: MemoryState, ref: ConversationRef, *, last_seq: int, at: datetime
    ) -> MemoryState | None:
        """Create the conversation *ref*, of the same user, with the messages up to *last_seq*.

        They keep ids, times and tokens, and forgotten ones stay tombstones. The notes of them are
        taken over, so that nothing is observed again, and no facts are extracted again. None, and
        nothing written, where *ref* has messages already, or the source was deleted, given its
        user, or made to forget since *state* was read.

        Raises:
            StoreError: *last_seq* is not on the tape, or *ref* is of another tenant.
        """

    async def forget(self, state: MemoryState, erasure: Erasure, *, at: datetime) -> Erased | None:
        """Put tombstones on the tape, erase segments and facts, and write the segments made anew.

        Words and vectors of all of them go too, texts of errors, repetitions of facts from the
        messages, and all repetitions of named facts. The earliest repetition of another erased fact
        takes its place, unless it is older than a fact which that superseded. Facts that erased
        ones superseded hold again; of those with the same words, the newest. Work on the
        conversation, and on others of its user if facts went, that began before writes nothing. None, and nothing written, where the memory has changed
        since *state* was read.

        Raises:
            StoreError: the live segments would not cover the tape as before.
        """

    async def delete(self, ref: ConversationRef) -> bool:
        """Erase a conversation and all that was made from it, facts too; false if there is none.

        Repetitions take the place of facts as in `forget`.
        Its model calls stay in the ledger, under their user, and no longer name it.
        """

    async def forget_user(self, owner: Owner) -> None:
        """Erase a user's conversations and facts, and the user's name in the ledger."""


class Segments(Protocol):
    """The notes of conversations: observations, reflections, and which of them are active."""

    async def segments(self, ref: ConversationRef, *, live: bool) -> tuple[Segment, ...]:
        """The live segments in order of the tape, or all, oldest version first."""

    async def segment(self, ref: ConversationRef, segment_id: str) -> Segment | None: ...

    async def commit_observation(self, state: MemoryState, segment: Segment) -> MemoryState | None:
        """Add an observation and move `observed_seq` to its end, if it still ends before it."""

    async def replace_observation(
        self, state: MemoryState, segment: Segment, replaced: str
    ) -> MemoryState | None:
        """Replace the observation with the id *replaced*, if that is still live.

        Raises:
            StoreError: it covers another range.
        """

    async def commit_reflection(
        self, state: MemoryState, segment: Segment, replaced: Sequence[str], *, purge: bool = False
    ) -> MemoryState | None:
        """Replace segments, if all are still live, and move `reflected_seq` where needed.

        The replaced ones stay readable, unless *purge* deletes them.
        """

    async def activate(
        self, state: MemoryState, *, active_seq: int, tail_seq: int, at: datetime
    ) -> MemoryState | None:
        """Move `active_seq`, if it is still that of *state*."""


class WorkQueue(Protocol):
    """Steps that are due: leases, failures, looks and the log of what was done."""

    async def lease(
        self, state: MemoryState, *, owner: str, now: datetime, until: datetime
    ) -> bool:
        """Take or prolong the right to work on a conversation; false while another owns it.

        Another's end beyond *until* comes from a clock that is ahead, and is moved to *until*.
        """

    async def release(self, state: MemoryState, *, owner: str) -> None: ...

    async def record_failure(self, state: MemoryState, failure: Failure) -> MemoryState | None:
        """Keep *failure* as its step's failure, if the cursors are still those of *state*."""

    async def forget_failures(self, state: MemoryState, *, at: datetime) -> MemoryState | None:
        """Let all steps of a conversation be tried at once; None where none had failed."""

    async def looks(self, *, after: tuple[datetime, int] | None, limit: int) -> tuple[Look, ...]:
        """Planned looks in order of time, then of key, for paging; read by an index.

        Every change of a conversation's memory plans a look at once, in its own transaction; so
        does an append that brings the tape above `look_tokens`.
        """

    async def backlog(self, *, now: datetime, limit: int) -> Backlog:
        """The first *limit* looks that are due, also those that are worked on; read by an index."""

    async def rest(self, state: MemoryState, *, at: datetime | None, tokens: int) -> bool:
        """Plan the next look: at a time (None: at none), or when the tape has more than *tokens*.

        False, and nothing written, where the conversation has changed since *state* was read.
        """

    async def use_look_rules(self, digest: str, *, at: datetime) -> bool:
        """Plan a look at every conversation, if the previous rules had another digest."""

    async def log(
        self, ref: ConversationRef, *, after: int = 0, limit: int | None = None
    ) -> tuple[LogEntry, ...]:
        """Committed changes with a version above *after*, oldest first."""

    async def outcomes(self, *, since: datetime, limit: int) -> tuple[LogEntry, ...]:
        """The newest entries of all logs for steps that made something or failed, newest first.

        Read by an index.
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

        Returns the end of another owner's turn, or None on success. A turn that ends at *dead* is
        taken over, even if that is in the future. Deleting the conversation ends its turn.
        """

    async def prolong_turn(self, ref: ConversationRef, *, owner: str, until: datetime) -> bool:
        """Prolong a turn; false if it is no longer the owner's."""

    async def end_turn(self, ref: ConversationRef, *, owner: str) -> None: ...


class SearchIndex(Protocol):
    """Search by words over live notes and messages."""

    async def search(
        self,
        of: ConversationRef | Owner,
        query: str,
        *,
        limit: int,
        only: RecallFilter = EVERYTHING,
    ) -> tuple[Hit, ...]:
        """Live notes and raw messages that match *query* and the filter, best first.

        They are those of a conversation, or of all conversations of a user.
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
        """The facts of one owner, the last written first: those that hold, or with *history* all.

        With *after* those that follow that fact; none if it is unknown.
        """

    async def fact(self, owner: Owner, fact_id: str) -> Fact | None: ...

    async def search_facts(self, owner: Owner, query: str, *, limit: int) -> tuple[Fact, ...]:
        """Facts of the owner that hold and match *query*, best first."""

    async def repetitions(self, owner: Owner) -> tuple[Repetition, ...]:
        """All repetitions of the owner's facts, the oldest first."""

    async def save_facts(self, changes: FactChanges) -> tuple[Fact, ...] | None:
        """Write new facts of one owner and repetitions, and end what they replace, all or none.

        For a fact with the words of an existing one, the existing one is returned, and the new one
        kept as its repetition. A repetition from the same source, or of a fact that is from no
        conversation, is not kept. None, and nothing written, if a fact to be replaced has
        another successor than the new one, if one that is repeated or a successor is gone, or the
        owner has another newest fact than `changes.newest`.
        """

    async def commit_facts(
        self, state: MemoryState, changes: FactChanges, *, facts_seq: int, at: datetime
    ) -> MemoryState | None:
        """The same for facts of a conversation, and move `facts_seq` if it is that of *state*."""

    async def forget_fact(self, owner: Owner, fact_id: str) -> bool:
        """Erase a fact, those that it superseded, and all repetitions; false if there is none."""

    async def pin_facts(self, state: MemoryState, owner: Owner, pin: FactsPin) -> bool:
        """Keep the facts that a conversation's contexts show; false if some may be erased."""


class VectorIndex(Protocol):
    """Vectors of messages, notes and facts."""

    async def next_vector_task(self, model: str, *, keep: Keep, at: datetime) -> VectorTask | None:
        """Notes and messages that were observed, or facts, that have no vectors of *model* yet.

        Messages whose vectors *keep* would delete at *at* are left out.
        """

    async def save_vectors(self, task: VectorTask, found: Sequence[Sequence[float]]) -> None:
        """Store the vectors of a task, one per item, skipping items deleted since."""

    async def nearest(
        self,
        of: ConversationRef | Owner,
        model: str,
        vector: Sequence[float],
        *,
        limit: int,
        only: RecallFilter = EVERYTHING,
    ) -> tuple[Hit, ...]:
        """Live notes and raw messages, as for `search`, by the cosine of their vectors."""

    async def nearest_facts(
        self, owner: Owner, model: str, vector: Sequence[float], *, limit: int
    ) -> tuple[Fact, ...]:
        """Return current facts of the owner by the cosine of their vectors, nearest first."""


class UsageLog(Protocol):
    """The ledger of model calls."""

    async def record_usage(self, usages: Sequence[Usage]) -> None:
        """Add model calls to the ledger, all or none.

        A call for a conversation that is not there (any more) is kept without it; one that names
        no user is that of the conversation's.
        """

    async def usage(
        self,
        *,
        tenant: str | None = None,
        conversation: ConversationRef | None = None,
        user: str | None = None,
        since: datetime | None = None,
    ) -> tuple[UsageTotal, ...]:
        """Return the matching calls, summed by purpose and model, in the order of their names."""


class EventLog(Protocol):
    """Reports of committed changes, each written in the transaction of its change.

    Of each tenant at least the newest 100,000 are kept. The order of a tenant's ids is that of the
    commits: an event is never seen before one with a smaller id.
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
        """Return a tenant's events above *after* that match; with None only the newest id."""

    async def pending_events(
        self, consumer: str, *, limit: int, without: Collection[str] = ()
    ) -> tuple[Event, ...]:
        """Return up to *limit* events of each tenant that were not delivered to *consumer*.

        Of many tenants, those of the first hundred that have such events, *without* some.
        """

    async def mark_delivered(self, consumer: str, event: Event) -> None:
        """Keep that an event, and those of its tenant before it, were delivered to *consumer*.

        A later event that was delivered already stays so.
        """

    async def record_budget(
        self, ref: ConversationRef, state: BudgetState, *, at: datetime
    ) -> None:
        """Report that a conversation reached the limit of a budget, if it is still there."""


class CallLimits(Protocol):
    """Limits of the calls of models, for all processes on a database."""

    async def take_call(
        self, model: str, *, share: float, begun: bool, waited: bool, now: datetime
    ) -> CallPermit:
        """Count a call that takes a *share* of what a minute allows, unless it must wait.

        Calls that wait get different times, in the order in which they ask, and one that *waited*
        goes before those that ask anew. One that goes on with work that was *begun* is counted and
        never waits. After a pause a call is let in every five seconds, until one gets an answer.
        """

    async def pause_calls(self, model: str, *, until: datetime) -> None:
        """Let calls of a model wait; a longer pause stays."""

    async def resume_calls(self, model: str, *, paused_until: datetime) -> None:
        """End a pause, unless it was prolonged."""

    async def paused_models(self, *, now: datetime) -> tuple[ModelPause, ...]:
        """Return the pauses that last, by model."""


class KeyStore(Protocol):
    """The keys of clients of the service."""

    async def save_key(self, key: APIKey) -> None:
        """Add a key."""

    async def key(self, key_id: str) -> APIKey | None:
        """Return the key with an id, also a revoked or expired one."""

    async def keys(self) -> tuple[APIKey, ...]:
        """Return all keys, oldest first."""

    async def revoke_key(self, key_id: str, *, at: datetime) -> bool:
        """Revoke a key; return false if there is none that was not revoked."""


class PrunedStore(Protocol):
    """Deletion of rows that rules of retention do not keep.

    Live segments, messages and cursors stay as they are, and so does what is younger than a day.
    """

    async def prune(
        self, states: Sequence[MemoryState], rules: Retention, *, at: datetime, limit: int
    ) -> Pruned:
        """Delete at most *limit* rows of each kind of these conversations, oldest first."""

    async def prune_usage(self, rules: Retention, *, at: datetime, limit: int) -> int:
        """Delete at most *limit* model calls from the ledger, oldest first; return their number."""

    async def prunable(
        self, states: Sequence[MemoryState], rules: Retention, *, at: datetime
    ) -> Pruned:
        """Count what `prune` would delete, had it no limit."""

    async def prunable_usage(self, rules: Retention, *, at: datetime) -> int:
        """Count what `prune_usage` would delete, had it no limit."""

    async def table_sizes(self) -> tuple[TableSize, ...]:
        """Return the sizes of the tables that grow, the largest first; reads the whole database."""


@runtime_checkable
class BackupStore(Protocol):
    """A store that can copy itself to a file."""

    async def backup(self, path: str) -> None:
        """Copy the database, as of one instant, to a new file at *path*; writes do not wait.

        Raises:
            StoreUnavailable: there is a file already, or it cannot be written; none is left.
        """


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

    Each method is one transaction. Safe for concurrent calls from one event loop, and beside
    other processes on the same database. A `commit_*`, `activate` or `record_failure` whose
    guard does not hold writes nothing and returns None; so does every call on a conversation
    that was deleted since *state* was read.
    """

    async def scrub(self, *, if_due: bool = False) -> None:
        """Remove the bytes of erased rows from all files; none is left when it returns.

        With *if_due*, only after an erasure that was not followed by it, or if an earlier call found a
        file in use. Writes wait meanwhile: it may rewrite the whole database.

        Raises:
            StoreUnavailable: another process kept a file in use; call it again later.
        """

    async def check(self) -> tuple[Problem, ...]:
        """Look for violations of coverage and accounting, and for damage of the database."""

    async def probe(self) -> None:
        """Write something that is rolled back, unless the store is open for reading only.

        Cheap enough for a probe every few seconds.

        Raises:
            StoreUnavailable: nothing can be written now.
        """

    async def close(self) -> None: ...


class Engine(Protocol):
    """Runs the steps that are due for conversations: it observes, reflects and extracts facts.

    What is due is read from the cursors in the store, so that a lost, doubled or late signal does no
    harm. Safe for concurrent calls from one event loop, and beside the engines of other processes on
    the same database: a step is done by one of them. A failed step is recorded in the conversation's
    state, never raised.
    """

    def start(self, background: Background) -> None:
        """Begin to work, in tasks of *background*; also on what another process left undone."""

    def signal(self, ref: ConversationRef) -> None:
        """Ask for a look at a conversation; returns at once, and does nothing once closed."""

    async def settle(
        self, ref: ConversationRef, *, everything: bool = False, retry: bool = False
    ) -> None:
        """Return when nothing is due for a conversation, or all that is due has to wait.

        Does not need `start`, unless other processes do the work. *everything* includes steps that
        are not due yet; *retry* those that wait after a failure, and messages that were left
        without notes because every try failed.

        Raises:
            Closed: the engine is closed, or was closed meanwhile.
            StoreError: with *retry*, the database refused.
        """

    async def progress(self, ref: ConversationRef) -> None:
        """Return after the next look at a conversation, whatever its outcome; errors as above."""

    async def finish(self, ref: ConversationRef) -> None:
        """Settle everything of a conversation that ends, and condense its notes if the policy does.

        It may still go on. Errors as above.
        """

    async def close(self, *, timeout_seconds: float) -> None:
        """Accept no new signals, and work off the earlier ones within the time.

        Calls that still wait raise `Closed`.
        """
