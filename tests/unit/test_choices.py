import pytest

from remanence.observers.extractive.choices import (
    answers_by_number,
    choice_of,
    items_by_number,
    rows_of,
)

_OFFER = "Two ways:\n\n1. **Claim** rows in one statement\n2. Move to a queue\n\n```sql\nSELECT 1\n```\n3. Wait"
_TABLE = "| Packing | Price |\n|---|---|\n| bubble wrap | 0.40 |\n| honeycomb paper | 0.55 |\n"


def test_items_are_known_by_the_number_they_bear_also_after_code() -> None:
    items = items_by_number(_OFFER)

    assert items["1"].startswith("Claim")
    assert items["3"] == "Wait"


def test_rows_of_a_table_are_numbered_below_its_head() -> None:
    assert rows_of(_TABLE) == {"1": "bubble wrap, 0.40", "2": "honeycomb paper, 0.55"}


@pytest.mark.parametrize(
    ("said", "number"),
    [
        ("option 2", "2"),
        ("ok, the second one please", "2"),
        ("third row.", "3"),
        ("B.", "b"),
        ("On part sur l'itinéraire 2.", "2"),
        ("Nehmen wir die zweite.", "2"),
        ("la segunda entonces", "2"),
        ("2번으로 할게", "2"),
        ("方案2", "2"),
    ],
)
def test_a_choice_is_told_by_number_letter_or_place(said: str, number: str) -> None:
    assert choice_of(said) == number


@pytest.mark.parametrize("said", ["I have 2 cats", "The second wave came later", "on 3 May"])
def test_a_number_that_counts_something_chooses_nothing(said: str) -> None:
    assert choice_of(said) is None


def test_a_message_may_answer_item_by_item() -> None:
    answers = answers_by_number("1 he wrote, still 50 percent\n2. done\n3 not yet")

    assert [answers[start] for start in ("he w", "done", "not ")] == ["1", "2", "3"]
    assert answers_by_number("1 또 전화했어. 2 답이 없고. 3 보류.")["답이 없"] == "2"


def test_numbers_that_do_not_count_up_from_one_answer_nothing() -> None:
    assert answers_by_number("3 times in 90 runs. 2 of them at night.") == {}
