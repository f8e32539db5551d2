"""`remanence recall`, `remanence search` and `remanence facts`."""

from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from remanence.cli import output
from remanence.cli.options import AsJson, ConversationId, Database, Query, Tenant, Words
from remanence.cli.period import Since, Until, require_period
from remanence.cli.settings import load, open_conversation, open_existing
from remanence.stores import mask_password
from remanence.types import Hit, HitKind

Kind = Annotated[HitKind | None, typer.Option(help="Only hits of this kind.")]


async def recall(
    *,
    conversation: ConversationId,
    query: Query,
    since: Since = None,
    until: Until = None,
    kind: Kind = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="The most hits.")] = 5,
    db: Database = None,
    tenant: Tenant = "default",
    as_json: AsJson = False,
) -> None:
    """Search a conversation, its notes, and its user's facts."""
    require_period(since, until)
    async with open_conversation(load(url=db).settings, conversation, tenant=tenant) as chat:
        hits = await chat.recall(query, limit=limit, since=since, until=until, kind=kind)
    _print_hits(hits, f"nothing in {conversation} matches {query!r}", as_json=as_json)


async def search(
    *,
    query: Query,
    user: Annotated[str, typer.Option(help="Whose conversations and facts.")],
    since: Since = None,
    until: Until = None,
    kind: Kind = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="The most hits.")] = 5,
    db: Database = None,
    tenant: Annotated[str, typer.Option(help="The user's tenant.")] = "default",
    as_json: AsJson = False,
) -> None:
    """Search all conversations of a user, and the user's facts."""
    require_period(since, until)
    async with open_existing(load(url=db).settings) as memory:
        hits = await memory.recall(
            query, user=user, tenant=tenant, limit=limit, since=since, until=until, kind=kind
        )
    nothing = f"nothing of user {user!r:.80} matches {query!r}"
    _print_hits(hits, nothing, as_json=as_json, conversation=lambda hit: hit.conversation)


def _print_hits(
    hits: Sequence[Hit], nothing: str, *, as_json: bool, **first: Callable[[Hit], object]
) -> None:
    if as_json:
        output.write_json({"hits": hits})
    elif not hits:
        output.line(nothing)
    else:
        output.table(
            hits,
            {
                **first,
                "kind": lambda hit: hit.kind,
                "messages": _place,
                "at (UTC)": lambda hit: hit.at,
                "speaker": lambda hit: hit.speaker,
                "text~": lambda hit: hit.snippet,
            },
        )


def _place(hit: Hit) -> str:
    if hit.kind == "fact":
        return ""
    return str(hit.first_seq) + (f"..{hit.last_seq}" if hit.last_seq != hit.first_seq else "")


async def facts(
    *,
    user: Annotated[str, typer.Argument(help="Whose facts.")],
    search: Words = None,
    history: Annotated[bool, typer.Option(help="Also superseded facts.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="The most facts.")] = 100,
    db: Database = None,
    tenant: Annotated[str, typer.Option(help="The user's tenant.")] = "default",
    as_json: AsJson = False,
) -> None:
    """Show what is known about a user."""
    if history and search is not None:
        raise typer.BadParameter("--search finds only current facts: leave out --history")
    settings = load(url=db).settings
    async with open_existing(settings) as memory:
        if search is not None:
            found = await memory.facts.search(search, user=user, tenant=tenant, limit=limit)
        else:
            found = await memory.facts.list(user=user, tenant=tenant, history=history, limit=limit)
    if as_json:
        output.write_json({"facts": found})
    elif not found:
        what = "facts" if search is None else "such fact"
        place = f"tenant {tenant!r} of {mask_password(settings.url)}"
        output.line(f"{place} has no {what} of user {user!r:.80}")
        if search is None:
            output.warn(
                "'remanence inspect --json' lists the tenants and users of all conversations"
            )
    else:
        output.table(
            found,
            {
                "id": lambda fact: fact.id,
                "type": lambda fact: fact.type,
                "tags": lambda fact: ", ".join(fact.tags),
                "since": lambda fact: fact.valid_from.date(),
                "until": lambda fact: fact.valid_to and fact.valid_to.date(),
                "fact~": lambda fact: fact.summary,
            },
        )
