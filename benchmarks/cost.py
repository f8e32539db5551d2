"""What a long conversation costs in dollars, by what is sent: a simulation with today's prices.

The prompts are the requests of the library's own pipeline; the caches are those of
`benchmarks.prompt_cache`. Notes are sentences of their source, as many as the policy allows, so
that a run takes seconds. Output of the answering model is the same everywhere and not counted.
"""

import argparse
import asyncio
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, TypeAlias

from benchmarks.planted import planted
from benchmarks.prompt_cache import AnthropicCache, OpenAICache, Piece, PromptCache
from benchmarks.rows import Row, show
from benchmarks.texts import turns
from benchmarks.written import Turn
from remanence import Context, Memory, Message, Policy, count_tokens
from remanence.catalog import look_up
from remanence.costs.prices import cache_prices
from remanence.protocols import ObserveRequest, ReflectRequest
from remanence.testing import FixedClock
from remanence.types import Draft, Note, Segment
from remanence.types.usage import CachePrices

Pace: TypeAlias = Literal["warm", "with gaps"]
Prompt: TypeAlias = tuple[float, tuple[Piece, ...]]

START = datetime(2027, 1, 4, 9, tzinfo=UTC)
TURN_SECONDS = 60.0
GAP_SECONDS = 1_800.0
GAP_EVERY = 10
CHARACTERS = 4_855
"""Of a turn of 1,500 tokens."""

HOUR = 3_600.0
LENGTHS = (50, 300, 600)
MODEL = "claude-sonnet-5-5"
OTHER_MODEL = "claude-sonnet-4-5"
OPENAI_MODEL = "gpt-5.4"
OBSERVER_MODEL = "claude-haiku-4-5"
CHEAP_OBSERVER_MODEL = "claude-haiku-5-5"
PROMPT_TOKENS = 1_600
"""The observer's and the reflector's own instructions."""

WINDOW_MESSAGES = 20
SYSTEM = "You are a helpful assistant."
TARGET = 0.33

POLICIES: dict[str, Callable[[], Policy]] = {
    "default": Policy.default,
    "lango": lambda: Policy.lango(enabled=True),
    "zora": Policy.zora,
    "brain": Policy.brain,
}


class Call(NamedTuple):
    """A call of an observer or reflector, made after so many turns."""

    turn: int
    input_tokens: int
    output_tokens: int


class Run(NamedTuple):
    """A conversation: its prompts, one a turn, and the calls that made its notes."""

    prompts: list[Prompt]
    calls: list[Call]


@functools.cache
def tokens_of(text: str) -> int:
    """Tokens as the answering model counts them."""
    return count_tokens(text, model=MODEL)


@functools.cache
def talk(count: int, characters: int) -> tuple[Turn, ...]:
    """The turns that every strategy holds."""
    return tuple(turns(planted(count), characters=characters))


def pauses(count: int, pace: Pace) -> Iterator[float]:
    """Seconds before each turn."""
    for number in range(count):
        is_gap = pace == "with gaps" and number % GAP_EVERY == 0 and number > 0
        yield GAP_SECONDS if is_gap else TURN_SECONDS


def full_history(count: int, pace: Pace, characters: int, system: str) -> Iterator[Prompt]:
    """Everything that was said, with breakpoints after the system text and the newest message."""
    pieces = [Piece(system, tokens_of(system), marked=True)]
    at = 0.0
    for turn, pause in zip(talk(count, characters), pauses(count, pace), strict=True):
        at += pause
        pieces.append(Piece(turn.user, tokens_of(turn.user)))
        yield at, (*pieces[:-1], pieces[-1]._replace(marked=True))
        pieces.append(Piece(turn.assistant, tokens_of(turn.assistant)))


def sliding_window(count: int, pace: Pace, characters: int, system: str) -> Iterator[Prompt]:
    """The newest messages only: their beginning changes each turn, so that nothing is cached."""
    for at, prompt in full_history(count, pace, characters, system):
        newest = (piece._replace(marked=False) for piece in prompt[1:][-WINDOW_MESSAGES:])
        yield at, (prompt[0], *newest)


async def with_memory(policy: Policy, count: int, pace: Pace, characters: int, system: str) -> Run:
    """The requests of the library's own pipeline."""
    clock, notes = FixedClock(START), SentenceNotes()
    run = Run([], notes.calls)
    url = "sqlite:///:memory:"
    async with Memory.open(
        url, policy=policy, clock=clock, observer=notes, reflector=notes
    ) as memory:
        chat = memory.conversation("long")
        for turn, pause in zip(talk(count, characters), pauses(count, pace), strict=True):
            clock.advance(pause)
            await chat.append(Message.user(turn.user))
            context = await chat.context(system=system)
            at = (clock.now() - START).total_seconds()
            run.prompts.append((at, tuple(pieces_of(context))))
            await chat.append(Message.assistant(turn.assistant))
            notes.turn = len(run.prompts)
            await chat.flush()
        if error := (await chat.state()).last_error:
            raise RuntimeError(f"no notes were made, so the figures mean nothing: {error}")
    return run


