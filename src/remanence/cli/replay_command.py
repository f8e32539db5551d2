"""`remanence replay`: run a transcript through the memory and verify the result."""

from pathlib import Path
from typing import Annotated

import typer

from remanence.cli import FAILED, documents, output
from remanence.cli.options import Database, Ratio, TranscriptFile, read_path
from remanence.cli.output import quantity
from remanence.cli.replay import MEMORY_URL, PROMISES, ReplayResult, replay, replay_policy
from remanence.cli.settings import load, require_newest
from remanence.cli.tape_drawing import print_tape
from remanence.cli.transcripts import Transcript, open_transcript
from remanence.policy.presets import Preset

SHOWN_PLACES = 10
STDOUT = Path("-")


def _read_target(text: str) -> str:
    target = read_path(text)
    if target == STDOUT:
        return text
    if not target.parent.is_dir():
        raise typer.BadParameter(f"the directory of {text!r} does not exist: create it first")
    is_dangling = target.is_symlink() and not target.exists()
    if (
        target.is_file() or target.is_dir() or is_dangling
    ):  # a device, such as /dev/null, loses nothing
        raise typer.BadParameter(f"{text!r} already exists: name a new file, or remove it")
    return text


async def run(
    *,
    file: TranscriptFile,
    preset: Annotated[Preset | None, typer.Option(help="The policy to replay with.")] = None,
    ratio: Ratio = None,
    db: Database = None,
    json_target: Annotated[
        str | None,
        typer.Option(
            "--json",
            parser=_read_target,
            metavar="OUT",
            help="Write the result to this new file; - is stdout.",
        ),
    ] = None,
    conversation: Annotated[
        str | None,
        typer.Option(metavar="ID", help="The conversation's id, by default the file name."),
    ] = None,
) -> int:
    """Replay a transcript on a tape, and check the result."""
    settings = load(url=db, preset=preset).settings
    policy = replay_policy(settings, ratio=ratio)
    transcript = open_transcript(file, max_message_bytes=policy.max_message_bytes)
    if places := transcript.empty_places:
        more = f" and {len(places) - SHOWN_PLACES} more" if len(places) > SHOWN_PLACES else ""
        output.warn(
            f"{transcript.name}: empty messages are kept as control text ({len(places)}): "
            f"{', '.join(places[:SHOWN_PLACES])}{more}"
        )
    if db is not None:
        await require_newest(db)
    with output.progress(f"Replaying {transcript.name}", transcript.messages) as bar:
        replayed = await replay(
            transcript,
            conversation or Path(transcript.name).stem,
            url=db or MEMORY_URL,
            settings=settings,
            policy=policy,
            everything=ratio is not None,
            advance=bar.advance,
        )
    if json_target is not None:
        output.write_json(_document(replayed), json_target)
    if json_target != "-":
        _print_summary(transcript, replayed, ratio)
    for name, violations in replayed.violations.items():
        for violation in violations:
            output.warn(f"broken promise: {PROMISES[name]}: {violation}")
    return FAILED if any(replayed.violations.values()) else 0


def _document(replayed: ReplayResult) -> dict[str, object]:
    state, context = replayed.state, replayed.context
    return {
        "conversation": state.ref.id,
        "messages": state.last_seq,
        "tokens": {
            "history": context.stats.history_tokens,
            "context": context.stats.context_tokens,
        },
        "segments": [documents.segment(segment) for segment in replayed.segments],
        "context": documents.context(context),
        "stats": {
            **documents.stats(context),
            "cursors": documents.cursors(state),
            "checks": replayed.violations,
        },
    }


def _print_summary(transcript: Transcript, replayed: ReplayResult, ratio: float | None) -> None:
    stats = replayed.context.stats
    sessions = f" in {transcript.sessions} sessions" if transcript.sessions > 1 else ""
    output.line(
        f"{transcript.name}: {quantity(transcript.messages, 'message')}{sessions}", style="bold"
    )
    output.line(
        f"{stats.history_tokens:,} tokens of history; the context has {stats.context_tokens:,} "
        f"({stats.context_tokens / max(1, stats.history_tokens):.0%})"
    )
    output.line()
    print_tape(replayed.state, replayed.segments)
    output.list_segments(replayed.segments)
    output.list_notes(replayed.segments, older="--json OUT writes all")
    if not replayed.segments and replayed.state.last_error is None and ratio is None:
        output.line("No notes yet, as all messages fit the raw tail: --ratio 0.2 makes some.")
    if replayed.state.last_error:
        output.line(f"The last step failed: {replayed.state.last_error}", style="yellow")
    output.heading("Checks")
    for name, promise in PROMISES.items():
        found = replayed.violations[name]
        output.line(f"{'FAILED' if found else 'ok':<6} {promise}", style="red" if found else None)
