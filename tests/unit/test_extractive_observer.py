import asyncio
import dataclasses
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import get_args

import pytest
from hypothesis import given, strategies as st
from tests.builders import count_utf8_tokens, numbered, observe_request

from remanence.languages.vocabulary import vocabulary_of
from remanence.notes import render_notes
from remanence.observers.extractive import ExtractiveObserver, explain
from remanence.observers.extractive.observer import choose, extract
from remanence.observers.extractive.readable import readable_text
from remanence.observers.extractive.render import render_words, words
from remanence.observers.extractive.sentences import sentences
from remanence.pacing import at_once
from remanence.protocols import ObserveRequest
from remanence.types import Message, Note, NoteFormat, ToolCallPart

_START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
_PLACES = ("Bergen", "Porto", "Ghent", "Tartu", "Split", "Lviv", "Bath", "Nara")
_THINGS = ("kayak", "violin", "orchid", "lantern", "compass", "tandem", "telescope", "kiln")


def _request(
    *messages: Message, ratio: float = 0.4, note_format: NoteFormat = "compact"
) -> ObserveRequest:
    placed = numbered(*messages)
    source = sum(
        count_utf8_tokens(m.text) + sum(count_utf8_tokens(r.text) for r in m.tool_results)
        for m in placed
    )
    return observe_request(
        *placed,
        target_tokens=int(source * ratio),
        count_tokens=count_utf8_tokens,
        note_format=note_format,
    )


def _notes(request: ObserveRequest) -> tuple[Note, ...]:
    return at_once(extract(request))


def _talk(count: int) -> list[Message]:
    said = []
    for n in range(count):
        place, thing = _PLACES[n % 8], _THINGS[(n // 3) % 8]
        said.append(
            Message.user(f"Yesterday I bought a {thing} number {n} in {place} for {n} euros.")
        )
        said.append(
            Message.assistant(f"Thanks! The {thing} from {place} needs oil every {n} days.")
        )
    return said


def test_what_follows_a_question_that_is_left_out_does_not_join_what_was_said_before_it() -> None:
    talk = (
        Message.user("we dropped apscheduler. whats sched then? sched is stdlib"),
        Message.assistant("Yes, it is in the standard library and works without threads."),
    )
    made = [_notes(_request(*talk, ratio=number / 20)) for number in range(1, 21)]
    without = [notes for notes in made if not any("sched then" in note.text for note in notes)]

    assert ["we dropped apscheduler", "sched is stdlib"] in [
        [n.text for n in notes] for notes in without
    ]
    assert not any("; sched is stdlib" in note.text for notes in without for note in notes)


@pytest.mark.parametrize(
    "text", ["assert fake.calls == ['a', 'b'] fails", "use x = [1, 2, 3]", "it is [red, blue] now"]
)
def test_brackets_of_code_and_within_a_sentence_begin_no_sentence(text: str) -> None:
    assert [text[span.start : span.end] for span in sentences(text)] == [text]


@pytest.mark.parametrize("note_format", get_args(NoteFormat))
def test_notes_fill_the_target_and_never_exceed_it(note_format: NoteFormat) -> None:
    request = _request(*_talk(60), ratio=0.2, note_format=note_format)
    size = count_utf8_tokens(render_notes(_notes(request), note_format))
    assert 0.9 * request.target_tokens <= size <= request.target_tokens


def test_the_same_messages_make_the_same_notes() -> None:
    request = _request(*_talk(20))
    assert _notes(request) == _notes(request)


async def test_observing_in_the_loop_makes_the_same_notes_as_at_once() -> None:
    request = _request(*_talk(20))
    draft = await ExtractiveObserver().observe(request)
    assert draft.notes == _notes(request)
    assert draft.made_by == "extractive/1"


async def test_other_tasks_run_while_it_works() -> None:
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(others())
        await ExtractiveObserver().observe(_request(*_talk(300)))
        task.cancel()
    assert turns > 10


def test_each_word_of_a_note_stands_in_its_source_messages_dates_aside() -> None:
    request = _request(
        *_talk(40), Message.user("We'll take the tram instead of the car, Ana's car.")
    )
    by_seq = {message.seq: message for message in request.messages}
    for note in _notes(request):
        source = " ".join(by_seq[s].text for s in range(note.first_seq, note.last_seq + 1)).lower()
        invented = [w for w in re.findall(r"[^\W\d]+", note.text.lower()) if w not in source]
        assert set(invented) <= {"march"}


@pytest.mark.req("Z-51")
def test_a_relative_date_becomes_absolute() -> None:
    said = Message.user("Yesterday I sold the old piano to Greta.", name="Ana")
    note = _notes(_request(said, Message.user("Hello there", name="Bo"), ratio=4.0))[0]
    assert note.text == "March 1 sold old piano to Greta"
    assert note.referenced_at == "2026-03-01"


@pytest.mark.parametrize(
    "said",
    [
        "I am allergic to penicillin.",
        "Ich bin gegen Nickel allergisch.",
        "Ich bin Arzt.",
        "Soy alérgica a los frutos secos.",
        "나는 매운 음식을 좋아해",
        "Please don't mention the roof again.",
        "No emojis in either.",
    ],
)
def test_what_a_user_says_of_themself_or_lays_down_is_critical_and_whole(said: str) -> None:
    (note,) = _notes(_request(Message.user(said), ratio=4.0))
    assert (note.text, note.priority) == (said.rstrip("."), "CRITICAL")


@pytest.mark.parametrize(
    ("stated", "request_"),
    [
        ("I'm allergic to wool.", "Please don't remember that I'm allergic to wool anymore."),
        ("Ich bin Raucher.", "Merk dir bitte nicht, dass ich Raucher bin."),
        ("Soy alérgica a la lana.", "Olvida que soy alérgica a la lana, por favor."),
    ],
)
def test_a_request_to_forget_is_not_critical_but_noted_beside_what_it_names(
    stated: str, request_: str
) -> None:
    notes = _notes(_request(Message.user(stated), Message.user(request_), ratio=4.0))
    assert {note.text: note.priority for note in notes} == {
        stated.rstrip("."): "CRITICAL",
        request_.rstrip("."): "NOTE",
    }


@pytest.mark.parametrize(
    "said",
    [
        "We still don't know who picks up the keys.",
        "Wir wissen noch nicht, wer die Schlüssel holt.",
        "Todavía no sabemos quién recoge las llaves.",
    ],
)
def test_a_point_that_a_user_leaves_open_is_critical(said: str) -> None:
    (note,) = _notes(_request(Message.user(said), ratio=4.0))
    assert (note.priority, note.tag) == ("CRITICAL", "NextStep")


def test_what_people_say_of_themselves_to_each_other_is_not_critical() -> None:
    request = _request(
        Message.user("I am allergic to penicillin.", name="Ana"),
        Message.user("Oh no, since when is that?", name="Ben"),
        ratio=4.0,
    )
    assert {note.priority for note in _notes(request)} == {"NOTE"}


def test_a_named_user_talks_with_an_agent_that_has_not_answered_yet() -> None:
    said = "Please always answer in German from now on."
    alone = _request(Message.user(said, name="Ana"), ratio=9)
    beside = _request(Message.user(said, name="Ana"), Message.user("Hello", name="Bo"), ratio=9)
    later = [
        dataclasses.replace(
            beside, known=(Note(text="gate B42", first_seq=1, last_seq=1, speaker=s),)
        )
        for s in ("assistant", "tool find_gate")
    ]

    for request in (alone, *later):
        assert [note.priority for note in _notes(request)] == ["CRITICAL"]
    heard = Note(text="sold the kiln", first_seq=1, last_seq=1, speaker="Bo")
    for request in (beside, dataclasses.replace(alone, known=(heard,))):
        assert "CRITICAL" not in {note.priority for note in _notes(request)}


def test_a_quoted_statement_is_not_the_users() -> None:
    said = "Translate into German:\n> I am allergic to penicillin."
    assert "CRITICAL" not in {n.priority for n in _notes(_request(Message.user(said), ratio=4.0))}


def test_memory_and_control_messages_are_never_observed() -> None:
    request = _request(
        Message.user("Remember the passphrase of Oslo.", kind="memory"),
        Message.user("System reminder about Cairo.", kind="control"),
        Message.user("I live in Turku."),
        ratio=1.0,
    )
    assert [note.first_seq for note in _notes(request)] == [3]


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("The high shelf of the cellar is broken", "The low shelf of the cellar is broken"),
        (
            "Ravi wrote the class ItemReader for the import",
            "Ravi wrote the class ItemReading for the import",
        ),
    ],
)
def test_a_word_of_little_weight_and_a_name_that_begins_alike_say_something_else(
    earlier: str, later: str
) -> None:
    known = (Note(text=earlier, first_seq=1, last_seq=1),)
    request = dataclasses.replace(_request(Message.user(f"{later}."), ratio=4.0), known=known)
    assert [note.text for note in _notes(request)] == [later]


