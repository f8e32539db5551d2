"""Sentences that repeat an earlier one and are kept, and others that are taken for repetitions.

A pair of an earlier and a later sentence is `same` if the later one says nothing new, `adds` if it
says more of the same, `changes` if it has another value, denies or ends it, and `other` if it is
about something else that looks alike. Rules may be compared by `repetitions.tsv`; nothing may be
fitted to `unseen_repetitions.tsv`, the other half of the pairs. They were parted at random.
"""

import argparse
import asyncio
import csv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from benchmarks.rows import Row, show
from remanence import Message
from remanence.facts import ExtractiveFacts, merge_facts
from remanence.notes import render_notes
from remanence.observers.extractive import ExtractiveObserver, ExtractiveReflector
from remanence.protocols import ExtractRequest, ObserveRequest, ReflectRequest
from remanence.testing import FixedClock
from remanence.types import ConversationRef, Fact, FactChanges, FactDraft, Note, Owner, Segment

SETS = {
    "of pairs that may be read": Path(__file__).with_name("repetitions.tsv"),
    "of unseen pairs": Path(__file__).with_name("unseen_repetitions.tsv"),
}
"""A line per pair: its label, its language, the earlier and the later sentence."""
FIRST_AT = datetime(2026, 5, 1, 10, 0, tzinfo=UTC)
LATER_AT = FIRST_AT + timedelta(days=1)
ROOM = 1_000
"""Tokens of notes: more than any pair takes."""
_CHAT = ConversationRef("default", "a")
_ANA = Owner("default", "ana")


class Pair(NamedTuple):
    """An earlier and a later sentence of a user."""

    label: str
    language: str
    earlier: str
    later: str


class Verdict(NamedTuple):
    """How a later sentence is treated: None by a part that has nothing to compare."""

    observer: bool | None
    """Left out of new notes, as a known note covers it."""
    reflector: bool | None
    """Its note is left out of a reflection."""
    facts: str
    """It is `dropped`, it `replaces` the earlier one, or both are `kept`."""


class Figure(NamedTuple):
    """A share of the pairs with some labels, and its target in percent."""

    what: str
    labels: tuple[str, ...]
    applies: Callable[[Verdict], bool | None]
    target: float | None = None
    at_least: bool = False


_NEW = ("adds", "changes", "other")
FIGURES = (
    Figure("repetitions left out of new notes", ("same",), lambda v: v.observer),
    Figure("anything new left out of new notes", _NEW, lambda v: v.observer, 0.0),
    Figure("repetitions left out of reflections", ("same",), lambda v: v.reflector),
    Figure("anything new left out of reflections", _NEW, lambda v: v.reflector, 0.0),
    Figure("repeated facts dropped", ("same",), lambda v: v.facts == "dropped"),
    Figure("repeated facts not added to the first", ("same",), lambda v: v.facts != "kept"),
    Figure("changed facts replaced", ("changes",), lambda v: v.facts == "replaces"),
    Figure("new facts dropped", _NEW, lambda v: v.facts == "dropped", 0.0),
    Figure("facts that others replace", ("adds", "other"), lambda v: v.facts == "replaces", 0.0),
)


def measure() -> list[Row]:
    """Shares of the pairs that each part takes for repetitions or changes."""
    rows: list[Row] = []
    for whose, path in SETS.items():
        judged = judge(pairs(path))
        rows += [_row(figure, whose, judged) for figure in FIGURES]
    return rows


def pairs(path: Path) -> list[Pair]:
    """Read the pairs of a file."""
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [Pair(**row) for row in reader]


def judge(found: Iterable[Pair]) -> list[tuple[Pair, Verdict]]:
    """Return pairs with the verdict on each, alone in its conversation."""

    async def run() -> list[tuple[Pair, Verdict]]:
        return [(pair, await _verdict(pair)) for pair in found]

    return asyncio.run(run())


def _row(figure: Figure, whose: str, judged: Sequence[tuple[Pair, Verdict]]) -> Row:
    by_label = {label: Counter[bool]() for label in figure.labels}
    for pair, verdict in judged:
        if pair.label in by_label and (applies := figure.applies(verdict)) is not None:
            by_label[pair.label][applies] += 1
    counts = sum(by_label.values(), Counter[bool]())
    return Row(
        what=f"{figure.what}, {whose}",
        measured=100 * counts[True] / max(1, counts.total()),
        unit="%",
        target=figure.target,
        at_least=figure.at_least,
        detail=", ".join(f"{label} {n[True]} of {n.total()}" for label, n in by_label.items()),
    )


