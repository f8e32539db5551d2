"""Which candidates to keep: the most that is new for the fewest tokens."""

import heapq
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass

from remanence.notes import render_notes
from remanence.protocols import ObserveRequest, ReflectRequest
from remanence.types import Note

_REPEAT = 0.4
_OVERHEAD = 1
_JOIN = 1
_SLACK = 2
_LINES_AT_ONCE = 10

_OUTPUT_SHARE = 1 / 4
"""The most of the target that is spent on output of tools: it can be had again, and what people and
agents made of it is the outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A text that may be kept: what its terms weigh, times a factor, within a stretch of talk.

    Each term comes once. A term that was kept in the same stretch before counts little. `must` comes before all others.
    What tools put out shares a part of the target.
    """

    text: str
    terms: tuple[tuple[str, float], ...]
    factor: float
    stretch: int
    must: bool = False
    is_output: bool = False


Build = Callable[[Sequence[int]], Generator[None, None, tuple[Note, ...]]]
"""Makes notes of the candidates with these indices, which are in their own order."""

Request = ObserveRequest | ReflectRequest


def select(
    candidates: Sequence[Candidate], request: Request, build: Build
) -> Generator[None, None, tuple[Note, ...]]:
    """Notes of the best candidates, of at most the target as rendered; yields between steps."""
    costs: list[int] = []
    for candidate in candidates:
        costs.append(request.count_tokens(candidate.text) + _JOIN if candidate.text else 0)
        yield
    ranked = yield from _rank(candidates, costs)
    order = _within_shares(ranked, candidates, costs, request.target_tokens)
    return (yield from _fill(order, costs, request, build))


def _rank(
    candidates: Sequence[Candidate], costs: Sequence[int]
) -> Generator[None, None, list[int]]:
    """The order in which to keep them: a gain is looked at again when its turn comes."""
    seen: dict[int, Counter[str]] = {}
    kept: set[tuple[int, str]] = set()
    heap: list[tuple[bool, float, int]] = []
    for index, candidate in enumerate(candidates):
        if costs[index]:
            gain = _gain(candidate, seen.setdefault(candidate.stretch, Counter()))
            heap.append((not candidate.must, -gain / (costs[index] + _OVERHEAD), index))
        yield
    heapq.heapify(heap)
    order: list[int] = []
    while heap:
        late, _, index = heapq.heappop(heap)
        candidate = candidates[index]
        density = _gain(candidate, seen[candidate.stretch]) / (costs[index] + _OVERHEAD)
        same = (candidate.stretch, candidate.text.casefold())
        if heap and (late, -density) > heap[0][:2]:
            heapq.heappush(heap, (late, -density, index))
        elif density > 0 and same not in kept:
            order.append(index)
            kept.add(same)
            seen[candidate.stretch].update([term for term, _ in candidate.terms])
        yield
    return order


def _within_shares(
    order: Sequence[int], candidates: Sequence[Candidate], costs: Sequence[int], target: int
) -> list[int]:
    """The order without the output of tools that exceeds its share."""
    room = target * _OUTPUT_SHARE
    kept: list[int] = []
    for index in order:
        if candidates[index].is_output:
            if costs[index] > room:
                continue
            room -= costs[index]
        kept.append(index)
    return kept


def _gain(candidate: Candidate, seen: Mapping[str, int]) -> float:
    """What it adds to kept ones of its stretch, of which *seen* says how many hold a term."""
    total = 0.0
    for term, weight in candidate.terms:
        times = seen.get(term, 0)
        total += weight * _REPEAT ** min(3, times) if times else weight
    return candidate.factor * total


def _fill(
    order: Sequence[int], costs: Sequence[int], request: Request, build: Build
) -> Generator[None, None, tuple[Note, ...]]:
    """As many as fit, found by bisection on the rendered size, then what fits into the rest."""
    low, high, size = 0, len(order), 0
    guess = _first_guess([costs[i] for i in order], request.target_tokens)
    while low < high:
        take = min(high, max(low + 1, guess))
        tokens = yield from _size((yield from build(sorted(order[:take]))), request)
        if tokens <= request.target_tokens:
            low, size = take, tokens
        else:
            high = take - 1
        guess = take + (request.target_tokens - tokens) * take // max(1, tokens)
        guess = min(high, max(low + 1, guess))
    kept = [*order[:low], *_fit(order[low:], costs, request.target_tokens - size - _SLACK)]
    while kept:
        notes = yield from build(sorted(kept))
        yield
        if request.count_tokens(render_notes(notes, request.note_format)) <= request.target_tokens:
            return notes
        kept.pop()
        yield
    return ()


def _size(notes: Sequence[Note], request: Request) -> Generator[None, None, int]:
    """The tokens of the rendered notes, counted in pieces."""
    lines = render_notes(notes, request.note_format).split("\n")
    total = 0
    for start in range(0, len(lines), _LINES_AT_ONCE):
        yield
        total += request.count_tokens("\n".join(lines[start : start + _LINES_AT_ONCE]) + "\n")
    return total


def _fit(order: Sequence[int], costs: Sequence[int], room: int) -> list[int]:
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
