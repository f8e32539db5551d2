"""JSON with comments, as editors write it."""

import re

_PIECE = re.compile(
    r'("(?:[^"\\]|\\.)*+")'  # a string, whatever looks like a comment in it
    r"|//[^\n]*|/\*.*?(?:\*/|\Z)"
    r"|,(?=(?:\s|//[^\n]*\n|/\*.*?\*/)*+[\]}])",  # a comma after the last item
    re.DOTALL,
)


def strip_comments(text: str) -> str:
    """The text as plain JSON; what is taken out leaves its line breaks, so errors name the line."""
    return _PIECE.sub(lambda found: found[1] or re.sub(r"[^\n]", " ", found[0]), text)
