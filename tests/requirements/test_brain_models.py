"""REQUIREMENTS 1.3: which model the brain preset asks, what it is given, and what is read."""

import re
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic_ai.messages import ModelResponse, TextPart as WireText, ThinkingPart, ToolCallPart
from tests.requirements.samples import IN_MEMORY
from tests.wire.dialects import Call, Reply
from tests.wire.servers import Fail, ModelServer

from remanence import Chat, Memory, Message, Policy, Settings, count_tokens
from remanence.chat import open_chat_model
from remanence.errors import ModelError
from remanence.protocols import ModelRequest
from remanence.providers import ModelOptions, open_model
from remanence.providers.pydantic_ai import parse_response
from remanence.testing import FixedClock
from remanence.testing.models import ScriptedModel
from remanence.types import TextPart

OBSERVER, REFLECTOR = "claude-haiku-4-5-20251001", "claude-sonnet-4-20250514"
WORDS = " ".join(f"w{n}" for n in range(60))
EAGER: Final[dict[str, Any]] = {
    "observe_tokens": 300,
    "tail_tokens": 900,
    "reflect_tokens": (100,),
}  # fields of a policy


def prompt_of(body: dict[str, Any]) -> str:  # a request as JSON
    return "".join(block["text"] for block in body["messages"][-1]["content"])


async def talk(memory: Memory, count: int = 8) -> None:
    chat = memory.conversation("c")
    for number in range(count):
        text = f"{number} " + " ".join(f"w{n}" for n in range(200))
        await chat.append(Message.user(text), Message.assistant(f"ok {text}"))
        await chat.flush()


@pytest.mark.req("B-36", "B-51")
@pytest.mark.filterwarnings("ignore:The model .* is deprecated")  # it is the document's choice
async def test_messages_go_to_the_observers_model_and_notes_to_the_reflectors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with ModelServer().running() as server:
        server.script(*[Reply(f"[NOTE] user: {n} {WORDS}") for n in range(40)])
        monkeypatch.setenv("ANTHROPIC_API_KEY", "zz-test")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        settings = Settings(
            url=IN_MEMORY,
            preset="brain",
            model="anthropic:claude-opus-4-1",
            observer_model=f"anthropic:{OBSERVER}",
            reflector_model=f"anthropic:{REFLECTOR}",
            policy=EAGER,
        )
        async with Memory.open(settings=settings, clock=FixedClock()) as memory:
            await talk(memory)
        bodies = [received.body for received in server.received]

    asked = {
        (body["model"], "Now condense the notes" in prompt_of(body))
        for body in bodies
        if "Now" in prompt_of(body)
    }
    assert asked == {(OBSERVER, False), (REFLECTOR, True)}
    for body in bodies:
        if body["model"] == OBSERVER:
            # A fifth of some 1,000 characters of words: never the 32,000 of the policy.
            assert 256 < body["max_tokens"] < 2_048
        else:
            assert 256 < body["max_tokens"] < 4_096


@pytest.mark.req("B-37")
async def test_notes_are_made_with_a_key_of_their_own_while_the_agents_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AGENT_ACCESS", "zz-agent-0123456789")
    monkeypatch.setenv("OBSERVER_ACCESS", "zz-observer-0123456789")
    async with ModelServer().running() as agents, ModelServer().running() as observers:
        agents.script(*[Fail(401, "bad key")] * 9)
        observers.script(*[Reply(f"#1 [NOTE] user: {n} {WORDS}") for n in range(9)])
        agent = f"openai:main@{agents.url}/v1"
        settings = Settings(
            url=IN_MEMORY,
            preset="brain",
            model=agent,
            model_key_variable="AGENT_ACCESS",
            observer_model=f"openai:small@{observers.url}/v1",
            observer_key_variable="OBSERVER_ACCESS",
            policy=EAGER | {"reflect_tokens": ()},
        )
        async with Memory.open(settings=settings, clock=FixedClock()) as memory:
            conversation = memory.conversation("c")
            options = ModelOptions(key_variable="AGENT_ACCESS", attempts=1)
            chat = Chat(
                conversation, model=open_chat_model(agent, options=options, clock=FixedClock())
            )
            for number in range(3):
                with pytest.raises(ModelError, match="key"):
                    await chat.send(f"{number} {WORDS * 8}")
            await conversation.flush()
            notes = await conversation.observations()

    asked = [
        {
            (received.body["model"], received.headers["authorization"])
            for received in server.received
        }
        for server in (agents, observers)
    ]
    assert asked == [
        {("main", "Bearer zz-agent-0123456789")},
        {("small", "Bearer zz-observer-0123456789")},
    ]
    assert {note.made_by.split()[0] for note in notes} == {"openai:small"}


