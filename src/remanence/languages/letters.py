r"""Letters with their marks, such as the vowel signs of Hindi, which `\w` and `str.isalpha` leave out."""

import re
from typing import Final

_MARKS: Final = (
    r"\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f"
    r"\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u07a6-\u07b0\u0900-\u0963"
    r"\u0981-\u0df3\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ebc\u0ec8-\u0ece\u0f71-\u0f84"
    r"\u0f8d-\u0fbc\u102b-\u103e\u1056-\u109d\u17b4-\u17d3\u200d\ua980-\ua9c0"
)
LETTER: Final = rf"(?:[^\W\d_][{_MARKS}]*)"
"""A letter with its marks, and zero-width joiners, as a pattern."""
LETTER_OR_DIGIT: Final = rf"(?:[^\W_][{_MARKS}]*)"
_LETTERS: Final = re.compile(rf"{LETTER}+")


def is_letters(text: str) -> bool:
    """Return whether a text has letters with their marks, and nothing else."""
    return _LETTERS.fullmatch(text) is not None


def count_letters(text: str) -> int:
    """Return how many characters of a text are letters or their marks."""
    return sum(map(len, _LETTERS.findall(text)))
