"""Pairing of tool calls and results, which every provider requires.

The rules depend on the messages alone, so that a later context repeats the bytes of an earlier one.
A result that arrives after other messages stays in its place, as user text.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from remanence.wire.boundaries import groups
from remanence.wire.message import Message
from remanence.wire.parts import Part, TextPart, ToolCallPart, ToolResultPart

NO_RESULT = "[no result was recorded for this call: the tool may or may not have run]"


def pair_tool_calls(messages: Sequence[Message], *, keep_open: bool = False) -> tuple[Message, ...]:
    """Pair tool calls and results, so that results directly follow their calls.

    Calls in successive messages are merged into one message. Repeated call ids, as from a model that
    counts from 0 in each session, get the message number as a suffix, because providers require
    unique ids. With *keep_open*, calls at the end may stay unanswered.
    """
    seen: set[str] = set()
    turns: list[Message] = []
    runs = list(groups(messages))
    for number, run in enumerate(runs, start=1):
        ids = {call.id for message in run for call in message.tool_calls}
        again = {id_: f"{id_}-{run[0].seq}" for id_ in ids & seen}
        seen |= ids
        whole = _merge_calls([_rename_calls(message, again) for message in run])
        turns += _pair_run(whole, keep_open=keep_open and number == len(runs))
    return tuple(turns)


def _merge_calls(run: Sequence[Message]) -> Sequence[Message]:
    """Merge the calls of a run into one message."""
    heads = [message for message in run if message.role == "assistant"]
    if len(heads) < 2:
        return run
    content = tuple(part for message in heads for part in message.content)
    tokens = sum(message.tokens for message in heads)
    return (heads[0].replace(content=content, tokens=tokens), *run[len(heads) :])


def _rename_calls(message: Message, ids: Mapping[str, str]) -> Message:
    if not ids:
        return message
    content: list[Part] = []
    for part in message.content:
        match part:
            case ToolCallPart():
                content.append(replace(part, id=ids.get(part.id, part.id)))
            case ToolResultPart():
                content.append(replace(part, call_id=ids.get(part.call_id, part.call_id)))
            case _:
                content.append(part)
    return message.replace(content=tuple(content))


def _pair_run(run: Sequence[Message], *, keep_open: bool) -> Iterator[Message]:
    open_ids = [call.id for call in run[0].tool_calls]
    for message in run:
        yield _answer(message, open_ids)
    if open_ids and not keep_open:
        nothing = (TextPart(text=NO_RESULT),)
        content = tuple(ToolResultPart(call_id=id_, content=nothing) for id_ in open_ids)
        yield run[0].replace(role="tool", name=None, tokens=0, content=content)


def _answer(message: Message, open_ids: list[str]) -> Message:
    """Remove the calls that a message answers from *open_ids*; its other results become text."""
    content: list[Part] = []
    for part in message.content:
        if not isinstance(part, ToolResultPart):
            content.append(part)
        elif part.call_id in open_ids:
            open_ids.remove(part.call_id)
            content.append(part)
        else:
            late = f"[late result of tool call {part.call_id}]\n{part.text}"
            content.append(TextPart(text=late))
    if tuple(content) == message.content:
        return message
    only_text = not any(isinstance(part, ToolResultPart) for part in content)
    return message.replace(content=tuple(content), role="user" if only_text else message.role)
