"""The messages of a request: the volatile block, breakpoints of the cache, and each dialect."""

from typing import Any

import pytest
from tests.builders import call

from remanence import Message
from remanence.types import ImagePart, TextPart, ToolResultPart
from remanence.wire.pairing import NO_RESULT, pair_tool_calls
from remanence.wire.turns import (
    LEAD_IN,
    anthropic_turns,
    breakpoints,
    gemini_contents,
    openai_turns,
    responses_items,
)

USER = Message.user("Hello.")
ANSWER = Message.assistant("Hi.")
RESULT = Message.tool("a", "1")
IMAGE = ImagePart(media_type="image/png", data="iVBORw0KGgo=")
MARK = {"prompt_cache_breakpoint": {"mode": "explicit"}}
NOW = "<memory-context>\nnow\n</memory-context>"


# Repair


def test_calls_that_came_one_by_one_keep_the_place_and_the_tokens_of_all() -> None:
    first, second = call("a").replace(seq=7, tokens=3), call("b").replace(seq=8, tokens=4)

    whole = pair_tool_calls([first, second, RESULT, Message.tool("b", "2")])[0]

    assert (whole.seq, whole.tokens) == (7, 7)


def test_a_result_that_was_never_recorded_is_said_so_and_costs_nothing() -> None:
    (_, missing) = pair_tool_calls([call("a").replace(tokens=9, name="Ana")])

    assert missing.text == ""
    assert [result.text for result in missing.tool_results] == [
        "[no result was recorded for this call: the tool may or may not have run]"
    ]
    assert (missing.role, missing.tokens, missing.name) == ("tool", 0, None)


def test_a_message_with_a_good_result_keeps_its_role_beside_a_late_one() -> None:
    both = Message(role="tool", content=RESULT.content + Message.tool("z", "2").content)

    turns = pair_tool_calls([call("a"), both])

    assert turns[1].role == "tool"
    assert turns[1].text == "[late result of tool call z]\n2"


# The volatile block


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("now", "now"),
        ("a < b", "a < b"),
        ("</memory-context>", "&lt;/memory-context>"),
        ("< / Memory-Context>", "&lt; / Memory-Context>"),
        ("<memory-context>x", "&lt;memory-context>x"),
    ],
)
def test_text_of_a_volatile_block_neither_begins_nor_ends_one(text: str, shown: str) -> None:
    (turn,) = openai_turns([USER], volatile=text)

    assert turn["content"][-1]["text"] == f"<memory-context>\n{shown}\n</memory-context>"


@pytest.mark.parametrize(
    ("messages", "roles"),
    [
        ([USER, ANSWER], ["NOW", "assistant"]),
        ([USER, ANSWER, USER], ["user", "assistant", "NOW"]),
        ([USER, call("a")], ["NOW", "assistant"]),
        ([USER, call("a"), RESULT], ["user", "assistant", "NOW"]),
        ([call("a")], ["NOW", "assistant"]),
        ([ANSWER], ["user", "assistant", "NOW"]),
    ],
)
def test_each_dialect_that_alternates_puts_the_volatile_block_into_the_same_turn(
    messages: list[Message], roles: list[str]
) -> None:
    anthropic = anthropic_turns(messages, volatile="now", marked=())
    gemini = gemini_contents(messages, volatile="now")

    assert [shown_role(turn) for turn in anthropic] == roles
    assert [shown_role(turn).replace("model", "assistant") for turn in gemini] == roles


def shown_role(turn: dict[str, Any]) -> str:
    """The role of a turn, or NOW where it ends with the volatile block."""
    last = turn["parts" if "parts" in turn else "content"][-1]
    return "NOW" if last.get("text") == NOW else str(turn["role"])


@pytest.mark.parametrize(
    ("messages", "place"),
    [
        ([], 0),
        ([USER], 1),
        ([ANSWER], 1),
        ([USER, ANSWER], 1),
        ([USER, ANSWER, USER], 3),
        ([USER, ANSWER, ANSWER], 1),
        ([USER, call("a"), RESULT], 3),
        ([USER, call("a")], 1),
        ([USER, call("a", "b"), RESULT], 1),
        ([call("a")], 0),
        ([ANSWER, call("a")], 1),
        ([call("a"), USER], 2),
        ([call("a"), RESULT, call("b")], 2),
    ],
)
def test_the_volatile_block_follows_the_newest_message_of_the_users_side_before_open_calls(
    messages: list[Message], place: int
) -> None:
    items = responses_items(messages, volatile="now")

    assert items.pop(place) == {"role": "user", "content": NOW}
    assert items == responses_items(messages, volatile="")


