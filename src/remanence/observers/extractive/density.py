"""Scores passages by the rarity and kind of their words, their cue and their speaker."""

import math
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import lru_cache

from remanence.languages.vocabulary import Vocabulary
from remanence.observers.extractive.cues import NO_CUE
from remanence.observers.extractive.filtering import VERDICTS, is_filler, own_words
from remanence.observers.extractive.passage import AGENT, Passage
from remanence.observers.extractive.render import OPERATORS, Word, terms
from remanence.observers.extractive.selection import Candidate
from remanence.types import Tag

_DATE = 4.0
_FULL_DATE = 6.0  # with its year, so far from the day of the message
_NAME = 2.2
_NUMBER = 1.8
_CODE = 5.0  # an id, an amount: nobody can guess it
_CODE_DIGITS = 3
_YEAR_DIGITS = 5
_PLAIN = 1.0
_WEAK = 0.1
_RARITY = 0.25
_PART_OF_RUN = 0.5

_FIRST_PERSON = 1.15
_SECOND_PERSON = 0.7
_QUESTION = 0.6
_FILLER = 0.7
_CAPTION = 0.45
_QUOTED = 0.6
_OPEN = 0.7
_OUTCOME = 0.6
_NOT_TAKEN_UP = 0.3
_SUPERSEDED = 0.4
_CORRECTS = 1.7
_CRITICAL = 3.0
_TAG: Mapping[Tag, float] = {
    "Decision": 2.0,
    "Issue": 1.2,
    "Outcome": 1.2,
    "Preference": 1.15,
    "NextStep": 1.4,
    "Fact": 1.0,
}
_WEIGHED: frozenset[Tag] = frozenset({"Decision", "NextStep"})
"""Tags whose standing passages get only a boost; those of other tags are required."""
_STANDING = 2.0
_REPLY = 1.5
_ANAPHORIC = 0.75
_DUE = 1.3
_PRIOR_RANGE = (0.5, 2.5)
_SAID_BY_AGENT = 0.6
"""For a speaker without a name: in agent logs, most facts asked for are the user's."""
_DOMINANT_PRIOR = 0.8  # of one of two speakers with three quarters of the text


def weigh(
    found: Sequence[Passage], stretches: Sequence[int]
) -> Generator[None, None, tuple[Candidate, ...]]:
    """Return candidates for all passages, weighted by term rarity; yields between passages."""
    counts: Counter[str] = Counter()
    for p in found:
        counts.update({term for word in p.words for term in terms(word.key)})
        yield
    priors = _priors(found)
    candidates: list[Candidate] = []
    for p, stretch in zip(found, stretches, strict=True):
        weighted = weights((*p.words, *p.context), p.vocabulary, counts, prior=priors[p.speaker])
        if p.is_detail or (p.is_item and p.speaker == AGENT and p.cue == NO_CUE):
            weighted = tuple((term, w * _uptake(term, counts)) for term, w in weighted)
        candidates.append(
            Candidate(
                text=p.text,
                terms=weighted,
                factor=_factor(p),
                stretch=stretch,
                must=_must(p, priors[p.speaker]),
                is_output=p.is_output,
            )
        )
        yield
    return tuple(candidates)


def _uptake(term: str, counts: Mapping[str, int]) -> float:
    """Return the factor of a term in a detail: low unless another passage takes it up."""
    return 1.0 if all(counts[part] > 1 for part in term.split(" ")) else _NOT_TAKEN_UP


def weights(
    words: Sequence[Word],
    vocabulary: Vocabulary,
    counts: Mapping[str, int],
    *,
    prior: float = 1.0,
) -> tuple[tuple[str, float], ...]:
    """Return the terms of words with their weights; *counts* is the passages per term.

    A *prior* below 1 lowers the weight of plain words only: a name or a number is as informative
    from a speaker who talks a lot.
    """
    weighed: dict[str, float] = {}
    for run in _units(words):
        weight = _word_weight(run[0], vocabulary)
        for word in run[1:]:
            weight += _word_weight(word, vocabulary)
        if not weight:
            continue
        weight *= prior if weight <= _PLAIN else max(1.0, prior)
        if len(run) > 1:
            parts = tuple(term for word in run for term in terms(word.key))
            rarity = max(_rarity(counts[part]) for part in parts)
            weighed[" ".join(parts)] = weight * rarity
            continue
        parts = terms(run[0].key)
        share = _PART_OF_RUN if len(parts) > 1 else 1.0
        for term in parts:
            if len(parts) == 1 or not vocabulary.small.issuperset(term):
                weighed[term] = max(weighed.get(term, 0.0), weight * share * _rarity(counts[term]))
    return tuple(weighed.items())


