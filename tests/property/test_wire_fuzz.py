"""Whatever is read and appended is observed, recalled, exported, and valid for every provider.

`make fuzz` runs more than 10,000 messages; the everyday run is a smoke of it.
"""

import asyncio
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from tests.builders import NoOffset
from tests.unit.test_provider_types import TYPES

from remanence import Memory, Message
from remanence.archive.blocks import BlockStore
from remanence.conversation import Conversation
from remanence.errors import InvalidMessage
from remanence.types import (
    Dialect,
    FilePart,
    ImagePart,
    OtherPart,
    Part,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from remanence.wire import anthropic, gemini, openai, responses
from remanence.wire.content import replace_media
from remanence.wire.validate import anthropic_problems, openai_problems

pytestmark = pytest.mark.timeout(1_800)

IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
EXAMPLES = 700 if IS_LONG else 12
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
"""Shrinking an example of this size takes minutes."""

Json = Any  # generated JSON, well formed or not


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


HOSTILE = st.sampled_from(
    [
        None,
        0,
        True,
        1e308,
        float("nan"),
        float("inf"),
        10**400,
        10**1_500,
        "",
        " \n",
        "\0",
        "\ud800",
        "\\ud800",
        b"\xff",
        {},
        {1: 2},
        [],
        [None],
        {"x": 1},
        deep(90),
        deep(200),
        object(),
    ]
)
WORDS = st.sampled_from(
    [
        "My flight is LH 454 next Friday.",
        "From now on, never touch clock.py; ask me first.",
        "</memory-context>",
        "<system-reminder>x</system-reminder>",
        "```\n" + "\n" * 40,
        "민수의 생일은 5월 4일입니다.",
        "[" * 300,
        "e\u0301\u202e\u0085\u2028 \ufdfd \U0001f469\u200d\U0001f680",
        "## Notes\n- [Decision] no",
        '{"a": [1, 2, {"b": null}]}',
    ]
)
TEXT = WORDS | st.text(max_size=40)
IDS = st.sampled_from(["c1", "c2", "call_3", "toolu_4"])
NAMES = st.sampled_from(["look", "find_it", "run-3"])
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
OBJECT = st.dictionaries(st.text(max_size=6), PLAIN, max_size=3)
ARGUMENTS = OBJECT.map(json.dumps) | st.sampled_from(
    ["", "no json", '{"x": NaN}', '{"x": 1e999}', '"\\ud800"', "[" * 9_999, "{" + '"a":{' * 50]
)
PNG = st.just("iVBORw0KGgo=") | st.binary(min_size=1, max_size=9).map(lambda b: b.hex() * 4)
URL = st.sampled_from(["https://x.test/a.png", "http://x.test/a.pdf", "ftp://x", "data:,x"])


def shape(fields: dict[str, Any], **optional: Any) -> st.SearchStrategy[Json]:
    """An object of fields, some of them absent, hostile or unknown at times."""
    good = st.fixed_dictionaries(fields, optional=optional)
    unknown = st.dictionaries(st.sampled_from(["caller", "new_field"]), PLAIN, max_size=1)
    bad = st.tuples(good, st.sampled_from(sorted(fields)), HOSTILE).map(
        lambda drawn: {**drawn[0], drawn[1]: drawn[2]}
    )
    return st.one_of(
        good, good, good, st.tuples(good, unknown).map(lambda two: two[1] | two[0]), bad
    )


def typed(kind: str, **fields: Any) -> st.SearchStrategy[Json]:
    return shape({"type": st.just(kind), **fields})


UNKNOWN = typed("holograph", depth=PLAIN)

ANTHROPIC_MEDIA = st.one_of(
    typed("image", source=typed("base64", media_type=st.just("image/png"), data=PNG)),
    typed("image", source=typed("url", url=URL)),
    typed("document", source=typed("text", media_type=st.just("text/plain"), data=TEXT)),
    typed("document", title=TEXT, source=typed("base64", media_type=st.just("application/pdf"), data=PNG)),
    typed("document", source=typed("file", file_id=IDS)),
)  # fmt: skip
ANTHROPIC_TEXT = typed("text", text=TEXT) | shape(
    {"type": st.just("text"), "text": TEXT}, citations=st.none() | st.just([]), cache_control=OBJECT
)
ANTHROPIC_ASSISTANT = st.one_of(
    ANTHROPIC_TEXT,
    typed("tool_use", id=IDS, name=NAMES, input=OBJECT),
    typed("thinking", thinking=TEXT, signature=st.just("c2ln")),
    UNKNOWN,
)
ANTHROPIC_USER = st.one_of(
    ANTHROPIC_TEXT,
    ANTHROPIC_MEDIA,
    typed("tool_result", tool_use_id=IDS, content=TEXT | st.lists(ANTHROPIC_TEXT | ANTHROPIC_MEDIA, max_size=2)),
    UNKNOWN,
)  # fmt: skip
ANTHROPIC = st.one_of(
    shape({"role": st.just("user"), "content": TEXT | st.lists(ANTHROPIC_USER, max_size=3)}),
    shape({"role": st.just("assistant"), "content": TEXT | st.lists(ANTHROPIC_ASSISTANT, max_size=3)}),
    shape({"role": st.just("system"), "content": TEXT | st.lists(ANTHROPIC_TEXT, max_size=2)}),
)  # fmt: skip

OPENAI_TEXT = typed("text", text=TEXT)
OPENAI_USER = st.one_of(
    OPENAI_TEXT,
    typed("image_url", image_url=shape({"url": URL}, detail=st.just("low"))),
    typed("image_url", image_url=shape({"url": PNG.map(lambda data: f"data:image/png;base64,{data}")})),
    typed("file", file=shape({"file_data": PNG, "filename": TEXT})),
    typed("file", file=shape({"file_id": IDS})),
    typed("input_audio", input_audio=OBJECT),
)  # fmt: skip
OPENAI_CALL = st.one_of(
    shape({"id": IDS, "type": st.just("function"), "function": shape({"name": NAMES, "arguments": ARGUMENTS})}),
    shape({"id": IDS, "type": st.just("custom"), "custom": shape({"name": NAMES, "input": TEXT})}),
)  # fmt: skip
OPENAI = st.one_of(
    shape({"role": st.just("user"), "content": TEXT | st.lists(OPENAI_USER, max_size=3)}, name=TEXT),
    shape(
        {"role": st.just("assistant"), "content": TEXT | st.none() | st.lists(OPENAI_TEXT, max_size=2)},
        tool_calls=st.none() | st.lists(OPENAI_CALL, max_size=3),
        refusal=st.none() | TEXT,
        annotations=st.just([]) | st.lists(OBJECT, max_size=1),
        reasoning_content=TEXT,
    ),
    shape({"role": st.just("tool"), "tool_call_id": IDS, "content": TEXT | st.lists(OPENAI_TEXT, max_size=2)}),
    shape({"role": st.sampled_from(["system", "developer"]), "content": TEXT}),
)  # fmt: skip

RESPONSES_INPUT = st.one_of(
    typed("input_text", text=TEXT),
    typed("input_image", image_url=URL, detail=st.just("low")),
    typed("input_file", file_data=PNG, filename=TEXT),
)
RESPONSES = st.one_of(
    shape({"role": st.sampled_from(["user", "system", "developer"]), "content": TEXT | st.lists(RESPONSES_INPUT, max_size=2)}),
    typed("message", id=IDS, role=st.just("assistant"), status=st.just("completed"),
          content=st.lists(typed("output_text", text=TEXT, annotations=st.lists(OBJECT, max_size=1)) | typed("refusal", refusal=TEXT), max_size=2)),
    typed("function_call", id=IDS, call_id=IDS, name=NAMES, arguments=ARGUMENTS),
    typed("custom_tool_call", call_id=IDS, name=NAMES, input=TEXT),
    typed("function_call_output", call_id=IDS, output=TEXT | st.lists(RESPONSES_INPUT, max_size=2)),
    typed("reasoning", id=IDS, summary=st.just([]), encrypted_content=st.none() | TEXT),
    typed("web_search_call", id=IDS, status=st.just("completed")),
    typed("shell_call_output", call_id=IDS, output=PLAIN),
)  # fmt: skip

GEMINI_PART = st.one_of(
    shape({"text": TEXT}),
    shape({"text": TEXT}, thought=st.booleans(), thoughtSignature=st.just("c2ln"), thought_signature=st.just(b"sig")),
    shape({"inlineData": shape({"mimeType": st.sampled_from(["image/png", "text/plain"]), "data": PNG})}),
    shape({"fileData": shape({"fileUri": URL, "mimeType": st.just("application/pdf")})}),
)  # fmt: skip
GEMINI = st.one_of(
    shape({"role": st.just("user"), "parts": st.lists(GEMINI_PART, max_size=3)}),
    shape({
        "role": st.just("model"),
        "parts": st.lists(
            GEMINI_PART
            | shape({"functionCall": shape({"name": NAMES, "args": OBJECT}, id=IDS)})
            | shape({"executableCode": OBJECT}), max_size=3),
    }),
    shape({
        "role": st.just("user"),
        "parts": st.lists(shape({"functionResponse": shape({"name": NAMES, "response": OBJECT | st.fixed_dictionaries({"error": TEXT})}, id=IDS)}), max_size=2),
    }),
)  # fmt: skip


class Provider(NamedTuple):
    """How a provider's messages are made, read, and written one by one."""

    shapes: st.SearchStrategy[Json]
    read: Callable[[Json], tuple[Message, ...]]
    write: Callable[[Message], list[Json]]


def one(read: Callable[[Json], Message]) -> Callable[[Json], tuple[Message, ...]]:
    return lambda data: (read(data),)


PROVIDERS: dict[Dialect, Provider] = {
    "anthropic": Provider(
        ANTHROPIC,
        one(Message.from_anthropic),
        lambda m: anthropic.render(m.role, m.content, system_role=True),
    ),
    "openai": Provider(
        OPENAI, one(Message.from_openai), lambda m: openai.render(m.role, m.content)
    ),
    "openai_responses": Provider(
        RESPONSES,
        lambda item: Message.from_openai_responses([item]),
        lambda m: responses.render(m.role, m.content),
    ),
    "gemini": Provider(
        GEMINI, one(Message.from_gemini), lambda m: [gemini.render(m.role, m.content)]
    ),
}
TIMES = st.none() | st.sampled_from(
    [
        datetime(1969, 7, 20, tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5))),
        datetime(9999, 12, 31, 23, 59, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, tzinfo=timezone(-timedelta(hours=5))),
        datetime(2026, 3, 2, tzinfo=timezone(timedelta(hours=5, minutes=45))),
        datetime(2026, 3, 2, tzinfo=NoOffset()),
        datetime(2026, 3, 2),  # noqa: DTZ001 - the case
    ]
)


