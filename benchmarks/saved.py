"""Facts that a program or a model saves: those that a later one replaces, and others that it ends.

`unseen_saved.txt` has a line per pair in the form of `data/facts/<language>/saved.txt`, with the
language before it. Nothing may be fitted to it. The facts of other slots are those of `data/facts`.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tools import train_fact_pairs

from benchmarks.rows import Row, show
from remanence.facts import merge_facts
from remanence.facts.tags import SAVED
from remanence.testing import FixedClock
from remanence.types import Fact, FactDraft, Owner

UNSEEN = Path(__file__).with_name("unseen_saved.txt")
OTHERS = 250
"""Facts of other slots in its language that a saved fact is compared with."""
_AT = datetime(2026, 5, 1, 10, 0, tzinfo=UTC)


def measure() -> list[Row]:
    """Shares of the replaced facts that end, and of the others that do."""
    pairs = list(_pairs())
    known = train_fact_pairs.written_pairs("saved")
    ends = [_is_replaced(pair.later, [pair.earlier]) for pair in pairs if pair.ends]
    stays = [_is_replaced(pair.later, [pair.earlier]) for pair in pairs if not pair.ends]
    others = [_is_replaced(pair.later, _others(pair, known)) for pair in pairs]
    return [
        _row("saved facts that a later one replaces", ends, target=80.0, at_least=True),
        _row("saved facts that hold and are replaced", stays, target=3.0),
        _row(f"saved facts that replace one of {OTHERS} of other slots", others, target=0.0),
    ]


def _pairs() -> Iterator[train_fact_pairs.FactPair]:
    for line in UNSEEN.read_text("utf-8").splitlines():
        language, _, pair = line.partition(" ")
        yield train_fact_pairs.parse(language, pair)


def _others(
    pair: train_fact_pairs.FactPair, known: Sequence[train_fact_pairs.FactPair]
) -> Sequence[str]:
    others = [p for p in known if p.language == pair.language and p.slot != pair.slot]
    return [*{text: None for p in others for text in (p.earlier, p.later)}][:OTHERS]


def _is_replaced(later: str, known: Sequence[str]) -> bool:
    """Return whether a saved fact replaces one of those that were saved the day before."""
    changes = merge_facts(
        [FactDraft(summary=later)],
        [_fact(text) for text in known],
        owner=Owner("default", "ana"),
        source=None,
        made_by=SAVED,
        clock=FixedClock(_AT),
    )
    return bool(changes.replaced)


def _fact(text: str) -> Fact:
    before = _AT - timedelta(days=1)
    return Fact(
        id=text,
        tenant="default",
        user="ana",
        summary=text,
        type="knowledge",
        made_by=SAVED,
        created_at=before,
        valid_from=before,
    )


def _row(what: str, found: Sequence[bool], *, target: float, at_least: bool = False) -> Row:
    return Row(
        what=what,
        measured=100 * sum(found) / len(found),
        unit="%",
        target=target,
        at_least=at_least,
        detail=f"{sum(found)} of {len(found)}",
    )


if __name__ == "__main__":
    show(measure())
