"""Find and replace marked-up elements in a text, in linear time."""

import re
from collections.abc import Iterator

_TAG = re.compile(
    r"""<(/?)([a-z][\w:.-]*+)(?:\s(?:"[^"\n]{0,500}"|[^<>"])*+)?+/?>""", re.IGNORECASE
)


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


def element_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each element is that is in no other, up to the last closing tag of its name.

    So text that quotes the closing tag stays within its element.
    """
    closed = {tag[2].lower(): tag.end() for tag in _TAG.finditer(text) if tag[1]}
    at = 0
    for tag in _TAG.finditer(text):
        end = closed.get(tag[2].lower(), 0)
        if not tag[1] and at <= tag.start() < end:
            yield tag.start(), end
            at = end
