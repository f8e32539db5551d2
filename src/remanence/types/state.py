"""Where a conversation's memory stands."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

from remanence.types.fact import FactsPin
from remanence.types.segment import Segment
from remanence.wire.message import Message


class ConversationRef(NamedTuple):
    """The name of a conversation: its id is unique for a tenant."""

    tenant: str
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a step did not advance, how often in a row, and when the next try is due.

    `last_seq` is the end of the tape at that time: a step that gave up is tried again when the
    tape has grown, or when another maker than `made_by` takes over. A step's failure is forgotten when that step succeeds. A step that was left out
    on purpose has no `failures`, but `skips`: how often in a row. `rejections` counts those tries
    that no outage explains: the messages themselves may be the reason.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryState:
    """The cursors of a conversation and its token accounts.

    `observed_seq`, `active_seq` and `reflected_seq` are the three cursors; `tail_seq` is the first
    message that a context shows raw (at most `active_seq + 1`; less where `keep_last` asks for
    messages that are observed already). `facts_seq` says up to where facts of the user were
    extracted. Background work looks at the conversation at `look_at`, or when the tape has more than
    `look_tokens`. The sums count the tape up to a cursor, so that no counter
    is ever reset. `key` names this life of the conversation: a deleted and re-created one has
    another.
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

    @property
    def failures(self) -> int:
        """Failed tries in a row, of the step that fails more."""
        return max((failure.failures for failure in self._failed), default=0)

    @property
    def next_attempt_at(self) -> datetime | None:
        """When the next try of a failed step is due; None where nothing fails."""
        return min((failure.next_attempt_at for failure in self._failed), default=None)

    @property
    def last_error(self) -> str | None:
        """Why the latest failed step failed; None where nothing fails."""
        latest = max(self._failed, key=lambda failure: failure.at, default=None)
        return f"{latest.step}: {latest.reason}: {latest.message}" if latest else None

    @property
    def _failed(self) -> tuple[Failure, ...]:
        steps = (self.observe_failure, self.reflect_failure, self.facts_failure)
        return tuple(failure for failure in steps if failure is not None)

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
    """Messages as the tape holds them, and the state of their conversation with them."""

    messages: tuple[Message, ...]
    state: MemoryState


class Look(NamedTuple):
    """A planned look at a conversation, and who works on it at present."""

    at: datetime
    key: int
    ref: ConversationRef
    lease_owner: str | None
    lease_until: datetime | None


LogKind: TypeAlias = Literal[
    "observed", "activated", "reflected", "facts", "failed", "skipped", "retried"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unready:
    """A reason why a memory does not do its work.

    `store`: it cannot be read; `overdue`: background work does not keep up; `failing`: its last
    steps all failed. `detail` names no conversation, and nothing that was said.
    """

    code: Literal["store", "overdue", "failing"]
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
    """A conversation as of one instant: state, live segments, and the newest messages.

    `segments` are in order of the tape and tile `(0, observed_seq]`. `tail` are the messages from
    `tail_seq` on; where they exceed what was asked for, only the newest of them. `facts` are those
    that its contexts show.
    """

    state: MemoryState
    segments: tuple[Segment, ...]
    tail: tuple[Message, ...]
    facts: FactsPin | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that is not as it should be, and how to mend it."""

    conversation: ConversationRef | None
    level: Literal["info", "warning", "error"]
    what: str
    remedy: str
