"""Consolidates in child processes that die before the n-th change of a file, then once more.

Prints the numbers of the changes that were died before, as JSON.
"""

import asyncio
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from remanence.archive.daily import DailyNotes
from remanence.archive.daily_notes import DayNotes
from remanence.policy.policy import Policy
from remanence.testing import FixedClock, ScriptedReflector
from remanence.types import Owner

OWNER = Owner("default", "ana")
NOW = datetime(2027, 2, 1, tzinfo=UTC)
EVENTS = {"open", "os.mkdir", "os.remove", "os.rename"}
DIED = 9


def prepare(directory: Path) -> None:
    folder = directory / "default" / "ana"
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text("Curated by hand.\n")
    for day in (4, 5):
        (folder / f"2027-01-0{day}.md").write_text(f"- the badge of day {day} is K-{day}\n")


def consolidate(directory: Path) -> None:
    daily = DailyNotes(
        directory=directory,
        keep_days=1,
        reflector=ScriptedReflector(),
        policy=Policy.default(),
        count_text=len,
        clock=FixedClock(NOW),
        extract=keep_no_fact,
    )
    asyncio.run(daily.consolidate(OWNER))


async def keep_no_fact(_day: DayNotes, _owner: Owner) -> int:
    return 0


def in_child(directory: Path, *, die_before: int | None) -> int:
    """The exit code of a child that consolidates, and dies before this change of a file."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    changes = 0

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal changes
        if event in EVENTS and str(directory) in str(arguments[0]):
            changes += 1
            if changes == die_before:
                os._exit(DIED)

    sys.addaudithook(count)
    consolidate(directory)
    os._exit(0)


def main() -> None:
    root = Path(sys.argv[1])
    kills = []
    for number in range(1, 200):
        directory = root / str(number)
        prepare(directory)
        if in_child(directory, die_before=number) == 0:
            break
        kills.append(number)
        if in_child(directory, die_before=None) != 0:
            sys.exit(f"after a kill before change {number} consolidation fails")
    sys.stdout.write(json.dumps(kills))


if __name__ == "__main__":
    main()
