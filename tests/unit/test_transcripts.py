import gzip
import json
import zipfile
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from remanence.cli.transcript_lines import FORMATS
from remanence.cli.transcripts import EMPTY_MESSAGE, Entry, entries, open_transcript
from remanence.errors import MalformedTranscript
from remanence.types import OtherPart, ToolCallPart, ToolResultPart
from remanence.wire import anthropic, openai, responses

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}


def read(*lines: Any) -> list[Entry]:  # JSON values, or lines as they stand
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    return list(entries((f"{text}\n".encode() for text in texts), name="t.jsonl"))


def said(content: object, role: str = "user", **more: object) -> dict[str, object]:
    return {"role": role, "content": content, **more}


def refusal(*lines: Any) -> str:  # as for read
    with pytest.raises(MalformedTranscript) as caught:
        read(*lines)
    return str(caught.value)


def test_messages_keep_the_order_of_their_lines_and_are_named_after_it() -> None:
    read_ = read(said("one"), "", said("two", "assistant"), "   ", said("three"))

    assert [entry.message.text for entry in read_] == ["one", "two", "three"]
    assert [entry.message.id for entry in read_] == [f"transcript:{n}" for n in (1, 2, 3)]
    assert [entry.place for entry in read_] == ["line 1", "line 3", "line 5"]


def test_names_and_times_are_kept() -> None:
    (entry,) = read(said("hi", name="Mina", created_at="2026-03-02T09:12:17+01:00"))

    assert entry.message.name == "Mina"
    assert entry.message.created_at == datetime(
        2026, 3, 2, 9, 12, 17, tzinfo=timezone(timedelta(hours=1))
    )


@pytest.mark.parametrize(
    "value",
    ["2026-03-02T08:12:17", "2026-03-02T08:12:17Z", "2026-03-02 09:12:17+01:00", 1772439137,
     1772439137.0, 1772439137000, "1772439137", " 1772439137.0 ", "1772439137000"],
)  # fmt: skip
def test_a_time_is_iso_8601_or_seconds_and_utc_where_it_names_no_zone(value: object) -> None:
    (entry,) = read(said("hi", timestamp=value))

    assert entry.message.created_at == datetime(2026, 3, 2, 8, 12, 17, tzinfo=UTC)


@pytest.mark.parametrize("value", ["202603020812", "20260302081217", "177243913", "١٧٧٢٤٣٩١٣٧"])
def test_a_time_of_other_digits_is_refused_rather_than_guessed(value: str) -> None:
    with pytest.raises(MalformedTranscript, match="is not a time"):
        read(said("hi", timestamp=value))


def test_items_of_responses_are_messages_each_under_its_number() -> None:
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "Look."}]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "x"}]},
        {"type": "message", "id": "m", "role": "assistant", "status": "completed",
         "content": [{"type": "output_text", "text": "Done.", "annotations": []}]},
    ]  # fmt: skip
    for lines in (items, [items], [{"model": "gpt-5", "input": items}], [{"output": items}]):
        messages = [entry.message for entry in read(*lines)]
        assert [message.role for message in messages] == [
            "user",
            "assistant",
            "assistant",
            "tool",
            "assistant",
        ]
        assert messages[2].name is None  # that of the function is not the speaker's
        assert messages[2].tool_calls[0].id == messages[3].tool_results[0].call_id == "c1"
        assert [message.text for message in messages if message.text] == ["Look.", "Done."]


def test_contents_of_gemini_are_messages() -> None:
    contents = [
        {"role": "user", "parts": [{"text": "Look."}]},
        {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]},
        {
            "role": "user",
            "parts": [{"functionResponse": {"name": "look", "response": {"output": "x"}}}],
        },
        {"role": "model", "parts": [{"text": "Done."}]},
    ]
    for lines in (contents, [{"systemInstruction": {}, "contents": contents}]):
        messages = [entry.message for entry in read(*lines)]
        assert [message.role for message in messages] == ["user", "assistant", "tool", "assistant"]
        assert messages[2].tool_results[0].text == "x"


@pytest.mark.parametrize(
    ("at", "read_as"),
    [
        ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59+00:00"),
        ("2017-01-01 05:44:60.5+05:45", "2017-01-01T05:44:59.500000+05:45"),
    ],
)
def test_a_leap_second_is_read_as_the_second_before_it(at: str, read_as: str) -> None:
    (entry,) = read(said("Happy new year!", created_at=at))

    assert entry.message.created_at == datetime.fromisoformat(read_as)


