"""The reflector that asks a language model to condense notes."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace

from remanence.errors import ObservationRejected
from remanence.notes import render_notes
from remanence.notes.redact import redact
from remanence.observers.llm.draft import write_notes
from remanence.observers.llm.lines import format_line, in_order
from remanence.observers.llm.order import note_entries
from remanence.observers.llm.prompt import REFLECT_VERSION, Entry, Section, fill_prompt, prompt
from remanence.observers.llm.request import Question
from remanence.observers.llm.task import Limits, Task
from remanence.observers.llm.values import Piece, origin_of
from remanence.observers.llm.writer import ModelWriter, length_limit, output_limit
from remanence.protocols import ReflectRequest
from remanence.types import Draft, Note

REPAIRED_TAGS = frozenset({"Decision", "Preference"})
"""Lost values of these tags are asked for; the model may choose among the others."""

TASK_TOKENS = 300
HEADING_TOKENS = 8
"""A line break, and a share of the headings for days and topics."""

OVERRUN = 1.25


class ModelReflector(ModelWriter):
    """Condenses notes with a language model; CRITICAL ones are kept verbatim.

    Takes the same arguments as `ModelObserver`.
    """

    async def reflect(self, request: ReflectRequest) -> Draft:
        tasks = await asyncio.to_thread(
            lambda: [
                self._task(request, notes, is_follow_up=number > 0)
                for number, notes in enumerate(self._portions(request))
            ]
        )
        drafts = [await write_notes(self.model, task) for task in tasks]
        if not drafts:
            raise ObservationRejected("empty", "the segments have no notes to be condensed")
        return Draft(
            notes=tuple(note for draft in drafts for note in draft.notes),
            made_by=drafts[0].made_by,
            dropped=tuple(line for draft in drafts for line in draft.dropped),
        )

    def _portions(self, request: ReflectRequest) -> Iterator[tuple[Note, ...]]:
        """Yield the notes of the segments in portions that fit the input limit."""
        room = self._max_input_tokens - request.count_tokens(prompt("reflect")) - TASK_TOKENS
        portion: list[Note] = []
        tokens = 0
        for note in _source_notes(request):
            size = request.count_tokens(format_line(note)) + HEADING_TOKENS
            if portion and tokens + size > room:
                yield tuple(portion)
                portion, tokens = [], 0
            portion.append(note)
            tokens += size
        if portion:
            yield tuple(portion)

    def _task(
        self, request: ReflectRequest, notes: tuple[Note, ...], *, is_follow_up: bool
    ) -> Task:
        count = request.count_tokens
        text = render_notes(notes, request.note_format)
        source_tokens = count(text)
        all_tokens = sum(segment.tokens for segment in request.segments)
        share = min(1.0, source_tokens / max(1, all_tokens))
        target_tokens = max(1, int(request.target_tokens * share))
        limit_tokens = max(target_tokens, min(int(target_tokens * OVERRUN), source_tokens))
        pieces = tuple(_piece(note, notes[index + 1 :]) for index, note in enumerate(notes))
        return Task(
            request=replace(request, target_tokens=target_tokens),
            question=Question(
                purpose="reflect",
                conversation=request.conversation,
                user=request.user,
                stable=prompt("reflect"),
                sections=(Section("notes", note_entries(notes)),),
                task=fill_prompt(
                    "reflect-task",
                    source_tokens=f"{source_tokens:,}",
                    length=length_limit(target_tokens, notes=text, talk=text, count=count),
                    percent=min(100, 100 * target_tokens // max(1, source_tokens)),
                    language=self._language_rule,
                ),
                max_output_tokens=output_limit(target_tokens, self.max_output_tokens),
                is_follow_up=is_follow_up,
            ),
            version=REFLECT_VERSION,
            origin=origin_of(pieces),
            pieces=pieces,
            language_rule=self._language_rule,
            limits=Limits(ordinary=limit_tokens, lasting=limit_tokens, critical=limit_tokens),
            max_output_tokens=self.max_output_tokens,
            repair=self._repair,
            keep=lambda made: with_critical(made, notes),
        )


def with_critical(made: Sequence[Note], source: Sequence[Note]) -> tuple[Note, ...]:
    """Return the notes with each CRITICAL note of the source verbatim.

    The original replaces the model's rewording. Originals that a later note superseded are left
    out.
    """
    critical = [
        note
        for index, note in enumerate(source)
        if note.priority == "CRITICAL" and not _is_replaced(note, source[index + 1 :])
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


def _is_replaced(note: Note, later: Sequence[Note]) -> bool:
    return any(
        other.supersedes and other.supersedes.casefold() in note.text.casefold() for other in later
    )


def _source_notes(request: ReflectRequest) -> Iterator[Note]:
    """Yield the notes of the segments by message, redacted."""
    for segment in request.segments:
        for note in sorted(segment.notes, key=lambda note: note.first_seq):
            old = redact(note.supersedes) if note.supersedes else None
            yield replace(note, text=redact(note.text), supersedes=old)


def _piece(note: Note, later: Sequence[Note]) -> Piece:
    is_settled = note.tag in REPAIRED_TAGS and note.priority != "NOTE"
    return Piece(
        first_seq=note.first_seq,
        last_seq=note.last_seq,
        at=note.observed_at,
        speakers=(note.speaker,) if note.speaker else (),
        text=note.text,
        entry=Entry("", format_line(note)),
        values_required=is_settled and not _is_replaced(note, later),
    )
