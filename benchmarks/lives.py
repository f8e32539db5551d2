"""Facts of users over a year: those that a later statement ends, and others that are ended.

`lives.tsv` was read while the features of pairs were chosen. `unseen_lives.tsv` is by another hand
and has more statements that only add to an earlier one or repeat it. It was measured some
fifteen times, also beside five cutoffs, and its six wrong ends of one time were read; nothing may be
fitted to it. A statement that would not become a fact is taken for one, to measure pairs alone.

`moves.tsv` and `unseen_moves.tsv` have pairs of statements: a home or an employer, often with something
else, and another home or employer. The second file was set aside before the scores of facts were
fitted to the first, and nothing of it was read but the counts.

`unseen_updates.txt` has short updates in the form of `data/facts/<language>/updates.txt`, with the
language before it, by an author who had seen nothing. Nothing may be fitted to it.

The facts of other people are statements of `data/facts`: none of them is outdated by the lives.
"""

import asyncio
import csv
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple, TypeAlias

from tools import train_fact_pairs, train_pairs

from benchmarks.repetitions import FIRST_AT, LATER_AT, merge_statement
from benchmarks.rows import Row, show
from remanence.facts import ExtractiveFacts
from remanence.types import Fact

SETS = {
    "of lives that were read": Path(__file__).with_name("lives.tsv"),
    "of unseen lives": Path(__file__).with_name("unseen_lives.tsv"),
    "of unseen lives by three hands": Path(__file__).with_name("unseen_lives_2.tsv"),
}
MOVES = {
    "of moves that were read": Path(__file__).with_name("moves.tsv"),
    "of unseen moves": Path(__file__).with_name("unseen_moves.tsv"),
}
UPDATES = Path(__file__).with_name("unseen_updates.txt")
OTHERS = 250
"""Facts of other people that a statement is compared with."""

Life: TypeAlias = Sequence[dict[str, str]]


class Counts(NamedTuple):
    """Statements that a later one ends, and facts that were ended, rightly and wrongly."""

    ended: int = 0
    found: int = 0
    wrong: int = 0


def measure() -> list[Row]:
    """Shares of the outdated facts that end, and of the ended facts that still hold."""
    rows: list[Row] = []
    for whose, path in SETS.items():
        counts = asyncio.run(_count(path))
        ends = counts.found + counts.wrong
        rows += [
            Row(
                what=f"outdated facts that end, {whose}",
                measured=100 * counts.found / counts.ended,
                unit="%",
                detail=f"{counts.found} of {counts.ended}",
            ),
            Row(
                what=f"facts that end and still hold, {whose}",
                measured=100 * counts.wrong / max(1, ends),
                unit="%",
                target=0.0,
                detail=f"{counts.wrong} of {ends}",
            ),
        ]
    moves, updates = asyncio.run(_of_moves()), asyncio.run(_of_updates())
    return [*rows, *moves, *updates, asyncio.run(_among_others())]


async def _of_moves() -> list[Row]:
    """Shares of the facts that a move ends: those that say more than it ends, and others."""
    rows: list[Row] = []
    for whose, path in MOVES.items():
        ended: defaultdict[str, list[bool]] = defaultdict(list)
        for pair in _rows(path):
            known = (await merge_statement(pair["earlier"], FIRST_AT, ())).facts
            changes = await merge_statement(pair["later"], LATER_AT, known)
            ended[pair["label"]].append(bool(changes.replaced))
        for label, what in (
            ("stays", "facts that say more than what changes and end"),
            ("ends", "facts that say nothing else and end"),
        ):
            rows.append(
                Row(
                    what=f"{what}, {whose}",
                    measured=100 * sum(ended[label]) / len(ended[label]),
                    unit="%",
                    target=0.0 if label == "stays" else None,
                    detail=f"{sum(ended[label])} of {len(ended[label])}",
                )
            )
    return rows


async def _of_updates() -> list[Row]:
    """Shares of the facts that a short update makes untrue and ends, and of others that end."""
    ended: defaultdict[bool, list[bool]] = defaultdict(list)
    for line in UPDATES.read_text("utf-8").splitlines():
        language, _, written = line.partition(" ")
        pair = train_fact_pairs.parse(language, written)
        known = (await merge_statement(pair.earlier, FIRST_AT, ())).facts
        changes = await merge_statement(pair.later, LATER_AT, known)
        ended[pair.ends].append(bool(changes.replaced))
    return [
        Row(
            what=f"{what}, of unseen updates",
            measured=100 * sum(ended[ends]) / len(ended[ends]),
            unit="%",
            target=None if ends else 0.0,
            detail=f"{sum(ended[ends])} of {len(ended[ends])}",
        )
        for ends, what in ((True, "outdated facts that end"), (False, "facts that hold and end"))
    ]


async def _among_others() -> Row:
    """The share of statements that end a fact of other people in the same language."""
    others: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for pair in train_pairs.pairs():
        others[pair.language][pair.earlier] = None
    said = [row for path in SETS.values() for life in _lives(path) for row in life]
    ends = 0
    for row in said:
        at = _time(row)
        known = [_fact(text, at) for text in list(others[row["language"]])[:OTHERS]]
        ends += bool((await merge_statement(row["text"], at, known)).replaced)
    return Row(
        what=f"statements that end one of {OTHERS} facts of other people",
        measured=100 * ends / len(said),
        unit="%",
        target=0.0,
        detail=f"{ends} of {len(said)}",
    )


def _fact(text: str, at: datetime) -> Fact:
    before = at - timedelta(days=1)
    return Fact(
        id=text,
        tenant="default",
        user="ana",
        summary=text,
        type="profile",
        made_by=ExtractiveFacts().name,
        created_at=before,
        valid_from=before,
    )


def _lives(path: Path) -> Iterator[Life]:
    """Yield the statements of each user of a file."""
    lives = defaultdict(list)
    for row in _rows(path):
        lives[row["user"]].append(row)
    yield from lives.values()


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)


def _time(row: dict[str, str]) -> datetime:
    return datetime.fromisoformat(row["date"]).replace(
        hour=10, minute=int(row["number"]), tzinfo=UTC
    )


async def _count(path: Path) -> Counts:
    counted = [await _count_of_life(life) for life in _lives(path)]
    return Counts(*map(sum, zip(*counted, strict=True)))


async def _count_of_life(life: Life) -> Counts:
    known: tuple[Fact, ...] = ()
    numbers: dict[str, str] = {}
    ended = found = wrong = 0
    for row in life:
        changes = await merge_statement(row["text"], _time(row), known)
        wanted = set(row["ends"].split(",")) - {"-"}
        replaced = {numbers[fact_id] for fact_id in changes.replaced if fact_id in numbers}
        ended += len(wanted)
        found += len(wanted & replaced)
        wrong += len(replaced - wanted)
        numbers |= {fact.id: row["number"] for fact in changes.facts}
        known = (*changes.facts, *(fact for fact in known if fact.id not in changes.replaced))
    return Counts(ended, found, wrong)


if __name__ == "__main__":
    show(measure())
