"""Arguments and options shared by several commands."""

from pathlib import Path
from typing import Annotated

import typer

from remanence.policy.presets import Preset

ConversationId = Annotated[str, typer.Argument(help="Its id.")]
STDIN = Path("-")


def read_path(text: str) -> Path:
    """Return the path, or raise `typer.BadParameter` if it is empty, as an unset variable leaves it."""
    if not text:
        raise typer.BadParameter("'' is not a path: name one")
    return Path(text)


def _read_file(text: str) -> Path:
    path = read_path(text)
    if path != STDIN and path.is_dir():
        raise typer.BadParameter(f"{text!r} is a directory: name a file in it")
    if path != STDIN and not path.exists():
        raise typer.BadParameter(f"there is no file {text!r}: name one, or - for stdin")
    return path


HistoryFile = Annotated[
    Path,
    typer.Argument(
        parser=_read_file,
        help="Messages as JSON Lines, an export of ChatGPT or Claude, or a session of Claude Code or "
        "Codex; - reads stdin.",
    ),
]
TranscriptFile = Annotated[
    Path,
    typer.Argument(
        parser=_read_file,  # typer's own check treats `-` as a file name
        help="A transcript, as JSON Lines or JSON; - reads stdin.",
    ),
]


def _read_words(text: str) -> str:
    if not text.strip():
        raise typer.BadParameter(f"{text!r:.80} has no words: write some to look for")
    return text


Query = Annotated[str, typer.Argument(parser=_read_words, help="Words to look for.")]
Words = Annotated[
    str | None,
    typer.Option(parser=_read_words, metavar="WORDS", help="Only facts that match, best first."),
]
Ratio = Annotated[
    float | None,
    typer.Option(min=0.001, max=1.0, help="The maximum share of tokens for notes."),
]
Database = Annotated[
    str | None,
    typer.Option("--db", metavar="URL", help="The database, such as sqlite:///memory.db."),
]
Tenant = Annotated[str, typer.Option(help="The tenant.")]
PresetName = Annotated[Preset | None, typer.Option(help="The preset to show.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
AgentTools = Annotated[bool, typer.Option(help="Let the model search and save facts of the user.")]
