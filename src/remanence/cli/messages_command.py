"""`remanence messages`: the tape of a conversation as JSON Lines."""

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from remanence.cli.options import ConversationId, Database, Tenant
from remanence.cli.output import is_unicode
from remanence.cli.settings import load, open_conversation
from remanence.types import Message
from remanence.wire import anthropic, openai

PAGE = 200


async def run(
    *,
    conversation: ConversationId,
    after: Annotated[int, typer.Option(min=0, help="Only messages after this number.")] = 0,
    db: Database = None,
    tenant: Tenant = "default",
) -> None:
    """Print the messages of a conversation as JSON Lines, which replay reads."""
    async with open_conversation(load(url=db).settings, conversation, tenant=tenant) as chat:
        while page := await chat.messages(after=after, limit=PAGE):
            for line in _lines(page):
                sys.stdout.write(f"{json.dumps(line, ensure_ascii=not is_unicode())}\n")
            after = page[-1].seq


def _lines(messages: Sequence[Message]) -> Iterator[dict[str, Any]]:  # a provider's JSON
    for message in messages:
        rendered = openai.render(message.role, message.content, message.name)
        rendered = rendered or anthropic.render(message.role, message.content, message.name)
        at = {"created_at": message.created_at.isoformat()} if message.created_at else {}
        yield from ({**line, **at} for line in rendered)