def _units(words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """Yield words one by one, a name of several words as one unit: "Ana Reyes" is one value."""
    start, goes_on = 0, False
    for index, word in enumerate(words):
        if index and not (goes_on and word.is_name):
            yield words[start:index]
            start = index
        goes_on = word.is_name and word.text[-1:].isalnum()
    if words:
        yield words[start:]


@lru_cache(maxsize=10_000)
def _rarity(count: int) -> float:
    return 1 / (1 + _RARITY * math.log(max(1, count)))


def _word_weight(word: Word, vocabulary: Vocabulary) -> float:
    if word.dropped:
        return 0.0
    if word.is_date:
        return _FULL_DATE if _digits(word.text) >= _YEAR_DIGITS else _DATE
    if word.key in vocabulary.function_words or word.key in OPERATORS:
        return 0.0
    if word.key in vocabulary.weak:
        return _WEAK
    digits = _digits(word.key)
    if digits:
        return _CODE if digits >= _CODE_DIGITS else _NUMBER
    return _NAME if word.is_name else _PLAIN


@lru_cache(maxsize=20_000)
def _digits(text: str) -> int:
    return sum(c.isdigit() for c in text)


def _must(p: Passage, prior: float) -> bool:
    """Return whether a passage is required: a correction or a standing request.

    Not from a speaker who dominates the talk, nor from an agent without a name, who proposes.
    """
    corrects = p.supersedes is not None and p.first_seq == p.seq
    is_standing = p.cue.stands and p.cue.tag not in _WEIGHED and not p.is_superseded
    has_content = bool(p.context or own_words(p))
    return (
        (corrects or (is_standing and has_content))
        and prior > _DOMINANT_PRIOR
        and p.speaker != AGENT
    )


def _factor(p: Passage) -> float:
    is_anaphoric = bool(p.words) and p.words[0].key in p.vocabulary.leans and not p.context
    kinds = (
        (p.cue.priority == "CRITICAL" and p.speaker != AGENT, _CRITICAL),
        (p.speaker == AGENT and p.cue.tag not in VERDICTS, _SAID_BY_AGENT),
        (p.is_question, _QUESTION),
        (p.is_caption, _CAPTION),
        (p.is_quoted, _QUOTED),
        (p.is_open, _OPEN),
        (p.is_superseded, _SUPERSEDED),
        (p.is_outcome and p.cue.tag != "Issue", _OUTCOME),
        (p.cue.corrects or p.supersedes is not None, _CORRECTS),
        (bool(p.dates) and p.cue.tag == "NextStep", _DUE),
        (p.cue.stands and not p.is_superseded and p.speaker != AGENT, _STANDING),
        (is_filler(p), _FILLER),
        (is_anaphoric, _ANAPHORIC),
        (p.is_reply, _REPLY),
    )
    factor = _TAG[p.cue.tag] * _person(p)
    for applies, weight in kinds:
        if applies:
            factor *= weight
    return factor


def _person(p: Passage) -> float:
    keys = {word.key for word in p.words}
    if keys & p.vocabulary.first or p.is_request:
        return _FIRST_PERSON
    if p.cue.tag in VERDICTS or not keys & p.vocabulary.second:
        return 1.0
    return 1.0 if any(w.is_date or w.is_name for w in p.words) else _SECOND_PERSON


def _priors(found: Sequence[Passage]) -> dict[str, float]:
    """Return a factor per speaker, higher for those who say less: a prior, never a filter."""
    chars: Counter[str] = Counter()
    for p in found:
        chars[p.speaker] += len(p.source)
    total = sum(chars.values()) or 1
    low, high = _PRIOR_RANGE
    return {
        speaker: min(high, max(low, (total / len(chars) / max(1, size)) ** 0.5))
        for speaker, size in chars.items()
    }
