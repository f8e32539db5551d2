"""How much a passage tells: rarity, shape and place of its words, and who says it."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from remanence.observing.extractive.passages import Passage
from remanence.observing.extractive.vocabulary import Vocabulary
from remanence.observing.extractive.wording import Word, terms

_WEAK = 0.15
_DATE = 4.0
_NUMBER = 1.8
_NAME = 2.2
_RARITY = 0.35
_LONG = 0.0
_CAPTION = 0.45
_QUESTION = 0.45
_FIRST = 1.15
_SECOND = 0.6
_FILLER = 0.5
_PART_OF_RUN = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighted:
    """A passage with what its terms weigh, and the factor of the passage as a whole."""

    passage: Passage
    terms: tuple[tuple[str, float], ...]
    factor: float


def weigh(found: Sequence[Passage]) -> tuple[Weighted, ...]:
    """Weigh all passages against one another."""
    counts = Counter(term for p in found for term in {t for w in p.words for t in terms(w.key)})
    priors = _priors(found)
    return tuple(
        Weighted(
            passage=p,
            terms=tuple(_terms((*p.words, *p.context), p.vocabulary, counts)),
            factor=_factor(p) * priors[p.speaker],
        )
        for p in found
    )


def _terms(
    words: Iterable[Word], vocabulary: Vocabulary, counts: Mapping[str, int]
) -> Iterable[tuple[str, float]]:
    for word in words:
        weight = _word_weight(word, vocabulary)
        if weight:
            parts = terms(word.key)
            share = _PART_OF_RUN if len(parts) > 1 else 1.0
            for term in parts:
                if len(parts) == 1 or not vocabulary.small.issuperset(term):
                    rarity = 1 / (1 + _RARITY * math.log(max(1, counts[term])))
                    yield term, weight * rarity * share


def _word_weight(word: Word, vocabulary: Vocabulary) -> float:
    if word.is_date:
        return _DATE
    if word.key in vocabulary.drop or word.key in vocabulary.glue:
        return 0.0
    if word.key in vocabulary.weak:
        return _WEAK
    if any(c.isdigit() for c in word.key):
        return _NUMBER
    return _NAME if word.is_name else 1.0 + _LONG * (len(word.key) > 7)


def _factor(p: Passage) -> float:
    keys = {word.key for word in p.words}
    factor = 1.0
    if p.is_question:
        factor *= _QUESTION
    if keys & p.vocabulary.first:
        factor *= _FIRST
    elif keys & p.vocabulary.second:
        factor *= _SECOND
    if p.vocabulary.filler and p.source.lower().startswith(p.vocabulary.filler):
        factor *= _FILLER
    if p.is_caption:
        factor *= _CAPTION
    return factor


def _priors(found: Sequence[Passage]) -> dict[str, float]:
    """Who says little is worth more per word: a prior, never a filter."""
    said: Counter[str] = Counter()
    for p in found:
        said[p.speaker] += len(p.source)
    total = sum(said.values()) or 1
    return {
        who: min(2.5, max(0.5, (total / len(said) / max(1, size)) ** 0.5))
        for who, size in said.items()
    }
