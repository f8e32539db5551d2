"""Abridgement of raw tool results that notes already cover."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from remanence.context.context import Omitted
from remanence.notes.excerpts import beginning
from remanence.types import Message, Part, TextPart, ToolResultPart

SHORT_CHARACTERS = 200
"""The length of an abridged result; shorter results are not changed."""


def short_results(
    messages: Sequence[Message],
    *,
    covered_seq: int,
    keep: int | None,
    count: Callable[[Message], int],
) -> tuple[tuple[Message, ...], tuple[Omitted, ...]]:
    """Abridge all but the newest *keep* results up to *covered_seq*.

    The choice depends on *covered_seq* alone, so that later messages do not alter earlier ones.
    """
    if keep is None:
        return tuple(messages), ()
    covered = [m for m in messages if m.seq <= covered_seq and m.tool_results]
    old = {message.seq for message in covered[: max(0, len(covered) - keep)]}
    shown = [_short(message, count) if message.seq in old else message for message in messages]
    omitted = tuple(
        Omitted(first_seq=short.seq, last_seq=short.seq, reason="excerpt")
        for short, whole in zip(shown, messages, strict=True)
        if short is not whole
    )
    return tuple(shown), omitted


def _short(message: Message, count: Callable[[Message], int]) -> Message:
    content = tuple(_short_part(part) for part in message.content)
    if content == message.content:
        return message
    short = message.replace(content=content)
    return short.replace(tokens=count(short))


def _short_part(part: Part) -> Part:
    if not isinstance(part, ToolResultPart) or len(part.text) <= SHORT_CHARACTERS:
        return part
    head = beginning(part.text, SHORT_CHARACTERS)
    gone = len(part.text) - len(head)
    text = f"{head}\n[… {gone:,} characters; the notes say what matters …]"
    return replace(part, content=(TextPart(text=text),))
