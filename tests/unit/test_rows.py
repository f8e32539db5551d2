import dataclasses
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, strategies as st

from remanence.stores import rows
from remanence.types import (
    Extra,
    FilePart,
    ImagePart,
    Message,
    Note,
    OtherPart,
    Part,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from remanence.wire.parts import DIALECTS

TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
MAYBE = st.none() | TEXT
DIALECT = st.sampled_from(sorted(DIALECTS))
EXTRA = st.none() | st.builds(Extra, dialect=DIALECT, raw=TEXT)
PLAIN_PARTS = st.one_of(
    st.builds(TextPart, text=TEXT, extra=EXTRA),
    st.builds(
        ImagePart,
        media_type=MAYBE,
        data=MAYBE,
        url=MAYBE,
        width=st.none() | st.integers(0, 9_999),
        height=st.none() | st.integers(0, 9_999),
    ),
    st.builds(
        FilePart,
        media_type=MAYBE,
        name=MAYBE,
        data=MAYBE,
        url=MAYBE,
        file_id=MAYBE,
        extra=EXTRA,
    ),
    st.builds(OtherPart, dialect=DIALECT, raw=TEXT, scope=st.sampled_from(["part", "message"])),
)
PARTS = st.one_of(
    PLAIN_PARTS,
    st.builds(ToolCallPart, id=TEXT, name=TEXT, arguments=TEXT, extra=EXTRA),
    st.builds(
        ToolResultPart,
        call_id=TEXT,
        content=st.lists(PLAIN_PARTS, max_size=3).map(tuple),
        is_error=st.booleans(),
    ),
)
ZONES = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
TIMES = st.datetimes(timezones=ZONES).filter(lambda time: 1 < time.year < 9999)
NOTES = st.builds(
    Note,
    text=TEXT,
    first_seq=st.integers(1, 99),
    last_seq=st.integers(1, 99),
    observed_at=st.none() | st.datetimes(timezones=st.just(UTC)),
    referenced_at=MAYBE,
    priority=st.sampled_from(["CRITICAL", "IMPORTANT", "NOTE"]),
    tag=st.sampled_from(["Decision", "Preference", "Fact", "Issue", "NextStep", "Outcome"]),
    speaker=MAYBE,
    topic=MAYBE,
    supersedes=MAYBE,
)


@given(st.lists(PARTS, max_size=5).map(tuple))
def test_content_survives_its_encoding(content: tuple[Part, ...]) -> None:
    assert rows.decode_content(rows.encode_content(content)) == content


@given(st.lists(PARTS, max_size=3).map(tuple), st.lists(PARTS, max_size=3).map(tuple))
def test_contents_are_equal_if_and_only_if_their_encodings_are(
    one: tuple[Part, ...], other: tuple[Part, ...]
) -> None:
    assert (rows.encode_content(one) == rows.encode_content(other)) == (one == other)


@given(st.lists(NOTES, max_size=4).map(tuple))
def test_notes_survive_their_encoding(notes: tuple[Note, ...]) -> None:
    assert rows.decode_notes(rows.encode_notes(notes)) == notes


def test_every_field_of_a_note_is_encoded() -> None:
    changed = {
        "text": "t",
        "first_seq": 1,
        "last_seq": 2,
        "observed_at": datetime(2024, 1, 1, tzinfo=UTC),
        "referenced_at": "2024",
        "priority": "CRITICAL",
        "tag": "Issue",
        "speaker": "s",
        "topic": "p",
        "supersedes": "o",
    }
    assert set(changed) == {field.name for field in dataclasses.fields(Note)}
    note = Note(**changed)  # type: ignore[arg-type]  # fields by name

    assert rows.decode_notes(rows.encode_notes([note])) == (note,)


@given(TIMES)
def test_a_time_survives_its_encoding_with_its_offset(time: datetime) -> None:
    decoded = rows.decode_time(rows.encode_time(time))

    assert decoded == time
    assert decoded.utcoffset() == time.utcoffset()


@given(TIMES, TIMES)
def test_the_texts_of_instants_are_in_the_order_of_the_instants(
    one: datetime, other: datetime
) -> None:
    first, second = rows.encode_instant(one), rows.encode_instant(other)

    assert (first < second) == (one < other)
    assert rows.decode_time(first) == one


@pytest.mark.parametrize(
    ("message", "ids"),
    [
        (Message.user("x"), None),
        (Message.assistant("x"), None),
        (
            Message.assistant(
                tool_calls=[ToolCallPart(id=id_, name="n", arguments="") for id_ in ("a", 'b"')]
            ),
            r'["a","b\""]',
        ),
    ],
)
def test_the_ids_of_tool_calls_are_a_list_or_nothing(message: Message, ids: str | None) -> None:
    assert rows.encode_call_ids(message.content) == ids
