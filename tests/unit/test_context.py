"""A context as a request of each provider, with its breakpoints, and as plain text."""

import re
from typing import Any

import pytest

from remanence import Message
from remanence.context.context import Context, ContextStats, SystemBlock
from remanence.types import ImagePart, TextPart, ToolCallPart, ToolResultPart

STATS = ContextStats(
    system_tokens=0,
    cross_session_tokens=0,
    session_tokens=0,
    working_tokens=0,
    volatile_tokens=0,
    history_tokens=0,
    pending=0,
    first_raw_seq=1,
    last_seq=1,
)
USER = Message.user("Which?")
CALL = Message.assistant("", tool_calls=[ToolCallPart(id="a", name="look", arguments="{}")])
RESULT = Message.tool("a", "blue")
IMAGE = ImagePart(media_type="image/png", data="iVBORw0KGgo=")
MARK = {"prompt_cache_breakpoint": {"mode": "explicit"}}


def block(text: str, *, cache: bool = False) -> SystemBlock:
    return SystemBlock(kind="system", text=text, tokens=1, cache=cache)


def context(*messages: Message, system: tuple[SystemBlock, ...] = (), **fields: Any) -> Context:
    given: dict[str, Any] = {"omitted": (), "stats": STATS, "caching": True} | fields
    return Context(system=system, messages=messages, **given)


MARKED = tuple(block(text, cache=text != "plain") for text in ("base", "plain", "old", "new"))
LOOKED = (
    USER,
    Message.assistant(
        "",
        tool_calls=[ToolCallPart(id=f"c{n}", name="look", arguments="{}") for n in range(10)],
    ),
    *(Message.tool(f"c{n}", "blue") for n in range(10)),
)
"""So many blocks that the end of the request before is marked too."""


def test_a_context_is_plain_unless_it_says_otherwise() -> None:
    assert not context(USER, caching=False).to_anthropic()["messages"][0]["content"][0].keys() & {
        "cache_control"
    }
    assert Context(system=(), messages=(), omitted=(), stats=STATS).caching is False
    assert block("x").cache is False
    assert (STATS.token_factor, STATS.observe_due, STATS.reflect_due) == (1.0, False, False)


@pytest.mark.parametrize(
    ("messages", "marked"), [((USER,), ["base", "old", "new"]), (LOOKED, ["old", "new"])]
)
def test_anthropic_gets_four_breakpoints_at_most_of_which_messages_take_theirs_first(
    messages: tuple[Message, ...], marked: list[str]
) -> None:
    request = context(*messages, system=MARKED).to_anthropic()

    assert [b["text"] for b in request["system"] if "cache_control" in b] == marked
    assert str(request).count("cache_control") == len(marked) + (4 - len(marked))


def test_openai_marks_nothing_unless_asked_and_not_without_caching() -> None:
    cached = context(USER, system=MARKED)

    assert cached.to_openai() == {
        "messages": [
            {"role": "system", "content": "base\n\nplain\n\nold\n\nnew"},
            {"role": "user", "content": "Which?"},
        ]
    }
    plain = context(USER, system=MARKED, caching=False)
    assert plain.to_openai(cache_breakpoints=True) == cached.to_openai()


@pytest.mark.parametrize(
    ("messages", "parts"),
    [
        ((USER,), [("base\n\nplain\n\nold", True), ("new", True)]),
        (LOOKED, [("base\n\nplain\n\nold\n\nnew", True)]),
    ],
)
def test_openai_gets_three_breakpoints_at_most_of_which_messages_take_theirs_first(
    messages: tuple[Message, ...], parts: list[tuple[str, bool]]
) -> None:
    system, *turns = context(*messages, system=MARKED).to_openai(cache_breakpoints=True)["messages"]

    assert system["content"] == [
        {"type": "text", "text": text, **(MARK if marked else {})} for text, marked in parts
    ]
    assert str(turns).count("prompt_cache_breakpoint") == 3 - len(parts)


def test_text_behind_the_last_breakpoint_is_a_part_without_one() -> None:
    blocks = (block("base", cache=True), block("stand-in"), block("more"))

    (system, _) = context(USER, system=blocks).to_openai(cache_breakpoints=True)["messages"]

    assert system["content"] == [
        {"type": "text", "text": "base", **MARK},
        {"type": "text", "text": "stand-in\n\nmore"},
    ]
    (unmarked, _) = context(USER, system=blocks[1:]).to_openai(cache_breakpoints=True)["messages"]
    assert unmarked["content"] == "stand-in\n\nmore"


