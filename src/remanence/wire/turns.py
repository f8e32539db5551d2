"""Turns of a request: alternating roles, cache breakpoints, and the volatile block."""

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import chain

from remanence.wire import anthropic, gemini, openai, responses
from remanence.wire.boundaries import groups, is_settled
from remanence.wire.json_value import JsonObject
from remanence.wire.message import Message
from remanence.wire.pairing import NO_RESULT

LEAD_IN = "[The conversation goes on.]"
"""The user turn put before an initial assistant turn, as providers require."""
VOLATILE_TAG = "memory-context"
MARKED_TYPES = frozenset({"text", "image", "document", "tool_use", "tool_result"})
CACHE_CONTROL: JsonObject = {"type": "ephemeral"}
OPENAI_BREAKPOINT: JsonObject = {"mode": "explicit"}
LOOK_BACK_BLOCKS = 20
"""How many blocks Anthropic's cache looks back from a breakpoint for an earlier one."""

_TAG = re.compile(rf"<(?=[\s/]{{0,8}}{VOLATILE_TAG})", re.IGNORECASE)


def volatile_block(text: str) -> str:
    """Wrap text for this call only in tags, by which a memory recognises it when it comes back.

    Such tags in the text itself, as in a recalled message, are escaped.
    """
    return f"<{VOLATILE_TAG}>\n{_TAG.sub('&lt;', text)}\n</{VOLATILE_TAG}>"


def breakpoints(messages: Sequence[Message]) -> tuple[int, ...]:
    """Return the indices of the messages that end a cached prefix, at most two.

    The last is the newest settled message: no unanswered call, and not after the place of the
    volatile block, which the next request may have even if this one has none. The end of the
    previous request is added if it is beyond the cache's look-back, as after many parallel calls.
    """
    settled = _volatile_place(messages) - 1
    while settled >= 0 and _is_waiting(messages, settled):
        settled -= 1
    if settled < 0:
        return ()
    answers = [index for index in range(settled) if messages[index].role == "assistant"]
    before = answers[-1] - 1 if answers else -1
    between = sum(len(message.content) for message in messages[before + 1 : settled + 1])
    return (before, settled) if before >= 0 and between >= LOOK_BACK_BLOCKS else (settled,)


def _volatile_place(messages: Sequence[Message]) -> int:
    """Return the place of the volatile block: after the newest non-assistant message.

    A run with unanswered calls at the end comes after it. If only the assistant has spoken, the block
    comes after all messages.
    """
    runs = list(groups(messages))
    newest = runs[-1] if runs else ()
    last = len(messages) if is_settled(newest) else len(messages) - len(newest)
    for place in range(last, 0, -1):
        if messages[place - 1].role != "assistant":
            return place
    return last


def _is_waiting(messages: Sequence[Message], index: int) -> bool:
    message = messages[index]
    if any(part.text == NO_RESULT for part in message.tool_results):
        return True
    return bool(message.tool_calls) and (
        index + 1 == len(messages) or _is_waiting(messages, index + 1)
    )


def openai_turns(
    messages: Sequence[Message], *, volatile: str, marked: Collection[int] = ()
) -> list[JsonObject]:
    """Render Chat Completions messages, with a cache breakpoint after each *marked* one."""
    block = volatile_block(volatile)
    place = _volatile_place(messages) if volatile else 0
    is_carried = place > 0 and messages[place - 1].role != "assistant"
    if volatile and not is_carried:
        own = {"role": "user", "content": block}
        before = openai_turns(messages[:place], volatile="", marked=marked)
        return [*before, own, *openai_turns(messages[place:], volatile="")]
    turns: list[JsonObject] = []
    pending: list[JsonObject] = []
    for index, message in enumerate(messages):
        rendered = openai.render(message.role, message.content, message.name)
        if index in marked and (parts := _parts(rendered[-1])):
            marked_part = {**parts[-1], "prompt_cache_breakpoint": OPENAI_BREAKPOINT}
            rendered[-1]["content"] = [*parts[:-1], marked_part]
        if is_carried and index == place - 1:
            if rendered[-1]["role"] == "tool":
                rendered.append({"role": "user", "content": block})
            else:
                rendered[-1]["content"] = [*_parts(rendered[-1]), {"type": "text", "text": block}]
        results = len(message.tool_results)
        if results:
            # Results of one turn stay together; their images and files follow the last result.
            turns += rendered[:results]
            pending += rendered[results:]
        else:
            turns += [*pending, *rendered]
            pending = []
    return [*turns, *pending]


def _parts(turn: JsonObject) -> list[JsonObject]:
    content = turn["content"] or []
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def anthropic_turns(
    messages: Sequence[Message],
    *,
    volatile: str,
    marked: Collection[int],
    system_role: bool = False,
) -> list[JsonObject]:
    """Render turns of the Messages API, with alternating roles and a user turn first."""
    rendered: list[list[JsonObject]] = []
    for index, message in enumerate(messages):
        turns = anthropic.render(
            message.role, message.content, message.name, system_role=system_role
        )
        if index in marked:
            allowed = [b for turn in turns for b in turn["content"] if b["type"] in MARKED_TYPES]
            for block in allowed[-1:]:
                block["cache_control"] = CACHE_CONTROL
        rendered.append(turns)
    if volatile:
        block = {"type": "text", "text": volatile_block(volatile)}
        rendered.insert(_volatile_place(messages), [{"role": "user", "content": [block]}])
    lead_in = {"type": "text", "text": LEAD_IN}
    whole = _alternate(chain.from_iterable(rendered), "content", lead_in)
    return [{**turn, "content": anthropic.results_first(turn["content"])} for turn in whole]


def responses_items(messages: Sequence[Message], *, volatile: str) -> list[JsonObject]:
    """Render items of the Responses API."""
    rendered = [responses.render(m.role, m.content, m.name) for m in messages]
    if volatile:
        block = {"role": "user", "content": volatile_block(volatile)}
        rendered.insert(_volatile_place(messages), [block])
    return responses.with_types_of_calls(list(chain.from_iterable(rendered)))


def gemini_contents(messages: Sequence[Message], *, volatile: str) -> list[JsonObject]:
    """Render Gemini contents, with alternating roles and a user turn first."""
    tools = {call.id: call.name for message in messages for call in message.tool_calls}
    rendered = [gemini.render(m.role, m.content, m.name, tools=tools) for m in messages]
    if volatile:
        block = {"role": "user", "parts": [{"text": volatile_block(volatile)}]}
        rendered.insert(_volatile_place(messages), block)
    return _alternate(rendered, "parts", {"text": LEAD_IN})


def _alternate(turns: Iterable[JsonObject], key: str, lead_in: JsonObject) -> list[JsonObject]:
    """Merge successive turns of one role, and start with a user turn."""
    merged: list[JsonObject] = []
    for turn in turns:
        if not merged and turn["role"] != "user":
            merged.append({"role": "user", key: [lead_in]})
        if merged and merged[-1]["role"] == turn["role"]:
            merged[-1][key] = [*merged[-1][key], *turn[key]]
        else:
            merged.append(turn)
    return merged
