"""`remanence doctor`: what is wrong with a memory, and how to mend it."""

import asyncio

from remanence.cli.documents import masked, problem_document
from remanence.cli.output import Printer, write_json
from remanence.cli.settings import opened
from remanence.config import Settings
from remanence.types import Problem

FAILED = 1
_STYLES = {"error": "red", "warning": "yellow", "info": None}


def run(settings: Settings, *, as_json: bool) -> int:
    """Check, show, and give the exit code: 1 if there is an error."""
    problems = asyncio.run(_problems(settings))
    if as_json:
        write_json(
            {
                "database": masked(settings.url),
                "problems": [problem_document(problem) for problem in problems],
            }
        )
    else:
        _print(Printer(), settings, problems)
    return FAILED if any(problem.level == "error" for problem in problems) else 0


async def _problems(settings: Settings) -> tuple[Problem, ...]:
    async with opened(settings, works=False) as memory:
        return await memory.check()


def _print(printer: Printer, settings: Settings, problems: tuple[Problem, ...]) -> None:
    if not problems:
        printer.line(f"{masked(settings.url)} is consistent; nothing is due, stuck or failing")
        return
    for problem in sorted(problems, key=lambda problem: list(_STYLES).index(problem.level)):
        ref = problem.conversation
        where = f"conversation {ref.id!r} of tenant {ref.tenant!r}" if ref else "the database"
        printer.line(f"{problem.level}: {where}", style=_STYLES[problem.level])
        printer.line(f"  what:   {problem.what}")
        printer.line(f"  remedy: {problem.remedy}")
