"""The embedded reflector: the most informative clauses per token across all segments."""

import asyncio
import re
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from remanence.errors import ObservationRejected
from remanence.languages.vocabulary import Vocabulary, vocabulary_of
from remanence.observers.extractive.corrections import find_corrections
from remanence.observers.extractive.features import term_values
from remanence.observers.extractive.passage import (
    AGENT,
    MAX_LABEL_WORDS,
    TOOL,
    USER,
    is_label,
)
from remanence.observers.extractive.render import Word, terms, words
from remanence.observers.extractive.repetition import Statement, statement
from remanence.observers.extractive.selection import Candidate, select
from remanence.observers.extractive.sentence_scores import change_of
from remanence.observers.learned.features import Line
from remanence.observers.learned.preload import load_files
from remanence.observers.learned.score import scorer
from remanence.pacing import compute_in_slices
from remanence.protocols import Compute, ReflectRequest
from remanence.types import Draft, Note, Priority

MADE_BY = "extractive/1"
_PRIORITY: dict[Priority, float] = {"CRITICAL": 1.3, "IMPORTANT": 1.3, "NOTE": 1.0}
_LEARNED = {"worth": 1.2, "personal": 1.35}
"""Factor per unit by which a score is above its cutoff."""
_MAX_OVER = 3.0
_QUOTED, _SAID_BY_AGENT = 0.6, 0.8
_LAST = 1e-6
"""Factor of a tool's output, which takes what room all others leave."""


class ExtractiveReflector:
    """Keeps the densest clauses of all segments, verbatim and in chronological order.

    CRITICAL notes are chosen first and kept whole; superseded notes are dropped.
    """

    def __init__(self, compute: Compute = compute_in_slices) -> None:
        self._compute = compute

    async def reflect(self, request: ReflectRequest) -> Draft:
        await asyncio.to_thread(load_files)
        notes = await self._compute(condense, request)
        if not notes and any(segment.notes for segment in request.segments):
            raise ObservationRejected(
                "empty",
                f"no note fits into the {request.target_tokens:,} tokens of a reflection: raise "
                "reflect_tokens",
            )
        return Draft(notes=notes, made_by=MADE_BY)


class _Clause(NamedTuple):
    """A clause of a note; one that is CRITICAL or begins with a label is one clause."""

    note: int
    text: str
    words: tuple[Word, ...]
    vocabulary: Vocabulary


def condense(request: ReflectRequest) -> Generator[None, None, tuple[Note, ...]]:
    """Return the notes of a request; yields after each small step."""
    made = [note for segment in request.segments for note in segment.notes]
    said: list[Statement] = []
    for note in made:
        said.append(_statement(note.speaker, note.text))
        yield
    live = yield from _live(made, said)
    clauses: list[_Clause] = []
    for index in live:
        clauses.extend(_clauses(index, made[index]))
        yield
    candidates = yield from _candidates(clauses, made)

    def build(indices: Sequence[int]) -> Generator[None, None, tuple[Note, ...]]:
        yield
        texts: dict[int, list[str]] = {}
        for index in indices:
            texts.setdefault(clauses[index].note, []).append(clauses[index].text)
        return tuple(replace(made[i], text="; ".join(kept)) for i, kept in texts.items())

    return (yield from select(candidates, request, build)).notes


def _statement(speaker: str | None, text: str) -> Statement:
    vocabulary = vocabulary_of(text)
    said = tuple(words(text, vocabulary, opens=False))
    small = vocabulary.function_words
    content = (word for word in said if word.key not in small)
    return statement(speaker, said, content, vocabulary)


def _live(made: Sequence[Note], said: Sequence[Statement]) -> Generator[None, None, list[int]]:
    """Return the indices of notes that repeat no earlier note and that no later one supersedes.

    What was said again after something else was said of it is no repetition.
    """
    live: list[int] = []
    superseded = [
        (index, _statement(None, note.supersedes).terms)
        for index, note in enumerate(made)
        if note.supersedes
    ]
    holders: dict[str, list[int]] = {}
    for index, own in enumerate(said):
        yield
        if any(
            later > index and old and old <= own.terms and own.terms & said[later].terms - old
            for later, old in superseded
        ):
            continue
        # Only a note with the rarest of the terms may have all.
        rarest = min((holders.get(term, []) for term in own.terms), key=len, default=[])
        alike = [other for other in rarest if own.repeats(said[other])]
        if alike and not own.is_changed_by(said[i] for i in live if i > alike[-1]):
            continue
        live.append(index)
        for term in own.terms:
            holders.setdefault(term, []).append(index)
    return live


