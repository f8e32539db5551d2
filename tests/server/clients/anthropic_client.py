"""A conversation by Anthropic's client, with thinking. Arguments: the base URL, headers as JSON.

Each line of stdin is the next turn, each line of stdout its answer.
"""

import json
import sys
from typing import Any

import anthropic

BASE_URL, HEADERS = sys.argv[1:]
CLIENT = anthropic.Anthropic(
    base_url=BASE_URL, api_key="a-key", max_retries=0, default_headers=json.loads(HEADERS)
)
SCHEMA = {"type": "object", "properties": {"pier": {"type": "integer"}}}
CACHED = {"cache_control": {"type": "ephemeral"}}
history: list[dict[str, Any]] = []


def ask(stream: bool) -> list[Any]:
    """Ask with a cache mark at the end, which moves with each request."""
    *old, last = history
    marked = {**last, "content": [*last["content"][:-1], {**last["content"][-1], **CACHED}]}
    request: Any = {
        "model": "claude-sonnet-5",
        "max_tokens": 4_000,
        "thinking": {"type": "enabled", "budget_tokens": 2_000},
        "system": [{"type": "text", "text": "You know boats.", **CACHED}],
        "tools": [{"name": "find", "input_schema": SCHEMA, **CACHED}],
        "messages": [*old, marked],
    }
    if stream:
        with CLIENT.messages.stream(**request) as events:
            message = events.get_final_message()
    else:
        message = CLIENT.messages.create(**request)
    content = [block.to_dict() for block in message.content]
    history.append({"role": "assistant", "content": content})
    return content


for line in sys.stdin:
    turn = json.loads(line)
    content: list[Any] = [{"type": "text", "text": turn["text"]}]
    if turn["image"]:
        kind, _, data = turn["image"].removeprefix("data:").partition(";base64,")
        source = {"type": "base64", "media_type": kind, "data": data}
        content.append({"type": "image", "source": source})
    history.append({"role": "user", "content": content})
    blocks = ask(turn["stream"])
    if calls := [block for block in blocks if block["type"] == "tool_use"]:
        results = [
            {
                "type": "tool_result",
                "tool_use_id": call["id"],
                "content": f"found {json.dumps(call['input'])}",
            }
            for call in calls
        ]
        history.append({"role": "user", "content": results})
        blocks = ask(turn["stream"])
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    sys.stdout.write(json.dumps(text) + "\n")
    sys.stdout.flush()
