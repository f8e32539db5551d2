"""Messages as providers accept them: paired tool calls, alternating roles, a user first.

The rules depend on the messages alone, so that a later context repeats the bytes of an earlier
one. A result that comes after other messages stays where it came, as text of the user's.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from remanence.observing.boundaries import groups
from remanence.types import (
    Message,
    Part,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    anthropic,
    openai,
)

JsonObject = dict[str, Any]  # a provider's request: its shape is the provider's

NO_RESULT = "[no result was recorded for this call]"
LEAD_IN = "[The conversation goes on from the notes above.]"
VOLATILE_TAG = "memory-context"
MARKED_TYPES = frozenset({"text", "image", "document", "tool_use", "tool_result"})
LOOK_BACK_BLOCKS = 20
"""How many blocks before a breakpoint Anthropic's cache looks for an earlier one's prefix."""


def repaired(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Messages in which each tool call is answered directly and each result answers a call.

    A call id that occurs again, as from a model that counts from 0 in each session, gets the
    number of its message, for providers want ids that differ.
    """
    seen: set[str] = set()
    turns: list[Message] = []
    for run in groups(messages):
        ids = {call.id for call in run[0].tool_calls}
        again = {id_: f"{id_}-{run[0].seq}" for id_ in ids & seen}
        seen |= ids
        turns += _repaired_run(tuple(_renamed(message, again) for message in run))
    return tuple(turns)


def _renamed(message: Message, names: Mapping[str, str]) -> Message:
    if not names:
        return message
    content = tuple(_renamed_part(part, names) for part in message.content)
    return message.replace(content=content)


def _renamed_part(part: Part, names: Mapping[str, str]) -> Part:
    match part:
        case ToolCallPart():
            return replace(part, id=names.get(part.id, part.id))
        case ToolResultPart():
            return replace(part, call_id=names.get(part.call_id, part.call_id))
        case _:
            return part


def _repaired_run(run: tuple[Message, ...]) -> Iterator[Message]:
    open_ids = {call.id for call in run[0].tool_calls}
    if not open_ids:
        yield from (_late(message, open_ids) for message in run)
        return
    yield run[0]
    for message in run[1:]:
        yield _late(message, open_ids)
        open_ids -= {result.call_id for result in message.tool_results}
    if open_ids:
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
    """The message with each result that answers no open call turned into text."""
    if all(result.call_id in open_ids for result in message.tool_results):
        return message
    content = tuple(
        TextPart(text=f"[late result of tool call {part.call_id}]\n{part.text}")
        if isinstance(part, ToolResultPart) and part.call_id not in open_ids
        else part
        for part in message.content
    )
    only_text = not any(isinstance(part, ToolResultPart) for part in content)
    return message.replace(content=content, role="user" if only_text else message.role)


def volatile_block(text: str) -> str:
    """Text of this call alone, marked so that a memory recognises it when it comes back."""
    return f"<{VOLATILE_TAG}>\n{text}\n</{VOLATILE_TAG}>"


def carrier(messages: Sequence[Message]) -> int | None:
    """The index of the message that carries the volatile block: the newest of the user's side."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role != "assistant":
            return index
    return None


def last_settled(messages: Sequence[Message], *, volatile: bool) -> int | None:
    """The index of the newest message whose rendering will not change, None if there is none.

    A call that still waits for its results is not settled, nor is what follows a volatile block.
    """
    last = len(messages) - 1
    if volatile:
        carrying = carrier(messages)
        last = last if carrying is None else carrying
    while last >= 0 and _is_waiting(messages, last):
        last -= 1
    return last if last >= 0 else None


def breakpoints(messages: Sequence[Message], *, volatile: bool) -> tuple[int, ...]:
    """The indices of the messages that end a cached prefix, at most two.

    The last is the newest settled one. The end of the request before is marked too where the
    cache would not look back so far from there, as after many tool calls at once.
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


def openai_turns(messages: Sequence[Message], *, volatile: str) -> list[JsonObject]:
    """Messages of Chat Completions."""
    carrying = carrier(messages)
    turns: list[JsonObject] = []
    for index, message in enumerate(messages):
        rendered = openai.render(message.role, message.content, message.name)
        if volatile and index == carrying:
            _carry(rendered, volatile_block(volatile))
        turns += rendered
    if volatile and carrying is None:
        turns.append({"role": "user", "content": volatile_block(volatile)})
    return turns


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
) -> list[JsonObject]:
    """Messages of the Messages API: roles alternate, and the first is the user's."""
    carrying = carrier(messages)
    turns: list[JsonObject] = []
    for index, message in enumerate(messages):
        rendered = anthropic.render(message.role, message.content, message.name)
        if rendered and index in marked:
            _mark(rendered[-1]["content"], cache_control)
        if volatile and index == carrying:
            block = {"type": "text", "text": volatile_block(volatile)}
            rendered.append({"role": "user", "content": [block]})
        for turn in rendered:
            _append_turn(turns, turn)
    if volatile and carrying is None:
        block = {"type": "text", "text": volatile_block(volatile)}
        _append_turn(turns, {"role": "user", "content": [block]})
    return turns


def _mark(blocks: list[JsonObject], cache_control: JsonObject) -> None:
    """End a cached prefix with the last block that is known to allow it."""
    allowed = [block for block in blocks if block["type"] in MARKED_TYPES]
    if allowed:
        allowed[-1]["cache_control"] = cache_control


def _append_turn(turns: list[JsonObject], turn: JsonObject) -> None:
    if not turns and turn["role"] == "assistant":
        lead_in = {"type": "text", "text": LEAD_IN}
        turns.append({"role": "user", "content": [lead_in]})
    if turns and turns[-1]["role"] == turn["role"]:
        turns[-1]["content"].extend(turn["content"])
    else:
        turns.append(turn)
