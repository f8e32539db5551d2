"""What a newcomer may pass by mistake is refused with the name, the value and the remedy."""

import math
import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any

import pytest

from remanence import (
    Chat,
    Conversation,
    Hooks,
    Memory,
    Message,
    Policy,
    Tool,
    blocking,
    count_tokens,
)
from remanence.clock import SystemClock
from remanence.errors import (
    InvalidArgument,
    InvalidMessage,
    InvalidPolicy,
    ModelError,
    NotOpen,
    RemanenceError,
)
from remanence.observers.extractive import ExtractiveObserver
from remanence.protocols import ModelRequest
from remanence.providers.function import FunctionEmbedder
from remanence.testing import FixedClock, ScriptedModel
from remanence.testing.store_contract.samples import usage
from remanence.types import ImagePart, TextPart

IN_MEMORY = "sqlite:///:memory:"
NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001 - the case

Call = Callable[[Any, Any], Any]
any_chat: Any = Chat  # the types would refuse these calls
any_count: Any = count_tokens
any_hooks: Any = Hooks
any_policy: Any = Policy.default


async def answer(request: ModelRequest) -> str:
    return "Noted."


def plain(request: Any) -> str:
    return "Noted."


class NoTime(datetime):
    """A datetime that is no time, such as `pandas.NaT`."""

    def utcoffset(self) -> timedelta:
        raise ValueError("NoTime does not support utcoffset")


class PlainModel:
    """A model that is not async."""

    name = "plain"

    def complete(self, request: Any) -> Any: ...


class Plain:
    """Other parts of a memory that are not async."""

    name = "plain"
    dimensions = None

    def observe(self, request: Any) -> Any: ...

    reflect = extract = embed = put = nearest = forget = observe


class AsyncClock:
    async def now(self) -> datetime:
        return NAIVE

    async def new_id(self, kind: str) -> str:
        return kind


def tool(**changes: Any) -> Tool:
    given: dict[str, Any] = {"name": "t", "description": "", "parameters": {}, "handler": answer}
    return Tool(**{**given, **changes})


