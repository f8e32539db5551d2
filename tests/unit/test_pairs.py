"""Scores of pairs of statements: that the later one ends the earlier one."""

from math import inf

import pytest
from hypothesis import given, strategies as st

from remanence.observers.learned.pairs import pair_features, score_of_end


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("The choir rehearses on Tuesdays.", "The choir no longer rehearses on Tuesdays."),
        (
            "Der Elternabend ist am 21. November.",
            "Der Elternabend ist nicht mehr am 21. November, sondern am 28.",
        ),
        ("Tomo 50 mg de losartán.", "Ahora tomo 100 mg de losartán."),
        ("会议在上午九点。", "会议改到上午十点了。"),
    ],
)
def test_a_change_scores_higher_than_another_statement_about_the_same(
    earlier: str, later: str
) -> None:
    assert score_of_end(earlier, later) > max(
        score_of_end(earlier, other)
        for other in (f"My sister told me: {earlier}", earlier, f"Good morning! {earlier}")
    )


def test_what_shares_no_part_of_a_word_ends_nothing() -> None:
    assert score_of_end("I keep bees.", "The ferry was late.") == -inf
    assert pair_features("I keep bees.", "The ferry was late.") == ()


def test_words_of_content_are_no_features() -> None:
    groups = pair_features("I sold the quixot to Zyla.", "I kept the quixot, not Zyla.")

    assert groups
    assert not [name for group in groups for name in group if "quixot" in name or "zyla" in name]


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_two_texts_have_a_score(earlier: str, later: str) -> None:
    assert score_of_end(earlier, later) < inf
