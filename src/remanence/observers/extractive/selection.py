"""Selects candidates greedily: the most new content per token."""

import heapq
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from remanence.notes import render_notes
from remanence.protocols import ObserveRequest, ReflectRequest
from remanence.types import Note

_REPEAT = 0.4
_OVERHEAD = 4
_JOIN = 1
_SLACK = 2
_LINES_AT_ONCE = 10

_OUTPUT_SHARE = 0.15
"""Share of the notes for calls and output of tools, which can be fetched again."""
_LINES_OF_OUTPUT = 40
"""Tokens of output that a short note may have beyond its share: two lines or so."""
_STANDING_SHARE = 0.2
"""Share of the target that candidates with `is_standing` have before all others."""
_SHARE_ALONE = 0.25
"""Share of the target for them where nothing else was said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A text that may be kept, scored by the weights of its terms times its factor.

    Terms are unique. A term that is already kept in the same stretch of talk counts little.
    Candidates with `is_standing` rank first, up to a share of the target, and of these the wishes
    on how to be answered (`is_wish`); those with `is_output` share a part of the notes. A text of a
    `person` is kept beside the same of another one. None is kept without its `corrections`, the
    indices of later ones.
    """

    text: str
    terms: tuple[tuple[str, float], ...]
    factor: float
    stretch: int
    person: str | None = None
    corrections: tuple[int, ...] = ()
    is_standing: bool = False
    is_wish: bool = False
    is_output: bool = False

    @property
    def rank(self) -> int:
        """The place among the others; those of equal rank are chosen by their terms."""
        return 0 if self.is_wish else 1 if self.is_standing else 2


Build = Callable[[Sequence[int]], Generator[None, None, tuple[Note, ...]]]
"""Builds notes from the candidates with these indices, in ascending order."""

Request = ObserveRequest | ReflectRequest


class Selection(NamedTuple):
    """Indices of the candidates that were taken, ascending, and the notes made of them."""

    kept: tuple[int, ...]
    notes: tuple[Note, ...]


def select(
    candidates: Sequence[Candidate], request: Request, build: Build
) -> Generator[None, None, Selection]:
    """Return the best candidates that fit the target as rendered; yields in between."""
    costs: list[int] = []
    for candidate in candidates:
        costs.append(request.count_tokens(candidate.text) + _JOIN if candidate.text else 0)
        yield
    ranked = yield from _rank(candidates, costs)
    within = _within_shares(ranked, candidates, costs, request.target_tokens)
    order = _corrections_first(within, candidates)
    return (yield from _fill(order, candidates, costs, request, build))


def _rank(
    candidates: Sequence[Candidate], costs: Sequence[int]
) -> Generator[None, None, list[tuple[int, float]]]:
    """Return indices with their gain per token, best first; a stale gain is recomputed when it reaches the top."""
    seen: dict[int, Counter[str]] = {}
    kept: dict[tuple[int, str], set[str | None]] = {}
    heap: list[tuple[int, float, int]] = []
    for index, candidate in enumerate(candidates):
        if costs[index]:
            gain = _gain(candidate, seen.setdefault(candidate.stretch, Counter()))
            heap.append((candidate.rank, -gain / (costs[index] + _OVERHEAD), index))
        yield
    heapq.heapify(heap)
    order: list[tuple[int, float]] = []
    while heap:
        late, _, index = heapq.heappop(heap)
        candidate = candidates[index]
        density = _gain(candidate, seen[candidate.stretch]) / (costs[index] + _OVERHEAD)
        same = (candidate.stretch, candidate.text.casefold())
        if heap and (late, -density) > heap[0][:2]:
            heapq.heappush(heap, (late, -density, index))
        elif density > 0 and _is_new(candidate, kept.setdefault(same, set())):
            order.append((index, density))
            kept[same].add(candidate.person)
            seen[candidate.stretch].update([term for term, _ in candidate.terms])
        yield
    return order


def _is_new(candidate: Candidate, persons: AbstractSet[str | None]) -> bool:
    """Return whether a text is none of those already kept, which these *persons* said."""
    return not persons or (candidate.person is not None and candidate.person not in persons)


