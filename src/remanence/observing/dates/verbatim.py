"""Stretches of a text in which words are not prose: code, addresses, paths."""

import re

# Each alternative starts at the beginning of a token, which keeps the search linear.
_VERBATIM = re.compile(
    r"""
    ```.*?(?:```|\Z) | `[^`\n]*`            # code, fenced or inline
    | (?<!\w)[a-zA-Z][a-zA-Z+.-]{1,15}://\S+ | (?<!\w)www\.\S+
    | (?<!\S)[^\s@]+@\S+                    # mail addresses, handles on hosts
    | (?<![\w.~/\\-])(?:[a-zA-Z]:|\.{1,2}|~)?[\\/][^\s,;:!?()]+   # /etc/x, ~/x, C:\x
    | (?<![\w.~/\\-])[\w.~-]+/[\w.~-]+/[\w./~-]+                  # src/a/b
    | (?<![\w.~/\\-])[\w~-]+/[\w~-]+\.\w+                         # notes/today.md
    """,
    re.VERBOSE | re.DOTALL,
)


def verbatim_spans(text: str) -> list[tuple[int, int]]:
    """The stretches, in order and without overlap."""
    return [match.span() for match in _VERBATIM.finditer(text)]
