"""`remanence delete`: the end of a conversation."""

from typing import Annotated

import typer

from remanence.cli import FAILED
from remanence.cli.options import ConversationId, Database, Tenant
from remanence.cli.output import Printer, confirm, warn
from remanence.cli.settings import load, open_conversation, require_conversation


async def run(
    *,
    conversation: ConversationId,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    db: Database = None,
    tenant: Tenant = "default",
) -> int:
    """Erase a conversation with its notes and facts."""
    settings = load(url=db).settings
    if not yes:
        await require_conversation(settings, conversation, tenant=tenant)
        what = f"all messages, notes and facts of conversation {conversation!r}"
        if not confirm(f"Delete {what} of tenant {tenant!r}?"):
            warn("nothing was deleted: answer 'yes', or give --yes")
            return FAILED
    async with open_conversation(settings, conversation, tenant=tenant, access="write") as chat:
        await chat.delete()
    Printer().line(f"deleted {conversation} of tenant {tenant}")
    return 0
