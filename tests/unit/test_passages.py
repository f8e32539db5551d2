"""Passages of earlier messages that a turn asks about."""

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from types import CodeType

import pytest
from hypothesis import given, strategies as st

from remanence.observers.extractive.sentences import sentences
from remanence.recall.passages import (
    PASSAGE_CHARACTERS,
    Quote,
    near_quotes,
    outstanding,
    quotes,
    render_quotes,
)
from remanence.recall.questions import distinctive_words, question_of
from remanence.types import Hit


def hit(text: str) -> Hit:
    return Hit(
        kind="message", text=text, first_seq=1, last_seq=1, at=None, score=0.0, source_id="m"
    )


def numbered(seq: int, text: str) -> Hit:
    return replace(hit(text), first_seq=seq, last_seq=seq, source_id=f"m{seq}")


def test_a_word_longer_than_a_passage_is_found() -> None:
    word = "a1" * PASSAGE_CHARACTERS

    (quote,) = quotes([hit(f"The checksum is {word}, as agreed.")], word)

    assert quote.text.startswith("The checksum is a1a1")


@pytest.mark.parametrize(
    ("question", "words", "said"),
    [
        ("मेरी बेटी का नाम क्या है?", "बेटी नाम", "मेरी बेटी का नाम मीरा है।"),
        ("ছুটি কবে?", "ছুটি কবে", "আমার ছুটি সোমবার।"),
        ("கவிதாவின் பூனை?", "கவிதாவின் பூனை", "கவிதாவின் பூனை மாம்பழம்."),
        ("අම්මා ශ්‍රී?", "අම්මා ශ්‍රී", "අම්මා ශ්‍රී ලංකාවේ."),
        ("Phở đa\u0302u?", "Phở đa\u0302u", "Phở đa\u0302u?"),
    ],
)
def test_the_marks_of_a_word_do_not_divide_it(question: str, words: str, said: str) -> None:
    assert distinctive_words(question) == words
    assert [quote.text for quote in quotes([hit(said)], words)] == [said]


@pytest.mark.parametrize(
    ("said", "query"),
    [
        ("Ёлка стоит", "елка"),
        ("Mi café favorito", "cafe"),
        ("Η γάτα μου", "ΓΑΤΑ"),
        ("код ＡＢ１２", "AB12"),
        ("الغرفة ٤٥٦", "456"),
    ],
)
def test_a_word_is_quoted_whatever_its_accents_width_and_digits(said: str, query: str) -> None:
    assert [quote.text for quote in quotes([hit(said)], query)] == [said]
    assert [quote.text for quote in quotes([hit(query)], said)] == [query]


def test_the_passage_with_most_of_the_query_is_quoted() -> None:
    text = f"The harbour is cold. {'Nothing was said. ' * 40}Ana mends the harbour lamp on Monday."

    (quote,) = quotes([hit(text)], "Ana harbour lamp")

    assert quote.core == "Ana mends the harbour lamp on Monday."


def test_a_passage_has_its_speaker_and_day() -> None:
    said = replace(hit("I arrive tomorrow."), speaker="Ana", at=datetime(2026, 3, 2, tzinfo=UTC))

    shown = render_quotes(quotes([said], "arrive"), max_tokens=99, count_text=len)

    assert shown == ("I arrive tomorrow. (message 1, Ana, 2026-03-02)",)


def test_facts_and_messages_are_quoted_in_the_order_of_their_days() -> None:
    said = replace(numbered(1, "I park in Rua B."), at=datetime(2024, 3, 1, tzinfo=UTC))
    old, new = (
        Hit(
            kind="fact",
            text=f"I park in Rua {place}.",
            first_seq=seq,
            last_seq=seq,
            at=datetime(year, 3, 1, tzinfo=UTC),
            score=0.0,
            source_id=f"f{seq}",
        )
        for place, seq, year in (("A", 7, 2022), ("C", 0, 2026))
    )

    shown = render_quotes(quotes([new, said, old], "park Rua"), max_tokens=999, count_text=len)

    assert shown == (
        "I park in Rua A. (fact f7, 2022-03-01)",
        "I park in Rua B. (message 1, 2024-03-01)",
        "I park in Rua C. (fact f0, 2026-03-01)",
    )


