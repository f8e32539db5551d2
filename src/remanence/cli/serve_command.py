"""`remanence serve`: the memory over HTTP."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from remanence.arguments import (
    require_host_names,
    require_http_url,
    require_origins,
    require_provider_url,
)
from remanence.chat import calls_tools, open_chat_model
from remanence.cli.options import AgentTools, Database, read_path
from remanence.cli.service import LogFormat, announce, ending_on_signals, log_audit, log_service
from remanence.cli.settings import load, with_agent
from remanence.clock import SystemClock
from remanence.errors import InvalidArgument
from remanence.memory import Memory
from remanence.providers import ModelOptions
from remanence.providers.connections import Connections
from remanence.stores import mask_password


async def run(
    *,
    db: Database = None,
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="The port; 0 picks a free one.")
    ] = 8765,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; by default only this machine.")
    ] = "127.0.0.1",
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="An accepted host name; may be repeated."),
    ] = None,
    allowed_origin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN", help="A site whose pages may use the service; may be repeated."
        ),
    ] = None,
    requests_per_minute: Annotated[
        int | None, typer.Option(min=1, help="The rate limit per key, or else per address.")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="The model for chats, as in `chat`.")
    ] = None,
    system: Annotated[str, typer.Option(metavar="TEXT", help="The system prompt of a chat.")] = "",
    identity: Annotated[
        str, typer.Option(metavar="TEXT", help="A separate block before the system prompt.")
    ] = "",
    tools: AgentTools = True,
    keys: Annotated[
        bool | None,
        typer.Option(
            help="Whether clients need a key of `remanence keys`; required if other machines can connect."
        ),
    ] = None,
    openai_url: Annotated[
        str, typer.Option(metavar="URL", help="The upstream of /openai/v1.")
    ] = "https://api.openai.com",
    anthropic_url: Annotated[
        str, typer.Option(metavar="URL", help="The upstream of /anthropic/v1.")
    ] = "https://api.anthropic.com",
    webhook: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help="Post events here, signed with REMANENCE_WEBHOOK_SECRET; may be repeated.",
        ),
    ] = None,
    recognize: Annotated[
        bool,
        typer.Option(help="Recognise unnamed conversations at the proxies by their messages."),
    ] = False,
    proxies: Annotated[
        bool, typer.Option(help="Offer the proxies, which a key of scope write may use.")
    ] = True,
    log_format: LogFormat = "text",
    audit_log: Annotated[
        Path | None,
        typer.Option(
            parser=read_path, metavar="FILE", help="Log reads, exports and erasures to this file."
        ),
    ] = None,
) -> None:
    """Serve the memory over HTTP, by default only to this machine."""
    from remanence.cli.exporters import export_telemetry, measure_backlog
    from remanence.server.access import by_key
    from remanence.server.app import create_app
    from remanence.server.middleware import LOCAL_HOSTS
    from remanence.server.run import is_loopback, listen, serve
    from remanence.server.webhooks import Webhook, post_events

    settings, models = load(url=db).settings, tuple(model or ())
    if models:
        settings = with_agent(settings, *models)
    if not is_loopback(host) and (not allowed_host or keys is None):
        raise InvalidArgument(
            f"--host {host!r} is open to other machines: add each accepted host name, as in "
            "--allowed-host memory.example.com, and either --keys, so that clients need a key, or "
            "--no-keys, if a login is in front of the service"
        )
    require_host_names(**{"--allowed-host": allowed_host or ()})
    require_origins(**{"--allowed-origin": allowed_origin or ()})
    require_provider_url(**{"--openai-url": openai_url, "--anthropic-url": anthropic_url})
    for url in webhook or ():
        require_http_url(**{"--webhook": url})
    secret = os.environ.get("REMANENCE_WEBHOOK_SECRET", "")
    webhooks = [Webhook(url, secret=secret) for url in webhook or ()]
    log_service(log_format)
    if audit_log is not None:
        try:
            log_audit(audit_log)
        except OSError as error:
            raise InvalidArgument(
                f"--audit-log {str(audit_log)!r} cannot be written ({error.strerror}): name a file in "
                "an existing, writable directory"
            ) from error
    # A model that cannot be opened, or a port in use, must fail before a database is created.
    connections = Connections()
    options = ModelOptions(connections=connections)
    answering = open_chat_model(models, clock=SystemClock(), options=options) if models else None
    database = mask_password(settings.url)
    with (
        listen(host, port) as listening,
        export_telemetry(scraped=True),
        ending_on_signals() as ending,
    ):
        async with connections, Memory.open(settings=settings) as memory, measure_backlog(memory):
            app = create_app(
                memory,
                model=answering,
                system=system,
                identity=identity,
                tools=tools and calls_tools(*models),
                auth=by_key(memory.keys) if keys else None,
                openai_key=_tenants_key("OPENAI_API_KEY") if keys else None,
                anthropic_key=_tenants_key("ANTHROPIC_API_KEY") if keys else None,
                openai_url=openai_url,
                anthropic_url=anthropic_url,
                recognize=recognize,
                proxies=proxies,
                allowed_hosts=LOCAL_HOSTS.union(allowed_host or ()),
                allowed_origins=allowed_origin or (),
                requests_per_minute=requests_per_minute,
                ending=ending,
            )
            async with post_events(memory, webhooks):
                await serve(
                    app,
                    listening,
                    started=lambda url: announce(f"{url} serves {database}"),
                    ending=ending,
                )


def _tenants_key(variable: str) -> Callable[[str], str | None]:
    """Return a function that reads a tenant's key from its own variable, or from the common one.

    Only tenant names of lower-case letters, digits and `_` have their own, so that no two share it.
    """

    def key(tenant: str) -> str | None:
        own = f"{variable}_{tenant.upper()}" if re.fullmatch("[a-z0-9_]+", tenant) else variable
        return os.environ.get(own) or os.environ.get(variable)

    return key
