"""Facts that follow what users say later, by pairs of statements a month apart in eleven languages."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from remanence.facts import ExtractiveFacts, merge_facts
from remanence.protocols import ExtractRequest
from remanence.testing import FixedClock
from remanence.types import ConversationRef, Fact, FactChanges, Message, Owner

PAIRS = Path(__file__).parents[1] / "data" / "updates.tsv"
"""A line per pair: `update`, or why the later is none; the language; the earlier and the later."""
REPLACED, MISTAKEN = 15, 3
"""The least number of the 28 updates that replace the earlier fact, and the most of the 27 others."""
FIRST_AT = datetime(2026, 5, 1, 10, 0, tzinfo=UTC)
LATER_AT = FIRST_AT + timedelta(days=30)
ANA = Owner("default", "ana")


class Pair(NamedTuple):
    kind: str
    language: str
    earlier: str
    later: str


def pairs(*, updates: bool) -> list[Pair]:
    rows = [Pair(*line.split("\t")) for line in PAIRS.read_text("utf-8").splitlines()]
    return [row for row in rows if (row.kind == "update") == updates]


async def changes(text: str, at: datetime, known: tuple[Fact, ...] = ()) -> FactChanges:
    message = Message.user(text, created_at=at).replace(seq=1, tokens=len(text) // 4)
    request = ExtractRequest(
        conversation=ConversationRef("default", "a"),
        user=ANA.user,
        messages=(message,),
        notes=(),
        known=known,
        now=at,
    )
    drafts = await ExtractiveFacts().extract(request)
    return merge_facts(
        drafts,
        known,
        owner=ANA,
        source=None,
        made_by="extractive/4",
        clock=FixedClock(LATER_AT, prefix=text[-5:]),
    )


async def replaces(pair: Pair) -> bool:
    known = (await changes(pair.earlier, FIRST_AT)).facts
    return bool((await changes(pair.later, LATER_AT, known)).replaced)


async def test_more_updates_than_other_statements_replace_an_earlier_fact() -> None:
    assert await count_of_replaced(updates=True) >= REPLACED
    assert await count_of_replaced(updates=False) <= MISTAKEN


async def count_of_replaced(*, updates: bool) -> int:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(replaces(pair)) for pair in pairs(updates=updates)]
    return sum(task.result() for task in tasks)


async def test_an_older_statement_that_is_read_later_replaces_nothing() -> None:
    moved, first = (
        "The dentist moved my appointment to 19 June.",
        "My dentist appointment is on 12 June.",
    )
    known = (await changes(moved, LATER_AT)).facts

    made = await changes(first, FIRST_AT, known)

    assert made.replaced == {}
    assert [fact.superseded_by for fact in made.facts] == [known[0].id]


async def test_the_users_move_leaves_that_of_a_relative_current() -> None:
    known = (await changes("My sister moved to Berlin and quit her job.", FIRST_AT)).facts
    assert known

    later = await changes("We moved to Ghent last week.", LATER_AT, known)

    assert (len(later.facts), later.replaced) == (1, {})


async def test_an_update_of_somebody_elses_replaces_nothing() -> None:
    known = (await changes("I work at Siemens.", FIRST_AT)).facts
    assert known

    later = await changes("My cousin quit Siemens, she works at Bosch now.", LATER_AT, known)

    assert later.replaced == {}