@pytest.mark.parametrize(
    ("said", "query", "shown"),
    [
        (
            "My aunt Rosa wrote:\n„Hello there. My boat is fine again. I come on Friday. Rosa“",
            "boat",
            "My aunt Rosa wrote: „My boat is fine again. I come on Friday. Rosa“",
        ),
        (
            "My aunt said “I sail every day now. I bought a boat in Turin last week.” Nice, isn't it?",
            "bought boat",
            "My aunt said “I bought a boat in Turin last week.” Nice, isn't it?",
        ),
        (
            "Can you shorten her letter?\n\nDear Vera,\nI bought a boat. I sail every day.\nUlla",
            "boat",
            "Can you shorten her letter? “I bought a boat. I sail every day. Ulla”",
        ),
        (
            "Look at this:\n> I bought a boat last week.\nShould I congratulate her?",
            "boat",
            "Look at this: “> I bought a boat last week.” Should I congratulate her?",
        ),
        (
            "I bought a boat called “Dune”. It's red.",
            "boat",
            "I bought a boat called “Dune”. It's red.",
        ),
    ],
)
def test_a_passage_says_whose_words_it_has(said: str, query: str, shown: str) -> None:
    (line,) = render_quotes(
        quotes([replace(hit(said), role="user")], query), max_tokens=999, count_text=len
    )

    assert line == f"{shown} (message 1)"


@pytest.mark.parametrize("query", ["wifi", "harbour wifi"])
def test_a_passage_in_a_prompt_has_no_secret(query: str) -> None:
    harbour = "The harbour is cold, and the boats stay out. " * 20
    said = f"{harbour}The password of the wifi is sail-4417-boat. {harbour}"
    found = quotes([hit(said)], query)

    for quote in (*found, *near_quotes([hit(said)], query)):
        assert "The password of the wifi is sail-4417-boat" in quote.text
        assert "The password of the wifi is [secret]." in quote.frame()[0]


@pytest.mark.parametrize("lines", [30, 60, 150])
def test_a_passage_that_begins_with_a_secret_does_not_show_it(lines: int) -> None:
    key = " ".join(["bEcYwZ7Q4m2kLs9XtR0vHd5nJ8gF3uPa1oKi6yCeTbVq"] * lines)
    said = f"-----BEGIN PRIVATE KEY----- {key} -----END PRIVATE KEY----- is for the boat."

    (near,) = near_quotes([hit(said)], "boat")
    for quote in (*quotes([hit(said)], "boat"), near):
        assert "bEcY" in quote.text
        assert "bEcY" not in quote.frame()[0]


def test_the_words_before_a_long_quotation_have_no_secret() -> None:
    letter = "I am fine, and the harbour is cold. " * 80
    opening = "My password is sail-4417-boat and with it I read on the old phone that my aunt said:"
    said = f"{opening} “{letter}I have a goat. Bye.”"

    (quote,) = quotes([replace(hit(said), role="user")], "goat")

    assert quote.frame()[1].endswith(
        "[secret] and with it I read on the old phone that my aunt said: “I have a goat. Bye.”"
    )


def test_the_words_before_a_quotation_are_few() -> None:
    said = f"My aunt, {'who lives by the harbour, ' * 9}wrote: “I am fine now. I have a boat and two dogs.”"

    (quote,) = quotes([replace(hit(said), role="user")], "boat")

    assert len(quote.frame()[0]) < len("“I have a boat and two dogs.”") + 90


def test_a_fact_is_quoted_whole_as_its_sentences_say_little_alone() -> None:
    text = (
        "The sawmill is on Calle Mayor. Its phone rings until noon, they said. Call them on Friday."
    )

    (quote,) = quotes([replace(hit(text), kind="fact")], "phone")

    assert quote.core == quote.text == text


def test_the_best_passage_leaves_out_what_follows_it_where_room_is_short() -> None:
    text = "Ana mends the harbour lamp on Monday. The boats stay out for another week."

    shown = render_quotes(quotes([hit(text)], "harbour lamp"), max_tokens=60, count_text=len)

    assert shown == ("Ana mends the harbour lamp on Monday. (message 1)",)


@pytest.mark.parametrize(
    "said",
    [
        "My locker is no. 417 now.",
        "The locker has Nr. 417 as of today.",
        "Locker: fl. 2, door 417.",
    ],
)
def test_a_passage_goes_on_behind_an_abbreviation(said: str) -> None:
    before = "We talked about other things for a while. " * 8
    after = " And then we talked about still other things for a long while." * 8

    (quote,) = quotes(
        [numbered(1, f"{before}{said}{after}")], distinctive_words("Which locker is mine?")
    )

    assert "417" in quote.core
    assert len(quote.core) < 100


@pytest.mark.parametrize(
    "said",
    [
        "Dr. Weber und Prof. Lang kommen am 3. Mai in den Saal.",
        "Wir brauchen z. B. Kabel und inkl. Versand drei Tage Saal.",
        "I met Mrs. Okafor at St. Mary's in the hall at 5 p.m. sharp for the Saal.",
    ],
)
def test_a_passage_is_a_whole_sentence_with_its_abbreviations_and_ordinals(said: str) -> None:
    text = f"Alles war ruhig an diesem Tag. {said} Danach war Schluss mit dem Ganzen. "

    for word in re.findall(r"\w{3,}", said):
        (quote,) = quotes([hit(text)], word)
        assert quote.core == said


