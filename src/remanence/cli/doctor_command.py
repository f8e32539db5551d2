"""`remanence doctor`: the problems of a memory, and how to fix them."""

import asyncio
import re
from collections.abc import Sequence

from remanence.cli.documents import mask_password, problem_document
from remanence.cli.output import Printer, write_json
from remanence.cli.settings import open_existing
from remanence.settings import Settings
from remanence.types import Problem

FAILED = 1
SHOWN_EXAMPLES = 3
_PARTICULARS = re.compile(r"'[^']*'|\d[\d,.:-]*")
_STYLES = {"error": "red", "warning": "yellow", "info": None}


def run(settings: Settings, *, as_json: bool) -> int:
    """Check, print the problems, and return the exit code: 1 if one is an error."""
    problems = asyncio.run(_problems(settings))
    if as_json:
        write_json(
            {
                "database": mask_password(settings.url),
                "judged_by": settings.preset,
                "problems": [problem_document(problem) for problem in problems],
            }
        )
    else:
        _print(Printer(), settings, problems)
    return FAILED if any(problem.level == "error" for problem in problems) else 0


async def _problems(settings: Settings) -> tuple[Problem, ...]:
    async with open_existing(settings) as memory:
        return await memory.check()


def _print(printer: Printer, settings: Settings, problems: tuple[Problem, ...]) -> None:
    if not problems:
        printer.line(
            f"{mask_password(settings.url)} is consistent; nothing is due, stuck or failing"
        )
    for alike in _groups(problems):
        first = alike[0]
        printer.line(f"{first.level}: {_where(alike)}", style=_STYLES[first.level])
        printer.line(f"  {'what' if len(alike) == 1 else 'such as'}: {first.what}")
        printer.line(f"  remedy: {first.remedy}")
    printer.line(
        "(What is due was judged by the plan of the program that works on it; where none has yet, by "
        f"the settings here, preset {settings.preset!r}: 'remanence config show' lists them.)"
    )


def _groups(problems: Sequence[Problem]) -> list[list[Problem]]:
    """Group problems that differ only in numbers and names, the most severe first."""
    groups: dict[tuple[str, str, bool], list[Problem]] = {}
    for problem in problems:
        kind = _PARTICULARS.sub("#", problem.what)
        groups.setdefault((problem.level, kind, problem.conversation is None), []).append(problem)
    return sorted(groups.values(), key=lambda alike: list(_STYLES).index(alike[0].level))


def _where(alike: Sequence[Problem]) -> str:
    refs = [problem.conversation for problem in alike if problem.conversation is not None]
    if not refs:
        return "the database" if len(alike) == 1 else f"the database, {len(alike):,} times"
    if len(refs) == 1:
        return f"conversation {refs[0].id!r} of tenant {refs[0].tenant!r}"
    named = list(dict.fromkeys(refs))
    count = f"{len(named):,} conversations" if len(named) > 1 else "a conversation"
    times = f", {len(refs):,} times" if len(refs) > len(named) else ""
    examples = ", ".join(f"{ref.id!r} of tenant {ref.tenant!r}" for ref in named[:SHOWN_EXAMPLES])
    return f"{count}{times}: {examples}{', ...' if len(named) > SHOWN_EXAMPLES else ''}"
