"""Score of a sentence as something that its user states of themselves and means.

It reads no other sentence of the message: `openings` says whose words those behind the first are.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

from remanence.observers.learned.features import Line, symbol_of, tag
from remanence.observers.learned.function_words import Classes, lower_words
from remanence.observers.learned.score import Scorer, Scores, scorer

FILE = "statements.bin"
STATED, CHANGES, WISHES = "stated", "changes", "wishes"
"""Heads: that a sentence is stated and meant; if it is, that something changed, ended or was wrong; and
that the user asks for something that lasts or likes it."""
_PLACES = 8
"""Tokens at the beginning of a sentence whose classes are features by their place."""
_WORD_PLACES = 4
"""Tokens there that are features themselves by their place."""
_MAX_WHOLE = 8
"""Tokens of a sentence whose frame is a feature as a whole: "I'm a lawyer." and "I'm a nurse." have one."""
_FINAL = " .!"
_SAYING_CHANGE = 2.0
"""Share of a word in the score of changes from which it says one; most words have less than 1."""
WHOLE = "whole"
"""How the names of such features begin."""
_Token: TypeAlias = tuple[str, Classes]


def surroundings(line: Line) -> Iterator[tuple[str, ...]]:
    """Yield a group of features: the first tokens of a line by place, and the frame of a short one."""
    words, tagged = _tokens(line)
    yield (*_first(words, tagged), *_whole(tagged))


def first_tokens(line: Line) -> tuple[str, ...]:
    """Return a group of features: the first tokens of a line by place."""
    return tuple(_first(*_tokens(line)))


def _tokens(line: Line) -> tuple[list[str], list[_Token]]:
    words = lower_words(line.text)
    return words, tag(line.text, words)


def _first(words: Sequence[str], tagged: Sequence[_Token]) -> Iterator[str]:
    for number, token in enumerate(tagged[:_PLACES]):
        yield f"place {number} {symbol_of(*token)}"
    for number, word in enumerate(words[:_WORD_PLACES]):
        yield f"word {number} {word}"


def _whole(tagged: Sequence[_Token]) -> Iterator[str]:
    """Yield the frame of a short sentence, in classes and in its own function words."""
    if len(tagged) <= _MAX_WHOLE:
        symbols = [symbol_of(*token) for token in tagged]
        own = [word if classes else symbol_of(word, classes) for word, classes in tagged]
        yield from (f"{WHOLE} {' '.join(frame).rstrip(_FINAL)}" for frame in (symbols, own))


def statement_scorer() -> Scorer:
    """The scorer of statements, with the weights that ship with the package."""
    return scorer(FILE, surroundings)


def statement_scores(line: Line) -> Scores:
    """Return by how much each score of a line is above its cutoff.

    It does not matter what the line follows: what is stated alone is stated after a question too.
    """
    return statement_scorer().above(alone(line))


def alone(line: Line) -> Line:
    """Return a line without the one before its message."""
    return line._replace(reply_to=None)


@lru_cache(maxsize=4_096)
def says_change(word: str) -> bool:
    """Return whether a word in lower case says a change, as "moved" and "cancelled" do."""
    return statement_scorer().share_of(word, CHANGES) >= _SAYING_CHANGE
