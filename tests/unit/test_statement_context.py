"""Whether a user states something does not depend on what happened to be said before."""

import pytest

from remanence.observers.learned.features import Line
from remanence.observers.learned.statements import STATED, statement_scores

BEFORE = [
    "You are welcome!",
    "The gate of LH 454 is B42.",
    "A cache keeps what was computed, so that the same work is not done twice.",
]


@pytest.mark.parametrize(
    "text",
    ["Never use emojis in your answers.", "Meine Schwester wohnt in Gent.", "我对花生过敏。"],
)
def test_a_statement_is_the_same_after_any_answer(text: str) -> None:
    alone = statement_scores(Line(text, "user"))

    for before in BEFORE:
        assert statement_scores(Line(text, "user", Line(before, "assistant"))) == alone


@pytest.mark.parametrize("asked", ["Anything else?", "How are you?", "Noch etwas?", "还有别的吗？"])
@pytest.mark.parametrize("text", ["I moved to Oslo.", "Ich arbeite jetzt in Wien.", "我住在杭州。"])
def test_what_is_stated_alone_is_stated_after_any_question(text: str, asked: str) -> None:
    alone = statement_scores(Line(text, "user"))
    after = statement_scores(Line(text, "user", Line(asked, "assistant")))

    assert after[STATED] >= alone[STATED]


def test_what_answers_a_question_is_read_with_it() -> None:
    alone = statement_scores(Line("Two.", "user"))
    asked = Line("How many children do you have?", "assistant")

    assert statement_scores(Line("Two.", "user", asked))[STATED] > alone[STATED]
