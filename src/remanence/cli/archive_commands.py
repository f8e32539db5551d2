"""`remanence export`, `import-notes`, `messages` and `consolidate`."""

import sys
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from remanence.archive.blocks import BlockStore
from remanence.cli import FAILED, output
from remanence.cli.options import AsJson, ConversationId, Database, Tenant, read_path
from remanence.cli.output import quantity
from remanence.cli.settings import load, open_conversation, open_existing
from remanence.cli.transcript_lines import Record
from remanence.cli.transcripts import read_message
from remanence.errors import InvalidArgument, InvalidMessage
from remanence.memory import Memory
from remanence.types import Message
from remanence.wire import anthropic, gemini, openai
from remanence.wire.json_value import JsonObject

PAGE = 200


async def export(
    *,
    conversation: Annotated[str | None, typer.Argument(help="Its id.")] = None,
    to: Annotated[
        Path | None,
        typer.Option(parser=read_path, metavar="DIRECTORY", help="Where the blocks go."),
    ] = None,
    user: Annotated[
        str | None, typer.Option(help="Print everything stored about this user instead.")
    ] = None,
    db: Database = None,
    tenant: Tenant = "default",
    as_json: AsJson = False,
) -> None:
    """Export a conversation's notes, or print a user's data.

    Notes are appended to a JSON Lines file: each segment becomes a block, and each block a line.
    """
    if user is not None and (conversation is not None or to is not None or as_json):
        raise typer.BadParameter(
            "--user prints all of a user as JSON Lines: leave out the conversation, --to and --json"
        )
    settings = load(url=db).settings
    if user is not None:
        async with open_existing(settings) as memory:
            await _print_user(memory, user, tenant)
        return
    if conversation is None or to is None:
        raise typer.BadParameter("name a conversation and --to, or a user with --user")
    async with open_conversation(settings, conversation, tenant=tenant) as chat:
        count = await chat.export_blocks(BlockStore(to))
    if as_json:
        output.write_json({"exported": count})
    else:
        output.line(f"{quantity(count, 'new block')} of {conversation} in {to}")


async def _print_user(memory: Memory, user: str, tenant: str) -> None:
    """Print everything stored about a user as JSON Lines, after a line that names the user."""
    async with aclosing(memory.export_user(user, tenant=tenant)) as lines:
        heading = await anext(lines)
        async for line in lines:
            text = f"{heading}\n{line}\n" if heading else f"{line}\n"
            sys.stdout.buffer.write(
                output.escape_controls(text).encode("utf-8", "backslashreplace")
            )
            heading = ""
    if heading:
        raise InvalidArgument(
            f"tenant {tenant!r} has nothing stored about user {user!r:.80}: check the name; "
            "'remanence inspect --json' lists the tenants and users of all conversations"
        )


def _read_folder(text: str) -> Path:
    path = read_path(text)
    if not path.is_dir():
        raise typer.BadParameter(f"there is no directory {text!r}: name that of an export")
    return path


async def import_notes(
    *,
    conversation: ConversationId,
    source: Annotated[
        Path,
        typer.Option(
            "--from", parser=_read_folder, metavar="DIRECTORY", help="Where the blocks are."
        ),
    ],
    db: Database = None,
    tenant: Tenant = "default",
    as_json: AsJson = False,
) -> int:
    """Import exported blocks as observations.

    Their messages must be on the tape, and not observed yet.
    """
    settings = load(url=db).settings
    async with open_conversation(settings, conversation, tenant=tenant, access="write") as chat:
        report = await chat.import_blocks(BlockStore(source))
    if as_json:
        output.write_json(report)
    else:
        output.line(
            f"imported {quantity(report.imported, 'block')} as observations of {conversation}, "
            f"and left out {quantity(report.malformed, 'line')} without a block"
        )
    for conflict in report.conflicts:
        output.warn(conflict)
    return FAILED if report.conflicts else 0


async def messages(
    *,
    conversation: ConversationId,
    after: Annotated[int, typer.Option(min=0, help="Only messages after this number.")] = 0,
    db: Database = None,
    tenant: Tenant = "default",
) -> None:
    """Print a conversation's messages as JSON Lines, for replay."""
    cut: list[int] = []
    async with open_conversation(load(url=db).settings, conversation, tenant=tenant) as chat:
        while page := await chat.messages(after=after, limit=PAGE):
            for message in page:
                line, is_whole = _line(message)
                output.print_json(line)
                if not is_whole:
                    cut.append(message.seq)
            after = page[-1].seq
    if cut:
        output.warn(
            f"messages that lose something in each provider's form: {len(cut):,}, the first is number "
            f"{cut[0]}; 'remanence copy' keeps all of a memory"
        )


def _line(message: Message) -> tuple[JsonObject, bool]:
    """Return a message in the first form that is read back as the same message, and True.

    If there is none, it is in OpenAI's form, or in Anthropic's if that needs several messages for it.
    """
    name: JsonObject = {"name": message.name} if message.name else {}
    kind = {"kind": message.kind} if message.kind != "message" else {}
    at = {"created_at": message.created_at.isoformat()} if message.created_at else {}
    lines: list[JsonObject] = []
    for form in _forms(message):
        lines.append({"seq": message.seq, "id": message.id, **kind, **name, **form, **at})
        if _is_read_back(lines[-1], message):
            return lines[-1], True
    return lines[0], False


def _forms(message: Message) -> Iterator[JsonObject]:
    """Yield a message as each provider has it, without its name."""
    rendered = openai.render(message.role, message.content)
    if len(rendered) == 1:
        yield rendered[0]
    yield anthropic.render(message.role, message.content, system_role=True)[0]
    yield gemini.render(message.role, message.content)


def _is_read_back(line: JsonObject, message: Message) -> bool:
    try:
        read, _ = read_message(Record("", line, ""), "")
    except InvalidMessage:
        return False
    return (read.role, read.name, read.content) == (message.role, message.name, message.content)


async def consolidate(
    *,
    user: Annotated[str | None, typer.Option(help="Whose notes; by default everybody's.")] = None,
    tenant: Annotated[str | None, typer.Option(help="Of which tenant.")] = None,
    db: Database = None,
    as_json: AsJson = False,
) -> int:
    """Summarise old daily notes into MEMORY.md, and archive them."""
    settings = replace(load(url=db).settings, workers=0)
    async with open_existing(settings, access="work") as memory:  # it needs the model
        results = await memory.consolidate(user=user, tenant=tenant)
    done = [each for each in results if each.memory_file.parent.is_dir()]
    if as_json:
        output.write_json({"consolidated": done})
    elif not done and user is None:
        output.line("there are no daily notes yet")
    elif done:
        output.table(
            done,
            {
                "tenant": lambda each: each.tenant,
                "user": lambda each: each.user,
                "days#": lambda each: len(each.days),
                "facts#": lambda each: each.facts,
                "memory file~": lambda each: each.memory_file,
            },
        )
    for each in done:
        if each.signature == "edited":
            output.warn(f"{each.memory_file} was edited since its last summary; the edit is kept")
    if user is not None and not done:
        output.warn(f"there are no daily notes of user {user!r:.80} yet")
        return FAILED
    return 0
