"""Topics of a text, such as home, work or illness, each with its probability.

Texts that share no word may share a topic: "Where do I live?" and "We moved to Porto in May".
"""

from functools import lru_cache
from math import exp, log, sqrt
from typing import TypeAlias

from remanence.observers.learned.features import word_grams
from remanence.observers.learned.function_words import WORD
from remanence.observers.learned.weights import load, packed_rows, unpack

FILE = "topics.bin"

Topics: TypeAlias = tuple[float, ...]
"""The probability of each topic of the weights, in their order."""


def common_topic(one: str, other: str) -> float:
    """Return the probability that two texts, each about one topic, are about the same."""
    return sum(a * b for a, b in zip(topics(one), topics(other), strict=True))


@lru_cache(maxsize=4_096)
def topics(text: str) -> Topics:
    """Return the probability of each topic."""
    weights, grams = load(FILE), topic_grams(text)
    numbers = unpack(packed_rows(FILE).sum_of(grams), len(weights.heads))
    share = 1 / sqrt(len(grams) or 1)
    columns = zip(weights.biases, weights.scales, numbers, strict=True)
    scores = [bias + scale * number * share for bias, scale, number in columns]
    most = max(scores)
    odds = [exp(score - most) for score in scores]
    total = sum(odds)
    return tuple(each / total for each in odds)


def log_odds(text: str, topic: str) -> float:
    """Return the log-odds that a text is about a topic of the weights, within 20 of an even chance."""
    probability = topics(text)[load(FILE).heads.index(topic)]
    return log((probability + exp(-20)) / (1 - probability + exp(-20)))


def topic_grams(text: str) -> list[str]:
    """Return the n-grams of the distinct words of a text; signs and numbers have no topic."""
    words = dict.fromkeys(word.lower() for word in WORD.findall(text) if word[0].isalpha())
    return [gram for word in words for gram in word_grams(word)]