def test_what_a_known_note_holds_is_not_repeated() -> None:
    request = _request(Message.user("Greta sold her old piano. Bo collects rare maps."), ratio=4.0)
    known = (Note(text="Greta sold her old piano to Ida", first_seq=1, last_seq=1),)
    made = _notes(dataclasses.replace(request, known=known))
    assert [note.text for note in made] == ["Bo collects rare maps"]


@pytest.mark.parametrize(
    "said",
    [
        "Please do not close ticket-48213 before the review.",
        "Please close ticket-48214 before the review.",
    ],
)
def test_a_known_note_with_another_value_or_without_the_denial_is_another(said: str) -> None:
    request = _request(Message.user(said), ratio=4.0)
    known = (Note(text="Please close ticket-48213 before the review", first_seq=1, last_seq=1),)
    made = _notes(dataclasses.replace(request, known=known))
    assert [note.text for note in made] == [said.rstrip(".")]


def test_what_one_person_stated_is_not_known_of_another() -> None:
    said = "I am allergic to peanuts and cats."
    request = _request(Message.user(said, name="Bo"), Message.assistant("Noted."), ratio=9)
    known = (Note(text=said, first_seq=1, last_seq=1, speaker="Ana"),)
    made = _notes(dataclasses.replace(request, known=known))
    assert [note.speaker for note in made] == ["Bo"]


def test_what_is_said_again_after_a_change_is_noted_again() -> None:
    choices = [f"Please use {name} for the orders of Turku." for name in ("Postgres", "MySQL")]
    known = [
        Note(text=text, first_seq=seq, last_seq=seq, speaker="user")
        for seq, text in enumerate(choices, start=1)
    ]
    for notes, said in (
        (known, (choices[0],)),
        (known[:1], (choices[1], choices[0])),
    ):
        request = _request(*map(Message.user, said), ratio=9)
        made = _notes(dataclasses.replace(request, known=tuple(notes)))
        assert "Postgres" in made[-1].text


@pytest.mark.parametrize(
    "said", ["I am vegetarian.", "I am allergic to peanuts, to lupins and to all kinds of cats."]
)
def test_what_two_people_say_alike_is_noted_of_both(said: str) -> None:
    ana, bo = Message.user(said, name="Ana"), Message.user(said, name="Bo")
    made = _notes(_request(ana, bo, Message.assistant("Noted."), ratio=9))
    assert [note.speaker for note in made] == ["Ana", "Bo"]


def test_a_result_of_a_few_words_is_no_small_talk() -> None:
    call = ToolCallPart(id="c1", name="deploy", arguments='{"env": "prod"}')
    asked = Message.user("Deploy it to prod please")
    result = Message.tool("c1", "rollback started")
    notes = _notes(_request(asked, Message.assistant(tool_calls=[call]), result, ratio=9))

    assert "rollback started" in notes[-1].text


@pytest.mark.req("L-08", "Z-49")
def test_of_a_tool_result_the_error_is_kept_rather_than_the_output() -> None:
    output = "\n".join(f"step {n} ok" for n in range(400))
    log = f"{output}\nError: disk /dev/sdb1 is full\n{output}"
    request = _request(Message.tool("c1", log), ratio=0.02)
    assert "Error: disk /dev/sdb1 is full" in render_notes(_notes(request), "compact")


@pytest.mark.parametrize(
    ("command", "written"),
    [
        ("grep ledger in job.py", "grep ledger in job.py: "),
        ("a b c d e f g h i job.py k l m", "a b c d e f g h i job.py …: "),
    ],
)
def test_a_result_names_its_call_as_it_was_made_and_marks_a_cut(command: str, written: str) -> None:
    call = ToolCallPart(id="c1", name="run", arguments=json.dumps({"command": command}))
    output = "ledger was not found in job.py: error 404"

    text = _whole(Message.assistant(tool_calls=[call]), Message.tool("c1", output))

    assert f"{written}{output}" in text


def test_a_message_of_a_megabyte_is_observed_within_its_target() -> None:
    log = "\n".join(f"2026-03-02 worker {n} handled request {n * 7}" for n in range(25_000))
    request = _request(Message.user(log), ratio=0.01)
    assert 0 < count_utf8_tokens(render_notes(_notes(request), "compact")) <= request.target_tokens


def test_messages_without_a_time_are_observed_without_dates() -> None:
    request = _request(Message.user("Yesterday I met Bo in Riga."), ratio=4.0)
    undated = tuple(m.replace(created_at=None) for m in request.messages)
    note = at_once(extract(dataclasses.replace(request, messages=undated)))[0]
    assert (note.observed_at, note.referenced_at) == (None, None)


def test_a_target_too_small_for_any_line_makes_no_notes() -> None:
    assert _notes(_request(Message.user("I live in Turku."), ratio=0.1)) == ()


def _whole(*messages: Message) -> str:
    """All that the messages tell, without their heading."""
    return "\n".join(note.text for note in _notes(_request(*messages, ratio=9)))


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("先週も名前を間違えて怒られた", "先週（2月23日の週）も名前を間違えて"),
        ("지난주에 서준이 예약했어", "지난주(2월 23일 주간)에 서준이"),
        ("今天的聊天内容是旅行计划", "今天的聊天内容"),
        ("我去了云台山公园，昨天拍了照片", "我去了云台山公园，3月1日拍了照片"),
        ("이번 달 수요일에 치과 약속이 있어", "수요일에 치과"),
    ],
)
def test_a_relative_date_leaves_a_sentence_that_can_be_read(said: str, written: str) -> None:
    assert written in _whole(Message.user(said))


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("I'm not sure about the customer number 4410", "not sure about customer number 4410"),
        ("His name is Marek, not Mirek", "name Marek, not Mirek"),
    ],
)
def test_telegraphic_words_keep_what_gives_them_their_meaning(said: str, written: str) -> None:
    assert written in _whole(Message.user(said, name="Ana"), Message.user("Hello", name="Bo"))


