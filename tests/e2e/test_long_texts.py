"""Long texts are counted, looked through and cut beside the event loop."""

import asyncio
import gc
import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from types import FrameType

import pytest
from tests.server.conftest import Speaker, served

import remanence
from remanence import Memory, Message, Policy
from remanence.engine.segment_writer import LOST_LITERALS
from remanence.notes.redact import redact
from remanence.server.app import create_app
from remanence.server.proxy.openai import OpenAIChat
from remanence.server.proxy.requests import Requests
from remanence.testing import ScriptedObserver
from remanence.tokens import counter_for
from remanence.types import OtherPart, ToolCallPart
from remanence.types.receipt import chain
from remanence.wire.boundaries import orphan
from remanence.wire.content import is_reasoning
from remanence.wire.validate import anthropic_problems, openai_problems

LONG = 30_000
"""Characters that are counted in a thread."""

SMALL = Policy.default(
    observe_tokens=200,
    tail_tokens=400,
    tail_keep_tokens=100,
    keep_last=2,
    reflect_tokens=(150, 600),
    note_ratio=0.01,
)
"""The notes have no room for what the first messages say."""


@contextmanager
def calls_here(function: str, file: str) -> Iterator[list[int]]:
    """The lengths of what a function gets first in this thread, which runs the event loop."""
    files = Path(remanence.__file__).parent.rglob(file)
    assert any(f"def {function}(" in path.read_text("utf-8") for path in files), "it was renamed"
    lengths: list[int] = []

    def note(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name == function and code.co_filename.endswith(file):
            lengths.append(len(frame.f_locals[code.co_varnames[0]]))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield lengths
    finally:
        sys.setprofile(before)


async def test_a_tail_that_exceeds_the_window_is_cut_beside_the_loop() -> None:
    policy = Policy(max_context_tokens=40_000)
    async with Memory.open("sqlite:///:memory:", policy=policy) as memory:
        chat = memory.conversation("chat")
        await chat.append(Message.user("a'" * LONG * 3))
        with calls_here("count", "estimator.py") as lengths:
            context = await chat.context(system="You help.")

    assert [gap.reason for gap in context.omitted] == ["excerpt"]
    assert max(lengths, default=0) < LONG


async def test_the_excerpt_of_a_long_message_is_counted_for_its_first_context_alone(
    tmp_path: Path,
) -> None:
    url, policy = f"sqlite:///{tmp_path}/memory.db", Policy(max_context_tokens=40_000)
    lengths: list[int] = []

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.endswith("estimator.py"):
            lengths.append(len(frame.f_locals.get("text", "")))

    async with Memory.open(url, policy=policy) as memory:
        await memory.conversation("chat").append(Message.user("error 17, " * LONG))
    with ThreadPoolExecutor(1, initializer=sys.setprofile, initargs=(note,)) as beside_the_loop:
        asyncio.get_running_loop().set_default_executor(beside_the_loop)
        async with Memory.open(url, policy=policy, read_only=True) as memory:
            chat = memory.conversation("chat")
            first = await chat.context()
            longest = max(lengths)
            lengths.clear()
            again = await chat.context()

    assert again.messages == first.messages
    assert longest > LONG > max(lengths, default=0)


async def test_no_excerpt_is_kept_but_in_its_context() -> None:
    async with Memory.open(
        "sqlite:///:memory:", policy=Policy(max_context_tokens=40_000)
    ) as memory:
        chat = memory.conversation("chat")
        await chat.append(Message.user("gauge 23, " * LONG))
        context = await chat.context()
        gc.collect()
        kept = [each for each in gc.get_objects() if isinstance(each, Message)]

    (excerpt,) = context.messages
    assert len(excerpt.text) < 10 * LONG
    assert [message for message in kept if message.text == excerpt.text] == [excerpt]


def test_counts_of_texts_that_are_not_unicode_are_remembered() -> None:
    counter = counter_for("estimate")
    cached = counter.with_cache()
    message = Message.tool("c1", "half of a pair: \ud83d")

    assert [cached.message(message) for _ in range(2)] == [counter.message(message)] * 2


def test_evenly_spaced_steps_of_a_very_long_text_are_counted() -> None:
    count = counter_for("estimate").text
    text = "".join(f"{sha256(str(number).encode()).hexdigest()} " for number in range(LONG))
    with calls_here("__missing__", "estimator.py") as pieces:
        tokens = count(text)

    assert len(pieces) < 10 * LONG
    assert tokens == pytest.approx(len(text) / LONG * count(text[:LONG]), rel=0.01)


@pytest.mark.parametrize("path", ["messages", "chat"])
@pytest.mark.parametrize(
    ("function", "file"), [("read_message", "messages.py"), ("loads", "json_value.py")]
)
async def test_messages_of_much_json_are_read_and_checked_beside_the_loop(
    path: str, function: str, file: str
) -> None:
    part = {"type": "thing", **{f"key {number}": number for number in range(LONG // 10)}}
    message = {"role": "user", "content": [part]}
    body: dict[str, object] = (
        {"messages": [message]} if path == "messages" else {"message": message}
    )
    async with (
        Memory.open("sqlite:///:memory:") as memory,
        served(create_app(memory, model=Speaker())) as client,
    ):
        with calls_here(function, file) as lengths:
            response = await client.post(f"/v1/conversations/trip/{path}", **body)
        (stored, *_) = (await client.get("/v1/conversations/trip/messages")).json()["messages"]

    assert response.is_success
    assert stored["rendered"][0]["content"] == [part]
    assert max(lengths, default=0) == 0


@pytest.mark.parametrize(
    ("function", "file"), [("read_object", "json_value.py"), ("keys_and_ids", "identity.py")]
)
async def test_proxied_histories_are_read_and_hashed_beside_the_loop(
    function: str, file: str
) -> None:
    said = [{"role": "user", "content": f"Step {number} is done."} for number in range(1_000)]
    content = json.dumps({"model": "m", "messages": said}).encode()
    async with Memory.open("sqlite:///:memory:") as memory:
        requests = Requests(memory, recognize=True)
        with calls_here(function, file) as lengths:
            headers = {"x-remanence-conversation": "trip"}
            prepared = await requests.prepare(OpenAIChat(), headers, content, None)

    assert prepared.turn
    assert max(lengths, default=0) < 100


def test_the_json_of_a_part_is_parsed_for_its_type_only_if_it_may_be_reasoning() -> None:
    raw = json.dumps({"type": "thing", **{f"key {number}": number for number in range(LONG)}})
    with calls_here("read_object", "json_value.py") as lengths:
        is_found = is_reasoning(OtherPart(dialect="openai", raw=raw))
        is_known = is_reasoning(OtherPart(dialect="openai", raw='{"type": "reasoning"}'))

    assert (is_found, is_known) == (False, True)
    assert max(lengths) < 100


@pytest.mark.parametrize("activate", ["over_budget", "when_observed"])
async def test_the_newest_messages_stay_beside_one_that_exceeds_the_window(activate: str) -> None:
    policy = SMALL.replace(max_context_tokens=2_000, keep_last=3, activate=activate)
    async with Memory.open("sqlite:///:memory:", policy=policy) as memory:
        chat = memory.conversation("chat")
        await chat.append(
            Message.user("Good morning."),
            Message.assistant("What is the log?"),
            Message.user("It is: " + "error 17, " * 9_000),
            Message.assistant("I see."),
        )
        await chat.flush()
        context = await chat.context()

    assert [message.seq for message in context.messages][-3:] == [2, 3, 4]
    assert [message.text for message in context.messages][-3::2] == ["What is the log?", "I see."]
    assert [gap.first_seq for gap in context.omitted if gap.reason == "excerpt"] == [3]
    assert context.stats.context_tokens <= 2_000


@pytest.mark.parametrize("results", ["one message", "a message each"])
async def test_calls_too_many_for_the_window_are_left_out_with_their_results(results: str) -> None:
    calls = [ToolCallPart(id=f"c{n}", name="read_file", arguments="{}") for n in range(300)]
    answers = [Message.tool(call.id, f"the content of file {call.id}") for call in calls]
    if results == "one message":
        answers = [Message(role="tool", content=tuple(p for a in answers for p in a.content))]
    policy = SMALL.replace(max_context_tokens=4_000)
    async with Memory.open("sqlite:///:memory:", policy=policy) as memory:
        chat = memory.conversation("chat")
        await chat.append(Message.user("Read them."), Message.assistant("", tool_calls=calls))
        await chat.append(*answers)
        context = await chat.context(system="You help.")

    head, *_, last = context.messages
    assert context.stats.context_tokens <= 4_000
    assert anthropic_problems(context.to_anthropic()) == ()
    assert last.tool_results[-1].text == "the content of file c299"
    left_out = 300 - len(head.tool_calls)
    assert head.text == f"[… {left_out} calls from message 2 on and their results left out …]"
    named = {seq for gap in context.omitted for seq in range(gap.first_seq, gap.last_seq + 1)}
    assert named | {message.seq for message in context.messages} == set(range(1, last.seq + 1))


@pytest.mark.parametrize("calls", [1, 2, 60])
async def test_a_result_has_its_call_before_it_however_long_that_is(calls: int) -> None:
    text = json.dumps({"path": "a.py", "content": "def f(x): return x\n" * (9_000 // calls)})
    policy = Policy.default(max_context_tokens=8_000, tail_tokens=2_000, reflect_tokens=(500, 900))
    async with Memory.open("sqlite:///:memory:", policy=policy) as memory:
        chat = memory.conversation("chat")
        await chat.append(Message.user("Write it."))
        for number in range(calls):  # as some hosts do: one call a message
            call = ToolCallPart(id=f"c{number}", name="write_file", arguments=text)
            await chat.append(Message(role="assistant", content=(call,)))
        await chat.append(*(Message.tool(f"c{number}", "Written.") for number in range(calls)))
        context = await chat.context(system="You help.")

    assert anthropic_problems(context.to_anthropic()) == ()
    assert openai_problems(context.to_openai()) == ()
    assert context.stats.context_tokens <= 8_000
    assert sum(len(message.tool_results) for message in context.messages) == calls
    assert orphan(context.messages) is None


async def test_long_knowledge_is_counted_beside_the_loop() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("chat")
        await chat.append(Message.user("Hello."))
        with calls_here("count", "estimator.py") as lengths:
            context = await chat.context(system="You help.", knowledge=["rule. " * LONG])

    assert context.stats.system_tokens > LONG
    assert max(lengths, default=0) < LONG


async def test_a_query_with_a_very_long_word_finds_it() -> None:
    word = "a1" * 200
    async with Memory.open("sqlite:///:memory:", policy=SMALL) as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(Message.user(f"The checksum is {word}."))
        for number in range(40):
            await chat.append(Message.user(f"Step {number} is done, go on with the next one."))
        await chat.flush()
        context = await chat.context(recall=f"Which text was {word}?")

    assert "The checksum is a1a1" in context.volatile


async def test_notes_are_compared_with_their_source_beside_the_loop() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("chat")
        await chat.append(Message.user("I live in Oslo. " * 500))
        with calls_here("check_draft", "draft_check.py") as lengths:
            state = await chat.flush(everything=True)

    assert state.observed_seq == 1
    assert lengths == []


async def test_a_loss_report_reads_both_ends_of_a_very_long_message() -> None:
    text = f"Ask Ottoline. {'Row 17 is done. ' * LONG}Then ring Wendeline."
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("chat")
        await chat.append(Message.assistant(text))
        with calls_here("find_literals", "literals.py") as lengths:
            await chat.end()
        (segment,) = await chat.observations()

    assert sum(lengths) < len(text) // 2
    assert "Wendeline" in " ".join([segment.text, *segment.lost])


async def test_a_loss_report_lists_thousands_of_values_and_counts_those_behind() -> None:
    orders = [f"ORD-{number}" for number in range(20_000, 26_000)]
    async with Memory.open("sqlite:///:memory:", observer=ScriptedObserver()) as memory:
        chat = memory.conversation("chat")
        await chat.append(Message.assistant(" and ".join(orders)))
        await chat.end()
        (segment,) = await chat.observations()

    *listed, rest = segment.lost
    kept = sum(order in segment.text for order in orders)
    assert len(set(orders) & set(listed)) == LOST_LITERALS
    assert rest == f"… and {len(orders) - LOST_LITERALS - kept:,} others"


async def test_the_tape_is_hashed_beside_the_loop_after_a_message_is_forgotten() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("chat")
        await chat.append(*(Message.user(f"Step {number}.") for number in range(600)))
        forgotten = (await chat.messages(limit=1))[0].id or ""
        with calls_here("chain", "receipt.py") as lengths:
            receipt = await chat.forget(forgotten)
        messages = await chat.messages()

    assert receipt.kept == chain(messages)
    assert lengths == []


async def test_traces_of_a_forgotten_message_are_found_beside_the_loop() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(Message.user("I live in Oslo. My number is 8814-2207."))
        await chat.flush(everything=True)
        await chat.append(Message.user("I moved to Bergen. I work in Oslo."))
        await chat.flush(everything=True)
        forgotten = (await chat.messages(limit=1))[0].id or ""
        with calls_here("_all_terms", "terms.py") as lengths:
            receipt = await chat.forget(forgotten)

    assert receipt.facts
    assert lengths == []


async def test_what_a_query_may_refer_to_is_found_beside_the_loop() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(*(Message.user(f"Step {number} is done.") for number in range(600)))
        await memory.facts.save("Ana has done step 17", user="ana")
        with calls_here("plain_text", "plain_text.py") as lengths:
            found = await chat.forget(query="step 17")

    assert {18, *range(171, 181)} <= {message.seq for message in found.messages}
    assert len(found.facts) == 1
    assert lengths == [len("step 17")]


async def test_messages_of_a_deleted_conversation_are_hashed_beside_the_loop() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("chat")
        await chat.append(*(Message.user(f"Step {number}.") for number in range(600)))
        with calls_here("_sha256", "receipt.py") as lengths:
            receipt = await chat.delete()

    assert receipt is not None
    assert len(receipt.messages) == 600
    assert lengths == []


async def test_an_export_of_a_user_is_made_beside_the_loop() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(*(Message.user(f"I have done step {n}.") for n in range(600)))
        await chat.end()
        await memory.facts.save("Ana likes tea", user="ana")
        with calls_here("_line", "user_export.py") as lengths:
            kinds = [json.loads(line)["line"] async for line in memory.export_user("ana")]

    assert {"message", "segment", "log", "fact", "event"} <= set(kinds)
    assert len(lengths) == 2  # of the user and the conversation


async def test_both_ends_of_a_very_long_message_are_searched_where_no_index_can_be_written(
    tmp_path: Path,
) -> None:
    url, filler = f"sqlite:///{tmp_path / 'memory.db'}", "row " * 8 * LONG
    async with Memory.open(url) as memory:
        chat = memory.conversation("chat")
        await chat.append(Message.user(f"lamp {filler} middle {filler} buoy"))
    async with Memory.open(url, read_only=True) as memory:
        chat = memory.conversation("chat")
        found = [bool(await chat.recall(word)) for word in ("lamp", "middle", "buoy")]

    assert found == [True, False, True]


def test_digits_of_other_scripts_are_read_one_window_at_a_time() -> None:
    class Text(str):
        __slots__ = ()

        def translate(self, table: object, /) -> str:
            raise AssertionError(f"holds the GIL for {len(self)} characters with {table!r:.20}")

    pin = "Die PIN ist ٤٧١١. "
    assert redact(Text("我" * LONG + pin)) == redact("我" * LONG) + redact(pin)
    assert "[secret]" in redact(pin)


async def test_only_the_ends_of_a_very_long_query_are_searched() -> None:
    queries: list[str] = []

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        queries.extend(texts)
        return [[1.0, 0.0] for _ in texts]

    query = f"Who keeps the lamp? {'The log is long. ' * LONG}Is it Ottoline?"
    async with Memory.open("sqlite:///:memory:", embedder=embed) as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(Message.user("Ottoline keeps the lamp."))
        with calls_here("sentences", "sentences.py") as lengths:
            hits = await chat.recall(query)
            await chat.context(recall=query)
            await memory.facts.search(query, user="ana")

    assert hits
    assert max(lengths, default=0) < LONG
    assert max(map(len, queries)) < LONG
