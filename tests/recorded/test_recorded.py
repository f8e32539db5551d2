"""Real requests and the answers of a capable model, from the messages to the context."""

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest
from tests.recorded.recording import FOLDER, POLICIES, Recorded, replay

from remanence.notes import parse_notes, render_notes
from remanence.types import Note

HEAD = re.compile(r"#\d+(?:-\d+)? (?:\[[A-Za-z ]+\] )?")


@pytest.fixture(params=sorted(POLICIES))
async def recorded(request: pytest.FixtureRequest) -> Recorded:
    return await replay(request.param)


def lines_of(recorded: Recorded, purpose: str) -> Iterator[list[str]]:
    """The lines of the answers for a purpose without their heads, an answer at a time."""
    for request, answer in zip(recorded.model.requests, recorded.model.answers, strict=True):
        if request.purpose == purpose:
            lines = [line for line in answer.splitlines() if not line.startswith("## ")]
            yield [HEAD.sub("", line, count=1) for line in lines]


def as_line(note: Note) -> str:
    who = f"{note.speaker}: " if note.speaker else ""
    was = f" (was: {note.supersedes})" if note.supersedes else ""
    return f"{who}{note.text}{was}"


@pytest.mark.parametrize(("purpose", "generation"), [("observe", 0), ("reflect", 1)])
async def test_notes_equal_the_answer_line_for_line(
    recorded: Recorded, purpose: str, generation: int
) -> None:
    made = [segment for segment in recorded.segments if segment.generation == generation]
    answers = list(lines_of(recorded, purpose))

    assert len(made) == len(answers) >= 1
    for segment, lines in zip(made, answers, strict=True):
        kept = [as_line(note) for note in segment.notes]
        dropped = [line.text for line in segment.dropped]
        assert sorted([*kept, *dropped]) == sorted(lines)
        assert not dropped


async def test_each_line_stands_in_the_text_of_its_segment_byte_for_byte(
    recorded: Recorded,
) -> None:
    for segment in recorded.segments:
        for note in segment.notes:
            assert note.text in segment.text
        parsed = parse_notes(segment.text, "compact", first_seq=1, last_seq=1)
        assert list(map(as_line, parsed)) == list(map(as_line, segment.notes))
        assert render_notes(parsed, "compact") == segment.text


async def test_each_line_of_the_live_notes_reaches_the_context_byte_for_byte(
    recorded: Recorded,
) -> None:
    shown = recorded.context.to_text()
    active = [segment for segment in recorded.live if segment.generation]

    assert active
    assert all(note.text in shown for segment in active for note in segment.notes)


async def test_the_number_of_a_note_leads_to_the_messages_of_its_day(recorded: Recorded) -> None:
    times = {message.seq: message.created_at for message in recorded.messages}
    for segment in recorded.segments:
        for note in segment.notes:
            assert segment.first_seq <= note.first_seq <= note.last_seq <= segment.last_seq
            first = times[note.first_seq]
            assert first is not None
            assert note.observed_at == first
            assert note.observed_at.utcoffset() == first.utcoffset()


async def test_an_answer_of_the_length_that_was_asked_for_is_not_trimmed(
    recorded: Recorded,
) -> None:
    """The recorded answers have about as many words as their requests allow; the last few more."""
    for request, answer in zip(recorded.model.requests, recorded.model.answers, strict=True):
        limit = re.search(r"at most ([0-9,]+) words", " ".join(request.prompt.split()))
        if limit is not None and int(limit[1]) > 100:
            words = sum(len(HEAD.sub("", line).split()) for line in answer.splitlines())
            assert words < 1.25 * int(limit[1])
    assert not any(segment.dropped for segment in recorded.segments)


async def test_a_repair_is_asked_for_decided_values_only(recorded: Recorded) -> None:
    calls = [request.purpose for request in recorded.model.requests]

    assert calls.count("repair") == 1
    assert calls[calls.index("repair") - 1] == "reflect"


async def test_facts_are_those_that_the_model_picked_out(recorded: Recorded) -> None:
    answers = [
        answer
        for request, answer in zip(recorded.model.requests, recorded.model.answers, strict=True)
        if request.purpose == "facts"
    ]
    picked = re.findall(r'"summary": "([^"]+)"', "\n".join(answers))

    assert sorted(fact.summary for fact in recorded.facts) == sorted(picked)


async def test_every_recorded_answer_was_asked_for(recorded: Recorded) -> None:
    folders = {path.parent for path in FOLDER.glob("*/*.txt")}
    counts = {len(list(folder.glob("*.txt"))) for folder in folders}

    assert len(recorded.model.answers) in counts


async def test_notes_near_midnight_are_of_the_users_own_day() -> None:
    recorded = await replay("journey")
    booked = next(note for note in recorded.segments[0].notes if "QX7-4410" in note.text)
    settled = next(note for note in recorded.segments[1].notes if "Pfotenhof" in note.text)

    assert booked.observed_at is not None
    assert settled.observed_at is not None
    assert booked.observed_at.utcoffset() == timedelta(hours=1)
    assert f"{booked.observed_at:%Y-%m-%d %H:%M}" == "2026-01-14 00:12"
    assert f"{settled.observed_at:%Y-%m-%d %H:%M}" == "2026-01-15 23:58"


async def test_what_the_user_prefers_and_left_open_outlives_a_reflection() -> None:
    recorded = await replay("journey")
    text = recorded.live[0].text

    for kept in ("vegetarian", "at least 3 hours before take-off", "window seat", "open: tickets"):
        assert kept in text


async def test_secrets_of_a_tool_result_are_hidden_and_code_about_secrets_is_not() -> None:
    recorded = await replay("signup")
    shown = "\n".join(request.prompt for request in recorded.model.requests)

    assert "s3cr3tPass" not in shown
    assert "postgres://signup:[secret]@db1.internal:5432/signup" in shown
    assert "token = secrets.token_urlsafe(32)" in shown


async def test_heads_take_a_small_share_of_a_request() -> None:
    recorded = await replay("journey")
    first = recorded.model.requests[0].prompt.partition("<data-1 messages>\n")[2]
    messages = first.partition("\n</data-1>")[0].splitlines()
    said = [line.partition(": ")[2] for line in messages if line.startswith("#")]

    assert len(said) == 20
    assert len("\n".join(messages)) - len("\n".join(said)) < 0.15 * len("\n".join(messages))
