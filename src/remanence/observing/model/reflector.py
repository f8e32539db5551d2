"""The reflector that asks a language model to condense notes."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from remanence.errors import ObservationRejected
from remanence.observing.model.asking import Question
from remanence.observing.model.limits import in_words, output_limit
from remanence.observing.model.lines import Origin, in_order, written_line
from remanence.observing.model.prompting import (
    REFLECT_VERSION,
    Entry,
    Section,
    filled,
    prompt,
)
from remanence.observing.model.values import Piece
from remanence.observing.model.writer import ModelWriter
from remanence.observing.model.writing import Task, written
from remanence.observing.notes import parse_notes, render_notes
from remanence.observing.secrets import scrubbed
from remanence.protocols import ReflectRequest
from remanence.types import Draft, Note

TASK_TOKENS = 300
OVERRUN = 1.25


class ModelReflector(ModelWriter):
    """Notes that a language model condensed; CRITICAL ones stay word for word.

    The arguments are those of `ModelObserver`.
    """

    async def reflect(self, request: ReflectRequest) -> Draft:
        tasks = await asyncio.to_thread(self._tasks, request)
        drafts = [await written(self._model, task) for task in tasks]
        if not drafts:
            raise ObservationRejected("empty", "the segments have no notes to be condensed")
        return Draft(
            notes=tuple(note for draft in drafts for note in draft.notes),
            made_by=drafts[0].made_by,
            complete=all(draft.complete for draft in drafts),
        )

    def _tasks(self, request: ReflectRequest) -> list[Task]:
        return [self._task(request, notes) for notes in self._portions(request)]

    def _portions(self, request: ReflectRequest) -> Iterator[tuple[Note, ...]]:
        """The notes of the segments, in as many portions as the input limit asks for."""
        room = self._max_input_tokens - request.count_tokens(prompt("reflect")) - TASK_TOKENS
        portion: list[Note] = []
        tokens = 0
        for note in _source_notes(request):
            size = request.count_tokens(written_line(note)) + 1
            if portion and tokens + size > room:
                yield tuple(portion)
                portion, tokens = [], 0
            portion.append(note)
            tokens += size
        if portion:
            yield tuple(portion)

    def _task(self, request: ReflectRequest, notes: tuple[Note, ...]) -> Task:
        count = request.count_tokens
        source_tokens = count(render_notes(notes, request.note_format))
        all_tokens = sum(segment.tokens for segment in request.segments)
        share = min(1.0, source_tokens / max(1, all_tokens))
        target_tokens = max(1, int(request.target_tokens * share))
        limit_tokens = max(target_tokens, min(int(target_tokens * OVERRUN), source_tokens))
        pieces = tuple(_piece(note, notes[index + 1 :]) for index, note in enumerate(notes))
        return Task(
            question=Question(
                purpose="reflect",
                conversation=request.conversation,
                user=request.user,
                stable=prompt("reflect"),
                sections=(Section("notes", tuple(piece.entry for piece in pieces)),),
                task=filled(
                    "reflect-task",
                    source_tokens=f"{source_tokens:,}",
                    target_tokens=f"{target_tokens:,}",
                    target_words=f"{in_words(target_tokens):,}",
                    percent=min(100, 100 * target_tokens // max(1, source_tokens)),
                    language=self._language_rule,
                ),
                max_output_tokens=output_limit(target_tokens, self._max_output_tokens),
            ),
            version=REFLECT_VERSION,
            origin=_origin(notes),
            pieces=pieces,
            known_text="",
            allows_nothing=False,
            language_rule=self._language_rule,
            target_tokens=target_tokens,
            limit_tokens=limit_tokens,
            critical_limit_tokens=limit_tokens,
            note_format=request.note_format,
            count_tokens=count,
            repair=self._repair,
            keep=lambda made: with_critical(made, notes),
        )


def with_critical(made: Sequence[Note], source: Sequence[Note]) -> tuple[Note, ...]:
    """The notes in which each CRITICAL note of the source stands word for word.

    One that the model worded anew gives way to it. Left out are those that a later note replaced.
    """
    critical = [
        note
        for index, note in enumerate(source)
        if note.priority == "CRITICAL" and not _replaced(note, source[index + 1 :])
    ]
    missing = [note for note in critical if not any(note.text in other.text for other in made)]
    ranges = {(note.first_seq, note.last_seq) for note in missing}
    texts = [note.text for note in critical]
    kept = [
        note
        for note in made
        if note.priority != "CRITICAL"
        or (note.first_seq, note.last_seq) not in ranges
        or any(text in note.text for text in texts)
    ]
    return in_order([*kept, *missing])


def _replaced(note: Note, later: Sequence[Note]) -> bool:
    return any(
        other.supersedes and other.supersedes.casefold() in note.text.casefold() for other in later
    )


def _source_notes(request: ReflectRequest) -> Iterator[Note]:
    """The notes of the segments, without secrets; of a segment without notes, its lines."""
    for segment in request.segments:
        notes = segment.notes or parse_notes(
            segment.text,
            request.note_format,
            first_seq=segment.first_seq,
            last_seq=segment.last_seq,
        )
        yield from (_scrubbed(note) for note in notes)


def _scrubbed(note: Note) -> Note:
    old = scrubbed(note.supersedes) if note.supersedes else None
    return replace(note, text=scrubbed(note.text), supersedes=old)


def _piece(note: Note, later: Sequence[Note]) -> Piece:
    return Piece(
        first_seq=note.first_seq,
        last_seq=note.last_seq,
        text=note.text,
        entry=Entry("", written_line(note)),
        telling=note.priority != "NOTE" and not _replaced(note, later),
    )


def _origin(notes: Sequence[Note]) -> Origin:
    names = dict.fromkeys(note.speaker for note in notes if note.speaker)
    times: dict[int, datetime] = {}
    for note in notes:
        if note.observed_at is not None:
            times.setdefault(note.first_seq, note.observed_at)
            times.setdefault(note.last_seq, note.observed_at)
    return Origin(
        first_seq=notes[0].first_seq,
        last_seq=max(note.last_seq for note in notes),
        times=times,
        speakers={name.casefold(): name for name in names},
    )