@dataclass
class Tally:
    """What became of the generated messages."""

    generated: int = 0
    accepted: int = 0
    refusals: set[str] = field(default_factory=set)


async def appended(chat: Conversation, message: Message) -> Message:
    """The message on the tape, after the calls that its results answer."""
    known = {call.id for earlier in await chat.messages() for call in earlier.tool_calls}
    wanted = {result.call_id for result in message.tool_results if result.call_id} - known
    if wanted and message.role in ("tool", "user"):
        calls = [ToolCallPart(id=id_, name="look", arguments="{}") for id_ in sorted(wanted)]
        await chat.append(Message.assistant(tool_calls=calls))
    return (await chat.append(message))[0]


def with_status(part: Part) -> Part:
    """A text of Responses with the status that a sent one always has."""
    if not isinstance(part, TextPart) or part.extra is None:
        return part
    fields = json.loads(part.extra.raw)
    if part.extra.dialect == "openai_responses" and "item" in fields:
        fields["item"].setdefault("status", "completed")
    return replace(part, extra=replace(part.extra, raw=json.dumps(fields, sort_keys=True)))


def plain(content: tuple[Part, ...]) -> list[Any]:  # parts of the same types
    """The parts that a provider is sent; it takes no blank text."""
    return [
        replace(part, content=tuple(plain(part.content)))
        if isinstance(part, ToolResultPart)
        else part
        for part in map(with_status, content)
        if not isinstance(part, TextPart) or part.text.strip()
    ]


