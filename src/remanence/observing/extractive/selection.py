"""Which passages to keep: the most that is new for the fewest tokens."""

import heapq
from collections import Counter
from collections.abc import Generator, Sequence

from remanence.observing.extractive.density import Weighted
from remanence.protocols import CountTokens

_REPEAT = 0.35
_OVERHEAD = 1


def ranked(
    weighted: Sequence[Weighted], blocks: Sequence[int], count_tokens: CountTokens
) -> Generator[None, None, tuple[tuple[int, int], ...]]:
    """Indices of passages with their cost in tokens, in the order in which to keep them."""
    seen: Counter[tuple[int, str]] = Counter()
    costs: list[int] = []
    heap: list[tuple[float, int]] = []
    texts: set[tuple[int, str]] = set()
    for index, item in enumerate(weighted):
        text = item.passage.text
        key = (blocks[index], text.casefold())
        costs.append(count_tokens(text) + 1 if text and key not in texts else 0)
        texts.add(key)
        if costs[-1]:
            heap.append((-_gain(item, blocks[index], seen) / (costs[-1] + _OVERHEAD), index))
        yield
    heapq.heapify(heap)
    order: list[tuple[int, int]] = []
    while heap:
        _, index = heapq.heappop(heap)
        item, block = weighted[index], blocks[index]
        density = _gain(item, block, seen) / (costs[index] + _OVERHEAD)
        if heap and -density > heap[0][0]:
            heapq.heappush(heap, (-density, index))
        elif density > 0:
            order.append((index, costs[index]))
            seen.update((block, term) for term in {t for t, _ in item.terms})
        yield
    return tuple(order)


def _gain(item: Weighted, block: int, seen: Counter[tuple[int, str]]) -> float:
    once: dict[str, float] = {}
    for term, weight in item.terms:
        once[term] = max(once.get(term, 0.0), weight)
    total = sum(weight * _REPEAT ** min(3, seen[block, term]) for term, weight in once.items())
    return total * item.factor
