"""A conversation by OpenAI's client. Arguments: `chat` or `responses`, the base URL, headers as JSON.

Each line of stdin is the next turn, each line of stdout its answer.
"""

import json
import sys
from typing import Any

import openai

API, BASE_URL, HEADERS = sys.argv[1:]
CLIENT = openai.OpenAI(
    base_url=BASE_URL, api_key="a-key", max_retries=0, default_headers=json.loads(HEADERS)
)
FUNCTION = {
    "name": "find",
    "parameters": {"type": "object", "properties": {"pier": {"type": "integer"}}},
}
history: list[Any] = []


def ask_chat(stream: bool) -> tuple[str | None, list[Any]]:
    """Return the answer's text, and the results of its calls as the next messages."""
    request: Any = {"model": "gpt-5", "messages": history}
    request["tools"] = [{"type": "function", "function": FUNCTION}]
    if stream:
        with CLIENT.chat.completions.stream(**request) as events:
            completion = events.get_final_completion()
    else:
        completion = CLIENT.chat.completions.create(**request)
    message = completion.choices[0].message
    history.append(message.to_dict(exclude_none=True))
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": f"found {call.function.arguments}"}
        for call in message.tool_calls or ()
    ]
    return message.content, results


def ask_responses(stream: bool) -> tuple[str | None, list[Any]]:
    """Return the answer's text, and the results of its calls as the next items."""
    request: Any = {"model": "gpt-5", "input": history, "store": False}
    request["tools"] = [{"type": "function", "strict": False, **FUNCTION}]
    if stream:
        with CLIENT.responses.stream(**request) as events:
            response = events.get_final_response()
    else:
        response = CLIENT.responses.create(**request)
    history.extend(item.to_dict(exclude_none=True) for item in response.output)
    results = [
        {
            "type": "function_call_output",
            "call_id": item.call_id,
            "output": f"found {item.arguments}",
        }
        for item in response.output
        if item.type == "function_call"
    ]
    return response.output_text, results


def content_of(turn: dict[str, Any]) -> Any:
    if not turn["image"]:
        return turn["text"]
    if API == "responses":
        image = {"type": "input_image", "image_url": turn["image"]}
        return [{"type": "input_text", "text": turn["text"]}, image]
    image = {"type": "image_url", "image_url": {"url": turn["image"]}}
    return [{"type": "text", "text": turn["text"]}, image]


ask = ask_chat if API == "chat" else ask_responses
for line in sys.stdin:
    turn = json.loads(line)
    history.append({"role": "user", "content": content_of(turn)})
    text, results = ask(turn["stream"])
    if results:
        history.extend(results)
        text, _ = ask(turn["stream"])
    sys.stdout.write(json.dumps(text) + "\n")
    sys.stdout.flush()
