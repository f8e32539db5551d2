"""The values that everything else speaks of."""

from remanence.types.budget import Budget, BudgetLevel, BudgetScope, BudgetState
from remanence.types.diagnostics import Diagnostics, ObservationLog
from remanence.types.fact import Fact, FactChanges, FactDraft, FactsPin, FactType, Owner
from remanence.types.message import Message, MessageKind, check_message
from remanence.types.parts import (
    ROLES,
    FilePart,
    ImagePart,
    OtherPart,
    Part,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from remanence.types.recall import Hit, HitKind, RecallFilter, VectorItem, VectorTask
from remanence.types.segment import (
    Draft,
    DroppedLine,
    DropReason,
    Note,
    NoteFormat,
    Priority,
    Segment,
    Tag,
)
from remanence.types.state import (
    Appended,
    ConversationRef,
    Failure,
    LogEntry,
    LogKind,
    MemoryState,
    Problem,
    Snapshot,
)
from remanence.types.tool import Tool
from remanence.types.usage import Purpose, Usage, UsageTotal

__all__ = [
    "ROLES",
    "Appended",
    "Budget",
    "BudgetLevel",
    "BudgetScope",
    "BudgetState",
    "ConversationRef",
    "Diagnostics",
    "Draft",
    "DropReason",
    "DroppedLine",
    "Fact",
    "FactChanges",
    "FactDraft",
    "FactType",
    "FactsPin",
    "Failure",
    "FilePart",
    "Hit",
    "HitKind",
    "ImagePart",
    "LogEntry",
    "LogKind",
    "MemoryState",
    "Message",
    "MessageKind",
    "Note",
    "NoteFormat",
    "ObservationLog",
    "OtherPart",
    "Owner",
    "Part",
    "Priority",
    "Problem",
    "Purpose",
    "RecallFilter",
    "Role",
    "Segment",
    "Snapshot",
    "Tag",
    "TextPart",
    "Tool",
    "ToolCallPart",
    "ToolResultPart",
    "Usage",
    "UsageTotal",
    "VectorItem",
    "VectorTask",
    "check_message",
]