def test_a_long_turn_asks_whole_sentences() -> None:
    asked = "Kommt Dr. Weber am 3. Mai?"
    turn = f"Hier ist die Seite. {'Nichts davon ist wichtig. ' * 40}{asked} Sag es mir."

    assert asked in question_of(turn)


def test_the_passage_with_the_rarer_words_comes_first() -> None:
    common = [
        numbered(seq, f"The meeting of group {seq} takes place at noon.") for seq in range(1, 20)
    ]
    rare = numbered(20, "The meeting with Ottoline takes place at four.")

    found = quotes([*common, rare], distinctive_words("When is the meeting with Ottoline?"))

    assert found[0].hit.first_seq == 20


def test_what_holds_little_of_a_question_is_no_answer() -> None:
    other = numbered(1, "The ferry leaves at noon.")
    asked = numbered(2, "Ottoline paid 40 euros for the ferry ticket to Naxos.")

    found = quotes(
        [other, asked], distinctive_words("What did Ottoline pay for the ticket to Naxos?")
    )

    assert [quote.hit.first_seq for quote in found] == [2]


@pytest.mark.parametrize(
    ("question", "answer", "asked"),
    [
        ("Jaki numer ma siodło?", "To siodło 44.", "Jakie masz plany na lato?"),
        ("Combien coûte la selle ?", "Je crois que la selle est à 40 euros.", "Combien de chats ?"),
        ("家賃は何ですか？", "家賃は八万円です。", "趣味は何ですか？"),
    ],
)
def test_an_answer_comes_before_a_question_with_the_same_question_word(
    question: str, answer: str, asked: str
) -> None:
    found = quotes([numbered(1, asked), numbered(2, answer)], distinctive_words(question))

    assert [quote.hit.first_seq for quote in found][:1] == [2]


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("What is my budget now, please?", "budget"),
        ("Wie hoch ist das Budget jetzt?", "hoch Budget"),
        ("¿Dónde vivo ahora?", "vivo"),
        ("When is the dentist appointment in March?", "dentist appointment March"),
        ("Jaki rozmiar ma rower?", "rozmiar rower"),
        ("Combien coûte la selle ?", "coûte selle"),
        ("Сколько стоит седло?", "стоит седло"),
        ("家賃は何円ですか？", "家賃は 円ですか"),
        ("ぶどうは誰のですか？", "ぶどうは のですか"),
        ("房租是多少？", "房租是"),
    ],
)
def test_words_that_an_answer_need_not_have_are_not_looked_for(question: str, words: str) -> None:
    assert distinctive_words(question) == words


def test_hits_by_meaning_stand_out_against_the_others_at_any_scale_unless_they_are_few() -> None:
    distances = [0.5, 0.88, 0.92, *[1.0] * 17]
    for scale in (1.0, 0.2):
        hits = [replace(hit("a"), score=1 - scale * distance) for distance in distances]

        assert outstanding(hits) == hits[:2]
        assert outstanding(hits[3:]) == hits[3:]


def splits_text(work: Callable[[], object]) -> bool:
    """Return whether some text is split into sentences."""
    codes: set[CodeType] = set()
    before = sys.getprofile()
    sys.setprofile(lambda frame, _event, _argument: codes.add(frame.f_code))
    try:
        work()
    finally:
        sys.setprofile(before)
    return sentences.__code__ in codes


def test_passages_are_cut_when_they_are_read_and_remembered() -> None:
    hits = [numbered(n, f"Boat {n} is late. Éva paid for lamp {n}. It rains.") for n in range(99)]
    found: list[Quote] = []

    assert not splits_text(lambda: found.extend(quotes(hits, "boat lamp")))
    assert splits_text(lambda: found[0].text)
    assert not splits_text(lambda: found[0].core)
    assert not splits_text(lambda: quotes(hits[:1], "boat lamp")[0].text)


WORDS = st.sampled_from(["Ana", "lamp.", "harbour", "Éva?", "合同", "42", "paid", "the\n"])
SENTENCES = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)


@given(st.lists(st.lists(SENTENCES, max_size=9).map(" ".join), max_size=9), SENTENCES)
def test_no_two_quotes_have_the_same_text(texts: list[str], query: str) -> None:
    found = quotes([numbered(n, text) for n, text in enumerate([*texts, *texts])], query)

    assert len({quote.text for quote in found}) == len(found)
