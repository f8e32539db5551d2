"""Which stretches of a text are not prose: code, addresses, paths."""

import re

# A fence that is never closed reaches to the end.
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_GLUED = re.compile(r"[!-~]*")
_ADDRESS = re.compile(r"://|[@\\]|^(?:www\.|~?/|\.{1,2}/)|/.*/|/.*\.\w+$", re.DOTALL)
_LONGEST_TOKEN = 300


def code_spans(text: str) -> list[tuple[int, int]]:
    """Code between backticks, in order and without overlap."""
    return [match.span() for match in _CODE.finditer(text)]


def in_address(text: str, start: int, end: int) -> bool:
    """Whether what is written together with `start..end` makes it a part of a URL, a mail address or a path."""
    ahead = text[max(0, start - _LONGEST_TOKEN) : start][::-1]
    before, after = _glue(ahead)[::-1], _glue(text[end : end + _LONGEST_TOKEN])
    token = f"{before}_{after}".lstrip("([{<\"'")
    return _ADDRESS.search(token) is not None


def _glue(text: str) -> str:
    match = _GLUED.match(text)
    return match[0] if match else ""
