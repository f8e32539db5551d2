import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.builders import count_tokens, reflect_request, segment_of

from remanence.errors import ObservationRejected
from remanence.notes import render_notes
from remanence.observers.llm import ModelReflector
from remanence.testing.models import ModelScript, ScriptedModel, cut_off
from remanence.types import Draft, Note

_AT = datetime(2026, 5, 8, 13, 56, tzinfo=UTC)
_LEASE = Note(
    text="rent is 1,250 EUR",
    first_seq=3,
    last_seq=4,
    observed_at=_AT,
    priority="CRITICAL",
    tag="Decision",
    speaker="Ana",
    topic="flat",
)
_ALONE = replace(_LEASE, topic=None)  # a heading above one line is left out
_CAT = Note(text="cat hates boxes", first_seq=5, last_seq=5, observed_at=_AT)
_CHAT = Note(text="weather was nice", first_seq=7, last_seq=7, observed_at=_AT + timedelta(days=2))


async def _reflect(script: Iterable[ModelScript], *notes: Note, repair: bool = False) -> Draft:
    reflector = ModelReflector(ScriptedModel(script), repair=repair)
    return await reflector.reflect(reflect_request(segment_of(*notes)))


@pytest.mark.req("B-52", "B-58", "B-59")
async def test_notes_are_shown_as_lines_in_order_with_size_and_target() -> None:
    model = ScriptedModel(["{#3-#4} rent is 1,250 EUR"])
    await ModelReflector(model, language="French").reflect(
        reflect_request(segment_of(_LEASE, _CAT), segment_of(_CHAT, id="obs-2"), target_tokens=20)
    )

    request = model.requests[0]
    assert request.purpose == "reflect"
    assert request.prompt.startswith(
        "<data-1 notes>\n"
        "Fri 2026-05-08\n"
        "#3-4 [CRITICAL Decision] Ana: rent is 1,250 EUR\n"
        "#5 cat hates boxes\n"
        "Sun 2026-05-10\n"
        "#7 weather was nice\n"
        "</data-1>\n\n"
        "Now condense the notes above, which have 27 tokens, to at most "
    )
    assert re.search(r"to at most [0-9]+ words, which is 74 % of them", request.prompt)
    assert request.prompt.endswith("in French.")


async def test_notes_of_a_topic_stand_below_it_and_come_back_with_it() -> None:
    notes = [replace(_LEASE, text=f"rent {n} EUR", first_seq=n, last_seq=n) for n in range(1, 4)]
    lines = "#1-2 [CRITICAL Decision] Ana: rent 1 EUR\n#3 [CRITICAL Decision] Ana: rent 3 EUR"
    model = ScriptedModel([f"## flat\n{lines}\n#2 [CRITICAL Decision] Ana: rent 2 EUR"])
    draft = await ModelReflector(model).reflect(reflect_request(segment_of(*notes, _CAT)))

    assert "\n#5 cat hates boxes\n## flat\n#1 [CRITICAL Decision]" in model.requests[0].prompt
    assert {note.topic for note in draft.notes} == {"flat"}


async def test_a_number_within_a_note_has_the_time_of_that_note() -> None:
    long = replace(_CAT, first_seq=3, last_seq=9)
    draft = await _reflect(["#5 cat hates boxes"], long, _CHAT)

    assert draft.notes[0].observed_at == _AT


async def test_lines_are_read_back_with_their_fields() -> None:
    draft = await _reflect(["#3-4 [CRITICAL Decision] Ana: rent is 1,250 EUR"], _LEASE, _CAT)

    assert draft == Draft(notes=(_ALONE,), made_by="scripted-model reflect/3")


@pytest.mark.req("Z-57")
async def test_a_critical_note_that_is_missing_comes_back_word_for_word() -> None:
    draft = await _reflect(["{#7} weather was nice"], _LEASE, _CAT, _CHAT)

    assert draft.notes == (_ALONE, _CHAT)


