"""What a model is asked for, and how its notes are made to fit."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from remanence.observers.llm.lines import Origin, line_text
from remanence.observers.llm.request import Question
from remanence.observers.llm.trim import Limits, trim
from remanence.observers.llm.values import Piece, missing_values, text_of
from remanence.protocols import CountTokens
from remanence.types import DroppedLine, Note, NoteFormat

ASKED_VALUES = 20
TOKENS_A_VALUE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A question, and what its answer is measured by.

    `shown_text` is what the model was shown, beside the question's own data. `known` is noted
    already, and `allows_nothing` says whether nothing may be worth noting. `keep` puts in what must
    not be missing, whatever the model wrote.
    """

    question: Question
    version: str
    origin: Origin
    pieces: tuple[Piece, ...]
    known: tuple[Note, ...]
    allows_nothing: bool
    language_rule: str
    target_tokens: int
    limits: Limits
    note_format: NoteFormat
    count_tokens: CountTokens
    repair: bool
    shown_text: str = ""
    keep: Callable[[tuple[Note, ...]], tuple[Note, ...]] = tuple


class LineNotes(NamedTuple):
    """Notes that were made of an answer, and its lines that became none."""

    notes: tuple[Note, ...]
    dropped: tuple[DroppedLine, ...]


def fit(task: Task, made: LineNotes, wanted: Collection[Note] = ()) -> LineNotes:
    """The notes that fit, the *wanted* ones before others."""
    kept, dropped = trim(
        made.notes,
        task.limits,
        note_format=task.note_format,
        count=task.count_tokens,
        wanted=wanted,
    )
    over = (
        DroppedLine(
            text=line_text(note), reason="over_budget", detail=f"{note.priority} {note.tag}"
        )
        for note in dropped
    )
    return LineNotes(kept, (*made.dropped, *over))


def values_to_ask_for(task: Task, notes: Sequence[Note]) -> tuple[str, ...]:
    """What matters and is neither in the notes nor known, as much as there is room for."""
    return missing_values(
        task.pieces,
        text_of((*notes, *task.known)),
        names=task.origin.speakers,
        limit=max(1, min(ASKED_VALUES, task.target_tokens // TOKENS_A_VALUE)),
    )
