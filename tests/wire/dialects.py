"""The two protocols that most models are reached by: rules of a request, shapes of an answer.

A token is a word here, so that a test can count. A provider's cache is a set of prefixes: as far
as marked for Anthropic, which looks back from a mark for an earlier one, and as far as equal for
OpenAI.
"""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

Body: TypeAlias = dict[str, Any]  # JSON
Ending: TypeAlias = Literal["complete", "length", "refusal", "filter"]

MAX_BREAKPOINTS = 4
LOOK_BACK_BLOCKS = 20


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of the model."""

    id: str
    name: str
    arguments: Body = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer of the model.

    `more` are further blocks of text, which only Anthropic has; `thinking` comes first, signed or
    encrypted, and not in Chat Completions.
    """

    text: str = "[Fact] noted"
    ending: Ending = "complete"
    calls: tuple[Call, ...] = ()
    more: tuple[str, ...] = ()
    thinking: str = ""
    id: str = "1"


class Dialect(Protocol):
    """How one provider is spoken to."""

    def problem(self, body: Body) -> str | None:
        """The rule that a request breaks."""
        ...

    def response(self, body: Body, reply: Reply) -> Body: ...

    def events(self, body: Body, reply: Reply) -> list[str]: ...

    def error(self, kind: str, message: str) -> Body: ...

    def error_event(self, kind: str, message: str) -> str: ...


class Anthropic:
    """Anthropic Messages."""

    _ENDINGS: ClassVar[dict[Ending, str]] = {
        "complete": "end_turn",
        "length": "max_tokens",
        "refusal": "refusal",
        "filter": "refusal",
    }

    def __init__(self, *, cache_minimum: int = 0) -> None:
        self._cached: set[tuple[str, ...]] = set()
        self._cache_minimum = cache_minimum

    def problem(self, body: Body) -> str | None:
        messages = body.get("messages") or []
        if not isinstance(body.get("max_tokens"), int):
            return "max_tokens: field required"
        if not messages or messages[0]["role"] != "user":
            return "messages: the first must be of the user"
        roles = [message["role"] for message in messages]
        if set(roles) - {"user", "assistant", "system"}:
            return "messages: a role is unknown"
        for before, role, after in zip(roles, roles[1:], [*roles[2:], "assistant"], strict=False):
            if role == "system" and (before, after) != ("user", "assistant"):
                return "messages: system comes after user, and before assistant or at the end"
        if sum("cache_control" in block for block in _blocks(body)) > MAX_BREAKPOINTS:
            return f"at most {MAX_BREAKPOINTS} blocks may have cache_control"
        return _unpaired(
            [block["id"] for block in _blocks(body) if block["type"] == "tool_use"],
            [block["tool_use_id"] for block in _blocks(body) if block["type"] == "tool_result"],
        )

    def response(self, body: Body, reply: Reply) -> Body:
        return {
            "id": f"msg_{reply.id}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [
                *([_thinking(reply.thinking)] if reply.thinking else ()),
                *({"type": "text", "text": text} for text in (reply.text, *reply.more) if text),
                *(_tool_use(call) for call in reply.calls),
            ],
            "stop_reason": "tool_use"
            if reply.calls and reply.ending == "complete"
            else self._ENDINGS[reply.ending],
            "stop_sequence": None,
            "usage": {**self._input_usage(body), "output_tokens": _words(reply.text)},
        }

    def events(self, body: Body, reply: Reply) -> list[str]:
        whole = self.response(body, reply)
        started = {
            **whole,
            "content": [],
            "stop_reason": None,
            "usage": {**whole["usage"], "output_tokens": 1},
        }
        ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        events: list[Body] = [{"type": "message_start", "message": started}]
        texts = [text for text in (reply.text, *reply.more) if text]
        first = len(whole["content"]) - len(texts) - len(reply.calls)
        if first:
            events += _thinking_events(whole["content"][0])
        for index, text in enumerate(texts, first):
            empty = {"type": "text", "text": ""}
            events.append({"type": "content_block_start", "index": index, "content_block": empty})
            events += [
                {
                    "type": "content_block_delta",
                    "index": index,
                    "delta": {"type": "text_delta", "text": piece},
                }
                for piece in _pieces(text)
            ]
            events.append({"type": "content_block_stop", "index": index})
        for index, call in enumerate(reply.calls, first + len(texts)):
            events += _tool_use_events(index, call)
        output = {"output_tokens": whole["usage"]["output_tokens"]}
        events.append({"type": "message_delta", "delta": ended, "usage": output})
        events.append({"type": "message_stop"})
        return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]

    def error(self, kind: str, message: str) -> Body:
        return {"type": "error", "error": {"type": kind, "message": message}}

    def error_event(self, kind: str, message: str) -> str:
        return f"event: error\ndata: {json.dumps(self.error(kind, message))}\n\n"

    def _input_usage(self, body: Body) -> Body:
        blocks = _blocks(body)
        texts = tuple(_text(block) for block in blocks)
        ends = [end for end, block in enumerate(blocks, 1) if block.get("cache_control")]
        seen = {
            texts[:start]
            for end in ends
            for start in range(max(1, end - LOOK_BACK_BLOCKS), end + 1)
        }
        read = max((_words(*prefix) for prefix in seen & self._cached), default=0)
        marked = [prefix for end in ends if _words(*(prefix := texts[:end])) >= self._cache_minimum]
        cached = max((_words(*prefix) for prefix in marked), default=0)
        self._cached.update(marked)
        return {
            "input_tokens": _words(*texts) - cached,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": cached - read,
        }


