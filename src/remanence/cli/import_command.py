"""`remanence import`: exported blocks as observations."""

from pathlib import Path
from typing import Annotated

import typer

from remanence.archive.blocks import BlockStore
from remanence.cli import FAILED
from remanence.cli.options import AsJson, ConversationId, Database, Tenant
from remanence.cli.output import Printer, warn, write_json
from remanence.cli.settings import load, open_conversation


async def run(
    *,
    conversation: ConversationId,
    source: Annotated[
        Path,
        typer.Option("--from", metavar="DIRECTORY", exists=True, help="Where the blocks are."),
    ],
    db: Database = None,
    tenant: Tenant = "default",
    as_json: AsJson = False,
) -> int:
    """Import exported blocks as observations.

    Their messages must be on the tape and not observed yet.
    """
    settings = load(url=db).settings
    async with open_conversation(settings, conversation, tenant=tenant, access="write") as chat:
        report = await chat.import_blocks(BlockStore(source))
    if as_json:
        write_json(report)
    else:
        Printer().line(
            f"{report.imported} blocks became observations of {conversation}; "
            f"{report.malformed} lines are not blocks"
        )
    for conflict in report.conflicts:
        warn(conflict)
    return FAILED if report.conflicts else 0
