"""Score of a sentence as a request to the memory to forget something."""

from functools import lru_cache
from math import sqrt

from remanence.observers.learned.features import Line, word_grams
from remanence.observers.learned.score import Scorer, scorer
from remanence.observers.learned.statements import (
    STATED,
    after_question,
    statement_scorer,
    surroundings,
)

FILE = "forgetting.bin"
FORGETS = "forgets"
"""The head: that the user asks the memory to forget."""
_MARGIN = 0.45
"""How far below the cutoff a line may still be a request; of the statements of users 0.2 % are."""
_ASKING, _TIMES = 0.3, 2.0
"""A word asks to forget if its share in that score is so high, and so many times that of a statement."""


def score_of_request(line: Line) -> float:
    """Return how far the score of a line is above its cutoff."""
    return scorer(FILE, surroundings).above(after_question(line))[FORGETS]


def may_request(line: Line) -> bool:
    """Return whether a line is a request, or so close to one that it should not be kept as a fact."""
    return score_of_request(line) >= -_MARGIN


@lru_cache(maxsize=4_096)
def asks_to_forget(word: str) -> bool:
    """Return whether a word in lower case asks to forget, as "forget" and "told" do.

    "Phone" does not: requests often name one, but so do statements.
    """
    asks = _share(scorer(FILE, surroundings), FORGETS, word)
    return asks >= max(_ASKING, _TIMES * _share(statement_scorer(), STATED, word))


def _share(scorer: Scorer, head: str, word: str) -> float:
    """Return what a word adds to a score if it is the only one."""
    weights, grams = scorer.weights, word_grams(word)
    at = weights.heads.index(head)
    total = sum(weights.row(gram)[at] for gram in grams)
    return weights.scales[at] * total / sqrt(len(grams) or 1)
