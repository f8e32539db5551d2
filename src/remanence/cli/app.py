"""The commands and their options. A command imports its dependencies when it runs."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from remanence.settings import Preset

app = typer.Typer(
    add_completion=False,
    help="Memory for LLM agents: every message on a durable tape, every context bounded.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Database = Annotated[
    str | None,
    typer.Option("--db", metavar="URL", help="Where the tape is, such as sqlite:///memory.db."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]


config_app = typer.Typer(help="Show the settings.", rich_markup_mode=None)
app.add_typer(config_app, name="config")


def _version(value: bool) -> None:  # noqa: FBT001 - typer passes it by position
    if value:
        from importlib.metadata import version

        typer.echo(version("remanence"))
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[  # noqa: ARG001, FBT002 - a flag, and its callback does it all
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[  # noqa: FBT002 - a flag
        bool, typer.Option("--debug", envvar="REMANENCE_DEBUG", help="Show tracebacks and logs.")
    ] = False,
) -> None:
    """Options of every command."""
    from remanence.cli.failures import set_up_logs

    set_up_logs(details=debug)


@app.command()
def demo(as_json: AsJson = False) -> None:  # noqa: FBT002 - a flag
    """Replay a conversation that ships with the package.

    Shows what memory keeps of it, the context, and what that saves.
    """
    from remanence.cli import demo_command

    raise typer.Exit(demo_command.run(as_json=as_json))


@app.command()
def replay(
    file: Annotated[
        Path,
        typer.Argument(exists=True, dir_okay=False, help="A transcript, as JSON Lines or JSON."),
    ],
    preset: Annotated[Preset | None, typer.Option(help="The policy to replay with.")] = None,
    ratio: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            max=1.0,
            help="Observe the whole transcript; notes have at most this share of its tokens.",
        ),
    ] = None,
    db: Database = None,
    json_target: Annotated[
        str | None,
        typer.Option("--json", metavar="OUT", help="Write the result to this file; - is stdout."),
    ] = None,
    conversation: Annotated[
        str | None,
        typer.Option(metavar="ID", help="The conversation's id; by default the file's name."),
    ] = None,
) -> None:
    """Replay a transcript on a tape, and check the result."""
    from remanence.cli import replay_command, settings

    if json_target is not None and not Path(json_target).parent.is_dir():
        raise typer.BadParameter(f"--json: the directory of {json_target!r} does not exist")
    loaded = settings.load(url=db, preset=preset)
    raise typer.Exit(
        replay_command.run(
            file,
            conversation=conversation,
            url=db,
            settings=loaded.settings,
            ratio=ratio,
            json_target=json_target,
        )
    )


@app.command()
def explain(
    file: Annotated[
        Path,
        typer.Argument(exists=True, dir_okay=False, help="A transcript, as JSON Lines or JSON."),
    ],
    score: Annotated[
        str, typer.Option(metavar="NAME", help="The score whose features are shown.")
    ] = "worth",
    strongest: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many features a sentence shows.")
    ] = 5,
    as_json: AsJson = False,  # noqa: FBT002 - a flag
) -> None:
    """Score the sentences of a transcript, and show the features behind a score."""
    from remanence.cli import explain_command

    raise typer.Exit(explain_command.run(file, head=score, strongest=strongest, as_json=as_json))


@app.command()
def chat(
    model: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            help="Who answers: anthropic:claude-haiku-4-5, openai:gpt-5-mini, ollama:llama3.2, "
            "openai:my-model@http://host/v1; repeated: models that are tried in order.",
        ),
    ],
    db: Database = None,
    conversation: Annotated[
        str, typer.Option(metavar="ID", help="The conversation to go on with.")
    ] = "chat",
    user: Annotated[str | None, typer.Option(help="Whose conversation it is.")] = None,
    system: Annotated[str, typer.Option(metavar="TEXT", help="The system prompt.")] = "",
    tools: Annotated[  # noqa: FBT002 - a flag
        bool, typer.Option(help="Let the model search and keep facts of the user.")
    ] = True,
) -> None:
    """Talk to a model that has the memory.

    Each line of stdin is a message.
    """
    from remanence.cli import chat_command, settings

    loaded = settings.load(url=db)
    raise typer.Exit(
        chat_command.run(
            settings.with_agent(loaded.settings, *model),
            chat_command.Talk(
                models=tuple(model),
                conversation=conversation,
                user=user,
                system=system,
                tools=tools,
            ),
        )
    )


@app.command()
def serve(
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
    tools: Annotated[  # noqa: FBT002 - a flag
        bool, typer.Option(help="Let the model search and keep facts of the user.")
    ] = True,
) -> None:
    """Serve the memory over HTTP, by default to this machine alone."""
    from remanence.cli import serve_command, settings

    loaded = settings.load(url=db)
    served = settings.with_agent(loaded.settings, *model) if model else loaded.settings
    service = serve_command.Service(
        host=host,
        port=port,
        allowed_hosts=tuple(allowed_host or ()),
        models=tuple(model or ()),
        system=system,
        identity=identity,
        tools=tools,
    )
    raise typer.Exit(serve_command.run(served, service))


@app.command()
def inspect(
    conversation: Annotated[
        str | None, typer.Argument(help="Its id; without it, all are listed.")
    ] = None,
    db: Database = None,
    tenant: Annotated[
        str | None, typer.Option(help="Whose conversations; for one of them, by default 'default'.")
    ] = None,
    segment: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Show this segment, what it lost, and its messages."),
    ] = None,
    version: Annotated[
        int | None,
        typer.Option(min=0, help="Show it as it was until the version after this one."),
    ] = None,
    flush: Annotated[bool, typer.Option("--flush", help="First do the work that is due.")] = False,  # noqa: FBT002 - a flag
    limit: Annotated[int, typer.Option(min=1, help="List at most so many conversations.")] = 100,
    after: Annotated[
        str | None, typer.Option(metavar="ID", help="List those after this one of --tenant.")
    ] = None,
    as_json: AsJson = False,  # noqa: FBT002 - a flag
) -> None:
    """Show the conversations of a database, or one of them.

    One is shown with its tape, segments, failures and log.
    """
    from remanence.cli import inspect_command, settings

    if conversation is None and (segment is not None or flush or version is not None):
        raise typer.BadParameter("--segment, --version and --flush need a CONVERSATION")
    if version is not None and (segment is not None or flush):
        raise typer.BadParameter("--version shows the past: leave out --segment and --flush")
    loaded = settings.load(url=db).settings
    if conversation is None:
        code = inspect_command.run_list(
            loaded, tenant=tenant, after=after, limit=limit, as_json=as_json
        )
    elif segment is not None:
        code = inspect_command.run_segment(
            loaded, conversation, segment, tenant=tenant or "default", as_json=as_json
        )
    else:
        code = inspect_command.run_one(
            loaded,
            conversation,
            tenant=tenant or "default",
            version=version,
            flush=flush,
            as_json=as_json,
        )
    raise typer.Exit(code)


@app.command()
def messages(
    conversation: Annotated[str, typer.Argument(help="Its id.")],
    after: Annotated[int, typer.Option(min=0, help="Only messages after this number.")] = 0,
    db: Database = None,
    tenant: Annotated[str, typer.Option(help="Whose conversation.")] = "default",
) -> None:
    """Print the messages of a conversation as JSON Lines, which replay reads."""
    from remanence.cli import look_commands, settings

    loaded = settings.load(url=db).settings
    raise typer.Exit(look_commands.run_messages(loaded, conversation, tenant=tenant, after=after))


@app.command()
def recall(
    conversation: Annotated[str, typer.Argument(help="Its id.")],
    query: Annotated[str, typer.Argument(help="Words to look for.")],
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="The most hits.")] = 5,
    db: Database = None,
    tenant: Annotated[str, typer.Option(help="Whose conversation.")] = "default",
    as_json: AsJson = False,  # noqa: FBT002 - a flag
) -> None:
    """Search the notes and messages of a conversation, and its user's facts."""
    from remanence.cli import look_commands, settings

    loaded = settings.load(url=db).settings
    raise typer.Exit(
        look_commands.run_recall(
            loaded, conversation, query, tenant=tenant, limit=limit, as_json=as_json
        )
    )


