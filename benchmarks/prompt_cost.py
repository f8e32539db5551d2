"""What the prompts of a long conversation cost with a warm cache, and what they still hold."""

import argparse
import asyncio
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from benchmarks.planted import Part, Planted, planted
from benchmarks.quality import data_folder
from benchmarks.rows import Row, show
from benchmarks.texts import turns as made_up_turns
from benchmarks.written import Turn, has_texts, turns as written_turns
from remanence import Context, Conversation, Memory, Message, Observer, Policy
from remanence.observers.extractive import ExtractiveObserver
from remanence.protocols import ObserveRequest
from remanence.testing import FixedClock
from remanence.types import Draft

CACHED = 0.1
NEW = 1.25
TURNS = 600
TURN_SECONDS = 60.0
SYSTEM = "You are a helpful assistant."
PARTS: Mapping[Part, str] = {
    "tuning": "used for tuning",
    "unseen": "not used for tuning",
    "apart": "whose question shares no word",
}
Shares: TypeAlias = Mapping[Part, float]
CLOSING = "Thank you. What should we look at next?"


Source: TypeAlias = Literal["written", "plain", "chatty"]


class Cost(NamedTuple):
    """What one conversation came to."""

    million: float
    characters: int
    extending: int
    largest_prompt: int
    notes_characters: int
    kept: Shares
    """Facts whose name and value stand on one line of the last prompt."""
    noted: Shares
    """Those of its notes alone."""
    reached: Shares
    """Facts in the prompt of a turn that asks for them, as a `Chat` makes it."""
    found: Shares
    """Facts among five hits of `recall`."""


def measure(
    *,
    count: int = TURNS,
    sources: Iterable[Source] = ("written", "plain"),
    user: str | None = None,
) -> list[Row]:
    """The cost with the default policy, of text that people and models wrote and of made-up text."""
    rows: list[Row] = []
    for source in sources:
        known = source != "written" or has_texts(data_folder())
        rows += _rows(source, count, user) if known else [_skipped()]
    return rows


def _skipped() -> Row:
    detail = "skipped: there are no texts; REMANENCE_DATA names the folder of the evaluation data"
    return Row(what="prompt cost, written text", measured=None, detail=detail)


def _rows(source: Source, count: int, user: str | None) -> Iterable[Row]:
    cost = run(Policy.default(), source=source, count=count, user=user)
    aimed = source == "written"
    extending = 100 * cost.extending / cost.characters
    yield Row(
        what=f"prompt cost of {count} turns of 3,100 characters, {source} text",
        measured=cost.million,
        unit="M",
        target=6.0 * count / TURNS if aimed else None,
        reference="Mastra's defaults: 10.1 M" if count == TURNS else "",
        detail=f"{cost.characters / 1e6:.1f} M characters, {extending:.1f} % extend; "
        f"largest prompt {cost.largest_prompt:,}, notes at the end {cost.notes_characters:,}",
    )
    measures: tuple[tuple[str, Shares, float | None], ...] = (
        ("in the last prompt", cost.kept, 60.0),
        ("in the notes of the last prompt", cost.noted, None),
        ("in the prompt of a turn that asks", cost.reached, 98.0),
        ("among five hits of recall", cost.found, None),
    )
    for place, shares, target in measures:
        for part, share in shares.items():
            yield Row(
                what=f"facts {place}, {source} text, shapes {PARTS[part]}",
                measured=100 * share,
                unit="%",
                target=target if aimed and part != "apart" else None,
                at_least=True,
            )


def run(
    policy: Policy,
    *,
    source: Source = "plain",
    count: int = TURNS,
    seed: int = 1,
    observer: Observer | None = None,
    user: str | None = None,
    asking: bool = True,
) -> Cost:
    """Hold the conversation, by default with the embedded observer, and add up its prompts.

    The context of each turn is the one that a `Chat` asks for, with what it recalls, and with the
    facts of *user* where there is one. At the end each fact is asked for, as if by the next turn,
    unless *asking* is off.
    """
    return asyncio.run(_converse(policy, source, count, seed, observer, user, asking=asking))


