"""Which candidates to keep: the most that is new for the fewest tokens."""

import heapq
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

from remanence.observing.notes import render_notes
from remanence.protocols import ObserveRequest, ReflectRequest
from remanence.types import Note

_REPEAT = 0.35
_OVERHEAD = 1
_JOIN = 1
_SLACK = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A text that may be kept: what its terms weigh, times a factor, within a stretch of talk.

    A term that was kept in the same stretch before counts little. `must` comes before all others.
    """

    text: str
    terms: tuple[tuple[str, float], ...]
    factor: float
    stretch: int
    must: bool = False


Build = Callable[[Sequence[int]], tuple[Note, ...]]
"""Makes notes of the candidates with these indices, which are in their own order."""


def select(
    candidates: Sequence[Candidate], request: ObserveRequest | ReflectRequest, build: Build
) -> Generator[None, None, tuple[Note, ...]]:
    """Notes of the best candidates, of at most the target as rendered; yields between steps."""
    costs: list[int] = []
    for candidate in candidates:
        costs.append(request.count_tokens(candidate.text) + _JOIN if candidate.text else 0)
        yield
    order = yield from _ranked(candidates, costs)
    return (yield from _fill(order, costs, request, build))


def _ranked(
    candidates: Sequence[Candidate], costs: Sequence[int]
) -> Generator[None, None, list[int]]:
    """The order in which to keep them: a gain is looked at again when its turn comes."""
    seen: Counter[tuple[int, str]] = Counter()
    kept: set[tuple[int, str]] = set()
    heap: list[tuple[bool, float, int]] = []
    for index, candidate in enumerate(candidates):
        if costs[index]:
            density = _gain(candidate, seen) / (costs[index] + _OVERHEAD)
            heap.append((not candidate.must, -density, index))
    yield
    heapq.heapify(heap)
    order: list[int] = []
    while heap:
        late, _, index = heapq.heappop(heap)
        candidate = candidates[index]
        density = _gain(candidate, seen) / (costs[index] + _OVERHEAD)
        same = (candidate.stretch, candidate.text.casefold())
        if heap and (late, -density) > heap[0][:2]:
            heapq.heappush(heap, (late, -density, index))
        elif density > 0 and same not in kept:
            order.append(index)
            kept.add(same)
            seen.update({(candidate.stretch, term) for term, _ in candidate.terms})
        yield
    return order


def _gain(candidate: Candidate, seen: Counter[tuple[int, str]]) -> float:
    once: dict[str, float] = {}
    for term, weight in candidate.terms:
        once[term] = max(once.get(term, 0.0), weight)
    stretch = candidate.stretch
    return candidate.factor * sum(
        weight * _REPEAT ** min(3, seen[stretch, term]) for term, weight in once.items()
    )


def _fill(
    order: Sequence[int],
    costs: Sequence[int],
    request: ObserveRequest | ReflectRequest,
    build: Build,
) -> Generator[None, None, tuple[Note, ...]]:
    """As many as fit, found by bisection on the rendered size, then what fits into the rest."""
    target = request.target_tokens
    low, high, size = 0, len(order), 0
    best: tuple[Note, ...] = ()
    guess = _first_guess([costs[i] for i in order], target)
    while low < high:
        take = min(high, max(low + 1, guess))
        notes = build(sorted(order[:take]))
        yield
        tokens = request.count_tokens(render_notes(notes, request.note_format))
        if tokens <= target:
            low, best, size = take, notes, tokens
        else:
            high = take - 1
        guess = (low + high + 1) // 2
        yield
    rest = _fitting(order[low:], costs, target - size - _SLACK)
    while rest:
        notes = build(sorted((*order[:low], *rest)))
        yield
        if request.count_tokens(render_notes(notes, request.note_format)) <= target:
            return notes
        rest.pop()
        yield
    return best


def _fitting(order: Sequence[int], costs: Sequence[int], room: int) -> list[int]:
    chosen: list[int] = []
    for index in order:
        if costs[index] + _JOIN <= room:
            chosen.append(index)
            room -= costs[index] + _JOIN
    return chosen


def _first_guess(costs: Sequence[int], target: int) -> int:
    total = 0
    for number, cost in enumerate(costs):
        total += cost + _JOIN
        if total > target:
            return number
    return len(costs)
