"""`remanence serve`: the memory over HTTP, for this machine."""

import asyncio
import importlib
from dataclasses import dataclass

from remanence.chat import calls_tools, open_chat_model
from remanence.cli.documents import mask_password
from remanence.cli.failures import log_service
from remanence.cli.output import Printer
from remanence.clock import SystemClock
from remanence.errors import InvalidArgument
from remanence.memory import Memory
from remanence.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Options of a server: its address, the host names it accepts, and its chat."""

    host: str
    port: int
    allowed_hosts: tuple[str, ...]
    models: tuple[str, ...]
    system: str
    identity: str
    tools: bool


def run(settings: Settings, service: Service) -> int:
    """Serve until SIGINT or SIGTERM.

    Raises:
        InvalidArgument: other machines can reach the host, and no host name is allowed.
    """
    app_module = importlib.import_module("remanence.server.app")
    serving = importlib.import_module("remanence.server.run")
    local = importlib.import_module("remanence.server.allowed_hosts")
    if not service.allowed_hosts and not serving.is_loopback(service.host):
        raise InvalidArgument(
            f"--host {service.host} is not this machine alone: name with --allowed-host each host "
            "name that requests may be sent to, such as --allowed-host memory.example.com, and put "
            "a login in front, for the server has no accounts"
        )
    log_service()
    printer = Printer()
    # A model that cannot be opened must fail before a database is created.
    answering = open_chat_model(service.models, clock=SystemClock()) if service.models else None

    async def serve() -> None:
        with serving.ending_on_signals() as ending:
            async with Memory.open(settings=settings) as memory:
                app = app_module.create_app(
                    memory,
                    model=answering,
                    system=service.system,
                    identity=service.identity,
                    tools=service.tools and calls_tools(*service.models),
                    allowed_hosts=local.LOCAL_HOSTS.union(service.allowed_hosts),
                    ending=ending,
                )
                await serving.serve(
                    app,
                    host=service.host,
                    port=service.port,
                    started=lambda url: printer.line(f"{url} serves {mask_password(settings.url)}"),
                    ending=ending,
                )

    asyncio.run(serve())
    return 0
