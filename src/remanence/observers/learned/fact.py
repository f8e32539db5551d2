"""Scores of a fact in the words of its user, read alone as it is stored.

They say how much a new conversation should know it, whether it says several things, and whether it
asks for something. No other line has a part in them.
"""

from functools import cache, lru_cache

from remanence.observers.learned.features import Line
from remanence.observers.learned.score import Scorer, Scores
from remanence.observers.learned.weights import load

FILE = "fact.bin"
KNOW, SEVERAL, WISH = "know", "several", "wish"
"""Heads: that a new conversation of the user should know a fact; that it says several things; that
the user asks for something that lasts or likes it."""


@cache
def fact_scorer() -> Scorer:
    """The scorer of facts, with the weights that ship with the package."""
    return Scorer(load(FILE))


@lru_cache(maxsize=4_096)
def fact_scores(text: str) -> Scores:
    """Return by how much each score of a fact is above its cutoff."""
    scores = fact_scorer().score(Line(text, "user"))
    return {head: fact_scorer().over(scores, head) for head in scores}
