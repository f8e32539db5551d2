"""The embedded observer: no model, no key, the same notes for the same messages."""

import asyncio
from collections.abc import Generator
from typing import NamedTuple

from remanence.observers.extractive.corrections import corrections_of
from remanence.observers.extractive.features import weigh
from remanence.observers.extractive.filtering import drop_uninformative
from remanence.observers.extractive.note_lines import line_builder, stretches
from remanence.observers.extractive.passage import Passage
from remanence.observers.extractive.passages import passages
from remanence.observers.extractive.selection import Candidate, Selection, select
from remanence.observers.learned.preload import load_files
from remanence.pacing import compute_in_slices
from remanence.protocols import Compute, ObserveRequest
from remanence.types import Draft, Note

MADE_BY = "extractive/1"


class ExtractiveObserver:
    """Keeps the most informative passages per token.

    A draft without notes is final: nothing is worth a note, or none fits the target, and another
    attempt would return the same.
    """

    def __init__(self, compute: Compute = compute_in_slices) -> None:
        self._compute = compute

    async def observe(self, request: ObserveRequest) -> Draft:
        await asyncio.to_thread(load_files)
        notes = await self._compute(extract, request)
        return Draft(notes=notes, made_by=MADE_BY, nothing=not notes)


class Choice(NamedTuple):
    """The passages of a request, those with content as candidates, and the selection of these."""

    passages: tuple[Passage, ...]
    found: tuple[Passage, ...]
    candidates: tuple[Candidate, ...]
    selection: Selection


def extract(request: ObserveRequest) -> Generator[None, None, tuple[Note, ...]]:
    """Return the notes of a request; yields after each small step."""
    choice = yield from choose(request)
    return choice.selection.notes


def choose(request: ObserveRequest) -> Generator[None, None, Choice]:
    """Return the choice among the passages of a request; yields after each small step."""
    clauses = yield from passages(request.messages, request.known)
    found = yield from drop_uninformative(clauses, request.known)
    numbers = stretches(found)
    yield
    corrections = yield from corrections_of(found)
    candidates = yield from weigh(found, numbers, corrections)
    selection = yield from select(candidates, request, line_builder(found, numbers))
    return Choice(clauses, found, candidates, selection)
