import pytest

from remanence.observers.extractive.options import options_of, show

_LIST = """Here is what I found:

1. **The night train** – leaves at nine, arrives in Ljubljana at six
2. The bus by Graz
3. A shared car, if somebody has room

Which of them do you like?"""
_LETTERS = "Zwei Wege:\n\na) die Hecke schneiden\nb) die Hecke ersetzen\n\nWas ist Ihnen lieber?"
_KINDS = "Propuesta A: pintar\nPropuesta B: empapelar\nPropuesta C: dejarlo"
_POINTS = "a. Ist das Zelt dicht?\nb. Wer bringt den Kocher?\nc. Kommt Mirjam mit?"


def _named(asked: str, reply: str) -> list[str]:
    return [option.label for option in options_of(asked).named_in(reply)]


@pytest.mark.parametrize(
    ("asked", "reply", "labels"),
    [
        (_LIST, "2", ["2"]),
        (_LIST, "3!", ["3"]),
        (_LIST, "1 or 3, whatever is cheaper", ["1", "3"]),
        (_LIST, "1 and 3 look best", ["1", "3"]),
        (_LIST, "2 is fine with me", ["2"]),
        (_LIST, "la 3 è perfetta", ["3"]),
        (_LETTERS, "Dann b, bitte", ["b"]),
        (_LETTERS, "B", ["b"]),
        (_LIST, "nur 1 und 3 bitte", ["1", "3"]),
        (_LETTERS, "nur a und b.", ["a", "b"]),
        (_KINDS, "me quedo con la propuesta C", ["C"]),
        (_KINDS, "b, pero en blanco", ["B"]),
        (_POINTS, "a) ja, b) ich, c) weiß ich nicht", ["a", "b", "c"]),
        ("走り方は?\n1. 毎朝\n2. 週末だけ", "2です", ["2"]),
        ("断网时怎么算？a）提示失败；b）有网再发。", "a。不能批错", ["a"]),
        (_KINDS, "la B me gusta pero llueve", ["B"]),
    ],
)
def test_a_reply_names_options_by_their_labels(asked: str, reply: str, labels: list[str]) -> None:
    assert _named(asked, reply) == labels


@pytest.mark.parametrize(
    ("asked", "reply"),
    [
        (_LIST, "We are 3"),
        (_LIST, "2 suitcases and a pram"),
        (_LIST, "2 or 3 times a week"),
        (_LIST, "1, 2 and 3 hours"),
        (_LIST, "They come at 2 or 3."),
        (_LIST, "2 или 3 раза в неделю"),
        (_LIST, "at 2 I have the dentist"),
        (_LIST, "a bus is always late"),
        (_LETTERS, "a friend of mine has a saw"),
        (_LETTERS, "die Nummer 5"),
        (_KINDS, "vitamina C tomo cada día"),
        ("Two dishes:\n1. soup\n2. salad\n\nHow many guests are there?", "2"),
        ("1. The only entry is no choice.", "1"),
        ("3. Not the first\n4. Nor the second", "3"),
        ("No list at all.", "b"),
    ],
)
def test_a_number_or_a_letter_that_is_no_label_names_no_option(asked: str, reply: str) -> None:
    assert _named(asked, reply) == []


def test_the_later_of_two_lists_counts() -> None:
    asked = "Steps so far:\n1. wash\n2. peel\n\nNow choose:\n1. boil\n2. bake"

    assert show(options_of(asked).named_in("2 please")) == "2: bake"


def test_a_quoted_option_is_its_first_sentence_of_bounded_size() -> None:
    asked = f"a) Sell the boat. It needs a new mast.\nb) Keep it {'and repair it ' * 20}"

    assert show(options_of(asked).named_in("a")) == "a: Sell the boat"
    shown = show(options_of(asked).named_in("b"))
    assert shown.startswith("b: Keep it and repair it")
    assert shown.endswith(" …")
    assert len(shown) < 70


def test_options_of_a_long_message_are_read_from_both_its_ends() -> None:
    asked = f"1. mend the roof\n2. leave it\n{'Roofs are old. ' * 5_000}"

    assert show(options_of(asked).named_in("1")) == "1: mend the roof"
