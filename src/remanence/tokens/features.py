"""Features of a piece that predict its tokens: its class, its length, and adjacent letters.

A feature is a kind, a detail and the number of occurrences; the table has a weight for each kind and
detail. The fitting tool and the estimator share this module, so a change here requires a new fit.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import TypeAlias

from remanence.tokens.pieces import script_of

Feature: TypeAlias = tuple[str, str, int]

_CJK = frozenset({"han", "hiragana", "katakana", "hangul"})


def features(piece: str) -> Iterator[Feature]:
    """Return the features of a piece; its tokens are the sum of weight times occurrences."""
    last = piece[-1]
    if _is_letter(last):
        return _word(piece)
    if last in "\r\n":
        return _line_end(piece)
    if last.isspace():
        return _blank(piece)
    if last.isdecimal():
        return _digits(piece)
    return _signs(piece) if last.isascii() else _symbols(piece)


def _is_letter(character: str) -> bool:
    return character.isalpha() or "\u0300" <= character < "\u2000"


def _line_end(piece: str) -> Iterator[Feature]:
    rest = piece.rstrip("\r\n")
    ends = piece[len(rest) :]
    if "\r" in ends:
        yield "carriage return", "", 1
        ends = ends.replace("\r\n", "\n")
    if not rest:
        yield "line ends", str(len(ends)), 1
    elif rest.isspace():
        yield "blank line ends", str(len(ends)), 1
        yield from _blank(rest)
    else:
        yield "sign line end", f"{len(ends)}{rest[-1]}", 1
        yield "sign line ends", str(len(ends)), 1
        yield from _signs(rest)


def _blank(piece: str) -> Iterator[Feature]:
    yield "blanks" if piece.strip(" ") else "spaces", str(len(piece)), 1


def _digits(piece: str) -> Iterator[Feature]:
    digits = piece.lstrip(" ")
    kind = "digits" if digits.isascii() else "digits of others"
    yield kind if len(digits) == len(piece) else f"space and {kind}", str(len(digits)), 1
    yield kind, "each", len(digits)


def _signs(piece: str) -> Iterator[Feature]:
    signs = piece.lstrip(" ")
    yield "signs" if len(signs) == len(piece) else "space and signs", str(len(signs)), 1
    yield "run", piece, 1
    pairs = Counter(map("".join, pairwise(signs)))
    for sign, times in Counter(signs).items():
        yield "sign", sign, times
    for pair, times in pairs.items():
        yield "sign pair", pair, times
    yield "signs", "change", sum(n for pair, n in pairs.items() if pair[0] != pair[1])


def _symbols(piece: str) -> Iterator[Feature]:
    yield "symbols", str(len(piece)), 1
    for symbol in piece:
        yield "script", script_of(symbol), 1
        yield "symbol", symbol, 1
    yield "symbols", "repeat", sum(first == second for first, second in pairwise(piece))


def _word(piece: str) -> Iterator[Feature]:
    lead = "" if _is_letter(piece[0]) else piece[0]
    word, _, suffix = piece[len(lead) :].partition("'")
    if suffix:
        yield "suffix", suffix, 1
    scripts = Counter(map(script_of, word)) if not word.isascii() else {"latin": len(word)}
    script = max(scripts)
    case = _case(word)
    yield f"{case} {script}", str(len(word)), 1
    yield "lead", f"{lead} {case} {script}", 1
    for each, times in scripts.items():
        yield "script", each, times
    if script in _CJK:
        for letter in word:
            yield "letter", letter, 1
    letters = f"^{word.lower() if case == 'capital' else word}$"
    pairs, triples = f"pair {script}", f"triple {script}"
    for start in range(len(letters) - 1):
        yield pairs, letters[start : start + 2], 1
    for start in range(len(letters) - 2):
        yield triples, letters[start : start + 3], 1


def _case(word: str) -> str:
    if word.islower() or word == word.lower():
        return "small"
    if word[1:] == word[1:].lower():
        return "capital"
    return "upper" if word.isupper() else "mixed"
