"""Beginnings and ends of texts, cut so that no value is cut in half.

Half a date, amount, id or path reads as another value, so a cut is made between words, or between
characters of a script without spaces. Where there is no such place near, `…` shows that the cut
went through something.
"""

from collections.abc import Iterator

REACH = 160
ELLIPSIS = "…"
_UNSPACED = "\u2e80"
"""Scripts that put no spaces between words have their characters from here on."""


def beginning(text: str, characters: int) -> str:
    """At most *characters* of the text from its beginning, save the `…` of a cut value."""
    if len(text) <= characters:
        return text
    places = range(characters, max(0, characters - REACH), -1)
    cut = next((place for place in places if _is_between(text, place)), None)
    return f"{text[:characters]}{ELLIPSIS}" if cut is None else text[:cut].rstrip()


def ending(text: str, characters: int) -> str:
    """At most *characters* of the text up to its end, save the `…` of a cut value."""
    if len(text) <= characters:
        return text
    start = len(text) - characters
    places = range(start, min(len(text), start + REACH))
    cut = next((place for place in places if _is_between(text, place)), None)
    return f"{ELLIPSIS}{text[start:]}" if cut is None else text[cut:].lstrip()


def parts(text: str, characters: int) -> Iterator[str]:
    """The whole text in parts of at most *characters*, cut between words where there are any."""
    start = 0
    while len(text) - start > characters:
        end = start + characters
        least = max(start, end - REACH)
        cut = next((place for place in range(end, least, -1) if _is_between(text, place)), end)
        yield text[start:cut]
        start = cut
    if start < len(text):
        yield text[start:]


def _is_between(text: str, place: int) -> bool:
    """Whether a cut at *place* is between two words."""
    before, after = text[place - 1 : place], text[place : place + 1]
    if not before or not after or before.isspace() or after.isspace():
        return True
    return all(
        character >= _UNSPACED and not character.isnumeric() for character in (before, after)
    )
