"""Texts that share no word may be about the same topic."""

import pytest

from remanence.observers.learned.topics import common_topic, topics
from remanence.recall.search import MIN_TOPIC

SAME = (
    ("Where do I live?", "We moved to Porto in May"),
    ("What's my job?", "I'm a nurse at the county hospital"),
    ("Wo wohne ich?", "Wir sind im Mai nach Leipzig gezogen"),
    ("Quel est mon métier ?", "Je suis infirmière à l'hôpital"),
    ("¿Tengo mascotas?", "Adoptamos un perro del refugio"),
    ("私の仕事は何?", "病院で看護師をしています"),
)
OTHER = "My guitar has a broken string"


@pytest.mark.parametrize(("question", "answer"), SAME)
def test_an_answer_is_nearer_to_its_question_than_another_text(question: str, answer: str) -> None:
    assert common_topic(question, answer) > 2 * common_topic(question, OTHER)


MANY_WORDS = " ".join(
    f"{number:b}".replace("0", "za").replace("1", "bo") for number in range(20_000)
)
OF_ONE_TOPIC = " ".join(f"mortgage{word}" for word in MANY_WORDS.split())


@pytest.mark.parametrize(
    "text", ["", "?!", "🙂", "qqqq zzzz", "Where do I live?", MANY_WORDS, OF_ONE_TOPIC]
)
def test_the_topics_of_any_text_have_a_sum_of_one(text: str) -> None:
    assert sum(topics(text)) == pytest.approx(1)


@pytest.mark.parametrize("text", ["", "🙂", "42"])
def test_a_text_without_letters_has_no_likely_topic(text: str) -> None:
    assert max(topics(text)) < MIN_TOPIC
