"""Turning a task into a draft: ask the model, then parse, check, trim and repair its answer."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from remanence.errors import ModelError, ObservationRejected
from remanence.notes import day_of, render_notes
from remanence.notes.terms import terms
from remanence.observers.llm.lines import LineNotes, format_line, line_text, read_lines
from remanence.observers.llm.order import arrange
from remanence.observers.llm.prompt import Entry, Section, fill_prompt
from remanence.observers.llm.request import (
    NOTHING,
    SKIP,
    Answer,
    Question,
    ask,
    ask_next,
    ask_once,
    check_answer,
    is_word,
)
from remanence.observers.llm.task import TOKENS_A_VALUE, Task
from remanence.observers.llm.values import Piece, passages, text_of, values_note, without_invented
from remanence.observers.llm.writer import output_limit
from remanence.protocols import Model
from remanence.types import Draft, DroppedLine, Note

ADDED_VALUES = 5
SAID_SHARE = 0.5
"""The share of a repeated note's words that its messages need to have if they say it again."""


async def write_notes(model: Model, task: Task) -> Draft:
    """Return the draft that a model writes for a task, or the next one of a chain.

    Raises:
        ObservationRejected: the answer has no line in the format, or is cut off, empty, degenerate, or
            made up.
        ModelError: the call failed.
    """
    answer = await ask(model, task.question)
    try:
        return await _draft(model, task, answer)
    except ObservationRejected as rejected:
        again = replace(task, question=replace(task.question, is_follow_up=True))
        return await ask_next(
            model, rejected, answer.model, lambda other: write_notes(other, again)
        )


async def _draft(model: Model, task: Task, answer: Answer) -> Draft:
    """Return the draft of an answer, repaired by another call if it lacks values."""
    if not answer.complete:
        raise ObservationRejected(
            "cut_off", f"the answer of {answer.model} was cut off at {_cut_off(task)}"
        )
    made_by = f"{answer.model} {task.version}"
    # Parsing and checking would block the event loop long enough to delay other conversations.
    result, values = await asyncio.to_thread(_read, answer, task)
    if values:
        result = await _repair(model, task, result, values)
    return Draft(
        notes=result.notes, made_by=made_by, nothing=not result.notes, dropped=result.dropped
    )


def _cut_off(task: Task) -> str:
    """Return where an answer was cut off, with the remedy."""
    limit = task.question.max_output_tokens
    if limit == task.max_output_tokens:
        return f"max_output_tokens={limit:,}: raise it"
    return "more tokens than its notes need: use a model that keeps to the length asked for"


def _read(answer: Answer, task: Task) -> tuple[LineNotes, tuple[str, ...]]:
    """Return the notes of an answer that fit, and the important values that they lack.

    A line of the answer that has such a value is kept before others, which saves a repair call.
    """
    checked = _check(answer, task)
    wanted: list[Note] = []
    while True:
        result = task.fit(checked, wanted)
        values = task.values_to_ask_for(result.notes)
        more = [
            note
            for note in checked.notes
            if note not in (*result.notes, *wanted)
            and any(value in text_of([note]) for value in values)
        ]
        if not more:
            return result, values
        wanted += more


def _check(answer: Answer, task: Task) -> LineNotes:
    """Return the notes of an answer; none if it says that nothing is worth noting."""
    if task.question.purpose == "observe" and is_word(answer.text, NOTHING):
        return LineNotes((), ())
    read = read_lines(answer.text, task.origin)
    source_text = task.question.text
    check_answer(answer, source_text=source_text)
    if read.notes and not read.formed:
        raise ObservationRejected(
            "malformed", f"{answer.model} did not answer with notes: {answer.text[:200]!r}"
        )
    valid, invented = without_invented(read.notes, f"{source_text}\n{task.shown_text}")
    if read.notes and not valid:
        raise ObservationRejected(
            "invented", f"every line of {answer.model} names values that its source does not have"
        )
    if not valid:
        raise ObservationRejected("empty", f"{answer.model} gave no notes")
    known_days = _days_of_lines(task.known)
    new = tuple(note for note in valid if not _is_known(note, known_days, task.pieces))
    kept = task.keep(new)
    known = (note for note in valid if note not in new)
    reworded = (note for note in new if note not in kept)
    dropped = (
        *read.dropped,
        *invented,
        *(DroppedLine(text=line_text(note), reason="known") for note in known),
        *(DroppedLine(text=line_text(note), reason="reworded") for note in reworded),
    )
    return LineNotes(arrange(kept, task.request.note_format), dropped)