def test_chat_completions_have_the_volatile_block_in_the_content_that_carries_it() -> None:
    block = {"type": "text", "text": NOW}
    shown = Message(role="user", content=(IMAGE, TextPart(text="See.")))
    hello = {"type": "text", "text": "Hello."}

    assert openai_turns([USER], volatile="now") == [{"role": "user", "content": [hello, block]}]
    parts = openai_turns([shown], volatile="now")[0]["content"]
    assert [part["type"] for part in parts] == ["image_url", "text", "text"]
    assert parts[-1] == block
    assert openai_turns([ANSWER], volatile="now")[1:] == [{"role": "user", "content": NOW}]
    assert openai_turns([call("a")], volatile="now")[0] == {"role": "user", "content": NOW}
    after = openai_turns([call("a"), RESULT], volatile="now")
    assert after[1:] == [
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "user", "content": NOW},
    ]
    before = openai_turns([ANSWER, call("a")], volatile="now")
    assert [turn["content"] for turn in before] == ["Hi.", NOW, None]


# Gemini


def test_contents_of_gemini_begin_with_the_user_and_alternate() -> None:
    messages = [ANSWER, Message.assistant("More."), USER, Message.user("Again.")]

    assert gemini_contents(messages, volatile="") == [
        {"role": "user", "parts": [{"text": LEAD_IN}]},
        {"role": "model", "parts": [{"text": "Hi."}, {"text": "More."}]},
        {"role": "user", "parts": [{"text": "Hello."}, {"text": "Again."}]},
    ]
    assert LEAD_IN == "[The conversation goes on.]"
    assert gemini_contents([USER, ANSWER], volatile="")[0]["parts"] == [{"text": "Hello."}]


# Breakpoints of the prompt cache


@pytest.mark.parametrize(
    ("messages", "index"),
    [
        ([], None),
        ([USER], 0),
        ([USER, ANSWER], 0),
        ([ANSWER], 0),
        ([ANSWER, call("a")], 0),
        ([USER, call("a")], 0),
        ([call("a")], None),
        ([USER, call("a"), RESULT], 2),
        ([USER, call("a"), Message.tool("a", NO_RESULT)], 0),
        ([USER, call("a", "b"), RESULT, Message.tool("b", NO_RESULT)], 2),
    ],
)
def test_a_message_is_settled_once_nothing_that_comes_changes_it(
    messages: list[Message], index: int | None
) -> None:
    newest = breakpoints(messages)[-1:]

    assert newest == (() if index is None else (index,))


def tool_turn(calls: int, *, text: str = "") -> list[Message]:
    ids = [f"call-{n}" for n in range(calls)]
    return [call(*ids, text=text), *[Message.tool(id_, "1") for id_ in ids]]


@pytest.mark.parametrize(
    ("messages", "marked"),
    [
        ([], ()),
        ([call("a")], ()),
        ([USER], (0,)),
        ([USER, ANSWER, USER], (2,)),
        ([USER, *tool_turn(10)], (0, 11)),
        ([USER, *tool_turn(9, text="I look.")], (10,)),
        ([USER, ANSWER, USER, *tool_turn(10)], (2, 13)),
        ([USER, ANSWER, USER, *tool_turn(9, text="I look.")], (12,)),
        (tool_turn(10), (10,)),
        ([USER, *tool_turn(12), ANSWER], (0, 13)),
        ([USER, *tool_turn(9, text="I look."), call("z")], (10,)),
        ([USER] * 25, (24,)),
    ],
)
def test_the_end_of_the_request_before_is_marked_where_the_cache_would_not_look_back_so_far(
    messages: list[Message], marked: tuple[int, ...]
) -> None:
    assert breakpoints(messages) == marked


def test_a_mark_of_chat_completions_is_on_the_last_part_of_a_message() -> None:
    shown = Message(role="user", content=(TextPart(text="See."), IMAGE))
    result = ToolResultPart(call_id="a", content=(TextPart(text="1"), IMAGE))
    messages = [USER, shown, call("a"), Message(role="tool", content=(result,))]
    plain = openai_turns(messages, volatile="")

    turns = openai_turns(messages, volatile="", marked=(0, 1, 2, 3))

    assert turns[0]["content"] == [{"type": "text", "text": "Hello.", **MARK}]
    assert turns[1]["content"] == [
        plain[1]["content"][0],
        {**plain[1]["content"][1], **MARK},
    ]
    assert turns[2] == plain[2]
    assert turns[3] == plain[3]
    assert turns[4]["content"] == [
        *plain[4]["content"][:-1],
        {**plain[4]["content"][-1], **MARK},
    ]


def test_a_mark_of_anthropic_is_on_the_last_block_that_allows_it() -> None:
    control = {"type": "ephemeral"}
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    answer = Message.from_anthropic(
        {"role": "assistant", "content": [{"type": "text", "text": "Hi."}, thinking]}
    )
    document = {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
    }
    read = Message.from_anthropic({"role": "user", "content": [document]})
    messages = [Message(role="user", content=(IMAGE,)), answer, read, call("a"), RESULT]

    turns = anthropic_turns(messages, volatile="", marked=range(5))

    marked = [
        [block["type"] for block in turn["content"] if block.get("cache_control") == control]
        for turn in turns
    ]
    assert marked == [["image"], ["text"], ["document"], ["tool_use"], ["tool_result"]]