@pytest.mark.parametrize(
    "value",
    [
        "base * 2 ** n",
        "src/**/*.py",
        "lib/**/*.js and src/**/*.py",
        "__init__.py",
        "_private",
        "*args and **kwargs",
        "C# and F#",
        "≥ 3 and ≤9",
        "n % 4 // 2",
        "x += 5",
        "locker A-17#",
        "code #2580#",
        "grade A-",
        "Monday - Tuesday",
        "§ 12",
        "25 °C",
        "<100 €",
        ".5 mg",
        "$ 100",
        "list[int] and List<int>",
        "src/*",
        "no. 55-331",
        "z.B. Leinen",
        "9 p.m. or 10 p.m.",
        "ratio 1 : 3",
        "tubes of 9''",
        "f'' = 7",
        "a frost of –23 °C",
        "a gain of –€40",
        "the house 'Blauwe Zee'",
        "the house ‘Blauwe Zee’",
        "'t Zand",
        "’n Braai",
        "summers of '68",
        "'Ukbara",
        "the framework .NEST",
        "path='c d'",
        "range (3, 8]",
        "price of ~~70 euros~~ 65 euros",
        "keys 'inv-7' and 'inv-8'",
        "board of 7' x 9'",
        "word „Hof“",
        "word « port »",
        "folder %APPDATA%",
        "pattern '%d'",
        "field %{http_code}",
        "the pattern ^(?!.*foo).*$",
        "the pattern `^(?!.*foo).*$`",
        r"the pattern ^[A-Z]{2}\d{3,5}(?:-[a-z]+)?$",
        "src/**/*.test.{ts,tsx} and !build/**",
        "{{user|default('x')}}",
        "`awk '{print $1, $NF}' a.txt`",
        "`INSERT ... ON CONFLICT`",
    ],
)
def test_marks_that_belong_to_a_value_stay_in_its_note(value: str) -> None:
    said = f"We decided to use {value} for the new importer of Greta."
    assert value in _whole(Message.user(said))


@pytest.mark.parametrize(
    "said",
    [
        "मेरा कुत्ता रेक्स है",
        "मुझे मूंगफली से एलर्जी है",
        "நான் சென்னையில் வசிக்கிறேன்",
        "আমি ঢাকায় থাকি",
        "ฉันแพ้ถั่วลิสงและอาศัยอยู่ที่นี่",
        "My cafe\u0301 is Cafe\u0301 Rene\u0301",
        "In two weeks' time I get my injection",
        "אני גר ברח' הרצל אצל פרופ' לוי ביום ו׳",
    ],
)
def test_a_note_keeps_vowel_signs_accents_and_apostrophes_at_the_end_of_a_word(said: str) -> None:
    found = words(f"{said}.", vocabulary_of(""), opens=True)
    assert render_words(tuple(found)) == said


@pytest.mark.parametrize("value", ["３０％", "100 ٪", "12㎡", "5㎏", "20℃", "20 ℃"])
def test_a_note_keeps_the_unit_of_a_value(value: str) -> None:
    said = words(f"it is {value}.", vocabulary_of(""), opens=True)
    assert render_words(tuple(said)) == f"it is {value}"


@pytest.mark.parametrize(
    "said", ["à 20 %, au lac", "80 °C; puis 90 °C", "« Bien », dit-il", "de « A » à « B », puis"]
)
def test_a_note_keeps_the_comma_behind_a_mark_with_a_space_before_it(said: str) -> None:
    assert render_words(tuple(words(f"{said}.", vocabulary_of(""), opens=True))) == said


@pytest.mark.parametrize(("opening", "closing"), ['""', "“”", "„”", "«»", ("« ", " »")])
def test_a_note_closes_a_quotation_whose_end_is_in_another_sentence(
    opening: str, closing: str
) -> None:
    said = f"Les parents ont écrit {opening}Chers amis, la fête est finie"
    found = render_words(tuple(words(f"{said}.", vocabulary_of(""), opens=True)))
    assert found == f"{said}{closing}"


@pytest.mark.parametrize("opening", "「『")
def test_a_note_closes_a_corner_bracket_whose_end_is_in_another_sentence(opening: str) -> None:
    said = f"叔母は手紙に{opening}みんな元気です"
    found = render_words(tuple(words(f"{said}。", vocabulary_of(""), opens=True)))
    assert found == said + {"「": "」", "『": "』"}[opening]


@pytest.mark.parametrize(
    ("said", "mark"),
    [("متى يصل القطار رقم ٧٢ إلى فاس؟", "؟"), ("七二番の列車は何時に着きますか？", "？")],
)
def test_a_question_keeps_the_mark_of_its_script(said: str, mark: str) -> None:
    assert _whole(Message.user(said)).strip().endswith(mark)


def test_a_note_closes_a_quotation_as_its_language_does() -> None:
    for said, closing in (
        ("Die Eltern haben mir geschrieben: „Liebe Freunde, das Fest", "“"),
        ("Родители написали: „Дорогие друзья, праздник", "“"),
        ("Mijn ouders hebben ons geschreven: „Lieve vrienden, het feest", "”"),
    ):
        found = render_words(tuple(words(f"{said}.", vocabulary_of(""), opens=True)))
        assert found == f"{said}{closing}"


@pytest.mark.parametrize(
    ("said", "noted"),
    [
        ("He said “…” and left", "He said and left"),
        ("He said “...”, and left", "He said and left"),
        ('A 3.5 "floppy disk drive', 'A 3.5 "floppy disk drive'),
    ],
)
def test_a_note_has_no_mark_that_quotes_nothing(said: str, noted: str) -> None:
    assert render_words(tuple(words(f"{said}.", vocabulary_of(""), opens=True))) == noted


@pytest.mark.parametrize(
    ("said", "noted"),
    [
        ("booked... well, not paid", "booked... well, not paid"),
        ("J'arrête… ma sœur fume", "J'arrête… ma sœur fume"),
        ("booked ... not paid...", "booked... not paid"),
        ("Borrowed 70 £ ... maybe 90 £", "Borrowed 70 £... maybe 90 £"),
        ("Zaliczka 15 % … albo 20 %", "Zaliczka 15 %… albo 20 %"),
        ("paid 🙂 ........ almost", "paid... almost"),
    ],
)
def test_a_note_does_not_run_on_over_dots(said: str, noted: str) -> None:
    assert render_words(tuple(words(said, vocabulary_of(""), opens=True))) == noted


@pytest.mark.parametrize(
    ("said", "noted"),
    [
        ("Never 🦐 shrimps for Olga", "Never shrimps for Olga"),
        ("Nada de 🥛 leche para Inés", "Nada de leche para Inés"),
        ("Das Zelt kostet 80 € 🎪 pro Woche", "Das Zelt kostet 80 € pro Woche"),
        ("Vuelo de 🇨🇱 Chile a 🇵🇪 Perú", "Vuelo de Chile a Perú"),
        ("Moving to Hull 🙂", "Moving to Hull"),
    ],
)
def test_an_emoji_does_not_part_the_words_of_a_clause(said: str, noted: str) -> None:
    assert render_words(tuple(words(said, vocabulary_of(""), opens=True))) == noted


@pytest.mark.parametrize(
    "code", ["`grep ''bar''`", "`doc = '''One line'''`", "`a ''b'' c`, `''d''`"]
)
def test_a_note_keeps_the_apostrophes_in_code(code: str) -> None:
    said = f"Run {code} and 'stop'"
    assert render_words(tuple(words(said, vocabulary_of(""), opens=True))) == said


