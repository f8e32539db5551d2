"""Messages as providers accept them: paired tool calls, alternating roles, a user first.

The rules depend on the messages alone, so that a later context repeats the bytes of an earlier
one. A result that arrives after other messages stays in its place, as text of the user.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from remanence.wire import anthropic, gemini, openai, responses
from remanence.wire.boundaries import groups, is_settled
from remanence.wire.message import Message
from remanence.wire.parts import Part, TextPart, ToolCallPart, ToolResultPart

JsonObject = dict[str, Any]  # a provider's request: its shape is the provider's

NO_RESULT = "[no result was recorded for this call]"
LEAD_IN = "[The conversation goes on from the notes above.]"
VOLATILE_TAG = "memory-context"
_TAG = re.compile(rf"<(?=[\s/]{{0,8}}{VOLATILE_TAG})", re.IGNORECASE)
MARKED_TYPES = frozenset({"text", "image", "document", "tool_use", "tool_result"})
OPENAI_BREAKPOINT: JsonObject = {"mode": "explicit"}
LOOK_BACK_BLOCKS = 20
"""Blocks that Anthropic's cache looks back from a breakpoint for an earlier one."""


def pair_tool_calls(messages: Sequence[Message], *, keep_open: bool = False) -> tuple[Message, ...]:
    """Pair tool calls and results: each call is answered directly, each result answers a call.

    Calls in successive messages are merged into one. A repeated call id, as from a model that
    counts from 0 in each session, gets the number of its message as suffix, because providers
    require unique ids. With *keep_open* calls at the end may stay unanswered.
    """
    seen: set[str] = set()
    turns: list[Message] = []
    runs = list(groups(messages))
    for number, run in enumerate(runs, start=1):
        ids = {call.id for message in run for call in message.tool_calls}
        again = {id_: f"{id_}-{run[0].seq}" for id_ in ids & seen}
        seen |= ids
        whole = _merge_calls(tuple(_rename_calls(message, again) for message in run))
        turns += _pair_run(whole, keep_open=keep_open and number == len(runs))
    return tuple(turns)


def _merge_calls(run: tuple[Message, ...]) -> tuple[Message, ...]:
    """Merge the calls of a run into one message."""
    heads = [message for message in run if message.role == "assistant"]
    if len(heads) < 2:
        return run
    content = tuple(part for message in heads for part in message.content)
    tokens = sum(message.tokens for message in heads)
    return (heads[0].replace(content=content, tokens=tokens), *run[len(heads) :])


def _rename_calls(message: Message, names: Mapping[str, str]) -> Message:
    if not names:
        return message
    content = tuple(_rename_part(part, names) for part in message.content)
    return message.replace(content=content)


def _rename_part(part: Part, names: Mapping[str, str]) -> Part:
    match part:
        case ToolCallPart():
            return replace(part, id=names.get(part.id, part.id))
        case ToolResultPart():
            return replace(part, call_id=names.get(part.call_id, part.call_id))
        case _:
            return part


def _pair_run(run: tuple[Message, ...], *, keep_open: bool) -> Iterator[Message]:
    open_ids = {call.id for call in run[0].tool_calls}
    if not open_ids:
        yield from (_late(message, open_ids) for message in run)
        return
    yield run[0]
    for message in run[1:]:
        yield _late(message, open_ids)
        open_ids -= {result.call_id for result in message.tool_results}
    if open_ids and not keep_open:
        missing = [call.id for call in run[0].tool_calls if call.id in open_ids]
        yield run[0].replace(
            role="tool",
            name=None,
            tokens=0,
            content=tuple(
                ToolResultPart(call_id=call_id, content=(TextPart(text=NO_RESULT),))
                for call_id in missing
            ),
        )


def _late(message: Message, open_ids: set[str]) -> Message:
    """Turn each result that does not answer an open call, or is a second answer, into text."""
    waiting = set(open_ids)
    content: list[Part] = []
    for part in message.content:
        if not isinstance(part, ToolResultPart):
            content.append(part)
        elif part.call_id in waiting:
            waiting.remove(part.call_id)
            content.append(part)
        else:
            late = f"[late result of tool call {part.call_id}]\n{part.text}"
            content.append(TextPart(text=late))
    if tuple(content) == message.content:
        return message
    only_text = not any(isinstance(part, ToolResultPart) for part in content)
    return message.replace(content=tuple(content), role="user" if only_text else message.role)


def volatile_block(text: str) -> str:
    """Wrap text for this call only in tags by which a memory recognises it when it comes back.

    Such tags within the text, as in a recalled message, are escaped.
    """
    return f"<{VOLATILE_TAG}>\n{_TAG.sub('&lt;', text)}\n</{VOLATILE_TAG}>"


def carrier(messages: Sequence[Message]) -> int | None:
    """Return the index of the newest message not of the assistant, to carry the volatile block.

    A run with unanswered calls at the end is skipped. -1 puts the block before all messages, None
    after all.
    """
    runs = list(groups(messages))
    newest = runs[-1] if runs else ()
    last = len(messages) if is_settled(newest) else len(messages) - len(newest)
    for index in range(last - 1, -1, -1):
        if messages[index].role != "assistant":
            return index
    return None if last == len(messages) else -1


def last_settled(messages: Sequence[Message], *, volatile: bool) -> int | None:
    """Return the index of the newest message whose rendering will not change, or None.

    An unanswered call is not settled, nor is a message after the volatile block.
    """
    last = len(messages) - 1
    if volatile:
        carrying = carrier(messages)
        last = last if carrying is None else carrying
    while last >= 0 and _is_waiting(messages, last):
        last -= 1
    return last if last >= 0 else None


