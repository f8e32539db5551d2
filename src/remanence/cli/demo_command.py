"""`remanence demo`: a shipped conversation with and without memory, and the tokens that it saves."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import takewhile
from typing import NamedTuple

from remanence.cli.documents import (
    context_document,
    segment_document,
    state_document,
    stats_document,
)
from remanence.cli.options import AsJson
from remanence.cli.output import Printer, progress, shorten, write_json
from remanence.cli.replay import MEMORY_URL, TapeClock, live_segments
from remanence.cli.transcripts import entries
from remanence.context.context import Context, ContextStats
from remanence.memory import Memory
from remanence.policy.policy import Policy
from remanence.types import MemoryState, Message, Segment

SYSTEM = "You are a helpful assistant. You help Mina with her work and her everyday life."
SHOWN_NOTES = 14
SHOWN_LOST = 8
SHOWN_CHARACTERS = 400
SHOWN_TAIL = 6
SHOWN_MESSAGE = 120


class Prompt(NamedTuple):
    """The size of the prompt of one answer.

    A prompt cache serves the `repeated_characters`: the beginning shared with the prompt before.
    """

    stats: ContextStats
    characters: int
    repeated_characters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """The memory of the played conversation, and the prompts of its answers."""

    policy: Policy
    state: MemoryState
    segments: tuple[Segment, ...]
    context: Context
    prompts: tuple[Prompt, ...]
    activations: int

    @property
    def prompt_tokens(self) -> int:
        """Tokens of all prompts."""
        return sum(prompt.stats.context_tokens for prompt in self.prompts)

    @property
    def history_tokens(self) -> int:
        """Tokens that all prompts would have with the full history."""
        return sum(
            prompt.stats.system_tokens + prompt.stats.history_tokens for prompt in self.prompts
        )

    @property
    def repeated_share(self) -> float:
        """The share of all characters that a prompt cache can serve, 0 to 1."""
        repeated = sum(prompt.repeated_characters for prompt in self.prompts)
        return repeated / max(1, sum(prompt.characters for prompt in self.prompts))


async def run(*, as_json: AsJson = False) -> None:
    """Replay a conversation that ships with the package.

    Shows what memory keeps of it, the context, and what that saves.
    """
    file = resources.files("remanence.cli") / "demo_conversation.jsonl"
    with file.open("rb") as lines:
        messages = [entry.message for entry in entries(lines, name=file.name)]
    with progress("Replaying the demo conversation", len(messages)) as advance:
        demo = await _play(messages, advance=advance)
    if as_json:
        write_json(_document(demo))
    else:
        _print(Printer(), demo)


async def _play(messages: Sequence[Message], *, advance: Callable[[int], None]) -> Demo:
    """Put *messages* on a temporary tape one by one, with a prompt before each answer."""
    clock, policy = TapeClock(), Policy.default()
    prompts: list[Prompt] = []
    before = ""
    async with Memory.open(MEMORY_URL, policy=policy, clock=clock) as memory:
        chat = memory.conversation("demo")
        for message in messages:
            if message.role == "assistant":
                context = await chat.context(system=SYSTEM)
                text = context.to_text()
                pairs = zip(text, before, strict=False)
                repeated = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
                prompts.append(Prompt(context.stats, len(text), repeated))
                before = text
            clock.reach(message.created_at)
            await chat.append(message)
            await chat.flush()
            advance(1)
        log = await chat.log()
        return Demo(
            policy=policy,
            state=await chat.state(),
            segments=await live_segments(chat),
            context=await chat.context(system=SYSTEM),
            prompts=tuple(prompts),
            activations=sum(entry.kind == "activated" for entry in log),
        )


def _document(demo: Demo) -> dict[str, object]:
    stats = demo.context.stats
    return {
        "state": state_document(demo.state),
        "segments": [segment_document(segment) for segment in demo.segments],
        "context": context_document(demo.context),
        "stats": stats_document(demo.context),
        "saved": {
            "calls": len(demo.prompts),
            "activations": demo.activations,
            "prompt_tokens": demo.prompt_tokens,
            "prompt_tokens_without_memory": demo.history_tokens,
            "repeated_prefix_share": round(demo.repeated_share, 4),
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
    stats = demo.context.stats
    history = stats.history_tokens + stats.system_tokens
    savings = (
        ("this prompt", history, stats.context_tokens),
        (
            f"the prompts of all {len(demo.prompts)} answers",
            demo.history_tokens,
            demo.prompt_tokens,
        ),
    )
    printer.heading("What it saved")
    printer.table(
        ("tokens of", "full history#", "with memory#", "share#"),
        [
            (name, history, tokens, f"{tokens / max(1, history):.0%}")
            for name, history, tokens in savings
        ],
    )
    printer.line(
        f"{demo.repeated_share:.0%} of all prompt characters repeat the beginning of the "
        "prompt before, so that a prompt cache serves them. The prompt moved on to newer notes "
        f"{demo.activations} times."
    )
