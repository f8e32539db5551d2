"""Splitting text into pieces, whose tokens are estimated one by one.

The pieces follow common pre-tokenizers: a word includes the sign or space before it, or the last
character of longer white space; digits and runs of signs are separate. The length of a piece is
bounded, so that a text is split in linear time.
"""

import re
from bisect import bisect_right
from collections.abc import Callable
from functools import cache
from importlib.resources import files

_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = "\u3041-\u3096\u3099-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
_HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7ff"
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e8\u0900-\u0963\u0970-\u0dff\u0e01-\u0e3a\u0e40-\u0e4e\u0e80-\u0ecf"
    "\u0f00-\u109f\u1780-\u17dd\u200c\u200d"
)
_LEAD = r"[ -/:-@\[-`{-~\t\u2010-\u2027\u3001-\u3003\u00ab\u00bb\u00a0\u00bf\u00a1]"
_WORD = rf"(?:[^\W\d_{_HAN}{_KANA}{_HANGUL}]|[{_MARKS}])"
_SIGN = r"[!-/:-@\[-`{-~]"
_ASCII_WORD = (
    r"(?:[A-Z]{0,16}+[a-z]{1,24}+|[A-Z]{1,24}+(?![a-z]))"
    r"(?![\u00aa-\u1fff\u2c00-\U0010ffff])"
)
_PIECES = (
    rf"{_LEAD}?{_ASCII_WORD}(?:'(?:s|t|re|ve|m|ll|d)\b)?",
    rf" ?{_SIGN}{{1,32}}[\r\n]{{0,8}}",
    r" ?[0-9]{1,12}",
    r"[^\S\r\n]{0,64}[\r\n]{1,32}",
    r"[^\S\r\n]{1,64}(?!\S)",
    rf"{_LEAD}?{_WORD}{{1,24}}",
    rf" ?(?:[{_HAN}]{{1,16}}|[{_KANA}]{{1,16}}|[{_HANGUL}]{{1,16}})",
    r" ?\d{1,12}",
    r"[^\S\r\n]{1,64}",
    r" ?[^\w\s\x00-\x7f]{1,16}",
    r".",
)


@cache
def cutter() -> Callable[[str], list[str]]:
    """Return a function that splits a text into pieces, which joined are the text again."""
    return re.compile("|".join(_PIECES), re.DOTALL).findall


_SCRIPTS = [
    line.split(" ", 1)
    for line in files("remanence.tokens").joinpath("scripts.txt").read_text("utf-8").splitlines()
]
"""The first character of each range, in hexadecimal, and its script."""

_STARTS = [int(start, 16) for start, _ in _SCRIPTS]


def script_of(character: str) -> str:
    """Return the coarse script of `character`."""
    return _SCRIPTS[bisect_right(_STARTS, ord(character)) - 1][1]
