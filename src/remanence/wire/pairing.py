"""Pairing of tool calls and results, which every provider requires.

The rules depend on the messages alone, so that a later context repeats the bytes of an earlier one.
A result that arrives after other messages stays in its place, as text, as does an unanswered call in a
provider's own format.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby
from operator import attrgetter

from remanence.wire.boundaries import groups
from remanence.wire.content import NOTHING_READABLE, extra_fields, is_reasoning
from remanence.wire.links import Link, link, open_links
from remanence.wire.message import Message
from remanence.wire.parts import OtherPart, Part, TextPart, ToolCallPart, ToolResultPart

NO_RESULT = "[no result was recorded for this call: the tool may or may not have run]"
_UNREADABLE = (";base64,", '"encrypted_')
_SILENT_FIELDS = frozenset(
    {
        "annotations",
        "audio",  # whose transcript is a text
        "citations",
        "extra_content",
        "provider_specific_fields",
        "reasoning",
        "reasoning_content",
        "reasoning_details",
        "reasoning_opaque",
        "reasoning_text",
        "thinking",
        "thinking_blocks",
        "thought_signature",
    }
)
"""Fields with reasoning or about the text, by which providers of Chat Completions extend an answer."""


def pair_tool_calls(messages: Sequence[Message], *, keep_open: bool = False) -> tuple[Message, ...]:
    """Pair tool calls and results, so that results directly follow their calls.

    Calls in successive messages are merged into one message, but not with an answer that follows
    calls without a result. Repeated call ids, as from a model that counts from 0 in each session, get
    the message number as a suffix, because providers require unique ids. With *keep_open*, calls at
    the end may stay unanswered. Reasoning stays only before text or calls, which providers require.
    """
    seen: set[str] = set()
    turns: list[Message] = []
    runs = list(groups(messages))
    for number, run in enumerate(runs, start=1):
        ids = {call.id for message in run for call in message.tool_calls}
        again = {id_: f"{id_}-{run[0].seq}" for id_ in ids & seen}
        seen |= ids
        is_last = number == len(runs)
        renamed = [_rename_calls(message, again) for message in run]
        whole = _merge_calls(renamed, keep_open=is_last and keep_open)
        turns += _pair_run(whole, is_last=is_last, keep_open=keep_open)
    spoken = tuple(_put_reasoning_first(turns))
    nothing = (TextPart(text=NOTHING_READABLE),)  # a request has at least one message
    return spoken or tuple(message.replace(content=nothing) for message in turns[:1])


def _put_reasoning_first(messages: Iterable[Message]) -> Iterator[Message]:
    """Move reasoning that ends a message to the next one, if that is the assistant's, too.

    Otherwise it is left out, as is a message that has nothing else, such as an answer cut off early.
    """
    pending: tuple[Part, ...] = ()
    for message in messages:
        if message.role != "assistant":
            pending = ()
            yield message
            continue
        content = (*pending, *message.content)
        end = max((n for n, part in enumerate(content, 1) if not _is_silent(part)), default=0)
        pending = tuple(part for part in content[end:] if not isinstance(part, TextPart))
        if end:
            blank = (part for part in content[end:] if isinstance(part, TextPart))
            content = (*content[:end], *blank)
            yield message if content == message.content else message.replace(content=content)


def _is_silent(part: Part) -> bool:
    """Return whether a part is reasoning, blank text, or fields that say nothing without content."""
    match part:
        case TextPart(text=text):
            return not text.strip()
        case OtherPart(dialect="openai", scope="message"):
            return part.value.keys() <= _SILENT_FIELDS
        case OtherPart():
            return is_reasoning(part)
        case _:
            return False


def _merge_calls(run: Iterable[Message], *, keep_open: bool) -> Iterator[Message]:
    """Merge successive messages of the assistant, as far as they are one answer."""
    blocks = [tuple(block) for _, block in groupby(run, key=attrgetter("role"))]
    for block, following in zip(blocks, [*blocks[1:], ()], strict=True):
        if block[0].role != "assistant" or len(block) == 1:
            yield from block
        elif keep_open:
            yield _merge(block)
        else:
            answered = {id_ for message in following for id_ in open_links(message)[1]}
            yield from map(_merge, _answers(block, answered))


def _answers(block: Iterable[Message], answered: Collection[str]) -> Iterator[Sequence[Message]]:
    """Split messages of the assistant into answers, by the calls *answered* right after them.

    Parallel calls are one answer. Text after calls without a result begins another, as the model had
    read `NO_RESULT` before it wrote that.
    """
    answer: list[Message] = []
    open_ids: set[str] = set()
    for message in block:
        calls, results = open_links(message)
        open_ids -= results
        has_text = not all(map(link, message.content))
        if has_text and open_ids and open_ids.isdisjoint(answered):
            yield answer
            answer, open_ids = [], set()
        answer.append(message)
        open_ids |= calls.keys()
    yield answer


def _merge(messages: Sequence[Message]) -> Message:
    content = tuple(part for message in messages for part in message.content)
    return messages[0].replace(content=content, tokens=sum(map(attrgetter("tokens"), messages)))


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


def _pair_run(run: Iterable[Message], *, is_last: bool, keep_open: bool) -> Iterator[Message]:
    run = tuple(run)
    kept = _answered_ids(run)
    if is_last:  # the provider goes on with its own calls, and the host perhaps with others
        calls = chain.from_iterable(open_links(message)[0].items() for message in run)
        kept |= {id_ for id_, kind in calls if keep_open or kind == "server_call"}
    open_ids: dict[str, Part] = {}
    for message in run:
        if message.role == "assistant":
            yield from _no_results(run[0], open_ids)
        yield _answer(message, open_ids, kept)
    if not (is_last and keep_open):
        yield from _no_results(run[0], open_ids)


def _answered_ids(run: Iterable[Message]) -> set[str]:
    """Return the ids of calls that a later result answers."""
    called: set[str] = set()
    answered: set[str] = set()
    for kind, id_ in filter(None, (link(part) for message in run for part in message.content)):
        if kind != "result":
            called.add(id_)
        elif id_ in called:
            answered.add(id_)
    return answered


def _no_results(message: Message, open_ids: dict[str, Part]) -> Iterator[Message]:
    """Answer the open tool calls, and remove them."""
    nothing = (TextPart(text=NO_RESULT),)
    ids = [id_ for id_, part in open_ids.items() if isinstance(part, ToolCallPart)]
    if ids:
        content = tuple(ToolResultPart(call_id=id_, content=nothing) for id_ in ids)
        yield message.replace(role="tool", name=None, tokens=0, content=content)
    for id_ in ids:
        del open_ids[id_]


def _answer(message: Message, open_ids: dict[str, Part], kept: Collection[str]) -> Message:
    """Remove the calls that a message answers from *open_ids*, and add its own.

    Its other results become text, as do calls in a provider's own format unless they are *kept*.
    """
    content: list[Part] = []
    for part in message.content:
        match link(part):
            case Link("result", id_):
                is_late = open_ids.pop(id_, None) is None
                content.append(_late(part) if is_late else part)
            case Link(_, id_) if isinstance(part, OtherPart) and id_ not in kept:
                while content and _is_reasoning_item(content[-1]):  # which requires its call
                    content.pop()
                content.append(TextPart(text=f"{part.raw}\n{NO_RESULT}"))
            case Link(_, id_):
                content.append(_without_lost_caller(part, open_ids))
                open_ids[id_] = part
            case None:
                content.append(part)
    if tuple(content) == message.content:
        return message
    only_text = not any(isinstance(part, ToolResultPart) for part in content)
    role = "user" if message.role == "tool" and only_text else message.role
    return message.replace(content=tuple(content), role=role)


def _without_lost_caller(part: Part, open_ids: Collection[str]) -> Part:
    """Remove a call's reference to the code that made it, unless that is still open."""
    caller = extra_fields(part, "anthropic").get("caller")
    called_by = caller.get("tool_id") if isinstance(caller, dict) else None
    if (
        isinstance(part, ToolCallPart)
        and called_by is not None
        and f"anthropic {called_by}" not in open_ids
    ):
        return replace(part, extra=None)
    return part


def _late(part: Part) -> TextPart:
    if isinstance(part, ToolResultPart):
        return TextPart(text=f"[late result of tool call {part.call_id}]\n{part.text}")
    raw = part.raw if isinstance(part, OtherPart) else ""
    is_readable = not any(mark in raw for mark in _UNREADABLE)
    return TextPart(text=f"[late result of a tool call]\n{raw if is_readable else ''}".strip())


def _is_reasoning_item(part: Part) -> bool:
    return isinstance(part, OtherPart) and part.dialect == "openai_responses" and is_reasoning(part)