class OpenAI:
    """OpenAI Chat Completions."""

    _ENDINGS: ClassVar[dict[Ending, str]] = {
        "complete": "stop",
        "length": "length",
        "refusal": "stop",
        "filter": "content_filter",
    }
    _ROLES: ClassVar[set[str]] = {"system", "developer", "user", "assistant", "tool"}

    def __init__(self) -> None:
        self._seen: list[list[str]] = []

    def problem(self, body: Body) -> str | None:
        messages = body.get("messages") or []
        if not messages or any(message["role"] not in self._ROLES for message in messages):
            return "messages: there are none, or a role is unknown"
        if "cache_control" in json.dumps(body):
            return "cache_control: unknown field"
        calls = itertools.chain.from_iterable(item.get("tool_calls") or [] for item in messages)
        return _unpaired(
            [call["id"] for call in calls],
            [item["tool_call_id"] for item in messages if item["role"] == "tool"],
        )

    def response(self, body: Body, reply: Reply) -> Body:
        message: Body = {"role": "assistant", **self._content(reply)}
        return {
            **self._frame(body, "chat.completion", reply),
            "choices": [{"index": 0, "message": message, "finish_reason": self._reason(reply)}],
            "usage": self._usage(body, reply),
        }

    def events(self, body: Body, reply: Reply) -> list[str]:
        frame = self._frame(body, "chat.completion.chunk", reply)
        field = "refusal" if reply.ending == "refusal" else "content"
        deltas: list[Body] = [{"role": "assistant", "content": ""}]
        deltas += [{field: piece} for piece in _pieces(reply.text)]
        for index, call in enumerate(reply.calls):
            deltas += _tool_call_deltas(index, call)
        choices: list[Body] = [{"index": 0, "delta": delta} for delta in deltas]
        choices.append({"index": 0, "delta": {}, "finish_reason": self._reason(reply)})
        events: list[Body] = [{**frame, "choices": [choice]} for choice in choices]
        if (body.get("stream_options") or {}).get("include_usage"):
            events.append({**frame, "choices": [], "usage": self._usage(body, reply)})
        return [f"data: {json.dumps(event)}\n\n" for event in events] + ["data: [DONE]\n\n"]

    def error(self, kind: str, message: str) -> Body:
        return {"error": {"type": kind, "code": kind, "message": message, "param": None}}

    def error_event(self, kind: str, message: str) -> str:
        return f"data: {json.dumps(self.error(kind, message))}\n\n"

    def _reason(self, reply: Reply) -> str:
        is_call = reply.calls and reply.ending == "complete"
        return "tool_calls" if is_call else self._ENDINGS[reply.ending]

    def _content(self, reply: Reply) -> Body:
        if reply.ending == "refusal":
            return {"content": None, "refusal": reply.text}
        content: Body = {"content": reply.text or None, "refusal": None}
        if reply.calls:
            content["tool_calls"] = [_tool_call(call) for call in reply.calls]
        return content

    def _frame(self, body: Body, kind: str, reply: Reply) -> Body:
        return {
            "id": f"chatcmpl-{reply.id}",
            "object": kind,
            "created": 1,
            "model": body["model"],
        }

    def _usage(self, body: Body, reply: Reply) -> Body:
        words = [word for block in _blocks(body) for word in _text(block).split()]
        cached = max((_common(words, earlier) for earlier in self._seen), default=0)
        self._seen.append(words)
        written = _words(reply.text)
        return {
            "prompt_tokens": len(words),
            "completion_tokens": written,
            "total_tokens": len(words) + written,
            "prompt_tokens_details": {"cached_tokens": cached},
        }


