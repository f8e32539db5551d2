from tests.builders import numbered

from remanence.observers.extractive import explain
from remanence.types import Message

_TALK = numbered(
    Message.user("Hello there! I am allergic to penicillin."),
    Message.assistant("Noted. The pharmacy in Turku opens at 8."),
    Message.user("Which pharmacy is that?"),
)


def test_each_sentence_has_its_features_and_whether_it_was_taken() -> None:
    made = explain(_TALK, ratio=1.0)

    assert [(one.seq, one.text) for one in made] == [
        (1, "Hello there!"),
        (1, "I am allergic to penicillin."),
        (2, "Noted."),
        (2, "The pharmacy in Turku opens at 8."),
        (3, "Which pharmacy is that?"),
    ]
    assert {one.text: one.is_taken for one in made}["I am allergic to penicillin."]
    assert "said by the agent" in [factor.feature for factor in made[3].factors]


def test_nothing_is_taken_where_there_is_no_room() -> None:
    assert not any(one.is_taken for one in explain(_TALK, ratio=0.0))


def test_messages_without_a_number_are_numbered_by_their_position() -> None:
    made = explain([Message.user("I live in Porto."), Message.user("I moved from Lisbon.")])
    assert [one.seq for one in made] == [1, 2]
