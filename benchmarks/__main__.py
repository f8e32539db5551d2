"""The table of figures: each beside its reference and its target."""

import argparse
import importlib
import sys
from collections.abc import Callable, Iterator
from typing import TypeAlias

from benchmarks import (
    appends,
    backlog,
    choices,
    context_size,
    corrections,
    cost,
    exchanges,
    full_history,
    imports,
    known,
    labelled,
    learned,
    lives,
    many,
    model_calls,
    one_user,
    openings,
    patterns,
    prompt_cost,
    proxy,
    questions,
    reading,
    repetitions,
    requests,
    revisions,
    saved,
    simulation,
    stalls,
    statements,
    turns,
    vectors,
    workers,
)
from benchmarks.hostile import SHAPES
from benchmarks.rows import Row, as_json, as_markdown

Measure: TypeAlias = Callable[[], list[Row]]


def sections(*, full: bool) -> dict[str, Measure]:
    """What can be measured, by name, in the order of the table."""
    return {
        "turns": turns.measure,
        "context_size": lambda: context_size.measure(full=full),
        "appends": appends.measure,
        "backlog": lambda: backlog.measure(
            conversations=backlog.ALL_CONVERSATIONS if full else backlog.CONVERSATIONS
        ),
        "workers": workers.measure,
        "many": lambda: many.measure(full=full),
        "one_user": one_user.measure,
        "vectors": vectors.measure,
        "simulation": simulation.measure,
        "proxy": proxy.measure,
        "prompt_cost": prompt_cost.measure,
        "quality": lambda: _of_module("quality"),
        "reading": reading.measure,
        "repetitions": repetitions.measure,
        "corrections": corrections.measure,
        "revisions": revisions.measure,
        "lives": lives.measure,
        "saved": saved.measure,
        "known": known.measure,
        "requests": requests.measure,
        "statements": statements.measure,
        "openings": openings.measure,
        "choices": choices.measure,
        "exchanges": exchanges.measure,
        "questions": questions.measure,
        "stalls": lambda: stalls.measure(list(SHAPES) if full else stalls.SOME),
        "patterns": patterns.measure,
        "tokens": lambda: _of_module("tokens"),
        "imports": imports.measure,
        "labelled": labelled.measure,
        "learned": learned.measure,
        "crash": lambda: [not_measured("kill -9 and races over many seeds: `make crash`")],
        "model_calls": model_calls.measure,
        "full_history": full_history.measure,
        "cost": cost.measure,
    }


def not_measured(what: str) -> Row:
    """The place of a figure that is still missing."""
    return Row(what=what, measured=None, detail="not measured yet")


def _of_module(name: str) -> list[Row]:
    """The rows of a module that needs data from outside; without them, where they will be."""
    try:
        module = importlib.import_module(f"benchmarks.{name}")
        measure: Measure = module.measure
    except (ImportError, AttributeError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return [not_measured(name)]
    return measure() or [not_measured(name)]


def rows(names: list[str], *, full: bool) -> Iterator[Row]:
    """The rows of the named sections; says on standard error which one is being measured."""
    for name, measure in sections(full=full).items():
        if name in names:
            print(f"measuring {name} ...", file=sys.stderr, flush=True)
            yield from measure()


def main() -> None:
    """Print the table as Markdown or as JSON."""
    names = list(sections(full=False))
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(names))
    parser.add_argument(
        "--full",
        action="store_true",
        help="also contexts of 1,000,000 messages and all hostile inputs",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    arguments = parser.parse_args()
    if unknown := set(arguments.sections) - set(names):
        parser.error(f"no such section: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    measured = list(rows(arguments.sections or names, full=arguments.full))
    print(as_json(measured) if arguments.json else as_markdown(measured))


if __name__ == "__main__":
    main()
