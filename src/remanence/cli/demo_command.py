"""`remanence demo`: the notes of a shipped conversation, and the tokens they save."""

import asyncio
from collections.abc import Sequence

from remanence.cli.demo import Demo, demo_messages, play
from remanence.cli.documents import (
    context_document,
    segment_document,
    state_document,
    stats_document,
)
from remanence.cli.output import Printer, percent, progress, shorten, write_json
from remanence.types import Segment

SHOWN_NOTES = 14
SHOWN_LOST = 8
SHOWN_CHARACTERS = 400
SHOWN_TAIL = 6
SHOWN_MESSAGE = 120


def run(*, as_json: bool) -> int:
    """Play the demo and show it."""
    messages = demo_messages()
    with progress("Replaying the demo conversation", len(messages)) as advance:
        demo = asyncio.run(play(messages, advance=advance))
    if as_json:
        write_json(demo_document(demo))
    else:
        _print(Printer(), demo)
    return 0


def demo_document(demo: Demo) -> dict[str, object]:
    """The JSON that `--json` writes."""
    spent, stats = demo.spent, demo.context.stats
    return {
        "state": state_document(demo.state),
        "segments": [segment_document(segment) for segment in demo.segments],
        "context": context_document(demo.context),
        "stats": stats_document(demo.context),
        "saved": {
            "calls": spent.calls,
            "activations": demo.activations,
            "prompt_tokens": spent.tokens,
            "prompt_tokens_without_memory": spent.history_tokens,
            "repeated_prefix_share": round(spent.repeated_share, 4),
            "context_tokens": stats.context_tokens,
            "history_tokens": stats.history_tokens,
        },
    }


def _print(printer: Printer, demo: Demo) -> None:
    printer.line("A conversation of two weeks, replayed message by message", style="bold")
    printer.line(
        f"{demo.state.last_seq} messages of {demo.state.last_sum_tokens:,} tokens; the notes are made "
        "by the embedded observer, without a model. The raw tail may hold "
        f"{demo.policy.tail_tokens:,} tokens."
    )
    printer.heading("The tape")
    printer.tape(demo.state)
    _print_tiers(printer, demo)
    _print_notes(printer, demo)
    _print_losses(printer, demo.segments)
    _print_context(printer, demo)
    _print_savings(printer, demo)


def _print_tiers(printer: Printer, demo: Demo) -> None:
    shown = [s for s in demo.segments if s.last_seq <= demo.state.active_seq]
    ready = [s for s in demo.segments if s.last_seq > demo.state.active_seq]
    raw = demo.state.last_seq - demo.state.tail_seq + 1
    printer.heading("Tiers")
    printer.table(
        ("tier", "messages#", "of tokens#", "notes#", "tokens of the notes#"),
        [
            _tier("reflections", [s for s in shown if s.generation]),
            _tier("observations", [s for s in shown if not s.generation]),
            _tier("observed, kept ready", ready),
            ("raw tail", raw, demo.state.tail_tokens, None, None),
        ],
    )


def _tier(name: str, segments: Sequence[Segment]) -> tuple[object, ...]:
    return (
        name,
        sum(segment.last_seq - segment.first_seq + 1 for segment in segments),
        sum(segment.source_tokens for segment in segments),
        sum(len(segment.notes) for segment in segments),
        sum(segment.tokens for segment in segments),
    )


def _print_notes(printer: Printer, demo: Demo) -> None:
    notes = [note for segment in demo.segments for note in segment.notes]
    printer.heading(f"Notes ({min(SHOWN_NOTES, len(notes))} of {len(notes)})")
    step = max(1, len(notes) // SHOWN_NOTES)
    rows = []
    day = ""
    for note in notes[::step][:SHOWN_NOTES]:
        date = f"{note.observed_at:%Y-%m-%d}" if note.observed_at else ""
        rows.append(("" if date == day else date, note.first_seq, shorten(note.text, 160)))
        day = date
    printer.table(("date", "message#", "note~"), rows)


def _print_losses(printer: Printer, segments: Sequence[Segment]) -> None:
    lost = [literal for segment in segments for literal in segment.lost]
    some = lost[:: max(1, len(lost) // SHOWN_LOST)][:SHOWN_LOST]
    printer.heading("Loss report")
    printer.line(
        f"{len(lost)} names, numbers, dates, paths and quotes of the messages are in no note; the "
        f"tape still holds them. Some: {', '.join(some)}"
    )


def _print_context(printer: Printer, demo: Demo) -> None:
    context = demo.context
    printer.heading("The assembled context")
    for block in context.system:
        cached = ", then a cache breakpoint" if block.cache else ""
        printer.line(f"{block.kind}: {block.tokens:,} tokens{cached}", style="cyan")
        printer.line(f"  {shorten(block.text, SHOWN_CHARACTERS)}")
    printer.line(
        f"raw messages: {len(context.messages)}, {context.stats.working_tokens:,} tokens; the newest:",
        style="cyan",
    )
    for message in context.messages[-SHOWN_TAIL:]:
        printer.line(f"  {message.seq} {shorten(message.full_text, SHOWN_MESSAGE)}")
    printer.line("at the end, for this call alone:", style="cyan")
    printer.line(f"  {shorten(context.volatile, SHOWN_CHARACTERS)}")


def _print_savings(printer: Printer, demo: Demo) -> None:
    spent, stats = demo.spent, demo.context.stats
    history = stats.history_tokens + stats.system_tokens
    printer.heading("What it saved")
    printer.table(
        ("tokens of", "full history#", "with memory#", "share#"),
        [
            _saving("this prompt", history, stats.context_tokens),
            _saving(
                f"the prompts of all {spent.calls} answers", spent.history_tokens, spent.tokens
            ),
        ],
    )
    printer.line(
        f"{percent(spent.repeated_share)} of all prompt characters repeat the beginning of the "
        "prompt before, so that a prompt cache serves them. The prompt moved on to newer notes "
        f"{demo.activations} times."
    )


def _saving(name: str, history_tokens: int, tokens: int) -> tuple[object, ...]:
    return (name, history_tokens, tokens, percent(tokens / max(1, history_tokens)))