class OpenAIResponses(OpenAI):
    """OpenAI Responses: the whole conversation in each request, with references to its items."""

    def __init__(self) -> None:
        super().__init__()
        self._items: dict[str, Body] = {}

    def problem(self, body: Body) -> str | None:
        items = body.get("input") or []
        if isinstance(items, str):
            return None
        if not items or body.get("previous_response_id"):
            return "input: there are no items, or there is no such response"
        ids = [item["id"] for item in items if item.get("type") == "item_reference"]
        if unknown := [id_ for id_ in ids if id_ not in self._items]:
            return f"Item with id '{unknown[0]}' not found."
        items = [self._items.get(item.get("id"), item) for item in items]
        return _unpaired(
            [item["call_id"] for item in items if item.get("type") == "function_call"],
            [item["call_id"] for item in items if item.get("type") == "function_call_output"],
        )

    def response(self, body: Body, reply: Reply) -> Body:
        text = {"type": "output_text", "text": reply.text, "annotations": []}
        said = {"type": "message", "role": "assistant", "status": "completed", "content": [text]}
        output: list[Body] = [_reasoning(reply)] if reply.thinking else []
        output += [{"id": f"msg_{reply.id}", **said}] if reply.text else []
        output += [_function_call(call) for call in reply.calls]
        self._items |= {item["id"]: item for item in output}
        words = _words(json.dumps(body["input"]))
        usage = {
            "input_tokens": words,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": _words(reply.text),
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": words + _words(reply.text),
        }
        return {
            **self._started(body, reply),
            "status": "completed",
            "output": output,
            "usage": usage,
        }

    def events(self, body: Body, reply: Reply) -> list[str]:
        whole = self.response(body, reply)
        events: list[Body] = [{"type": "response.created", "response": self._started(body, reply)}]
        for index, item in enumerate(whole["output"]):
            place = {"output_index": index, "item_id": item["id"]}
            empty = {**item, "status": "in_progress"}
            if item["type"] == "message":
                empty["content"] = []
            events.append({"type": "response.output_item.added", **place, "item": empty})
            if item["type"] == "message":
                part, place = item["content"][0], {**place, "content_index": 0}
                blank = {**part, "text": ""}
                events.append({"type": "response.content_part.added", **place, "part": blank})
                events += [
                    {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
                    for piece in _pieces(reply.text)
                ]
                done = {"text": reply.text, "logprobs": []}
                events.append({"type": "response.output_text.done", **place, **done})
                events.append({"type": "response.content_part.done", **place, "part": part})
            events.append(
                {"type": "response.output_item.done", "output_index": index, "item": item}
            )
        events.append({"type": "response.completed", "response": whole})
        return [
            f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': number})}\n\n"
            for number, event in enumerate(events)
        ]

    def _started(self, body: Body, reply: Reply) -> Body:
        return {
            "id": f"resp_{reply.id}",
            "object": "response",
            "created_at": 1,
            "status": "in_progress",
            "model": body["model"],
            "output": [],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }


class OpenAIEmbeddings(OpenAI):
    """OpenAI Embeddings: a vector tells how often a text has each of three vowels."""

    def problem(self, body: Body) -> str | None:
        texts = body.get("input")
        return None if isinstance(texts, list) and all(texts) else "input: texts are required"

    def response(self, body: Body, reply: Reply) -> Body:
        texts: list[str] = body["input"]
        data = [
            {
                "object": "embedding",
                "index": index,
                "embedding": [float(text.lower().count(vowel)) for vowel in "aei"],
            }
            for index, text in enumerate(texts)
        ]
        words = sum(len(text.split()) for text in texts)
        usage = {"prompt_tokens": words, "total_tokens": words}
        return {"object": "list", "data": data, "model": body["model"], "usage": usage}


def _blocks(body: Body) -> list[Body]:
    """The blocks of a request in the order of its prompt."""
    return list(itertools.chain(_content_blocks(body.get("system")), _message_blocks(body)))


def _message_blocks(body: Body) -> Iterator[Body]:
    for message in body["messages"]:
        yield from _content_blocks(message.get("content"))


def _content_blocks(content: str | list[Body] | None) -> list[Body]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content or []


def _thinking(text: str) -> Body:
    return {"type": "thinking", "thinking": text, "signature": f"signed {text}"}


def _thinking_events(block: Body) -> list[Body]:
    start = {**block, "thinking": "", "signature": ""}
    deltas = [{"type": "thinking_delta", "thinking": text} for text in _pieces(block["thinking"])]
    deltas.append({"type": "signature_delta", "signature": block["signature"]})
    return [
        {"type": "content_block_start", "index": 0, "content_block": start},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
    ]


def _reasoning(reply: Reply) -> Body:
    sealed = f"sealed {reply.thinking}"
    return {
        "type": "reasoning",
        "id": f"rs_{reply.id}",
        "summary": [],
        "encrypted_content": sealed,
    }


def _tool_use(call: Call) -> Body:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}