async def test_a_critical_note_worded_anew_gives_way_to_its_own_words() -> None:
    line = "#3-4 [CRITICAL Decision] Ana: pays about 1,250 EUR a month"
    draft = await _reflect([line], _LEASE, _CAT)

    assert draft.notes == (_ALONE,)
    assert [line.reason for line in draft.dropped] == ["reworded"]


async def test_a_critical_note_that_a_later_one_replaced_stays_away() -> None:
    newer = Note(
        text="rent is 1,300 EUR", first_seq=9, last_seq=9, observed_at=_AT, supersedes="1,250 EUR"
    )
    draft = await _reflect(["{#9} rent is 1,300 EUR (was: 1,250 EUR)"], _LEASE, newer)

    assert [note.text for note in draft.notes] == ["rent is 1,300 EUR"]


async def test_critical_notes_above_the_limit_go_so_that_memory_still_shrinks() -> None:
    notes = [
        Note(text=f"decision {n} " * 5, first_seq=n, last_seq=n, priority="CRITICAL")
        for n in range(1, 21)
    ]
    reflector = ModelReflector(ScriptedModel(["{#1} many decisions"]), repair=False)
    draft = await reflector.reflect(reflect_request(segment_of(*notes), target_tokens=100))

    assert count_tokens(render_notes(draft.notes, "compact")) <= 125


async def test_lost_values_of_decisions_are_asked_for_and_those_of_other_notes_not() -> None:
    plan = Note(text="order QF-7781", first_seq=6, last_seq=6, tag="Decision", priority="IMPORTANT")
    aside = Note(text="saw bus M-4812 pass", first_seq=7, last_seq=7, priority="IMPORTANT")
    model = ScriptedModel(["#6 there is an order", "#6 [Decision] order QF-7781"])
    draft = await ModelReflector(model).reflect(reflect_request(segment_of(plan, aside)))

    assert "<data-1 missing values>\nQF-7781\n</data-1>" in model.requests[1].prompt
    assert [note.text for note in draft.notes] == ["there is an order", "order QF-7781"]


@pytest.mark.req("B-53", "X-06")
@pytest.mark.parametrize("answer", ["NOTHING", "", "I'm sorry, I can't help with that."])
async def test_an_empty_reflection_never_replaces_memory(answer: str) -> None:
    with pytest.raises(ObservationRejected):
        await _reflect([answer], _LEASE, _CAT)


async def test_a_reflection_that_stays_cut_off_is_refused() -> None:
    with pytest.raises(ObservationRejected, match="was cut off at more tokens"):
        await _reflect([cut_off("{#5} cat\n{#5} bo"), cut_off("{#5} box")], _LEASE, _CAT)


@pytest.mark.req("X-17")
async def test_secrets_of_older_notes_are_taken_out() -> None:
    note = Note(text="db password is hunter2", first_seq=1, last_seq=1, priority="CRITICAL")
    model = ScriptedModel(["{#1} a password was given"])
    draft = await ModelReflector(model).reflect(reflect_request(segment_of(note)))

    assert "hunter2" not in model.requests[0].prompt
    assert "hunter2" not in render_notes(draft.notes, "compact")


async def test_notes_beyond_the_input_limit_are_condensed_in_portions() -> None:
    notes = [Note(text=f"fact {n} " * 40, first_seq=n, last_seq=n) for n in range(1, 61)]
    model = ScriptedModel(otherwise="[Fact] much was said")
    reflector = ModelReflector(model, max_input_tokens=4_000, repair=False)
    draft = await reflector.reflect(reflect_request(segment_of(*notes), target_tokens=1_000))

    assert len(model.requests) > 1
    assert all(count_tokens(r.stable + r.prompt) <= 4_000 for r in model.requests)
    assert draft.notes[0].first_seq == 1
    assert draft.notes[-1].last_seq == 60