def test_a_tool_call_of_openai_is_paired_with_its_result() -> None:
    call, result = read(
        said(None, "assistant", tool_calls=[CALL]), said("42", "tool", tool_call_id="c1")
    )

    assert call.message.tool_calls == (ToolCallPart(id="c1", name="look", arguments='{"at": 1}'),)
    assert result.message.tool_results[0].call_id == "c1"


def test_blocks_of_anthropic_are_read_as_such() -> None:
    call, result = read(
        said(
            [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "Looking."},
                {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": 1}},
            ],
            "assistant",
        ),
        said([{"type": "tool_result", "tool_use_id": "t1", "content": "42"}]),
    )

    assert isinstance(call.message.content[0], OtherPart)
    assert call.message.text == "Looking."
    assert call.message.tool_calls[0].id == "t1"
    assert result.message.role == "tool"
    assert isinstance(result.message.content[0], ToolResultPart)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "code_execution_tool_result", "tool_use_id": "s1", "content": {"stdout": "ok"}},
        {"type": "compaction", "content": "Summary."},
        {"type": "text", "text": "Blue.", "citations": [{"type": "char_location"}]},
    ],
)
def test_a_block_that_only_anthropic_writes_comes_back_as_it_was(block: dict[str, Any]) -> None:
    (entry,) = read(said([block], "assistant"))

    assert anthropic.render("assistant", entry.message.content)[0]["content"] == [block]


def test_a_message_of_responses_keeps_its_fields_and_refusals() -> None:
    item = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "phase": "final_answer",
        "content": [{"type": "refusal", "refusal": "No."}],
    }
    (entry,) = read(item | {"conversation": "c"})

    assert responses.render("assistant", entry.message.content) == [item]


def test_reasoning_beside_an_answer_of_openai_is_kept() -> None:
    (entry,) = read(said("42", "assistant", reasoning_content="Hm.", model="m"))

    [message] = openai.render("assistant", entry.message.content)

    assert message == {"role": "assistant", "content": "42", "reasoning_content": "Hm."}


@pytest.mark.parametrize("content", ["", None, " \n", [], [{"type": "text", "text": ""}]])
def test_an_empty_message_keeps_its_place_as_control_text(content: object) -> None:
    first, second = read(said(content, "assistant"), said("hello"))

    assert (first.message.text, first.message.kind, first.empty) == (EMPTY_MESSAGE, "control", True)
    assert (second.message.id, second.empty) == ("transcript:2", False)


def test_an_empty_tool_result_is_a_result() -> None:
    _, result = read(said("", "assistant", tool_calls=[CALL]), said("", "tool", tool_call_id="c1"))

    assert not result.empty
    assert result.message.kind == "message"


ONE_CONVERSATION = [said("a"), said("b", "assistant"), said("c")]


@pytest.mark.parametrize(
    ("value", "sessions"),
    [
        (ONE_CONVERSATION, 1),
        ({"messages": ONE_CONVERSATION, "model": "m"}, 1),
        ({"sessions": [ONE_CONVERSATION[:2], ONE_CONVERSATION[2:]]}, 2),
        ({"sessions": [{"messages": ONE_CONVERSATION[:1]}, {"messages": ONE_CONVERSATION[1:]}]}, 2),
        ([ONE_CONVERSATION[:1], ONE_CONVERSATION[1:]], 2),
        ([said("a", session=1), said("b", "assistant", session=1), said("c", session=2)], 2),
    ],
)
@pytest.mark.parametrize("indent", [None, 1])
def test_every_shape_of_document_gives_the_same_messages(
    value: object, sessions: int, indent: int | None
) -> None:
    read_ = read(json.dumps(value, indent=indent))

    assert [entry.message.text for entry in read_] == ["a", "b", "c"]
    assert len({entry.session for entry in read_}) == sessions


def test_a_line_may_hold_a_whole_session() -> None:
    read_ = read({"messages": ONE_CONVERSATION}, {"messages": ONE_CONVERSATION})

    assert len(read_) == 6
    assert [entry.place for entry in read_][3:5] == ["line 2, message 1", "line 2, message 2"]


