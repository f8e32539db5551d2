"""The extractor that asks a language model."""

import re
from collections.abc import Iterator, Sequence
from importlib.resources import files
from string import Template

from remanence.errors import ObservationRejected
from remanence.observing.facts.answers import AnsweredFact, read_facts
from remanence.observing.model.asking import NOTHING, Question, ask_once, is_word
from remanence.observing.model.lines import written_line
from remanence.observing.model.prompting import Entry, Section, language_rule
from remanence.observing.secrets import scrubbed
from remanence.protocols import ExtractRequest, Model
from remanence.types import Fact, FactDraft, Note

EXTRACT_VERSION = "extract/1"
KNOWN_FACTS = 100
PORTION_CHARACTERS = 60_000
_NUMBER = re.compile(r"\d+")


class ModelFacts:
    """Facts that a language model picked out; one with a number that no note has is left out."""

    def __init__(
        self, model: Model, *, language: str = "conversation", max_output_tokens: int = 4_096
    ) -> None:
        self._model = model
        self._language_rule = language_rule(language)
        self._max_output_tokens = max_output_tokens

    @property
    def name(self) -> str:
        return f"{EXTRACT_VERSION} {self._model.name}"

    async def extract(self, request: ExtractRequest) -> tuple[FactDraft, ...]:
        known = request.known[:KNOWN_FACTS]
        return tuple(
            [
                draft
                for notes in _portions(request.notes)
                for draft in await self._asked(request, notes, known)
            ]
        )

    async def _asked(
        self, request: ExtractRequest, notes: Sequence[Note], known: Sequence[Fact]
    ) -> list[FactDraft]:
        answer = await ask_once(self._model, self._question(request, notes, known))
        found = () if is_word(answer.text, NOTHING) else read_facts(answer.text)
        if found is None:
            raise ObservationRejected(
                "malformed", f"{answer.model} answered with no list of facts: {answer.text[:200]!r}"
            )
        if not answer.complete:
            raise ObservationRejected("cut_off", f"the answer of {answer.model} was cut off")
        return [_draft(fact, notes, known) for fact in found if _is_supported(fact, notes, known)]

    def _question(
        self, request: ExtractRequest, notes: Sequence[Note], known: Sequence[Fact]
    ) -> Question:
        shown = tuple(
            Entry("", f"{number}. {scrubbed(fact.summary)}")
            for number, fact in enumerate(known, start=1)
        )
        lines = tuple(Entry("", scrubbed(written_line(note))) for note in notes)
        return Question(
            purpose="facts",
            conversation=request.conversation,
            user=request.user,
            stable=_prompt("extract"),
            sections=(Section("known facts", shown), Section("notes", lines)),
            task=Template(_prompt("extract-task")).substitute(language=self._language_rule).strip(),
            max_output_tokens=self._max_output_tokens,
        )


def _prompt(name: str) -> str:
    return files(__package__).joinpath("prompts", f"{name}.md").read_text(encoding="utf-8")


def _portions(notes: Sequence[Note]) -> Iterator[list[Note]]:
    portion: list[Note] = []
    size = 0
    for note in notes:
        size += len(note.text)
        if portion and size > PORTION_CHARACTERS:
            yield portion
            portion, size = [], len(note.text)
        portion.append(note)
    if portion:
        yield portion


def _is_supported(fact: AnsweredFact, notes: Sequence[Note], known: Sequence[Fact]) -> bool:
    """Whether each number of the summary occurs in what the model was shown."""
    numbers = set(_NUMBER.findall(fact.summary))
    if not numbers:
        return True
    shown = "\n".join([*(written_line(note) for note in notes), *(f.summary for f in known)])
    return numbers <= set(_NUMBER.findall(shown))


def _draft(fact: AnsweredFact, notes: Sequence[Note], known: Sequence[Fact]) -> FactDraft:
    note = _source(fact, notes)
    place = fact.replaces or 0
    replaced = known[place - 1] if 0 < place <= len(known) else None
    return FactDraft(
        summary=fact.summary,
        type=fact.type,
        tags=fact.tags,
        first_seq=note.first_seq if note else notes[0].first_seq,
        last_seq=note.last_seq if note else notes[-1].last_seq,
        valid_from=note.observed_at if note else None,
        replaces=replaced.id if replaced else None,
    )


def _source(fact: AnsweredFact, notes: Sequence[Note]) -> Note | None:
    """The note that the model named, or that shares most of the words."""
    for seq in fact.source:
        for note in notes:
            if note.first_seq <= seq <= note.last_seq:
                return note
    mine = set(fact.summary.casefold().split())
    best = max(notes, key=lambda note: len(mine & set(note.text.casefold().split())))
    return best if mine & set(best.text.casefold().split()) else None
