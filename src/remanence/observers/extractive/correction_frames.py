"""What a clause gives up in a script whose small words hang on others: "X 말고 Y", "不是X而是Y"."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from remanence.observers.extractive.render import Word

_PATTERNS = (
    # Chinese: 不是X而是Y
    re.compile(r"并?不是\s?(?P<old>[^，。；、]{1,15}?)\s?[，、]?\s?而(?=是)"),
    # Japanese: XじゃなくてY, XではなくY; what stands before a particle is not X
    re.compile(r"(?P<old>[^、。，；\sはがをにのも]{1,15})(?:じゃなくて|ではなくて?)[、，]?"),
    # Korean: X 말고 Y, X(이) 아니라 Y; words before one with a particle are not X
    re.compile(
        r"(?<!\S)(?P<old>(?:[^\s,.;]*[^\s,.;은는을를이가도에서로]\s){0,2}[^\s,.;]{1,12}?)"
        r"(?:\s?말고|(?:이|가)?\s아니(?:라|고))(?:,|(?=\s)|$)"
    ),
)


class GivenUp(NamedTuple):
    """The words that stay, and the text of what they replace."""

    words: tuple[Word, ...]
    old: str


def superseded_words(words: Sequence[Word]) -> GivenUp | None:
    """What the words give up in such a frame; none where there is no frame, or nothing beside it."""
    text, starts = _join(words)
    if text.isascii():
        return None
    for pattern in _PATTERNS:
        found = pattern.search(text)
        if found is not None and text[found.end() :].strip():
            return GivenUp(tuple(_without(words, starts, *found.span())), found["old"])
    return None


def _join(words: Sequence[Word]) -> tuple[str, list[int]]:
    """The words as one text, and where each of them begins."""
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
