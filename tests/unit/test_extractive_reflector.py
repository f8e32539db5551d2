from datetime import UTC, datetime, timedelta

import pytest
from tests.builders import count_utf8_tokens, reflect_request, segment_of

from remanence.errors import ObservationRejected
from remanence.notes import render_notes
from remanence.observers.extractive import ExtractiveReflector
from remanence.types import Note

_START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def _note(seq: int, text: str, **fields: object) -> Note:
    at = _START + timedelta(days=seq)
    return Note(text=text, first_seq=seq, last_seq=seq, observed_at=at, **fields)  # type: ignore[arg-type]


async def _reflected(*notes: Note, target: int = 10_000) -> tuple[Note, ...]:
    request = reflect_request(
        segment_of(*notes), target_tokens=target, count_tokens=count_utf8_tokens
    )
    return (await ExtractiveReflector().reflect(request)).notes


_MANY = tuple(
    _note(n, f"bought lantern {n} in Bergen; nice weather again; saw Tilda {n}")
    for n in range(1, 40)
)


async def test_a_reflection_is_no_larger_than_its_target() -> None:
    made = await _reflected(*_MANY, target=150)
    assert 130 <= count_utf8_tokens(render_notes(made, "compact")) <= 150


async def test_a_target_too_small_for_any_note_is_refused_with_the_setting_to_raise() -> None:
    with pytest.raises(ObservationRejected, match=r"into the 5 tokens .*: raise reflect_tokens"):
        await _reflected(*_MANY, target=5)


async def test_notes_stay_in_order_of_time() -> None:
    made = await _reflected(*_MANY, target=150)
    assert [n.first_seq for n in made] == sorted(n.first_seq for n in made)


@pytest.mark.req("Z-57")
async def test_a_critical_note_stays_word_for_word_before_all_others() -> None:
    critical = _note(5, "Ravi allergic peanuts; tell each kitchen", priority="CRITICAL")
    made = await _reflected(*_MANY, critical, target=60)
    assert "Ravi allergic peanuts; tell each kitchen" in [note.text for note in made]


async def test_of_two_equal_notes_one_stays() -> None:
    made = await _reflected(_note(1, "Ana lives in Turku"), _note(2, "Ana lives in Turku"))
    assert [note.text for note in made] == ["Ana lives in Turku"]


async def test_a_note_that_an_earlier_one_says_with_more_goes() -> None:
    made = await _reflected(
        _note(1, "Greta sold her old piano to Ida in Turku"), _note(2, "Greta sold her old piano")
    )
    assert [note.first_seq for note in made] == [1]


_LONG = (
    "The budget of the Hansen project in Turku with travel, catering, hotel, print, music, flowers, "
    "taxis, insurance, interpreters and guards is {}"
)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (_LONG.format("45000 euros"), _LONG.format("52000 euros")),
        (_LONG.format("of Greta"), _LONG.format("of Martin")),
        ("Deploy on Fridays after the tests pass", "Do not deploy on Fridays after the tests pass"),
        ("Greta owes Martin a violin", "Martin owes Greta a violin"),
    ],
)
async def test_a_note_with_another_value_or_a_denial_is_no_repetition(
    first: str, second: str
) -> None:
    made = await _reflected(_note(1, first), _note(2, second))
    assert [note.text for note in made] == [first, second]


async def test_what_was_said_again_after_a_change_is_kept() -> None:
    texts = [f"Use {name} for the orders of Turku" for name in ("Postgres", "MySQL", "Postgres")]
    made = await _reflected(*(_note(seq, text) for seq, text in enumerate(texts, start=1)))
    assert [note.text for note in made] == texts


async def test_what_two_people_said_alike_is_kept_of_both() -> None:
    speakers = ["Ana", "Bo", "assistant"]
    made = await _reflected(*(_note(1, "I am vegetarian", speaker=name) for name in speakers))
    assert [note.speaker for note in made] == ["Ana", "Bo"]


