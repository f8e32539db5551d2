"""Scores of what a user says after a reply: that it gives an earlier statement another value."""

import re
from math import inf

import pytest
from hypothesis import given, strategies as st

from remanence.observers.learned.revisions import revision_features, score_of_revision


@pytest.mark.parametrize(
    ("said", "reply", "revises", "other"),
    [
        ("The class starts at 18:15.", "Enjoy it!", "sorry, 18:45", "yes, I will"),
        ("Ich zahle 40 Euro im Monat.", "Notiert.", "nicht 40, sondern 45", "dreimal die Woche"),
        ("La cena es el 12.", "El 12 está lleno, el 13 no.", "pues el 13", "qué pena"),
        ("会议在9点。", "记下了。", "不是9点，是10点", "谢谢"),
    ],
)
def test_another_value_scores_higher_than_other_words(
    said: str, reply: str, revises: str, other: str
) -> None:
    assert score_of_revision(said, reply, revises) > score_of_revision(said, reply, other)


def test_words_of_content_are_no_features() -> None:
    groups = revision_features("The quixot is at 9.", "Noted, quixot.", "the quixot is at 10")

    assert groups
    assert not [name for group in groups for name in group if "quixot" in name]


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_any_three_texts_have_a_score(said: str, reply: str, words: str) -> None:
    assert -inf <= score_of_revision(said, reply, words) < inf


@pytest.mark.parametrize(
    ("said", "reply", "words"),
    [
        (
            "The deposit is due on 30 September.",
            "Chapter 6 by 31 July then.",
            "And the last thing.",
        ),
        ("Am 9. Mai hat Zosia Kommunion.", "Also am 16. Mai um 10.", "Hör mal, es gibt Neues."),
        ("8月9日から13日にしたいです。", "往路は8月10日ですね。", "次は宿ですね。"),
        ("We apply it on Tuesday.", "Aurora would not solve it.", "I agree, Aurora is out."),
    ],
)
def test_words_without_a_value_give_a_statement_no_other(said: str, reply: str, words: str) -> None:
    assert score_of_revision(said, reply, words) == -inf


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("Meeting at 5: room Alpha.", "Meeting at 6: room Alpha."),
        ("Appointment 10 June: dentist.", "Appointment 12 June: dentist."),
        ("Zahnarzt am 10. Juni: 9 Uhr.", "Zahnarzt am 12. Juni: 9 Uhr."),
    ],
)
def test_another_time_before_a_colon_revises_the_statement(said: str, words: str) -> None:
    assert score_of_revision(said, "Noted.", words) > 0


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("Picture 1: my dog at the lake.", "Picture 4: my dog in the garden."),
        ("Tag 1: 5 km gelaufen.", "Tag 2: 6 km gelaufen."),
        ("第1天：我跑了5公里", "第2天：我跑了6公里"),
        ("Option A: 9 May in Rome.", "Option B: 16 May in Paris."),
    ],
)
def test_the_next_item_of_a_list_revises_none_before_it(said: str, words: str) -> None:
    assert score_of_revision(said, "Nice, thank you!", words) == -inf
    head = re.split("[:：]", said)[0]
    assert score_of_revision(said, "Nice, thank you!", f"{head}: 7") > -inf