def test_a_note_keeps_arabic_signs_and_commas() -> None:
    said = "خصم ٢٠٪ اليوم، أو ٥؉ غدا؛ شكرا"
    assert render_words(tuple(words(said, vocabulary_of(""), opens=True))) == said


@pytest.mark.parametrize("marks", ["””", "»«", "›‹", "‹›", "„”", "„“", "“”", "«»"])
def test_a_note_keeps_both_marks_of_a_quotation(marks: str) -> None:
    opening, closing = marks[0], marks[1]
    said = f"Jag läste {opening}Röda rummet{closing} och {opening}Giftas{closing}"
    assert render_words(tuple(words(said, vocabulary_of(""), opens=True))) == said


def test_a_note_keeps_the_apostrophe_before_a_date() -> None:
    assert "L'examen d'aujourd'hui" in _whole(Message.user("L'examen d'aujourd'hui est à 9h."))


@pytest.mark.parametrize("value", ["~$900", "<$50", "{id=3}"])
def test_a_value_is_the_same_word_before_a_comma(value: str) -> None:
    vocabulary = vocabulary_of("the rent is")
    for mark in ",;:":
        *_, word, _ = words(f"The rent is {value}{mark} now", vocabulary, opens=True)
        assert word.key == value


@given(
    st.from_regex(
        r"[#@&§%°$€£<>=+/^]{0,2}[A-Za-z]{1,3}[0-9]{1,4}[#&§%°$€£<>=+/^-]{0,2}", fullmatch=True
    )
)
def test_a_note_keeps_the_signs_before_and_after_a_value(value: str) -> None:
    said = words(f"the code is {value}.", vocabulary_of("the code"), opens=True)
    assert value in render_words(tuple(said))


def test_a_caption_of_several_clauses_keeps_all_its_letters() -> None:
    clauses = (
        "A photo of a dog that runs after our cat because it is hungry",
        "the cat from Porto sits on the mat in the garden",
        "behind them stands the new bike of my daughter",
    )
    written = _whole(Message.user(f"[{'; '.join(clauses)}]"))

    assert all(word in written for word in ("cat from Porto", "behind them")), written


@pytest.mark.parametrize(
    "said",
    [
        "We **decided** to move the *release of Greta* to **12 May**.",
        "We __decided to move__ the _release_ of Greta to ***12 May***.",
        "**We decided to *move the release* of Greta to 12 May.**",
        "We '''decided''' to move ''the release'' of Greta to '''12 May'''.",
    ],
)
def test_marks_of_emphasis_are_in_no_note(said: str) -> None:
    text = _whole(Message.user(said))
    assert "Greta" in text
    assert not {"*", "_"} & set(text)
    assert "''" not in text


def test_a_negated_decision_is_none() -> None:
    assert all(n.tag != "Decision" for n in _notes(_request(Message.user("호텔은 아직 안 정했어"))))


def test_a_result_in_json_is_its_fields_and_then_those_of_the_objects_in_it() -> None:
    result = (
        '{"reservation_id": "LQ7XZD", "flights": [{"flight_number": "NB218", '
        '"date": "2026-05-20", "price": 151, "link": "https://air.example/n"}]}'
    )
    assert _whole(Message.tool("c", result)) == (
        "reservation id LQ7XZD; flight number NB218, date 2026-05-20, price 151"
    )


def test_a_result_with_the_mark_of_an_error_keeps_the_message_beside_it() -> None:
    result = '{"error": true, "message": "disk /dev/sdb1 is full"}'
    assert _whole(Message.tool("c", result)) == "error true, message disk /dev/sdb1 is full"


def test_the_notes_of_a_result_name_its_tool() -> None:
    named, unnamed = (
        explain([Message.tool("c", "pump P-7 runs", name=name)]) for name in ("read log", None)
    )
    assert (named[0].speaker, unnamed[0].speaker) == ("tool read log", "tool")


def test_a_result_stands_before_the_words_of_a_user_beside_it_and_is_a_tools() -> None:
    result = {"type": "tool_result", "tool_use_id": "c", "content": "pump P-7 runs"}
    said = {"type": "text", "text": "Please stop the pump."}
    rows = explain([Message.from_anthropic({"role": "user", "content": [result, said]})])
    assert [(row.text, row.speaker) for row in rows] == [
        ("pump P-7 runs", "tool"),
        ("Please stop the pump.", "user"),
    ]


def test_a_list_of_json_has_neither_what_is_missing_nor_words_of_python() -> None:
    rows = explain([Message.tool("c", '[null, true, "pump P-7 runs"]')])
    assert [row.text for row in rows] == ["true", "pump P-7 runs"]


def test_json_within_a_line_of_output_is_written_in_plain_words() -> None:
    text = _whole(Message.tool("c", 'Upstream said {"error": {"code": "NO_SEATS"}, "row": 7}'))
    assert text == "Upstream said error: code: NO_SEATS, row: 7"


@pytest.mark.parametrize(
    "said",
    ["성공은 운이 아니라 실력이야", "걔 생각말고 안 나", "这不是运气而是实力", "夢ではなく現実だ"],
)
def test_a_contrast_that_takes_nothing_back_stays_as_it_was_said(said: str) -> None:
    notes = _notes(_request(Message.user(said), ratio=9))
    assert all(note.supersedes is None for note in notes)


def test_a_failed_call_does_not_read_as_what_it_would_have_done() -> None:
    result = (
        '{"error": {"code": "BOOKING_WINDOW_NOT_OPEN", "opens": "2026-03-09"}, '
        '"timetable": {"train": "KTX 027", "depart": "10:27", "fare_krw": 59800}}'
    )
    text = _whole(Message.tool("c", result))

    assert "BOOKING_WINDOW_NOT_OPEN" in text
    assert "KTX 027" not in text


def test_a_result_that_is_an_error_reads_as_one() -> None:
    failed = Message.tool("c", "Refund of 240 EUR for order 7781", is_error=True)

    assert "error: Refund of 240 EUR for order 7781" in _whole(failed)
    assert "error" not in _whole(Message.tool("c", "Refund of 240 EUR for order 7781"))


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("the port is 8443 now. curl works there. the vault is sealed.", "the vault is sealed"),
        ("Copy .env.example first && then run npm install.", ".env.example first && then run"),
        ("The one in charge is Mara, not Tove.", "Mara, not Tove"),
        ("You can't reach gate B42 by lift.", "You can't reach gate B42"),
        ("The styles apply but it's not centered.", "not centered"),
        ("Could you upgrade me to business class?", "upgrade me to business class"),
        ("The total is actually $305 for the two.", "$305 for the two"),
        ("!402 waits for !398, which Tove reviews.", "!402 waits for !398"),
    ],
)
def test_what_says_little_in_few_words_still_says_it(said: str, written: str) -> None:
    assert written in _whole(Message.user("Hello there", name="Mara"), Message.user(said))


def test_an_answer_that_says_little_alone_quotes_what_it_replies_to() -> None:
    (note,) = _notes(
        _request(
            Message.assistant("We can do it at nine or at noon. Which of the two tomorrow?"),
            Message.user("the second one then"),
            ratio=9,
        )
    )[-1:]

    assert note.text == "“Which of the two 2026-03-03?” – the second one then"
    assert (note.first_seq, note.last_seq, note.speaker) == (1, 2, "user")


