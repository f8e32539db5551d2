"""Find and replace marked-up elements in a text, in linear time."""

import re
from collections.abc import Iterator


def replace_elements(text: str, opening: re.Pattern[str], instead: str) -> str:
    """Replace each element and the white space after it with *instead*; keep unclosed ones."""
    outside: list[str] = []
    at = 0
    for found in find_elements(text, opening):
        outside.append(text[at : found.start])
        at = found.stop
    return instead.join([*outside, text[at:]])


def find_elements(text: str, opening: re.Pattern[str]) -> Iterator[slice]:
    """Yield each element with the white space after it, except unclosed ones and inner ones.

    *opening* matches the start of an opening tag, with its name as the first group. A lazy regular
    expression would search to the end of the text for each unclosed element.
    """
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
            at = end.end()
            yield slice(tag.start(), at)
