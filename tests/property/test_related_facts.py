"""New statements meet only those known facts that they share something with."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import groupby, islice
from pathlib import Path
from typing import TypeAlias

import pytest

from remanence.facts import merge_facts
from remanence.facts.tags import HOME, STATEMENTS
from remanence.testing import FixedClock
from remanence.types import ConversationRef, Fact, FactDraft, Owner

LIVES = sorted(Path("data/facts").glob("*/lives.tsv"))
OWNER = Owner("default", "ana")
SOURCE = ConversationRef("default", "c")
SLIGHT = "It is what it is."
"""A statement without a word of content, which begins what answers it."""
PLAIN = "other"
"""A maker of facts that are no statements, which are compared with all."""

Outcome: TypeAlias = tuple[object, ...]


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.slow), 4])
@pytest.mark.parametrize("path", LIVES, ids=lambda path: path.parent.name)
def test_a_statement_does_the_same_as_if_it_were_compared_with_all_facts(
    path: Path, every: int
) -> None:
    outcomes = []
    for said in islice(users_of(path), None, None, every):
        known = [known_fact(text, number) for number, text in enumerate((SLIGHT, *said[:12]))]
        plain = [replace(fact, made_by=PLAIN) for fact in known]
        drafts = [(0, f"“{SLIGHT}” – {said[5]}"), *((99, text) for text in (*said, SLIGHT.upper()))]
        for seq, text in drafts:
            draft = FactDraft(summary=text, first_seq=seq, last_seq=seq)
            for tags in ((), (HOME,)):
                tagged = replace(draft, tags=tags)
                found = outcome(tagged, known, made_by=f"{STATEMENTS}4")
                assert found == outcome(tagged, plain, made_by=f"{STATEMENTS}4"), text
                earlier = replace(tagged, valid_from=FixedClock().now() - timedelta(days=9))
                assert outcome(earlier, known, made_by=f"{STATEMENTS}4") == outcome(
                    earlier, known, made_by=PLAIN
                ), text
                outcomes.append(found)

    assert {(bool(added), bool(replaced)) for added, replaced, _ in outcomes} == {
        (True, False),
        (True, True),
        (False, False),
    }


def users_of(path: Path) -> Iterator[Sequence[str]]:
    """The statements of each user."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    for _, own in groupby(rows, key=lambda row: row[0]):
        yield [row[3] for row in own]


def known_fact(text: str, number: int) -> Fact:
    at = FixedClock().now() - timedelta(days=1)
    return Fact(
        id=f"k{number}",
        tenant=OWNER.tenant,
        user=OWNER.user,
        summary=text,
        type="knowledge",
        tags=(HOME,) if number % 7 == 0 else (),
        conversation=SOURCE.id,
        first_seq=number,
        last_seq=number,
        made_by=f"{STATEMENTS}4",
        created_at=at,
        valid_from=at,
    )


def outcome(draft: FactDraft, known: Sequence[Fact], *, made_by: str) -> Outcome:
    """What a merge adds, replaces and finds repeated."""
    changes = merge_facts(
        [draft], known, owner=OWNER, source=SOURCE, made_by=made_by, clock=FixedClock()
    )
    added = [(fact.summary, fact.superseded_by) for fact in changes.facts]
    return added, changes.replaced, [repetition.repeats for repetition in changes.repetitions]
