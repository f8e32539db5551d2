"""`remanence keys`: API keys for clients of the service."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Annotated, cast, get_args

import typer

from remanence.api_keys import id_of_key
from remanence.arguments import require_choices
from remanence.cli import output
from remanence.cli.options import AsJson, Database, Tenant
from remanence.cli.settings import load, open_existing, require_newest
from remanence.errors import InvalidArgument
from remanence.memory import Memory
from remanence.settings import Settings
from remanence.types import APIKey, Scope

_COLUMNS: Mapping[str, Callable[[APIKey], object]] = {
    "id": lambda key: key.id,
    "name": lambda key: key.name,
    "tenant": lambda key: key.tenant,
    "may": lambda key: ", ".join(key.scopes),
    "expires": lambda key: key.expires_at or "",
    "revoked": lambda key: key.revoked_at or "",
}


async def keys_create(
    *,
    name: Annotated[str, typer.Argument(help="What the client is called.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCOPE",
            help=f"{', '.join(get_args(Scope))}; may be repeated. By default read and write.",
        ),
    ] = None,
    days: Annotated[
        int | None, typer.Option(min=1, max=36_500, help="The number of days until it expires.")
    ] = None,
    db: Database = None,
    tenant: Tenant = "default",
) -> None:
    """Create an API key, and print its token."""
    chosen = cast("Sequence[Scope]", scope or ("read", "write"))
    require_choices(get_args(Scope), **{"--scope": chosen})  # before a database is created
    url = load(url=db).settings.url
    await require_newest(url)
    async with Memory.open(settings=Settings(url=url, workers=0)) as memory:
        expires_at = None if days is None else memory.clock.now() + timedelta(days=days)
        key, token = await memory.keys.create(
            name, tenant=tenant, scopes=chosen, expires_at=expires_at
        )
    scopes = ", ".join(key.scopes)
    output.warn(f"key {key.id} of tenant {key.tenant} with the scopes: {scopes}; keep its token:")
    output.line(token)


async def keys_list(*, db: Database = None, as_json: AsJson = False) -> None:
    """List API keys, without their tokens."""
    async with open_existing(load(url=db).settings) as memory:
        keys = await memory.keys.list()
    if as_json:
        output.write_json([_document(key) for key in keys])
    else:
        output.table(keys, _COLUMNS)


async def keys_revoke(
    *, key: Annotated[str, typer.Argument(help="Its id, or its token.")], db: Database = None
) -> None:
    """Revoke a key at once."""
    key_id = id_of_key(key)
    async with open_existing(load(url=db).settings, access="write") as memory:
        revoked = await memory.keys.revoke(key_id)
        known = revoked or any(each.id == key_id for each in await memory.keys.list())
    if not known:  # not repeated, as it may be a secret
        raise InvalidArgument("there is no key with this id or token: see 'remanence keys list'")
    output.line(f"revoked {key_id}" if revoked else f"{key_id} is revoked already")


def _document(key: APIKey) -> dict[str, object]:
    return {name: value for name, value in asdict(key).items() if name != "digest"}
