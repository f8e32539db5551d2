"""The regular expressions of the package: which of them could read a run of characters twice.

Each is held against the hostile inputs and against runs made from its own parts, at two lengths: the
time for four times as many characters has to be about four times as long.
"""

import ast
import dataclasses
import importlib
import inspect
import pkgutil
import re
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from math import inf
from typing import Any, NamedTuple

import remanence
from benchmarks.hostile import SHAPES
from benchmarks.pattern_parts import runs
from benchmarks.rows import Row

SMALL, LARGE = 1_000, 4_000
MOST_GROWTH = 9.0
"""Of the time for four times as many characters: 4 is linear, 16 quadratic."""
MIN_SECONDS = 0.002
"""What takes less at the larger length takes less than 50 ms for 100,000 characters."""
TRIES = 5
DYNAMIC = "x"
"""What takes the place of an expression in an f-string."""

BOUNDED: Mapping[str, int] = {
    "notes.literals._scan": 1_000,  # parts of `SLICE_CHARACTERS`
    "dates.find._WORD_BEFORE": 20,  # what stands before a date
}
"""The most characters that a pattern is given, where the code around it sets a bound."""


class Named(NamedTuple):
    """A regular expression and where it is used: `module.NAME`."""

    name: str
    pattern: re.Pattern[str]


@cache
def patterns() -> tuple[Named, ...]:
    """All regular expressions for text, each once under its first name."""
    found: dict[tuple[str, int], Named] = {}
    for module in _modules():
        for each in (*_held(module), *_inline(module)):
            found.setdefault((each.pattern.pattern, each.pattern.flags), each)
    return tuple(found.values())


def _modules() -> Iterator[Any]:  # modules have any attributes
    for info in pkgutil.walk_packages(remanence.__path__, "remanence."):
        if not info.name.endswith("__main__"):
            yield importlib.import_module(info.name)


def _held(module: Any) -> Iterator[Named]:
    """What the module's names hold, also behind functions that make it once."""
    short = module.__name__.removeprefix("remanence.")
    for name, value in vars(module).items():
        if hasattr(value, "cache_info") and not inspect.signature(value).parameters:
            value = value() if value.__module__ == module.__name__ else None  # noqa: PLW2901
        for pattern in _within(value, set()):
            yield Named(f"{short}.{name}", pattern)


def _within(value: object, seen: set[int]) -> Iterator[re.Pattern[str]]:
    """The patterns in a value, in what it holds, and behind a pattern's bound method."""
    value = getattr(value, "__self__", value)
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield value
    for item in _items(value):
        yield from _within(item, seen)


def _items(value: object) -> Iterator[object]:
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        lazy = [name for name, made in vars(type(value)).items() if _is_lazy(made)]
        for name in (*(field.name for field in dataclasses.fields(value)), *lazy):
            yield getattr(value, name)


def _is_lazy(made: object) -> bool:
    return isinstance(made, cached_property)


def _inline(module: Any) -> Iterator[Named]:
    """What the module's functions give to `re` on the spot."""
    short = module.__name__.removeprefix("remanence.")
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=attr), args=[first, *_]):
                text = _text_of(first) if attr != "escape" else None
                if text is not None and attr != "compile":
                    yield Named(f"{short}:{node.lineno}", re.compile(text))


def _text_of(node: ast.expr) -> str | None:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_text_of(value) or DYNAMIC for value in values)
        case _:
            return None


def measure() -> list[Row]:
    """A row for the patterns, and one for each of those whose time grows faster than the input."""
    every = patterns()
    slow = [row for each in every if (row := _slow(each)) is not None]
    return [
        Row(
            what="patterns whose time grows faster than their input",
            measured=float(len(slow)),
            target=0,
            reference=f"{SMALL:,} and {LARGE:,} characters",
            detail=f"of {len(every)}, {len(BOUNDED)} of them with a bound of their own",
        ),
        *slow,
    ]


def _slow(named: Named) -> Row | None:
    """The worst input of a pattern, if its time grows too fast."""
    growths = {text_of(60): _checked_growth(named, text_of) for text_of in _inputs(named)}
    text = max(growths, key=lambda text: growths[text])
    if growths[text] <= MOST_GROWTH:
        return None
    return Row(
        what=f"time for four times the input, {named.name}",
        measured=growths[text],
        target=MOST_GROWTH,
        detail=repr(text),
    )


def _checked_growth(named: Named, text_of: Callable[[int], str]) -> float:
    """The growth; one that is too fast is measured again, as others may have taken the time."""
    growth = _growth(named, text_of)
    return growth if growth <= MOST_GROWTH else min(growth, _growth(named, text_of))


def _growth(named: Named, text_of: Callable[[int], str]) -> float:
    """How many times as long four times an input takes; 0 where both take next to nothing."""
    large = BOUNDED.get(named.name, LARGE)
    small_text = text_of(large * SMALL // LARGE)
    if _seconds(named.pattern, small_text) < MIN_SECONDS:
        large_text = text_of(large)
        if _seconds(named.pattern, large_text) < MIN_SECONDS:
            return 0.0
        return _best(named.pattern, large_text) / max(1e-7, _best(named.pattern, small_text))
    return inf if _best(named.pattern, small_text) > MIN_SECONDS else 0.0


def _inputs(named: Named) -> Iterator[Callable[[int], str]]:
    yield from SHAPES.values()
    yield from runs(named.pattern)


def _best(pattern: re.Pattern[str], text: str) -> float:
    return min(_seconds(pattern, text) for _ in range(TRIES))


def _seconds(pattern: re.Pattern[str], text: str) -> float:
    """How long it takes to find all matches of a pattern, and the one at the begin of a text."""
    began = time.perf_counter()
    for _ in pattern.finditer(text):
        pass
    pattern.match(text)
    pattern.fullmatch(text)
    return time.perf_counter() - began
