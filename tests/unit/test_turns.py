"""Requests keep the rules of their providers, whatever order messages came in."""

import pytest
from hypothesis import given, strategies as st

from remanence import Message
from remanence.observing.boundaries import groups, safe_ends
from remanence.observing.turns import (
    LEAD_IN,
    NO_RESULT,
    anthropic_turns,
    last_settled,
    openai_turns,
    repaired,
)
from remanence.observing.validity import anthropic_problems, openai_problems
from remanence.types import ToolCallPart


def call(*ids: str) -> Message:
    return Message.assistant(
        "", tool_calls=[ToolCallPart(id=id_, name="look", arguments="{}") for id_ in ids]
    )


USER = Message.user("Hello.")
ANSWER = Message.assistant("Hi.")


def test_a_call_and_its_results_are_never_cut_apart() -> None:
    messages = [USER, call("a", "b"), Message.tool("b", "2"), Message.tool("a", "1"), ANSWER]
    assert [len(run) for run in groups(messages)] == [1, 3, 1]
    assert safe_ends(messages, final=False) == [0, 3, 4]
    assert safe_ends(messages[:3], final=False) == [0]
    assert safe_ends(messages[:3], final=True) == [0, 2]


def test_a_call_without_a_result_gets_one_that_says_so() -> None:
    messages = repaired([USER, call("a"), USER])
    assert messages[2].tool_results[0].call_id == "a"
    assert messages[2].tool_results[0].text == NO_RESULT


def test_a_late_result_stays_where_it_came_as_text() -> None:
    messages = repaired([USER, call("a"), USER, Message.tool("a", "done")])
    assert [message.role for message in messages] == ["user", "assistant", "tool", "user", "user"]
    assert messages[-1].text == "[late result of tool call a]\ndone"


def test_a_request_that_begins_with_an_answer_gets_a_lead_in() -> None:
    turns = anthropic_turns([ANSWER], volatile="", cache_control={}, marked=())
    assert turns[0] == {"role": "user", "content": [{"type": "text", "text": LEAD_IN}]}


def test_the_newest_settled_message_is_before_calls_that_wait_for_results() -> None:
    assert last_settled(repaired([USER, ANSWER]), volatile=False) == 1
    assert last_settled(repaired([USER, call("a")]), volatile=False) == 0
    assert last_settled(repaired([USER, call("a"), Message.tool("a", "1")]), volatile=False) == 2


def test_volatile_text_follows_the_newest_tool_results() -> None:
    messages = [USER, call("a"), Message.tool("a", "1")]
    newest = anthropic_turns(messages, volatile="now", cache_control={}, marked=(2,))[-1]["content"]
    assert [block["type"] for block in newest] == ["tool_result", "text"]
    assert openai_turns(messages, volatile="now")[-1]["role"] == "user"


@pytest.mark.parametrize("name", ["Ana", "Ana María", "민수"])
def test_a_speakers_name_reaches_both_providers(name: str) -> None:
    messages = [Message.user("Hello.", name=name)]
    anthropic = anthropic_turns(messages, volatile="", cache_control={}, marked=())
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
    ),
    min_size=1,
    max_size=12,
)


@given(messages=MESSAGES)
def test_any_order_of_calls_and_results_makes_valid_requests(messages: list[Message]) -> None:
    unique = _with_unique_calls(messages)
    turns = anthropic_turns(repaired(unique), volatile="", cache_control={}, marked=())
    assert anthropic_problems({"messages": turns}) == ()
    assert openai_problems({"messages": openai_turns(repaired(unique), volatile="")}) == ()


@given(messages=MESSAGES, more=MESSAGES)
def test_what_was_rendered_of_settled_messages_is_rendered_again(
    messages: list[Message], more: list[Message]
) -> None:
    everything = _with_unique_calls([*messages, *more])
    earlier = repaired(everything[: len(messages)])
    settled = last_settled(earlier, volatile=False)
    kept = 0 if settled is None else settled + 1
    assert repaired(everything)[:kept] == earlier[:kept]


def _with_unique_calls(messages: list[Message]) -> list[Message]:
    """Each call id is used once, as on a real tape; results of unknown calls are left out."""
    known: set[str] = set()
    kept: list[Message] = []
    for message in messages:
        ids = {part.id for part in message.tool_calls}
        results = {part.call_id for part in message.tool_results}
        if ids & known or not results <= known:
            continue
        known |= ids
        kept.append(message)
    return kept or [USER]


def test_a_call_id_that_occurs_again_is_told_apart() -> None:
    session = [USER, call("call_0"), Message.tool("call_0", "1")]
    messages = [message.replace(seq=seq) for seq, message in enumerate(session * 2, start=1)]
    ids = [part.id for message in repaired(messages) for part in message.tool_calls]
    answers = [part.call_id for message in repaired(messages) for part in message.tool_results]
    assert ids == answers == ["call_0", "call_0-5"]