def test_the_time_of_a_session_is_that_of_its_messages() -> None:
    session = {"date": "2026-03-02", "messages": [said("a"), said("b", timestamp="2026-03-03")]}

    first, second = read(json.dumps({"sessions": [session]}))

    assert first.message.created_at == datetime(2026, 3, 2, tzinfo=UTC)
    assert second.message.created_at == datetime(2026, 3, 3, tzinfo=UTC)


def test_a_byte_order_mark_is_skipped() -> None:
    line = b"\xef\xbb\xbf" + json.dumps(said("a")).encode()

    assert [entry.message.text for entry in entries([line], name="t")] == ["a"]


def test_a_line_separator_inside_a_text_ends_no_line() -> None:
    assert read(json.dumps(said("a\u2028b"), ensure_ascii=False))[0].message.text == "a\u2028b"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (['{"role": "user", "content": '], "line 1: '{\"role\": \"user\", \"content\":' is not JSON"),
        ([said("a"), "{nope}"], "t.jsonl, line 2: '{nope}' is not JSON"),
        ([said("a"), "", '"text"'], "t.jsonl, line 3: 'text' is not an object"),
        ([said("a"), "7"], "t.jsonl, line 2: 7 is not an object"),
        ([said("a"), said("b", "robot")], "t.jsonl, line 2: role 'robot' is unknown: use one of"),
        ([{"content": "a"}], "t.jsonl, line 1: {'content': 'a'} has no role; messages are"),
        ([{"mapping": {}}], "{'mapping': {}} is part of an export: use 'remanence import'"),
        ([{"type": "event_msg", "payload": {}}], "is part of an export: use 'remanence import'"),
        ([{"mapping": 5}], "{'mapping': 5} has no role; messages are"),
        ([{"role": "user"}], "t.jsonl, line 1: {'role': 'user'} has no content: add"),
        ([said(7)], "t.jsonl, line 1: content 7 is not a text: pass a string"),
        ([said("a", created_at="yesterday")], "line 1: created_at 'yesterday' is not a time: write ISO"),
        ([said("a", timestamp=True)], "t.jsonl, line 1: timestamp True is not a time"),
        ([said("a", timestamp=1e300)], "t.jsonl, line 1: timestamp 1e+300 is not a time"),
        ([said("a", name=3)], "t.jsonl, line 1: the name of a message is 3"),
        ([said("a", "tool", tool_call_id="x1")], "line 1: the tool result answers call 'x1', which"),
        ([said("a", "tool")], "t.jsonl, line 1: a tool message has tool_call_id None"),
        ([said(None, "assistant", tool_calls={"id": 1})], "line 1: tool_calls {'id': 1} is not a"),
        ([said(None, "assistant", tool_calls=[{"id": "1"}])], "line 1: tool call {'id': '1'} is"),
        ([said("a\0b")], "t.jsonl, line 1: TextPart.text has a NUL character at position 1"),
        ([said("a\ud800b")], "t.jsonl, line 1: TextPart.text has the lone surrogate '\\ud800'"),
        ([said("a"), {"messages": [said("b"), 3]}], "t.jsonl, line 2, message 2: 3 is not an object"),
        (["[" * 100_000], "t.jsonl, line 1: "),
        ([], "t.jsonl is empty: write one message as JSON on each line"),
    ],
)  # fmt: skip
def test_a_bad_line_is_named_with_its_value_and_the_remedy(lines: list[Any], expected: str) -> None:
    assert expected in refusal(*lines)


@pytest.mark.parametrize(
    "line",
    [
        {"conversations": [{"from": "human", "value": "hi"}]},
        {"instruction": "a", "input": "", "output": "b"},
        {"type": "issue_comment", "payload": {"body": "hi"}},
        {"values": {"messages": []}},
        {"type": "message", "user": "U1", "text": "hi", "ts": "1714550000.000100"},
        {"role": "user", "content": {"format": 2, "parts": [{"type": "text", "text": "hi"}]}},
        "[01/05/2024, 09:12:33] Ana: hi",
        '"hi"',
    ],
)
def test_a_file_of_another_format_is_refused_with_the_page_on_conversion(line: object) -> None:
    assert refusal(line).endswith(f"; {FORMATS}") or refusal(line).endswith(f": {FORMATS}")
    assert "(Chat Completions and Responses)" in FORMATS


