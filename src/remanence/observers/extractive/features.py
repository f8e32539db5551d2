"""The features by which passages are chosen, each with its weight."""

import math
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import NamedTuple

from remanence.languages.vocabulary import Vocabulary
from remanence.observers.extractive.corrections import Corrections
from remanence.observers.extractive.dependence import is_few_words
from remanence.observers.extractive.passage import Passage
from remanence.observers.extractive.render import OPERATORS, Word, terms
from remanence.observers.extractive.selection import Candidate
from remanence.observers.extractive.sentence_scores import is_filler
from remanence.observers.learned.features import Line
from remanence.observers.learned.statements import WISHES, statement_scores

VALUES: Mapping[str, float] = {
    "date with year": 6.0,
    "date": 4.0,
    "code": 5.0,  # an id or an amount, which nobody can guess
    "name": 2.2,
    "number": 1.8,
    "word": 1.0,
    "weak word": 0.1,
}
"""Value of a word by its kind; function words have none."""


class Feature(NamedTuple):
    """A factor of a passage's score: its weight to the power of an amount, 0 where it is absent."""

    name: str
    weight: float
    amount: Callable[[Passage], float]


def _has_any(p: Passage, keys: frozenset[str]) -> bool:
    return any(word.key in keys for word in p.words)


def _is_addressed(p: Passage) -> bool:
    """Return whether a passage speaks of the other person alone, without a name or a date."""
    if _has_any(p, p.vocabulary.first) or any(w.is_date or w.is_name for w in p.words):
        return False
    return _has_any(p, p.vocabulary.second)


def _vital(p: Passage) -> float:
    return 0.0 if p.is_of_people or p.is_output else p.scores.get("vital", 0.0)


def _is_figure(word: Word) -> bool:
    return word.is_date or _digits(word.key) > 0


def _worth(p: Passage) -> float:
    return 0.0 if p.is_of_people or p.is_output else min(_MAX_WORTH, p.scores.get("worth", 0.0))


def _is_small_talk(p: Passage) -> bool:
    """Return whether an agent, or a user in a few words, says what is hardly ever worth noting.

    Such as "I hope this helps" and "Oh dear"; a question, a date or a number may be worth it.
    """
    if not p.scores or p.is_of_people or p.is_output or p.is_rule or p.reply_to:
        return False
    if any(map(_is_figure, p.words)):
        return False
    return is_filler(p.scores) and (p.is_of_agent or is_few_words(p.source))


def _dependence(p: Passage) -> float:
    """Return how likely a passage says little without the sentences around it."""
    if not p.scores or p.is_of_people or p.is_output or p.reply_to:
        return 0.0
    return 1 / (1 + math.exp(-p.scores["dependent"]))


class Factor(NamedTuple):
    """A feature of a passage with its weight, and the factor that it amounts to."""

    feature: str
    weight: float
    amount: float


FEATURES: tuple[Feature, ...] = (
    Feature("laid down by the user", 2.5, lambda p: p.is_rule and not p.is_question),
    Feature("said by the agent", 0.3, lambda p: p.is_of_agent),
    Feature("must not be lost", 1.5, _vital),
    Feature("worth", 1.3, _worth),
    Feature("worth in a talk of people", 1.1, lambda p: p.is_of_people and p.scores["worth"]),
    Feature("worth of output", 2.2, lambda p: p.is_output and p.scores["output"]),
    Feature("depends on others", 0.2, _dependence),
    Feature("small talk", 0.0, _is_small_talk),
    Feature("question", 0.6, lambda p: p.is_question),
    Feature("picture", 0.45, lambda p: p.is_caption),
    Feature("tool call", 0.25, lambda p: p.is_call),
    Feature("first person", 1.15, lambda p: _has_any(p, p.vocabulary.first)),
    Feature("second person", 0.7, _is_addressed),
)
"""Features of a passage; the values of its words are multiplied by their factors."""

