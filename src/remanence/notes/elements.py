"""Cutting marked-up elements out of a text, in time that grows with its length alone."""

import re
from collections.abc import Iterator


def replace_elements(text: str, opening: re.Pattern[str], instead: str) -> str:
    """The text with *instead* for each element and the spaces after it; an unclosed one stays.

    White space behind an element goes with it.

    *opening* matches the begin of an opening tag, with its name as the first group. A lazy regular
    expression would look for the end of each unclosed element again, up to the end of the text.
    """
    return instead.join(_outside(text, opening))


def _outside(text: str, opening: re.Pattern[str]) -> Iterator[str]:
    unclosed: set[str] = set()
    at = 0
    for tag in opening.finditer(text):
        name = tag[1].lower()
        if tag.start() < at or name in unclosed:
            continue
        end = re.compile(rf"</{re.escape(name)}>\s*+", re.IGNORECASE).search(text, tag.end())
        if end is None:
            unclosed.add(name)
        else:
            yield text[at : tag.start()]
            at = end.end()
    yield text[at:]