async def _verdict(pair: Pair) -> Verdict:
    earlier = await _notes(pair.earlier, FIRST_AT, seq=1)
    later = await _notes(pair.later, LATER_AT, seq=2)
    if not (earlier and later):
        return Verdict(None, None, await _facts(pair))
    anew = await _notes(pair.later, LATER_AT, seq=2, known=earlier)
    condensed = await _reflection(earlier, later)
    return Verdict(
        observer=not anew,
        reflector=not any(note.last_seq == 2 for note in condensed),
        facts=await _facts(pair),
    )


async def _notes(
    text: str, at: datetime, *, seq: int, known: tuple[Note, ...] = ()
) -> tuple[Note, ...]:
    request = ObserveRequest(
        conversation=_CHAT,
        messages=(_message(text, at, seq),),
        known=known,
        target_tokens=ROOM,
        count_tokens=len,
        note_format="compact",
        now=at,
    )
    return (await ExtractiveObserver().observe(request)).notes


async def _reflection(*made: tuple[Note, ...]) -> tuple[Note, ...]:
    request = ReflectRequest(
        conversation=_CHAT,
        segments=tuple(map(_segment, made)),
        generation=1,
        target_tokens=ROOM,
        count_tokens=len,
        note_format="compact",
        now=LATER_AT,
    )
    return (await ExtractiveReflector().reflect(request)).notes


async def _facts(pair: Pair) -> str:
    """Merge the fact of the later sentence with that of the earlier one."""
    known = (await merge_statement(pair.earlier, FIRST_AT, ())).facts
    changes = await merge_statement(pair.later, LATER_AT, known)
    return "dropped" if not changes.facts else "replaces" if changes.replaced else "kept"


async def merge_statement(text: str, at: datetime, known: Sequence[Fact]) -> FactChanges:
    """Merge what a sentence states, as it is if it would not become a fact."""
    request = ExtractRequest(
        conversation=_CHAT,
        user=_ANA.user,
        messages=(_message(text, at, 1),),
        notes=(),
        known=tuple(known),
        now=at,
    )
    drafts = await ExtractiveFacts().extract(request)
    return merge_facts(
        drafts or [FactDraft(summary=text, first_seq=1, last_seq=1, valid_from=at)],
        known,
        owner=_ANA,
        source=None,
        made_by=ExtractiveFacts().name,
        clock=FixedClock(at, prefix=f"{at:%Y%m%d%H%M}"),
    )


def _message(text: str, at: datetime, seq: int) -> Message:
    return Message.user(text, created_at=at).replace(seq=seq, tokens=len(text) // 4)


def _segment(notes: tuple[Note, ...]) -> Segment:
    text = render_notes(notes, "compact")
    return Segment(
        id=f"s{notes[0].first_seq}",
        generation=0,
        first_seq=notes[0].first_seq,
        last_seq=notes[-1].last_seq,
        text=text,
        notes=notes,
        tokens=len(text),
        source_tokens=len(text),
        sum_tokens=len(text),
        lost=(),
        made_by="benchmark",
        created_at=LATER_AT,
    )


def _of_languages(judged: Sequence[tuple[Pair, Verdict]]) -> Iterator[str]:
    """Yield a line per language with the percentages of all figures."""
    for language in dict.fromkeys(pair.language for pair, _ in judged):
        own = [(pair, verdict) for pair, verdict in judged if pair.language == language]
        shares = [_row(figure, "", own).measured or 0.0 for figure in FIGURES]
        yield " ".join([language, *(f"{share:4.0f}" for share in shares)])


def main() -> None:
    """Print the figures, by language too if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--languages", action="store_true", help="the figures of each language")
    parser.add_argument("--read", action="store_true", help="only the pairs that may be read")
    arguments = parser.parse_args()
    for whose, path in list(SETS.items())[: 1 if arguments.read else None]:
        judged = judge(pairs(path))
        show(_row(figure, whose, judged) for figure in FIGURES)
        if arguments.languages:
            print(*_of_languages(judged), sep="\n")


if __name__ == "__main__":
    main()
