"""Beginnings and ends of texts that do not cut a value in half.

Half a date, amount, id or path reads as another value, so texts are cut between words, or between
characters of a script without spaces. If there is no such place nearby, `…` marks the cut.
"""

import unicodedata
from collections.abc import Iterable, Iterator

REACH = 160
ELLIPSIS = "…"
_UNSPACED = "\u2e80"
"""Characters from here on belong to scripts without spaces between words."""
_MODIFIERS = frozenset({"Lm", "Mc", "Mn", "Sk"})
"""Categories of characters that change the one before them, such as the dakuten of が."""


def beginning(text: str, characters: int) -> str:
    """Return at most *characters* from the beginning of the text, plus `…` if a value is cut."""
    if len(text) <= characters:
        return text
    places = range(characters, max(0, characters - REACH), -1)
    cut = next((place for place in places if _is_between(text, place)), None)
    return f"{text[:characters]}{ELLIPSIS}" if cut is None else text[:cut].rstrip()


def ending(text: str, characters: int) -> str:
    """Return at most *characters* from the end of the text, plus `…` if a value is cut."""
    if len(text) <= characters:
        return text
    start = len(text) - characters
    places = range(start, min(len(text), start + REACH))
    cut = next((place for place in places if _is_between(text, place)), None)
    return f"{ELLIPSIS}{text[start:]}" if cut is None else text[cut:].lstrip()


def both_ends(text: str, characters: int) -> str:
    """Return the text, or if it is longer than *characters* its beginning and its end, on own lines."""
    if len(text) <= characters:
        return text
    half = characters // 2
    return f"{beginning(text, half)}\n{ending(text, half)}"


def parts(text: str, characters: int) -> Iterator[str]:
    """Yield the whole text in parts of at most *characters*, cut between words if possible."""
    start = 0
    while len(text) - start > characters:
        end = start + characters
        least = max(start, end - REACH)
        cut = next((place for place in range(end, least, -1) if _is_between(text, place)), end)
        yield text[start:cut]
        start = cut
    if start < len(text):
        yield text[start:]


def fair_share(sizes: Iterable[int], room: int) -> int:
    """Return the cap to which the largest of *sizes* are cut so that all add up to *room*."""
    ascending = sorted(sizes)
    for index, size in enumerate(ascending):
        share = room // (len(ascending) - index)
        if size > share:
            return share
        room -= size
    return max(ascending, default=0)


def _is_between(text: str, place: int) -> bool:
    """Return whether a cut at *place* is between two words."""
    beside = text[place - 1 : place + 1]
    return any(map(str.isspace, beside)) or (
        all(character >= _UNSPACED and not character.isnumeric() for character in beside)
        and unicodedata.category(beside[-1]) not in _MODIFIERS
    )
