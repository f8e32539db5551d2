"""What goes wrong names the thing, the value and the remedy, and nothing is written."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from tests.builders import NoOffset

from remanence import Memory, Message, Policy, Settings
from remanence.errors import ContextOverflow, InvalidMessage, InvalidPolicy
from remanence.settings import policy_of
from remanence.types import ImagePart, OtherPart, TextPart, ToolCallPart

BAD_MESSAGES: dict[str, tuple[Message, str]] = {
    "empty": (Message.user(""), r"the user message is empty: append a message with"),
    "no id": (Message.user("x", id=""), r"the id of a message is empty: leave it out"),
    "blank": (Message.assistant("  \n"), r"the assistant message is empty"),
    "unknown role": (
        Message(role="robot", content=(TextPart(text="x"),)),  # type: ignore[arg-type] # the case
        r"role 'robot' is unknown: use one of assistant, system, tool, user",
    ),
    "orphan result": (Message.tool("call-9", "done"), r"call-9.*"),
    "call of the user's": (
        Message(role="user", content=(ToolCallPart(id="c", name="f", arguments="{}"),)),
        r"tool call 'c' is in a user message: only the assistant calls tools",
    ),
    "NUL": (Message.user("a\x00b"), r"NUL character at position 1: remove it"),
    "lone surrogate": (
        Message.user("ok \ud83d"),
        r"lone surrogate '\\ud83d' at position 3: leave it out, or replace it by U\+FFFD",
    ),
    "long name": (
        Message.user("x", name="n" * 20_000),
        r"name 'n+ is 20,000 characters long, more than 256: shorten it",
    ),
    "naive time": (
        Message.user("x", created_at=datetime(2026, 3, 2)),  # noqa: DTZ001 - the case
        r"created_at '2026-03-02T00:00:00' has no time zone",
    ),
    "50 MB": (
        Message.user("x" * 50_000_000),
        r"the user message is 50,000,000 bytes long, more than max_message_bytes=16,777,216",
    ),
    "50 MB image": (
        Message(role="user", content=(ImagePart(data="x" * 50_000_000),)),
        r"50,000,000 bytes long",
    ),
}


def said(text: Any) -> Message:
    return Message(role="user", content=(TextPart(text=text),))


def said_calls(calls: Any) -> Message:
    return Message.assistant(tool_calls=calls)


def other(raw: str, dialect: Any = "openai") -> Message:
    return Message(role="user", content=(OtherPart(dialect=dialect, raw=raw),))


BAD_PARTS: dict[str, tuple[Any, str]] = {
    "part without type": (other('{"x": 1}'), "has no type"),
    "text part without text": (other('{"type": "text"}'), "needs text, a string"),
    "number as text": (other('{"type": "text", "text": 0}', "anthropic"), "needs text, a string"),
    "text that is a number": (said(0), "TextPart.text 0 is of the wrong type"),
    "very long number": (said(10**5_000), "TextPart.text of type int is of the wrong type"),
    "deep part": (other('{"type": "a", "b": ' + "[" * 999 + "]" * 999 + "}"), "is nested deeper"),
    "NaN in a part": (other('{"type": "a", "b": NaN}'), "NaN is not a JSON number"),
    "infinite number": (other('{"type": "a", "b": 1e999}'), "1e999 is not a JSON number"),
    "escaped surrogate": (other('{"type": "a", "b": "\\ud800"}'), "surrogates not allowed"),
    "unknown dialect": (other('{"type": "a"}', "klingon"), "dialect 'klingon' is unknown"),
    "empty image": (Message(role="user", content=(ImagePart(),)), "the image is empty"),
    "no base64": (Message(role="user", content=(ImagePart(data="<png>"),)), "is not base64"),
    "call without a name": (
        Message.assistant(tool_calls=[ToolCallPart(id="c", name="", arguments="{}")]),
        "has no id or no name",
    ),
    "two calls of one id": (
        Message.assistant(tool_calls=[ToolCallPart(id="c", name="f", arguments="{}")] * 2),
        "one of them twice: give each call an id of its own",
    ),
    "no offset": (
        Message.user("x", created_at=datetime(2026, 3, 2, tzinfo=NoOffset())),
        "has no time zone",
    ),
    "before the year 1": (
        Message.user("x", created_at=datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=9)))),
        r"created_at '0001-01-01T00:00:00\+09:00' is not a time in the range of UTC",
    ),
    "no time": (Message.user("x", created_at="today"), "use datetime or None"),  # type: ignore[arg-type] # the case
    "list of parts": (Message(role="user", content=[TextPart(text="x")]), "use a tuple"),  # type: ignore[arg-type] # the case
    "text as content": (Message(role="user", content=("x",)), "not a part of a message"),  # type: ignore[arg-type] # the case
}
BAD_MESSAGES |= BAD_PARTS


@pytest.mark.parametrize("case", BAD_MESSAGES)
async def test_a_bad_message_is_refused_by_name_and_its_good_neighbours_are_not_written(
    case: str,
) -> None:
    bad, text = BAD_MESSAGES[case]
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("a")
        await chat.append(Message.user("Hello."))
        with pytest.raises(InvalidMessage, match=text):
            await chat.append(Message.user("Good."), bad, Message.user("Also good."))
        assert (await chat.state()).last_seq == 1
        assert [message.text for message in await chat.messages()] == ["Hello."]


@pytest.mark.parametrize("bad", [Message.user(""), other("{")], ids=["empty", "not JSON"])
async def test_the_position_of_a_bad_message_among_several_is_named(bad: Message) -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("a")
        with pytest.raises(InvalidMessage, match=r"^message 2 of 3: "):
            await chat.append(Message.user("Good."), bad, Message.user("Also good."))
        with pytest.raises(InvalidMessage, match=r"^(?!message)"):
            await chat.append(bad)


@pytest.mark.parametrize(
    ("make", "arguments"),
    [
        (Message.user, (None,)),
        (Message.user, (b"hi",)),
        (Message.assistant, (5,)),
        (Message.tool, ("call-1", ["hi"])),
    ],
)
def test_a_text_that_is_no_str_is_refused_before_it_is_appended(
    make: Callable[..., Message], arguments: tuple[Any, ...]
) -> None:
    with pytest.raises(InvalidMessage, match="of a message is not a str: convert it"):
        make(*arguments)


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (lambda: said_calls(None), "tool_calls None of a message are not a list: leave them out"),
        (lambda: Message.from_openai_responses(b"hi"), "input b'hi' is a bytes: pass items"),
    ],
    ids=["no calls", "bytes"],
)
def test_a_message_of_a_wrong_type_is_refused(read: Callable[[], object], text: str) -> None:
    with pytest.raises(InvalidMessage, match=text):
        read()


class Nameless:
    """An object whose repr fails."""

    def __repr__(self) -> str:
        raise ValueError("no name")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (10**5_000, "message holds an integer of 16,610 bits, and the most is 4,096: write it as"),
        ({1}, "message holds a value .1. that JSON cannot represent: use text"),
        (Nameless(), "message holds a value of type Nameless that JSON cannot represent"),
    ],
    ids=["long integer", "set", "no repr"],
)
def test_a_value_that_json_cannot_represent_is_refused_with_the_reason(
    value: object, text: str
) -> None:
    use = {"type": "tool_use", "id": "c", "name": "f", "input": {"a": value}}
    with pytest.raises(InvalidMessage, match=text):
        Message.from_anthropic({"role": "assistant", "content": [use]})


async def test_a_time_that_the_zone_of_a_conversation_does_not_have_is_refused() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("a", timezone=timezone(timedelta(hours=9)))
        with pytest.raises(InvalidMessage, match=r"outside of the years 1 to 9999 in time zone"):
            await chat.append(Message.user("x", created_at=datetime.max.replace(tzinfo=UTC)))
        assert await chat.messages() == ()


@pytest.mark.parametrize(("end", "hours"), [("0001-01-01T00:00Z", -9), ("9999-12-31T23:59Z", 9)])
async def test_a_time_that_another_message_has_no_zone_for_is_observed(
    end: str, hours: int
) -> None:
    elsewhere = datetime(2026, 3, 2, tzinfo=timezone(timedelta(hours=hours)))
    talk = "I moved to Bonn last week, and next week I start at SAP."
    async with Memory.open("sqlite:///:memory:") as memory:
        for name, first, second in (
            ("a", datetime.fromisoformat(end), elsewhere),
            ("b", elsewhere, datetime.fromisoformat(end)),
        ):
            chat = memory.conversation(name)
            await chat.append(Message.user(talk, created_at=first))
            await chat.append(Message.assistant(f"Noted: {talk}", created_at=second))
            await chat.append(Message.user(talk, created_at=second))
            await chat.flush(everything=True)
            state = await chat.state()
            assert (state.observed_seq, state.observe_failure) == (3, None)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"role": "user", "content": 5}, "content 5 is not a text: pass a string or a list"),
        ({"role": "user", "content": [5]}, "content part 5 is not an object"),
        ({"role": "pirate", "content": "x"}, "role 'pirate' is unknown"),
        ({"content": "x"}, "role None is unknown"),
        ({"role": "tool", "content": "x"}, "tool_call_id None: name the call that it answers"),
        (
            {"role": "assistant", "content": None, "tool_calls": [{"id": "a"}]},
            "incomplete: it needs id, function.name",
        ),
        ({"role": "user", "name": 7, "content": "x"}, "the name of a message is 7"),
    ],
)
def test_a_malformed_openai_message_is_refused_by_name(data: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidMessage, match=text):
        Message.from_openai(data)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"role": "tool", "content": "x"}, "role 'tool' is unknown: use 'user' or 'assistant'"),
        ({"role": "user", "content": None}, "content None is not a text: pass a string"),
        ({"role": "user", "content": ["x"]}, "content part 'x' is not an object"),
    ],
)
def test_a_malformed_anthropic_message_is_refused_by_name(data: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidMessage, match=text):
        Message.from_anthropic(data)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"tail_tokens": 300_000}, r"tail_tokens=300000 is impossible: .*180,000 tokens"),
        ({"tail_keep_tokens": 9_000}, r"tail_keep_tokens=9000 .* below tail_tokens=8,000"),
        ({"note_ratio": 0.0}, r"note_ratio=0.0 .* between 0 and 1"),
        ({"observe_tokens": 0}, r"observe_tokens=0 .* positive"),
        (
            {"reflect_tokens": (4_000,)},
            r"reflect_tokens=\(4000,\) .* each generation of reflections",
        ),
        ({"reflect_tokens": (0, 1)}, r"reflect_tokens=\(0, 1\) .* positive budgets"),
        ({"observe_max_tokens": 200_000}, r"40,000 tokens would exceed max_output_tokens=16,000"),
        ({"block_after": 0.5}, r"block_after=0.5 .* 1.0 or more, or None"),
        ({"precompute_at": 2.0}, r"precompute_at=2.0 .* between 0 and 1"),
    ],
)
def test_an_impossible_policy_is_refused_with_its_value_and_the_remedy(
    changes: dict[str, Any], text: str
) -> None:
    with pytest.raises(InvalidPolicy, match=text):
        Policy(**changes)


def test_an_unknown_policy_setting_is_refused_with_the_nearest_known_one() -> None:
    with pytest.raises(InvalidPolicy, match=r"policy.tail_token is unknown: .* tail_tokens"):
        policy_of(Settings(policy={"tail_token": 5}))


async def test_a_system_prompt_larger_than_the_window_is_refused_with_both_numbers() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("a")
        await chat.append(Message.user("Hello."))
        with pytest.raises(ContextOverflow, match=r"of the 180,000 tokens of a context: shorten"):
            await chat.context(system="many words " * 200_000)


async def test_a_message_larger_than_the_window_is_shown_without_its_middle_and_named() -> None:
    policy = Policy(
        max_context_tokens=5_000, tail_tokens=1_000, tail_keep_tokens=100, reflect_tokens=()
    )
    async with Memory.open("sqlite:///:memory:", policy=policy) as memory:
        chat = memory.conversation("a")
        await chat.append(Message.user("begin " + "middle " * 20_000 + "end"))
        async with asyncio.timeout(60):
            context = await chat.context(system="You help.")

    assert context.stats.context_tokens <= 5_000
    assert [(gap.first_seq, gap.reason) for gap in context.omitted] == [(1, "excerpt")]
    text = context.messages[0].text
    assert text.startswith("begin")
    assert text.endswith("end")
    assert "characters of message 1 left out" in text


@pytest.mark.req("X-05")
async def test_parts_of_unknown_types_are_kept_whole_counted_and_given_back() -> None:
    unknown = {"type": "holograph", "payload": {"depth": 3, "words": "a hundred words " * 30}}
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("a")
        stored = await chat.append(
            Message.from_anthropic(
                {"role": "user", "content": [{"type": "text", "text": "Look:"}, unknown]}
            )
        )
        await chat.flush(everything=True)
        context = await chat.context()

    assert stored[0].tokens > 80
    text, block = context.to_anthropic()["messages"][0]["content"]
    assert "cache_control" in text
    assert block == unknown
    assert context.to_openai()["messages"][0]["content"] == [
        {"type": "text", "text": "Look:"},
        {"type": "text", "text": "[holograph in the format of another provider]"},
    ]
