"""Scores of pairs of facts: that the later one ends the earlier one."""

from math import inf

import pytest
from hypothesis import given, strategies as st

from remanence.facts import merge_facts
from remanence.facts.tags import SAVED
from remanence.observers.learned.fact_pairs import fact_features, score_of_facts
from remanence.testing import FixedClock
from remanence.types import FactChanges, FactDraft, Owner

ANA = Owner("default", "ana")


def save(*summaries: str) -> FactChanges:
    """Merge facts that a program saves, one after the other."""
    drafts = [FactDraft(summary=summary) for summary in summaries]
    return merge_facts(drafts, (), owner=ANA, source=None, made_by=SAVED, clock=FixedClock())


def current(changes: FactChanges) -> list[str]:
    return [fact.summary for fact in changes.facts if fact.id not in changes.replaced]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Works at Siemens", "Works at Bosch"),
        ("User works at Quellwerk", "User works at Obermühl"),
        ("User's favorite color is blue", "User's favorite color is green"),
        ("favorite color: blue", "favorite color: green"),
        ("Is 31 years old", "Is 32 years old"),
        ("User's phone number is 555 1234", "User's phone number is 555 9876"),
        ("User is vegetarian", "User is no longer vegetarian"),
        ("Is married to Tom", "Divorced from Tom"),
        ("Prefers window seats", "Prefers aisle seats"),
        ("Arbeitet bei Quellwerk", "Arbeitet bei Obermühl"),
        ("Lieblingsfarbe: blau", "Lieblingsfarbe: grün"),
        ("El presupuesto es de 800 euros", "El presupuesto es de 900 euros"),
        ("好きな色：青", "好きな色：赤"),
    ],
)
def test_another_value_of_a_saved_fact_takes_its_place(old: str, new: str) -> None:
    assert current(save(old, new)) == [new]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Likes jazz", "Likes rock"),
        ("Is allergic to nuts", "Is allergic to kiwis"),
        ("Has a cat named Tom", "Has a dog named Rex"),
        ("Sister lives in Rome", "Lives in Milan"),
        ("Flight on May 3", "Hotel on May 3"),
        ("User's favorite color is blue", "User's favorite food is sushi"),
        ("Ana paints the boat red", "Ana has a green door"),
        ("Keeps bees in garden 3", "Keeps bees in garden 4"),
        ("Mag Jazz", "Mag Rock"),
        ("Spricht Polnisch", "Spricht Italienisch"),
        ("Es alérgico al polen", "Es alérgico al látex"),
        ("ジャズが好き", "ロックが好き"),
    ],
)
def test_saved_facts_that_both_hold_stand_side_by_side(old: str, new: str) -> None:
    assert current(save(old, new)) == [old, new]


def test_the_names_of_two_values_have_no_part_in_their_score() -> None:
    groups = fact_features("Works at Quixot", "Works at Zyla")

    assert groups
    assert not [n for group in groups for n in group if "quix" in n or "zyla" in n]


def test_saved_facts_that_share_no_part_of_a_word_have_no_score() -> None:
    assert score_of_facts("Keeps bees", "Ferry was late") == -inf


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_two_saved_texts_have_a_score(earlier: str, later: str) -> None:
    assert score_of_facts(earlier, later) < inf
