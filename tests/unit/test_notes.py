from datetime import UTC, datetime

import pytest

from remanence.notes import one_line, parse_notes, render_notes
from remanence.types import Note, NoteFormat

_AT = datetime(2026, 5, 8, 13, 56, tzinfo=UTC)


def _note(text: str, **fields: object) -> Note:
    values: dict[str, object] = {"first_seq": 1, "last_seq": 2, "observed_at": _AT}
    return Note(text=text, **{**values, **fields})  # type: ignore[arg-type]


_NOTES = (
    _note("signed lease May 7", speaker="Ana", topic="move"),
    _note("movers on Friday", speaker="Ana", topic="move", tag="Decision", priority="CRITICAL"),
    _note("cat hates boxes", speaker="Ben", priority="IMPORTANT"),
)


def test_compact_writes_dates_and_speakers_once_and_marks_only_the_unusual() -> None:
    assert render_notes(_NOTES, "compact") == (
        "2026-05-08\n"
        "Ana / move:\n"
        "- signed lease May 7\n"
        "- !! [Decision] movers on Friday\n"
        "Ben:\n"
        "- ! cat hates boxes"
    )


def test_compact_leaves_out_the_usual_priority_of_a_tag() -> None:
    note = _note("use SQLite", tag="Decision", priority="IMPORTANT")
    assert render_notes([note], "compact").endswith("\n- [Decision] use SQLite")


def test_a_superseded_value_stands_behind_the_line() -> None:
    note = _note("dinner at 8pm", supersedes="7pm")
    text = render_notes([note], "compact")
    assert text.endswith("- dinner at 8pm (was: 7pm)")
    assert parse_notes(text, "compact", first_seq=1, last_seq=2)[0].supersedes == "7pm"


def test_dated_priority_writes_the_minute_and_the_priority_on_each_line() -> None:
    assert render_notes(_NOTES[1:], "dated_priority") == (
        "[2026-05-08 13:56] CRITICAL Ana / move: movers on Friday\n"
        "[2026-05-08 13:56] IMPORTANT Ben: cat hates boxes"
    )


def test_tagged_writes_the_tag_on_each_line_below_its_date() -> None:
    assert render_notes(_NOTES[:2], "tagged") == (
        "2026-05-08\n[Fact] Ana / move: signed lease May 7\n[Decision] Ana / move: movers on Friday"
    )


def test_prose_writes_plain_lines_below_their_date() -> None:
    assert render_notes(_NOTES[2:], "prose") == "2026-05-08\nBen: cat hates boxes"


@pytest.mark.parametrize("note_format", ["compact", "dated_priority", "tagged", "prose"])
def test_what_was_parsed_renders_to_the_same_text(note_format: NoteFormat) -> None:
    text = render_notes(_NOTES, note_format)
    parsed = parse_notes(text, note_format, first_seq=1, last_seq=9)
    assert render_notes(parsed, note_format) == text


def test_parsed_notes_have_the_range_of_their_segment() -> None:
    parsed = parse_notes("- a\n- b", "compact", first_seq=4, last_seq=8)
    assert [(note.text, note.first_seq, note.last_seq) for note in parsed] == [
        ("a", 4, 8),
        ("b", 4, 8),
    ]


def test_notes_without_a_date_are_told_from_dated_ones_before_them() -> None:
    text = render_notes([_NOTES[0], _note("no date", observed_at=None)], "compact")
    parsed = parse_notes(text, "compact", first_seq=1, last_seq=2)
    assert [note.observed_at is None for note in parsed] == [False, True]


def test_text_that_looks_like_a_mark_stays_text() -> None:
    notes = [_note("!! [Issue] said the log"), _note("[Fact] x"), _note("left (was: here)")]
    parsed = parse_notes(render_notes(notes, "compact"), "compact", first_seq=1, last_seq=2)
    assert [note.text for note in parsed] == [note.text for note in notes]


def test_a_line_that_is_not_in_the_format_is_kept_as_text() -> None:
    text = "Here is a summary.\n2026-05-08\nAna:\n- moved\nand that was all:"
    parsed = parse_notes(text, "compact", first_seq=1, last_seq=2)
    assert [note.text for note in parsed] == ["Here is a summary.", "moved", "and that was all:"]


def test_markdown_of_a_model_is_read_as_headings_and_items() -> None:
    text = "## 2026-05-08\n* [decision] ship it\n1. tests pass"
    decision, fact = parse_notes(text, "compact", first_seq=1, last_seq=2)
    assert (decision.tag, decision.text, fact.text) == ("Decision", "ship it", "tests pass")
    assert decision.observed_at == datetime(2026, 5, 8, tzinfo=UTC)


def test_an_impossible_date_is_kept_as_text() -> None:
    parsed = parse_notes("[2026-13-45 10:00] CRITICAL x", "dated_priority", first_seq=1, last_seq=1)
    assert parsed[0].text == "[2026-13-45 10:00] CRITICAL x"


def test_white_space_of_a_text_becomes_single_spaces() -> None:
    assert one_line(" a\n\tb\u2028c ") == "a b c"