WRONG: dict[str, tuple[Call, str]] = {
    "id": (lambda m, c: m.conversation(12345), "conversation id 12345 .* such as '12345'"),
    "user": (lambda m, c: m.conversation("x", user=["ana"]), r"conversation user \['ana'\]"),
    "time zone": (
        lambda m, c: m.conversation("x", timezone="Europe/Berlin"),
        r"use a tzinfo, such as zoneinfo\.ZoneInfo\('Europe/Berlin'\)",
    ),
    "limit": (lambda m, c: c.messages(limit=-1), "limit=-1 is impossible: use a whole number"),
    "huge limit": (lambda m, c: c.messages(limit=2**70), "limit=1180"),
    "nan": (lambda m, c: c.messages(limit=math.nan), "limit=nan"),
    "after": (lambda m, c: c.messages(after=None), "after=None"),
    "query": (lambda m, c: c.recall(None), "query=None is impossible: use a str"),
    "blank query": (lambda m, c: c.recall(" "), "query=' ' is impossible: use a text with words"),
    "blank query of a user": (lambda m, c: m.recall("", user="ana"), "query='' is impossible"),
    "recalled": (lambda m, c: c.recall("x", limit="3"), "limit='3'"),
    "most tokens": (lambda m, c: c.recall("x", max_tokens=-1), "max_tokens=-1"),
    "system": (lambda m, c: c.context(system=5), "system=5 is impossible"),
    "knowledge": (lambda m, c: c.context(knowledge="text"), "knowledge='text'.* list"),
    "now": (lambda m, c: c.context(now=NAIVE), "now=.*give it a time zone"),
    "time after all others": (
        lambda m, c: c.context(now=datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))),
        r"now='9999-12-31T23:59:59.999999-05:00' is impossible: .*years 1 to 9999",
    ),
    "text for a time": (lambda m, c: c.context(now="today"), "now='today'.*datetime"),
    "version": (lambda m, c: c.context_at("1"), "version='1'"),
    "segment": (lambda m, c: c.source(5), "segment_id=5"),
    "fact for its id": (
        lambda m, c: m.facts.forget(Message.user("x", id="m1"), user="ana"),
        "fact_id=.*: use a str, its id",
    ),
    "blocks": (lambda m, c: c.export_blocks("folder"), "store='folder'.*BlockStore"),
    "call": (lambda m, c: c.record_call("dear"), "usage='dear'.*Usage"),
    "purpose of a call": (
        lambda m, c: c.record_call(usage(purpose="talk")),
        "purpose='talk'.*chat",
    ),
    "tokens of a call": (lambda m, c: c.record_call(usage(input_tokens=-5)), "input_tokens=-5"),
    "cached tokens of a call": (
        lambda m, c: c.record_call(usage(input_tokens=100, cache_read_tokens=1_000)),
        "input_tokens=100 .* 1200 tokens",
    ),
    "cost of a call": (lambda m, c: c.record_call(usage(cost_usd=math.nan)), "cost_usd=nan"),
    "time of a call": (lambda m, c: c.record_call(usage(at=NAIVE)), "usage.at=.*time zone"),
    "model of a call": (lambda m, c: c.record_call(usage(model="a\0")), "usage.model has a NUL"),
    "outcome of a call": (lambda m, c: c.record_call(usage(outcome=None)), "outcome=None.*str"),
    "page": (lambda m, c: m.conversations(limit=-1), "limit=-1"),
    "after page": (lambda m, c: m.conversations(after="a"), "after='a'"),
    "NUL in a user": (lambda m, c: m.usage(user="a\0"), "user has a NUL"),
    "NUL in a user of a page": (lambda m, c: m.conversations(user="a\0"), "user has a NUL"),
    "NUL in a tenant": (lambda m, c: m.events(tenant="a\0"), "tenant has a NUL"),
    "NUL in a consumer": (lambda m, c: m.deliver_events("a\0", answer), "consumer has a NUL"),
    "since": (lambda m, c: m.usage(since="2026"), "since='2026'"),
    "fact": (lambda m, c: m.facts.save(5, user="ana"), "summary=5"),
    "tags": (lambda m, c: m.facts.save("x", user="ana", tags="a"), "tags='a'.*list"),
    "known since": (lambda m, c: m.facts.save("x", user="ana", valid_from=NAIVE), "valid_from"),
    "no time": (
        lambda m, c: m.facts.save("x", user="ana", valid_from=NoTime(2026, 1, 1)),
        "valid_from=.*use a datetime with a time zone",
    ),
    "facts": (lambda m, c: m.facts.list(user="ana", limit=-1), "limit=-1"),
    "searched": (lambda m, c: m.facts.search(5, user="ana"), "query=5"),
    "searched blank": (lambda m, c: m.facts.search(" ", user="ana"), "query=' '.*text with words"),
    "facts of": (lambda m, c: m.facts.list(user=5), "user 5 is not a name"),
    "all facts": (
        lambda m, c: m.facts.list(user="ana", history="all"),
        "history='all'.*use a bool",
    ),
    "turn": (lambda m, c: c.append(Message.user("x"), turn=["t"]), r"turn=\['t'\]"),
    "list of messages": (
        lambda m, c: c.append([Message.user("x")]),
        r"is a list .*: pass its messages, as in append\(\*messages\)",
    ),
    "fork": (lambda m, c: c.fork("x", last_seq=0), "last_seq=0 is not on the tape"),
    "all work": (lambda m, c: c.flush(everything="no"), "everything='no'.*use a bool"),
    "retried": (lambda m, c: c.flush(retry=1), "retry=1.*use a bool"),
    "searched everywhere": (
        lambda m, c: c.forget(query="x", everywhere="no"),
        "everywhere='no'.*use a bool",
    ),
    "scrubbed": (lambda m, c: c.delete(scrub="no"), "scrub='no'.*use a bool"),
    "unseen hits": (lambda m, c: c.recall("x", unseen="no"), "unseen='no'.*use a bool"),
    "as one": (lambda m, c: c.append(Message.user("x"), as_one="no"), "as_one='no'.*use a bool"),
    "copy": (lambda m, c: m.backup(5), "path=5 .*path of a file"),
    "URL of a copy": (lambda m, c: m.backup("sqlite:///copy.db"), "path=.* not a URL"),
    "NUL in a path": (lambda m, c: m.backup("a\0b"), "path=.*path of a file"),
    "forgotten place": (lambda m, c: c.forget("m1", 1), "message_id=1 is impossible: use a str"),
    "forgotten list": (lambda m, c: c.forget(["m1"]), r"message_id=\['m1'\] .*: use a str"),
    "forgotten message": (
        lambda m, c: c.forget(Message.user("x", id="m1")),
        "message_id=.*: use a str, its id",
    ),
    "forgotten user": (lambda m, c: m.forget_user(""), "user '' is not a name"),
    "exported user": (lambda m, c: m.export_user("a\0b"), "user .* is not a name"),
    "noted user": (lambda m, c: m.note("x", user=5), "user 5 is not a name"),
    "user of notes": (lambda m, c: m.consolidate(user=5), "user 5 is not a name"),
    "tenant of notes": (lambda m, c: m.consolidate(tenant=5), "tenant 5 is not a name"),
    "scopes": (lambda m, c: m.keys.create("k", scopes=5), "scopes=5.*list"),
    "scope": (lambda m, c: m.keys.create("k", scopes=["all"]), "scopes='all'.*known are read"),
    "token": (lambda m, c: m.keys.verify(None), "token=None.*use a str"),
    "dict tool": (
        lambda m, c: any_chat(c, model=answer, tools=[{"name": "x"}]),
        "is a dict: use Tool",
    ),
    "one tool": (lambda m, c: any_chat(c, model=answer, tools=tool()), "tools=.*pass a list"),
    "tools of one name": (
        lambda m, c: any_chat(c, model=answer, tools=[tool(), tool()]),
        "2 tools are called 't': give each a name",
    ),
    "no model": (lambda m, c: any_chat(c, model=None), "type NoneType is not a model: pass a name"),
    "plain model": (lambda m, c: any_chat(c, model=plain), "model=.*plain.*write async def"),
    "plain handler": (lambda m, c: tool(handler=plain), "handler=.*write async def"),
    "time of a hook": (
        lambda m, c: any_hooks(timeout_seconds="5"),
        "timeout_seconds='5'.*a number",
    ),
    "plain hook": (lambda m, c: any_hooks(before_observe=plain), "before_observe=.*write async"),
    "tool name": (lambda m, c: tool(name="look up"), "name='look up'.*without spaces"),
    "rounds": (lambda m, c: any_chat(c, model=answer, max_rounds=0), "max_rounds=0"),
    "identity": (lambda m, c: any_chat(c, model=answer, identity="\0"), "identity has a NUL"),
    "conversation": (lambda m, c: any_chat("chat-7", model=answer), r"memory.conversation\(...\)"),
    "sent dict": (
        lambda m, c: any_chat(c, model=answer).send({"role": "user"}),
        "Message.from_openai",
    ),
    "sent answer": (
        lambda m, c: any_chat(c, model=answer).send(Message.assistant("x")),
        "the role 'assistant': send one with the role 'user'",
    ),
    "answer id": (
        lambda m, c: any_chat(c, model=answer).send("x", answer_id=5),
        "answer id 5 .* such as '5'",
    ),
    "time of a clock": (lambda m, c: FixedClock(NAIVE), "now=.*give it a time zone"),
    "script": (lambda m, c: ScriptedModel("Hi."), "script='Hi.' is impossible: use a list"),
    "model of a count": (lambda m, c: any_count("x", model=5), "model=5.*use a str"),
    "counted": (lambda m, c: any_count(5), "text_or_message=5.*Message"),
}


