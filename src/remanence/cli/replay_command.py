"""`remanence replay`: run a transcript through the memory and verify the result."""

import asyncio
from pathlib import Path

from remanence.cli.documents import context_document, segment_document, stats_document
from remanence.cli.output import Printer, percent, progress, warn, write_json
from remanence.cli.replay import MEMORY_URL, ReplayResult, replay, replay_policy
from remanence.cli.transcripts import Transcript, open_transcript
from remanence.settings import Settings

SHOWN_PLACES = 10
FAILED = 1


def run(
    file: Path,
    *,
    conversation: str | None,
    url: str | None,
    settings: Settings,
    ratio: float | None,
    json_target: str | None,
) -> int:
    """Replay, report, and return the exit code: 1 if a promise is broken."""
    policy = replay_policy(settings, ratio=ratio)
    transcript = open_transcript(file, max_message_bytes=policy.max_message_bytes)
    _warn_of_empty(transcript)
    with progress(f"Replaying {transcript.name}", transcript.messages) as advance:
        replayed = asyncio.run(
            replay(
                transcript,
                conversation or file.stem,
                url=url or MEMORY_URL,
                settings=settings,
                policy=policy,
                everything=ratio is not None,
                advance=advance,
            )
        )
    if json_target is not None:
        write_json(replay_document(replayed), json_target)
    if json_target != "-":
        _print_summary(Printer(), transcript, replayed)
    for violation in replayed.verdict.violations:
        warn(f"broken promise: {violation}")
    return FAILED if replayed.verdict.violations else 0


def replay_document(replayed: ReplayResult) -> dict[str, object]:
    """The JSON that `--json` writes."""
    state, context = replayed.state, replayed.context
    return {
        "conversation": replayed.conversation,
        "messages": state.last_seq,
        "tokens": {
            "history": context.stats.history_tokens,
            "context": context.stats.context_tokens,
        },
        "segments": [segment_document(segment) for segment in replayed.segments],
        "context": context_document(context),
        "stats": {
            **stats_document(context),
            "cursors": {
                "last_seq": state.last_seq,
                "observed_seq": state.observed_seq,
                "active_seq": state.active_seq,
                "reflected_seq": state.reflected_seq,
                "tail_seq": state.tail_seq,
            },
            "checks": {
                "tiling": list(replayed.verdict.tiling),
                "anthropic": list(replayed.verdict.anthropic),
                "openai": list(replayed.verdict.openai),
                "tail": list(replayed.verdict.tail),
            },
        },
    }


def _warn_of_empty(transcript: Transcript) -> None:
    places = transcript.empty_places
    if places:
        more = f" and {len(places) - SHOWN_PLACES} more" if len(places) > SHOWN_PLACES else ""
        warn(
            f"{transcript.name}: empty messages are kept as control text ({len(places)}): "
            f"{', '.join(places[:SHOWN_PLACES])}{more}"
        )


def _print_summary(printer: Printer, transcript: Transcript, replayed: ReplayResult) -> None:
    stats = replayed.context.stats
    sessions = f" in {transcript.sessions} sessions" if transcript.sessions > 1 else ""
    printer.line(f"{transcript.name}: {transcript.messages:,} messages{sessions}", style="bold")
    printer.line(
        f"{stats.history_tokens:,} tokens of history; the context has {stats.context_tokens:,} "
        f"({percent(stats.context_tokens / max(1, stats.history_tokens))})"
    )
    printer.line()
    printer.tape(replayed.state)
    printer.segments(replayed.segments)
    if replayed.state.last_error:
        printer.line(f"The last step failed: {replayed.state.last_error}", style="yellow")
    printer.heading("Checks")
    verdict = replayed.verdict
    for name, found in (
        ("live segments tile the tape", verdict.tiling),
        ("valid for Anthropic's Messages API", verdict.anthropic),
        ("valid for OpenAI's Chat Completions", verdict.openai),
        ("raw tail within its budget", verdict.tail),
    ):
        printer.line(f"{'FAILED' if found else 'ok':<6} {name}", style="red" if found else None)
