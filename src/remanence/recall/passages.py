"""Passages of earlier messages that answer a turn, cut from search hits.

A search ranks whole messages, and a long message may share a dozen common words with a question
without answering it. So hits are cut to passages, which are ranked by the query words they contain.
Rare words among the hits, names and numbers weigh more: an answer repeats the subject of a question,
but not its wording.
"""

import math
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from statistics import median
from typing import Final, NamedTuple

from remanence.dates.local_time import to_zone
from remanence.notes import one_line
from remanence.notes.excerpts import whole
from remanence.notes.redact import redact
from remanence.observers.extractive.sentences import Span, sentences
from remanence.protocols import CountTokens
from remanence.recall.attribution import attribute
from remanence.recall.fusion import by_reciprocal_rank
from remanence.recall.snippets import around, redact_snippet, snippet
from remanence.recall.words import UNSPACED_LETTER, WORD, fold
from remanence.types import Hit

PASSAGE_CHARACTERS: Final = 220
WHOLE_FACT: Final = 400
"""Length up to which a fact is quoted whole, as its sentences say little alone."""

MIN_COVERAGE: Final = 0.25
"""The share of a query's weight that a passage must cover."""

NAME_WEIGHT: Final = 3.0
PAIR_WEIGHT: Final = 0.5
"""Extra weight of a matching word pair, in addition to the weights of its words."""

CONTEXT_CHARACTERS: Final = 120
"""Characters of context before and after the matched words."""

MIN_PASSAGE: Final = 26
"""Minimum characters of a quote; a shorter sentence is extended by the next one."""

NEARER: Final = 0.9
"""Distance of an outstanding hit, as a share of the median one."""

MIN_NEAR: Final = 20
"""Number of hits from which their median distance is one of unrelated texts."""

_STEM: Final = 4
"""Minimum length of a stem, in letters."""

_UNDATED: Final = datetime.min.replace(tzinfo=UTC)

_MAX_TERM: Final = 64
"""Letters of a word that are compared, so that any term fits in a passage."""


@dataclass(frozen=True)
class Quote:
    """A passage of a hit, which is *cut* when it is first read: few of those that are ranked are shown.

    A prompt has it as *frame* returns it.
    """

    hit: Hit
    score: float
    cut: Callable[[], tuple[str, str]]
    frame: Callable[[], tuple[str, str]]

    @property
    def text(self) -> str:
        """The passage, on one line."""
        return self._texts[0]

    @property
    def core(self) -> str:
        """The part with the words of the query."""
        return self._texts[1]

    @cached_property
    def _texts(self) -> tuple[str, str]:
        return self.cut()


class _Place(NamedTuple):
    start: int
    end: int
    term: str


def quotes(hits: Sequence[Hit], query: str) -> tuple[Quote, ...]:
    """Return the distinct passages that cover enough of *query*, best first."""
    terms = tuple(dict.fromkeys(_terms(query)))
    texts = [fold(hit.text) for hit in hits]
    places = [_places(text, terms) for text in texts]
    weights = _weights(hits, places)
    enough = MIN_COVERAGE * sum(weights.values())
    matching: list[Quote] = []
    stretches: dict[int, str] = {}
    for hit, text, starts in zip(hits, texts, places, strict=True):
        score, first, last = _densest(starts, weights)
        if starts and score >= enough:
            cut = partial(_passage, hit, first, last)
            quote = Quote(hit, score, cut, partial(_framed_passage, hit, first, last, weights))
            matching.append(quote)
            stretches[id(quote)] = one_line(text[first:last])
    best = sorted(matching, key=lambda quote: -quote.score)
    # Passages are the same only if their words of the query are.
    counts = Counter(stretches.values())
    distinct = {
        quote.text if counts[stretches[id(quote)]] > 1 else id(quote): quote
        for quote in reversed(best)
    }
    return tuple(distinct.values())[::-1]


def by_passage(hits: Sequence[Hit], query: str) -> tuple[Hit, ...]:
    """Return the hits with the best passages first, then the others in their order."""
    first = {id(quote.hit): quote.hit for quote in quotes(hits, query)}
    return (*first.values(), *(hit for hit in hits if id(hit) not in first))


def outstanding(hits: Sequence[Hit]) -> Sequence[Hit]:
    """Return the hits of a vector search that are nearer than half of them; all, if they are few.

    Unrelated texts are about equally far from a turn, and no similarity means "unrelated" for every
    embedder.
    """
    if len(hits) < MIN_NEAR:
        return hits
    typical = 1 - median(hit.score for hit in hits)
    return [hit for hit in hits if 1 - hit.score < NEARER * typical]