@pytest.mark.parametrize(
    ("asked", "answer", "own"),
    [
        ("Pilz-Risotto?", "ok.", "Ich bin übrigens gegen Sellerie allergisch"),
        ("How about a mushroom risotto?", "Sure.", "I'm allergic to celery"),
        ("Un risotto ai funghi?", "ok.", "Rispondimi sempre in italiano, per favore"),
        ("Shall we go on with the tiles?", "Oh.", "Forget the name of my dentist"),
        ("What can I do for you?", "", "erstmal, bitte antworte kurz"),
    ],
)
def test_what_does_not_answer_a_question_does_not_quote_it(
    asked: str, answer: str, own: str
) -> None:
    said = f"{answer} {own}.".strip()
    notes = _notes(_request(Message.assistant(asked), Message.user(said), ratio=9))

    assert [note.text for note in notes if own in note.text] == [own]


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("Which city is the flat in?", "Leipzig"),
        ("Welche Farbe hat die Wand?", "Blau"),
        ("How many rooms are damp?", "Three"),
        ("Haben Sie Haustiere?", "Nein"),
    ],
)
def test_an_answer_of_one_word_is_noted_with_its_question(asked: str, answer: str) -> None:
    said = Message.assistant(asked), Message.user(f"{answer}."), Message.assistant("ok")
    notes = _notes(_request(*said, ratio=9))

    assert f"“{asked}” – {answer}" in [note.text for note in notes]


@pytest.mark.parametrize("answer", ["Danke!", "ok", "lol"])
def test_thanks_and_the_like_answer_no_question(answer: str) -> None:
    said = Message.assistant("Sonst noch etwas?"), Message.user(answer)
    assert [n for n in _notes(_request(*said, ratio=9)) if n.speaker == "user"] == []


def test_a_request_to_forget_that_points_back_quotes_what_it_answers() -> None:
    asked = Message.assistant("Shall I keep the door code of the studio?")
    (note,) = _notes(_request(asked, Message.user("no, forget it"), ratio=9))[-1:]

    assert note.text == "“Shall I keep the door code of the studio?” – no, forget it"


def test_a_question_of_a_few_words_is_quoted_with_the_sentence_before_it() -> None:
    asked = Message.assistant("The rate is 15 a second. That needs 7 attempts. Keep 6?")
    (note,) = _notes(_request(asked, Message.user("7 then"), ratio=9))[-1:]

    assert note.text == "“That needs 7 attempts. Keep 6?” – 7 then"


def test_a_question_in_a_list_is_not_put_to_the_user() -> None:
    listed = "Ask your adviser:\n1. Can I deduct the old machine?\n2. How much do I put aside?"
    notes = _notes(_request(Message.assistant(listed), Message.user("the first one then"), ratio=9))

    assert not any("How much" in note.text and "first one" in note.text for note in notes)


def test_a_reply_from_another_time_zone_quotes_what_it_replies_to() -> None:
    at = datetime(2026, 3, 30, 20, 0, tzinfo=UTC)
    tokyo, lisbon = (timezone(timedelta(hours=hours)) for hours in (9, 1))
    request = _request(
        Message.user("My flight NH 211 is booked.", name="Ken", created_at=at.astimezone(tokyo)),
        Message.assistant("Do you prefer the Miragaia or the Ribeira?", created_at=at),
        Message.user("The second one.", name="Ana", created_at=at.astimezone(lisbon)),
        ratio=9,
    )
    question = "“Do you prefer the Miragaia or the Ribeira?”"
    assert f"{question} – The second one" in [note.text for note in _notes(request)]


def test_what_follows_a_question_of_the_reply_quotes_no_earlier_one() -> None:
    notes = _notes(
        _request(
            Message.assistant("Shall I tell Fergal that you start at 20:00?"),
            Message.user(
                "Yes, tell him. And who's gonna pick her up? I guess Ciarán can, he lives in Ennis."
            ),
            ratio=9,
        )
    )

    assert "” – I guess" not in " ".join(note.text for note in notes)


@pytest.mark.parametrize(
    ("said", "passages"),
    [
        ("The plumber comes on Tuesday. He wants 90 euros.", 1),
        ("The plumber comes on Tuesday. My sister Ana lives in Porto.", 2),
        ("Thanks a lot for all your help! He wants 90 euros.", 2),
        ("Booked. He wants 90 euros.", 1),
    ],
)
def test_a_sentence_that_says_little_alone_stays_with_the_one_before(
    said: str, passages: int
) -> None:
    rows = explain([Message.assistant("Noted."), Message.user(said)])

    assert [row.speaker for row in rows].count("user") == passages


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (Message.assistant("Where do you live?"), "I live in Lisbon with my two sons."),
        (Message.user("Where did we put the key?"), "under the third pot"),
        (Message.user("Where did we put the key?", name="Mara"), "under the third pot"),
        (Message.assistant("I looked in many places today, " * 9), "under the third pot"),
    ],
    ids=["clear alone", "the same speaker", "people", "too long"],
)
def test_other_sentences_stand_alone(before: Message, said: str) -> None:
    name = before.name and "Kim"
    notes = _notes(_request(before, Message.user(said, name=name), ratio=9))

    assert notes
    assert "“" not in " ".join(note.text for note in notes)


def test_a_quoted_draft_is_marked_as_one_and_decides_nothing() -> None:
    text = _whole(
        Message.assistant("A draft:\n\n> Dear Ms Kim,\n> We decided to leave on 30 June.")
    )
    assert "> We decided to leave on 30 June" in text


def test_a_quotation_stands_behind_the_sentence_that_introduces_it() -> None:
    said = (
        "Agreed, the red tiles are out. Here is the mail from the mill:\n\n"
        '"We are nine people and deliver 40 tonnes of flour to your region each year. '
        'We offer a discount of 12 percent for contracts signed before 31 May."'
    )

    text = _whole(Message.user(said))

    assert "mail from the mill: “We are nine people" in text
    assert "tiles are out: “" not in text


def test_of_pasted_mark_up_the_words_are_kept() -> None:
    page = '<div class="card mt-4"><span id="x1">Total 45 €</span></div>'
    text = _whole(Message.user(f"The page shows this:\n{page}\nIt should be 54 €."))
    assert "Total 45 €" in text
    assert "mt-4" not in text


def test_a_fence_within_a_pasted_diff_does_not_end_it() -> None:
    diff = "```diff\n+ Run it:\n+ ```bash\n+ cp draft.env final.env\n+ ```\n```"
    assert "draft.env" not in _whole(Message.assistant(f"The change to the manual:\n{diff}"))


def test_what_leads_a_list_says_what_its_items_are() -> None:
    notes = _notes(
        _request(
            Message.assistant(
                "All done.\n\nStill open, by date:\n\n"
                "1. 17 March: sales for KTX 027.\n2. 30 March: cancel HC-88104.\n\n"
                "What I can't do:\n- Reach hosts beyond gate B42\n- Read tape 7"
            ),
            ratio=9,
        )
    )
    text = "\n".join(note.text for note in notes)
    assert text.count("What I can't do: Reach hosts beyond gate B42") == 1


@pytest.mark.parametrize("ratio", [0.9, 1.1, 3])
def test_an_item_of_a_list_that_denies_is_not_noted_without_its_label(ratio: float) -> None:
    label = "Please never do any of the following things on production"
    notes = _notes(_request(Message.user(f"{label}:\n- restart db-4\n- drop a table"), ratio=ratio))
    assert [note.text for note in notes if "db-4" in note.text and label not in note.text] == []


