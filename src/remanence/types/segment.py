"""Notes, and the segments of the tape that they represent."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, NamedTuple, TypeAlias

Priority: TypeAlias = Literal["CRITICAL", "IMPORTANT", "NOTE"]
Tag: TypeAlias = Literal["Decision", "Preference", "Fact", "Issue", "NextStep", "Outcome"]
NoteFormat: TypeAlias = Literal["compact", "dated_priority", "tagged", "prose"]
DropReason: TypeAlias = Literal[
    "introduction", "closing", "repeated", "known", "invented", "reworded", "unasked", "over_budget"
]


STAND_IN: Final = "stand-in/"
"""Prefix of `made_by` for notes that the embedded observer made in place of the configured one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One line of a segment, made from the messages `first_seq..last_seq`.

    `observed_at` is the time of the message, with a time zone; if an observer leaves it out, contexts
    show no day for the note, and its first message dates it otherwise. `referenced_at` is the date
    of the event (ISO 8601, or coarser, such as `2023-05`), `supersedes` the earlier value that it
    replaces.
    """

    text: str
    first_seq: int
    last_seq: int
    observed_at: datetime | None = None
    referenced_at: str | None = None
    priority: Priority = "NOTE"
    tag: Tag = "Fact"
    speaker: str | None = None
    topic: str | None = None
    supersedes: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedLine:
    """A line of a model's answer that did not become a note, or its `(was: …)` alone, and the reason.

    `introduction`, `closing`: it only introduces or follows the other lines. `repeated`, `known`: it
    repeats another line of the answer, or a note that the model was shown. `invented`: it has a
    value or a message number, given in `detail`, that is not in the source. `reworded`: it
    paraphrases a CRITICAL note, which is kept verbatim. `unasked`: it was requested for missing
    values, but has none of them. `over_budget`: there was no room for a line of the priority and tag
    in `detail`.
    """

    text: str
    reason: DropReason
    detail: str = ""


class FailedStretch(NamedTuple):
    """Messages that could not be observed, with a short reason code and the error's text."""

    first_seq: int
    last_seq: int
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The output of an observer or a reflector; `made_by` names it and its version.

    `nothing` means that the source has nothing worth noting, which is not a failure; `complete`
    is False if the answer was cut off. `dropped` are lines of the answer that did not become notes.
    """

    notes: tuple[Note, ...]
    made_by: str
    nothing: bool = False
    complete: bool = True
    dropped: tuple[DroppedLine, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A contiguous range of the tape with the text that replaces it in a context.

    Generation 0 is an observation, made from messages; generation g is a reflection, made from
    segments of generation g-1 (the top generation from its own). `source_tokens` counts the
    messages of the range, `sum_tokens` the tape up to `last_seq`. `lost` lists literals of the
    source that are missing from the text, at most 5,000 and then how many others there are;
    `dropped` lists lines of a model's answer that did not become notes. `version` is the log version
    that made the segment live, `superseded` the one that replaced it; `notes_version` numbers all
    segments of a conversation from 1 on. `failed` lists stretches that have no notes because every
    attempt to observe them failed.
    """

    id: str
    generation: int
    first_seq: int
    last_seq: int
    text: str
    notes: tuple[Note, ...]
    tokens: int
    source_tokens: int
    sum_tokens: int
    lost: tuple[str, ...]
    made_by: str
    created_at: datetime
    version: int = 0
    superseded: int | None = None
    dropped: tuple[DroppedLine, ...] = ()
    failed: tuple[FailedStretch, ...] = ()
    notes_version: int = 0

    @property
    def live(self) -> bool:
        """True if no later segment has replaced this one."""
        return self.superseded is None

    @property
    def stands_in(self) -> bool:
        """True if the configured observer has yet to replace these notes."""
        return self.made_by.startswith(STAND_IN)
