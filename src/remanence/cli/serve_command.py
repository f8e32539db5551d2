"""`remanence serve`: the memory over HTTP, for this machine."""

import os
from typing import Annotated

import typer

from remanence.chat import calls_tools, open_chat_model
from remanence.cli import output
from remanence.cli.failures import log_service
from remanence.cli.options import AgentTools, Database
from remanence.cli.settings import load, with_agent
from remanence.cli.signals import ending_on_signals
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
        int, typer.Option(min=0, max=65_535, help="The port; 0 takes a free one.")
    ] = 8765,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; by default this machine alone.")
    ] = "127.0.0.1",
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A host name that requests may be sent to; may be repeated."
        ),
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Who answers a chat, as for `chat`.")
    ] = None,
    system: Annotated[str, typer.Option(metavar="TEXT", help="The system prompt of a chat.")] = "",
    identity: Annotated[
        str, typer.Option(metavar="TEXT", help="A block of its own before the system prompt.")
    ] = "",
    tools: AgentTools = True,
    keys: Annotated[
        bool | None,
        typer.Option(
            help="Whether clients need a key of `remanence keys`; must be said for other machines."
        ),
    ] = None,
    openai_url: Annotated[
        str, typer.Option(metavar="URL", help="Where requests to /openai/v1 are sent on to.")
    ] = "https://api.openai.com",
    anthropic_url: Annotated[
        str, typer.Option(metavar="URL", help="Where requests to /anthropic/v1 are sent on to.")
    ] = "https://api.anthropic.com",
) -> None:
    """Serve the memory over HTTP, by default to this machine alone."""
    from remanence.server.access import by_key
    from remanence.server.app import create_app
    from remanence.server.middleware import LOCAL_HOSTS
    from remanence.server.run import is_loopback, serve

    settings, models = load(url=db).settings, tuple(model or ())
    if models:
        settings = with_agent(settings, *models)
    if not is_loopback(host) and (not allowed_host or keys is None):
        raise InvalidArgument(
            f"--host {host} is not this machine alone: name with --allowed-host each host "
            "name that requests may be sent to, such as --allowed-host memory.example.com, and say "
            "--keys, so that clients need a key, or --no-keys, where a login stands in front"
        )
    log_service()
    # A model that cannot be opened must fail before a database is created.
    connections = Connections()
    options = ModelOptions(connections=connections)
    answering = open_chat_model(models, clock=SystemClock(), options=options) if models else None
    database = mask_password(settings.url)
    with ending_on_signals() as ending:
        async with connections, Memory.open(settings=settings) as memory:
            app = create_app(
                memory,
                model=answering,
                system=system,
                identity=identity,
                tools=tools and calls_tools(*models),
                auth=by_key(memory.keys) if keys else None,
                openai_key=os.environ.get("OPENAI_API_KEY") if keys else None,
                anthropic_key=os.environ.get("ANTHROPIC_API_KEY") if keys else None,
                openai_url=openai_url,
                anthropic_url=anthropic_url,
                allowed_hosts=LOCAL_HOSTS.union(allowed_host or ()),
                ending=ending,
            )
            await serve(
                app,
                host=host,
                port=port,
                started=lambda url: output.line(f"{url} serves {database}"),
                ending=ending,
            )