def near_quotes(hits: Iterable[Hit], query: str) -> tuple[Quote, ...]:
    """Return hits as quotes, in the same order, whatever their words."""
    cut, frame = _near_passage, _redacted_near_passage
    return tuple(
        Quote(hit, hit.score, partial(cut, hit, query), partial(frame, hit, query)) for hit in hits
    )


def _near_passage(hit: Hit, query: str) -> tuple[str, str]:
    text = snippet(hit.text, query, characters=PASSAGE_CHARACTERS)
    return text, text


def _redacted_near_passage(hit: Hit, query: str) -> tuple[str, str]:
    text = redact_snippet(_near_passage(hit, query)[0], hit.text, query)
    return text, text


def merge_quotes(rankings: Iterable[Sequence[Quote]]) -> tuple[Quote, ...]:
    """Fuse rankings by reciprocal rank, with one quote per message.

    A fact counts as a quote of its source message, and the better of the two stays.
    """
    fused = by_reciprocal_rank(
        rankings, lambda quote: (quote.hit.conversation, quote.hit.first_seq or quote.hit.source_id)
    )
    return tuple(quote for quote, _ in fused)


def render_quotes(
    found: Iterable[Quote], *, max_tokens: int, count_text: CountTokens, zone: tzinfo = UTC
) -> tuple[str, ...]:
    """Render as many quotes as fit, oldest first, each with its date, and a message with its speaker.

    The date of a fact is that in *zone*, as facts are stored in UTC; a message has its own UTC offset.
    Only the best quote includes the sentences after the match, as more passages are worth more than
    longer ones.
    """
    kept: list[tuple[Hit, str]] = []
    for quote in found:
        hit, origin = quote.hit, _origin(quote.hit, zone)
        if count_text(f"- {quote.core} ({origin})\n") > max_tokens:  # cheaper than its frame
            continue
        passage, core = quote.frame()
        for text in (core,) if kept else (passage, core):
            line = f"{text} ({origin})"
            tokens = count_text(f"- {line}\n")
            if tokens <= max_tokens:
                kept.append((hit, line))
                max_tokens -= tokens
                break
    # A seq counts within its conversation, and ids of facts are in the order of their making.
    kept.sort(key=lambda each: (each[0].at or _UNDATED, each[0].first_seq, each[0].source_id))
    return tuple(line for _, line in kept)


def _origin(hit: Hit, zone: tzinfo) -> str:
    is_fact = hit.kind == "fact"
    at = to_zone(hit.at, zone) if hit.at and is_fact else hit.at
    day = f"{at:%Y-%m-%d}" if at else ""
    source = (f"fact {hit.source_id}",) if is_fact else (f"message {hit.first_seq}", hit.speaker)
    return ", ".join(filter(None, (*source, day)))


def _terms(query: str) -> Iterator[str]:
    """Yield search terms: words, adjacent words, and letter pairs in scripts without spaces.

    Words are stemmed, except names and numbers.
    """
    words = [word[:_MAX_TERM] for word in WORD.findall(query)]
    for word in words:
        if UNSPACED_LETTER.search(word):
            yield from (word[place : place + 2] for place in range(max(1, len(word) - 1)))
        else:
            yield _stem(word)
    for left, right in pairwise(words):
        if not UNSPACED_LETTER.search(left + right):
            yield f"{fold(left)} {_stem(right)}"


def _stem(word: str) -> str:
    if not word.islower() or not word.isalpha():
        return fold(word)
    return fold(word[: max(_STEM, len(word) - 2)])


def _places(text: str, terms: Collection[str]) -> Mapping[str, Sequence[int]]:
    """Map each term of a text to the offsets of the words that begin with it."""
    offsets = {term: tuple(_beginnings(text, term)) for term in terms if term in text}
    return {term: starts for term, starts in offsets.items() if starts}


def _beginnings(text: str, term: str) -> Iterator[int]:
    inside = bool(UNSPACED_LETTER.match(term))
    start = text.find(term)
    while start >= 0:
        if inside or not start or not text[start - 1].isalnum():
            yield start
        start = text.find(term, start + len(term))


