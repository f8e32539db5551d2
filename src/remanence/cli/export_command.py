"""`remanence export`: the notes of a conversation as blocks."""

from pathlib import Path
from typing import Annotated

import typer

from remanence.archive.blocks import BlockStore
from remanence.cli.options import AsJson, ConversationId, Database, Tenant
from remanence.cli.output import Printer, write_json
from remanence.cli.settings import load, open_conversation


async def run(
    *,
    conversation: ConversationId,
    to: Annotated[Path, typer.Option(metavar="DIRECTORY", help="Where the blocks go.")],
    db: Database = None,
    tenant: Tenant = "default",
    as_json: AsJson = False,
) -> None:
    """Append a conversation's notes to a file of JSON Lines.

    Each segment is a block, and a block is a line.
    """
    async with open_conversation(load(url=db).settings, conversation, tenant=tenant) as chat:
        count = await chat.export_blocks(BlockStore(to))
    if as_json:
        write_json({"exported": count})
    else:
        Printer().line(f"{count} new blocks of {conversation} in {to}")
