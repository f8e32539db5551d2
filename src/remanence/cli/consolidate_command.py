"""`remanence consolidate`: old daily notes into MEMORY.md."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from remanence.archive.daily import Consolidation
from remanence.cli.output import Printer, warn, write_json
from remanence.memory import Memory
from remanence.settings import Settings


def run(settings: Settings, *, user: str | None, tenant: str | None, as_json: bool) -> int:
    """Consolidate and report the result for each user; return 1 if *user* has no notes."""
    done = asyncio.run(_consolidate(settings, user, tenant))
    if as_json:
        write_json({"consolidated": [_document(each) for each in done]})
    else:
        _print(Printer(), done, user)
    for each in done:
        if each.signature == "edited":
            warn(f"{each.memory_file} was edited since its last summary; the edit is kept")
    return 1 if user is not None and not done else 0


async def _consolidate(
    settings: Settings, user: str | None, tenant: str | None
) -> tuple[Consolidation, ...]:
    async with Memory.open(settings=replace(settings, workers=0)) as memory:
        done = await memory.consolidate(user=user, tenant=tenant)
    return tuple(each for each in done if each.memory_file.parent.is_dir())


def _document(done: Consolidation) -> dict[str, object]:
    return {
        "tenant": done.tenant,
        "user": done.user,
        "days": [day.isoformat() for day in done.days],
        "facts": done.facts,
        "signature": done.signature,
        "memory_file": str(done.memory_file),
    }


def _print(printer: Printer, done: Sequence[Consolidation], user: str | None) -> None:
    if not done:
        whose = "" if user is None else f" of user {user!r}"
        printer.line(f"there are no daily notes{whose} yet")
        return
    printer.table(
        ("tenant", "user", "days#", "facts#", "memory file~"),
        [(each.tenant, each.user, len(each.days), each.facts, each.memory_file) for each in done],
    )