def pieces_of(context: Context) -> Iterator[Piece]:
    """The blocks of the request in the order in which the model reads them."""
    request = context.to_anthropic()
    blocks: list[dict[str, Any]] = list(request.get("system", ()))  # the provider's shape
    for message in request["messages"]:
        blocks += message["content"]
    for block in blocks:
        yield Piece(block["text"], tokens_of(block["text"]), "cache_control" in block)


class SentenceNotes:
    """An observer and reflector whose notes are sentences of the source; counts what a model reads.

    `turn` is how many turns there were.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.turn = 0

    async def observe(self, request: ObserveRequest) -> Draft:
        sentences = [
            Note(text=text, first_seq=m.seq, last_seq=m.seq, observed_at=m.created_at)
            for m in request.messages
            for text in m.text.replace("\n", " ").split(". ")
            if text.strip()
        ]
        notes = _spread(sentences, request)
        read = sum(tokens_of(m.text) for m in request.messages)
        read += sum(tokens_of(note.text) for note in request.known)
        self._called(read, notes)
        return Draft(notes=notes, made_by="sentences/1")

    async def reflect(self, request: ReflectRequest) -> Draft:
        every = [note for segment in request.segments for note in segment.notes]
        notes = _spread(every, request)
        self._called(_tokens(request.segments), notes)
        return Draft(notes=notes, made_by="sentences/1")

    def _called(self, read: int, notes: Iterable[Note]) -> None:
        written = sum(tokens_of(note.text) for note in notes)
        self.calls.append(Call(self.turn, PROMPT_TOKENS + read, written))


def _tokens(segments: Iterable[Segment]) -> int:
    return sum(tokens_of(segment.text) for segment in segments)


def _spread(notes: Sequence[Note], request: ObserveRequest | ReflectRequest) -> tuple[Note, ...]:
    """So many of the notes, evenly spread, as fill the target; room is left for headings."""
    counts = [request.count_tokens(note.text) + 2 for note in notes]
    share = min(1.0, 0.9 * request.target_tokens / max(1, sum(counts)))
    kept = [note for n, note in enumerate(notes) if int((n + 1) * share) > int(n * share)]
    return tuple(kept or notes[:1])


class Till:
    """Adds up the dollars of a conversation's prompts, turn by turn."""

    def __init__(self, prices: CachePrices, cache: PromptCache) -> None:
        self._prices = prices
        self._cache = cache
        self.turns: list[float] = []

    def pay(self, prompt: Prompt) -> None:
        billed = self._cache.bill(prompt[1], prompt[0])
        p = self._prices
        dollars = billed.read * p.read + billed.written * p.write + billed.plain * p.plain
        self.turns.append(dollars / 1e6)

    def sum(self, count: int) -> float:
        """Dollars of the first *count* turns."""
        return sum(self.turns[:count])


def prices_of(model: str, *, lifetime: float | None = None) -> CachePrices:
    """Today's prices, of the list that is installed."""
    prices = cache_prices(model, at=START, lifetime_seconds=lifetime or 0.0)
    if prices is None:
        raise RuntimeError(f"the installed price list has no {model!r}")
    return prices


def till(model: str, *, lifetime: float | None = None) -> Till:
    """An empty cache of a model's vendor, with its prices."""
    seconds = lifetime or look_up(model).cache_lifetime_seconds
    cache: PromptCache = (
        OpenAICache(lifetime_seconds=seconds)
        if model.startswith("gpt")
        else AnthropicCache(lifetime_seconds=seconds, least_tokens=look_up(model).min_cached_tokens)
    )
    return Till(prices_of(model, lifetime=lifetime), cache)


def paid(prompts: Iterable[Prompt], model: str, *, lifetime: float | None = None) -> Till:
    """All prompts, paid."""
    full = till(model, lifetime=lifetime)
    for prompt in prompts:
        full.pay(prompt)
    return full


def note_cost(calls: Iterable[Call], count: int, model: str = OBSERVER_MODEL) -> float:
    """Dollars of the observer's and reflector's calls in the first *count* turns."""
    prices = prices_of(model)
    made = [call for call in calls if call.turn <= count]
    read = sum(call.input_tokens for call in made)
    written = sum(call.output_tokens for call in made)
    return (read * prices.plain + written * prices.output) / 1e6


def measure(*, lengths: Sequence[int] = LENGTHS) -> list[Row]:
    """The figures of every strategy and pace, and what the third source document promises."""
    rows: list[Row] = []
    paces: tuple[Pace, ...] = ("warm", "with gaps")
    for pace in paces:
        rows += asyncio.run(_strategies(pace, lengths))
    return rows + asyncio.run(_promise())


