from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from tests.builders import observe_request

from remanence.languages.vocabulary import NO_VOCABULARY, vocabulary
from remanence.notes import render_notes
from remanence.observers.extractive.observer import extract
from remanence.pacing import at_once
from remanence.types import Message, Note

_START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def _notes(*messages: Message, tokens: int = 1_000) -> Sequence[Note]:
    return at_once(extract(observe_request(*messages, target_tokens=tokens)))


def _text(*messages: Message, tokens: int = 1_000) -> str:
    return render_notes(_notes(*messages, tokens=tokens), "compact")


def test_what_was_asked_hours_ago_is_no_topic_any_more() -> None:
    messages = (
        Message.user("Which sofa should we buy?"),
        Message.assistant("The grey one."),
        *(Message.user("Nice weather here in Tartu.") for _ in range(200)),
        Message.user("Postponed to May."),
    )
    assert "sofa should" not in _text(*messages).split("\n")[-1]


@pytest.mark.parametrize(
    "said",
    ["I'll keep you posted!", "Let's keep it up!", "I'll take it slow.", "See how it turns out."],
)
def test_a_kind_word_decides_nothing(said: str) -> None:
    assert all(note.tag != "Decision" for note in _notes(Message.user(said)))


def test_what_no_one_takes_up_of_an_agent_s_list_gives_way_to_what_users_say() -> None:
    rows = "\n".join(f"| model {n} | {n * 7} kg | {n * 110} € |" for n in range(1, 12))
    text = _text(
        Message.assistant(f"| Model | Weight | Price |\n|---|---|---|\n{rows}"),
        Message.user("There is a dent in the side panel."),
        tokens=30,
    )
    assert "dent" in text


def test_a_short_message_is_in_the_language_its_speaker_speaks() -> None:
    long = "Wir haben gestern lange über die neue Küche gesprochen und wollen sie im Mai bestellen."
    text = _text(
        Message.user(long, name="Eva"),
        Message.user("Ja.", name="Jan"),
        Message.user("Die Kork-Platten in Oslo.", name="Eva"),
    )

    assert "Kork-Platten" in text
    assert "Die Kork" not in text


def test_sentences_that_begin_small_are_cut_too() -> None:
    said = "I want to. put me in the small stand, I'll pay tonight. then we see Tilly in Leeds."
    sources = {note.text for note in _notes(Message.user(said))}

    assert not any("want" in text and "Leeds" in text for text in sources)


def test_a_word_denies_in_its_own_language_alone() -> None:
    assert not vocabulary("de").denies(["am", "5.", "mai"])
    assert vocabulary("it").denies(["mai", "più"])
    assert not vocabulary("pt").denies(["estou", "no", "porto"])
    assert NO_VOCABULARY.denies(["nie", "mehr"])


def test_a_denial_in_few_words_still_denies() -> None:
    assert "VAT" in _text(Message.user("Until then no VAT."))
