import pytest
from hypothesis import given, strategies as st

from remanence.observing.extractive.cues import all_cues, cue_of


@pytest.mark.parametrize("name", all_cues().patterns)
@given(data=st.data())
def test_what_a_pattern_needs_stands_in_all_that_it_matches(name: str, data: st.DataObject) -> None:
    pattern = all_cues().patterns[name]
    text = data.draw(st.from_regex(pattern.regex))

    assert pattern.is_in(text)


def test_a_cue_is_found_whatever_the_case_and_the_apostrophe() -> None:
    plain = cue_of("let's take the blue one", [], is_question=False)

    assert plain.tag == "Decision"
    assert cue_of("LET’S TAKE THE BLUE ONE", [], is_question=False) == plain
