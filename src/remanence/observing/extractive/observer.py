"""The embedded observer: no model, no key, the same notes for the same messages."""

from collections.abc import Generator, Sequence

from remanence.observing.extractive import grouping
from remanence.observing.extractive.density import Weighted, weigh
from remanence.observing.extractive.passages import passages
from remanence.observing.extractive.questions import with_questions
from remanence.observing.extractive.selection import ranked
from remanence.observing.extractive.slicing import in_slices
from remanence.observing.notes import render_notes
from remanence.protocols import ObserveRequest
from remanence.types import Draft, Note

MADE_BY = "extractive/1"


class ExtractiveObserver:
    """Keeps the passages that tell the most per token, in telegraphic wording."""

    async def observe(self, request: ObserveRequest) -> Draft:
        return Draft(notes=await in_slices(extract(request)), made_by=MADE_BY)


def extract(request: ObserveRequest) -> Generator[None, None, tuple[Note, ...]]:
    """The notes of a request, made in small steps with a yield after each."""
    found = with_questions((yield from passages(request.messages)))
    weighted = weigh(found)
    yield
    blocks = grouping.blocks(found)
    order = yield from ranked(weighted, blocks, request.count_tokens)
    return (yield from _fill(request, weighted, blocks, order))


def _fill(
    request: ObserveRequest,
    weighted: Sequence[Weighted],
    blocks: Sequence[int],
    order: Sequence[tuple[int, int]],
) -> Generator[None, None, tuple[Note, ...]]:
    """As many of the best passages as fit, found by bisection on the rendered size."""
    low, high = 0, len(order)
    best: tuple[Note, ...] = ()
    guess = _first_guess(order, request.target_tokens)
    while low < high:
        take = min(high, max(low + 1, guess))
        chosen = sorted(index for index, _ in order[:take])
        notes = grouping.notes(
            [weighted[i].passage for i in chosen], [blocks[i] for i in chosen]
        )
        yield
        if request.count_tokens(render_notes(notes, request.note_format)) <= request.target_tokens:
            low, best = take, notes
        else:
            high = take - 1
        guess = (low + high + 1) // 2
        yield
    return best


def _first_guess(order: Sequence[tuple[int, int]], target: int) -> int:
    total = 0
    for number, (_, cost) in enumerate(order):
        total += cost + 1
        if total > target:
            return number
    return len(order)