@pytest.mark.parametrize("text", ["a\ud800", "a\0"])
@pytest.mark.parametrize("name", ["system", "identity", "knowledge", "recall", "channel"])
async def test_a_context_refuses_a_text_that_no_request_can_send(name: str, text: str) -> None:
    value: Any = [text] if name == "knowledge" else text
    async with Memory.open(IN_MEMORY) as memory:
        chat = memory.conversation("a")
        with pytest.raises(InvalidArgument, match=f"{name} has .* at position 1: "):
            await chat.context(**{name: value})


async def result_of(call: Call, memory: Memory, chat: Conversation) -> Any:
    result = call(memory, chat)
    return await result if isinstance(result, Awaitable) else result


@pytest.mark.parametrize("case", WRONG)
async def test_a_wrong_argument_is_refused_with_its_name_its_value_and_the_remedy(
    case: str,
) -> None:
    call, text = WRONG[case]
    async with Memory.open(IN_MEMORY) as memory:
        chat = memory.conversation("a", user="ana")
        with pytest.raises((InvalidArgument, InvalidMessage), match=text):
            await result_of(call, memory, chat)
        assert (await chat.state()).last_seq == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"model": plain}, "write async def"),
        ({"model": partial(plain)}, "write async def"),
        ({"model": PlainModel().complete}, "write async def"),
        ({"model": PlainModel()}, r"model\.complete=.*write async def"),
        ({"observer": Plain()}, r"observer\.observe=.*write async def"),
        ({"reflector": Plain()}, r"reflector\.reflect=.*write async def"),
        ({"extractor": Plain()}, r"extractor\.extract=.*write async def"),
        ({"embedder": Plain()}, r"embedder\.embed=.*write async def"),
        ({"fact_vectors": Plain()}, r"fact_vectors\.put=.*write async def"),
        ({"fact_vectors": object()}, r"fact_vectors=<object.*async def put, nearest and forget"),
        ({"fact_vectors": Plain}, "Plain is a class"),
        ({"clock": AsyncClock()}, r"clock=.*sync methods now\(\)"),
        ({"model": 5}, "a value of type int is not a model: pass a name"),
        ({"model": 0}, "a value of type int is not a model: pass a name"),
        ({"model": []}, r"model=\[\] is impossible: name at least one model"),
        ({"observer": {}}, "a value of type dict is neither a model nor an Observer"),
        (
            {"observer": object()},
            r"neither a model nor an Observer: .*async def observe\(request\)",
        ),
        (
            {"observer": ExtractiveObserver},
            r"ExtractiveObserver is a class: pass an object of it, such as ExtractiveObserver\(\)",
        ),
        ({"model": [ScriptedModel]}, "ScriptedModel is a class"),
        ({"embedder": FunctionEmbedder}, "FunctionEmbedder is a class"),
        ({"extractor": ScriptedModel}, "ScriptedModel is a class"),
        ({"reflector": 5}, r"neither a model nor a Reflector: .*async def reflect\(request\)"),
        ({"extractor": 5}, r"neither a model nor a FactExtractor: .*async def extract\(request\)"),
        (
            {"embedder": lambda texts: []},
            "embedder=<function .*lambda.* kept under .* name: write a",
        ),
        ({"embedder": partial(plain)}, r"embedder=functools\.partial.*or an object with name"),
        ({"embedder": 5}, "a value of type int is not an embedder: pass a name"),
        ({"budgets": 5}, "budgets=5 .*Budget"),
        ({"hooks": print}, "hooks=.*Hooks"),
        ({"read_only": "no"}, "read_only='no' is impossible: use a bool"),
        ({"all_users": "no"}, "all_users='no' is impossible: use a bool"),
        ({"clock": 5}, r"clock=5 is impossible: use a Clock.*SystemClock\(\)"),
        ({"clock": SystemClock}, "clock=<class .*SystemClock"),
        ({"model_options": {"attempts": 2}}, "model_options=.*ModelOptions"),
    ],
)
async def test_a_memory_is_not_opened_with_a_wrong_part(
    arguments: dict[str, Any], text: str
) -> None:
    with pytest.raises(InvalidArgument, match=text):
        async with Memory.open(IN_MEMORY, **arguments):
            pass


