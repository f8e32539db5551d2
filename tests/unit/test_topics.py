from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from tests.builders import observe_request

from remanence.notes import render_notes
from remanence.observers.extractive.observer import extract
from remanence.pacing import at_once
from remanence.types import Message, Note

_START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def _notes(*messages: Message, tokens: int = 1_000) -> Sequence[Note]:
    return at_once(extract(observe_request(*messages, target_tokens=tokens)))


def _text(*messages: Message, tokens: int = 1_000) -> str:
    return render_notes(_notes(*messages, tokens=tokens), "compact")


def test_a_short_decision_is_led_by_the_question_it_settles() -> None:
    text = _text(
        Message.user("Do we need rate limiting in 2.0?"),
        Message.assistant("It is no blocker. A token bucket is about 40 lines."),
        Message.user("ok, postponed to 2.1"),
    )
    assert "[Decision] rate limiting 2.0: postponed to 2.1" in text


def test_a_decision_without_a_word_of_its_own_is_led_by_what_was_told() -> None:
    notes = _notes(
        Message.user("The relay works but latency rose to 1.9 seconds."),
        Message.assistant("The poll interval causes it."),
        Message.user("I'm going back on this."),
    )
    assert any("relay" in note.text and "going back" in note.text for note in notes)


def test_what_was_asked_hours_ago_is_no_topic_any_more() -> None:
    messages = (
        Message.user("Which sofa should we buy?"),
        Message.assistant("The grey one."),
        *(Message.user("Nice weather here in Tartu.") for _ in range(200)),
        Message.user("Postponed to May."),
    )
    assert "sofa should" not in _text(*messages).split("\n")[-1]


def test_a_chosen_item_is_told_in_its_words() -> None:
    notes = _notes(
        Message.assistant("You can:\n1. Wait for the black model\n2. Take the steel one"),
        Message.user("is steel the same price"),
        Message.assistant("It is 20 pounds less."),
        Message.user("option 2"),
    )
    [choice] = [note for note in notes if note.tag == "Decision"]
    assert choice.text == "Take the steel one: option 2"
    assert (choice.first_seq, choice.last_seq) == (1, 4)


def test_answers_by_number_are_led_by_what_they_answer() -> None:
    text = _text(
        Message.assistant("Still open:\n1. Deposit for Olaria\n2. Photographer\n3. Insurance"),
        Message.user("1 he wrote, insists on 50\n2 the college said no\n3 not checked yet"),
    )
    assert "Insurance: 3 not checked yet" in text


@pytest.mark.parametrize(
    "said",
    [
        "We haven't agreed on who writes the page.",
        "The runbook isn't written.",
        "Wir wissen noch nicht, wer die Küche baut.",
        "On verra après la réunion.",
        "Sigo esperando la respuesta del banco.",
        "房东还没回复。",
        "ホテルはまだ決めていない。",
        "관리사무소 답이 아직 없어.",
    ],
)
def test_what_is_open_comes_before_figures_in_any_language(said: str) -> None:
    chatter = [Message.user(f"The {n}th train to Turku had {n + 3} wagons.") for n in range(60)]
    first = _notes(Message.user(said), *chatter, tokens=80)[0]

    assert (first.first_seq, first.tag) == (1, "NextStep")


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
    text = _text(Message.user(long), Message.user("Die Kork-Platten in Oslo."))

    assert "Kork-Platten" in text
    assert "Die Kork" not in text


def test_sentences_that_begin_small_are_cut_too() -> None:
    said = "I want to. put me in the small stand, I'll pay tonight. then we see Tilly in Leeds."
    sources = {note.text for note in _notes(Message.user(said))}

    assert not any("want" in text and "Leeds" in text for text in sources)


def test_a_denial_in_few_words_still_denies() -> None:
    assert "VAT" in _text(Message.user("Until then no VAT."))