PLAN = """The plan:

- Deployment (by Kim): in two steps
  1. staging: alpha-7, on Mondays
     - roll back to 4.2 within 10 minutes
  2. production: beta-2
- On Fridays nobody may do any of this:
\t* restart db-4
\t* drop the table of orders
- Costs: 90 €
"""


@pytest.mark.parametrize("ratio", [0.5, 0.8, 9])
@pytest.mark.parametrize("speak", [Message.user, Message.assistant])
def test_an_item_of_an_inner_list_is_not_noted_without_the_items_that_it_belongs_to(
    speak: Callable[[str], Message], ratio: float
) -> None:
    found = " ".join(note.text for note in _notes(_request(speak(PLAN), ratio=ratio)))
    above = {
        "alpha-7": "Deployment (by Kim)",
        "4.2": "Deployment (by Kim): staging",
        "beta-2": "Deployment (by Kim)",
        "db-4": "On Fridays nobody may do any of this",
        "orders": "On Fridays nobody may do any of this",
    }

    shown = [value for value in above if value in found]
    assert shown
    for value in shown:
        assert above[value] in found[: found.index(value)]
    assert "this: Costs" not in found


def test_a_list_after_an_inner_one_is_not_taken_for_a_part_of_it() -> None:
    text = "Hosts:\n- staging\n  - alpha-7 with 4 cores\n\nWe bought for the office:\n  - four chairs from Bo"
    found = "\n".join(n.text for n in _notes(_request(Message.assistant(text), ratio=9)))

    assert "Hosts: staging: alpha-7" in found
    assert "staging: four chairs" not in found


def test_a_quoted_line_and_the_answer_to_it_are_two_notes() -> None:
    said = "> Can you come to hall 7 on Friday?\nYes, I'll come on Friday."
    notes = _notes(_request(Message.user(said), Message.assistant("Noted."), ratio=9))
    assert [note.text for note in notes] == ["> come hall 7 on Friday?", "Yes, I'll come on Friday"]


def test_what_follows_a_list_does_not_read_as_one_of_its_items() -> None:
    rules = "Never do:\n- push to the main branch\n- delete rows of table 7\n\n"
    notes = _notes(
        _request(Message.user(f"{rules}Deploy with make release from gate B42."), ratio=9)
    )
    *listed, last = (note.text.partition(" ")[0] for note in notes)
    assert (set(listed), last) == ({"Never"}, "Deploy")


def test_what_a_change_should_bring_is_not_what_it_brought() -> None:
    notes = _notes(
        _request(
            Message.assistant("It should now:\n- work: all 14 tests passed\n- fit 768 px"), ratio=9
        )
    )
    assert notes
    assert all(note.tag == "Fact" for note in notes)


@pytest.mark.parametrize(
    "said",
    [
        "No emojis in either.",
        "From now on give me dates with their weekday.",
        "You must never mention the roof.",
        "これからは日付に曜日を付けてください。",
        "앞으로는 항상 한국어로 답해 줘.",
    ],
)
def test_a_standing_instruction_comes_before_figures(said: str) -> None:
    chatter = [Message.user(f"The {n}th train to Turku had {n + 3} wagons.") for n in range(60)]
    notes = _notes(_request(Message.user(said), *chatter, ratio=0.1))
    assert notes[0].first_seq == 1


def test_an_outcome_comes_after_the_trouble_it_ends() -> None:
    text = render_notes(
        _notes(
            _request(
                Message.assistant("I will run the 41 tests of sync/writer.py."),
                Message.tool("c", "ERROR: 1 test failed in sync/writer.py, line 58"),
                Message.assistant("Fixed: all 42 tests of sync/writer.py pass."),
                ratio=9,
            )
        ),
        "compact",
    )
    assert text.index("ERROR: 1 test failed") < text.index("Fixed: all 42 tests")


def test_a_request_for_something_done_is_not_done() -> None:
    notes = _notes(_request(Message.user("Can you go back to when you fixed gate B42?"), ratio=9))
    assert [note.tag for note in notes] == ["Fact"]


def test_each_day_has_its_own_lines() -> None:
    late = datetime(2026, 3, 2, 23, 30, tzinfo=UTC)
    notes = _notes(
        _request(
            Message.user("I fed the heron in Turku.", created_at=late),
            Message.user("I fed the otter in Bath.", created_at=late + timedelta(hours=1)),
            ratio=9,
        )
    )
    assert [note.observed_at.day for note in notes if note.observed_at] == [2, 3]


def test_people_who_talk_past_midnight_say_today_of_the_new_day() -> None:
    late = datetime(2026, 3, 2, 23, 55, tzinfo=UTC)
    talk = (
        Message.user("The landlord of Turku sold the kiln.", name="Ana"),
        Message.assistant("Oh no, the kiln of Turku!", name="Bo"),
        Message.user("My interview in Bath is today.", name="Ana"),
    )
    times = (late + timedelta(minutes=4 * n) for n in range(len(talk)))
    notes = _notes(
        _request(*(m.replace(created_at=at) for m, at in zip(talk, times, strict=True)), ratio=9)
    )
    assert [n.observed_at and n.observed_at.day for n in notes if "today" in n.text] == [3]


def test_what_is_pasted_stays_the_words_of_who_said_it_first() -> None:
    said = "The 41 tests of sync/writer.py need the Turku fixture before 14 March."
    told = [Message.assistant(f"{said} Hall {n} has {n} looms and a kiln.") for n in range(4)]
    notes = _notes(_request(*told, Message.user(f"{said} What now?"), ratio=9))
    assert [note.speaker for note in notes if "Turku" in note.text] == ["assistant"]


def test_what_an_agent_repeats_of_a_result_is_the_agents() -> None:
    found = "The booking reference is X7K9Q2 and the flight leaves at 13:25 from gate B42."
    call = ToolCallPart(id="c1", name="lookup", arguments="{}")
    request = _request(
        Message.user("What is the booking reference of the flight to Turku?"),
        Message.assistant(tool_calls=[call]),
        Message.tool("c1", found),
        Message.assistant(found),
        ratio=0.8,
    )
    assert [note.speaker for note in _notes(request) if "X7K9Q2" in note.text] == ["assistant"]


def test_of_a_result_the_rows_that_somebody_takes_up_come_first() -> None:
    rows = ", ".join(
        f'{{"reservation": "R-{n}41", "seat": "{n}C", "fare": {n}90}}' for n in range(5, 8)
    )
    text = render_notes(
        _notes(
            _request(
                Message.tool("c", f'{{"bookings": [{rows}]}}'),
                Message.user("Please cancel R-641."),
                ratio=0.3,
            )
        ),
        "compact",
    )
    assert text.count("R-641") > text.count("R-541") + text.count("R-741")


def test_a_number_that_no_list_counts_up_to_is_not_the_mark_of_an_item() -> None:
    asked = Message.assistant("How many guests will there be?")
    notes = _notes(_request(asked, Message.user("40. The hall costs 150 euros."), ratio=9))
    assert [note.text for note in notes] == [
        "“How many guests will there be?” – 40; The hall costs 150 euros"
    ]


