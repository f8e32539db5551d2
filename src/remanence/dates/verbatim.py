"""Spans of a text that are not prose: code, addresses and paths."""

import re

# An unclosed fence extends to the end.
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_GLUED = re.compile(r"[!-~]*")
_ADDRESS = re.compile(r"://|[@\\]|^(?:www\.|~?/|\.{1,2}/)|/.*/|/.*\.\w+$", re.DOTALL)
_MAX_TOKEN_CHARACTERS = 300


def code_spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of code in backticks, in order and without overlap."""
    return [match.span() for match in _CODE.finditer(text)]


def in_address(text: str, start: int, end: int) -> bool:
    """Return whether `start..end` is part of a URL, an e-mail address or a path."""
    ahead = text[max(0, start - _MAX_TOKEN_CHARACTERS) : start][::-1]
    before, after = _glue(ahead)[::-1], _glue(text[end : end + _MAX_TOKEN_CHARACTERS])
    token = f"{before}_{after}".lstrip("([{<\"'")
    return _ADDRESS.search(token) is not None


def _glue(text: str) -> str:
    match = _GLUED.match(text)
    return match[0] if match else ""
