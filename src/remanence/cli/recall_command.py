"""`remanence recall`: a search of a conversation."""

from typing import Annotated

import typer

from remanence.cli.options import AsJson, ConversationId, Database, Tenant
from remanence.cli.output import Printer, write_json
from remanence.cli.settings import load, open_conversation
from remanence.types import Hit


async def run(
    *,
    conversation: ConversationId,
    query: Annotated[str, typer.Argument(help="Words to look for.")],
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="The most hits.")] = 5,
    db: Database = None,
    tenant: Tenant = "default",
    as_json: AsJson = False,
) -> None:
    """Search the notes and messages of a conversation, and its user's facts."""
    async with open_conversation(load(url=db).settings, conversation, tenant=tenant) as chat:
        hits = await chat.recall(query, limit=limit)
    if as_json:
        write_json({"hits": hits})
    elif not hits:
        Printer().line(f"nothing in {conversation} matches {query!r}")
    else:
        Printer().table(
            ("kind", "messages", "at (UTC)", "text~"),
            [
                (hit.kind, _place(hit), f"{hit.at:%Y-%m-%d %H:%M}" if hit.at else "", hit.snippet)
                for hit in hits
            ],
        )


def _place(hit: Hit) -> str:
    if hit.kind == "fact":
        return ""
    return str(hit.first_seq) + (f"..{hit.last_seq}" if hit.last_seq != hit.first_seq else "")
