"""The worth of a fact to a new conversation of its user."""

from math import inf

from remanence.facts.tags import SAVED, is_wish
from remanence.observers.learned.fact import KNOW, fact_scores
from remanence.types import Fact


def worth_of(fact: Fact) -> float:
    """Return the worth of a fact beside newer ones; infinite for a standing wish."""
    return inf if is_wish(fact) else score_of_knowing(fact)


def score_of_knowing(fact: Fact) -> float:
    """Return the learned score that a new conversation should know a fact."""
    return with_floor(fact, fact_scores(fact.summary)[KNOW])


def with_floor(fact: Fact, score: float) -> float:
    """Return the score of a fact; that of one that was saved is at least at the limit."""
    return max(score, 0.0) if fact.made_by == SAVED else score
