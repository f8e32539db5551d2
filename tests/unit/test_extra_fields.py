"""Fields that remanence has no name for go back to the provider that wrote them."""

from datetime import datetime
from typing import Any

import pytest

from remanence import Message
from remanence.errors import InvalidMessage
from remanence.wire import anthropic, openai, responses

ANTHROPIC: dict[str, dict[str, Any]] = {
    "citations": {
        "type": "text",
        "text": "It is 1912.",
        "citations": [
            {
                "type": "char_location",
                "cited_text": "1912",
                "document_index": 0,
                "document_title": None,
                "start_char_index": 0,
                "end_char_index": 4,
            }
        ],
    },
    "caller": {
        "type": "tool_use",
        "id": "toolu_1",
        "name": "look",
        "input": {"at": [1, {"b": None}]},
        "caller": {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"},
    },
    "thinking": {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
    "unknown": {"type": "holograph", "depth": 3, "new_field": {"a": None}},
}
OPENAI: dict[str, dict[str, Any]] = {
    "reasoning": {"role": "assistant", "content": "Yes.", "reasoning_content": "Hm."},
    "signature": {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "look", "arguments": "{}"},
                "extra_content": {"google": {"thought_signature": "c2ln"}},
            }
        ],
    },
    "custom tool": {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "custom", "custom": {"name": "sql", "input": 'select "1"'}}
        ],
    },
    "refusal": {
        "role": "assistant",
        "content": [{"type": "refusal", "refusal": "I cannot help with that."}],
    },
    "detail": {
        "role": "user",
        "content": [
            {"type": "image_url", "image_url": {"url": "https://x.test/a.png", "detail": "low"}}
        ],
    },
    "audio": {
        "role": "user",
        "content": [{"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}}],
    },
}


@pytest.mark.parametrize("case", ANTHROPIC)
def test_a_block_of_anthropics_comes_back_with_all_its_fields(case: str) -> None:
    data = {"role": "assistant", "content": [ANTHROPIC[case]]}
    message = Message.from_anthropic(data)
    assert anthropic.render(message.role, message.content) == [data]


@pytest.mark.parametrize("case", OPENAI)
def test_a_message_of_openais_comes_back_with_all_its_fields(case: str) -> None:
    message = Message.from_openai(OPENAI[case])
    assert openai.render(message.role, message.content) == [OPENAI[case]]


@pytest.mark.parametrize("case", ANTHROPIC)
def test_fields_of_one_provider_do_not_reach_another(case: str) -> None:
    message = Message.from_anthropic({"role": "assistant", "content": [ANTHROPIC[case]]})
    sent = str(openai.render(message.role, message.content))
    for field in ("citations", "caller", "signature", "new_field"):
        assert field not in sent


def test_text_with_citations_is_text() -> None:
    message = Message.from_anthropic({"role": "assistant", "content": [ANTHROPIC["citations"]]})
    assert message.text == "It is 1912."


def test_null_fields_are_as_good_as_absent_ones() -> None:
    text = {"type": "text", "text": "Hi.", "citations": None, "cache_control": None}
    assert Message.from_anthropic({"role": "assistant", "content": [text]}) == Message.assistant(
        "Hi."
    )
    answer: dict[str, Any] = {"role": "assistant", "content": "Hi.", "annotations": []}
    nulls = dict.fromkeys(("refusal", "audio", "function_call", "tool_calls", "name"))
    assert Message.from_openai({**answer, **nulls}) == Message.assistant("Hi.")


def test_what_the_clients_parse_adds_to_an_answer_is_not_sent_back() -> None:
    function = {"name": "add", "arguments": "{}", "parsed_arguments": {"n": 1}}
    call = {"id": "c1", "type": "function", "function": function}
    data = {"role": "assistant", "content": "{}", "parsed": {"n": 1}, "tool_calls": [call]}
    message = Message.from_openai(data)

    assert "parsed" not in str(openai.render(message.role, message.content))


def test_the_items_of_the_clients_parse_are_sent_back_without_its_fields() -> None:
    text = {"type": "output_text", "text": "{}", "annotations": [], "parsed": {"n": 1}}
    said = {"type": "message", "id": "m", "role": "assistant", "content": [text]}
    call = {"type": "function_call", "call_id": "c", "name": "add", "arguments": "{}"}
    (message,) = responses.parse([said, {**call, "parsed_arguments": {"n": 1}}])

    assert "parsed" not in str(responses.render(message.role, message.content))


@pytest.mark.parametrize(
    "block",
    [
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "tool_use", "id": "c1", "name": "look", "input": {}},
    ],
)
def test_a_call_that_a_block_repeats_is_read_once(block: dict[str, Any]) -> None:
    function = {"name": "look", "arguments": "{}"}
    plain = {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }
    text = {"type": "text", "text": "I look."}

    assert Message.from_openai({**plain, "content": [text, block]}) == Message.from_openai(plain)


@pytest.mark.parametrize(
    ("role", "block"),
    [
        ("assistant", {"type": "tool_use", "id": "c1", "name": "look", "input": {}}),
        ("user", {"type": "tool_result", "tool_use_id": "c1", "content": "42"}),
    ],
)
def test_calls_and_results_of_anthropic_are_refused_with_the_reader_to_use(
    role: str, block: dict[str, Any]
) -> None:
    message = {"role": role, "content": [{"type": "text", "text": "I look."}, block]}
    with pytest.raises(InvalidMessage, match=r"which Message\.from_anthropic reads"):
        Message.from_openai(message)


def test_a_spoken_answer_is_read_and_sent_back_as_its_words() -> None:
    audio = {"id": "a1", "data": "UklG", "expires_at": 1, "transcript": "At 13:25."}
    message = Message.from_openai({"role": "assistant", "content": None, "audio": audio})

    assert message.text == "At 13:25."
    assert openai.render(message.role, message.content) == [
        {"role": "assistant", "content": "At 13:25."}
    ]


def test_a_spoken_answer_without_its_words_is_sent_back_as_such() -> None:
    message = Message.from_openai({"role": "assistant", "content": None, "audio": {"id": "a1"}})

    assert openai.render(message.role, message.content) == [
        {"role": "assistant", "content": "[spoken answer without its transcript]"}
    ]


RECORD = {"id": "m1", "created_at": "2026-03-01T09:30:00+01:00"}


def test_the_fields_of_a_transcripts_record_are_sent_to_no_provider() -> None:
    data = {"role": "assistant", "content": "Yes."}
    message = Message.from_openai({**data, **RECORD, "timestamp": "2026-03-01"})

    assert openai.render(message.role, message.content) == [data]


@pytest.mark.parametrize(
    "time", [RECORD["created_at"], datetime.fromisoformat(RECORD["created_at"])]
)
def test_a_message_keeps_the_id_and_the_time_of_its_dict(time: object) -> None:
    message = Message.from_openai(
        {"role": "user", "content": "Hi.", "id": "m1", "created_at": time}
    )

    at = datetime.fromisoformat(RECORD["created_at"])
    assert message == Message.user("Hi.", id="m1", created_at=at)


@pytest.mark.parametrize(
    ("field", "value"), [("id", 17), ("created_at", "yesterday"), ("created_at", "2026-03-01")]
)
def test_an_id_or_a_time_that_cannot_be_kept_is_refused(field: str, value: object) -> None:
    with pytest.raises(InvalidMessage, match=rf"{field} {value!r} of a message is not a "):
        Message.from_openai({"role": "user", "content": "Hi.", field: value})
