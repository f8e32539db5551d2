"""`remanence demo`: a shipped conversation with and without memory, and the tokens saved."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import takewhile
from typing import NamedTuple

from remanence.cli import documents, output
from remanence.cli.options import AsJson
from remanence.cli.output import shorten
from remanence.cli.replay import MEMORY_URL, TapeClock
from remanence.cli.tape_drawing import print_tape
from remanence.cli.transcripts import entries
from remanence.context.context import Context
from remanence.memory import Memory
from remanence.policy.policy import Policy
from remanence.types import MemoryState, Message, Segment

SYSTEM = "You are a helpful assistant. You help Mina with her work and her everyday life."
SHOWN_NOTES = 14
SHOWN_LOST = 8
SHOWN_CHARACTERS = 400
SHOWN_TAIL = 6
SHOWN_MESSAGE = 120


class Saving(NamedTuple):
    """Tokens of the full history, and of the contexts sent instead."""

    of: str
    history: int
    sent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """The memory of the replayed conversation, and the prompts of its answers.

    `repeated_share` is the share of prompt characters that a prompt cache can serve: those in the
    prefix that each prompt shares with the previous one.
    """

    policy: Policy
    state: MemoryState
    segments: tuple[Segment, ...]
    context: Context
    prompts: int
    all_prompts: Saving
    repeated_share: float
    activations: int


async def run(*, as_json: AsJson = False) -> None:
    """Replay a conversation that ships with the package.

    Shows its notes, the context of the next call, and the tokens saved.
    """
    file = resources.files("remanence.cli") / "demo_conversation.jsonl"
    with file.open("rb") as lines:
        messages = [entry.message for entry in entries(lines, name=file.name)]
    with output.progress("Replaying the demo conversation", len(messages)) as bar:
        demo = await _play(messages, advance=bar.advance)
    if as_json:
        output.write_json(_document(demo))
    else:
        _print(demo)


async def _play(messages: Sequence[Message], *, advance: Callable[[int], None]) -> Demo:
    """Put *messages* on a temporary tape one by one, with a prompt before each answer."""
    clock, policy = TapeClock(), Policy.default()
    prompts: list[Context] = []
    characters = repeated = 0
    before = ""
    async with Memory.open(MEMORY_URL, policy=policy, clock=clock) as memory:
        chat = memory.conversation("demo")
        for message in messages:
            if message.role == "assistant":
                prompts.append(await chat.context(system=SYSTEM))
                text = prompts[-1].to_text()
                characters += len(text)
                shared = takewhile(lambda pair: pair[0] == pair[1], zip(text, before, strict=False))
                repeated += sum(1 for _ in shared)
                before = text
            clock.reach(message.created_at)
            await chat.append(message)
            await chat.flush()
            advance(1)
        snapshot = await chat.snapshot()
        return Demo(
            policy=policy,
            state=snapshot.state,
            segments=snapshot.segments,
            context=await chat.context(system=SYSTEM),
            prompts=len(prompts),
            all_prompts=_saving(f"the prompts of all {len(prompts)} answers", prompts),
            repeated_share=repeated / max(1, characters),
            activations=sum(entry.kind == "activated" for entry in await chat.log()),
        )


def _saving(of: str, contexts: Sequence[Context]) -> Saving:
    stats = [context.stats for context in contexts]
    history = sum(each.system_tokens + each.history_tokens for each in stats)
    return Saving(of, history, sum(each.context_tokens for each in stats))


def _document(demo: Demo) -> dict[str, object]:
    stats = demo.context.stats
    return {
        "state": documents.state(demo.state),
        "segments": [documents.segment(segment) for segment in demo.segments],
        "context": documents.context(demo.context),
        "stats": documents.stats(demo.context),
        "saved": {
            "calls": demo.prompts,
            "activations": demo.activations,
            "prompt_tokens": demo.all_prompts.sent,
            "prompt_tokens_without_memory": demo.all_prompts.history,
            "repeated_prefix_share": round(demo.repeated_share, 4),
            "context_tokens": stats.context_tokens,
            "history_tokens": stats.history_tokens,
        },
    }


def _print(demo: Demo) -> None:
    output.line("A conversation of two weeks, replayed message by message", style="bold")
    output.line(
        f"{demo.state.last_seq} messages of {demo.state.last_sum_tokens:,} tokens; the notes are made "
        "by the embedded observer, without a model. The raw tail may hold "
        f"{demo.policy.tail_tokens:,} tokens."
    )
    output.heading("The tape")
    print_tape(demo.state, demo.segments)
    _print_tiers(demo.state, demo.segments)
    _print_notes(demo.segments)
    lost = [literal for segment in demo.segments for literal in segment.lost]
    some = lost[:: max(1, len(lost) // SHOWN_LOST)][:SHOWN_LOST]
    output.heading("Loss report")
    output.line(
        f"{len(lost)} names, numbers, dates, paths and quotes of the messages are in no note; the "
        f"tape still holds them. Some: {', '.join(some)}"
    )
    _print_context(demo.context)
    output.heading("What it saved")
    output.table(
        [_saving("this prompt", [demo.context]), demo.all_prompts],
        {
            "tokens of": lambda saving: saving.of,
            "full history#": lambda saving: saving.history,
            "with memory#": lambda saving: saving.sent,
            "share#": lambda saving: f"{saving.sent / max(1, saving.history):.0%}",
        },
    )
    output.line(
        f"{demo.repeated_share:.0%} of all prompt characters repeat the beginning of the "
        "prompt before, so that a prompt cache serves them. The prompt moved on to newer notes "
        f"{demo.activations} times."
    )


def _print_tiers(state: MemoryState, segments: Sequence[Segment]) -> None:
    shown = [segment for segment in segments if segment.last_seq <= state.active_seq]
    rows: list[tuple[object, ...]] = [
        (
            name,
            sum(segment.last_seq - segment.first_seq + 1 for segment in tier),
            sum(segment.source_tokens for segment in tier),
            sum(len(segment.notes) for segment in tier),
            sum(segment.tokens for segment in tier),
        )
        for name, tier in (
            ("reflections", [segment for segment in shown if segment.generation]),
            ("observations", [segment for segment in shown if not segment.generation]),
            ("observed, kept ready", [s for s in segments if s.last_seq > state.active_seq]),
        )
    ]
    raw = state.last_seq - state.tail_seq + 1
    output.heading("Tiers")
    output.table(
        [*rows, ("raw tail", raw, state.tail_tokens, None, None)],
        {
            "tier": lambda row: row[0],
            "messages#": lambda row: row[1],
            "of tokens#": lambda row: row[2],
            "notes#": lambda row: row[3],
            "tokens of the notes#": lambda row: row[4],
        },
    )


def _print_notes(segments: Sequence[Segment]) -> None:
    notes = [note for segment in segments for note in segment.notes]
    output.heading(f"Notes ({min(SHOWN_NOTES, len(notes))} of {len(notes)})")
    rows, day = [], ""
    for note in notes[:: max(1, len(notes) // SHOWN_NOTES)][:SHOWN_NOTES]:
        date = f"{note.observed_at:%Y-%m-%d}" if note.observed_at else ""
        rows.append(("" if date == day else date, note))
        day = date
    output.table(
        rows,
        {
            "date": lambda row: row[0],
            "message#": lambda row: row[1].first_seq,
            "note~": lambda row: shorten(row[1].text, 160),
        },
    )


def _print_context(context: Context) -> None:
    output.heading("The assembled context")
    for block in context.system:
        cached = ", then a cache breakpoint" if block.cache else ""
        output.line(f"{block.kind}: {block.tokens:,} tokens{cached}", style="cyan")
        output.line(f"  {shorten(block.text, SHOWN_CHARACTERS)}")
    raw, tokens = len(context.messages), context.stats.working_tokens
    output.line(f"raw messages: {raw}, {tokens:,} tokens; the newest:", style="cyan")
    for message in context.messages[-SHOWN_TAIL:]:
        output.line(f"  {message.seq} {shorten(message.full_text, SHOWN_MESSAGE)}")
    output.line("at the end, for this call alone:", style="cyan")
    output.line(f"  {shorten(context.volatile, SHOWN_CHARACTERS)}")
