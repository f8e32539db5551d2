"""What may stand for its source."""

import pytest

from remanence.errors import ObservationRejected
from remanence.observers.draft_check import check_draft, repetition
from remanence.types import Draft

DRAFT = Draft(notes=(), made_by="scripted/1")
PROSE = " ".join(f"word{number}" for number in range(200))


@pytest.mark.req("X-07")
def test_an_answer_that_repeats_itself_is_refused() -> None:
    looping = "\n".join(["- the same thing again"] * 30)
    with pytest.raises(ObservationRejected) as caught:
        check_draft(DRAFT, looping, tokens=150, limit_tokens=300, source_text=PROSE)
    assert caught.value.reason == "degenerate"


@pytest.mark.req("X-07")
def test_notes_of_a_conversation_that_repeats_itself_may_do_so_too() -> None:
    greeting = "are you still there and is everything all right with the pump today"
    source = "\n".join(f"user: {number} {greeting}" for number in range(30))
    notes = "\n".join([f"- {greeting}"] * 10)
    assert repetition(source) > 0.5
    check_draft(DRAFT, notes, tokens=150, limit_tokens=900, source_text=source)


def test_notes_of_a_long_list_may_each_begin_with_its_label() -> None:
    label = "what the pump of the northern house needs before the first frost of the year"
    source = "\n".join([f"{label}:", *(f"- part {number}" for number in range(300))])
    notes = "\n".join(f"- {label}: part {number}" for number in range(300))
    check_draft(DRAFT, notes, tokens=150, limit_tokens=900, source_text=source)


@pytest.mark.parametrize("text", ["", "one line", PROSE, "a\nb\nc\nd\ne\nf\ng\nh\ni"])
def test_plain_text_does_not_count_as_repetition(text: str) -> None:
    assert repetition(text) == 0.0