async def test_an_empty_name_of_a_model_is_not_taken_for_none() -> None:
    with pytest.raises(ModelError, match="model '' is not a name: write anthropic:"):
        async with Memory.open(IN_MEMORY, model=""):
            pass


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"token_counter": "tiktokn"}, "token_counter.*'tiktokn'.*'flat' or 'cjk' or 'split' or "),
        ({"heading": "\0"}, "heading='.x00' is impossible: leave out NUL characters"),
        ({"separator": "\ud800"}, "separator='.ud800' is impossible: leave out NUL characters"),
    ],
)
def test_a_policy_refuses_a_wrong_setting_with_what_to_write(
    settings: dict[str, Any], text: str
) -> None:
    with pytest.raises(InvalidPolicy, match=text):
        any_policy(**settings)


async def test_an_embedder_may_be_a_plain_function() -> None:
    def letters(texts: Sequence[str]) -> list[list[float]]:
        return [[float(text.lower().count(letter)) for letter in "abt"] for text in texts]

    async with Memory.open(IN_MEMORY, embedder=letters) as memory:
        await memory.facts.save("A tabby cat", user="ana")
        await memory.facts.save("Ships in fog", user="ana")
        vector = await FunctionEmbedder(letters).embed(["tabata"])

    assert vector == [[3.0, 1.0, 2.0]]


