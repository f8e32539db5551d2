import re
from itertools import accumulate

import pytest
from hypothesis import given, strategies as st

from remanence.notes.excerpts import beginning, both_ends, ending, fair_share, parts
from remanence.observers.extractive.sentences import sentences
from remanence.recall.snippets import snippet

_VALUES = ("2024-05-17", "1,250.00", "/etc/trip/plan.toml", "QF-7781", "ana@example.com", "13:56")
_TEXT = " ".join(_VALUES * 4)


def test_a_cut_makes_no_false_value() -> None:
    words = set(_VALUES)

    for characters in range(20, len(_TEXT)):
        assert set(beginning(_TEXT, characters).split()) <= words, characters
        assert set(ending(_TEXT, characters).split()) <= words, characters
        assert set(both_ends(_TEXT, characters + 20).split()) <= words, characters
        assert all(set(part.split()) <= words for part in parts(_TEXT, characters)), characters


_CHARACTERS = (
    "ถั่",
    "ณ្តែ",
    "ক্\u200d",
    "ที่",
    "e\u0302\u0323",
    "👩\u200d👩\u200d👧",
    "👍🏽",
    "🇩🇪",
    "🇯🇵",
    "❤\ufe0f",
)
_WRITTEN = (*_CHARACTERS, "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f")


@pytest.mark.parametrize("characters", range(1, 60))
def test_no_cut_is_within_a_visible_character(characters: int) -> None:
    text = "".join(_WRITTEN * 6)
    cuts = {len("".join((_WRITTEN * 6)[:number])) for number in range(6 * len(_WRITTEN) + 1)}
    begun, ended = beginning(text, characters + 8), ending(text, characters + 8)

    assert len(begun.rstrip("…")) in cuts
    assert len(text) - len(ended.lstrip("…")) in cuts
    ends = accumulate(map(len, parts(text, characters + 8)))
    assert cuts.issuperset(ends)
    said = next(sentences("ที่" * 400))
    assert said.end % len("ที่") == 0
    cut = snippet(text, "👍🏽", characters=characters + 8).strip("… ")
    assert text.find(cut) in cuts
    assert any(text.startswith(cut, at) and at + len(cut) in cuts for at in cuts)


@pytest.mark.parametrize("characters", [1, 2, 7])
def test_parts_of_a_run_of_marks_are_the_whole_text(characters: int) -> None:
    text = "e" + "\u0301" * 99
    assert "".join(parts(text, characters)) == text


def test_a_long_text_has_both_ends_on_lines_of_their_own() -> None:
    text = f"first {'and ' * 90}last"

    assert both_ends(text, len(text)) == text
    assert both_ends(text, 20) == "first and\nand last"


def test_a_text_that_fits_exactly_is_not_cut() -> None:
    assert beginning("gate B42", 8) == ending("gate B42", 8) == "gate B42"
    assert list(parts("gate B42", 8)) == ["gate B42"]


def test_a_value_too_long_to_be_left_out_shows_that_it_was_cut() -> None:
    blob = "a1B2" * 500

    assert beginning(blob, 100) == f"{blob[:100]}…"
    assert ending(blob, 100) == f"…{blob[-100:]}"


def test_a_script_without_spaces_is_cut_between_its_characters() -> None:
    text = "会议改到三月8日下午" * 20

    assert len(beginning(text, 100)) > 90
    assert not re.search(r"[三8]$", beginning(text, 47))


@pytest.mark.parametrize("whole", ["か\u3099", "가\u302e", "ｶﾞ", "👍🏽", "人々"])
def test_a_character_is_not_cut_from_what_changes_it(whole: str) -> None:
    text = whole * 20

    for characters in range(11, 31):
        assert len(beginning(text, characters)) % 2 == 0
        assert len(ending(text, characters)) % 2 == 0
        assert all(len(part) % 2 == 0 for part in parts(text, characters))


@given(st.text(), st.integers(1, 50))
def test_the_parts_of_a_text_are_all_of_it(text: str, characters: int) -> None:
    found = list(parts(text, characters))

    assert "".join(found) == text
    assert all(0 < len(part) <= characters for part in found)


@given(st.text(), st.integers(1, 50))
def test_beginnings_and_ends_stand_in_the_text_and_are_no_longer_than_asked(
    text: str, characters: int
) -> None:
    head, tail = beginning(text, characters), ending(text, characters)

    assert text.startswith((head, head.removesuffix("…")))
    assert text.endswith((tail, tail.removeprefix("…")))
    assert max(len(head), len(tail)) <= characters + 1


@given(st.lists(st.integers(0, 100)), st.integers(0, 1_000))
def test_a_fair_share_cuts_the_largest_alone_and_uses_the_room(sizes: list[int], room: int) -> None:
    share = fair_share(sizes, room)

    if sum(sizes) <= room:
        assert share == max(sizes, default=0)
    else:
        assert sum(min(size, share) for size in sizes) <= room
        assert sum(min(size, share + 1) for size in sizes) > room
