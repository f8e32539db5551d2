from datetime import UTC, datetime
from typing import get_args

from hypothesis import given, strategies as st

from remanence.observing.notes import one_line, parse_notes, render_notes
from remanence.types import Note, NoteFormat, Priority, Tag

_line = st.text(max_size=60).map(one_line).filter(bool)
_label = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=12) | st.sampled_from(
    ["Ana Lima", "get_user", "a / b", "Dr. Ö: x"]
)
_notes = st.lists(
    st.builds(
        Note,
        text=_line,
        first_seq=st.just(3),
        last_seq=st.just(7),
        observed_at=st.none()
        | st.dates().map(lambda d: datetime(d.year, d.month, d.day, tzinfo=UTC)),
        priority=st.sampled_from(get_args(Priority)),
        tag=st.sampled_from(get_args(Tag)),
        speaker=st.none() | _label,
        topic=st.none() | _label.filter(lambda label: " / " not in label),
        supersedes=st.none() | st.sampled_from(["7pm", "MySQL 5"]),
    ),
    max_size=8,
)
_formats = st.sampled_from(get_args(NoteFormat))


@given(_notes)
def test_compact_parses_back_to_exactly_the_notes_it_shows(notes: list[Note]) -> None:
    text = render_notes(notes, "compact")
    assert list(parse_notes(text, "compact", first_seq=3, last_seq=7)) == notes


@given(_notes, _formats)
def test_the_bytes_of_a_notes_text_are_never_altered(
    notes: list[Note], note_format: NoteFormat
) -> None:
    rendered = render_notes(notes, note_format)
    assert all(note.text in rendered for note in notes)


@given(st.text(), _formats)
def test_any_text_can_be_parsed(text: str, note_format: NoteFormat) -> None:
    parsed = parse_notes(text, note_format, first_seq=1, last_seq=1)
    assert all("\n" not in note.text for note in parsed)
