"""Turning a task into a draft: ask the model, then parse, check, trim and repair its answer."""

import asyncio

from remanence.errors import ObservationRejected
from remanence.notes import day_of
from remanence.observers.llm.lines import LineNotes, line_text, read_lines
from remanence.observers.llm.order import arrange
from remanence.observers.llm.repair import repair
from remanence.observers.llm.request import NOTHING, Answer, ask, check_answer, is_word
from remanence.observers.llm.task import Task
from remanence.observers.llm.values import text_of, without_invented
from remanence.protocols import Model
from remanence.types import Draft, DroppedLine, Note


async def write_notes(model: Model, task: Task) -> Draft:
    """Return the draft that a model writes for a task.

    Raises:
        ObservationRejected: the answer is a refusal, empty, degenerate, or made up.
        ModelError: the call failed.
    """
    answer = await ask(model, task.question)
    made_by = f"{answer.model} {task.version}"
    if not answer.complete:
        return Draft(notes=(), made_by=made_by, complete=False)
    # Parsing and checking would block the event loop long enough to delay other conversations.
    result, values = await asyncio.to_thread(_read, answer, task)
    if values:
        result = await repair(model, task, result, values)
    return Draft(
        notes=result.notes, made_by=made_by, nothing=not result.notes, dropped=result.dropped
    )


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
    check_answer(answer, source_text=source_text, lines=read.formed)
    valid, invented = without_invented(read.notes, f"{source_text}\n{task.shown_text}")
    if read.notes and not valid:
        raise ObservationRejected(
            "invented", f"every line of {answer.model} names values that its source does not have"
        )
    if not valid:
        raise ObservationRejected("empty", f"{answer.model} gave no notes")
    keys = {_key(note) for note in task.known}
    new = tuple(note for note in valid if _key(note) not in keys)
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


def _key(note: Note) -> tuple[str | None, str, str | None, str]:
    """Return the key by which two notes of the same day count as equal."""
    return note.speaker, note.text.casefold(), note.supersedes, day_of(note.observed_at)