@pytest.mark.parametrize("size", [40, 45, 60])
def test_a_file_that_is_cut_off_is_named_as_such(size: int) -> None:
    whole = json.dumps([said("a long text"), said("an answer", "assistant")])

    assert refusal(whole[:size]).endswith(": it is cut off at its end: get the whole file again")


def test_a_byte_order_mark_is_ignored_also_where_files_were_joined() -> None:
    marked = f"\ufeff{json.dumps(said('hi'))}"

    assert [entry.message.text for entry in read(marked, said("there"), marked)] == [
        "hi",
        "there",
        "hi",
    ]


def test_bytes_that_are_no_utf_8_are_named_with_their_line() -> None:
    lines = [json.dumps(said("a")).encode() + b"\n", b'{"role": "user", "content": "\xff"}']

    with pytest.raises(MalformedTranscript, match="line 2: byte 0xff at position 29 is not UTF-8"):
        list(entries(lines, name="t"))


def test_an_archive_is_to_be_unpacked_and_the_file_in_it_is_named(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "exp.zip", "w") as archive:
        archive.writestr("conversations.json", "[]")

    with pytest.raises(
        MalformedTranscript, match=r"exp\.zip is a ZIP archive: unpack .* conversations"
    ):
        open_transcript(tmp_path / "exp.zip")


def test_a_compressed_file_is_to_be_unpacked(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl.gz").write_bytes(gzip.compress(json.dumps(said("a")).encode()))

    with pytest.raises(MalformedTranscript, match=r"t\.jsonl\.gz is compressed by gzip: unpack it"):
        open_transcript(tmp_path / "t.jsonl.gz")


@pytest.mark.parametrize(
    "line",
    [
        {"type": "user", "message": {"role": "user", "content": "a"}, "uuid": "u1"},
        {"type": "human", "content": "a", "id": "1"},
        {"type": "human", "data": {"content": "a"}},
    ],
    ids=["Claude Code", "LangChain", "LangChain, as dict"],
)
def test_an_object_of_an_unknown_type_is_refused(line: dict[str, Any]) -> None:
    assert "is not one of OpenAI's Responses API" in refusal(json.dumps(line))


def test_a_broken_document_is_named_with_the_line_in_it() -> None:
    text = '[\n {"role": "user", "content": "a"},\n {"role": "user" "content": "b"}\n]'

    assert "t.jsonl, line 3: " in refusal(*text.split("\n"))


def test_a_broken_first_line_is_told_from_a_document() -> None:
    assert "t.jsonl, line 1: " in refusal('{"role": "user", "content": "a"', said("b"))


def test_a_file_is_read_again_for_its_messages(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text("\n".join(json.dumps(m) for m in [*ONE_CONVERSATION, said("")]))

    transcript = open_transcript(file)

    assert (transcript.messages, transcript.sessions) == (4, 1)
    assert transcript.empty_places == ("line 4",)
    assert [e.message.text for e in transcript.entries()] == ["a", "b", "c", EMPTY_MESSAGE]
    assert len(list(transcript.entries())) == 4


def test_a_document_without_messages_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_text('{"messages": []}')

    with pytest.raises(MalformedTranscript, match=r"t\.json holds no message"):
        open_transcript(file)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(MalformedTranscript, match=r"missing\.jsonl' cannot be read"):
        open_transcript(tmp_path / "missing.jsonl")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "role",
                    "content",
                    "type",
                    "text",
                    "tool_calls",
                    "tool_call_id",
                    "id",
                    "function",
                    "name",
                    "arguments",
                    "messages",
                    "sessions",
                    "timestamp",
                    "session",
                    "refusal",
                ]
            ),
            inner
            | st.sampled_from(["user", "assistant", "tool", "text", "tool_use", "tool_result"]),
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(st.lists(json_values, max_size=4))
def test_any_json_gives_numbered_messages_or_one_refusal(values: list[Any]) -> None:  # any JSON
    with suppress(MalformedTranscript):
        read_ = read(*values)
        assert [e.message.id for e in read_] == [
            f"transcript:{n}" for n in range(1, len(read_) + 1)
        ]


@given(st.binary(max_size=60))
def test_any_bytes_give_messages_or_one_refusal(data: bytes) -> None:
    with suppress(MalformedTranscript):
        list(entries(data.splitlines(keepends=True), name="t"))