@app.command()
def facts(
    user: Annotated[str, typer.Argument(help="Whose facts.")],
    search: Annotated[
        str | None, typer.Option(metavar="WORDS", help="Only facts that match, best first.")
    ] = None,
    history: Annotated[bool, typer.Option(help="Also facts that hold no more.")] = False,  # noqa: FBT002 - a flag
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="The most facts.")] = 100,
    db: Database = None,
    tenant: Annotated[str, typer.Option(help="The user's tenant.")] = "default",
    as_json: AsJson = False,  # noqa: FBT002 - a flag
) -> None:
    """Show what is known about a user."""
    from remanence.cli import look_commands, settings

    if history and search is not None:
        raise typer.BadParameter("--search finds facts that hold: leave out --history")
    raise typer.Exit(
        look_commands.run_facts(
            settings.load(url=db).settings,
            user=user,
            tenant=tenant,
            query=search,
            history=history,
            limit=limit,
            as_json=as_json,
        )
    )


@app.command()
def delete(
    conversation: Annotated[str, typer.Argument(help="Its id.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,  # noqa: FBT002 - a flag
    db: Database = None,
    tenant: Annotated[str, typer.Option(help="Whose conversation.")] = "default",
) -> None:
    """Erase a conversation with its notes and facts."""
    from remanence.cli import look_commands, settings

    loaded = settings.load(url=db).settings
    raise typer.Exit(look_commands.run_delete(loaded, conversation, tenant=tenant, sure=yes))


@app.command("export")
def export_(
    conversation: Annotated[str, typer.Argument(help="Its id.")],
    to: Annotated[Path, typer.Option("--to", metavar="DIRECTORY", help="Where the blocks go.")],
    db: Database = None,
    tenant: Annotated[str, typer.Option(help="Whose conversation.")] = "default",
    as_json: AsJson = False,  # noqa: FBT002 - a flag
) -> None:
    """Append a conversation's notes to a file of JSON Lines.

    Each segment is a block, and a block is a line.
    """
    from remanence.cli import exchange_command, settings

    raise typer.Exit(
        exchange_command.run_export(
            settings.load(url=db).settings,
            conversation,
            tenant=tenant,
            directory=to,
            as_json=as_json,
        )
    )


@app.command("import")
def import_(
    conversation: Annotated[str, typer.Argument(help="Its id.")],
    source: Annotated[
        Path,
        typer.Option("--from", metavar="DIRECTORY", exists=True, help="Where the blocks are."),
    ],
    db: Database = None,
    tenant: Annotated[str, typer.Option(help="Whose conversation.")] = "default",
    as_json: AsJson = False,  # noqa: FBT002 - a flag
) -> None:
    """Import exported blocks as observations.

    Their messages must be on the tape and not observed yet.
    """
    from remanence.cli import exchange_command, settings

    raise typer.Exit(
        exchange_command.run_import(
            settings.load(url=db).settings,
            conversation,
            tenant=tenant,
            directory=source,
            as_json=as_json,
        )
    )


@app.command()
def consolidate(
    user: Annotated[str | None, typer.Option(help="Whose notes; by default everybody's.")] = None,
    tenant: Annotated[str | None, typer.Option(help="Of which tenant.")] = None,
    db: Database = None,
    as_json: AsJson = False,  # noqa: FBT002 - a flag
) -> None:
    """Summarise old daily notes into MEMORY.md, and archive them."""
    from remanence.cli import consolidate_command, settings

    loaded = settings.load(url=db).settings
    raise typer.Exit(consolidate_command.run(loaded, user=user, tenant=tenant, as_json=as_json))


@app.command()
def usage(
    conversation: Annotated[
        str | None, typer.Argument(help="Its id; without it, all calls are summed.")
    ] = None,
    db: Database = None,
    tenant: Annotated[
        str | None, typer.Option(help="Whose calls; for a conversation by default 'default'.")
    ] = None,
    user: Annotated[str | None, typer.Option(help="The calls for this user.")] = None,
    since: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"], help="Calls since then, in UTC."),
    ] = None,
    as_json: AsJson = False,  # noqa: FBT002 - a flag
) -> None:
    """Show the usage of models, by purpose and model.

    Counts calls, tokens, price and time.
    """
    from remanence.cli import settings, usage_command

    loaded = settings.load(url=db).settings
    selection = usage_command.UsageFilter(
        tenant=tenant,
        conversation=conversation,
        user=user,
        since=since.replace(tzinfo=UTC) if since else None,
    )
    raise typer.Exit(usage_command.run(loaded, selection, as_json=as_json))


@app.command()
def doctor(db: Database = None, as_json: AsJson = False) -> None:  # noqa: FBT002 - a flag
    """Report the problems of a memory and how to fix them.

    Finds data that is inconsistent, and work that fails, is stuck or is overdue.
    """
    from remanence.cli import doctor_command, settings

    raise typer.Exit(doctor_command.run(settings.load(url=db).settings, as_json=as_json))


@app.command()
def migrate(db: Database = None, as_json: AsJson = False) -> None:  # noqa: FBT002 - a flag
    """Create the tables of a database, or bring them up to date.

    Shows the versions.
    """
    from remanence.cli import migrate_command, settings

    raise typer.Exit(migrate_command.run(settings.load(url=db).settings, as_json=as_json))


@config_app.command("show")
def config_show(
    db: Database = None,
    preset: Annotated[Preset | None, typer.Option(help="The preset to show.")] = None,
    as_json: AsJson = False,  # noqa: FBT002 - a flag
) -> None:
    """Show each setting: value, source and meaning."""
    from remanence.cli import config_command, settings

    loaded = settings.load(url=db, preset=preset)
    raise typer.Exit(config_command.run_show(loaded, as_json=as_json))


@config_app.command("path")
def config_path(as_json: AsJson = False) -> None:  # noqa: FBT002 - a flag
    """Show which file the settings are read from."""
    from remanence.cli import config_command

    raise typer.Exit(config_command.run_path(Path.cwd(), as_json=as_json))


@config_app.command("cache")
def config_cache(
    model: Annotated[
        str | None, typer.Option(help="The model that reads the prompts; by default the policy's.")
    ] = None,
    preset: Annotated[Preset | None, typer.Option(help="The preset to show.")] = None,
    as_json: AsJson = False,  # noqa: FBT002 - a flag
) -> None:
    """Show what an activation costs and saves.

    Prices and lifetime of the prompt cache, and the break-even.
    """
    from remanence.cli import cache_command, settings

    loaded = settings.load(preset=preset)
    raise typer.Exit(cache_command.run(loaded.settings, model=model, as_json=as_json))


@config_app.callback(invoke_without_command=True)
def config(context: typer.Context) -> None:
    """Show the settings: `show` each of them, the `path` of their file, or what the `cache` costs."""
    if context.invoked_subcommand is None:
        config_show()