def _days_of_lines(notes: Iterable[Note]) -> Mapping[str, Collection[str]]:
    days: dict[str, set[str]] = {}
    for note in notes:
        days.setdefault(line_text(note).casefold(), set()).add(day_of(note.observed_at))
    return days


def _is_known(
    note: Note, known_days: Mapping[str, Collection[str]], pieces: Sequence[Piece]
) -> bool:
    """Return whether a note repeats a known one, and not because it was said again on another day."""
    days = known_days.get(line_text(note).casefold())
    if days is None or day_of(note.observed_at) in days:
        return days is not None
    texts = [
        p.text for p in pieces if note.first_seq <= p.last_seq and p.first_seq <= note.last_seq
    ]
    named = terms(note.text)
    return len(named & terms("\n".join(texts))) < max(1, SAID_SHARE * len(named))


async def _repair(model: Model, task: Task, made: LineNotes, values: Sequence[str]) -> LineNotes:
    """Return the notes with lines for *values*, asked for in one call.

    If the call fails or is of no use, or repair is turned off, one line that lists the values is
    added instead.
    """
    if not task.repair:
        return await asyncio.to_thread(_add_values, task, made, values)
    question = _repair_question(task, made.notes, values)
    try:
        answer = await ask_once(model, question)
    except ModelError:
        return await asyncio.to_thread(_add_values, task, made, values)
    if is_word(answer.text, SKIP) or is_word(answer.text, NOTHING):
        return made
    return await asyncio.to_thread(_add_lines, task, made, values, answer, question)


def _add_lines(
    task: Task, made: LineNotes, values: Sequence[str], answer: Answer, question: Question
) -> LineNotes:
    """Return the notes with those lines of the answer that have one of the values."""
    whole = answer.text if answer.complete else answer.text.rpartition("\n")[0]
    read = read_lines(whole, task.origin)
    asked = [note for note in read.notes if any(value in note.text for value in values)]
    others = (
        DroppedLine(text=line_text(note), reason="unasked")
        for note in read.notes
        if note not in asked
    )
    found, invented = without_invented(
        asked, f"{task.question.text}\n{task.shown_text}\n{question.text}"
    )
    dropped = (*made.dropped, *read.dropped, *others, *invented)
    if not found:
        return _add_values(task, LineNotes(made.notes, dropped), values)
    added = [replace(note, topic=None) for note in found]
    notes = arrange(tuple(dict.fromkeys([*made.notes, *added])), task.request.note_format)
    return task.fit(LineNotes(notes, dropped), wanted=added)


def _repair_question(task: Task, notes: Sequence[Note], values: Sequence[str]) -> Question:
    around = passages(task.pieces, values)
    places = [piece for piece in task.pieces if any(value in piece.text for value in values)]
    beside = [
        note
        for note in notes
        if any(
            note.first_seq <= piece.last_seq and piece.first_seq <= note.last_seq
            for piece in places
        )
    ]
    return replace(
        task.question,
        purpose="repair",
        live=None,
        live_text="",
        is_follow_up=True,
        sections=(
            Section("passages", around),
            Section("notes", tuple(Entry("", format_line(note)) for note in beside)),
            Section("missing values", (Entry("", "\n".join(values)),)),
        ),
        task=fill_prompt("repair", language=task.language_rule),
        max_output_tokens=output_limit(
            2 * TOKENS_A_VALUE * len(values), task.question.max_output_tokens
        ),
    )


def _add_values(task: Task, made: LineNotes, values: Sequence[str]) -> LineNotes:
    """Return the notes with a line of the first values, as many as fit.

    If it is the only line, it may be as long as a CRITICAL one.
    """
    last_at = made.notes[-1].observed_at if made.notes else None
    limit = task.limits.ordinary if made.notes else task.limits.critical
    for number in range(min(ADDED_VALUES, len(values)), 0, -1):
        line = values_note(task.pieces, values[:number], at=last_at)
        tokens = task.request.count_tokens(
            render_notes([*made.notes, line], task.request.note_format)
        )
        if tokens <= limit:
            return made._replace(notes=(*made.notes, line))
    return made
