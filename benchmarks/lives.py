"""Facts of users over a year: those that a later statement ends, and others that are ended.

`lives.tsv` was read while the features of pairs were chosen. `unseen_lives.tsv` was written by another
hand, with more that only adds or repeats; nothing may be fitted to it. A statement that would not
become a fact is taken for one, so that the pairs alone are measured.
"""

import asyncio
import csv
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from benchmarks.rows import Row, show
from remanence import Message
from remanence.facts import ExtractiveFacts, merge_facts
from remanence.protocols import ExtractRequest
from remanence.testing import FixedClock
from remanence.types import ConversationRef, Fact, FactDraft, Owner

SETS = {
    "of lives that were read": Path(__file__).with_name("lives.tsv"),
    "of unseen lives": Path(__file__).with_name("unseen_lives.tsv"),
}
_OWNER = Owner("default", "ana")


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
    return rows


async def _count(path: Path) -> Counts:
    lives = defaultdict(list)
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            lives[row["user"]].append(row)
    counted = [await _count_of_life(life) for life in lives.values()]
    return Counts(*map(sum, zip(*counted, strict=True)))


async def _count_of_life(life: Sequence[dict[str, str]]) -> Counts:
    known: tuple[Fact, ...] = ()
    numbers: dict[str, str] = {}
    ended = found = wrong = 0
    for row in life:
        at = datetime.fromisoformat(row["date"]).replace(hour=10, tzinfo=UTC)
        changes = merge_facts(
            await _drafts(row["text"], at),
            known,
            owner=_OWNER,
            source=None,
            made_by=ExtractiveFacts().name,
            clock=FixedClock(at, prefix=row["number"]),
        )
        wanted = set(row["ends"].split(",")) - {"-"}
        replaced = {numbers[fact_id] for fact_id in changes.replaced if fact_id in numbers}
        ended += len(wanted)
        found += len(wanted & replaced)
        wrong += len(replaced - wanted)
        numbers |= {fact.id: row["number"] for fact in changes.facts}
        known = (*changes.facts, *(fact for fact in known if fact.id not in changes.replaced))
    return Counts(ended, found, wrong)


async def _drafts(text: str, at: datetime) -> Sequence[FactDraft]:
    message = Message.user(text, created_at=at).replace(seq=1, tokens=len(text) // 4)
    request = ExtractRequest(
        conversation=ConversationRef("default", "a"),
        user=_OWNER.user,
        messages=(message,),
        notes=(),
        known=(),
        now=at,
    )
    return await ExtractiveFacts().extract(request) or [
        FactDraft(summary=text, first_seq=1, last_seq=1, valid_from=at)
    ]


if __name__ == "__main__":
    show(measure())
