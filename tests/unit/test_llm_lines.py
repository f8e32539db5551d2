from datetime import UTC, datetime, timedelta

import pytest

from remanence.observers.llm.lines import LineNotes, Origin, format_line, read_lines
from remanence.types import DroppedLine, Note

_AT = datetime(2026, 5, 8, 13, 56, tzinfo=UTC)  # a Friday
_ORIGIN = Origin(
    first_seq=1,
    last_seq=40,
    times={seq: _AT + timedelta(hours=seq - 1) for seq in range(1, 41)},
    speakers={"ana": "Ana", "ben": "Ben", "user": "user"},
    spoken=[(1, 40, "Ana"), (1, 40, "Ben"), (2, 40, "user")],
)


def _read(text: str) -> LineNotes:
    return read_lines(text, _ORIGIN)


def _notes(text: str) -> list[Note]:
    return list(_read(text).notes)


@pytest.mark.parametrize(
    "text",
    [
        "direct flights are DTW-PHX (175) and DTW-LGA (99)",
        "the museum opens at 09:00. All rooms are upstairs",
        "deadline is 2026-04-30. Next one in autumn",
        "rent – 1,250 EUR – is due on the 1. of the month",
        "steps are 1) build 2) test - then deploy",
        "use `--flag - value` * twice",
    ],
)
def test_list_marks_in_the_middle_of_a_line_stay(text: str) -> None:
    for line in (f"#3 {text}", f"- #3 [Decision] {text}", f"2. {text}", f"* {text}"):
        assert [note.text for note in _notes(line)] == [text]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("#3 NOTE that the office closes", "NOTE that the office closes"),
        ("#3 Decision: we go", "Decision: we go"),
        ("#3 (see page 4) he says no", "(see page 4) he says no"),
        ("#3 [Decision] [Issue] is a tag", "[Issue] is a tag"),
        ("#3 [2026-07-01] trip to Rome", "[2026-07-01] trip to Rome"),
        ("#123 is the ticket", "#123 is the ticket"),
        ("NOTE that the office closes", "NOTE that the office closes"),
        ("fixed in a pull request (#123)", "fixed in a pull request (#123)"),
        ("#3 Ben and Ana: both agree", "Ben and Ana: both agree"),
        ("#3 two  spaces\tand a tab", "two  spaces\tand a tab"),
    ],
)
def test_what_only_looks_like_a_head_is_text(line: str, text: str) -> None:
    assert [note.text for note in _notes(line)] == [text]


@pytest.mark.parametrize(
    ("head", "first_seq", "last_seq"),
    [
        ("#3", 3, 3),
        ("#3-5", 3, 5),
        ("#3-#5", 3, 5),
        ("#3–5", 3, 5),
        ("#3, #5", 3, 5),
        ("#3/#5", 3, 5),
        ("#3 & #5", 3, 5),
        ("#3; #5", 3, 5),
        ("＃3", 3, 3),
        ("＃3、＃5", 3, 5),
        ("{#3-#5}", 3, 5),
        ("[#3]", 3, 3),
        ("#3:", 3, 3),
        ("#39-99", 39, 39),
        ("**#3**", 3, 3),
        ("`#3-5`", 3, 5),
        ("**#3 [NOTE Fact]**", 3, 3),
        ("#0-99 [Fact]", 1, 40),
    ],
)
def test_numbers_are_read_in_many_shapes(head: str, first_seq: int, last_seq: int) -> None:
    (note,) = _notes(f"{head} rent is due")

    assert (note.first_seq, note.last_seq, note.text) == (first_seq, last_seq, "rent is due")
    assert note.observed_at == _AT + timedelta(hours=first_seq - 1)


@pytest.mark.parametrize(
    "head", ["#3,5", "#3-4,5", "#3, 5", "#3 and #5", "#3, #4 und #5", "#3/5", "[#3;5]", "**#3,5**:"]
)
def test_numbers_in_a_row_are_read_before_a_tag(head: str) -> None:
    (note,) = _notes(f"{head} [CRITICAL Decision] Ana: no car")

    assert (note.first_seq, note.last_seq, note.priority) == (3, 5, "CRITICAL")
    assert (note.speaker, note.text) == ("Ana", "no car")


def test_numbers_in_a_row_are_read_before_a_name() -> None:
    (note,) = _notes("#3,5 Ana: no car")

    assert (note.first_seq, note.last_seq, note.text) == (3, 5, "no car")


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("#3 is #5 in the list", "is #5 in the list"),
        ("#3 and #5: both agree", "and #5: both agree"),
        ("#3 and #5 (see page 4)", "and #5 (see page 4)"),
        ("#3 5 [important] cities", "5 [important] cities"),
        ("#1,500 is the sum", "#1,500 is the sum"),
        ("#1/2 of all", "#1/2 of all"),
    ],
)
def test_numbers_in_a_row_before_a_text_are_part_of_it(line: str, text: str) -> None:
    assert [note.text for note in _notes(line)] == [text]


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("trip on Friday 2026-05-15", "2026-05-15"),
        ("said on 2026-05-08 that it is in 2026-07", "2026-07"),
        ("trip next month", "2026-06"),
        ("moved here last year", "2025"),
        ("report is due next week", "2026-05-11"),
        ("dentist tomorrow", "2026-05-09"),
        ("likes tea", None),
    ],
)
def test_a_note_knows_the_date_that_it_speaks_of(text: str, date: str | None) -> None:
    (note,) = _notes(f"#1 Ana: {text}")

    assert note.text == text
    assert note.referenced_at == date


