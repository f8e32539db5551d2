import pytest
from hypothesis import given, strategies as st
from tests.builders import count_tokens, observe_request

from remanence.notes import render_notes, usual_priority
from remanence.observers.llm.lines import LineNotes, line_text
from remanence.observers.llm.order import MAX_TOPICS, arrange
from remanence.observers.llm.task import Limits, trim
from remanence.types import Note, Priority, Tag


def _size(notes: tuple[Note, ...] | list[Note]) -> int:
    return count_tokens(render_notes(notes, "compact"))


def _note(text: str, tag: Tag = "Fact", priority: Priority | None = None, seq: int = 1) -> Note:
    return Note(
        text=text,
        first_seq=seq,
        last_seq=seq,
        tag=tag,
        priority=priority or usual_priority(tag),
    )


def _trim(notes: list[Note], limit: int, *, lasting: int = 0, critical: int = 0) -> LineNotes:
    limits = Limits(
        ordinary=limit, lasting=max(limit, lasting), critical=max(limit, lasting, critical)
    )
    made = LineNotes(tuple(notes), ())
    return trim(made, limits, observe_request())


def test_notes_within_their_limit_stay_as_they_are() -> None:
    notes = [_note("b"), _note("a"), _note("b")]

    assert _trim(notes, 100) == LineNotes(tuple(notes), ())


def test_preferences_decisions_and_open_points_outlive_facts_and_outcomes_full_of_values() -> None:
    vegetarian = _note("vegetarian", "Preference")
    early = _note("wants to be there at least three hours before take-off", "Preference")
    question = _note("is the ferry cheaper?", "Issue")
    hotel = _note("goes without the hotel as it is noisy", "Decision")
    values = [
        _note(f"found LH {n}54 at {n}31.50 EUR, see /tmp/f{n}.txt", "Outcome", "IMPORTANT")
        for n in range(10, 40)
    ]
    kept = _trim([vegetarian, *values[:15], early, question, *values[15:], hotel], 120).notes

    assert {vegetarian, early, question, hotel} < set(kept)


def test_an_important_line_outlives_a_background_line_of_its_kind() -> None:
    lines = [_note(f"saw bus M-{n}8 pass by the house", seq=n) for n in range(1, 30)]
    born = _note("Ana was born in Bern", "Fact", "IMPORTANT")

    assert born in _trim([*lines, born], 40).notes


def test_of_equals_the_line_with_exact_values_outlives_the_other() -> None:
    plain = [_note(f"talked about this and that, part {'x' * n}") for n in range(1, 20)]
    exact = _note("ticket is QF-7781, seat 12A, 231.50 EUR")

    assert exact in _trim([*plain, exact], 30).notes


def test_lasting_lines_may_exceed_the_limit_a_little_and_critical_ones_more() -> None:
    decisions = [_note(f"decision number {n} is to go on", "Decision", seq=n) for n in range(1, 21)]
    blocker = _note("blocked " * 20, "Issue", "CRITICAL")
    kept = _trim([*decisions, blocker], 50, lasting=80, critical=400).notes

    assert blocker in kept
    assert 60 < _size(kept) <= 80


def test_critical_lines_fill_no_more_than_their_own_limit() -> None:
    lines = [
        _note(f"decision number {n} is to go on", "Decision", "CRITICAL", n) for n in range(50)
    ]
    kept = _trim(lines, 50, critical=120).notes

    assert 100 < _size(kept) <= 120


def test_a_line_too_long_to_be_stored_does_not_push_out_the_others() -> None:
    huge = _note("blocked " * 200, "Issue", "CRITICAL")
    early, ticket = _note("wants to be early", "Preference"), _note("ticket is QF-7781")
    made = _trim([early, huge, ticket], 50, critical=120)

    assert made.notes == (early, ticket)
    assert [line.reason for line in made.dropped] == ["over_budget"]
    assert _trim([huge], 50).notes == (huge,)


@given(st.lists(st.integers(1, 60), min_size=2, max_size=40), st.integers(10, 200))
def test_what_is_dropped_would_not_have_fitted(lengths: list[int], limit: int) -> None:
    notes = [_note(f"{n} {'word ' * length}", seq=n + 1) for n, length in enumerate(lengths)]
    kept, lines, _ = _trim(notes, limit)
    dropped = [note for note in notes if note not in kept]

    assert list(kept) == [note for note in notes if note in kept]
    assert [line.text for line in lines] == [line_text(note) for note in dropped]
    assert _size(kept) <= limit or len(kept) == 1
    for note in dropped:
        assert _size([*kept, note]) > limit


@pytest.mark.req("Z-48")
def test_lines_of_a_day_are_grouped_and_few_topics_are_shown() -> None:
    notes = [
        Note(text=f"line {n}", first_seq=n, last_seq=n, speaker="Ana", topic=f"topic {n % 8}")
        for n in range(1, 60)
    ]
    rendered = render_notes(arrange(notes, "compact"), "compact")
    headings = [line for line in rendered.splitlines() if not line.startswith("- ")]

    assert len(headings) == MAX_TOPICS + 1
    assert headings[0] == "Ana:"


def test_a_topic_of_one_line_and_an_end_of_a_group_need_no_heading() -> None:
    notes = [
        Note(text="a", first_seq=1, last_seq=1, speaker="Ana", topic="cat"),
        Note(text="b", first_seq=2, last_seq=2),
        Note(text="c", first_seq=3, last_seq=3, speaker="Ben"),
        Note(text="d", first_seq=4, last_seq=4, speaker="Ana"),
    ]

    assert render_notes(arrange(notes, "compact"), "compact") == ("- b\nAna:\n- a\n- d\nBen:\n- c")
