"""Whether a user states something does not depend on what happened to be said before."""

import pytest

from remanence.observers.learned.features import Line
from remanence.observers.learned.forgetting import score_of_request
from remanence.observers.learned.statements import statement_scores

BEFORE = [
    "You are welcome!",
    "The gate of LH 454 is B42.",
    "A cache keeps what was computed, so that the same work is not done twice.",
    "Anything else?",
    "Where do you live?",
]


@pytest.mark.parametrize(
    "text",
    ["Never use emojis in your answers.", "Meine Schwester wohnt in Gent.", "我对花生过敏。"],
)
def test_a_statement_is_the_same_after_any_answer_or_question(text: str) -> None:
    alone = statement_scores(Line(text, "user"))

    for before in BEFORE:
        assert statement_scores(Line(text, "user", Line(before, "assistant"))) == alone


REQUESTS = ["Please forget my salary.", "Vergiss bitte, wo ich arbeite.", "忘了我的电话号码吧。"]


@pytest.mark.parametrize("request_", REQUESTS)
@pytest.mark.parametrize("asked", ["Anything else?", "How can I help?", "还有别的吗？"])
def test_a_request_to_forget_is_one_after_any_question(request_: str, asked: str) -> None:
    assert score_of_request(Line(request_, "user", Line(asked, "assistant"))) >= 0
