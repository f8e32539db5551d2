"""Facts that a request to forget ends, of six that its user told.

A row of a table has the language, a request, and the facts: those with `* ` before them shall go.
Among the others are the same thing of another person, and a word of the request in another sense.
`requests.tsv` was read while rules were made; of `unseen_requests.tsv`, in eight other languages, some
Arabic rows were read.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from benchmarks.repetitions import FIRST_AT, merge_statement
from benchmarks.rows import Row, show
from remanence.facts.named import find_named
from remanence.observers.learned.features import Line
from remanence.observers.learned.forgetting import is_request
from remanence.types import Fact

SETS = {
    "read while rules were made": Path(__file__).with_name("requests.tsv"),
    "unseen": Path(__file__).with_name("unseen_requests.tsv"),
}
GOES = "* "


class Case(NamedTuple):
    """A request, and the facts of its user that go by it or stay."""

    request: str
    go: frozenset[str]
    stay: frozenset[str]


def measure() -> list[Row]:
    """Shares of facts that end, if every request were recognised, and of requests that are."""
    rows: list[Row] = []
    for name, path in SETS.items():
        cases = list(read(path))
        ended = [asyncio.run(_ended(case)) for case in cases]
        pairs = list(zip(cases, ended, strict=True))
        found = sum(len(case.go & gone) for case, gone in pairs)
        wrong = sum(len(case.stay & gone) for case, gone in pairs)
        asked = sum(is_request(Line(case.request, "user")) for case in cases)
        rows += [
            _row(f"facts that a request names and ends, {name}", found, _count(cases, "go")),
            _row(f"facts that it does not name and ends, {name}", wrong, _count(cases, "stay")),
            _row(f"requests recognised, {name}", asked, len(cases)),
        ]
    return rows


def read(path: Path) -> Iterator[Case]:
    """Yield the cases of a table."""
    for row in path.read_text("utf-8").splitlines():
        _, request, *facts = row.split("\t")
        go = frozenset(fact.removeprefix(GOES) for fact in facts if fact.startswith(GOES))
        yield Case(request, go, frozenset(fact for fact in facts if not fact.startswith(GOES)))


async def _ended(case: Case) -> frozenset[str]:
    told: dict[str, str] = {}
    known: list[Fact] = []
    for day, text in enumerate(sorted(case.go | case.stay)):
        changes = await merge_statement(text, FIRST_AT + timedelta(days=day), ())
        known += changes.facts
        told |= {fact.id: text for fact in changes.facts}
    request = replace(known[-1], id="request", summary=case.request)
    return frozenset(told[fact.id] for fact in find_named(request, known))


def _count(cases: list[Case], kind: str) -> int:
    return sum(len(getattr(case, kind)) for case in cases)


def _row(what: str, count: int, total: int) -> Row:
    return Row(what=what, measured=100 * count / total, unit="%", detail=f"{count} of {total}")


if __name__ == "__main__":
    show(measure())
