"""The embedded reflector: the notes that tell the most per token, of all segments together."""

import heapq
from collections import Counter
from collections.abc import Generator, Sequence

from remanence.observing.extractive.slicing import in_slices
from remanence.observing.extractive.wording import terms
from remanence.observing.notes import render_notes
from remanence.protocols import ReflectRequest
from remanence.types import Draft, Note

MADE_BY = "extractive/1"


class ExtractiveReflector:
    """Keeps the globally densest notes, word for word and in order of time."""

    async def reflect(self, request: ReflectRequest) -> Draft:
        return Draft(notes=await in_slices(condense(request)), made_by=MADE_BY)


def condense(request: ReflectRequest) -> Generator[None, None, tuple[Note, ...]]:
    """The notes of a request, made in small steps with a yield after each."""
    notes = tuple(note for segment in request.segments for note in segment.notes)
    order = yield from _ranked(notes)
    low, high = 0, len(order)
    best: tuple[Note, ...] = ()
    while low < high:
        take = (low + high + 1) // 2
        kept = tuple(notes[i] for i in sorted(order[:take]))
        yield
        if request.count_tokens(render_notes(kept, request.note_format)) <= request.target_tokens:
            low, best = take, kept
        else:
            high = take - 1
        yield
    return best


def _ranked(notes: Sequence[Note]) -> Generator[None, None, list[int]]:
    bags = [Counter(t for w in note.text.lower().split() for t in terms(w)) for note in notes]
    counts = Counter(term for bag in bags for term in bag)
    seen: Counter[str] = Counter()

    def density(index: int) -> float:
        gain = sum(1 / (1 + counts[t]) ** 0.5 * 0.5 ** seen[t] for t in bags[index])
        return gain / (3 + sum(bags[index].values()))

    heap = [(notes[i].priority != "CRITICAL", -density(i), i) for i in range(len(notes))]
    heapq.heapify(heap)
    order: list[int] = []
    while heap:
        late, _, index = heapq.heappop(heap)
        now = -density(index)
        if heap and (late, now, index) > heap[0]:
            heapq.heappush(heap, (late, now, index))
        else:
            order.append(index)
            seen.update(bags[index].keys())
        yield
    return order
