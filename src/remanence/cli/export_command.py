"""`remanence export`: the notes of a conversation as blocks, or all that is kept of a user."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from remanence.archive.blocks import BlockStore
from remanence.cli.options import AsJson, Database, Tenant
from remanence.cli.output import Printer, write_json
from remanence.cli.settings import load, open_conversation, open_existing


async def run(
    *,
    conversation: Annotated[str | None, typer.Argument(help="Its id.")] = None,
    to: Annotated[
        Path | None, typer.Option(metavar="DIRECTORY", help="Where the blocks go.")
    ] = None,
    user: Annotated[
        str | None, typer.Option(help="Print everything kept of this user instead.")
    ] = None,
    db: Database = None,
    tenant: Tenant = "default",
    as_json: AsJson = False,
) -> None:
    """Append a conversation's notes to a file of JSON Lines, or print all of a user.

    Each segment is a block, and a block is a line.
    """
    settings = load(url=db).settings
    if user is not None:
        async with open_existing(settings) as memory:
            async for line in memory.export_user(user, tenant=tenant):
                sys.stdout.buffer.write(f"{line}\n".encode("utf-8", "backslashreplace"))
        return
    if conversation is None or to is None:
        raise typer.BadParameter("name a conversation and --to, or a user with --user")
    async with open_conversation(settings, conversation, tenant=tenant) as chat:
        count = await chat.export_blocks(BlockStore(to))
    if as_json:
        write_json({"exported": count})
    else:
        Printer().line(f"{count} new blocks of {conversation} in {to}")