def _weights(
    hits: Sequence[Hit], places: Sequence[Mapping[str, Sequence[int]]]
) -> Mapping[str, float]:
    passages = sum(len(hit.text) // PASSAGE_CHARACTERS + 1 for hit in hits)
    counts, capitals = Counter[str](), Counter[str]()
    for hit, offsets in zip(hits, places, strict=True):
        for term, starts in offsets.items():
            counts[term] += len(starts)
            capitals[term] += sum(hit.text[start : start + 1].isupper() for start in starts)
    weights: dict[str, float] = {}
    for term, count in counts.items():
        is_name = capitals[term] > 0.7 * count or any(map(str.isdigit, term))
        factor = PAIR_WEIGHT if " " in term else NAME_WEIGHT if is_name else 1.0
        weights[term] = math.log1p(passages / count) * factor
    return weights


def _passage(hit: Hit, first: int, last: int) -> tuple[str, str]:
    """Return the passage around a stretch of a text, and its core."""
    passage, core = _spans(hit, first, last)
    return one_line(hit.text[slice(*passage)]), one_line(hit.text[slice(*core)])


def _framed_passage(
    hit: Hit, first: int, last: int, weights: Mapping[str, float]
) -> tuple[str, str]:
    """Return a passage and its core without secrets, and with somebody else's words marked."""
    near = around(hit.text, first, last)
    clean = redact(near)
    if clean != near:
        hit = replace(hit, text=clean)
        _, first, last = _densest(_places(fold(clean), weights), weights)
    if hit.role != "user":
        return _passage(hit, first, last)
    passage, core = _spans(hit, first, last)
    return one_line(attribute(hit.text, passage)), one_line(attribute(hit.text, core))


def _spans(hit: Hit, first: int, last: int) -> tuple[Span, Span]:
    """Return the passage around a stretch of a text, and its core; a fact is one, unless it is long."""
    if hit.kind == "fact" and len(hit.text) <= WHOLE_FACT:
        return Span(0, len(hit.text)), Span(0, len(hit.text))
    starts, ends = _boundaries(
        hit.text,
        first - CONTEXT_CHARACTERS,
        max(first + PASSAGE_CHARACTERS, last + CONTEXT_CHARACTERS),
    )
    start = max((at for at in starts if at <= first), default=_word_start(hit.text, first))
    long_enough = (at for at in ends if at >= max(last, start + MIN_PASSAGE))
    end = min(
        (at for at in long_enough if at <= last + CONTEXT_CHARACTERS),
        default=_word_end(hit.text, last),
    )
    # Add the following sentences that still fit.
    further = max((at for at in ends if end <= at <= start + PASSAGE_CHARACTERS), default=end)
    return Span(start, further), Span(start, end)


def _densest(
    places: Mapping[str, Sequence[int]], weights: Mapping[str, float]
) -> tuple[float, int, int]:
    """Return the weight of the best stretch, each term counted once, with its start and end."""
    counts = Counter[str]()
    stretch: deque[_Place] = deque()
    best = score = 0.0
    first = last = 0
    ordered = sorted(
        _Place(start, start + len(term), term)
        for term, starts in places.items()
        for start in starts
    )
    for place in ordered:
        stretch.append(place)
        counts[place.term] += 1
        if counts[place.term] == 1:
            score += weights[place.term]
        while place.end - stretch[0].start > PASSAGE_CHARACTERS:
            gone = stretch.popleft().term
            counts[gone] -= 1
            if not counts[gone]:
                score -= weights[gone]
        if score > best + 1e-9:
            best, first, last = score, stretch[0].start, place.end
    return best, first, last


def _boundaries(text: str, low: int, high: int) -> tuple[Sequence[int], Sequence[int]]:
    """Return the starts and ends of sentences in a stretch of a text, without cut sentences."""
    low, high = max(0, low), min(len(text), high)
    spans = _sentences(text[low:high])
    starts = [low + span.start for span in spans[1 if low else 0 :]]
    ends = [low + span.end for span in spans[: len(spans) - (high < len(text))]]
    return starts, ends


@lru_cache(maxsize=4_096)
def _sentences(stretch: str) -> Sequence[Span]:
    """Split a stretch of a few hundred characters, often the same ones for the turns of a topic."""
    return tuple(sentences(stretch))


def _word_start(text: str, first: int) -> int:
    """Return the start of a word up to `CONTEXT_CHARACTERS` before a place in a long sentence."""
    low = max(0, first - CONTEXT_CHARACTERS)
    space = text.find(" ", low, first) if low else -1
    return space + 1 if space >= 0 else whole(text, low)


def _word_end(text: str, last: int) -> int:
    """Return the end of a word up to `CONTEXT_CHARACTERS` after a place in a long sentence."""
    high = min(len(text), last + CONTEXT_CHARACTERS)
    space = text.rfind(" ", last, high) if high < len(text) else -1
    return space if space >= 0 else whole(text, high, step=1)
