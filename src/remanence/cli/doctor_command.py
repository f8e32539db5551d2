"""`remanence doctor`: the problems of a memory, and how to fix them."""

import re
from collections.abc import Sequence

from remanence.cli import FAILED
from remanence.cli.options import AsJson, Database
from remanence.cli.output import Printer, write_json
from remanence.cli.settings import load, mask_password, open_existing
from remanence.types import Problem

SHOWN_EXAMPLES = 3
_PARTICULARS = re.compile(r"'[^']*'|\d[\d,.:-]*")
_STYLES = {"error": "red", "warning": "yellow", "info": None}


async def run(*, db: Database = None, as_json: AsJson = False) -> int:
    """Report the problems of a memory and how to fix them.

    Finds data that is inconsistent, and work that fails, is stuck or is overdue.
    """
    settings = load(url=db).settings
    async with open_existing(settings) as memory:
        problems = await memory.check()
    database = mask_password(settings.url)
    if as_json:
        found = [_document(problem) for problem in problems]
        write_json({"database": database, "judged_by": settings.preset, "problems": found})
    else:
        _print(Printer(), problems, database=database, preset=settings.preset)
    return FAILED if any(problem.level == "error" for problem in problems) else 0


def _document(problem: Problem) -> dict[str, object]:
    """The problem as JSON; tenant and conversation are null if it concerns the database."""
    ref = problem.conversation
    return {
        "tenant": ref.tenant if ref else None,
        "conversation": ref.id if ref else None,
        "level": problem.level,
        "what": problem.what,
        "remedy": problem.remedy,
    }


def _print(printer: Printer, problems: Sequence[Problem], *, database: str, preset: str) -> None:
    if not problems:
        printer.line(f"{database} is consistent; nothing is due, stuck or failing")
    for alike in _groups(problems):
        first = alike[0]
        printer.line(f"{first.level}: {_where(alike)}", style=_STYLES[first.level])
        printer.line(f"  {'what' if len(alike) == 1 else 'such as'}: {first.what}")
        printer.line(f"  remedy: {first.remedy}")
    printer.line(
        "(What is due was judged by the plan of the program that works on it; where none has yet, by "
        f"the settings here, preset {preset!r}: 'remanence config show' lists them.)"
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
