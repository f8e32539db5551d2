"""Score of the opening of a message: do the words of somebody else follow?

They do behind "Translate this:" and "My boss wrote:", but not behind a greeting or behind the label of
a note.
"""

import re
from functools import lru_cache

from remanence.observers.learned.features import Line
from remanence.observers.learned.score import scorer

FILE = "openings.bin"
HANDOVER = "handover"
_SURE = 2.5
"""How far above its cutoff an opening surely hands over what follows in its own sentence."""
_HEAD = re.compile(r"[^:：]{1,100}(?::(?!\S)|：)")


@lru_cache(maxsize=64)
def hands_over(opening: str) -> bool:
    """Return whether what follows the first sentence of a user's message is somebody else's text."""
    return scorer(FILE).above(line_of(opening))[HANDOVER] >= 0


def hands_over_in_sentence(opening: str) -> bool:
    """Return whether somebody else's words surely follow in the same sentence: "She said: I quit"."""
    head = line_of(opening)
    return head.text != opening and scorer(FILE).above(head)[HANDOVER] >= _SURE


def line_of(opening: str) -> Line:
    """Return an opening as its score reads it: the text may begin in the same sentence."""
    return Line(head_of(opening), "user")


def head_of(opening: str) -> str:
    """Return an opening up to its first colon, if it has one."""
    head = _HEAD.match(opening)
    return head[0] if head else opening
