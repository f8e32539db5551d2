"""Runs a function of docs/howto/frameworks.md. Arguments: its name, a URL, a database, questions.

Prints the answers as JSON. The URL is that of a proxy for `talk_by_…`, else of a provider.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from remanence import Conversation, Memory

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "frameworks.md"
NAME, URL, DATABASE, *QUESTIONS = sys.argv[1:]


def function(name: str) -> Any:
    blocks = (block.split("```")[0] for block in PAGE.read_text().split("```python\n")[1:])
    (code,) = [code for code in blocks if f"def {name}(" in code]
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
        tools = function(NAME.replace("run_in_", "tools_for_"))(chat)
        return [await ask(recipe, chat, question, tools) for question in QUESTIONS]


async def ask(recipe: Any, chat: Conversation, question: str, tools: list[Any]) -> str | None:
    """Return the answer; None after an error, as for a client that asks again later."""
    try:
        answer: str = await recipe(chat, question, question_id=question, tools=tools)
    except Exception:  # noqa: BLE001 - each framework raises errors of its own
        return None
    return answer


sys.stdout.write(json.dumps(asyncio.run(main())))
