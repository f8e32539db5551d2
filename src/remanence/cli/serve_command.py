"""`remanence serve`: the memory over HTTP, for this machine."""

import asyncio
import importlib

from remanence.chat import calls_tools, open_chat_model
from remanence.cli.documents import masked
from remanence.cli.failures import log_service
from remanence.cli.output import Printer
from remanence.clock import SystemClock
from remanence.config import Settings
from remanence.memory import Memory


def run(settings: Settings, *, port: int, model: str | None, system: str, tools: bool) -> int:
    """Serve until an interrupt or a request to end."""
    app_module = importlib.import_module("remanence.server.app")
    serving = importlib.import_module("remanence.server.serving")
    log_service()
    printer = Printer()
    # A model that cannot be asked is told before a database is made.
    answering = open_chat_model(model, clock=SystemClock()) if model else None

    async def serve() -> None:
        with serving.ending_on_signals() as ending:
            async with Memory.open(settings=settings) as memory:
                with_tools = tools and model is not None and calls_tools(model)
                app = app_module.create_app(
                    memory, model=answering, system=system, tools=with_tools, ending=ending
                )
                await serving.serve(
                    app,
                    port=port,
                    started=lambda url: printer.line(f"{url} serves {masked(settings.url)}"),
                    ending=ending,
                )

    asyncio.run(serve())
    return 0
