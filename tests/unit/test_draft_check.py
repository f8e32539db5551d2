"""What may stand for its source."""

from dataclasses import replace
from typing import Any

import pytest
from tests.builders import AT

from remanence.errors import ObservationRejected
from remanence.observers.draft_check import check_dates, check_draft, check_values, repetition
from remanence.types import Draft, DroppedLine, Note

DRAFT = Draft(notes=(), made_by="scripted/1")
SEQS = range(1, 31)
PROSE = " ".join(f"word{number}" for number in range(200))


@pytest.mark.req("X-07")
def test_an_answer_that_repeats_itself_is_refused() -> None:
    looping = "\n".join(["- the same thing again"] * 30)
    with pytest.raises(ObservationRejected) as caught:
        check_draft(DRAFT, looping, seqs=SEQS, tokens=150, limit_tokens=300, source_text=PROSE)
    assert caught.value.reason == "degenerate"


@pytest.mark.req("X-07")
def test_notes_of_a_conversation_that_repeats_itself_may_do_so_too() -> None:
    greeting = "are you still there and is everything all right with the pump today"
    source = "\n".join(f"user: {number} {greeting}" for number in range(30))
    notes = "\n".join([f"- {greeting}"] * 10)
    assert repetition(source) > 0.5
    check_draft(DRAFT, notes, seqs=SEQS, tokens=150, limit_tokens=900, source_text=source)


def test_notes_of_a_long_list_may_each_begin_with_its_label() -> None:
    label = "what the pump of the northern house needs before the first frost of the year"
    source = "\n".join([f"{label}:", *(f"- part {number}" for number in range(300))])
    notes = "\n".join(f"- {label}: part {number}" for number in range(300))
    check_draft(DRAFT, notes, seqs=SEQS, tokens=150, limit_tokens=900, source_text=source)


def test_a_truncated_answer_is_refused() -> None:
    draft = replace(DRAFT, complete=False)
    with pytest.raises(ObservationRejected, match="cut off: raise its output limit"):
        check_values(draft)


def test_a_draft_must_name_its_maker() -> None:
    nobody: Any = None
    draft = replace(DRAFT, made_by=nobody)
    with pytest.raises(ObservationRejected, match="made_by=None: name the observer") as caught:
        check_values(draft)
    assert caught.value.reason == "bad_value"


def test_the_notes_of_a_draft_must_be_notes() -> None:
    notes: Any = ({"text": "tea"},)
    draft = replace(DRAFT, notes=notes)
    with pytest.raises(ObservationRejected, match="type is dict: use Note"):
        check_values(draft)


@pytest.mark.parametrize(("first", "last"), [(99, 100), (0, 3), (30, 31), (8, 7)])
def test_a_note_must_name_messages_of_its_source(first: int, last: int) -> None:
    draft = replace(DRAFT, notes=(Note(text="tea", first_seq=first, last_seq=last),))
    with pytest.raises(
        ObservationRejected, match=rf"{first}\.\.{last}.* is 1\.\.30: take"
    ) as caught:
        check_draft(draft, "- tea", seqs=SEQS, tokens=2, limit_tokens=300, source_text=PROSE)
    assert caught.value.reason == "out_of_range"


@pytest.mark.parametrize("text", ["", "one line", PROSE, "a\nb\nc\nd\ne\nf\ng\nh\ni"])
def test_plain_text_does_not_count_as_repetition(text: str) -> None:
    assert repetition(text) == 0.0


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"observed_at": AT.replace(tzinfo=None)}, "observed_at=.* has no time zone"),
        ({"tag": "nope"}, "tag='nope' is unknown: use one of Decision, Preference, Fact"),
        ({"priority": "HIGH"}, "priority='HIGH' is unknown: use one of CRITICAL, IMPORTANT"),
        ({"text": "te\0a"}, "text has a NUL character at position 2: remove it"),
        ({"speaker": "An\0a"}, "speaker has a NUL character"),
        ({"topic": "caf\ud83d"}, "topic has the lone surrogate"),
        ({"text": 5}, "text=5 is not text: use str"),
        ({"text": " "}, "text is empty: leave the note out"),
        ({"first_seq": "1"}, "first_seq='1' is not an int: take the seq of a message"),
        ({"observed_at": "2026-03-02"}, "observed_at='2026-03-02' is not a datetime: take"),
        ({"referenced_at": 5}, "referenced_at=5 is not text: use str"),
    ],
)
def test_a_note_has_only_values_that_can_be_stored_and_recalled(
    changes: dict[str, object], expected: str
) -> None:
    note = replace(Note(text="tea", first_seq=1, last_seq=1), **changes)  # type: ignore[arg-type]  # fields by name
    draft = replace(DRAFT, notes=(note,))
    with pytest.raises(ObservationRejected, match=expected) as caught:
        check_values(draft)
    assert caught.value.reason == "bad_value"


@pytest.mark.parametrize(
    "date",
    ["2024-00", "2024-06-31", "2025-02-29T10:00", "0000", "2024-06\n", "٢٠٢٤-06", "20240617"],
)
def test_the_date_of_an_event_is_one_of_the_calendar(date: str) -> None:
    note = Note(text="tea", first_seq=1, last_seq=1, referenced_at=date)
    with pytest.raises(ObservationRejected, match="is not a date: write it as YYYY-MM-DD"):
        check_dates(replace(DRAFT, notes=(note,)))


@pytest.mark.parametrize(
    "date", ["2023", "2023-05", "2023-05-07", "2024-02-29", "2023-05-07T08:30+02:00"]
)
def test_the_date_of_an_event_may_be_coarse(date: str) -> None:
    note = Note(text="tea", first_seq=1, last_seq=1, referenced_at=date)
    check_dates(replace(DRAFT, notes=(note,)))


def test_a_dropped_line_has_only_text_that_can_be_stored() -> None:
    draft = replace(DRAFT, nothing=True, dropped=(DroppedLine(text="te\0a", reason="known"),))
    with pytest.raises(ObservationRejected, match="a dropped line that has a NUL character"):
        check_values(draft)
