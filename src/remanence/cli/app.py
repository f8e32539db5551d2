"""The commands by name; a command's module, with its imports, is loaded when it runs."""

import asyncio
import functools
import importlib
import inspect
import re
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

COMMANDS = {
    "demo": "Replay a conversation that ships with the package.",
    "replay": "Replay a transcript on a tape, and check the result.",
    "explain": "Show which sentences of a transcript become notes, and why.",
    "chat": "Talk to a model that has the memory.",
    "serve": "Serve the memory over HTTP, by default only to this machine.",
    "worker": "Do the background work of a PostgreSQL database.",
    "inspect": "Show the conversations of a database, or one of them.",
    "flush": "Do the due background work of a conversation now.",
    "messages": "Print a conversation's messages as JSON Lines, for replay.",
    "recall": "Search a conversation, its notes, and its user's facts.",
    "search": "Search all conversations of a user, and the user's facts.",
    "facts": "Show what is known about a user.",
    "delete": "Erase a conversation with its notes and facts.",
    "forget": "Erase messages, facts or a user, and all derived from them.",
    "export": "Export a conversation's notes, or print a user's data.",
    "import": "Import message histories, and observe them.",
    "import-notes": "Import exported blocks as observations.",
    "consolidate": "Summarise old daily notes into MEMORY.md, and archive them.",
    "usage": "Show model usage, by purpose and model.",
    "doctor": "Report the problems of a memory and how to fix them.",
    "backup": "Copy the database to a new file while it is in use.",
    "copy": "Copy a memory to an empty database, and compare the two.",
    "migrate": "Create or upgrade the tables of a database.",
    "keys create": "Create an API key, and print its token.",
    "keys list": "List API keys, without their tokens.",
    "keys revoke": "Revoke a key at once.",
    "config show": "Show each setting with its value, source and meaning.",
    "config path": "Show which file the settings are read from.",
    "config cache": "Show the cost and savings of an activation.",
}
"""The summary of each command."""

_SHARED = {
    "archive_commands": ("messages", "export", "import-notes", "consolidate"),
    "config_commands": ("config show", "config path", "config cache"),
    "database_commands": ("doctor", "backup", "copy", "migrate"),
    "erasure_commands": ("delete", "forget"),
    "keys_commands": ("keys create", "keys list", "keys revoke"),
    "search_commands": ("recall", "search", "facts"),
}
"""Commands that are functions of a shared module; any other command is `run` of its own module."""


class CommandGroup(TyperGroup):
    """A group of commands that are loaded when they run; help shows their summaries."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # typer brings its own click
        name, command, rest = super().resolve_command(ctx, args)
        key = f"{self.name} {name}".strip()
        return name, _load(key) if key in COMMANDS else command, rest

    def invoke(self, ctx: Any) -> Any:  # as above
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = _name_value(error)
            raise


def _name_value(error: typer.BadParameter) -> str:
    """Return the text of an error, and with pydantic's also the value: `'0' should be ... 1`."""
    details = getattr(error.__cause__, "errors", None)  # typer does not export pydantic's error
    text = error.message.removeprefix("Value error, ")
    if details is None or not text.startswith("Input "):
        return text
    return f"{details()[0]['input']!r:.80} {text.removeprefix('Input ').partition(',')[0]}"


def _load(name: str) -> Any:  # typer brings its own click
    shared = next((module for module, names in _SHARED.items() if name in names), None)
    module, function = (shared, re.sub("[ -]", "_", name)) if shared else (f"{name}_command", "run")
    run = getattr(importlib.import_module(f"remanence.cli.{module}"), function)

    @functools.wraps(run)
    def call(**options: object) -> Any:  # its exit code, if it has one
        return asyncio.run(run(**options)) if inspect.iscoroutinefunction(run) else run(**options)

    command = typer.Typer(add_completion=False, rich_markup_mode=None)
    command.command()(call)
    return typer.main.get_command(command)


def _exit(code: int | None, **_options: object) -> None:
    raise typer.Exit(code or 0)


app = typer.Typer(
    add_completion=False,
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Memory for LLM agents: every message on a durable tape, every context bounded.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    result_callback=_exit,
    rich_markup_mode=None,
)
config_app = typer.Typer(cls=CommandGroup, help="Show the settings.", rich_markup_mode=None)
keys_app = typer.Typer(
    cls=CommandGroup,
    help="API keys for clients of the service.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_GROUPS = {"config": config_app, "keys": keys_app}
for _name, _group in _GROUPS.items():
    app.add_typer(_group, name=_name)
for _name, _summary in COMMANDS.items():
    _group_name, _, _last = _name.rpartition(" ")
    _GROUPS.get(_group_name, app).command(_last, help=_summary)(lambda: None)


def _version(value: bool) -> None:  # noqa: FBT001 - typer passes it by position
    if value:
        from importlib.metadata import version

        typer.echo(version("remanence"))
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[  # noqa: ARG001 - its callback does it all
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", envvar="REMANENCE_DEBUG", help="Show tracebacks and logs.")
    ] = False,
) -> None:
    """Options of every command."""
    from remanence.cli.failures import set_up_logs

    set_up_logs(details=debug)


@config_app.callback(invoke_without_command=True)
def config(
    context: typer.Context,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> Any:  # the exit code of the command, if it has one
    """Show the settings, unless a command is given."""
    if context.invoked_subcommand is None:
        return _load("config show").invoke(context)
    if as_json:
        raise typer.BadParameter(f"write --json after {context.invoked_subcommand!r}")
    return None
