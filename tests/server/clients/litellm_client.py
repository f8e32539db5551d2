"""A conversation by LiteLLM's client. Arguments: the model, the base URL, headers as JSON.

Each line of stdin is the next turn, each line of stdout its answer.
"""

import json
import sys
from typing import Any

import litellm

MODEL, BASE_URL, HEADERS = sys.argv[1:]
PARAMETERS = {"type": "object", "properties": {"pier": {"type": "integer"}}}
TOOLS = [{"type": "function", "function": {"name": "find", "parameters": PARAMETERS}}]
messages: list[dict[str, Any]] = []


def ask(stream: bool) -> Any:
    answer = litellm.completion(
        model=MODEL,
        api_base=BASE_URL,
        api_key="a-key",
        max_retries=0,
        messages=messages,
        tools=TOOLS,
        stream=stream,
        extra_headers=json.loads(HEADERS),
    )
    if stream:
        answer = litellm.stream_chunk_builder([*answer], messages=messages)
    message = answer.choices[0].message
    messages.append(message.model_dump(exclude_none=True))
    return message


for line in sys.stdin:
    turn = json.loads(line)
    content = turn["text"]
    if turn["image"]:
        image = {"type": "image_url", "image_url": {"url": turn["image"]}}
        content = [{"type": "text", "text": content}, image]
    messages.append({"role": "user", "content": content})
    message = ask(turn["stream"])
    if message.tool_calls:
        for call in message.tool_calls:
            found = f"found {call.function.arguments}"
            messages.append({"role": "tool", "tool_call_id": call.id, "content": found})
        message = ask(turn["stream"])
    sys.stdout.write(json.dumps(message.content) + "\n")
    sys.stdout.flush()
