"""Scores of a fact in the words of its user, read alone as it is stored.

They say how much a new conversation should know it, whether it says several things, and whether it
asks for something. No other line has a part in them.
"""

from functools import lru_cache

from remanence.observers.learned.features import Line
from remanence.observers.learned.score import Scores, scorer

FILE = "fact.bin"
KNOW, SEVERAL, WISH = "know", "several", "wish"
"""Heads: that a new conversation of the user should know a fact; that it says several things; that
the user asks for something that lasts or likes it."""


@lru_cache(maxsize=4_096)
def fact_scores(text: str) -> Scores:
    """Return by how much each score of a fact is above its cutoff."""
    return scorer(FILE).above(Line(text, "user"))
