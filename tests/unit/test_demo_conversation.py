import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.resources import files
from itertools import pairwise
from typing import Literal

import pytest
from pydantic import TypeAdapter

HANGUL = re.compile(r"[\uac00-\ud7a3]")
KANA = re.compile(r"[\u3040-\u30ff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    id: str
    type: Literal["function"]
    function: Function


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoMessage:
    role: Literal["user", "assistant", "tool"]
    content: str | None
    created_at: datetime
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


DEMO_MESSAGE = TypeAdapter(DemoMessage)


@pytest.fixture(scope="module")
def messages() -> list[DemoMessage]:
    text = files("remanence.cli").joinpath("demo_conversation.jsonl").read_text(encoding="utf-8")
    return [DEMO_MESSAGE.validate_json(line) for line in text.splitlines()]


def text_of(messages: list[DemoMessage]) -> str:
    return "\n".join(message.content or "" for message in messages)


def gaps(messages: list[DemoMessage]) -> Iterator[timedelta]:
    return (later.created_at - earlier.created_at for earlier, later in pairwise(messages))


def test_the_demo_is_long_enough_to_compress_and_short_enough_to_replay(
    messages: list[DemoMessage],
) -> None:
    assert 140 <= len(messages) <= 180


def test_every_message_has_a_known_role(messages: list[DemoMessage]) -> None:
    assert {message.role for message in messages} == {"user", "assistant", "tool"}


def test_every_message_says_something_or_calls_a_tool(messages: list[DemoMessage]) -> None:
    silent = [m for m in messages if not (m.content or "").strip() and not m.tool_calls]
    assert silent == []


def test_every_call_is_answered_once_before_anyone_else_speaks(
    messages: list[DemoMessage],
) -> None:
    waiting: list[str | None] = []
    for message in messages:
        if message.role == "tool":
            waiting.remove(message.tool_call_id)
            continue
        assert waiting == []
        waiting = [call.id for call in message.tool_calls]
    assert waiting == []


def test_a_call_id_names_one_call(messages: list[DemoMessage]) -> None:
    ids = [call.id for message in messages for call in message.tool_calls]
    assert len(ids) == len(set(ids))


def test_only_the_assistant_calls_tools_and_its_arguments_are_json_objects(
    messages: list[DemoMessage],
) -> None:
    calling = [message for message in messages if message.tool_calls]
    arguments = [
        json.loads(call.function.arguments) for message in calling for call in message.tool_calls
    ]
    assert {message.role for message in calling} == {"assistant"}
    assert all(isinstance(value, dict) for value in arguments)


def test_timestamps_carry_an_offset_and_ascend(messages: list[DemoMessage]) -> None:
    assert all(message.created_at.utcoffset() is not None for message in messages)
    assert min(gaps(messages)) > timedelta(0)


def test_the_demo_spans_two_weeks_in_several_sittings(messages: list[DemoMessage]) -> None:
    sittings = 1 + sum(gap > timedelta(hours=6) for gap in gaps(messages))
    assert messages[-1].created_at - messages[0].created_at >= timedelta(weeks=2)
    assert sittings >= 3


@pytest.mark.parametrize("script", [HANGUL, KANA], ids=["hangul", "kana"])
def test_part_of_the_demo_is_in_another_script(
    messages: list[DemoMessage], script: re.Pattern[str]
) -> None:
    assert script.search(text_of(messages))


def test_every_address_in_the_demo_is_reserved_for_examples(messages: list[DemoMessage]) -> None:
    text = text_of(messages)
    hosts = re.findall(r"(?:https?://|[\w.]+@)([a-z0-9.-]+[a-z0-9])", text)
    assert {host for host in hosts if host.split(".")[-2:] != ["example", "com"]} == set()
    assert hosts
