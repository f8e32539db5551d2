"""Fitting a raw tail into its budget: old messages are abridged, oversize ones lose their middle."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from remanence.context.context import Omitted
from remanence.notes.excerpts import ELLIPSIS, beginning, ending, fair_share
from remanence.types import (
    FilePart,
    ImagePart,
    Message,
    OtherPart,
    Part,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    label,
)
from remanence.wire.boundaries import groups
from remanence.wire.content import as_text, read_result_parts
from remanence.wire.json_value import dumps

CountMessage: TypeAlias = Callable[[Message], int]

STAND_IN_TOKENS = 2_000
STAND_IN_CHARACTERS = 160
_STAND_IN_HEAD = (
    "[The messages below are not summarised yet and exceed the window. Each is shown by its "
    "beginning only; do not take it for the whole.]"
)
SHORT_CHARACTERS = 200
"""The length of an abridged tool result; shorter results are unchanged."""

PARTS = 4
"""An overfull tail is cut in steps of a quarter of its room, and an excerpt takes one to three
quarters, so that the cut does not move with every message."""


class FittedTail(NamedTuple):
    """A tail that fits: a stand-in for older messages, the newest messages, and the omissions."""

    stand_in: str
    messages: tuple[Message, ...]
    omitted: tuple[Omitted, ...]


def fit_tail(
    messages: Sequence[Message],
    *,
    first_seq: int,
    last_sum_tokens: int,
    budget: int,
    keep_last: int,
    count: CountMessage,
) -> FittedTail:
    """Cut *messages*, the newest of the tail from *first_seq* on, to *budget* tokens.

    Messages larger than a quarter of the room become excerpts, if the whole tail then fits.
    Otherwise whole runs are cut from the old end, except for the newest `keep_last` messages, which
    stay as excerpts as far as they fit. The newest run always stays, at least its last call.
    """
    total = sum(message.tokens for message in messages)
    is_whole = bool(messages) and messages[0].seq == first_seq
    if not messages or (is_whole and total <= budget):
        return FittedTail("", tuple(messages), ())
    for_stand_in = min(STAND_IN_TOKENS, budget // 2)
    room = max(1, budget - for_stand_in)
    cap = _cap(messages, room) if is_whole else None
    if cap is None:
        left_out, kept, caps = _cut(messages, last_sum_tokens, room, keep_last)
    else:
        left_out, kept, caps = (), tuple(messages), [cap] * len(messages)
    number, shown = 0, _with_excerpts(kept, caps, count)
    if _tokens(shown) > budget:
        number, shown = _fit(kept, room, budget, count)
        left_out, kept = (*left_out, *kept[:number]), kept[number:]
    for_stand_in = min(for_stand_in, budget - _tokens(shown))
    stand_in, first_shown = _stand_in(left_out, for_stand_in, count)
    omitted: list[Omitted] = []
    first_kept = kept[0].seq
    first_shown = first_shown or first_kept
    if first_seq < first_shown:
        omitted.append(Omitted(first_seq=first_seq, last_seq=first_shown - 1, reason="over_budget"))
    if first_shown < first_kept:
        omitted.append(Omitted(first_seq=first_shown, last_seq=first_kept - 1, reason="stand_in"))
    return FittedTail(stand_in, shown, (*omitted, *_excerpts(shown, kept)))


def fit_opening(messages: Sequence[Message], budget: int, count: CountMessage) -> FittedTail:
    """Return the messages that opened a turn, as excerpts if they exceed a quarter of *budget*.

    None are left if the excerpts do, too.
    """
    room = budget // PARTS
    shown = tuple(messages) if _tokens(messages) <= room else _shrunk(messages, room, count)
    if _tokens(shown) > room:
        return FittedTail("", (), ())
    return FittedTail("", shown, _excerpts(shown, messages))


def _cap(messages: Sequence[Message], room: int) -> int | None:
    """Return the token limit per message with which all fit *room*; None if a quarter is too much."""
    part = max(1, room // PARTS)
    caps = range((PARTS - 1) * part, 0, -part)
    sizes = [message.tokens for message in messages]
    return next((cap for cap in caps if sum(min(size, cap) for size in sizes) <= room), None)


def _cut(
    messages: Sequence[Message], last_sum_tokens: int, room: int, keep_last: int
) -> tuple[tuple[Message, ...], tuple[Message, ...], list[int]]:
    """Split so that the newer part fits *room*, at a place that depends on the tape alone.

    A message counts for at most a quarter of the room, a run for a half. Splits are possible where
    the token sum from the start of the tape passes a multiple of a quarter. Also returns the token
    limit of each message in the newer part.
    """
    part = max(1, room // PARTS)
    runs = list(groups(messages))
    sizes = [min(sum(min(message.tokens, part) for message in run), 2 * part) for run in runs]
    before = last_sum_tokens - _tokens(messages)
    newest, rest, is_place, start = messages[-1].seq, sum(sizes), True, 0
    while start < len(runs) - 1 and newest - runs[start][-1].seq >= keep_last:
        if is_place and rest <= room:
            break
        passed = before // part
        before += _tokens(runs[start])
        is_place = before // part > passed
        rest -= sizes[start]
        start += 1
    left_out = tuple(message for run in runs[:start] for message in run)
    caps: list[int] = []
    for run in runs[start:]:  # none takes more than a half of the room
        share = fair_share([min(message.tokens, part) for message in run], 2 * part)
        caps += [min(part, share)] * len(run)
    kept = tuple(message for run in runs[start:] for message in run)
    share = fair_share(map(min, (message.tokens for message in kept), caps), room)
    return left_out, kept, [max(1, min(cap, share)) for cap in caps]


def _with_excerpts(
    messages: Sequence[Message], caps: Sequence[int], count: CountMessage
) -> tuple[Message, ...]:
    """Cut the middle of each message above its cap, if that makes it smaller."""
    return tuple(
        min(message, _excerpt(message, cap, count), key=attrgetter("tokens"))
        if message.tokens > cap
        else message
        for message, cap in zip(messages, caps, strict=True)
    )


def _stand_in(
    messages: Sequence[Message], room: int, count: CountMessage
) -> tuple[str, int | None]:
    """Return the beginnings of the newest *messages* that fit *room* tokens, and the first seq."""
    if not messages:
        return "", None
    lines: list[str] = []
    first: int | None = None
    room -= count(Message.user(_STAND_IN_HEAD))
    for message in reversed(messages):
        line = _beginning(message)
        room -= count(Message.user(line))
        if room < 0:
            break
        lines.append(line)
        first = message.seq
    if not lines:
        return "", None
    return "\n".join([_STAND_IN_HEAD, *reversed(lines)]), first


def _beginning(message: Message) -> str:
    text = message.text or " ".join(result.text for result in message.tool_results)
    calls = ", ".join(label(call.name) for call in message.tool_calls)
    text = " ".join(text[: STAND_IN_CHARACTERS * 2].split())
    shown = beginning(text, STAND_IN_CHARACTERS)
    shown += ELLIPSIS if len(text) > STAND_IN_CHARACTERS and not shown.endswith(ELLIPSIS) else ""
    return f"#{message.seq} {message.speaker}: {shown}{f' [calls {calls}]' if calls else ''}"


def _fit(
    messages: tuple[Message, ...], room: int, budget: int, count: CountMessage
) -> tuple[int, tuple[Message, ...]]:
    """Shorten messages to *room* tokens if possible, and leave out the oldest to fit *budget*.

    Returns the number of messages left out, and the others.
    """
    shown = _shrunk(messages, room, count)
    if _tokens(shown) <= budget:
        return 0, shown
    starts = [0, *accumulate(len(run) for run in groups(messages))][:-1]

    def spare(start: int) -> int:
        return budget - _tokens(_shrunk(messages[start:], room, count))

    last = len(starts) - 1
    start = starts[bisect_left(starts, 0, lo=min(1, last), hi=last, key=spare)]
    newest = messages[start:]
    if start:
        shown = _shrunk(newest, room, count)
    if _tokens(shown) > budget and any(message.tool_calls for message in newest):
        shown = _newest_calls(newest, room, count)
    return start, shown


def _newest_calls(run: Sequence[Message], room: int, count: CountMessage) -> tuple[Message, ...]:
    """Return a run without as many of its first calls and results as needed to fit *room*.

    Calls without a result go first. The remaining calls, at least one, take up to half of the room
    in their shortest form; the rest is for their texts.
    """
    places = {result.call_id: n for n, m in enumerate(run) for result in m.tool_results}
    least = {call.id: 0 for message in run for call in message.tool_calls}
    for message in _shrunk(run, 0, count):
        for part in message.content:
            if (id_ := _call_id(part)) in least:
                least[id_] += count(message.replace(content=(part,)))
    newest = sorted(least, key=lambda id_: places.get(id_, -1))[::-1]
    sums = list(accumulate(least[id_] for id_ in newest))
    number = max(1, bisect_right(sums, room // 2))
    rest = tuple(_without_calls(run, newest[number:], count))
    shortest = [message.tokens for message in _shrunk(rest, 0, count)]
    longer = [message.tokens - tokens for message, tokens in zip(rest, shortest, strict=True)]
    share = fair_share(longer, max(0, room - sum(shortest)))
    return _with_excerpts(rest, [tokens + share for tokens in shortest], count)


def _without_calls(
    run: Sequence[Message], ids: Sequence[str], count: CountMessage
) -> Iterator[Message]:
    """Yield a run without some calls and their results, and with a note of their number."""
    gone = frozenset(ids)
    for message in run:
        content = tuple(part for part in message.content if _call_id(part) not in gone)
        if gone and message is run[0]:
            number = f"{len(gone)} calls from message {message.seq} on"
            content = (TextPart(text=f"[… {number} and their results left out …]"), *content)
        if content == message.content:
            yield message
        elif content:
            short = message.replace(content=content)
            yield short.replace(tokens=count(short))


def _call_id(part: Part) -> str | None:
    """Return the id of a call, or of the call that a result answers."""
    match part:
        case ToolCallPart(id=id_) | ToolResultPart(call_id=id_):
            return id_
        case _:
            return None


def _tokens(messages: Sequence[Message]) -> int:
    return sum(message.tokens for message in messages)


def _shrunk(messages: Sequence[Message], room: int, count: CountMessage) -> tuple[Message, ...]:
    """Cut the middles of the largest messages until all fit *room*, if that suffices."""
    cap = max(1, fair_share([message.tokens for message in messages], room))
    return _with_excerpts(messages, [cap] * len(messages), count)


def _excerpts(shown: Sequence[Message], whole: Sequence[Message]) -> tuple[Omitted, ...]:
    """Return omissions for the messages of *whole* that *shown* has only in part, or not at all."""
    unchanged = set(map(id, shown))
    return tuple(
        Omitted(first_seq=message.seq, last_seq=message.seq, reason="excerpt")
        for message in whole
        if id(message) not in unchanged
    )


def _excerpt(message: Message, cap: int, count: CountMessage) -> Message:
    """Return the message without the middles of its parts, or of all its texts as one part.

    It has about *cap* tokens at most. If that has no room for the beginnings of many calls or
    results, the texts of the first ones are left out, too.
    """
    short = _without_middles(message, cap, count)
    joined = tuple(_join_texts(message.content, message.seq)) if short.tokens > cap else ()
    if joined not in ((), message.content):
        short = _without_middles(message.replace(content=joined), cap, count)
    if short.tokens > cap and len(short.content) > 1:
        short = _without_first_texts(short, cap, count)
    return short


def _without_first_texts(message: Message, cap: int, count: CountMessage) -> Message:
    """Return the message without the texts of its first parts, as many as needed to fit."""
    excess, content = message.tokens - cap, list(message.content)

    def tokens(part: Part) -> int:
        return count(message.replace(content=(part,)))

    for place, part in enumerate(content):
        if excess <= 0:
            break
        short = _without_text(part)
        if (saved := tokens(part) - tokens(short)) > 0:
            content[place] = short
            excess -= saved
    rest = message.replace(content=tuple(content))
    return rest.replace(tokens=count(rest))


def _without_text(part: Part) -> Part:
    left_out = TextPart(text="[…]")
    match part:
        case ToolCallPart():
            return replace(part, arguments="{}")
        case ToolResultPart():
            return replace(part, content=(left_out,))
        case _:
            return left_out


def _join_texts(content: Sequence[Part], seq: int) -> Iterator[Part]:
    """Yield the parts, with the texts of each tool result, and those beside calls, joined."""
    texts: list[str] = []
    for part in content:
        match part:
            case ToolCallPart():
                yield part
            case ToolResultPart():
                inner = read_result_parts(_join_texts(part.content, seq), part.call_id)
                yield replace(part, content=inner)
            case TextPart():
                texts.append(part.text)
            case _ if (stand_in := _left_out(part, seq)) not in ("", *texts[-1:]):
                texts.append(stand_in)
    if texts:
        yield TextPart(text="\n".join(texts))


def _without_middles(message: Message, cap: int, count: CountMessage) -> Message:
    characters = max(40, fair_share(_lengths(message.content), cap * 3))
    for _ in range(12):
        content = tuple(_short_parts(message.content, characters, message.seq))
        short = message.replace(content=content)
        tokens = count(short)
        if tokens <= cap or characters <= 40:
            return short.replace(tokens=tokens)
        characters = max(40, int(characters * min(0.8, cap / tokens)))
    return short.replace(tokens=tokens)


def _lengths(content: Sequence[Part]) -> Iterator[int]:
    """Yield the length of each text that can lose its middle."""
    for part in content:
        match part:
            case TextPart(text=text) | ToolCallPart(arguments=text):
                yield len(text)
            case ToolResultPart():
                yield from _lengths(part.content)


def _short_parts(content: Sequence[Part], characters: int, seq: int) -> Iterator[Part]:
    """Yield the parts without middles, and one stand-in for several that are alike."""
    before = ""
    for part in content:
        last, before = before, ""
        match part:
            case TextPart():
                yield TextPart(text=_head_and_tail(part.text, characters, seq))
            case ToolCallPart():
                short = dumps({"excerpt": _head_and_tail(part.arguments, characters, seq)})
                yield replace(part, arguments=min(part.arguments, short, key=len))
            case ToolResultPart():
                inner = _short_parts(part.content, characters, seq)
                yield replace(part, content=read_result_parts(inner, part.call_id))
            case _ if (stand_in := _left_out(part, seq)) not in ("", last):
                before = stand_in
                yield TextPart(text=stand_in)
            case _:
                before = last


def _left_out(part: ImagePart | FilePart | OtherPart, seq: int) -> str:
    """Return a stand-in for a part without text, empty for reasoning."""
    match part:
        case ImagePart():
            kind = "image"
        case FilePart():
            kind = "file"
        case OtherPart():
            kind = part.type or "content"
    return f"[{kind} of message {seq} left out: too large]" if as_text(part) is not None else ""


def _head_and_tail(text: str, characters: int, seq: int) -> str:
    """Cut the middle of a text longer than *characters*, if that makes it shorter."""
    if len(text) <= characters:
        return text
    head, tail = beginning(text, characters // 2), ending(text, characters // 2)
    gone = len(text) - len(head) - len(tail)
    short = f"{head}\n[… {gone:,} characters of message {seq} left out …]\n{tail}"
    return min(text, short, key=len)


def short_results(
    messages: Sequence[Message],
    *,
    covered_seq: int,
    keep: int | None,
    count: CountMessage,
) -> tuple[tuple[Message, ...], tuple[Omitted, ...]]:
    """Abridge all but the newest *keep* tool results up to *covered_seq*.

    The choice depends on *covered_seq* alone, so that new messages do not alter earlier ones.
    """
    if keep is None:
        return tuple(messages), ()
    covered = [m for m in messages if m.seq <= covered_seq and m.tool_results]
    old = {message.seq for message in covered[: max(0, len(covered) - keep)]}
    shown = tuple(
        _with_short_results(message, count) if message.seq in old else message
        for message in messages
    )
    return shown, _excerpts(shown, messages)


def _with_short_results(message: Message, count: CountMessage) -> Message:
    content = tuple(_short_result(part) for part in message.content)
    if content == message.content:
        return message
    short = message.replace(content=content)
    return short.replace(tokens=count(short))


def _short_result(part: Part) -> Part:
    if not isinstance(part, ToolResultPart) or len(part.text) <= SHORT_CHARACTERS:
        return part
    head = beginning(part.text, SHORT_CHARACTERS)
    gone = len(part.text) - len(head)
    text = f"{head}\n[… {gone:,} characters; the notes say what matters …]"
    return replace(part, content=(TextPart(text=text),)) if len(text) < len(part.text) else part
