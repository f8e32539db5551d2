"""From a question to a draft: asked, read, checked, repaired, and made to fit."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from remanence.errors import ModelError, ObservationRejected
from remanence.observing.model.asking import (
    NOTHING,
    SKIP,
    Answer,
    Question,
    ask,
    ask_once,
    check_answer,
    is_word,
)
from remanence.observing.model.limits import output_limit
from remanence.observing.model.lines import Origin, in_order, read_lines
from remanence.observing.model.prompting import Entry, Section, filled
from remanence.observing.model.trimming import trimmed
from remanence.observing.model.values import (
    Piece,
    held_by,
    missing_values,
    passages,
    values_note,
    without_invented,
)
from remanence.observing.notes import render_notes
from remanence.protocols import CountTokens, Model
from remanence.types import Draft, Note, NoteFormat

ASKED_VALUES = 20
LEFT_VALUES = 5
LEAST_VALUE_CHARACTERS = 3
TOKENS_A_VALUE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A question, and what its answer is measured by.

    `known_text` is noted already, and `allows_nothing` says whether nothing may be worth noting.
    Notes above `limit_tokens` lose lines, CRITICAL ones only above `critical_limit_tokens`. `keep`
    puts in what must not be missing, whatever the model wrote.
    """

    question: Question
    version: str
    origin: Origin
    pieces: tuple[Piece, ...]
    known_text: str
    allows_nothing: bool
    language_rule: str
    target_tokens: int
    limit_tokens: int
    critical_limit_tokens: int
    note_format: NoteFormat
    count_tokens: CountTokens
    repair: bool
    keep: Callable[[tuple[Note, ...]], tuple[Note, ...]] = tuple


async def written(model: Model, task: Task) -> Draft:
    """The draft that a model gives for a task.

    Raises:
        ObservationRejected: the answer is a refusal, empty, degenerate, or made up.
        ModelError: the call failed.
    """
    answer = await ask(model, task.question)
    made_by = f"{answer.model} {task.version}"
    if not answer.complete:
        return Draft(notes=(), made_by=made_by, complete=False)
    # Reading and checking take long enough for a turn of another conversation to notice.
    notes = await asyncio.to_thread(_checked, answer, task)
    if task.repair:
        notes = await _repaired(model, task, notes)
    if not notes:
        return Draft(notes=(), made_by=made_by, nothing=True)
    return Draft(notes=await asyncio.to_thread(_fitted, task, notes), made_by=made_by)


def _checked(answer: Answer, task: Task) -> tuple[Note, ...]:
    """The notes of an answer; none if it says that nothing is worth noting."""
    if task.allows_nothing and is_word(answer.text, NOTHING):
        return ()
    read = read_lines(answer.text, task.origin)
    source_text = task.question.text
    formed = sum(line.formed for line in read)
    check_answer(answer, source_text=source_text, lines=formed)
    notes = without_invented((line.note for line in read), source_text)
    if read and not notes:
        raise ObservationRejected(
            "invented", f"every line of {answer.model} names values that its source does not have"
        )
    if not notes:
        raise ObservationRejected("empty", f"{answer.model} gave no notes")
    return task.keep(notes)


async def _repaired(model: Model, task: Task, notes: tuple[Note, ...]) -> tuple[Note, ...]:
    """The notes and lines for values that they miss, asked for in one call.

    A call that fails costs these lines only: the notes are there.
    """
    limit = max(1, min(ASKED_VALUES, task.target_tokens // TOKENS_A_VALUE))
    values = await asyncio.to_thread(_missing, task, notes, limit=limit)
    if not values:
        return notes
    question = _repair_question(task, values)
    try:
        answer = await ask_once(model, question)
    except ModelError:
        return notes
    if is_word(answer.text, SKIP):
        return notes
    whole = answer.text if answer.complete else answer.text.rpartition("\n")[0]
    lines = [line.note for line in read_lines(whole, task.origin)]
    found = [note for note in lines if any(value in note.text for value in values)]
    shown_text = f"{task.question.text}\n{question.text}"
    return in_order(dict.fromkeys([*notes, *without_invented(found, shown_text)]))


def _repair_question(task: Task, values: Sequence[str]) -> Question:
    return replace(
        task.question,
        purpose="repair",
        live=None,
        sections=(
            Section("passages", passages(task.pieces, values)),
            Section("missing values", (Entry("", "\n".join(values)),)),
        ),
        task=filled("repair", language=task.language_rule),
        max_output_tokens=output_limit(
            2 * TOKENS_A_VALUE * len(values), task.question.max_output_tokens
        ),
    )


def _fitted(task: Task, notes: tuple[Note, ...]) -> tuple[Note, ...]:
    kept = trimmed(
        notes,
        limit_tokens=task.limit_tokens,
        critical_limit_tokens=task.critical_limit_tokens,
        note_format=task.note_format,
        count=task.count_tokens,
    )
    return _with_values(task, kept)


def _with_values(task: Task, notes: tuple[Note, ...]) -> tuple[Note, ...]:
    """The notes and, as far as it fits, a line with the most telling values that they miss.

    Names and small numbers, which say nothing alone, are left to the model's judgement.
    """
    missing = _missing(task, notes, limit=ASKED_VALUES)
    values = [value for value in missing if _tells_alone(value)][:LEFT_VALUES]
    for number in range(len(values), 0, -1):
        line = values_note(task.pieces, values[:number], like=notes[-1])
        tokens = task.count_tokens(render_notes([*notes, line], task.note_format))
        if tokens <= task.target_tokens:
            return (*notes, line)
    return notes


def _missing(task: Task, notes: Sequence[Note], *, limit: int) -> tuple[str, ...]:
    return missing_values(
        task.pieces,
        f"{held_by(notes)}\n{task.known_text}",
        names=task.origin.speakers,
        limit=limit,
    )


def _tells_alone(value: str) -> bool:
    return len(value) >= LEAST_VALUE_CHARACTERS and not value.replace(" ", "").isalpha()
