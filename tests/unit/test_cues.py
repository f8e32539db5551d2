import pytest
from hypothesis import given, settings, strategies as st

from remanence.observers.extractive.cues import Pattern, all_cues, cue_of, matches

_TABLES = (all_cues().patterns, all_cues().requests, all_cues().conclusions)
_PATTERNS = {pattern for table in _TABLES for patterns in table.values() for pattern in patterns}


@pytest.mark.parametrize("pattern", sorted(_PATTERNS, key=str))
@settings(max_examples=30)
@given(data=st.data())
def test_what_a_pattern_matches_has_one_of_its_words(pattern: Pattern, data: st.DataObject) -> None:
    text = data.draw(st.from_regex(pattern.regex))

    assert any(pattern.name in matches(text, table) for table in _TABLES)


@pytest.mark.parametrize(
    "said",
    [
        "So the Dutch school with the newcomer class.",
        "I want a real Postgres in CI.",
        "En las habitaciones nada de teles.",
        "Die Arbeitsplatte bleibt aus Schichtstoff.",
        "Alors sans terrasse cette année.",
        "이 세 가지는 확정이에요.",
        "三明治就是了。",
    ],
)
def test_what_is_wanted_or_concluded_is_decided_where_an_agent_hears_it(said: str) -> None:
    assert cue_of(said, [], is_question=False, for_agent=True).tag == "Decision"
    assert cue_of(said, [], is_question=False).tag != "Decision"


def test_a_cue_is_found_whatever_the_case_and_the_apostrophe() -> None:
    plain = cue_of("let's take the blue one", [], is_question=False)

    assert plain.tag == "Decision"
    assert cue_of("LET’S TAKE THE BLUE ONE", [], is_question=False) == plain


@pytest.mark.parametrize(
    "said",
    [
        "we haven't decided yet",
        "i'm not going with the first option",
        "it wasn't fixed",
        "bookings older than a day cannot be cancelled",
        "keep the reservation as it is",
        "如果我决定了，我会告诉你",
    ],
)
def test_what_is_denied_or_conditional_is_neither_decided_nor_done(said: str) -> None:
    cue = cue_of(said, said.rstrip(".").split(), is_question=False)

    assert cue.tag not in ("Decision", "Outcome")


def test_tests_of_which_one_failed_are_an_issue() -> None:
    assert cue_of("1 failed, 45 passed in 3.87s", [], is_question=False).tag == "Issue"
    assert cue_of("45 passed, 0 failed", [], is_question=False).tag == "Outcome"