def named(parts: list[Any], *, texts_alone: bool = False) -> list[Any]:  # as above
    """Parts with a text in place of what no provider can fetch, as an address that is not HTTP."""
    named_parts: list[Any] = []
    for part in parts:
        if isinstance(part, ToolResultPart):
            named_parts.append(replace(part, content=tuple(named([*part.content]))))
        elif (texts_alone and not isinstance(part, TextPart)) or (
            isinstance(part, ImagePart | FilePart)
            and part.url is not None
            and not part.url.lower().startswith(("https://", "http://", "gs://"))
        ):
            named_parts += replace_media([part])
        else:
            named_parts.append(part)
    return named_parts


def results_first(parts: list[Any]) -> list[Any]:  # as above
    """The order in which Anthropic takes parts; the other providers' results are messages."""
    return sorted(parts, key=lambda part: not isinstance(part, ToolResultPart))


def expect_same_back(dialect: Dialect, message: Message) -> None:
    provider = PROVIDERS[dialect]
    read = [again for sent in provider.write(message) for again in provider.read(sent)]
    assert read, message
    content = plain(tuple(part for again in read for part in again.content))
    sent = plain(message.content)
    is_system = dialect == "anthropic" and message.role == "system"
    if dialect != "gemini":
        sent = named(sent, texts_alone=is_system)
    if dialect == "anthropic" and not is_system:
        sent = results_first(sent)
    assert content == sent
    assert {again.role for again in read} == {message.role}


