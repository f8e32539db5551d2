"""`remanence chat`: a conversation with a model that has the memory."""

import importlib
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from io import TextIOWrapper
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from remanence.chat import Chat, Done, TextDelta, ToolCalled, calls_tools, open_chat_model
from remanence.cli import FAILED
from remanence.cli.failures import explain
from remanence.cli.options import AgentTools, Database
from remanence.cli.output import console, printable, warn
from remanence.cli.settings import load, with_agent
from remanence.clock import SystemClock
from remanence.errors import ModelError
from remanence.memory import Memory
from remanence.portal import Portal
from remanence.providers import ModelOptions
from remanence.providers.connections import Connections
from remanence.tools import memory_tools
from remanence.types import Usage

_ENDINGS = {
    "cut_off": ", cut off at the output limit",
    "paused": ", paused by the provider before its end",
}


def run(
    *,
    model: Annotated[
        list[str],
        typer.Option(
            metavar="NAME",
            help="The model: anthropic:claude-haiku-4-5, openai:gpt-5-mini, ollama:llama3.2, "
            "openai:my-model@http://host/v1; repeat it for fallbacks, tried in order.",
        ),
    ],
    db: Database = None,
    conversation: Annotated[
        str, typer.Option(metavar="ID", help="The conversation to continue.")
    ] = "chat",
    user: Annotated[
        str | None,
        typer.Option(help="Whose conversation it is; facts are kept only of a named user."),
    ] = None,
    system: Annotated[str, typer.Option(metavar="TEXT", help="The system prompt.")] = "",
    tools: AgentTools = True,
) -> int:
    """Talk to a model that has the memory.

    Each line of stdin is a message.
    """
    settings = with_agent(load(url=db).settings, *model)

    @asynccontextmanager
    async def opening() -> AsyncIterator[Chat]:
        # A model that cannot be opened must fail before a database is created.
        connections = Connections()
        options = ModelOptions(connections=connections)
        answering = open_chat_model(model, clock=SystemClock(), options=options)
        async with connections, Memory.open(settings=settings) as memory:
            chat = memory.conversation(conversation, user=user)
            with_tools = tools and user is not None and calls_tools(*model)
            yield Chat(
                chat, model=answering, system=system, tools=memory_tools(chat) if with_tools else ()
            )

    # The loop runs in its own thread, so that memory works while the prompt waits for a line.
    portal = Portal()
    chat = portal.open(opening)
    try:
        if user is None and _is_interactive():
            warn("Other conversations will not know of this one: --user NAME keeps facts for them.")
        return _talk(portal, chat)
    finally:
        portal.close()


def _is_interactive() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _talk(portal: Portal, chat: Chat) -> int:
    interactive = _is_interactive()
    notes = console(stderr=True)
    for line in _lines(interactive=interactive):
        text = line.strip()
        if not text:
            continue
        try:
            portal.call(_turn(chat, text, notes))
        except KeyboardInterrupt:
            if not interactive:
                raise
            print()
        except ModelError as error:
            explain(error)
            if not interactive:
                warn("The message is kept without an answer; the lines after it were not sent.")
                return FAILED
    return 0


def _lines(*, interactive: bool) -> Iterator[str]:
    if not interactive:
        if isinstance(sys.stdin, TextIOWrapper):
            sys.stdin.reconfigure(errors="replace")
        yield from sys.stdin
        return
    # Without it input() cuts a line at 4,095 bytes, and each line of pasted text is a message.
    with suppress(ImportError):  # Windows has none
        importlib.import_module("readline")
    with suppress(EOFError, KeyboardInterrupt):
        while True:
            yield input("> ")
    print()  # the prompt has no end of line


async def _turn(chat: Chat, text: str, notes: Console) -> None:
    """Send one message and print its answer as it arrives; usage goes to stderr."""
    async for event in chat.stream(text):
        match event:
            case TextDelta():
                print(printable(event.text), end="", flush=True)
            case ToolCalled():
                _note(notes, f"[{event.name} {event.arguments}]")
            case Done():
                print(flush=True)
                for usage in event.reply.calls:
                    _note(notes, _format_usage(usage))


def _note(notes: Console, text: str) -> None:
    notes.print(Text(printable(text)), style="dim", soft_wrap=not notes.is_terminal)


def _format_usage(usage: Usage) -> str:
    cost = "" if usage.cost_usd is None else f", ${usage.cost_usd:.4f}"
    ending = _ENDINGS.get(usage.outcome, "")
    return (
        f"[{usage.model}: input {usage.input_tokens:,} (cache: {usage.cache_read_tokens:,} read, "
        f"{usage.cache_write_tokens:,} written), output {usage.output_tokens:,}{cost}{ending}]"
    )
