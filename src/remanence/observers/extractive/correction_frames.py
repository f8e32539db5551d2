"""Corrections in scripts whose function words are affixes: "X 말고 Y", "不是X而是Y"."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from remanence.observers.extractive.render import Word

_PATTERNS = (
    # Chinese: 不是X而是Y
    re.compile(r"并?不是\s?(?P<old>[^，。；、]{1,15}?)\s?[，、]?\s?而(?=是)"),
    # Japanese: XじゃなくてY, XではなくY; text before a particle is not part of X
    re.compile(r"(?P<old>[^、。，；\sはがをにのも]{1,15})(?:じゃなくて|ではなくて?)[、，]?"),
    # Korean: X 말고 Y, X(이) 아니라 Y; words up to one with a particle are not part of X
    re.compile(
        r"(?<!\S)(?P<old>(?:[^\s,.;]*[^\s,.;은는을를이가도에서로]\s){0,2}[^\s,.;]{1,12}?)"
        r"(?:\s?말고|(?:이|가)?\s아니(?:라|고))(?:,|(?=\s)|$)"
    ),
)


class GivenUp(NamedTuple):
    """The words kept, and the text that they replace."""

    words: tuple[Word, ...]
    old: str


def superseded_words(words: Sequence[Word]) -> GivenUp | None:
    """Split the words at such a frame; None without a frame or without words outside it."""
    text, starts = _join(words)
    if text.isascii():
        return None
    for pattern in _PATTERNS:
        frame = pattern.search(text)
        if frame is not None and text[frame.end() :].strip():
            return GivenUp(tuple(_without(words, starts, *frame.span())), frame["old"])
    return None


def _join(words: Sequence[Word]) -> tuple[str, list[int]]:
    """Return the words as one text, and the offset of each word."""
    text, starts = "", []
    for word in words:
        text += " " if text and word.text and not word.glued else ""
        starts.append(len(text))
        text += word.text
    return text, starts


def _without(words: Sequence[Word], starts: Sequence[int], cut: int, end: int) -> Iterator[Word]:
    for word, start in zip(words, starts, strict=True):
        kept = word.text[: max(0, cut - start)] + word.text[max(0, end - start) :]
        if kept == word.text:
            yield word
        elif kept:
            yield word._replace(text=kept, key=kept.lower())
        else:
            yield word._replace(dropped=True)
