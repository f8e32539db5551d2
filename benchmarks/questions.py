"""Facts that answer a question of their user, which often names nothing of them.

The tables have some users with thirty facts each, in their own words, and twenty questions or tasks, each
with the number of a fact that it needs: half of them share no word of content with it. By the six
users of `questions.tsv` the thresholds and the order of hits were chosen; `unseen_questions.tsv` has
six of either of two other hands, to which nothing may be fitted. The facts are saved one after the other,
so that one that ends another by mistake loses it.
"""

import asyncio
import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.rows import Row, show
from remanence import Memory

TABLES = {
    "by which the order of hits was chosen": Path(__file__).with_name("questions.tsv"),
    "of unseen users": Path(__file__).with_name("unseen_questions.tsv"),
}
RANKS = (1, 5)


def measure() -> list[Row]:
    """Share of the questions whose fact is among the first found."""
    ranks = {whose: asyncio.run(_ranks(path)) for whose, path in TABLES.items()}
    return [
        Row(
            what=f"questions {whose}, whose fact is among the first {first} of some thirty",
            measured=100 * sum(rank <= first for rank in own) / len(own),
            unit="%",
            detail=f"{sum(rank <= first for rank in own)} of {len(own)}",
        )
        for whose, own in ranks.items()
        for first in RANKS
    ]


async def _ranks(path: Path) -> list[float]:
    ranks = []
    for user, rows in _users(path).items():
        async with Memory.open("sqlite:///:memory:") as memory:
            ids = {
                row["number"]: (await memory.facts.save(row["text"], user=user)).id
                for row in rows
                if row["kind"] == "fact"
            }
            for row in rows:
                if row["kind"] == "question":
                    found = await memory.facts.search(row["text"], user=user, limit=len(ids))
                    needed = {ids[number] for number in row["number"].split(",")}
                    places = [at for at, fact in enumerate(found, 1) if fact.id in needed]
                    ranks.append(min(places, default=float("inf")))
    return ranks


def _users(path: Path) -> Mapping[str, Sequence[Mapping[str, str]]]:
    users = defaultdict(list)
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            users[row["user"]].append(row)
    return users


if __name__ == "__main__":
    show(measure())