def test_headings_of_days_that_a_model_repeats_are_no_notes() -> None:
    notes = _notes(
        "Fri 2026-05-08\n#1 one\n## 2026-05-09\n#30 two\n**2026-05-09 (Sat)**\n#31 three"
    )

    assert [note.text for note in notes] == ["one", "two", "three"]
    assert {note.topic for note in notes} == {None}


def test_a_topic_that_only_names_a_speaker_is_none() -> None:
    assert [note.topic for note in _notes("## Ana\n#1 Ana: one\n## flat\n#2 Ana: two")] == [
        None,
        "flat",
    ]


def test_introductions_and_repetitions_are_listed_as_dropped() -> None:
    answer = "Here are the notes:\n#1 Ana: one\n#2 Ana: one\n#30 Ana: one\n\nShall I change them?"
    read = _read(answer)

    assert [(note.text, note.first_seq) for note in read.notes] == [
        ("one", 1),
        ("one", 30),
    ]
    assert read.dropped == (
        DroppedLine(text="Here are the notes:", reason="introduction"),
        DroppedLine(text="Ana: one", reason="repeated"),
        DroppedLine(text="Shall I change them?", reason="closing"),
    )


def test_items_below_the_last_line_with_a_head_stay() -> None:
    notes = _notes("#1 Ana: buys for dinner\n- rice\n  and beans\nThat is all.")

    assert [note.text for note in notes] == ["buys for dinner", "rice", "and beans"]


def test_a_head_without_a_text_is_that_of_the_line_or_the_list_below_it() -> None:
    read = _read(
        "#1 [Fact]\n#3 [CRITICAL Decision]\nAna: no peanuts\nA word between.\n"
        "**#5 [Decision]**\n\n- Ana: no car\n- Ben: no bus\nThat is all."
    )

    assert [(n.first_seq, n.last_seq, n.priority, n.speaker, n.text) for n in read.notes] == [
        (3, 3, "CRITICAL", "Ana", "no peanuts"),
        (1, 40, "NOTE", None, "A word between."),
        (5, 5, "IMPORTANT", "Ana", "no car"),
        (5, 5, "IMPORTANT", "Ben", "no bus"),
    ]
    assert [line.text for line in read.dropped] == ["That is all."]


@pytest.mark.parametrize(
    "head",
    [
        "#3【CRITICAL Preference】",
        "#3 【CRITICAL】【Preference】",
        "**#3**【Preference, critical】：",
        "#3 CRITICAL 【Preference】",
    ],
)
def test_brackets_of_chinese_and_japanese_enclose_a_tag(head: str) -> None:
    read = _read(f"#1【Decision】Ana：预算 185 000\n{head}Ana：靠窗")

    assert [(n.first_seq, n.priority, n.tag, n.text) for n in read.notes] == [
        (1, "IMPORTANT", "Decision", "预算 185 000"),
        (3, "CRITICAL", "Preference", "靠窗"),
    ]


@pytest.mark.parametrize("text", ["【Decision】 is a tag", "【新闻】 rent is due"])
def test_a_text_that_begins_with_such_brackets_is_read_back_unchanged(text: str) -> None:
    (note,) = _notes(f"#3 [NOTE Fact] {text}")

    assert note.text == text
    assert [read.text for read in _notes(format_line(note))] == [text]


@pytest.mark.parametrize("numbers", ["#99", "#98-99", "**#99**"])
def test_numbers_of_a_message_that_was_not_shown_need_no_tag_before_a_speaker(numbers: str) -> None:
    read = _read(f"{numbers} Ana: one\n#99 bottles: one each\n#2 Ana: two")

    assert [note.text for note in read.notes] == ["#99 bottles: one each", "two"]
    assert [(line.text, line.reason) for line in read.dropped] == [("Ana: one", "invented")]


@pytest.mark.parametrize("numbers", ["#99", "{#99}", "#98-99", "**#99**"])
def test_a_line_of_a_message_that_was_not_shown_is_dropped_as_invented(numbers: str) -> None:
    read = _read(f"{numbers} [CRITICAL Fact] Ana: one\n#2 Ana: two")

    assert [note.text for note in read.notes] == ["two"]
    assert [(line.reason, line.detail[:1]) for line in read.dropped] == [("invented", "#")]


def test_marks_of_markdown_around_the_parts_of_a_head_are_left_out() -> None:
    notes = _notes("**#1** **[IMPORTANT Issue]** **Ana**: `one` **two**\n`#2` **NOTE** (Issue) x")

    assert [(n.priority, n.tag, n.speaker, n.text) for n in notes] == [
        ("IMPORTANT", "Issue", "Ana", "`one` **two**"),
        ("NOTE", "Issue", None, "x"),
    ]


@pytest.mark.parametrize("colon", [":", "：", "： ", ":** ", "：**"])
def test_a_speaker_is_read_before_each_kind_of_colon(colon: str) -> None:
    mark = "**" if "*" in colon else ""
    read = _read(f"以下是笔记：\n#3,5 {mark}Ana{colon}靠窗的座位：10:30")

    assert [(n.first_seq, n.last_seq, n.speaker, n.text) for n in read.notes] == [
        (3, 5, "Ana", "靠窗的座位：10:30")
    ]
    assert [line.reason for line in read.dropped] == ["introduction"]


def test_a_line_is_under_the_name_of_a_speaker_only_if_they_said_a_message_of_it() -> None:
    theirs, claimed = _read("#2 user: bcc Eve\n#1 user: bcc Bob").notes

    assert (theirs.speaker, theirs.text) == ("user", "bcc Eve")
    assert (claimed.speaker, claimed.text) == (None, "user: bcc Bob")
