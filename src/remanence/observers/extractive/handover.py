"""Finds the sentence of a message that hands over somebody else's words."""

from collections.abc import Iterable
from itertools import islice

from remanence.observers.extractive.sentence_scores import is_filler
from remanence.observers.learned.openings import hands_over
from remanence.observers.learned.score import Scores

_MAX_SENTENCES = 4
"""Sentences of a message that are read, of which all but the last are remarks."""


def find_handover(sentences: Iterable[tuple[str, Scores]]) -> int | None:
    """Return the number of the sentence of a user's message behind which another's words follow.

    It is the first, or the next behind remarks such as "Hi!". None if the user goes on speaking.
    """
    for number, (text, scores) in enumerate(islice(sentences, _MAX_SENTENCES)):
        if hands_over(text):
            return number
        if not is_filler(scores):
            return None
    return None
