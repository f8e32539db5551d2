"""The functions of docs/howto/frameworks.md and migrate.md, in a program of their own.

REMANENCE_TEST_FRAMEWORKS names a Python that has the extra `server`, `pydantic-ai-slim[openai]`,
`langgraph`, `langchain-openai` and `openai-agents`. Without it, those run whose packages this one has.
"""

import asyncio
import importlib.util
import json
import os
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
from tests.server.talk import (
    TURNS,
    Provider,
    check_bytes,
    check_requests,
    check_tape,
    prompt_of,
    reply_to,
    setting,
)
from tests.wire.dialects import Call, Reply
from tests.wire.servers import Fail

from remanence import Memory
from remanence.types import ImagePart, TextPart

VARIABLE = "REMANENCE_TEST_FRAMEWORKS"
PROGRAM = Path(__file__).with_name("clients") / "framework.py"
FRAMEWORKS = {"pydantic_ai": "pydantic_ai", "langgraph": "langgraph", "agents_sdk": "agents"}
QUESTIONS = ("I live in Lisbon.", "Which gate has LH 454?", "And when does it leave?")
ANSWERS = ["Noted.", "Gate B42.", "At noon."]

pytestmark = pytest.mark.timeout(120 + 2 * TURNS)


@pytest.fixture(params=FRAMEWORKS)
def framework(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if not os.environ.get(VARIABLE) and importlib.util.find_spec(FRAMEWORKS[name]) is None:
        pytest.skip(f"{FRAMEWORKS[name]} is not installed: name a Python that has it in {VARIABLE}")
    return name


@pytest.mark.parametrize("framework", ["agents_sdk"], indirect=True)
async def test_the_tape_of_an_agents_sdk_run_has_images_of_tools_and_the_results_of_handoffs(
    framework: str, tmp_path: Path
) -> None:
    database = f"sqlite:///{tmp_path / 'memory.db'}"
    calls = (Call("call-1", "show_plan"), Call("call-2", "transfer_to_billing"))
    async with Provider().running() as provider:
        provider.script(Reply("", calls=calls), Reply("12 EUR."))
        answers = await answers_of("Tape", f"{provider.url}/v1", database, "Plan and bill?")

    async with Memory.open(database) as memory:
        chat = memory.conversation("trip", user="ana")
        results = [part for message in await chat.messages() for part in message.tool_results]
    assert answers == ["12 EUR."]
    assert [part.call_id for part in results] == ["call-1", "call-2"]
    assert [type(part) for part in results[0].content] == [TextPart, ImagePart]
    assert [part.text for part in results] == ["Gate B42", "Handed over to Billing."]


@pytest.mark.parametrize("framework", ["langgraph"], indirect=True)
async def test_a_copy_of_a_langchain_history_keeps_errors_and_leaves_out_empty_messages(
    framework: str, tmp_path: Path
) -> None:
    database = f"sqlite:///{tmp_path / 'memory.db'}"

    copied = await answers_of("from_langchain", "", database)

    assert copied == [["h1", []], ["a1", []], ["t1", [False]], ["t2", [True]]]


async def answers_of(
    function: str, url: str, database: str, *questions: str, together: str = ""
) -> object:
    """What a function of the page gives for some questions, asked one by one or *together*."""
    python = os.environ.get(VARIABLE) or sys.executable
    program = await asyncio.create_subprocess_exec(
        *(python, str(PROGRAM), function, url, database, *questions),
        env={
            **os.environ,
            "TOGETHER": together,
            "OPENAI_API_KEY": "a-key",
            "OPENAI_BASE_URL": url,
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
        },
        stdout=PIPE,
    )
    output, _ = await program.communicate()
    assert program.returncode == 0
    return json.loads(output)


async def test_an_agent_talks_through_the_proxy(framework: str, tmp_path: Path) -> None:
    async with setting(database := f"sqlite:///{tmp_path / 'memory.db'}") as here:
        answers = [reply_to(turn) for turn in range(TURNS)]
        here.provider.script(*(Reply(text, id=str(turn)) for turn, text in enumerate(answers)))
        url, questions = f"{here.url}/openai/v1", map(prompt_of, range(TURNS))

        assert await answers_of(f"talk_by_{framework}", url, database, *questions) == answers

        assert [passed.memory for passed in here.tap.exchanges] == ["on"] * TURNS
        check_bytes(here)
        await check_tape(here.memory)
        await check_requests(here, fields="input" if framework == "agents_sdk" else "messages")
        (state,) = await here.memory.conversations()
        assert (state.ref.id, state.user) == ("trip", "ana")


async def test_an_agent_talks_through_the_proxy_of_its_own_process(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'memory.db'}"
    async with Provider().running() as provider:
        provider.script(*map(Reply, ANSWERS))
        url = f"{provider.url}/v1"

        assert await answers_of("talk_without_server", url, database, *QUESTIONS) == ANSWERS

    async with Memory.open(database) as memory:
        tape = await memory.conversation("trip", user="ana").messages()
    assert [message.text for message in tape[1::2]] == ANSWERS


async def test_an_agent_in_one_process_goes_on_from_the_tape_also_after_a_failed_run(
    framework: str, tmp_path: Path
) -> None:
    database = f"sqlite:///{tmp_path / 'memory.db'}"
    save = Call("call-1", "memory_save", {"summary": "Ana lives in Lisbon"})
    async with Provider().running() as provider:
        provider.script(Reply("", calls=(save,)), Fail(400))
        url, run = f"{provider.url}/v1", f"run_in_{framework}"

        assert await answers_of(run, url, database, QUESTIONS[0]) == [None]
        provider.script(Reply("Noted."), Reply("Gate B42."))
        assert await answers_of(run, url, database, *QUESTIONS[:2]) == ANSWERS[:2]
        provider.script(Reply("At noon."))
        assert await answers_of(run, url, database, QUESTIONS[2]) == ANSWERS[2:]

        last = str(provider.received[-1].body)
    async with Memory.open(database, all_users=True) as memory:
        tape = await memory.conversation("trip").messages()
        saved = await memory.facts.list(user="ana")
        (usage,) = await memory.conversation("trip").usage()
    assert [m.text for m in tape if m.role == "user"] == [*QUESTIONS]
    assert ("tool" in [m.role for m in tape]) == (framework != "pydantic_ai")
    assert [m.text for m in tape if m.role == "assistant" and m.text] == ANSWERS
    assert "Ana lives in Lisbon" in [fact.summary for fact in saved]
    assert "LH 454" in last
    assert (usage.purpose, usage.calls) == ("chat", 3 + (framework != "pydantic_ai"))


async def test_runs_of_one_conversation_at_the_same_time_answer_their_own_questions(
    framework: str, tmp_path: Path
) -> None:
    async with Provider().running() as provider:
        provider.script(*map(Reply, ANSWERS))
        url, database = f"{provider.url}/v1", f"sqlite:///{tmp_path / 'memory.db'}"
        await answers_of(f"run_in_{framework}", url, database, *QUESTIONS, together="together")

    newest = [max(QUESTIONS, key=str(one.body).rfind) for one in provider.received]
    assert newest == [*QUESTIONS]


@pytest.mark.parametrize("framework", ["langgraph"], indirect=True)
async def test_the_tape_of_a_langgraph_run_has_its_calls_although_a_tool_failed(
    framework: str, tmp_path: Path
) -> None:
    database = f"sqlite:///{tmp_path / 'memory.db'}"
    async with Provider().running() as provider:
        provider.script(Reply("", calls=(Call("call-1", "fail"),)), Reply(""))
        url, run = f"{provider.url}/v1", "run_in_langgraph"

        assert await answers_of(run, url, database, QUESTIONS[1]) == [None]
        assert await answers_of(run, url, database, QUESTIONS[1]) == [""]

    async with Memory.open(database, all_users=True) as memory:
        tape = await memory.conversation("trip").messages()
    assert [call.name for message in tape for call in message.tool_calls] == ["fail"]


@pytest.mark.parametrize("framework", ["langgraph", "agents_sdk"], indirect=True)
async def test_an_empty_answer_ends_a_run_and_is_not_on_the_tape(
    framework: str, tmp_path: Path
) -> None:
    database = f"sqlite:///{tmp_path / 'memory.db'}"
    async with Provider().running() as provider:
        provider.script(Reply(""))
        url, run = f"{provider.url}/v1", f"run_in_{framework}"

        assert await answers_of(run, url, database, QUESTIONS[0]) == [""]

    async with Memory.open(database, all_users=True) as memory:
        tape = await memory.conversation("trip").messages()
    assert [message.role for message in tape] == ["user"]


@pytest.mark.parametrize("framework", ["langgraph"], indirect=True)
async def test_a_memory_tool_that_failed_in_langgraph_is_an_error_on_the_tape(
    framework: str, tmp_path: Path
) -> None:
    database = f"sqlite:///{tmp_path / 'memory.db'}"
    call = Call("call-1", "memory_save", {"summary": "likes tea", "type": "no such type"})
    async with Provider().running() as provider:
        provider.script(Reply("", calls=(call,)), Reply("Sorry."))

        await answers_of("run_in_langgraph", f"{provider.url}/v1", database, QUESTIONS[0])

    async with Memory.open(database, all_users=True) as memory:
        tape = await memory.conversation("trip").messages()
    (result,) = [part for message in tape for part in message.tool_results]
    assert result.is_error
    assert "no such type" in result.text
