"""Estimating the tokens of a text (first version)."""

import math
from collections.abc import Callable
from typing import TypeAlias

from remanence.tokens.families import Family

TextCount: TypeAlias = Callable[[str], int]

_ASCII_CHARACTERS_PER_TOKEN = {"o200k": 4.2, "cl100k": 4.2, "claude": 2.8, "claude_3": 3.6}


def estimator(family: Family) -> TextCount:
    """The estimator of `family`."""
    per_token = _ASCII_CHARACTERS_PER_TOKEN[family]

    def count(text: str) -> int:
        ascii_characters = len(text.encode("ascii", "ignore"))
        return math.ceil(ascii_characters / per_token + (len(text) - ascii_characters) * 0.8)

    return count
