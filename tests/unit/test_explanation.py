from tests.builders import numbered

from remanence import Memory
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


async def test_the_sentences_that_are_taken_are_those_of_the_notes_of_one_stretch() -> None:
    said = [
        Message.user(f"My room {number} in Oslo costs 1{number} euros.") for number in range(40)
    ]
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("a")
        await chat.append(*said)
        await chat.flush(everything=True)
        (segment,) = await chat.observations()
        tape = await chat.messages()

    taken = [one.seq for one in explain(tape) if one.is_taken]
    assert taken == [note.last_seq for note in segment.notes]
