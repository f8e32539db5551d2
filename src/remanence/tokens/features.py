"""What tells the tokens of a piece: its class, its length, and the letters that stand together.

A feature is a kind and a detail; a table of weights holds a number for each. The fitting tool and the
estimator share this module, so a change here asks for a new fit.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from remanence.tokens.pieces import script_of

_CJK = frozenset({"han", "hiragana", "katakana", "hangul"})


class Feature(NamedTuple):
    """A detail of some kind, such as the pair `th`."""

    kind: str
    detail: str


def features(piece: str) -> Iterator[Feature]:
    """The features of one piece; the weights of all, summed, are its tokens."""
    last = piece[-1]
    if last in "\r\n":
        yield from _line_end(piece)
    elif last.isspace():
        yield from _blank(piece)
    elif last.isdecimal():
        yield from _digits(piece)
    elif any(map(_is_letter, piece)):
        yield from _word(piece)
    elif last.isascii():
        yield from _signs(piece)
    else:
        yield from _symbols(piece)


def _is_letter(character: str) -> bool:
    return character.isalpha() or "\u0300" <= character < "\u2000"


def _line_end(piece: str) -> Iterator[Feature]:
    rest = piece.rstrip("\r\n")
    ends = piece[len(rest) :]
    if "\r" in ends:
        yield Feature("carriage return", "")
        ends = ends.replace("\r\n", "\n").replace("\r", "\n")
    if not rest:
        yield Feature("line ends", str(len(ends)))
    elif rest.isspace():
        yield Feature("blank line ends", str(len(ends)))
        yield from _blank(rest)
    else:
        yield Feature("sign line ends", f"{len(ends)}{rest[-1]}")
        yield Feature("sign line end", str(len(ends)))
        yield from _signs(rest)


def _blank(piece: str) -> Iterator[Feature]:
    if set(piece) == {" "}:
        yield Feature("spaces", str(len(piece)))
    else:
        yield Feature("blanks", str(len(piece)))


def _digits(piece: str) -> Iterator[Feature]:
    digits = piece.lstrip(" ")
    kind = "digits" if digits.isascii() else "digits of others"
    yield Feature(kind if digits is piece else f"space and {kind}", str(len(digits)))
    for _ in digits:
        yield Feature(kind, "each")


def _signs(piece: str) -> Iterator[Feature]:
    signs = piece.lstrip(" ")
    yield Feature("signs" if signs is piece else "space and signs", str(len(signs)))
    yield Feature("run", piece)
    for sign in signs:
        yield Feature("sign", sign)
    for first, second in pairwise(signs):
        yield Feature("sign pair", first + second)
        if first != second:
            yield Feature("signs", "change")


def _symbols(piece: str) -> Iterator[Feature]:
    yield Feature("symbols", str(len(piece)))
    for symbol in piece:
        yield Feature("script", script_of(symbol))
        yield Feature("symbol", symbol)
    for first, second in pairwise(piece):
        if first == second:
            yield Feature("symbols", "repeat")


def _word(piece: str) -> Iterator[Feature]:
    lead = "" if _is_letter(piece[0]) else piece[0]
    word, _, suffix = piece[len(lead) :].partition("'")
    if suffix:
        yield Feature("suffix", suffix)
    scripts = [script_of(letter) for letter in word]
    script = max(scripts)
    case = _case(word)
    yield Feature(f"{case} {script}", str(len(word)))
    yield Feature("lead", f"{lead} {case} {script}")
    for each in scripts:
        yield Feature("script", each)
    if script in _CJK:
        for letter in word:
            yield Feature("letter", letter)
    letters = word.lower() if case == "capital" else word
    yield from _neighbours(f"^{letters}$", script)


def _neighbours(letters: str, script: str) -> Iterator[Feature]:
    for start in range(len(letters) - 1):
        yield Feature(f"pair {script}", letters[start : start + 2])
    for start in range(len(letters) - 2):
        yield Feature(f"triple {script}", letters[start : start + 3])


def _case(word: str) -> str:
    if word == word.lower():
        return "small"
    if word[1:] == word[1:].lower():
        return "capital"
    return "upper" if word == word.upper() else "mixed"