def _within_shares(
    ranked: Sequence[tuple[int, float]],
    candidates: Sequence[Candidate],
    costs: Sequence[int],
    target: int,
) -> list[int]:
    """Return the order without output of tools beyond its share of what is written.

    Standing candidates beyond their share compete with all others by gain per token.
    """
    standing = target * _STANDING_SHARE
    first: list[int] = []
    rest: list[tuple[float, int]] = []
    for index, density in ranked:
        if candidates[index].is_standing and standing > 0:
            standing -= costs[index] + _JOIN
            first.append(index)
        else:
            rest.append((-density, index))
    order = [*first, *(index for _, index in sorted(rest))]
    said = sum(costs[index] + _JOIN for index in order if not candidates[index].is_output)
    room = target * _SHARE_ALONE
    if said:
        room = max(_LINES_OF_OUTPUT, said * _OUTPUT_SHARE / (1 - _OUTPUT_SHARE))
        room = min(target * _OUTPUT_SHARE, room)
    kept: list[int] = []
    for index in order:
        if candidates[index].is_output:
            if costs[index] > room:
                continue
            room -= costs[index]
        kept.append(index)
    return kept


def _corrections_first(order: Sequence[int], candidates: Sequence[Candidate]) -> list[int]:
    """Return the order with the corrections of each candidate, and those of these, right before it.

    So none is left out where the order is cut off. What is not in the order remains so.
    """
    left = dict.fromkeys(order)
    placed: list[int] = []
    for index in order:
        unit: list[int] = []
        waiting = [index]
        while waiting:
            one = waiting.pop()
            if one in left:
                del left[one]
                unit.append(one)
                waiting += candidates[one].corrections
        placed += sorted(unit, reverse=True)
    return placed


def _gain(candidate: Candidate, seen: Mapping[str, int]) -> float:
    """Return the gain of a candidate; *seen* counts each term in kept ones of its stretch."""
    total = 0.0
    for term, weight in candidate.terms:
        times = seen.get(term, 0)
        total += weight * _REPEAT ** min(3, times) if times else weight
    return candidate.factor * total


def _fill(
    order: Sequence[int],
    candidates: Sequence[Candidate],
    costs: Sequence[int],
    request: Request,
    build: Build,
) -> Generator[None, None, Selection]:
    """Return as many notes as fit, by bisection on the rendered size, then fill the remainder."""
    low, high, size = 0, len(order), 0
    guess = bisect_right([*accumulate(costs[i] + _JOIN for i in order)], request.target_tokens)
    while low < high:
        take = min(high, max(low + 1, guess))
        tokens = yield from _size((yield from build(sorted(order[:take]))), request)
        if tokens <= request.target_tokens:
            low, size = take, tokens
        else:
            high = take - 1
        guess = take + (request.target_tokens - tokens) * take // max(1, tokens)
        guess = min(high, max(low + 1, guess))
    room = request.target_tokens - size - _SLACK
    kept = [*order[:low], *_fit(order[low:], candidates, costs, room)]
    while kept:
        notes = yield from build(sorted(kept))
        yield
        if request.count_tokens(render_notes(notes, request.note_format)) <= request.target_tokens:
            return Selection(tuple(sorted(kept)), notes)
        kept.pop()
        yield
    return Selection((), ())


def _size(notes: Sequence[Note], request: Request) -> Generator[None, None, int]:
    """Return the tokens of the rendered notes, counted in pieces."""
    lines = render_notes(notes, request.note_format).split("\n")
    total = 0
    for start in range(0, len(lines), _LINES_AT_ONCE):
        yield
        total += request.count_tokens("\n".join(lines[start : start + _LINES_AT_ONCE]) + "\n")
    return total


def _fit(
    order: Sequence[int], candidates: Sequence[Candidate], costs: Sequence[int], room: int
) -> list[int]:
    """Return those of an order that fit, each with its corrections."""
    chosen: list[int] = []
    left_out: set[int] = set()
    for index in order:
        fits = costs[index] + _JOIN <= room
        if fits and left_out.isdisjoint(candidates[index].corrections):
            chosen.append(index)
            room -= costs[index] + _JOIN
        else:
            left_out.add(index)
    return chosen
