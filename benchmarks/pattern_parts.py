"""Regular expressions taken apart: repeats that could read the same characters, and runs for them."""

import _sre  # type: ignore[import-not-found]
import re
import re._compiler as compiler  # type: ignore[import-not-found]  # not in typeshed
import re._constants as codes  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Callable, Iterator
from typing import Any

REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT)
WIDTHLESS = (codes.AT, codes.ASSERT, codes.ASSERT_NOT)
SAMPLE = [*map(chr, range(1, 256)), *"–—“”„«»’…。、，：；！？（）「」漢かカ한"]
PLAIN = "a1 \n-.A,\"'"
"""Characters to try first for a run, where several would do."""
WIDE = 8
"""Repeats with a bound below it cost little."""


def faults(pattern: re.Pattern[str]) -> list[str]:
    """Unbounded repeats that hold another for the same characters, or stand beside one.

    Such as `(a+)+` and `a*a*`. Possessive repeats never give back, so they are left out.
    """
    tree = parser.parse(pattern.pattern, pattern.flags)
    return list(_faults(tree, tree.state.flags))


def runs(pattern: re.Pattern[str]) -> Iterator[Callable[[int], str]]:
    """For each long repeat of a pattern texts on which it goes on and on, and then fails."""
    tree = parser.parse(pattern.pattern, pattern.flags)
    flags = tree.state.flags
    for before, units in _places("", tree, flags):
        for unit in units:
            yield lambda size, b=before, u=unit: f"{b}{u * (size // len(u))}\x00"  # type: ignore[misc]  # bound now
            if before:
                yield lambda size, b=before + unit: b * (size // len(b))  # type: ignore[misc]


def _places(before: str, tree: Any, flags: int) -> Iterator[tuple[str, list[str]]]:
    """What may stand before each long repeat, and what it repeats."""
    for code, argument in tree:
        is_repeat = code in (*REPEATS, codes.POSSESSIVE_REPEAT)
        if is_repeat and (argument[1] == codes.MAXREPEAT or argument[1] > WIDE):
            yield before, _units(argument[2], flags)
        for branch in branches(argument):
            yield from _places(before, branch, flags)
        before += _sample(code, argument, flags)


def _units(tree: Any, flags: int) -> list[str]:
    """Short texts that a repeat's body takes, of several kinds of characters."""
    items = list(tree)
    if len(items) == 1 and items[0][0] in (codes.IN, codes.ANY, codes.NOT_LITERAL, codes.CATEGORY):
        ((code, argument),) = items
        one = first(code, argument, flags)[0]
        return [c for c in PLAIN if c in one] or sorted(one)[:3]
    texts = {_samples(items, flags)}
    for code, argument in items:
        if code is codes.BRANCH:
            texts |= {_samples(each, flags) for each in argument[1]}
    return sorted(text for text in texts if text)


def _samples(items: Any, flags: int) -> str:
    """A short text that items of a pattern take one after another."""
    return "".join(_sample(code, argument, flags) for code, argument in items)


def _sample(code: Any, argument: Any, flags: int) -> str:
    """A short text that an item of a pattern takes; empty where none is found."""
    if code in WIDTHLESS or code is codes.GROUPREF:
        return ""
    if code in (*REPEATS, codes.POSSESSIVE_REPEAT):
        times: int = min(argument[0], 64)
        return _samples(argument[2], flags) * times
    if code is codes.SUBPATTERN:
        return _samples(argument[3], flags)
    if code is codes.ATOMIC_GROUP:
        return _samples(argument, flags)
    if code is codes.BRANCH:
        return _samples(argument[1][0], flags)
    if code is codes.LITERAL:
        return chr(argument)
    one = first(code, argument, flags)[0]
    return next((c for c in PLAIN if c in one), min(one, default=""))


def branches(argument: object) -> Iterator[Any]:
    """The parts of a pattern within an item."""
    if isinstance(argument, parser.SubPattern):
        yield argument
    elif isinstance(argument, (tuple, list)):
        for item in argument:
            yield from branches(item)


def _is_unbounded(code: Any, argument: Any) -> bool:
    return bool(code in REPEATS and argument[1] == codes.MAXREPEAT)


def _firsts(tree: Any, flags: int) -> tuple[set[str], bool]:
    """The characters that a match may begin with, and whether it may be empty."""
    found: set[str] = set()
    for code, argument in tree:
        if code not in WIDTHLESS:
            firsts, may_be_empty = first(code, argument, flags)
            found |= firsts
            if not may_be_empty:
                return found, False
    return found, True


def first(code: Any, argument: Any, flags: int) -> tuple[set[str], bool]:
    """The same of one item of a pattern."""
    if code in (*REPEATS, codes.POSSESSIVE_REPEAT):
        firsts, may_be_empty = _firsts(argument[2], flags)
        return firsts, may_be_empty or argument[0] == 0
    if code is codes.SUBPATTERN:
        return _firsts(argument[3], flags)
    if code is codes.ATOMIC_GROUP:
        return _firsts(argument, flags)
    if code is codes.BRANCH:
        each = [_firsts(branch, flags) for branch in argument[1]]
        return set().union(*(firsts for firsts, _ in each)), any(empty for _, empty in each)
    if code is codes.GROUPREF:
        return set(), True
    state = parser.State()
    state.flags, state.str = flags, ""
    program = compiler._code(parser.SubPattern(state, [(code, argument)]), flags)
    one = _sre.compile("", flags, program, 0, {}, (None,))
    return {character for character in SAMPLE if one.fullmatch(character)}, False


def _repeated(tree: Any, flags: int) -> set[str]:
    """The characters that unbounded repeats in a tree may begin with."""
    found: set[str] = set()
    for code, argument in tree:
        if _is_unbounded(code, argument):
            found |= _firsts(argument[2], flags)[0]
        for branch in branches(argument):
            found |= _repeated(branch, flags)
    return found


def _faults(tree: Any, flags: int) -> Iterator[str]:
    items = list(tree)
    for place, (code, argument) in enumerate(items):
        if _is_unbounded(code, argument):
            mine = _firsts(argument[2], flags)[0]
            if mine & _repeated(argument[2], flags):
                yield "a repeat in a repeat"
            for after, what in items[place + 1 :]:
                if after in WIDTHLESS:
                    continue
                firsts, may_be_empty = first(after, what, flags)
                if _is_unbounded(after, what) and firsts & mine:
                    yield "two repeats of the same characters"
                if not may_be_empty:
                    break
        for branch in branches(argument):
            yield from _faults(branch, flags)