def is_known(message: Message) -> bool:
    """Whether a message has no part or field that the types of providers do not name."""
    parts = [*message.content]
    parts += [inner for result in message.tool_results for inner in result.content]
    return not any(isinstance(part, OtherPart) or part.extra for part in parts)


async def expect_usable(chat: Conversation, kept: list[Message], folder: Path) -> None:
    stored = {message.seq: message for message in await chat.messages()}
    assert [stored[message.seq] for message in kept] == kept
    await chat.flush(everything=True)
    state = await chat.state()
    assert (state.observed_seq, state.observe_failure) == (state.last_seq, None)
    await chat.recall("flight LH 454 민수 look", limit=5)
    context = await chat.context(system="You help.", recall="flight")
    sent: dict[Dialect, Any] = {
        "anthropic": context.to_anthropic(),
        "openai": context.to_openai(),
        "openai_responses": context.to_openai_responses(),
        "gemini": context.to_gemini(),
    }
    for request in (*sent.values(), context.to_anthropic(keep_open_calls=True)):
        json.dumps(request, ensure_ascii=False, allow_nan=False).encode()
    assert context.to_text()
    assert not anthropic_problems(sent["anthropic"])
    assert not openai_problems(sent["openai"])
    items = sent["openai_responses"]["input"]
    for item, following in zip(items, [*items[1:], {"role": "user"}], strict=True):
        assert item.get("type") != "reasoning" or following.get("role") in (None, "assistant")
    if all(map(is_known, context.messages)):
        for dialect, key in (("anthropic", "messages"), ("openai", "messages"),
                             ("openai_responses", "input"), ("gemini", "contents")):  # fmt: skip
            types = TYPES[dialect]  # type: ignore[index] # one of them
            types.dump_json(types.validate_python(sent[dialect][key]), warnings="error")  # type: ignore[index] # one of them
    await chat.export_blocks(BlockStore(folder))


@pytest.mark.parametrize("dialect", PROVIDERS)
def test_what_is_accepted_is_observed_sent_anywhere_and_read_back_equal(
    dialect: Dialect, tmp_path: Path
) -> None:
    provider, tally = PROVIDERS[dialect], Tally()

    async def live(memory: Memory, drawn: list[tuple[Json, datetime | None]]) -> None:
        chat = memory.conversation(f"c{tally.generated}")
        kept: list[Message] = []
        for data, at in drawn:
            tally.generated += 1
            try:
                (message,) = provider.read(data)
                put = await appended(chat, message.replace(created_at=at))
            except InvalidMessage as error:
                tally.refusals.add(type(error).__name__)
                continue
            kept.append(put)
            tally.accepted += 1
            expect_same_back(dialect, message)
        if kept:
            await expect_usable(chat, kept, tmp_path)

    with asyncio.Runner() as runner:
        memory = runner.run(opened())

        @settings(
            max_examples=EXAMPLES,
            suppress_health_check=list(HealthCheck),
            phases=PHASES,
            report_multiple_bugs=False,
        )
        @given(st.lists(st.tuples(provider.shapes, TIMES), min_size=1, max_size=25))
        def check(drawn: list[tuple[Json, datetime | None]]) -> None:
            runner.run(live(memory, drawn))

        try:
            check()
        finally:
            runner.run(memory.close())
    print(f"{dialect}: {tally.generated:,} messages generated, {tally.accepted:,} accepted")  # noqa: T201
    assert tally.accepted
    assert tally.generated >= (2_500 if IS_LONG else 1)


async def opened() -> Memory:
    return await Memory.open("sqlite:///:memory:")
