"""Substitute patterns in texts of any length without blocking other threads.

A regular expression holds the GIL until it returns, so one call on megabytes of text in a worker
thread would stop the event loop. Long texts are therefore searched in windows.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

Replacement: TypeAlias = Callable[[re.Match[str]], str]

MARK: Final = "[secret]"
"""Replaces a secret."""

WINDOW: Final = 8_000
REACH: Final = 1_000
MAX_RUN: Final = 16_000

_RUN_END: Final = re.compile(r"[^\w.~+/=-]")


class Rule(NamedTuple):
    """A pattern and its replacement.

    Every text that matches has one of the lower-case words in *needs*, if there are any.
    """

    pattern: re.Pattern[str]
    replacement: Replacement
    needs: tuple[str, ...] = ()


def apply_rules(rules: Iterable[Rule], text: str) -> str:
    """Apply the rules to the text, one after the other."""
    lowered = text.lower()
    for pattern, replacement, needs in rules:
        if not needs or any(word in lowered for word in needs):
            text = substitute(pattern, replacement, text)
    return text


def substitute(pattern: re.Pattern[str], replacement: Replacement, text: str) -> str:
    """Return `pattern.sub(replacement, text)`, computed one window at a time.

    No match of *pattern* may be empty. A match with its lookahead must fit in `REACH`, except for
    runs of letters, digits and `.~+/=-`, which may be as long as `MAX_RUN`.
    """
    if len(text) <= WINDOW:
        return pattern.sub(replacement, text)
    return "".join(_pieces(pattern, replacement, text))


def _pieces(pattern: re.Pattern[str], replacement: Replacement, text: str) -> Iterator[str]:
    start = done = 0
    while start < len(text):
        run = _RUN_END.search(text, start + WINDOW, start + WINDOW + MAX_RUN)
        end = run.start() if run else start + WINDOW + MAX_RUN
        limit = min(len(text), end + REACH)
        for match in pattern.finditer(text, start, limit):
            if match.start() >= end:
                break
            found = match if match.end() < limit else pattern.match(text, match.start())
            if found is not None:
                yield text[done : found.start()]
                yield replacement(found)
                done = found.end()
        start = max(end, done)
    yield text[done:]