@pytest.mark.req("B-38")
async def test_every_text_block_of_an_answer_becomes_notes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with ModelServer().running() as server:
        server.script(
            Reply(
                "#1 [NOTE] user: lives in Lisbon",
                more=("#2 [NOTE] assistant: offers the harbour tour",),
            )
        )
        monkeypatch.setenv("ANTHROPIC_API_KEY", "zz-test")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        async with Memory.open(
            IN_MEMORY, policy=Policy.brain(), observer=f"anthropic:{OBSERVER}", clock=FixedClock()
        ) as memory:
            chat = memory.conversation("c")
            await chat.append(
                Message.user("I live in Lisbon, and I have been here for nine years now."),
                Message.assistant("Shall I book the harbour tour? It leaves at noon each day."),
            )
            await chat.flush(everything=True)
            (note,) = await chat.observations()

    assert [line.text for line in note.notes] == ["lives in Lisbon", "offers the harbour tour"]
    assert len(server.received) == 1


@pytest.mark.req("B-38")
def test_thoughts_and_calls_of_an_answer_are_not_part_of_its_text() -> None:
    response = ModelResponse(
        parts=[
            ThinkingPart(content="the user sounds rich"),
            WireText(content="#1 user: lives in Lisbon"),
            ToolCallPart(tool_name="delete_all", args={"where": "everywhere"}),
            WireText(content="#2 user: has a cat"),
        ],
        finish_reason="stop",
    )

    assert parse_response(response).content == (
        TextPart(text="#1 user: lives in Lisbon"),
        TextPart(text="#2 user: has a cat"),
    )


@pytest.mark.req("B-38")
async def test_a_call_beside_the_text_of_an_answer_is_not_part_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    request = ModelRequest(
        stable="", prompt="hi", max_output_tokens=9, purpose="observe", conversation=None
    )
    monkeypatch.setenv("ANTHROPIC_API_KEY", "zz-test")
    async with ModelServer().running() as server:
        server.script(Reply("#1 user: lives in Lisbon", calls=(Call("a", "delete_all"),)))
        answer = await open_model(f"anthropic:{OBSERVER}@{server.url}").complete(request)

    assert answer.text == "#1 user: lives in Lisbon"


@pytest.mark.req("B-35")
async def test_each_message_is_given_on_a_line_that_begins_with_its_number_and_role() -> None:
    model = ScriptedModel()
    async with Memory.open(
        IN_MEMORY, policy=Policy.brain(), observer=model, clock=FixedClock()
    ) as memory:
        chat = memory.conversation("c")
        await chat.append(
            Message.user("Which ferry?\nThe late one?"),
            Message.assistant("The one at nine."),
            Message.user("Good."),
        )
        await chat.flush(everything=True)

    lines = model.requests[0].prompt.partition("messages>\n")[2].partition("\n</data")[0]
    heads = [line for line in lines.splitlines() if line.startswith("#")]
    assert heads == ["#1 user: Which ferry?", "#2 assistant: The one at nine.", "#3 user: Good."]
    assert "\n The late one?" in lines


@pytest.mark.req("B-52")
async def test_the_reflectors_request_names_the_tokens_of_the_log_and_contains_it(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'brain.db'}"
    lines = (f"[NOTE Decision] user: {n} {WORDS}" for n in range(99))
    model = ScriptedModel(otherwise=lambda request: next(lines))
    without = Policy.brain(**EAGER | {"reflect_tokens": ()})
    async with Memory.open(url, policy=without, model=model, clock=FixedClock()) as memory:
        await talk(memory)
        log = await memory.conversation("c").observations()
    async with Memory.open(
        url, policy=Policy.brain(**EAGER), model=model, clock=FixedClock(prefix="b")
    ) as memory:
        await memory.conversation("c").flush()

    request = next(r for r in model.requests if r.purpose == "reflect")
    log_tokens = count_tokens("\n".join(segment.text for segment in log), model="flat")
    assert len(log) > 1
    named = re.search(r"notes above, which have ([0-9,]+) tokens", request.prompt)
    assert named is not None
    assert int(named[1].replace(",", "")) == pytest.approx(log_tokens, rel=0.05)
    for segment in log:
        assert f"{segment.notes[0].text}" in request.prompt