async def _strategies(pace: Pace, lengths: Sequence[int]) -> list[Row]:
    longest = max(lengths)
    history = list(full_history(longest, pace, CHARACTERS, SYSTEM))
    runs = {
        name: await with_memory(make(), longest, pace, CHARACTERS, SYSTEM)
        for name, make in POLICIES.items()
    }
    rival = paid(history, MODEL)
    window = paid(sliding_window(longest, pace, CHARACTERS, SYSTEM), MODEL)
    rows = [_row("full history, cached", pace, n, rival.sum(n), rival) for n in lengths]
    rows += [_row("sliding window", pace, n, window.sum(n), rival) for n in lengths]
    for name, run in runs.items():
        memory = paid(run.prompts, MODEL)
        for n in lengths:
            rows.append(_row(f"{name}, embedded observer", pace, n, memory.sum(n), rival))
            for model in (OBSERVER_MODEL, CHEAP_OBSERVER_MODEL):
                with_model = memory.sum(n) + note_cost(run.calls, n, model)
                rows.append(_row(f"{name}, {model} observes", pace, n, with_model, rival))
    rows += _elsewhere(history, runs["default"], pace, lengths)
    return rows


def _elsewhere(
    history: Sequence[Prompt], run: Run, pace: Pace, lengths: Sequence[int]
) -> Iterator[Row]:
    """The default policy with other models and lifetimes, beside full history with the same."""
    for model, lifetime in ((MODEL, HOUR), (OTHER_MODEL, None), (OPENAI_MODEL, None)):
        rival, memory = (
            paid(prompts, model, lifetime=lifetime) for prompts in (history, run.prompts)
        )
        name = f"{model}{', cached for 1 h' if lifetime else ''}: default"
        for n in lengths:
            yield _row(name, pace, n, memory.sum(n), rival)


def _row(name: str, pace: Pace, count: int, dollars: float, rival: Till) -> Row:
    is_aim = (name, pace, count) == ("default, embedded observer", "warm", 300)
    return Row(
        what=f"{name}, {count} turns of 1,500 tokens, {pace}, ÷ full history with caching",
        measured=dollars / rival.sum(count),
        target=TARGET if is_aim else None,
        detail=f"${dollars:.3f} and ${rival.sum(count):.3f}",
    )


PROMISED = 0.75
PROMISE_TURNS = 150
PROMISE_CHARACTERS = 2_428
"""Of a turn of 750 tokens, as the document has them."""

PROMISE_SYSTEM_TOKENS = 2_000
AVERAGED = 10


async def _promise() -> list[Row]:
    """From which turn on a prompt costs 75 % less than the whole history without a cache.

    The document's trigger is 30,000 tokens; its observer every eighth turn means 6,000.
    """
    words = iter(" ".join(turn.assistant for turn in talk(100, CHARACTERS)).split())
    system = ""
    while tokens_of(system) < PROMISE_SYSTEM_TOKENS:
        system += " ".join(next(words) for _ in range(50)) + " "
    history = list(full_history(PROMISE_TURNS, "warm", PROMISE_CHARACTERS, system))
    uncached = [
        sum(piece.tokens for piece in prompt) * prices_of(OTHER_MODEL).plain / 1e6
        for _, prompt in history
    ]
    rows: list[Row] = []
    for trigger in (30_000, 6_000):
        policy = Policy.brain(observe_tokens=trigger)
        run = await with_memory(policy, PROMISE_TURNS, "warm", PROMISE_CHARACTERS, system)
        rows += _promise_rows(trigger, run, uncached, paid(history, OTHER_MODEL))
    return rows


def _promise_rows(trigger: int, run: Run, uncached: Sequence[float], cached: Till) -> Iterator[Row]:
    memory = paid(run.prompts, OTHER_MODEL).turns
    observing = [note_cost(run.calls, n + 1) - note_cost(run.calls, n) for n in range(len(memory))]
    whole = [a + b for a, b in zip(memory, observing, strict=True)]
    for name, spent in (("prompts alone", memory), ("observer included", whole)):
        saved = _saved(spent, uncached)
        at_end = _saved(spent, cached.turns)[-1]
        yield Row(
            what=f"brain, trigger {trigger:,}, {name}: first turn from which 75 % is saved "
            "against the whole history without a cache",
            measured=_from_turn(saved),
            detail=f"saved at turn 20, 60, 100: {saved[19]:.0%}, {saved[59]:.0%}, {saved[99]:.0%}; "
            f"at turn {PROMISE_TURNS} against the whole history with a cache: {at_end:.0%}",
        )


def _saved(spent: Sequence[float], before: Sequence[float]) -> list[float]:
    """The share that is saved, averaged over the ten turns up to each."""
    starts = [max(0, n + 1 - AVERAGED) for n in range(len(spent))]
    return [
        1 - sum(spent[start : n + 1]) / sum(before[start : n + 1]) for n, start in enumerate(starts)
    ]


def _from_turn(saved: Sequence[float]) -> float | None:
    """The turn from which on the promise holds up to the end; None if it never does."""
    below = [n for n, share in enumerate(saved, start=1) if share < PROMISED]
    first = below[-1] + 1 if below else 1
    return first if first <= len(saved) else None


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, nargs="*", default=list(LENGTHS))
    show(measure(lengths=parser.parse_args().turns))


if __name__ == "__main__":
    main()
