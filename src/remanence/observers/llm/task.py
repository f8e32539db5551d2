"""The task given to a model, and the limits that its notes must fit."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from remanence.notes import render_notes, usual_priority
from remanence.notes.literals import find_literals
from remanence.observers.llm.lines import LineNotes, Origin, line_text
from remanence.observers.llm.request import Question
from remanence.observers.llm.values import Piece, missing_values, text_of
from remanence.protocols import ObserveRequest, ReflectRequest
from remanence.types import DroppedLine, Note

Request: TypeAlias = ObserveRequest | ReflectRequest

ASKED_VALUES = 20
TOKENS_A_VALUE = 20

LASTING_TAGS = frozenset({"Decision", "Preference", "Issue", "NextStep"})
"""Tags of decisions, preferences and open points; facts and outcomes are dropped before them."""

CERTAIN_SHARE = 0.9
"""Lower bound on the share of its own tokens that a line adds, so that notes which cannot fit need
no rendering."""

_PRIORITIES = ("NOTE", "IMPORTANT", "CRITICAL")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The total tokens up to which lines of each kind are kept.

    `lasting` is for decisions, preferences and open points that the model did not mark as NOTE.
    """

    ordinary: int
    lasting: int
    critical: int

    def of(self, note: Note) -> int:
        """Return the limit for a note."""
        if note.priority == "CRITICAL":
            return self.critical
        is_minor = note.priority == "NOTE" and usual_priority(note.tag) != "NOTE"
        return self.lasting if note.tag in LASTING_TAGS and not is_minor else self.ordinary


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A question, and the criteria for its answer.

    `max_output_tokens` is the cap on the output limit of the question, which follows from its target.
    `shown_text` is what the model saw besides the data of the question. `known` are earlier notes,
    not to be repeated. `keep` restores the notes that must not be lost.
    """

    request: Request
    question: Question
    version: str
    origin: Origin
    pieces: tuple[Piece, ...]
    known: tuple[Note, ...] = ()
    language_rule: str
    limits: Limits
    max_output_tokens: int
    repair: bool
    shown_text: str = ""
    keep: Callable[[tuple[Note, ...]], tuple[Note, ...]] = tuple

    def fit(self, made: LineNotes, wanted: Collection[Note] = ()) -> LineNotes:
        """Drop the notes that do not fit; *wanted* ones are kept before others."""
        return trim(made, self.limits, self.request, wanted)

    def values_to_ask_for(self, notes: Sequence[Note]) -> tuple[str, ...]:
        """Return important values that are missing from *notes* and known notes, up to a limit."""
        return missing_values(
            self.pieces,
            text_of((*notes, *self.known)),
            names=self.origin.speakers,
            limit=max(1, min(ASKED_VALUES, self.request.target_tokens // TOKENS_A_VALUE)),
        )


def trim(
    made: LineNotes, limits: Limits, request: Request, wanted: Collection[Note] = ()
) -> LineNotes:
    """Drop notes until the rest fits the limits when rendered; keep at least one, however long.

    The *wanted* ones are kept first, then CRITICAL ones, then decisions, preferences and open
    points, then IMPORTANT ones. Ties go to the note with the most exact values for its length.
    """
    notes, count = made.notes, request.count_tokens

    def size(indices: Collection[int]) -> int:
        chosen = [note for index, note in enumerate(notes) if index in indices]
        return count(render_notes(chosen, request.note_format))

    if size(range(len(notes))) <= limits.ordinary:
        return made
    order = sorted(range(len(notes)), key=lambda i: (notes[i] in wanted, *_weight(notes[i])))[::-1]
    first = next((index for index in order if size({index}) <= limits.critical), order[0])
    order.remove(first)
    kept = {first}
    tokens = size(kept)
    for index in order:
        limit = limits.of(notes[index])
        if tokens + CERTAIN_SHARE * count(notes[index].text) > limit:
            continue
        if (larger := size({*kept, index})) <= limit:
            kept, tokens = {*kept, index}, larger
    over = (
        DroppedLine(
            text=line_text(note), reason="over_budget", detail=f"{note.priority} {note.tag}"
        )
        for index, note in enumerate(notes)
        if index not in kept
    )
    return LineNotes(
        tuple(note for index, note in enumerate(notes) if index in kept), (*made.dropped, *over)
    )


def _weight(note: Note) -> tuple[bool, bool, int, float]:
    return (
        note.priority == "CRITICAL",
        note.tag in LASTING_TAGS,
        _PRIORITIES.index(note.priority),
        len(find_literals(note.text)) / (1 + len(note.text)),
    )