@pytest.mark.req("B-56")
async def test_a_superseded_note_goes() -> None:
    made = await _reflected(
        _note(1, "dinner with Olga 7pm"), _note(2, "dinner with Olga 8pm", supersedes="7pm")
    )
    assert [note.text for note in made] == ["dinner with Olga 8pm"]


async def test_a_note_that_only_shares_a_word_with_a_superseded_value_stays() -> None:
    made = await _reflected(
        _note(1, "gym opens 7pm"), _note(2, "dinner with Olga 8pm", supersedes="7pm")
    )
    assert len(made) == 2


async def test_clauses_are_kept_as_they_are() -> None:
    made = await _reflected(*_MANY, target=100)
    before = {clause for note in _MANY for clause in note.text.split("; ")}
    assert {clause for note in made for clause in note.text.split("; ")} <= before


@pytest.mark.parametrize("label", ["Never do", "What must not be done by any of you on Fridays"])
async def test_an_item_is_not_kept_without_the_label_of_its_list(label: str) -> None:
    rules = _note(50, f"{label}: push to main of billing-7; delete rows of invoices_2025")
    for target in range(20, 160, 10):
        made = await _reflected(*_MANY[:2], rules, target=target)
        assert {n.text for n in made if n.first_seq == rules.first_seq} <= {rules.text}


async def test_a_quoted_question_is_not_parted_from_its_answer() -> None:
    reply = _note(1, "“Shall I delete table 7; or keep it?” – keep it; move table 8 to Turku")
    for target in range(10, 60, 5):
        made = await _reflected(reply, target=target)
        assert all(note.text.count("“") == note.text.count("” – keep it") for note in made)


async def test_the_same_segments_make_the_same_reflection() -> None:
    assert await _reflected(*_MANY, target=200) == await _reflected(*_MANY, target=200)


@pytest.mark.parametrize("speaker", ["tool", "tool read_file"])
async def test_output_of_a_tool_takes_the_room_that_all_others_leave(speaker: str) -> None:
    said = [
        _note(n, f"I would like something quiet near the park, room {n}", speaker="Mina")
        for n in range(1, 9)
    ]
    rows = [_note(1, f"{n}42 ERR_{n} 0x{n}f at lib/a{n}.py:{n}1", speaker=speaker) for n in "123"]
    answer = _note(9, "Noted", speaker="assistant")

    brief = await _reflected(*said, *rows, answer, target=150)
    whole = await _reflected(*said, *rows, answer)

    assert speaker not in {note.speaker for note in brief}
    assert speaker in {note.speaker for note in whole}


@pytest.mark.parametrize("name", ["user", "Mina"])
async def test_what_a_user_states_outlives_small_talk_whatever_the_user_is_called(
    name: str,
) -> None:
    fact = _note(1, "I am allergic to peanuts", speaker=name)
    talk = [
        _note(n, f"there was that film yesterday, number {n}, with Tilda", speaker=name)
        for n in range(2, 30)
    ]
    made = await _reflected(fact, *talk, _note(30, "Noted", speaker="assistant"), target=60)

    assert fact.text in [note.text for note in made]


@pytest.mark.parametrize(
    ("name", "beside"),
    [
        ("user", None),
        ("Mina", _note(30, "status delayed", speaker="tool find_gate")),
        ("Mina", _note(30, "Answer in German", speaker="Mina", priority="CRITICAL")),
    ],
)
async def test_an_agent_without_notes_is_known_by_what_is_beside_it(
    name: str, beside: Note | None
) -> None:
    fact = _note(1, "I am allergic to peanuts", speaker=name)
    talk = [
        _note(n, f"there was that film yesterday, number {n}, with Tilda", speaker=name)
        for n in range(2, 30)
    ]
    made = await _reflected(fact, *talk, *([beside] if beside else []), target=80)

    assert fact.text in [note.text for note in made]
