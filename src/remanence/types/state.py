"""State of a conversation's memory: cursors, failures, log entries, snapshots and diagnostics."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, NamedTuple, TypeAlias

from remanence.types.fact import FactsPin, Owner
from remanence.types.segment import Segment
from remanence.wire.message import Message


class ConversationRef(NamedTuple):
    """The name of a conversation: an id that is unique within its tenant."""

    tenant: str
    id: str


class TapeVersion(NamedTuple):
    """Identifies a tape until it is deleted (which changes `key`) or erased from (`erasures`)."""

    key: int
    erasures: int


EFFECTS: Final[Mapping[str, str]] = {
    "observe": "messages stay raw",
    "reflect": "notes are not condensed",
    "facts": "no facts are extracted",
    "look": "its work waits",
}
"""The effect of a failure on a conversation, by step, or of a look that failed before any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The failure of a step: its reason, its repetitions, and the time of the next attempt.

    `last_seq` is the end of the tape at that time: a latched step is retried when the tape has
    grown, or when another maker than `made_by` takes over. Success clears the failure. `skips` counts
    consecutive intentional skips, which reset `failures`; `deferrals` counts waits for a rate limit,
    which do not. `rejections` counts failures that no outage explains, so that the messages may be
    the cause; `timeouts` counts attempts that took too long.
    """

    step: Literal["observe", "reflect", "facts"]
    reason: str
    message: str
    at: datetime
    next_attempt_at: datetime
    failures: int
    last_seq: int
    skips: int = 0
    made_by: str = ""
    rejections: int = 0
    timeouts: int = 0
    deferrals: int = 0

    @property
    def halvings(self) -> int:
        """The number of times to halve the next slice, as half of a failed slice may succeed."""
        return self.rejections + self.timeouts

    @property
    def left_out(self) -> int:
        """The number of times in a row that the step was skipped or deferred."""
        return self.skips + self.deferrals


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryState:
    """The cursors of a conversation and its token accounts.

    `observed_seq`, `active_seq` and `reflected_seq` are the three cursors; `tail_seq` is the first
    message that a context shows raw (at most `active_seq + 1`; less if `keep_last` includes messages
    that are already observed). Facts about the user are extracted up to `facts_seq`. Background work
    looks at the conversation at `look_at`, or when the tape exceeds `look_tokens`. `erasures` counts
    erasures of its messages or its user's facts. The sums count the tape up to a cursor, so that no
    counter is ever reset. `key` changes when a conversation is deleted and created again.
    """

    ref: ConversationRef
    key: int
    user: str | None
    created_at: datetime
    last_seq: int = 0
    observed_seq: int = 0
    active_seq: int = 0
    reflected_seq: int = 0
    tail_seq: int = 1
    last_sum_tokens: int = 0
    observed_sum_tokens: int = 0
    active_sum_tokens: int = 0
    tail_sum_tokens: int = 0
    last_message_at: datetime | None = None
    last_observed_at: datetime | None = None
    last_reflected_at: datetime | None = None
    observe_failure: Failure | None = None
    reflect_failure: Failure | None = None
    facts_seq: int = 0
    facts_failure: Failure | None = None
    lock_version: int = 0
    lease_owner: str | None = None
    lease_until: datetime | None = None
    look_at: datetime | None = field(default=None, compare=False)
    look_tokens: int = field(default=0, compare=False)
    erasures: int = 0

    @property
    def tape_version(self) -> TapeVersion:
        """The version of the tape, which appending does not change."""
        return TapeVersion(self.key, self.erasures)

    @property
    def owner(self) -> Owner | None:
        """The owner of the facts that the conversation may see; None if it has no user."""
        return Owner(self.ref.tenant, self.user) if self.user else None

    @property
    def failures(self) -> int:
        """The largest number of failures in a row of any step."""
        return max((failure.failures for failure in self._failed), default=0)

    @property
    def next_attempt_at(self) -> datetime | None:
        """The time of the next attempt of a failed step; None if nothing fails."""
        return min((failure.next_attempt_at for failure in self._failed), default=None)

    @property
    def last_error(self) -> str | None:
        """Step, reason and message of the latest failure; None if nothing fails."""
        latest = max(self._failed, key=lambda failure: failure.at, default=None)
        return f"{latest.step}: {latest.reason}: {latest.message}" if latest else None

    @property
    def _failed(self) -> tuple[Failure, ...]:
        steps = (self.observe_failure, self.reflect_failure, self.facts_failure)
        return tuple(failure for failure in steps if failure is not None)

    def failure_of(self, step: str) -> Failure | None:
        """Return the failure of a step, if its last attempt failed."""
        return next((failure for failure in self._failed if failure.step == step), None)

    @property
    def unobserved_tokens(self) -> int:
        """Tokens of the messages after `observed_seq`."""
        return self.last_sum_tokens - self.observed_sum_tokens

    @property
    def tail_tokens(self) -> int:
        """Tokens of the raw tail, from `tail_seq` on."""
        return self.last_sum_tokens - self.tail_sum_tokens

    @property
    def inactive_tokens(self) -> int:
        """Tokens of the messages after `active_seq`."""
        return self.last_sum_tokens - self.active_sum_tokens


class Appended(NamedTuple):
    """Messages as stored on the tape, and the state of their conversation after the append."""

    messages: tuple[Message, ...]
    state: MemoryState


class Look(NamedTuple):
    """A scheduled look at a conversation, and the current owner of its lease."""

    at: datetime
    key: int
    ref: ConversationRef
    lease_owner: str | None
    lease_until: datetime | None


class Backlog(NamedTuple):
    """Due work: the conversations, their unobserved tokens, and the age of the oldest look.

    Includes conversations in progress; at most the first thousand are counted.
    """

    conversations: int
    tokens: int
    age_seconds: float


LogKind: TypeAlias = Literal[
    "observed",
    "activated",
    "reflected",
    "facts",
    "failed",
    "skipped",
    "retried",
    "forgotten",
    "forked",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unready:
    """A reason why a memory is not ready.

    `store`: the store cannot be used; `stopped`: background work has ended, and goes on when the
    memory is opened again; `overdue`: it does not keep up; `failing`: its last steps all failed.
    `detail` contains no conversation ids and no message text.
    """

    code: Literal["store", "stopped", "overdue", "failing"]
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One committed change of a conversation's memory; `version` is its `lock_version`.

    `last_seq` is the end of the tape at that time.
    """

    version: int
    kind: LogKind
    at: datetime
    observed_seq: int
    active_seq: int
    reflected_seq: int
    tail_seq: int
    detail: str
    last_seq: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A consistent view of a conversation: state, live segments, and the newest messages.

    `segments` are in tape order and tile `(0, observed_seq]`. `tail` has the messages from
    `tail_seq` on, or only the newest of them if they exceed the requested tokens. `facts` are the
    facts that contexts show. `opening` has the user's messages that opened the turn of tool calls in which
    the tail begins, if they are before it; only the snapshots of contexts read them.
    """

    state: MemoryState
    segments: tuple[Segment, ...]
    tail: tuple[Message, ...]
    facts: FactsPin | None = None
    opening: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A problem of a conversation or memory, and its remedy."""

    conversation: ConversationRef | None
    level: Literal["info", "warning", "error"]
    what: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationLog:
    """The size of the live notes; `version` grows by one with each observation and reflection.

    `lock_version` is the version of the log entry that added the newest notes.
    """

    version: int
    lock_version: int
    token_count: int
    text_length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostics:
    """A summary of a conversation's memory.

    `memory_state` is None before the first message, `observation_log` before the first notes.
    `observed_message_id` is the newest message that an observation covers. `observation_count` and
    `total_observation_tokens` include observations that a reflection replaced.
    """

    memory_state: MemoryState | None
    observed_message_id: str | None
    observation_log: ObservationLog | None
    observation_count: int
    total_observation_tokens: int
