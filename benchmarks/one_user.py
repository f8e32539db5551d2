"""The end of a conversation, and the saving of a fact, of a user with few and with many facts."""

import asyncio
import random
import statistics
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from benchmarks.rows import Row, show
from remanence import Memory, Message
from remanence.clock import SystemClock
from remanence.stores import open_store
from remanence.types import Fact, FactChanges, Owner

LIVES = Path(__file__).parents[1] / "data" / "facts"
FEW, MANY = 100, 1_800
SAID = 25
RUNS = 4
"""Conversations at each number of facts; the first fills the caches of a process and does not count."""


class Taken(NamedTuple):
    """Median milliseconds of processor time."""

    end: float
    save: float


def measure() -> list[Row]:
    """The processor time with many facts, beside that with few."""
    few, many = asyncio.run(_measure(FEW)), asyncio.run(_measure(MANY))
    return [
        Row(
            what=f"{what}, {MANY:,} facts of its user ÷ {FEW}",
            measured=slow / fast,
            detail=f"{slow:.0f} and {fast:.0f} ms of CPU",
        )
        for what, slow, fast in (
            (f"end of a conversation of {SAID} statements", many.end, few.end),
            ("a saved fact", many.save, few.save),
        )
    ]


async def _measure(facts: int) -> Taken:
    said = _statements()
    known, new = said[:facts], iter(said[MANY:])
    taken: list[Taken] = []
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/memory.db"
        await _save(url, known)
        async with Memory.open(url) as memory:
            for number in range(RUNS):
                chat = memory.conversation(f"c{number}", user="ana")
                await chat.append(*(Message.user(next(new)) for _ in range(SAID)))
                began = time.process_time()
                await chat.end()
                ended = time.process_time()
                await memory.facts.save(f"Works at pier {number}", user="ana")
                taken.append(Taken(ended - began, time.process_time() - ended))
    ends, saves = zip(*taken[1:], strict=True)
    return Taken(statistics.median(ends) * 1_000, statistics.median(saves) * 1_000)


def _statements() -> list[str]:
    files = [path.read_text(encoding="utf-8") for path in sorted(LIVES.glob("*/lives.tsv"))]
    said = [line.split("\t")[3] for text in files for line in text.splitlines()[1:]]
    random.Random(1).shuffle(said)
    return said


async def _save(url: str, said: list[str]) -> None:
    """Store statements as facts, as an import would have."""
    clock = SystemClock()
    at = clock.now() - timedelta(days=9)
    owner = Owner("default", "ana")
    facts = tuple(
        Fact(
            id=clock.new_id("fact"),
            tenant=owner.tenant,
            user=owner.user,
            summary=text,
            type="knowledge",
            made_by="extractive/4",
            created_at=at,
            valid_from=at,
        )
        for text in said
    )
    store = await open_store(url, clock=clock)
    await store.save_facts(FactChanges(facts=facts, newest=""))
    await store.close()


if __name__ == "__main__":
    show(measure())
