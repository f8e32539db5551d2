"""Beginnings and ends of texts that do not cut a value in half.

Half a date, amount, id or path reads as another value, so texts are cut between words, or between
characters of a script without spaces. If there is no such place nearby, `…` marks the cut.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator

REACH = 160
ELLIPSIS = "…"
_UNSPACED = "\u2e80"
"""Characters from here on belong to scripts without spaces between words."""
_MODIFIERS = frozenset({"Lm", "Mc", "Me", "Mn", "Sk"})
"""Categories of characters that change the one before them, such as the dakuten of が."""
_ATTACHED = re.compile("[\u0e33\u0eb3\u200c\u200d\U000e0020-\U000e007f]")
"""The vowel am of Thai and Lao, joiners, and the tags of a flag."""
_VIRAMA = 9
"""Combining class of the marks that join letters of Indic scripts."""
_FLAG_LETTERS = re.compile("[\U0001f1e6-\U0001f1ff]*$")
_MAX_ATTACHED = 40
"""Characters of a run of marks or joined emoji beyond which it is cut."""


def beginning(text: str, characters: int) -> str:
    """Return at most *characters* from the beginning of the text, plus `…` if a value is cut."""
    if len(text) <= characters:
        return text
    places = range(characters, max(0, characters - REACH), -1)
    cut = next((place for place in places if _is_between(text, place)), None)
    return f"{text[: whole(text, characters)]}{ELLIPSIS}" if cut is None else text[:cut].rstrip()


def ending(text: str, characters: int) -> str:
    """Return at most *characters* from the end of the text, plus `…` if a value is cut."""
    if len(text) <= characters:
        return text
    start = len(text) - characters
    places = range(start, min(len(text), start + REACH))
    cut = next((place for place in places if _is_between(text, place)), None)
    return f"{ELLIPSIS}{text[whole(text, start, step=1) :]}" if cut is None else text[cut:].lstrip()


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
        cut = next((place for place in range(end, least, -1) if _is_between(text, place)), None)
        cut = cut or max(start + 1, whole(text, end))
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


def whole(text: str, place: int, *, step: int = -1) -> int:
    """Return the place to cut that is nearest in a direction and not within a visible character."""
    places = range(place, place + step * _MAX_ATTACHED, step)
    found = (at for at in places if 0 < at <= len(text) and not _is_within(text, at))
    return next(found, place)


def _is_within(text: str, place: int) -> bool:
    """Return whether a place is between a letter and its marks, or within an emoji or a flag."""
    after = text[place : place + 1]
    if not after or after.isascii() or text[place - 1].isspace():
        return False
    is_joined = unicodedata.combining(text[place - 1]) == _VIRAMA and after.isalpha()
    if is_joined or text[place - 1] == "\u200d" or _ATTACHED.match(after):
        return True
    if _FLAG_LETTERS.match(after):
        before = _FLAG_LETTERS.search(text, max(0, place - _MAX_ATTACHED), place)
        return before is not None and len(before[0]) % 2 == 1
    return unicodedata.category(after) in _MODIFIERS


def _is_between(text: str, place: int) -> bool:
    """Return whether a cut at *place* is between two words."""
    beside = text[place - 1 : place + 1]
    return any(map(str.isspace, beside)) or (
        all(character >= _UNSPACED and not character.isnumeric() for character in beside)
        and not _is_within(text, place)
    )