def test_what_a_user_asks_to_forget_is_in_no_note_without_the_request() -> None:
    said = Message.user("My blood pressure was 150 over 95, so I take ramipril 5 mg now.")
    request = Message.user("Please forget what I told you about my blood pressure, that's private.")
    messages = (said, Message.assistant("Take care."), request, Message.assistant("Of course."))
    short, whole = (
        "\n".join(note.text for note in _notes(_request(*messages, ratio=ratio)))
        for ratio in (0.6, 9)
    )

    assert "forget" in short
    assert "ramipril" not in short
    assert "forget" in whole
    assert "ramipril" in whole


def test_a_list_that_goes_on_from_another_has_items_from_its_first_number_on() -> None:
    text = at_once(readable_text("Steps:\n5. Install Docker\n6. Run it"))
    assert text == "Steps:\n• Install Docker\n• Run it"


def test_a_brief_answer_stays_with_what_follows_it() -> None:
    asked = Message.assistant("Do you leave on the 14th, or push it by a week?")
    notes = _notes(_request(asked, Message.user("push. sat 21"), ratio=9))
    assert [note.text for note in notes][-1].endswith("push; sat 21")


def test_a_line_ends_a_sentence_also_after_an_abbreviation() -> None:
    said = "It keeps gate B42, hall 7 etc.\n- It moves kiln 3 to Turku."
    assert (
        _whole(Message.assistant(said)) == "It keeps gate B42, hall 7 etc; It moves kiln 3 to Turku"
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("I don`t like coffee.", "I can`t eat nuts."),
        ("Perche` no?", "La citta` mi piace."),
        ("Моя сім`я живе в Києві.", "Мені п`ять років."),
    ],
)
def test_a_backtick_as_an_apostrophe_begins_no_code(first: str, second: str) -> None:
    text = f"{first} {second}"

    assert [text[start:end] for start, end in sentences(text)] == [first, second]
    assert len(tuple(words(text, vocabulary_of(text), opens=True))) == len(text.split())


def test_what_can_be_chosen_is_not_chosen_yet() -> None:
    offer = "Options:\n- Switch to ReportLab, not WeasyPrint\n- We use 14 workers"
    notes = _notes(_request(Message.user("WeasyPrint is slow."), Message.assistant(offer), ratio=9))
    assert {note.tag for note in notes} == {"Fact"}
    assert all(note.supersedes is None for note in notes)


def test_the_day_of_a_german_date_does_not_end_its_sentence() -> None:
    text = _whole(Message.user("Er kann erst am 1. Juni anfangen, das Bad kostet 18.900 Euro."))
    assert "am 1. Juni anfangen" in text


@pytest.mark.parametrize(
    ("said", "noted"),
    [
        ("The staging password is [secret].", "The staging password is [secret]"),
        ("Yesterday's outage lasted 40 minutes.", "October 4's outage lasted 40 minutes"),
        ("We move to York next month.", "We move to York next month (November)"),
        ("Es ist nicht am 18., es ist am 19. Mai.", "Es ist nicht am 18., es ist am 19. Mai"),
    ],
)
def test_a_note_keeps_the_marks_of_its_sentence(said: str, noted: str) -> None:
    message = Message.user(said, created_at=datetime(2026, 10, 5, 10, tzinfo=UTC))
    assert _whole(message) == noted


def _split(text: str) -> list[str]:
    return [text[span.start : span.end] for span in sentences(text)]


@pytest.mark.parametrize(
    "sentence",
    [
        "Frau Meier ist die 2. Vorsitzende im Verein.",
        "Eva Meier, 2. Vorsitzende, ruft morgen an.",
        "2. Vorsitzende ist jetzt Eva Meier.",
        "Wir wohnen im 3. Stock.",
        "Das Rote Kreuz hat am 31. Katastrophenübung.",
        "Please pay invoice no. H-2291 by Friday.",
        "It is in bill no. 4711 of May.",
        "Die Buchung hat Nr. 5557-88.",
        "Wir liefern z. B. nach Kassel.",
        "Das Lager ist in der Hauptstr. 5 in Kassel.",
        "Meine Schadennr. S-9981 ist noch offen.",
        "Meine Bestellnr. lautet 4711.",
        "Het ordernr. BE-2231 klopt niet.",
        "Die Art.-Nr. X100 fehlt auf der Rechnung.",
        "die rechnung vom 12.1. immer noch nicht bezahlt, 740 euro",
        "ich mach den markt am 16. und 17. mai",
        "2. bis 9. Januar ist unser Urlaub.",
        "5. und 6. Mai habe ich frei.",
        "5. til 9. maj er vi i Skagen.",
        "take half at 8 a.m. and one at 9 p.m. for 4 days",
        "contract no. ____ with effect from 31 october",
        "The depot is approx. 3 miles away.",
    ],
)
def test_the_period_of_an_ordinal_or_of_an_abbreviation_ends_no_sentence(sentence: str) -> None:
    assert _split(sentence) == [sentence]


def test_a_day_that_opens_a_message_is_no_number_of_an_item() -> None:
    assert _whole(Message.user("1. bis 9. Januar bin ich weg.")) == "1. bis 9. Januar bin ich weg"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("I am 25.", "Sarah is 30."),
        ("Ich bin 25.", "Mein Bruder ist 30."),
        ("Wir treffen uns am 2.", "Ich bringe Kuchen mit."),
        ("The score was 3 to 2.", "We won."),
        ("I have 12.", "The others have none."),
        ("My sister says no.", "Then we go without her."),
        ("Ich habe keine Kundennr.", "Kannst du sie suchen?"),
        ("Wir wohnen in der Hauptstr.", "Mein Bruder auch."),
        ("Der Platz ist gut.", "B12 nehme ich wieder."),
    ],
)
def test_a_number_or_a_no_may_end_a_sentence(first: str, second: str) -> None:
    assert _split(f"{first} {second}") == [first, second]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("मैं पुणे में रहता हूँ।", "मेरी बेटी का नाम ईरा है।"),
        ("摇号中了！！", "我们提了一辆白色的车。"),
        ("ما هذا؟", "أنا أسكن في حلب."),
        ("متى نلتقي؟؟", "أنا في البيت."),
        ("میں لاہور میں رہتا ہوں۔", "میری بیٹی کا نام سارہ ہے۔"),
    ],
)
def test_the_marks_of_hindi_urdu_and_arabic_end_a_sentence(first: str, second: str) -> None:
    assert _split(f"{first} {second}") == [first, second]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("ကျွန်တော် ရန်ကုန်မှာ နေပါတယ်။", "မြေပဲ မစားဘူး။"),
        ("ខ្ញុំរស់នៅភ្នំពេញ។", "ខ្ញុំមានឆ្មា។"),
        ("Ես ապրում եմ Երևանում։", "Կատվիս անունը Մանգո է։"),
        ("ወዴት ትሄዳለህ፧", "በአዲስ አበባ እኖራለሁ።"),
        ("ང་ལྷ་ས་ནས་ཡིན།", "ངའི་མིང་ལ་ཟེར།"),
        ("Πού μένεις;", "Μένω στη Θεσσαλονίκη."),
        ("Πού μένεις\u037e", "Μένω στη Θεσσαλονίκη."),
    ],
)
def test_the_marks_of_other_scripts_end_a_sentence(first: str, second: str) -> None:
    assert _split(f"{first} {second}") == [first, second]


def test_a_burmese_sentence_ends_without_a_space() -> None:
    assert len(_split("ရန်ကုန်မှာ နေပါတယ်။မြေပဲ မစားဘူး။")) == 2


def test_a_line_with_a_number_alone_is_a_sentence() -> None:
    assert _split("How many?\n25.\nSarah has 30.") == ["How many?", "25.", "Sarah has 30."]