_CODE_DIGITS = 3
_YEAR_DIGITS = 5
_RARITY = 0.6
_PART_OF_RUN = 0.5
_MAX_WORTH = 2.0
"""Score for worth beyond which a sentence gains nothing more: of those in notes, six of seven are worth noting."""
_NOT_TAKEN_UP = 0.3
"""Factor of a term in a detail that no other passage takes up."""
_SHARE_RANGE = (0.5, 2.5)


def factors(p: Passage) -> Iterator[Factor]:
    """Yield the features that a passage has, each with its factor."""
    for feature in FEATURES:
        if amount := feature.amount(p):
            yield Factor(feature.name, feature.weight, round(feature.weight**amount, 3))


def weigh(
    found: Sequence[Passage], stretches: Sequence[int], corrections: Corrections
) -> Generator[None, None, tuple[Candidate, ...]]:
    """Return candidates for all passages, weighted by term rarity; yields between passages."""
    counts: Counter[str] = Counter()
    for p in found:
        counts.update({term for word in p.words for term in terms(word.key)})
        yield
    shares = _shares(found)
    candidates: list[Candidate] = []
    for p, stretch, later in zip(found, stretches, corrections, strict=True):
        weighted = term_values((*p.words, *p.context), p.vocabulary, counts, shares[p.speaker])
        if p.is_output or (p.is_item and p.is_of_agent):
            weighted = tuple(
                (term, w if counts[term] > 1 else w * _NOT_TAKEN_UP) for term, w in weighted
            )
        candidates.append(
            Candidate(
                text=p.text,
                terms=weighted,
                factor=math.prod(factor.amount for factor in factors(p)),
                stretch=stretch,
                person=None if p.is_of_agent or p.is_outcome else p.speaker,
                corrections=later,
                is_standing=p.is_standing,
                is_wish=p.is_standing and statement_scores(Line(p.source, "user"))[WISHES] >= 0,
                is_output=p.is_outcome,
            )
        )
        yield
    return tuple(candidates)


def _shares(found: Sequence[Passage]) -> dict[str, float]:
    """Return a factor per speaker, higher for those who say less: a prior, never a filter."""
    chars: Counter[str] = Counter()
    for p in found:
        chars[p.speaker] += len(p.source)
    total = sum(chars.values()) or 1
    low, high = _SHARE_RANGE
    return {
        speaker: min(high, max(low, (total / len(chars) / max(1, size)) ** 0.5))
        for speaker, size in chars.items()
    }


def term_values(
    words: Sequence[Word], vocabulary: Vocabulary, counts: Mapping[str, int], share: float = 1.0
) -> tuple[tuple[str, float], ...]:
    """Return the terms of words with their values; *counts* is the passages per term.

    A *share* below 1 lowers the value of plain words only: a name or a number is as informative
    from a speaker who talks a lot.
    """
    values: dict[str, float] = {}
    for word in words:
        value = _word_value(word, vocabulary)
        value *= share if value <= VALUES["word"] else max(1.0, share)
        parts = terms(word.key)
        value *= _PART_OF_RUN if len(parts) > 1 else 1.0
        for term in parts if value else ():
            if len(parts) == 1 or not vocabulary.small.issuperset(term):
                values[term] = max(values.get(term, 0.0), value * _rarity(counts[term]))
    return tuple(values.items())


def _rarity(count: int) -> float:
    return 1 / (1 + _RARITY * math.log(max(1, count)))


def _word_value(word: Word, vocabulary: Vocabulary) -> float:
    if word.dropped:
        return 0.0
    if word.is_date:
        return VALUES["date with year" if _digits(word.text) >= _YEAR_DIGITS else "date"]
    if word.key in vocabulary.function_words or word.key in OPERATORS:
        return 0.0
    if word.key in vocabulary.weak:
        return VALUES["weak word"]
    if digits := _digits(word.key):
        return VALUES["code" if digits >= _CODE_DIGITS else "number"]
    return VALUES["name" if word.is_name else "word"]


def _digits(text: str) -> int:
    return sum(c.isdigit() for c in text)
