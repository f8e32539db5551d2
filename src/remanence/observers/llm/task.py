"""The task given to a model, and the limits that its notes must fit."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from remanence.observers.llm.lines import LineNotes, Origin, line_text
from remanence.observers.llm.request import Question
from remanence.observers.llm.trim import Limits, trim
from remanence.observers.llm.values import Piece, missing_values, text_of
from remanence.protocols import ObserveRequest, ReflectRequest
from remanence.types import DroppedLine, Note

ASKED_VALUES = 20
TOKENS_A_VALUE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A question, and the criteria for its answer.

    `shown_text` is what the model saw besides the data of the question. `known` are earlier notes,
    not to be repeated. `keep` restores the notes that must not be lost.
    """

    request: ObserveRequest | ReflectRequest
    question: Question
    version: str
    origin: Origin
    pieces: tuple[Piece, ...]
    known: tuple[Note, ...] = ()
    language_rule: str
    limits: Limits
    repair: bool
    shown_text: str = ""
    keep: Callable[[tuple[Note, ...]], tuple[Note, ...]] = tuple


def fit(task: Task, made: LineNotes, wanted: Collection[Note] = ()) -> LineNotes:
    """Drop the notes that do not fit; *wanted* ones are kept before others."""
    kept, dropped = trim(
        made.notes,
        task.limits,
        note_format=task.request.note_format,
        count=task.request.count_tokens,
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
    """Return important values that are missing from *notes* and known notes, up to a limit."""
    return missing_values(
        task.pieces,
        text_of((*notes, *task.known)),
        names=task.origin.speakers,
        limit=max(1, min(ASKED_VALUES, task.request.target_tokens // TOKENS_A_VALUE)),
    )
