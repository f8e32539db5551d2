"""Runs a function of docs/howto/frameworks.md or migrate.md. Arguments: its name, a URL, a database, questions.

Prints the answers as JSON. The URL is that of a proxy for `talk_by_…`, else of a provider. With the
variable `TOGETHER` the questions of `run_in_…` are asked at once.
"""

import asyncio
import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from remanence import Conversation, Memory, Message

HOWTO = Path(__file__).parents[3] / "docs" / "howto"
PAGES = "".join((HOWTO / f"{page}.md").read_text() for page in ("frameworks", "migrate"))
NAME, URL, DATABASE, *QUESTIONS = sys.argv[1:]


def function(name: str) -> Any:
    """Return a function or a class of the pages."""
    blocks = (block.split("```")[0] for block in PAGES.split("```python\n")[1:])
    (code,) = [code for code in blocks if f"def {name}(" in code or f"class {name}(" in code]
    names: dict[str, Any] = {}
    exec(code, names)
    return names[name]


async def main() -> object:
    recipe = function(NAME)
    if NAME.startswith("talk_by_"):
        return await recipe(*QUESTIONS, conversation="trip", base_url=URL)
    async with Memory.open(DATABASE) as memory:
        if NAME == "talk_without_server":
            return await recipe(memory, *QUESTIONS, openai_url=URL)
        chat = memory.conversation("trip", user="ana")
        if NAME == "from_langchain":
            return await copy_langchain(chat)
        if NAME == "Tape":
            return [await hand_over(chat, question) for question in QUESTIONS]
        tools = function(NAME.replace("run_in_", "tools_for_"))(chat)
        tools += [failing_tool()] if NAME == "run_in_langgraph" else []
        if os.environ.get("TOGETHER"):
            async with asyncio.TaskGroup() as group:
                asked = [group.create_task(ask(recipe, chat, one, tools)) for one in QUESTIONS]
            return [await one for one in asked]
        return [await ask(recipe, chat, question, tools) for question in QUESTIONS]


def failing_tool() -> Any:
    """Return a tool of LangGraph that raises."""

    async def fail() -> str:
        raise ConnectionError("the gate service is down")

    tools: Any = importlib.import_module("langchain_core.tools")
    return tools.StructuredTool.from_function(coroutine=fail, description="Fails.")


async def hand_over(chat: Conversation, question: str) -> str:
    """Ask an agent of the Agents SDK that shows a plan, and that hands over to another one."""
    sdk: Any = importlib.import_module("agents")

    async def show_plan() -> object:
        image = sdk.ToolOutputImage(image_url="data:image/png;base64,iVBORw0KGgo=")
        return [sdk.ToolOutputText(text="Gate B42"), image]

    billing, tool = sdk.Agent(name="Billing", model="gpt-5"), sdk.function_tool(show_plan)
    agent = sdk.Agent(name="Travel", model="gpt-5", tools=[tool], handoffs=[billing])
    await chat.append(Message.user(question))
    result = await sdk.Runner.run(agent, question, hooks=function("Tape")(chat))
    return str(result.final_output)


async def copy_langchain(chat: Conversation) -> list[tuple[str | None, list[bool]]]:
    """Append a history of LangChain, and return each message's id and errors of tools."""
    said: Any = importlib.import_module("langchain_core.messages")
    calls = [{"id": id_, "name": "gate_of", "args": {"flight": id_}} for id_ in ("c1", "c2")]
    history = [
        said.HumanMessage("Which gates?", id="h1"),
        said.AIMessage("", tool_calls=calls, id="a1"),
        said.ToolMessage("B42", tool_call_id="c1", id="t1"),
        said.ToolMessage("No such flight.", tool_call_id="c2", status="error", id="t2"),
        said.AIMessage("", id="a2"),
        said.RemoveMessage(id="h1"),
    ]
    await chat.append(*function("from_langchain")(history))
    messages = await chat.messages()
    return [(each.id, [part.is_error for part in each.tool_results]) for each in messages]


async def ask(recipe: Any, chat: Conversation, question: str, tools: list[Any]) -> str | None:
    """Return the answer; None after an error, as for a client that asks again later."""
    try:
        answer: str = await recipe(chat, question, question_id=question, tools=tools)
    except Exception:  # noqa: BLE001 - each framework raises errors of its own
        return None
    return answer


sys.stdout.write(json.dumps(asyncio.run(main())))
