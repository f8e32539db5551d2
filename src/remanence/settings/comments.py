"""JSON with comments, as editors write it."""

import re

_PIECE = re.compile(
    r'("(?:[^"\\]|\\.)*+")'  # a string may contain comment marks
    r"|//[^\n]*|/\*.*?(?:\*/|\Z)"
    r"|,(?=(?:\s|//[^\n]*\n|/\*.*?\*/)*+[\]}])",  # a comma after the last item
    re.DOTALL,
)


def strip_comments(text: str) -> str:
    """Remove comments; their line breaks stay, so that errors name the right line."""
    return _PIECE.sub(lambda found: found[1] or re.sub(r"[^\n]", " ", found[0]), text)