async def _converse(
    policy: Policy,
    source: Source,
    count: int,
    seed: int,
    observer: Observer | None,
    user: str | None,
    *,
    asking: bool,
) -> Cost:
    clock = FixedClock(datetime(2027, 1, 4, 9, tzinfo=UTC))
    facts = planted(count, seed=seed)
    bill = Bill()
    url = "sqlite:///:memory:"
    async with Memory.open(url, policy=policy, clock=clock, observer=observer) as memory:
        chat = memory.conversation("long", user=user)
        for turn in _turns(source, facts, seed):
            clock.advance(TURN_SECONDS / 2)
            await chat.append(Message.user(turn.user))
            bill.add(rendered(await _asked(chat, turn.user)))
            clock.advance(TURN_SECONDS / 2)
            await chat.append(Message.assistant(turn.assistant))
            await chat.flush()
        await chat.append(Message.user(CLOSING))
        context = await _asked(chat, CLOSING)
        if error := (await chat.state()).last_error:
            raise RuntimeError(f"the observer failed, so the figures mean nothing: {error}")
        bill.add(rendered(context))
        reached = [fact for fact in facts if asking and await _reaches(chat, fact)]
        found = [fact for fact in facts if asking and await _finds(chat, fact)]
    return Cost(
        million=bill.million,
        characters=bill.characters,
        extending=bill.extending,
        largest_prompt=bill.largest,
        notes_characters=sum(len(block.text) for block in context.system),
        kept=_shares(facts, _told(facts, bill.latest)),
        noted=_shares(facts, _told(facts, "\n".join(block.text for block in context.system))),
        reached=_shares(facts, reached),
        found=_shares(facts, found),
    )


def _turns(source: Source, facts: Sequence[Planted], seed: int) -> Iterator[Turn]:
    if source == "written":
        return written_turns(data_folder(), facts, seed=seed)
    return made_up_turns(facts, style=source, seed=seed)


async def _asked(chat: Conversation, text: str) -> Context:
    recall = text if chat.policy.recall_each_turn else None
    return await chat.context(system=SYSTEM, recall=recall)


async def _reaches(chat: Conversation, fact: Planted) -> bool:
    return bool(_told([fact], rendered(await _asked(chat, fact.asked))))


async def _finds(chat: Conversation, fact: Planted) -> bool:
    return any(fact.is_in(hit.snippet) for hit in await chat.recall(fact.asked, limit=5))


def _told(facts: Iterable[Planted], text: str) -> list[Planted]:
    lines = text.splitlines()
    return [fact for fact in facts if fact.is_in(text) and fact.is_on_a_line(lines)]


def _shares(facts: Sequence[Planted], good: Sequence[Planted]) -> Shares:
    """The share of the facts of each part that are good."""
    all_of, good_of = (Counter(fact.part for fact in some) for some in (facts, good))
    return {part: good_of[part] / all_of[part] for part in PARTS if all_of[part]}


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


def sweep(changes: Iterable[Change], *, source: Source, count: int) -> None:
    """Print the cost of each changed policy."""
    print("| changed | cost M | facts in the last prompt % | largest prompt | extend % |")
    print("|---|---|---|---|---|")
    observer = RememberingObserver()
    for change in changes:
        policy = Policy.default(**change)
        cost = run(policy, source=source, count=count, observer=observer, asking=False)
        names = ", ".join(f"{name}={value}" for name, value in change.items()) or "default"
        kept = " / ".join(f"{100 * share:.0f}" for share in cost.kept.values())
        extending = 100 * cost.extending / cost.characters
        print(
            f"| {names} | {cost.million:.2f} | {kept} | {cost.largest_prompt:,} "
            f"| {extending:.1f} |",
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
    parser.add_argument("--source", choices=get_args(Source), help="of the text; by default both")
    parser.add_argument("--user", help="whose facts are remembered and shown; by default nobody's")
    arguments = parser.parse_args()
    if arguments.sweep:
        changes = variants(whole=arguments.whole)
        sweep(changes, source=arguments.source or "plain", count=arguments.turns)
    else:
        sources: tuple[Source, ...] = (
            (arguments.source,) if arguments.source else ("written", "plain")
        )
        show(measure(count=arguments.turns, sources=sources, user=arguments.user))


if __name__ == "__main__":
    main()