@pytest.mark.parametrize(
    "said",
    [
        "Nunca me propongas salmón.",
        "Ne me propose jamais de saumon.",
        "Schlag mir niemals Lachs vor.",
    ],
)
def test_what_must_never_be_comes_first_in_any_language(said: str) -> None:
    chatter = [Message.user(f"The {n}th train to Turku had {n + 3} wagons.") for n in range(60)]
    notes = _notes(_request(Message.user(said), *chatter, ratio=0.1))
    assert notes[0].first_seq == 1


@pytest.mark.parametrize(
    "said",
    [
        "Please don't mention the roof again.",
        "Soy alérgica a los frutos secos.",
        "Je suis allergique aux crustacés.",
        "Ich bin gegen Nüsse allergisch.",
    ],
)
def test_what_a_user_states_comes_before_the_figures_of_an_agent(said: str) -> None:
    chatter = [
        Message.assistant(f"The {n}th train to Turku had {n + 3} wagons.") for n in range(60)
    ]
    notes = _notes(_request(Message.user(said), *chatter, ratio=0.1))
    assert notes[0].first_seq == 1


def test_a_table_reads_as_lists_of_its_cells() -> None:
    table = "| Floor | Price |\n|---|---|\n| Cork | 35 € |\n| Vinyl | 28 € |"
    assert _whole(Message.assistant(table)).endswith("Cork, 35 €; Vinyl, 28 €")


_ROWS = [
    {"id": 4_000 + n, "customer": _PLACES[n % 8], "status": "shipped", "total": n * 13.5 + 9.99}
    for n in range(60)
]


@pytest.mark.req("L-08", "Z-49")
@pytest.mark.parametrize("note_format", get_args(NoteFormat))
@pytest.mark.parametrize(
    "output",
    [
        json.dumps(_ROWS),
        "\n".join(json.dumps(row) for row in _ROWS),
        "\n".join(" | ".join(map(str, row.values())) for row in _ROWS),
        "\n".join(f"Order {r['id']} to {r['customer']} has shipped: {r['total']}." for r in _ROWS),
    ],
    ids=["array", "lines of JSON", "table", "sentences"],
)
def test_of_a_large_result_the_question_and_the_outcome_are_noted_and_a_share_of_rows(
    output: str, note_format: NoteFormat
) -> None:
    request = _request(
        Message.user("How many orders do we have, and is any of them still open?"),
        Message.assistant(tool_calls=[ToolCallPart(id="c", name="list_orders", arguments="{}")]),
        Message.tool("c", output),
        Message.assistant("There are 60 orders, all shipped."),
        ratio=0.2,
        note_format=note_format,
    )
    notes = _notes(request)

    rows = sum(count_utf8_tokens(note.text) for note in notes if note.speaker == "tool")
    text = render_notes(notes, note_format)
    assert "How many orders do we have, and is any of them still open" in text
    assert "60 orders, all shipped" in text
    assert rows <= request.target_tokens / 4


def test_a_question_keeps_its_mark_inside_and_at_the_end_of_a_line() -> None:
    said = _whole(
        Message.user("Will the advance be deducted? Not now. I pay 5,000 for the panels.")
    )
    asked = _whole(
        Message.user("The harvest festival is on 4 July."),
        Message.assistant("Shall I order the marquee from Brandt at 120 euros?"),
    )

    assert "deducted?" in said
    assert "120 euros?" in asked


def test_a_word_or_two_that_qualify_a_sentence_stay_with_it() -> None:
    assert (
        "handles nested lists; only on linux"
        in _whole(Message.user("The parser handles nested lists. Only on Linux. Thanks!")).lower()
    )


def test_an_agent_is_quoted_in_whole_clauses_and_its_small_talk_is_left_out() -> None:
    told = _whole(
        Message.user("The load of the archive failed again at 4 this morning."),
        Message.assistant(
            "I'm sorry! If it is not live by 18:00, roll back and order on Monday. "
            "Is there anything else I can help you with?"
        ),
    )

    assert "roll back and order on Monday" in told
    assert "anything else" not in told


@pytest.mark.parametrize("name", [None, "planner"])
def test_an_agent_is_one_whatever_the_agent_or_the_user_is_called(name: str | None) -> None:
    said = "The ferry to Turku leaves from gate B42 at 13:25."
    sentences = explain(
        [
            Message.user(said, name="assistant"),
            Message.assistant("Noted."),
            Message.assistant("The train to Bath leaves from gate B43 at 14:25.", name=name),
        ]
    )
    features = {each.text: {factor.feature for factor in each.factors} for each in sentences}
    by_agent = [text for text, found in features.items() if "said by the agent" in found]
    assert by_agent == ["Noted.", "The train to Bath leaves from gate B43 at 14:25."]


def test_relative_dates_in_a_quoted_text_stay_as_they_are() -> None:
    told = _whole(
        Message.user(
            'Please correct: "Sehr geehrte Frau Weiss, ich habe seit zwei Tagen Schmerzen."'
        )
    )

    assert "seit zwei Tagen" in told


def test_a_word_for_today_and_the_slash_of_a_name_stay() -> None:
    told = _whole(Message.user("Don't let me touch the server tonight. Branches start with ci/."))

    assert "touch the server tonight" in told
    assert "start with ci/" in told


def test_of_thousands_of_short_lines_both_ends_are_read() -> None:
    lines = "\n".join(f"Row {number}." for number in range(4_000))
    request = observe_request(Message.user(lines), Message.assistant("I see."))

    read = [passage.source for passage in at_once(choose(request)).passages]

    assert len(read) <= 2_001
    assert (read[0], read[-2]) == ("Row 0.", "Row 3999.")


def test_a_short_wish_on_answers_is_not_lost_among_other_things_never_to_be_lost() -> None:
    lasting = (
        "I'm allergic to penicillin and to wasp stings since 2019.",
        "My son Jonas was born on 14 March 2021 in Utrecht.",
        "We decided to rent the flat in Rua Augusta 12 for 1,250 euros.",
        "Please keep your answers short.",
        "Our wedding is on 19 September 2026 at Castle Howard.",
        "My employer is Siemens Energy in Erlangen.",
    )
    talk = [said for text in lasting for said in (Message.user(text), Message.assistant("Noted."))]

    notes = _notes(_request(*talk, ratio=0.4))

    assert len(notes) < len(lasting)
    assert "Please keep your answers short" in [note.text for note in notes]


@pytest.mark.parametrize(
    ("reply", "note"),
    [
        ("2", "“2: Bake it in clay” – 2"),
        ("Dann b, und bald.", "“b: die Mauer stehen lassen” – Dann b, und bald"),
        ("Just the 2 of us.", "Just the 2 of us"),
    ],
)
def test_a_choice_by_a_label_is_noted_with_the_option_that_it_names(reply: str, note: str) -> None:
    offer = (
        "Three ways:\n1. Smoke the trout\n2. **Bake it** in clay\n3. Fry it\n\n"
        "Oder:\na) die Mauer abtragen\nb) die Mauer stehen lassen"
    )
    said = [Message.user("What shall we do?"), Message.assistant(offer), Message.user(reply)]
    choices = [n for n in _notes(_request(*said, ratio=1.0)) if n.text == note]

    assert [n.speaker for n in choices] == ["user"]
    assert choices[0].first_seq == (3 if note == reply.rstrip(".") else 2)
