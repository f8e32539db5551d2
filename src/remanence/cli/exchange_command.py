"""`remanence export` and `remanence import`: notes to blocks and back."""

import asyncio
import dataclasses
from pathlib import Path

from remanence.archive.blocks import BlockStore
from remanence.archive.exchange import ImportReport
from remanence.cli.output import Printer, warn, write_json
from remanence.cli.settings import existing, open_existing
from remanence.settings import Settings


def run_export(
    settings: Settings, conversation: str, *, tenant: str, directory: Path, as_json: bool
) -> int:
    """Append the live segments that are not in the directory yet."""
    count = asyncio.run(_export(settings, conversation, tenant, directory))
    if as_json:
        write_json({"exported": count})
    else:
        Printer().line(f"{count} new blocks of {conversation} in {directory}")
    return 0


def run_import(
    settings: Settings, conversation: str, *, tenant: str, directory: Path, as_json: bool
) -> int:
    """Import blocks as observations; return 1 if some were skipped."""
    report = asyncio.run(_import(settings, conversation, tenant, directory))
    if as_json:
        write_json(dataclasses.asdict(report))
    else:
        Printer().line(
            f"{report.imported} blocks became observations of {conversation}; "
            f"{report.malformed} lines are not blocks"
        )
    for conflict in report.conflicts:
        warn(conflict)
    return 1 if report.conflicts else 0


async def _export(settings: Settings, conversation: str, tenant: str, directory: Path) -> int:
    async with open_existing(settings) as memory:
        chat = await existing(memory, conversation, tenant=tenant)
        return await chat.export_blocks(BlockStore(directory))


async def _import(
    settings: Settings, conversation: str, tenant: str, directory: Path
) -> ImportReport:
    async with open_existing(settings, access="write") as memory:
        chat = await existing(memory, conversation, tenant=tenant)
        return await chat.import_blocks(BlockStore(directory))
