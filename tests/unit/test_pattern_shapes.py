"""No pattern that reads what was said reads a run of characters again for each of them.

That happens where an unbounded repeat holds another that can read the same characters, or stands
beside one: `(a+)+`, `a*a*`. Possessive repeats never give back, so they are left out.
"""

import _sre  # type: ignore[import-not-found]
import importlib
import pkgutil
import re
import re._compiler as compiler  # type: ignore[import-not-found]  # not in typeshed
import re._constants as codes  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Iterator, Mapping
from typing import Any

from remanence import observing

REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT)
WIDTHLESS = (codes.AT, codes.ASSERT, codes.ASSERT_NOT)
SAMPLE = [*map(chr, range(1, 256)), *"–—“”„«»’…。、，：；！？（）「」漢かカ한"]

EXCEPTIONS = {
    "daily_notes._HEADING": "a line of the package's own files, and what follows takes all",
    "choices._ROWS": "nothing follows the rows that could fail",
    "wording._EDGES": "applied to a single word, whose edges are short",
    "literals._SCAN": "given pieces of a bounded length",
    "asking._WORD": "applied to the few words of a short answer",
    "lines._WHO": "what follows takes all, so that nothing fails after it",
    "secrets._CALL": "applied to one value of at most 200 characters",
}
"""Patterns that are not proved so, and why they need not be."""


def _patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    for info in pkgutil.walk_packages(observing.__path__, "remanence.observing."):
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            for pattern in _within(value):
                yield f"{info.name.rpartition('.')[2]}.{name}", pattern


def _within(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _within(item)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _within(item)


def _branches(argument: object) -> Iterator[Any]:
    if isinstance(argument, parser.SubPattern):
        yield argument
    elif isinstance(argument, (tuple, list)):
        for item in argument:
            yield from _branches(item)


def _is_unbounded(code: Any, argument: Any) -> bool:
    return bool(code in REPEATS and argument[1] == codes.MAXREPEAT)


def _firsts(tree: Any, flags: int) -> tuple[set[str], bool]:
    """The characters that a match may begin with, and whether it may be empty."""
    found: set[str] = set()
    for code, argument in tree:
        if code not in WIDTHLESS:
            firsts, may_be_empty = _first(code, argument, flags)
            found |= firsts
            if not may_be_empty:
                return found, False
    return found, True


def _first(code: Any, argument: Any, flags: int) -> tuple[set[str], bool]:
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
        for branch in _branches(argument):
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
                firsts, may_be_empty = _first(after, what, flags)
                if _is_unbounded(after, what) and firsts & mine:
                    yield "two repeats of the same characters"
                if not may_be_empty:
                    break
        for branch in _branches(argument):
            yield from _faults(branch, flags)


def _faults_of(pattern: re.Pattern[str]) -> list[str]:
    tree = parser.parse(pattern.pattern, pattern.flags)
    return list(_faults(tree, tree.state.flags))


def test_no_pattern_repeats_what_another_repeat_reads() -> None:
    faulty = {name: found for name, one in _patterns() if (found := _faults_of(one))}

    assert {name: found for name, found in faulty.items() if name not in EXCEPTIONS} == {}


def test_what_reads_a_run_again_is_found() -> None:
    for text in (r"(?:a+)+b", r"\s*x?\s*y", r"(?:a|b+)*c"):
        assert _faults_of(re.compile(text)), text
    for text in (r"\s*+x?\s*y", r"\w+(?:-\w+)*"):
        assert not _faults_of(re.compile(text)), text
