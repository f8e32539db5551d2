"""A line of a model reaches its note byte for byte, and a note its line."""

from datetime import UTC, datetime
from typing import get_args

from hypothesis import given, strategies as st

from remanence.notes import usual_priority
from remanence.notes.redact import redact
from remanence.observers.llm.lines import Origin, format_line, read_lines
from remanence.types import Note, Priority, Tag

_AT = datetime(2026, 5, 8, 13, 56, tzinfo=UTC)
_ORIGIN = Origin(
    first_seq=1,
    last_seq=9,
    times=dict.fromkeys(range(1, 10), _AT),
    speakers={"ana": "Ana", "user": "user"},
    spoken=[(1, 9, "Ana"), (1, 9, "user")],
)
_LOOKALIKES = (
    *(
        "DTW-PHX (175) and DTW-LGA (99)",
        "opens 09:00. All day",
        "by 2026-04-30. Next week",
        "a – b",
    ),
    *(
        "[Decision] x",
        "[NOTE Fact] x",
        "(issue) x",
        "IMPORTANT (Fact) x",
        "NOTE that",
        "Decision: x",
    ),
    *(
        "#2 is fixed",
        "#123 is open",
        "{#2} x",
        "(#3) x",
        "[#4] x",
        "see (#5)",
        "x {#6}",
        "- x",
        "1. x",
    ),
    *(
        "[2026-05-08 13:56] x",
        "2026-05-08 13:56 x",
        "[2026-07-01] trip",
        "**bold** x",
        "## x",
        "a:b",
    ),
    *(
        "Ana / flat: x",
        "Ana (was: x",
        "Ben: x",
        "a  b\tc",
        "été\u2028x",
        "x\x0by",
        "`a - b`",
        "x #1-2 y",
    ),
)
_TEXTS = (
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0"), max_size=60)
    | st.lists(st.sampled_from(_LOOKALIKES), min_size=1, max_size=3).map(" ".join)
).map(str.strip)
_LINES = _TEXTS.filter(lambda text: text and redact(text) == text)


def _read(line: str) -> Note:
    (note,) = read_lines(line, _ORIGIN).notes
    return note


def _whole(note: Note) -> str:
    """All that a note says, in the order of its line."""
    who = f"{note.speaker}: " if note.speaker else ""
    was = f" (was: {note.supersedes})" if note.supersedes else ""
    return f"{who}{note.text}{was}"


@given(_LINES.filter(lambda text: not text.casefold().startswith(("ana", "user", "*"))))
def test_the_text_behind_a_full_head_is_not_changed(text: str) -> None:
    assert _whole(_read(f"#3-5 [NOTE Fact] {text}")) == text
    assert _whole(_read(f"- #3 [CRITICAL Decision] Ana: {text}")) == f"Ana: {text}"


@given(
    st.builds(
        Note,
        text=_LINES,
        first_seq=st.integers(1, 5),
        last_seq=st.integers(5, 9),
        observed_at=st.just(_AT),
        priority=st.sampled_from(get_args(Priority)),
        tag=st.sampled_from(get_args(Tag)),
        speaker=st.sampled_from([None, "Ana", "user"]),
        supersedes=st.sampled_from([None, "7pm", "by 09:00. All"]),
    )
)
def test_a_note_that_is_written_as_a_line_is_read_as_the_same_note(note: Note) -> None:
    read = _read(format_line(note))

    assert _whole(read) == _whole(note)
    assert (read.first_seq, read.last_seq) == (note.first_seq, note.last_seq)
    assert (read.priority, read.tag) == (note.priority, note.tag)


@given(st.lists(_LINES, min_size=1, max_size=5, unique=True), st.sampled_from(get_args(Tag)))
def test_each_line_of_an_answer_becomes_a_note_or_is_listed_as_dropped(
    texts: list[str], tag: Tag
) -> None:
    answer = "\n".join(f"#{n} [{usual_priority(tag)} {tag}] {t}" for n, t in enumerate(texts, 1))
    read = read_lines(answer, _ORIGIN)
    found = [_whole(note) for note in read.notes] + [line.text for line in read.dropped]

    assert sorted(found) == sorted(texts)


@given(st.text())
def test_any_answer_can_be_read(text: str) -> None:
    for note in read_lines(text, _ORIGIN).notes:
        assert note.text
        assert "\n" not in note.text
        assert 1 <= note.first_seq <= note.last_seq <= 9