def test_a_memory_opened_outside_of_asyncio_says_that_it_needs_it() -> None:
    opening: Any = Memory.open(IN_MEMORY)

    with pytest.raises(NotOpen, match=r"run the program with asyncio\.run"):
        opening.__aenter__().send(None)


async def test_a_memory_that_is_not_open_yet_says_how_to_open_it() -> None:
    opening: Any = Memory.open(IN_MEMORY)

    with pytest.raises(NotOpen, match="'conversation' before it is open: write async with"):
        opening.conversation("a")
    with pytest.raises(NotOpen, match=r"without async use remanence\.blocking"), opening:
        pass
    assert not hasattr(opening, "append")


@pytest.mark.parametrize("kind", [Memory, blocking.Memory])
def test_a_memory_is_made_by_open_alone(kind: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"write .*Memory.open\('sqlite:///x.db'\)"):
        kind("sqlite:///x.db")


async def test_a_blocking_memory_in_async_code_names_the_other_one() -> None:
    opening: Any = blocking.Memory.open(IN_MEMORY)

    with pytest.raises(NotOpen, match=r"use remanence\.Memory in async code"):
        async with opening:
            pass


@pytest.mark.parametrize(
    "name", ["\u0639\u0644\u06cc\u200c\u0631\u0636\u0627", "\u0915\u094d\u200d\u0937"]
)
async def test_names_may_have_the_joiners_of_their_script(name: str) -> None:
    async with Memory.open(IN_MEMORY) as memory:
        chat = memory.conversation(name, user=name)
        await chat.append(Message.user("Hello."))

        owner = await chat.owner()

    assert owner is not None
    assert owner.user == name


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a\u200bb", r"leave out '\\u200b'"),
        ("a\nb", r"leave out '\\n'"),
        ("\u200d", "use plain text"),
    ],
)
async def test_a_name_with_an_invisible_character_is_refused_with_it(name: str, why: str) -> None:
    async with Memory.open(IN_MEMORY) as memory:
        with pytest.raises(InvalidMessage, match=why):
            memory.conversation(name)


async def test_a_memory_may_be_awaited_and_closed_by_hand() -> None:
    memory = await Memory.open(IN_MEMORY)
    chat = memory.conversation("a")
    await chat.append(Message.user("Hello."))
    await memory.close()
    await memory.close()

    with pytest.raises(RemanenceError, match="the memory is closed"):
        await chat.append(Message.user("Are you there?"))


async def test_a_chat_takes_a_message_with_an_image_once() -> None:
    image = Message(role="user", content=(TextPart(text="What is it?"), ImagePart(data="aGk=")))
    async with Memory.open(IN_MEMORY) as memory:
        chat = Chat(memory.conversation("a"), model=answer)
        reply = await chat.send(image)
        kept = await chat.conversation.messages()

    assert reply.text == "Noted."
    assert kept[0].content == image.content
    assert [message.role for message in kept] == ["user", "assistant"]


@pytest.mark.parametrize(
    "wished",
    [
        {"max_context_tokens": 8_000, "tail_tokens": 2_000},
        {"max_context_tokens": 8_000},
        {"max_context_tokens": 40_000, "tail_tokens": 30_000},
    ],
)
def test_budgets_that_exceed_a_context_come_with_some_that_fit(wished: dict[str, int]) -> None:
    with pytest.raises(InvalidPolicy) as caught:
        Policy(**wished)  # type: ignore[arg-type] # the cases

    named = str(caught.value)
    fitting: dict[str, Any] = {}
    if tail := re.search(r"such as to tail_tokens=(\d+)", named):
        fitting["tail_tokens"] = int(tail[1])
    numbers = re.findall(r"\(([\d, ]+)\)", named)[-1]
    fitting["reflect_tokens"] = tuple(int(number) for number in numbers.split(","))
    if "tail_tokens" in wished:
        assert named.startswith("reflect_tokens=")
    assert Policy(**{**wished, **fitting}).max_context_tokens == wished["max_context_tokens"]
