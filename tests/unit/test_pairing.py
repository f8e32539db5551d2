"""Requests keep the rules of their providers, whatever order messages came in."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st
from tests.builders import call, responses, server_call, server_result

from remanence import Message
from remanence.types import ImagePart, OtherPart, TextPart, ToolResultPart
from remanence.types.receipt import tombstone
from remanence.wire.boundaries import groups, is_settled, orphan, safe_ends
from remanence.wire.content import NOTHING_READABLE, SYSTEM_MARK
from remanence.wire.json_value import JsonObject
from remanence.wire.links import open_links
from remanence.wire.pairing import NO_RESULT, pair_tool_calls
from remanence.wire.turns import (
    LEAD_IN,
    anthropic_turns,
    breakpoints,
    gemini_contents,
    openai_turns,
    responses_items,
)
from remanence.wire.validate import anthropic_problems, openai_problems

USER = Message.user("Hello.")
ANSWER = Message.assistant("Hi.")
SCREENSHOT = {"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBORw0K"}


def test_a_call_and_its_results_are_never_cut_apart() -> None:
    messages = [USER, call("a", "b"), Message.tool("b", "2"), Message.tool("a", "1"), ANSWER]
    assert [len(run) for run in groups(messages)] == [1, 3, 1]
    assert safe_ends(messages, final=False) == [0, 3, 4]
    assert safe_ends(messages[:3], final=False) == [0]
    assert safe_ends(messages[:3], final=True) == [0, 2]


def test_a_call_without_a_result_gets_one_that_says_so() -> None:
    messages = pair_tool_calls([USER, call("a"), USER])
    assert messages[2].tool_results[0].call_id == "a"
    assert messages[2].tool_results[0].text == NO_RESULT


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_calls_that_come_one_by_one_are_one_message_with_all_results_after_it(order: str) -> None:
    text = Message.assistant("I look.")
    results = [Message.tool(id_, "1") for id_ in order]
    messages = [USER, call("a"), text, call("b"), *results, ANSWER]
    assert [len(run) for run in groups(messages)] == [1, 5, 1]
    turns = pair_tool_calls(messages)
    assert [message.role for message in turns] == ["user", "assistant", "tool", "tool", "assistant"]
    assert [called.id for called in turns[1].tool_calls] == ["a", "b"]
    assert turns[1].text == "I look."
    sent = openai_turns(turns, volatile="")
    assert not openai_problems({"messages": sent})
    assert "recorded" not in str(sent)
    assert "late" not in str(sent)


@pytest.mark.parametrize("text_calls", [(), ("b",)])
def test_an_answer_to_a_call_without_a_result_follows_the_note_that_it_has_none(
    text_calls: tuple[str, ...],
) -> None:
    answer = call(*text_calls, text="I could not book it.")
    results = [Message.tool(id_, "1") for id_ in text_calls]

    turns = pair_tool_calls([USER, call("a"), answer, *results, USER])

    roles = [message.role for message in turns]
    assert roles == ["user", "assistant", "tool", "assistant", *["tool"] * len(results), "user"]
    assert [turns[2].tool_results[0].text, turns[3].text] == [NO_RESULT, "I could not book it."]


def test_a_call_that_the_host_answers_itself_stays_one_message_with_its_text() -> None:
    turns = pair_tool_calls([USER, call("a"), ANSWER], keep_open=True)
    assert [message.role for message in turns] == ["user", "assistant"]


def test_calls_after_a_result_are_a_turn_of_their_own() -> None:
    messages = [call("a"), Message.tool("a", "1"), call("b"), Message.tool("b", "2")]
    assert [len(run) for run in groups(messages)] == [2, 2]
    again = [call("a"), call("a"), Message.tool("a", "1")]
    assert [len(run) for run in groups(again)] == [1, 2]


@pytest.mark.parametrize("answered", [0, 1])
def test_open_calls_at_the_end_can_be_left_open_with_the_volatile_text_before_them(
    answered: int,
) -> None:
    calls = [call("a", "b"), *[Message.tool("a", "1")][:answered]]
    for before in ([USER], []):
        turns = pair_tool_calls([*before, *calls], keep_open=True)
        assert NO_RESULT not in str(turns)
        sent = openai_turns(turns, volatile="now")
        assert [turn["role"] for turn in sent] == ["user", "assistant", *["tool"] * answered]
        assert "now" in str(sent[0])
        blocks = anthropic_turns(turns, volatile="now", marked=())
        assert "now" in str(blocks[0])
        assert [turn["role"] for turn in blocks] == ["user", "assistant", *["user"] * answered]


def test_open_calls_in_the_middle_are_answered_also_where_those_at_the_end_stay_open() -> None:
    turns = pair_tool_calls([USER, call("a"), USER, call("b")], keep_open=True)
    assert [message.role for message in turns] == ["user", "assistant", "tool", "user", "assistant"]


def test_what_results_show_beside_text_follows_the_last_of_them_for_openai() -> None:
    image = ImagePart(media_type="image/png", data="iVBORw0KGgo=")
    shown = ToolResultPart(call_id="a", content=(TextPart(text="See:"), image))
    messages = [call("a", "b"), Message(role="tool", content=(shown,)), Message.tool("b", "2")]
    sent = openai_turns(pair_tool_calls(messages), volatile="now")
    assert [turn["role"] for turn in sent] == ["assistant", "tool", "tool", "user", "user"]
    assert sent[3]["content"][1]["type"] == "image_url"
    assert not openai_problems({"messages": sent})


def test_system_text_in_the_middle_keeps_its_role_or_is_marked() -> None:
    messages = [USER, ANSWER, Message(role="system", content=(TextPart(text="Be brief."),)), USER]
    assert openai_turns(messages, volatile="")[2] == {"role": "system", "content": "Be brief."}
    marked = anthropic_turns(messages, volatile="", marked=())
    assert [turn["role"] for turn in marked] == ["user", "assistant", "user"]
    assert [block["text"] for block in marked[2]["content"]] == [SYSTEM_MARK, "Be brief.", "Hello."]
    kept = anthropic_turns(messages, volatile="", marked=(), system_role=True)
    assert [turn["role"] for turn in kept] == ["user", "assistant", "system", "user"]
    assert kept[2]["content"] == [{"type": "text", "text": "Be brief."}]


def test_what_a_system_message_may_not_have_is_told_as_text() -> None:
    image = ImagePart(url="https://x.test/a.png")
    messages = [USER, ANSWER, Message(role="system", content=(image,)), USER]
    kept = anthropic_turns(messages, volatile="", marked=(), system_role=True)
    assert kept[2]["content"] == [{"type": "text", "text": "[image: https://x.test/a.png]"}]


def test_a_late_result_stays_where_it_came_as_text() -> None:
    messages = pair_tool_calls([USER, call("a"), USER, Message.tool("a", "done")])
    assert [message.role for message in messages] == ["user", "assistant", "tool", "user", "user"]
    assert messages[-1].text == "[late result of tool call a]\ndone"


def test_a_second_result_of_a_call_in_one_message_is_text() -> None:
    twice = Message.tool("a", "1").content + Message.tool("a", "2").content
    turns = pair_tool_calls([USER, call("a"), Message(role="tool", content=twice)])
    assert [result.text for result in turns[2].tool_results] == ["1"]
    assert turns[2].text == "[late result of tool call a]\n2"
    sent = anthropic_turns(turns, volatile="", marked=())
    assert not anthropic_problems({"messages": sent})
    assert not openai_problems({"messages": openai_turns(turns, volatile="")})


def _parts(messages: Sequence[Message]) -> list[list[str]]:
    turns = anthropic_turns(messages, volatile="now", marked=())
    return [[str(block["type"]) for block in turn["content"]] for turn in turns]


def test_code_of_the_provider_keeps_its_calls_and_its_later_result() -> None:
    tape = [USER, server_call("s", "a"), Message.tool("a", "1"), call("b"), Message.tool("b", "2")]
    whole = [*tape, server_result("s"), USER]
    assert [part for turn in _parts(pair_tool_calls(whole)) for part in turn if part != "text"] == [
        *("server_tool_use", "tool_use", "tool_result", "tool_use", "tool_result"),
        "code_execution_tool_result",
    ]


def test_volatile_text_comes_before_code_that_waits_for_a_result() -> None:
    tape = [USER, server_call("s", "a"), Message.tool("a", "1")]
    for messages, last in ((tape, ["tool_result"]), (tape[:2], ["server_tool_use", "tool_use"])):
        turns = _parts(pair_tool_calls(messages, keep_open=True))
        assert (turns[0], turns[-1]) == (["text", "text"], last)


def test_code_that_a_paused_answer_ends_with_is_sent_back_to_go_on() -> None:
    assert _parts(pair_tool_calls([USER, server_call("s")]))[-1] == ["server_tool_use"]


def test_code_without_a_result_is_text_once_the_conversation_goes_on() -> None:
    turns = pair_tool_calls([USER, server_call("s", "a"), USER, server_result("s")])
    assert _parts(turns)[1:3] == [["text", "tool_use"], ["tool_result", "text", "text"]]
    assert turns[1].text.endswith(NO_RESULT)
    assert turns[1].tool_calls[0].extra is None
    assert turns[-1].role == "assistant"
    assert turns[-1].text.startswith("[late result of a tool call]\n{")


def test_the_result_of_forgotten_code_is_text() -> None:
    tape = [server_call("s", "a"), Message.tool("a", "1"), server_result("s")]
    tape[0] = tombstone(tape[0], "")
    assert _parts(pair_tool_calls([USER, *tape]))[-2:] == [
        ["tool_result", "text"],
        ["text", "text"],
    ]


OWN_CALLS = [
    ({"type": "shell_call", "action": {"commands": ["ls"]}}, {"output": []}),
    ({"type": "local_shell_call", "action": {"command": ["ls"]}}, {"output": "a.txt"}),
    ({"type": "apply_patch_call", "operation": {}}, {"status": "failed"}),
    ({"type": "computer_call", "action": {"type": "screenshot"}}, {"output": SCREENSHOT}),
]


@pytest.mark.parametrize(("call_fields", "output_fields"), OWN_CALLS)
def test_calls_of_openais_own_tools_pair_with_their_outputs(
    call_fields: JsonObject, output_fields: JsonObject
) -> None:
    kind = call_fields["type"]
    by = "id" if kind == "local_shell_call" else "call_id"
    called = {"call_id": "c", **call_fields}
    output = {"type": f"{kind}_output", by: "c", **output_fields}
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    tape = responses({"role": "user", "content": "Go."}, thought, called, output)

    whole, unanswered, forgotten = (
        responses_items(pair_tool_calls(messages), volatile="")
        for messages in (tape, [*tape[:2], USER], [USER, tombstone(tape[1], ""), tape[2]])
    )

    assert whole[1:] == [thought, called, output]
    assert [item.get("type") for item in (*unanswered, *forgotten)] == [None] * 6
    assert NO_RESULT in unanswered[1]["content"]
    assert forgotten[2]["content"].startswith("[late result of a tool call]")
    assert "base64" not in forgotten[2]["content"]


ITEM = {"type": "reasoning", "id": "rs_1", "summary": []}
EMPTY = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
BLANK = {**EMPTY, "content": [{"type": "output_text", "text": ""}]}
THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
REDACTED = {"type": "redacted_thinking", "data": "c2ln"}
THOUGHT = {"text": "Hm.", "thought": True}
SILENT = {
    "item": responses(ITEM)[0],
    "item and empty message": responses(ITEM, EMPTY)[0],
    "item and blank text": responses(ITEM, BLANK)[0],
    "block": Message.from_anthropic({"role": "assistant", "content": [THINKING, REDACTED]}),
    "gemini": Message.from_gemini({"role": "model", "parts": [THOUGHT]}),
    "chat": Message.from_openai({"role": "assistant", "content": "", "reasoning_content": "Hm."}),
}
RENDERERS: list[Callable[[Sequence[Message]], object]] = [
    lambda messages: anthropic_turns(messages, volatile="", marked=()),
    lambda messages: openai_turns(messages, volatile=""),
    lambda messages: responses_items(messages, volatile=""),
    lambda messages: gemini_contents(messages, volatile=""),
]


@pytest.mark.parametrize("silent", SILENT)
def test_an_answer_of_reasoning_alone_is_left_out_unless_the_model_goes_on(silent: str) -> None:
    cut, again = SILENT[silent], Message.user("Again?")
    thoughts = [part for part in cut.content if isinstance(part, OtherPart)]
    answer, before = (
        cut.replace(content=content)
        for content in ((*thoughts, *ANSWER.content), (*ANSWER.content, *thoughts))
    )

    alone = pair_tool_calls([USER, cut, again])
    last = pair_tool_calls([USER, cut])
    after_text = pair_tool_calls([USER, before, again])
    followed = pair_tool_calls([USER, cut, ANSWER, again])

    for render in RENDERERS:
        assert render(alone) == render([USER, again])
        assert render(last) == render([USER])
        assert render(after_text) == render([USER, ANSWER, again])
        assert render(followed) == render([USER, answer, again])


def test_an_answer_of_images_alone_is_not_left_out() -> None:
    """OpenRouter has images in a field beside the empty content."""
    images = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]
    drawn = {"role": "assistant", "content": "", "reasoning": "A cat.", "images": images}

    turns = pair_tool_calls([USER, Message.from_openai(drawn), Message.user("Make it blue.")])

    assert openai_turns(turns, volatile="")[1] == drawn
    assert NOTHING_READABLE in str(anthropic_turns(turns, volatile="", marked=())[1])


def test_a_request_has_a_message_even_if_the_model_has_only_reasoned() -> None:
    turns = pair_tool_calls([SILENT["block"]])
    assert not anthropic_problems({"messages": anthropic_turns(turns, volatile="", marked=())})


def test_a_result_in_another_format_than_its_call_does_not_answer_it() -> None:
    printed = responses({"type": "shell_call_output", "call_id": "a", "output": []})
    turns = pair_tool_calls([call("a"), *printed, Message.tool("a", "1")])
    assert [turn.role for turn in turns] == ["assistant", "tool", "user", "user"]
    assert turns[1].tool_results[0].text == NO_RESULT


def test_an_output_has_the_type_of_its_call_even_once_that_is_forgotten_or_an_excerpt() -> None:
    custom = {"type": "custom_tool_call", "call_id": "c", "name": "sql", "input": "select 1"}
    called, told = responses(
        custom, {"type": "custom_tool_call_output", "call_id": "c", "output": "1"}
    )
    short = replace(called.tool_calls[0], arguments='{"excerpt": "sel"}')
    tapes = [
        [called, Message.tool("c", "1")],
        [called],
        [called.replace(content=(short,)), told],
        [tombstone(called, ""), told],
    ]

    sent = [responses_items(pair_tool_calls([*tape, USER]), volatile="") for tape in tapes]

    kinds = [[item["type"] for item in items[:2]] for items in sent]
    assert kinds[:3] == [["custom_tool_call", "custom_tool_call_output"]] * 3
    assert kinds[3] == ["function_call", "function_call_output"]
    assert isinstance(sent[2][0]["input"], str)


def test_results_come_before_all_else_of_a_turn_for_anthropic() -> None:
    first = Message(role="user", content=(TextPart(text="See:"), *Message.tool("a", "1").content))
    turns = pair_tool_calls([USER, call("a", "b"), first, Message.tool("b", "2"), USER])
    sent = anthropic_turns(turns, volatile="", marked=())
    assert [block["type"] for block in sent[2]["content"]] == ["tool_result"] * 2 + ["text"] * 2
    assert not anthropic_problems({"messages": sent})


def test_a_request_that_begins_with_an_answer_gets_a_lead_in() -> None:
    turns = anthropic_turns([ANSWER], volatile="", marked=())
    assert turns[0] == {"role": "user", "content": [{"type": "text", "text": LEAD_IN}]}


def test_volatile_text_follows_the_newest_tool_results() -> None:
    messages = [USER, call("a"), Message.tool("a", "1")]
    newest = anthropic_turns(messages, volatile="now", marked=(2,))[-1]["content"]
    assert [block["type"] for block in newest] == ["tool_result", "text"]
    assert openai_turns(messages, volatile="now")[-1]["role"] == "user"


@pytest.mark.parametrize("name", ["Ana", "Ana María", "민수"])
def test_a_speakers_name_reaches_both_providers(name: str) -> None:
    messages = [Message.user("Hello.", name=name)]
    anthropic = anthropic_turns(messages, volatile="", marked=())
    assert anthropic[0]["content"][0]["text"] == f"{name}: Hello."
    openai = openai_turns(messages, volatile="")[0]
    assert openai.get("name") == name or openai["content"] == f"{name}: Hello."
    assert " " not in openai.get("name", "")


MESSAGES = st.lists(
    st.one_of(
        st.just(USER),
        st.just(ANSWER),
        st.lists(st.sampled_from("abcdef"), min_size=1, max_size=3, unique=True).map(
            lambda ids: call(*ids)
        ),
        st.sampled_from("abcdef").map(lambda id_: Message.tool(id_, "done")),
        st.sampled_from("abcdef").map(lambda id_: server_call(f"s{id_}", id_)),
        st.sampled_from("abcdef").map(lambda id_: server_result(f"s{id_}")),
    ),
    min_size=1,
    max_size=12,
)


@given(messages=MESSAGES)
def test_any_order_of_calls_and_results_makes_valid_requests(messages: list[Message]) -> None:
    unique = _with_unique_calls(messages)
    paired = pair_tool_calls(unique)
    turns = anthropic_turns(paired, volatile="", marked=())
    assert anthropic_problems({"messages": turns}) == ()
    assert orphan(paired) is None
    assert all(is_settled(run) for run in list(groups(paired))[:-1])
    assert openai_problems({"messages": openai_turns(pair_tool_calls(unique), volatile="")}) == ()


@given(
    messages=MESSAGES,
    more=MESSAGES | st.just([]),
    volatile=st.tuples(*[st.sampled_from(["", "now"])] * 2),
    keep_open=st.booleans(),
)
def test_a_cached_prefix_stays_whatever_follows_and_whichever_request_has_a_volatile_block(
    messages: list[Message], more: list[Message], volatile: tuple[str, str], keep_open: bool
) -> None:
    whole = _with_unique_calls([*messages, *more])
    for render, mark in (
        (anthropic_turns, "cache_control"),
        (openai_turns, "prompt_cache_breakpoint"),
    ):
        (earlier, cached), (later, _) = (
            _blocks(render, mark, pair_tool_calls(tape, keep_open=keep_open), text)
            for tape, text in zip((whole[: len(messages)], whole), volatile, strict=True)
        )
        assert later[:cached] == earlier[:cached]


@given(
    messages=MESSAGES,
    answer=st.sampled_from([ANSWER, call("z", text="I try again.")]),
    more=MESSAGES,
)
def test_whatever_follows_an_answer_the_messages_that_it_answers_keep_their_order(
    messages: list[Message], answer: Message, more: list[Message]
) -> None:
    tape = _with_unique_calls([message for message in messages if not _has_own_calls(message)])
    whole = _with_unique_calls([*tape, answer, USER, *more])

    answered, later = (
        _blocks(anthropic_turns, "cache_control", pair_tool_calls(turns), "")[0]
        for turns in (tape, whole)
    )

    assert later[: len(answered)] == answered


def _has_own_calls(message: Message) -> bool:
    """Whether a message has code of the provider, which a later request shows as text."""
    return any(isinstance(part, OtherPart) for part in message.content)


def _blocks(
    render: Callable[..., list[JsonObject]], mark: str, messages: Sequence[Message], volatile: str
) -> tuple[list[JsonObject], int]:
    """The blocks of a request in order, without marks, and how many end at the last mark."""
    blocks: list[JsonObject] = []
    cached = 0
    for turn in render(messages, volatile=volatile, marked=breakpoints(messages)):
        content = turn["content"]
        parts = [{"text": content, "type": "text"}] if isinstance(content, str) else content
        for part in parts or [{}]:
            block = {**turn, "content": {key: part[key] for key in part if key != mark}}
            blocks.append(block)
            cached = len(blocks) if mark in part else cached
    return blocks, cached


def _with_unique_calls(messages: list[Message]) -> list[Message]:
    """Each call id is used once, as on a real tape; results of unknown calls are left out."""
    known: set[str] = set()
    kept: list[Message] = []
    for message in messages:
        ids = open_links(message)[0].keys()
        results = {part.call_id for part in message.tool_results}
        if ids & known or not results <= known:
            continue
        known |= ids
        kept.append(message)
    return kept or [USER]


def test_a_call_id_that_occurs_again_is_told_apart() -> None:
    session = [USER, call("call_0"), Message.tool("call_0", "1")]
    messages = [message.replace(seq=seq) for seq, message in enumerate(session * 2, start=1)]
    ids = [part.id for message in pair_tool_calls(messages) for part in message.tool_calls]
    answers = [
        part.call_id for message in pair_tool_calls(messages) for part in message.tool_results
    ]
    assert ids == answers == ["call_0", "call_0-5"]
