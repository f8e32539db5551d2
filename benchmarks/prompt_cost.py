"""What the prompts of a long conversation cost with a warm cache, and what they still hold."""

import argparse
import asyncio
import itertools
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeAlias

from benchmarks.rows import Row, show
from benchmarks.texts import Fact, Style, turns
from remanence import Context, Memory, Message, Observer, Policy
from remanence.observing.extractive import ExtractiveObserver
from remanence.protocols import ObserveRequest
from remanence.testing import FixedClock
from remanence.types import Draft

CACHED = 0.1
NEW = 1.25
TURNS = 600
TURN_SECONDS = 60.0
SYSTEM = "You are a helpful assistant."
CLOSING = "Thank you. What should we look at next?"


class Cost(NamedTuple):
    """What one conversation came to."""

    million: float
    characters: int
    extending: int
    largest_prompt: int
    facts_kept: float
    facts_on_a_line: float
    notes_characters: int


def measure(*, count: int = TURNS) -> list[Row]:
    """The cost with the default policy, in both styles of conversation."""
    return [row for style in ("plain", "chatty") for row in _rows(style, count)]


def _rows(style: Style, count: int) -> Iterable[Row]:
    cost = run(Policy.default(), style=style, count=count)
    what = f"prompt cost of {count} turns of 3,100 characters, {style}"
    aimed = style == "plain"
    extending = 100 * cost.extending / cost.characters
    yield Row(
        what=what,
        measured=cost.million,
        unit="M",
        target=6.0 * count / TURNS if aimed else None,
        reference="Mastra's defaults: 10.1 M" if count == TURNS else "",
        detail=f"{cost.characters / 1e6:.1f} M characters, {extending:.1f} % extend; "
        f"largest prompt {cost.largest_prompt:,}, notes at the end {cost.notes_characters:,}",
    )
    yield Row(
        what=f"planted facts in the last prompt, {style}",
        measured=100 * cost.facts_kept,
        unit="%",
        target=99.0 if aimed else None,
        at_least=True,
        detail=f"name and value on one line: {100 * cost.facts_on_a_line:.1f} %",
    )


def run(
    policy: Policy,
    *,
    style: Style = "plain",
    count: int = TURNS,
    seed: int = 1,
    observer: Observer | None = None,
) -> Cost:
    """Hold the conversation, by default with the embedded observer, and add up its prompts."""
    return asyncio.run(_converse(policy, style, count, seed, observer))


async def _converse(
    policy: Policy, style: Style, count: int, seed: int, observer: Observer | None
) -> Cost:
    clock = FixedClock(datetime(2027, 1, 4, 9, tzinfo=UTC))
    planted: list[Fact] = []
    bill = Bill()
    url = "sqlite:///:memory:"
    async with Memory.open(url, policy=policy, clock=clock, observer=observer) as memory:
        chat = memory.conversation("long")
        for turn in turns(count, style=style, seed=seed):
            clock.advance(TURN_SECONDS / 2)
            await chat.append(Message.user(turn.user))
            bill.add(rendered(await chat.context(system=SYSTEM)))
            clock.advance(TURN_SECONDS / 2)
            await chat.append(Message.assistant(turn.assistant))
            await chat.flush()
            planted.append(turn.fact)
        await chat.append(Message.user(CLOSING))
        context = await chat.context(system=SYSTEM)
        if error := (await chat.state()).last_error:
            raise RuntimeError(f"the observer failed, so the figures mean nothing: {error}")
    bill.add(rendered(context))
    return bill.cost(planted, context)