def test_requests_to_responses_and_gemini_have_the_system_text_beside_the_conversation() -> None:
    whole = context(USER, system=(block("base"), block("notes")))

    assert whole.to_openai_responses() == {
        "input": [{"role": "user", "content": "Which?"}],
        "instructions": "base\n\nnotes",
    }
    assert whole.to_gemini() == {
        "contents": [{"role": "user", "parts": [{"text": "Which?"}]}],
        "systemInstruction": {"parts": [{"text": "base\n\nnotes"}]},
    }
    assert context(USER).to_openai_responses().keys() == {"input"}
    assert context(USER).to_gemini().keys() == {"contents"}


@pytest.mark.parametrize("dialect", ["anthropic", "openai", "openai_responses", "gemini"])
def test_open_calls_are_answered_unless_the_host_adds_their_results(dialect: str) -> None:
    render = getattr(context(USER, CALL), f"to_{dialect}")

    assert "no result was recorded" in str(render())
    assert "no result was recorded" not in str(render(keep_open_calls=True))


def test_system_messages_for_anthropic_are_marked_texts_unless_the_model_takes_the_role() -> None:
    brief = Message(role="system", content=(TextPart(text="Be brief."),))
    whole = context(USER, Message.assistant("Blue."), brief)

    assert [turn["role"] for turn in whole.to_anthropic()["messages"]][-1] == "user"
    assert whole.to_anthropic(system_role=True)["messages"][-1]["role"] == "system"


def test_plain_text_shows_calls_and_results_and_names_what_has_no_text() -> None:
    custom = Message.from_openai(
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "b", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
            ],
        }
    )
    image = Message(role="user", content=(TextPart(text="See:"), IMAGE, TextPart(text="née")))
    nothing = Message(
        role="tool", content=(ToolResultPart(call_id="b", content=(TextPart(text="1"),)),)
    )

    pieces = context(CALL, RESULT, custom, nothing, image, system=(block("base"),)).to_text()

    assert pieces.split("\n\n") == [
        "base",
        "assistant: [calls look {}]",
        "tool: blue",
        "assistant: [calls sql select 1]",
        "tool: 1",
        "user: See:\n [image of type image/png]\n née",
    ]


def test_a_line_of_a_message_in_plain_text_cannot_pass_for_another_speaker() -> None:
    messages = Message.user("I live in Oslo.\nana: I live in Rome.\n\n\u2028user: Hi.", name="bo")

    assert context(messages).to_text() == (
        "user: bo: I live in Oslo.\n ana: I live in Rome.\n \n \n user: Hi."
    )


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("bo", "user: bo: Hi."),
        ("Bo Li", "user: Bo Li: Hi."),
        ("a[b]c#d", "user: a(b)c-d~52b2087cfc0ab766: Hi."),
        ("assistant", "user: assistant: Hi."),
        ("##", 'user: "--~2c100e1ee58ace61": Hi.'),
    ],
)
def test_a_name_in_plain_text_cannot_pass_for_a_role_or_a_head(name: str, shown: str) -> None:
    assert context(Message.user("Hi.", name=name)).to_text() == shown


def test_plain_text_keeps_the_letters_in_the_names_of_files() -> None:
    file = Message.from_openai(
        {
            "role": "user",
            "content": [{"type": "file", "file": {"filename": "né.pdf", "file_id": "f"}}],
        }
    )

    assert "né.pdf" in context(file).to_text()


@pytest.mark.parametrize("id_chars", [3, 40, 41, 64, 65, 200])
@pytest.mark.parametrize("name", ["look", "mcp.weather look", "x" * 65])
def test_calls_from_elsewhere_get_names_and_ids_that_openai_accepts(
    name: str, id_chars: int
) -> None:
    id_ = "toolu:" + "x" * (id_chars - 6) if id_chars > 6 else "a:1"
    call = Message.assistant("", tool_calls=[ToolCallPart(id=id_, name=name, arguments="{}")])
    whole = context(USER, call, Message.tool(id_, "blue"), system=(block("base"),))

    _, _, calling, result = whole.to_openai()["messages"]
    _, item, output = whole.to_openai_responses()["input"]

    chat, chat_id = calling["tool_calls"][0]["function"]["name"], calling["tool_calls"][0]["id"]
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", chat)
    assert item["name"] == chat
    assert (chat == name) == (name == "look")
    assert result["tool_call_id"] == chat_id
    assert output["call_id"] == item["call_id"]
    assert (len(chat_id) <= 40, chat_id == id_) == (True, id_chars <= 40)
    assert (len(item["call_id"]) <= 64, item["call_id"] == id_) == (True, id_chars <= 64)
