"""Replace marked-up elements in a text, in linear time."""

import re
from collections.abc import Iterator


def replace_elements(text: str, opening: re.Pattern[str], instead: str) -> str:
    """Replace each element and the white space after it with *instead*; keep unclosed ones.

    *opening* matches the start of an opening tag, with its name as the first group. A lazy regular
    expression would search to the end of the text for each unclosed element.
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
