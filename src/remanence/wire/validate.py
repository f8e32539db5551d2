"""Validation of requests by the rules of Anthropic's Messages API and OpenAI's Chat Completions."""

from collections.abc import Iterator, Sequence
from itertools import chain, starmap

from remanence.wire.json_value import JsonObject

MAX_CACHE_BREAKPOINTS = 4
_OPENAI_ROLES = {"system", "developer", "user", "assistant", "tool"}


def anthropic_problems(request: JsonObject) -> tuple[str, ...]:
    """List the problems for which the Messages API would reject or silently change *request*."""
    messages = request.get("messages") or []
    contents = [_blocks(message.get("content")) for message in messages]
    system = _blocks(request.get("system"))
    marked = sum("cache_control" in block for block in chain(system, *contents))
    return (
        *_turn_problems(messages),
        *_block_problems("system", system),
        *chain.from_iterable(
            _block_problems(f"message {number}", blocks)
            for number, blocks in enumerate(contents, start=1)
        ),
        *_tool_use_problems(messages, contents),
        *(
            [f"{marked} blocks have cache_control; {MAX_CACHE_BREAKPOINTS} are allowed"]
            if marked > MAX_CACHE_BREAKPOINTS
            else []
        ),
    )


def openai_problems(request: JsonObject) -> tuple[str, ...]:
    """List the problems for which Chat Completions would reject *request*."""
    messages = request.get("messages") or []
    if not messages:
        return ("there is no message",)
    of_contents = starmap(_openai_content_problems, enumerate(messages, start=1))
    return (*chain.from_iterable(of_contents), *_tool_call_problems(messages))


def _turn_problems(messages: Sequence[JsonObject]) -> Iterator[str]:
    if not messages:
        yield "there is no message"
    before = "assistant"
    for number, message in enumerate(messages, start=1):
        role = message.get("role")
        if role not in ("user", "assistant"):
            yield f"message {number} has the role {role!r}"
        elif role == before:
            yield f"message {number} is the {role}'s " + (
                "and the first" if number == 1 else "as the one before it"
            )
        if not message.get("content"):
            yield f"message {number} has no content"
        elif _blocks(message["content"])[-1].get("type") in ("thinking", "redacted_thinking"):
            yield f"message {number} ends with thinking"
        elif role == "assistant":
            kinds = {str(block.get("type")) for block in _blocks(message["content"])}
            if media := sorted(kinds & {"image", "document"}):
                yield f"message {number} is the assistant's and has a block of type {media[0]!r}"
        before = str(role)


def _blocks(content: object) -> list[JsonObject]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content if isinstance(content, list) else []


def _block_problems(place: str, blocks: Sequence[JsonObject]) -> Iterator[str]:
    for number, block in enumerate(blocks, start=1):
        if block.get("type") == "text" and not str(block.get("text") or "").strip():
            yield f"block {number} of {place} is an empty text"
        if block.get("is_error"):
            inner = _blocks(block.get("content"))
            if not inner or any(one.get("type") != "text" for one in inner):
                yield f"block {number} of {place} is a failed result and not of texts"


def _tool_use_problems(
    messages: Sequence[JsonObject], contents: Sequence[Sequence[JsonObject]]
) -> Iterator[str]:
    """Yield violations of the rule that the turn after calls starts with one result for each."""
    seen: set[str] = set()
    open_ids: list[str] = []
    for number, (message, blocks) in enumerate(zip(messages, contents, strict=True), start=1):
        results = [block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"]
        if any(block.get("type") != "tool_result" for block in blocks[: len(results)]):
            yield f"message {number} has a tool result after other content"
        yield from _pair_problems(number, results, open_ids)
        open_ids = [block["id"] for block in blocks if block.get("type") == "tool_use"]
        if open_ids and message.get("role") != "assistant":
            yield f"message {number} is the user's and calls a tool"
        for id_ in open_ids:
            if id_ in seen:
                yield f"message {number} uses the tool call id {id_!r} again"
            seen.add(id_)
    for id_ in open_ids:
        yield f"tool call {id_!r} of the last message has no result"


def _pair_problems(number: int, results: Sequence[str], open_ids: Sequence[str]) -> Iterator[str]:
    for id_ in sorted(set(open_ids) - set(results)):
        yield f"tool call {id_!r} has no result in message {number}, right after it"
    for id_ in sorted(set(results) - set(open_ids)):
        yield f"message {number} has a result of {id_!r}, which the turn before does not call"
    for id_ in sorted({id_ for id_ in results if results.count(id_) > 1}):
        yield f"message {number} has more than one result of {id_!r}"


def _openai_content_problems(number: int, message: JsonObject) -> Iterator[str]:
    role, content = message.get("role"), message.get("content")
    if role not in _OPENAI_ROLES:
        yield f"message {number} has the role {role!r}"
    if role == "assistant":
        others = message.keys() - {"role", "content", "name"}
        if not content and not others:
            yield f"message {number} has neither content nor tool calls"
    elif content is None or content == []:
        yield f"message {number} has no content"
    if message.get("tool_calls") and role != "assistant":
        yield f"message {number} is the {role}'s and calls a tool"


def _tool_call_problems(messages: Sequence[JsonObject]) -> Iterator[str]:
    calling, open_ids, results = 0, list[str](), list[str]()
    for number, message in enumerate([*messages, {}], start=1):
        if message.get("role") == "tool":
            results.append(str(message.get("tool_call_id")))
            continue
        yield from _pair_problems(calling + 1, results, open_ids)
        calling, results = number, []
        open_ids = [str(call.get("id")) for call in message.get("tool_calls") or ()]
        if len(set(open_ids)) < len(open_ids):
            yield f"message {number} uses a tool call id twice"
