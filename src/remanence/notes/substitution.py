"""Substitution in texts of any length, in steps that do not keep the interpreter from others.

One call of a pattern on a whole text holds the interpreter's lock until it ends: a thread that
looks through megabytes would stop the event loop for as long.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

Replacement: TypeAlias = Callable[[re.Match[str]], str]

WINDOW: Final = 8_000
REACH: Final = 1_000
LONGEST_RUN: Final = 16_000

_RUN_END: Final = re.compile(r"[^\w.~+/=-]")


class Rule(NamedTuple):
    """A pattern and what takes the place of a match.

    A text that it matches has one of the words in *needs*, in small letters; none: any text may.
    """

    pattern: re.Pattern[str]
    replacement: Replacement
    needs: tuple[str, ...] = ()


def apply_rules(rules: Iterable[Rule], text: str) -> str:
    """The text with what the rules put in the place of their matches, one rule after the other."""
    lowered = text.lower()
    for pattern, replacement, needs in rules:
        if not needs or any(word in lowered for word in needs):
            text = substitute(pattern, replacement, text)
    return text


def substitute(pattern: re.Pattern[str], replacement: Replacement, text: str) -> str:
    """The same as `pattern.sub(replacement, text)`, looked for in a window at a time.

    No match of *pattern* is empty. With what it looks at behind, none is longer than `REACH`, save
    for runs of letters, digits and `.~+/=-` up to `LONGEST_RUN`.
    """
    if len(text) <= WINDOW:
        return pattern.sub(replacement, text)
    return "".join(_pieces(pattern, replacement, text))


def _pieces(pattern: re.Pattern[str], replacement: Replacement, text: str) -> Iterator[str]:
    start = done = 0
    while start < len(text):
        end = _run_end(text, start + WINDOW)
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


def _run_end(text: str, place: int) -> int:
    """Where the run that goes on at *place* ends, if that is near."""
    end = _RUN_END.search(text, place, place + LONGEST_RUN)
    return end.start() if end else place + LONGEST_RUN
