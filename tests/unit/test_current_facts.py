"""The current facts with which a new one is compared: all that it may concern, and few others."""

from collections.abc import Iterator, Sequence
from itertools import islice, permutations
from math import inf
from pathlib import Path

import pytest

from remanence.facts.current import CurrentFacts
from remanence.facts.relations import contradicts, say_same, score_of_fact_end
from remanence.facts.tags import SAVED, STATEMENTS
from remanence.testing import FixedClock
from remanence.types import Fact

LIVES = sorted(Path("data/facts").glob("*/lives.tsv"))
MANY = 300


def facts(*summaries: str, made_by: str = f"{STATEMENTS}9", prefix: str = "k") -> Sequence[Fact]:
    """Facts of one user, the last of the summaries first."""
    now = FixedClock().now()
    return [
        Fact(
            id=f"{prefix}{number}",
            tenant="default",
            user="ana",
            summary=summary,
            type="profile",
            conversation=prefix,
            first_seq=number,
            made_by=made_by,
            created_at=now,
            valid_from=now,
        )
        for number, summary in reversed(list(enumerate(summaries)))
    ]


@pytest.mark.parametrize("path", LIVES, ids=lambda path: path.parent.name)
def test_each_fact_that_another_repeats_denies_or_ends_is_among_those_it_is_compared_with(
    path: Path,
) -> None:
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    known = facts(*[row[3] for row in rows[::9]])
    shorter = [row[3].rsplit(maxsplit=1)[0] for row in rows[::9]]
    others = (*facts(*shorter, prefix="n"), *facts("I live in Rome.", "It is what it is."))
    current = CurrentFacts(known)

    for fact in (*known, *others):
        same = [one for one in known if say_same(fact, one)]
        denied = [one for one in known if contradicts(fact, one) or contradicts(one, fact)]
        ended = [one for one in known if score_of_fact_end(one, fact) > -inf]
        assert set(map(_id, same)) <= set(map(_id, current.alike(fact)))
        assert set(map(_id, denied)) <= set(map(_id, current.contrary(fact)))
        assert set(map(_id, ended)) <= set(map(_id, current.comparable(fact)))


def _id(fact: Fact) -> str:
    return fact.id


def test_statements_that_differ_in_numbers_alone_are_not_compared() -> None:
    visits = [f"I visited city number {number} last summer." for number in range(MANY)]
    current = CurrentFacts(facts(*visits))
    (new,) = facts("I visited city number 7777 last summer.", prefix="n")

    assert (current.alike(new), current.contrary(new), current.comparable(new)) == ([], [], [])


def test_one_of_many_statements_is_found_by_its_rarest_word() -> None:
    shops = ["".join(letters) for letters in islice(permutations("zkrtxpqvw", 4), MANY)]
    orders = [f"I ordered a parcel from {shop} in Rome." for shop in shops]
    current = CurrentFacts(facts(*orders))
    (new,) = facts(f"I ordered a parcel from {shops[7]} in Rome", prefix="n")

    assert [fact.summary for fact in current.alike(new)] == [orders[7]]


def test_of_facts_that_say_the_same_the_last_written_comes_first() -> None:
    current = CurrentFacts(facts("I keep bees in Rome.", "I keep bees in Rome!", "I play chess."))
    (new,) = facts("I keep bees in Rome", prefix="n")

    assert [fact.id for fact in current.alike(new)] == ["k1", "k0"]


def test_what_a_program_saved_is_compared_with_all_facts_and_ended_ones_with_none() -> None:
    known = facts("I keep bees.", "I live in Rome.", "I play chess.")
    current = CurrentFacts(known)
    (saved,) = facts("Ana moved.", made_by=SAVED, prefix="n")

    current.remove("k1")

    assert [fact.id for fact in current.comparable(saved)] == ["k2", "k0"]
    assert [fact.id for fact in current] == ["k2", "k0"]
    assert current.get("k1") is None


def test_the_facts_to_compare_are_found_without_a_look_at_all() -> None:
    class Watched(CurrentFacts):
        def __iter__(self) -> Iterator[Fact]:
            raise AssertionError("all facts are read")

    current = Watched(facts("I keep bees.", "I live in Rome.", "I play chess."))
    (new,) = facts("I live in Rome", prefix="n")

    assert [fact.id for fact in current.alike(new)] == ["k1"]
    assert [fact.id for fact in current.contrary(new)] == ["k1"]
    assert [fact.id for fact in current.comparable(new)] == ["k1"]