class Bill:
    """Adds up prompts; what begins like the prompt before is cached."""

    def __init__(self) -> None:
        self.latest = ""
        self.characters = self.extending = self.largest = 0

    @property
    def million(self) -> float:
        """Millions of characters, each weighed by what it costs."""
        new = self.characters - self.extending
        return (self.extending * CACHED + new * NEW) / 1e6

    def add(self, prompt: str) -> None:
        self.extending += common_prefix(self.latest, prompt)
        self.characters += len(prompt)
        self.largest = max(self.largest, len(prompt))
        self.latest = prompt

    def cost(self, planted: Sequence[Fact], context: Context) -> Cost:
        lines = self.latest.splitlines()
        kept = [fact for fact in planted if fact.name in self.latest and fact.value in self.latest]
        together = [
            fact for fact in kept if any(fact.name in line and fact.value in line for line in lines)
        ]
        return Cost(
            million=self.million,
            characters=self.characters,
            extending=self.extending,
            largest_prompt=self.largest,
            facts_kept=len(kept) / len(planted),
            facts_on_a_line=len(together) / len(planted),
            notes_characters=sum(len(block.text) for block in context.system),
        )


def rendered(context: Context) -> str:
    """The request's blocks as one text, in the order in which a model reads them."""
    request = context.to_anthropic()
    blocks = [("system", block) for block in request.get("system", ())]
    for message in request["messages"]:
        blocks += [(message["role"], block) for block in message["content"]]
    return "\n".join(f"[{role}]\n{_text(block)}" for role, block in blocks)


def _text(block: dict[str, Any]) -> str:  # a provider's block: its shape is the provider's
    if block["type"] == "text":
        return str(block["text"])
    return json.dumps({k: v for k, v in block.items() if k != "cache_control"})


def common_prefix(left: str, right: str) -> int:
    """How many characters both begin with."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if right.startswith(left[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low


SWEEP: dict[str, tuple[object, ...]] = {
    "tail_tokens": (6_000, 8_000, 12_000),
    "tail_keep_tokens": (1_000, 2_000),
    "keep_last": (2, 4),
    "note_ratio": (0.1, 0.2),
    "reflect_tokens": ((4_000, 4_000, 8_000), (4_000, 4_000, 16_000), (4_000, 16_000)),
    "reflect_ratio": (0.35, 0.5),
}


Change: TypeAlias = dict[str, Any]  # fields of a policy by name


def variants(*, whole: bool) -> list[Change]:
    """The default, and one field changed at a time; or, *whole*, each with each."""
    if whole:
        return [dict(zip(SWEEP, each, strict=True)) for each in itertools.product(*SWEEP.values())]
    return [{}, *({name: value} for name, values in SWEEP.items() for value in values)]


def sweep(changes: Iterable[Change], *, style: Style, count: int) -> None:
    """Print the cost of each changed policy."""
    print("| changed | cost M | facts % | on a line % | largest prompt | extend % |")
    print("|---|---|---|---|---|---|")
    observer = RememberingObserver()
    for change in changes:
        cost = run(Policy.default(**change), style=style, count=count, observer=observer)
        names = ", ".join(f"{name}={value}" for name, value in change.items()) or "default"
        extending = 100 * cost.extending / cost.characters
        print(
            f"| {names} | {cost.million:.2f} | {100 * cost.facts_kept:.1f} "
            f"| {100 * cost.facts_on_a_line:.1f} | {cost.largest_prompt:,} | {extending:.1f} |",
            flush=True,
        )


class RememberingObserver:
    """The embedded observer, which gives the same notes for the same messages without a look."""

    def __init__(self) -> None:
        self._observer = ExtractiveObserver()
        self._made: dict[tuple[str, int], Draft] = {}

    async def observe(self, request: ObserveRequest) -> Draft:
        key = ("\n".join(message.text for message in request.messages), request.target_tokens)
        if key not in self._made:
            self._made[key] = await self._observer.observe(request)
        return self._made[key]


def main() -> None:
    """Print the figures, or with `--sweep` how the policy changes them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--sweep", action="store_true", help="change one field at a time")
    parser.add_argument("--whole", action="store_true", help="with --sweep: each value with each")
    parser.add_argument("--style", choices=("plain", "chatty"), default="plain", help="of a sweep")
    arguments = parser.parse_args()
    if arguments.sweep:
        changes = variants(whole=arguments.whole)
        sweep(changes, style=arguments.style, count=arguments.turns)
    else:
        show(measure(count=arguments.turns))


if __name__ == "__main__":
    main()