def breakpoints(messages: Sequence[Message], *, volatile: bool) -> tuple[int, ...]:
    """Return the indices of the messages that end a cached prefix, at most two.

    The last is the newest settled message. The end of the previous request is included if the cache
    does not look back so far from there, as after many tool calls at once.
    """
    settled = last_settled(messages, volatile=volatile)
    if settled is None:
        return ()
    answers = [index for index in range(settled) if messages[index].role == "assistant"]
    before = answers[-1] - 1 if answers else -1
    between = sum(len(message.content) for message in messages[before + 1 : settled + 1])
    return (before, settled) if before >= 0 and between >= LOOK_BACK_BLOCKS else (settled,)


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
    """Render messages of Chat Completions, with a cache breakpoint after each *marked* one."""
    carrying = carrier(messages)
    block = {"role": "user", "content": volatile_block(volatile)}
    turns: list[JsonObject] = [block] if volatile and carrying == -1 else []
    pending: list[JsonObject] = []
    for index, message in enumerate(messages):
        rendered = openai.render(message.role, message.content, message.name)
        if index in marked:
            _mark_openai(rendered[-1])
        if volatile and index == carrying:
            _carry(rendered, volatile_block(volatile))
        results, others = _split_results(rendered)
        # Results of one turn stay together; their images and files follow the last one.
        if not results:
            turns += pending
            pending = []
        turns += results
        pending += others
        if not message.tool_results:
            turns += pending
            pending = []
    turns += pending
    if volatile and carrying is None:
        turns.append(block)
    return turns


def _split_results(rendered: list[JsonObject]) -> tuple[list[JsonObject], list[JsonObject]]:
    results = [turn for turn in rendered if turn["role"] == "tool"]
    return results, [turn for turn in rendered if turn["role"] != "tool"]


def _mark_openai(turn: JsonObject) -> None:
    """End a cached prefix with the last part of a turn; one without content cannot be marked."""
    content = turn["content"]
    if not content:
        return
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    turn["content"] = [*parts[:-1], {**parts[-1], "prompt_cache_breakpoint": OPENAI_BREAKPOINT}]


def _carry(rendered: list[JsonObject], text: str) -> None:
    newest = rendered[-1]
    if newest["role"] == "tool":
        rendered.append({"role": "user", "content": text})
        return
    content = newest["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    newest["content"] = [*parts, {"type": "text", "text": text}]


def anthropic_turns(
    messages: Sequence[Message],
    *,
    volatile: str,
    cache_control: JsonObject,
    marked: Collection[int],
    system_role: bool = False,
) -> list[JsonObject]:
    """Render turns of the Messages API: roles alternate, and the first is the user's."""
    carrying = carrier(messages)
    block = {"type": "text", "text": volatile_block(volatile)}
    carried: JsonObject = {"role": "user", "content": [block]}
    turns: list[JsonObject] = [carried] if volatile and carrying == -1 else []
    for index, message in enumerate(messages):
        rendered = anthropic.render(
            message.role, message.content, message.name, system_role=system_role
        )
        if rendered and index in marked:
            _mark(rendered[-1]["content"], cache_control)
        if volatile and index == carrying:
            rendered.append(carried)
        for turn in rendered:
            _append_turn(turns, turn)
    if volatile and carrying is None:
        _append_turn(turns, carried)
    return turns


def responses_items(messages: Sequence[Message], *, volatile: str) -> list[JsonObject]:
    """Render items of the Responses API."""
    carrying = carrier(messages)
    carried = {"role": "user", "content": volatile_block(volatile)}
    items: list[JsonObject] = [carried] if volatile and carrying == -1 else []
    for index, message in enumerate(messages):
        items += responses.render(message.role, message.content, message.name)
        if volatile and index == carrying:
            items.append(carried)
    if volatile and carrying is None:
        items.append(carried)
    return items


def gemini_contents(messages: Sequence[Message], *, volatile: str) -> list[JsonObject]:
    """Render contents of Gemini: roles alternate, and the first is the user's."""
    carrying = carrier(messages)
    carried: JsonObject = {"role": "user", "parts": [{"text": volatile_block(volatile)}]}
    tools = {call.id: call.name for message in messages for call in message.tool_calls}
    contents: list[JsonObject] = []
    turns = [
        gemini.render(message.role, message.content, message.name, tools=tools)
        for message in messages
    ]
    if volatile:
        turns.insert(len(turns) if carrying is None else carrying + 1, carried)
    for turn in turns:
        if not contents and turn["role"] == "model":
            contents.append({"role": "user", "parts": [{"text": LEAD_IN}]})
        if contents and contents[-1]["role"] == turn["role"]:
            contents[-1]["parts"] += turn["parts"]
        else:
            contents.append(turn)
    return contents


def _mark(blocks: list[JsonObject], cache_control: JsonObject) -> None:
    """End a cached prefix with the last block of a type that allows a breakpoint."""
    allowed = [block for block in blocks if block["type"] in MARKED_TYPES]
    if allowed:
        allowed[-1]["cache_control"] = cache_control


def _append_turn(turns: list[JsonObject], turn: JsonObject) -> None:
    if not turns and turn["role"] != "user":
        lead_in = {"type": "text", "text": LEAD_IN}
        turns.append({"role": "user", "content": [lead_in]})
    if turns and turns[-1]["role"] == turn["role"]:
        turns[-1]["content"] = anthropic.results_first([*turns[-1]["content"], *turn["content"]])
    else:
        turns.append(turn)
