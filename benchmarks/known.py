"""Facts of a user that a new conversation should know, and that its prompt has room for.

`unseen_known.tsv` has some forty facts of each of a few users: `weight` is 3 for what a new
conversation should know, 2 for what may help it, 1 for what has passed, 0 for small talk. Three
users were set aside before any fit, three were written by another hand after the first; nothing may be
fitted to them, and nobody read which facts are missing.
"""

import asyncio
import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from benchmarks.repetitions import FIRST_AT, merge_statement
from benchmarks.rows import Row, show
from remanence import Policy
from remanence.facts.render import other_facts_text
from remanence.tokens import count_tokens
from remanence.types import ConversationRef, Fact, MemoryState, Snapshot

UNSEEN = Path(__file__).with_name("unseen_known.tsv")
VITAL = 3
_HERE = ConversationRef("default", "new")


def measure() -> list[Row]:
    """Share of what a new conversation should know that is shown in it."""
    room = Policy().facts_budget // 2  # the other half is for facts of the conversation itself
    wanted = shown = 0
    for facts in users().values():
        text = asyncio.run(_text(list(facts), room))
        vital = [summary for summary, weight in facts.items() if weight == VITAL]
        wanted += len(vital)
        shown += sum(summary in text for summary in vital)
    return [
        Row(
            what=f"facts that a new conversation should know and shows, in {room} tokens",
            measured=100 * shown / wanted,
            unit="%",
            target=90.0,
            at_least=True,
            detail=f"{shown} of {wanted}",
        )
    ]


def users() -> Mapping[str, Mapping[str, int]]:
    """Facts of each user with their weights, in an order without meaning."""
    found: defaultdict[str, dict[str, int]] = defaultdict(dict)
    with UNSEEN.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            found[row["user"]][row["text"]] = int(row["weight"])
    return {
        user: dict(sorted(facts.items(), key=lambda one: one[0][::-1]))
        for user, facts in found.items()
    }


async def _text(summaries: Sequence[str], room: int) -> str:
    facts: list[Fact] = []
    for day, summary in enumerate(summaries):
        changes = await merge_statement(summary, FIRST_AT + timedelta(days=day), ())
        facts += changes.facts
    snapshot = Snapshot(
        state=MemoryState(ref=_HERE, key=1, user="ana", created_at=FIRST_AT), segments=(), tail=()
    )
    return other_facts_text(facts, snapshot, max_tokens=room, count_text=count_tokens)


if __name__ == "__main__":
    show(measure())
