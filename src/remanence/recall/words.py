"""Words of texts as searches compare them, in scripts with spaces and without."""

import re
from functools import lru_cache
from typing import Final

from remanence.languages.letters import LETTER_OR_DIGIT
from remanence.notes.plain_text import plain_text

WORD: Final = re.compile(rf"{LETTER_OR_DIGIT}+")
"""A word with its combining marks, which `\\w` excludes, and zero-width joiners."""
_UNSPACED: Final = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
UNSPACED_LETTER: Final = re.compile(f"[{_UNSPACED}]")
"""A letter of a script that has no spaces between words, or of Korean, which adds endings to them."""

_MAX_CACHED: Final = 2_000
"""Characters of a text whose folded form is remembered, as each turn searches the same messages."""


class _Folded(dict[int, str]):
    """Characters in small letters without accents, by their codes, filled on first use."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        forms = (plain_text(character), character.casefold(), character)
        self[code] = folded = next(form for form in forms if len(form) == 1)
        return folded


_FOLDED = _Folded()


def fold(text: str) -> str:
    """Return the text case-folded, without accents, where that keeps its length: offsets stay valid."""
    if text.isascii():
        return text.casefold()
    return _fold_cached(text) if len(text) <= _MAX_CACHED else text.translate(_FOLDED)


@lru_cache(maxsize=2_048)
def _fold_cached(text: str) -> str:
    return text.translate(_FOLDED)
