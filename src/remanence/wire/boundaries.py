"""Boundaries of a conversation: it is never cut between a tool call and its result."""

from collections.abc import Iterator, Sequence

from remanence.wire.message import Message


def groups(messages: Sequence[Message]) -> Iterator[tuple[Message, ...]]:
    """Split messages into the smallest runs that cannot be cut.

    A run is a message that calls tools, further messages of the assistant before the first result
    (some hosts append each call on its own), and the results that follow directly. A second result
    of the same call begins another run.
    """
    run: list[Message] = []
    called: set[str] = set()
    open_ids: set[str] = set()
    for message in messages:
        calls = {call.id for call in message.tool_calls}
        if not (calls or open_ids):  # most messages: neither calls nor results that belong to one
            if run:
                yield tuple(run)
            run, called = [message], set()
            continue
        answered = {result.call_id for result in message.tool_results} & open_ids
        # Sets are changed in place, and open calls are some of those called: no step takes longer
        # the more calls a run has.
        is_of_turn = message.role == "assistant" and open_ids and len(open_ids) == len(called)
        if not answered and (not is_of_turn or calls & called):
            if run:
                yield tuple(run)
            run = []
            called, open_ids = set(), set()
        called |= calls
        open_ids |= calls
        open_ids -= answered
        run.append(message)
    if run:
        yield tuple(run)


def has_orphans(messages: Sequence[Message]) -> bool:
    """Return whether a result has no call before it in *messages*."""
    called: set[str] = set()
    for message in messages:
        if any(result.call_id not in called for result in message.tool_results):
            return True
        called.update(call.id for call in message.tool_calls)
    return False


def is_settled(run: Sequence[Message]) -> bool:
    """Return whether each call of a run has its result."""
    answered = {result.call_id for message in run for result in message.tool_results}
    return all(call.id in answered for message in run for call in message.tool_calls)


def safe_ends(messages: Sequence[Message], *, final: bool) -> list[int]:
    """Return the indices after which *messages* may be cut.

    The last run counts only if all its calls are answered, as results may still follow, or if it
    is *final*.
    """
    ends: list[int] = []
    index = -1
    for run in groups(messages):
        index += len(run)
        if final or index < len(messages) - 1 or is_settled(run):
            ends.append(index)
    return ends


MAX_QUESTIONS = 3
"""More user messages than this in a row expect no answer, as in a diary or among friends."""


def is_turn_open(messages: Sequence[Message]) -> bool:
    """Return whether *messages* end with an unanswered question, tool call or result."""
    turns = [m for m in messages if m.kind == "message" and m.role != "system"]
    if not turns or turns[-1].role == "assistant":
        return bool(turns) and bool(turns[-1].tool_calls)
    return len(turns) <= MAX_QUESTIONS or any(m.role != "user" for m in turns[-MAX_QUESTIONS - 1 :])


def ends_turn(messages: Sequence[Message], index: int) -> bool:
    """Return whether the message at *index* is an answer and the next one, if any, a user's."""
    following = messages[index + 1].role if index + 1 < len(messages) else "user"
    return messages[index].role == "assistant" and following == "user"