def _tool_use_events(index: int, call: Call) -> list[Body]:
    block = {**_tool_use(call), "input": {}}
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *(
            {
                "type": "content_block_delta",
                "index": index,
                "delta": {"type": "input_json_delta", "partial_json": piece},
            }
            for piece in _pieces(json.dumps(call.arguments))
        ),
        {"type": "content_block_stop", "index": index},
    ]


def _tool_call(call: Call) -> Body:
    function = {"name": call.name, "arguments": json.dumps(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


def _function_call(call: Call) -> Body:
    fields = {"name": call.name, "arguments": json.dumps(call.arguments), "status": "completed"}
    return {"type": "function_call", "id": f"fc_{call.id}", "call_id": call.id, **fields}


def _tool_call_deltas(index: int, call: Call) -> list[Body]:
    first, *rest = _pieces(json.dumps(call.arguments))
    opening = {"name": call.name, "arguments": first}
    calls: list[Body] = [
        {"index": index, "id": call.id, "type": "function", "function": opening},
        *({"index": index, "function": {"arguments": piece}} for piece in rest),
    ]
    return [{"tool_calls": [call]} for call in calls]


def _text(block: Body) -> str:
    text = block.get("text")
    if isinstance(text, str):
        return text
    return json.dumps({key: value for key, value in block.items() if key != "cache_control"})


def _unpaired(calls: list[str], results: list[str]) -> str | None:
    return None if sorted(calls) == sorted(results) else "a tool call and its result are apart"


def _words(*texts: str) -> int:
    return sum(len(text.split()) for text in texts)


def _pieces(text: str) -> list[str]:
    middle = len(text) // 2
    return [piece for piece in (text[:middle], text[middle:]) if piece]


def _common(left: list[str], right: list[str]) -> int:
    pairs = zip(left, right, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
