"""Score of the opening of a message: do the words of somebody else follow?

They do behind "Translate this:" and "My boss wrote:", but not behind a greeting or behind the label of
a note.
"""

import re
from functools import cache, lru_cache

from remanence.observers.learned.features import Line
from remanence.observers.learned.score import Scorer
from remanence.observers.learned.weights import load

FILE = "openings.bin"
HANDOVER = "handover"
_HEAD = re.compile(r"[^:：]{1,100}(?::(?!\S)|：)")


@lru_cache(maxsize=64)
def hands_over(opening: str) -> bool:
    """Return whether what follows the first sentence of a user's message is somebody else's text."""
    scorer = opening_scorer()
    return scorer.over(scorer.score(line_of(opening)), HANDOVER) >= 0


def line_of(opening: str) -> Line:
    """Return an opening as its score reads it: the text may begin in the same sentence."""
    return Line(head_of(opening), "user")


def head_of(opening: str) -> str:
    """Return an opening up to its first colon, if it has one."""
    head = _HEAD.match(opening)
    return head[0] if head else opening


@cache
def opening_scorer() -> Scorer:
    """The scorer of openings, with the weights that ship with the package."""
    return Scorer(load(FILE))
