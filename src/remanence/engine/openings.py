"""Openings of turns: the user's messages that a model works on, through any number of tool calls."""

from collections.abc import Sequence

from remanence.notes.program_text import own_text
from remanence.protocols import Tape
from remanence.types import MemoryState, Message, TextPart
from remanence.wire.boundaries import MAX_QUESTIONS
from remanence.wire.links import link

EARLIER_MESSAGES = 50
"""Messages read at a time to find the beginning of a turn."""
MAX_TURN_MESSAGES = 10_000
"""How many messages before the raw tail its turn may begin for its opening to be found."""


def opening(messages: Sequence[Message]) -> range:
    """Return the indices of the user's messages that opened the last turn, if it has tool calls.

    They are at most `MAX_QUESTIONS` in a row. The range is empty, and ends behind the last such
    message, if the turn has no calls yet or that message is forgotten.
    """
    for end in range(len(messages), 0, -1):
        if opens_turn(messages[end - 1]):
            start = end
            has_calls = any(map(_has_links, messages[end:]))
            while has_calls and 0 < start > end - MAX_QUESTIONS and _is_kept(messages[start - 1]):
                start -= 1
            return range(start, end)
    return range(0)


async def read_opening(store: Tape, state: MemoryState) -> tuple[Message, ...]:
    """Return the user's messages that opened the turn of tool calls in which the raw tail begins.

    Empty if the tail has them, as when it begins with a turn, or if they are too far back.
    """
    first = max(0, state.tail_seq - MAX_TURN_MESSAGES)
    after = state.tail_seq if state.tail_seq > 1 else 0
    messages: tuple[Message, ...] = ()
    found = range(0)
    while after > first and found.stop <= MAX_QUESTIONS:  # those before the first are read, too
        # Of later messages, these are what `opening` needs, however long the turn is.
        later = messages[: found.stop]
        later += tuple(filter(_has_links, messages[found.stop :]))[:1]
        end, after = after, max(first, after - EARLIER_MESSAGES)
        messages = (*await store.messages(state.ref, after=after, limit=end - after), *later)
        found = opening(messages)
    return messages[found.start : found.stop]


def opens_turn(message: Message) -> bool:
    """Return whether a message is the user's own, which words beside results and of programs are not."""
    if message.role != "user" or message.tool_results:
        return False
    texts = (part.text if isinstance(part, TextPart) else None for part in message.content)
    has_own = any(text is None or own_text(text).strip() for text in texts)
    return message.kind == "forgotten" or (message.kind == "message" and has_own)


def _is_kept(message: Message) -> bool:
    return message.kind == "message" and message.role == "user" and not message.tool_results


def _has_links(message: Message) -> bool:
    return any(map(link, message.content))
