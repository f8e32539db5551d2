"""`remanence worker`: background work for processes that share a PostgreSQL database."""

from dataclasses import replace
from typing import Annotated

import typer

from remanence.cli.exporters import export_telemetry, measure_backlog
from remanence.cli.options import Database
from remanence.cli.service import LogFormat, announce, ending_on_signals, log_service
from remanence.cli.settings import load
from remanence.errors import InvalidPolicy
from remanence.memory import Memory
from remanence.runtime import choose_engine
from remanence.settings import Settings, policy_of
from remanence.stores import mask_password, open_store


async def run(
    *,
    db: Database = None,
    concurrency: Annotated[
        int | None,
        typer.Option(min=1, max=10_000, help="The number of conversations to work on at once."),
    ] = None,
    health_port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65_535, help="Serve /healthz, /readyz and /metrics; 0 picks a free port."
        ),
    ] = None,
    health_host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to serve them.")
    ] = "127.0.0.1",
    log_format: LogFormat = "text",
) -> None:
    """Do the background work of a PostgreSQL database.

    It works for all processes that share the database. On SIGTERM, it takes no more work, and finishes steps in progress within
    shutdown_timeout_seconds.
    """
    settings = _settings(load(url=db).settings, concurrency)
    if settings.url.startswith("sqlite:"):
        raise InvalidPolicy(
            f"a worker needs a PostgreSQL database, but the URL is {settings.url!r}: name one with --db "
            "or REMANENCE_URL; processes that open a SQLite file do its work themselves"
        )
    choose_engine(settings, settings.url)
    # The tables must exist: a mistake in the URL must not create them elsewhere.
    await (await open_store(settings.url, read_only=True)).close()
    log_service(log_format)
    with export_telemetry(scraped=health_port is not None), ending_on_signals() as ending:
        async with Memory.open(settings=settings) as memory, measure_backlog(memory):
            announce(f"works on {mask_password(settings.url)}, {settings.workers} at a time")
            if health_port is None:
                await ending.wait()
                return
            from remanence.server.app import create_health_app
            from remanence.server.run import listen, serve

            await serve(
                create_health_app(memory, ending),
                listen(health_host, health_port),
                started=lambda url: announce(f"{url}/readyz answers probes"),
                ending=ending,
            )


def _settings(settings: Settings, concurrency: int | None) -> Settings:
    """Return the settings of a process that works on jobs.

    The shared settings may have `workers = 0`, for the other processes.
    """
    if not policy_of(settings).enabled:
        raise InvalidPolicy("the memory is disabled, so there is no work: set policy.enabled")
    workers = concurrency or settings.workers or Settings().workers
    return replace(settings, workers=workers, engine="procrastinate")