_LABEL = re.compile(rf"((?:[^\s:;]+ ){{0,{MAX_LABEL_WORDS - 1}}}[^\s:;]+): ")
"""Beginning of a note whose clauses may all depend on it: "Never do: push; delete rows"."""
_JOINT = re.compile(r"; (?![^“]*”)")
"""A joint between clauses of a note; none is within a quotation, such as a question."""
_FULL_DATE = re.compile(r"\b\d{1,2} [A-Z][a-z]{2,8} \d{4}\b|\b[A-Z][a-z]{2,8} \d{1,2},? \d{4}\b")


def _clauses(index: int, note: Note) -> Iterator[_Clause]:
    vocabulary = vocabulary_of(note.text)
    label = _LABEL.match(note.text)
    has_label = label is not None and is_label(label[1].lower().split(), vocabulary)
    is_one = note.priority == "CRITICAL" or has_label
    texts = [note.text] if is_one else _JOINT.split(note.text)
    for text in texts:
        # Telegraphic clauses begin with their subject: a capital there is a name's.
        yield _Clause(index, text, tuple(_words_with_dates(text, vocabulary)), vocabulary)


def _words_with_dates(text: str, vocabulary: Vocabulary) -> Iterator[Word]:
    """Yield the words of a clause, a full date as one word."""
    end = 0
    for match in _FULL_DATE.finditer(text):
        yield from words(text[end : match.start()], vocabulary, opens=False)
        yield Word(match[0], match[0].lower(), is_date=True)
        end = match.end()
    yield from words(text[end:], vocabulary, opens=False)


def _is_output(note: Note) -> bool:
    return (note.speaker or "").partition(" ")[0] == TOOL


def _is_with_agent(made: Sequence[Note]) -> bool:
    """Return whether people talk with an agent, which may have said nothing worth a note.

    It or its tools have a note, a user has one that is CRITICAL, or only a user without a name has.
    """
    speaks = any(n.speaker == AGENT or _is_output(n) or n.priority == "CRITICAL" for n in made)
    return speaks or all(n.speaker == USER for n in made)


def _factor(note: Note, text: str, *, with_agent: bool) -> float:
    """Return the factor of a clause: by the learned scores in a talk with an agent."""
    factor = _PRIORITY[note.priority]
    if _is_output(note):
        return factor * _LAST
    if not with_agent:
        return factor
    scores = scorer().score(Line(text, "assistant" if note.speaker == AGENT else "user"))
    for head, weight in _LEARNED.items():
        factor *= weight ** max(-_MAX_OVER, min(_MAX_OVER, scorer().over(scores, head)))
    if scorer().over(scores, "quoted") >= 0:
        factor *= _QUOTED
    return factor * (_SAID_BY_AGENT if note.speaker == AGENT else 1)


def _change(note: Note, text: str) -> float | None:
    """Return the score of a change of what a user says."""
    is_said = note.speaker != AGENT and not _is_output(note)
    return change_of(scorer().score(Line(text, "user"))) if is_said else None


def _candidates(
    clauses: Sequence[_Clause], made: Sequence[Note]
) -> Generator[None, None, tuple[Candidate, ...]]:
    counts: Counter[str] = Counter()
    for clause in clauses:
        counts.update({term for word in clause.words for term in terms(word.key)})
        yield
    with_agent = _is_with_agent(made)
    changes = [
        _change(made[clause.note], clause.text) if with_agent else None for clause in clauses
    ]
    corrections = yield from find_corrections([clause.text for clause in clauses], changes)
    days: dict[str, int] = {}
    candidates: list[Candidate] = []
    for clause, later in zip(clauses, corrections, strict=True):
        note = made[clause.note]
        day = note.observed_at.date().isoformat() if note.observed_at else ""
        candidates.append(
            Candidate(
                text=clause.text,
                terms=term_values(clause.words, clause.vocabulary, counts),
                factor=_factor(note, clause.text, with_agent=with_agent),
                stretch=days.setdefault(day, len(days)),
                person=None if _is_output(note) or note.speaker == AGENT else note.speaker,
                corrections=later,
                is_standing=note.priority == "CRITICAL",
                is_output=_is_output(note),
            )
        )
        yield
    return tuple(candidates)
