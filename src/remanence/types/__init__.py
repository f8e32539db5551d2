"""Value types shared by all other packages."""

from remanence.types.api_key import APIKey as APIKey, Scope as Scope
from remanence.types.budget import (
    Budget as Budget,
    BudgetLevel as BudgetLevel,
    BudgetScope as BudgetScope,
    BudgetState as BudgetState,
)
from remanence.types.event import (
    EVENT_TYPES as EVENT_TYPES,
    Event as Event,
    EventPage as EventPage,
    EventType as EventType,
    EventValue as EventValue,
)
from remanence.types.fact import (
    Fact as Fact,
    FactChanges as FactChanges,
    FactCondition as FactCondition,
    FactDraft as FactDraft,
    FactsPin as FactsPin,
    FactType as FactType,
    Owner as Owner,
    Repetition as Repetition,
)
from remanence.types.recall import (
    Hit as Hit,
    HitKind as HitKind,
    RecallFilter as RecallFilter,
    VectorItem as VectorItem,
    VectorTask as VectorTask,
)
from remanence.types.receipt import (
    Erased as Erased,
    Erasure as Erasure,
    ForgottenMessage as ForgottenMessage,
    Receipt as Receipt,
)
from remanence.types.retention import (
    DatabaseSize as DatabaseSize,
    Keep as Keep,
    Pruned as Pruned,
    Retention as Retention,
    TableSize as TableSize,
)
from remanence.types.segment import (
    STAND_IN as STAND_IN,
    Draft as Draft,
    DroppedLine as DroppedLine,
    DropReason as DropReason,
    FailedStretch as FailedStretch,
    Note as Note,
    NoteFormat as NoteFormat,
    Priority as Priority,
    Segment as Segment,
    Tag as Tag,
)
from remanence.types.state import (
    EFFECTS as EFFECTS,
    Appended as Appended,
    Backlog as Backlog,
    ConversationRef as ConversationRef,
    Diagnostics as Diagnostics,
    Failure as Failure,
    LogEntry as LogEntry,
    LogKind as LogKind,
    Look as Look,
    MemoryState as MemoryState,
    ObservationLog as ObservationLog,
    Problem as Problem,
    Snapshot as Snapshot,
    TapeVersion as TapeVersion,
    Unready as Unready,
)
from remanence.types.tool import ErrorText as ErrorText, Tool as Tool
from remanence.types.usage import (
    CallPermit as CallPermit,
    ModelPause as ModelPause,
    Purpose as Purpose,
    Usage as Usage,
    UsageTotal as UsageTotal,
)
from remanence.wire.message import Message as Message, MessageKind as MessageKind
from remanence.wire.message_rules import (
    check_message as check_message,
    check_parts as check_parts,
    measure_messages as measure_messages,
)
from remanence.wire.parts import (
    ROLES as ROLES,
    Dialect as Dialect,
    Extra as Extra,
    FilePart as FilePart,
    ImagePart as ImagePart,
    OtherPart as OtherPart,
    Part as Part,
    ResultPart as ResultPart,
    Role as Role,
    TextPart as TextPart,
    ToolCallPart as ToolCallPart,
    ToolResultPart as ToolResultPart,
    label as label,
)
