"""Passages of earlier messages that a turn asks about."""

from remanence.observing.quotes import PASSAGE_CHARACTERS, quotes
from remanence.types import Hit


def hit(text: str) -> Hit:
    return Hit(
        kind="message", text=text, first_seq=1, last_seq=1, at=None, score=0.0, source_id="m"
    )


def test_a_word_longer_than_a_passage_is_found() -> None:
    word = "a1" * PASSAGE_CHARACTERS

    (quote,) = quotes([hit(f"The checksum is {word}, as agreed.")], word)

    assert quote.text.startswith("The checksum is a1a1")


def test_the_passage_with_most_of_the_query_is_quoted() -> None:
    text = f"The harbour is cold. {'Nothing was said. ' * 40}Ana mends the harbour lamp on Monday."

    (quote,) = quotes([hit(text)], "Ana harbour lamp")

    assert quote.core == "Ana mends the harbour lamp on Monday."
