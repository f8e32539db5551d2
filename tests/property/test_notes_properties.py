"""Rendering and parsing are inverse over what a format shows, and a text is never changed."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from typing import get_args

from hypothesis import example, given, strategies as st

from remanence.notes import one_line, parse_notes, render_notes
from remanence.types import Note, NoteFormat, Priority, Tag

_LOOKALIKES = (
    *("", " ", "\n", "\t", "\\", "\\\\", "a\n\nb\n", "\n\ta", "a\r\nb", "  indented", "end "),
    *("- item", "* item", "• item", "1. item", "12) item", "DTW-PHX (175) and more", "09:00. All"),
    *("2026-05-08", "2026-05-08: moved", "## 2026-05-08", "**2026-05-08**", "undated", "## flat"),
    *("[2026-05-08 13:56] CRITICAL x", "[Decision] x", "[decision] x", "[Fact]", "NOTE x", "NOTE"),
    *("!! x", "! x", "~ x", "{#2} x", "#12-14 x", "Ana:", "Ana / move:", "Ana: x", "\\Ana:"),
    *("left (was: here)", "left (was: )", "x (was: y", "(was: y)", " (was: ) (was: "),
    *("급한 메모: 3월 8일", "été – œuvre", "日本語。\u2028次", "😀 1,250 €", "a\x0bb\x85c\x1cd"),
)
_text = st.text(max_size=60) | st.sampled_from(_LOOKALIKES)
_pieces = st.lists(_text, min_size=1, max_size=3).map("".join)
_texts = _text | _pieces
_label = (_pieces | st.sampled_from(["a / b", "/", "\\/ x", "a /", "Dr. Ö: x", "x" * 90])).map(
    one_line
)
_offsets = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
_times = st.builds(
    datetime.combine,
    st.dates(date(2, 1, 1), date(9998, 1, 1)),
    st.times(),
    _offsets,
)
_notes = st.lists(
    st.builds(
        Note,
        text=_texts,
        first_seq=st.just(3),
        last_seq=st.just(7),
        observed_at=st.none() | _times,
        priority=st.sampled_from(get_args(Priority)),
        tag=st.sampled_from(get_args(Tag)),
        speaker=st.none() | _label,
        topic=st.none() | _label,
        supersedes=st.none() | _texts,
    ),
    max_size=8,
)
_formats = st.sampled_from(get_args(NoteFormat))


def _shown(note: Note, note_format: NoteFormat) -> Note:
    """What a format shows of a note: each leaves something out, none the text.

    A day or minute has no offset. Below a speaker's heading the text stands alone; in the formats
    without such headings speaker and topic are part of the line's text. An empty label is none.
    """
    at = note.observed_at.replace(tzinfo=UTC, second=0, microsecond=0) if note.observed_at else None
    day = at.replace(hour=0, minute=0) if at else None
    base = replace(note, supersedes=note.supersedes or None)
    if note_format == "compact":
        return replace(
            base, observed_at=day, speaker=note.speaker or None, topic=note.topic or None
        )
    labels = " / ".join(label for label in (note.speaker, note.topic) if label)
    said = f"{labels}: {note.text}" if labels else note.text
    base = replace(base, text=said, speaker=None, topic=None)
    match note_format:
        case "dated_priority":
            return replace(base, observed_at=at, tag="Fact")
        case "tagged":
            return replace(base, observed_at=day, priority="NOTE")
        case "prose":
            return replace(base, observed_at=day, priority="NOTE", tag="Fact")


@given(_notes, _formats)
@example([Note(text="2026-05-08", first_seq=3, last_seq=7)], "prose")
@example([Note(text="[FACT]", first_seq=3, last_seq=7, supersedes="0")], "compact")
@example([Note(text="a", first_seq=3, last_seq=7, speaker="- x", topic="2026-05-08")], "compact")
@example([Note(text="x (was: y)", first_seq=3, last_seq=7, supersedes="(was: b) (was")], "tagged")
def test_each_format_parses_back_to_exactly_what_it_shows(
    notes: list[Note], note_format: NoteFormat
) -> None:
    text = render_notes(notes, note_format)
    parsed = parse_notes(text, note_format, first_seq=3, last_seq=7)
    assert list(parsed) == [_shown(note, note_format) for note in notes]


@given(st.lists(_texts, max_size=8), _formats)
def test_any_texts_come_back_from_any_format_byte_for_byte(
    texts: list[str], note_format: NoteFormat
) -> None:
    notes = [Note(text=text, first_seq=3, last_seq=7) for text in texts]
    parsed = parse_notes(render_notes(notes, note_format), note_format, first_seq=3, last_seq=7)
    assert [note.text for note in parsed] == texts


@given(_notes, _formats)
def test_the_bytes_of_a_line_are_never_altered(notes: list[Note], note_format: NoteFormat) -> None:
    rendered = render_notes(notes, note_format)
    assert all(line in rendered for note in notes for line in note.text.split("\n"))


@given(st.text(), _formats)
def test_any_text_can_be_parsed_and_what_was_parsed_renders_to_a_text_that_parses_alike(
    text: str, note_format: NoteFormat
) -> None:
    parsed = parse_notes(text, note_format, first_seq=1, last_seq=1)
    again = parse_notes(render_notes(parsed, note_format), note_format, first_seq=1, last_seq=1)
    assert again == parsed


@given(_formats)
def test_a_plain_note_needs_no_escape(note_format: NoteFormat) -> None:
    note = Note(
        text="rent is 1,250 EUR, due 2026-06-01 (see /tmp/a.txt): pay by card #3",
        first_seq=1,
        last_seq=1,
        observed_at=datetime(2026, 5, 8, tzinfo=UTC),
        speaker="Ana Lima",
        topic="flat",
    )
    assert "\\" not in render_notes([note], note_format)
