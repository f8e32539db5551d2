"""Boundaries at which a conversation may be cut: never between a tool call and its result."""

from collections.abc import Iterable, Iterator, Sequence

from remanence.wire.message import Message


def groups(messages: Sequence[Message]) -> Iterator[tuple[Message, ...]]:
    """Split messages into the smallest runs that cannot be cut.

    A run is a message with tool calls, further assistant messages before the first result (some
    hosts append each call separately), and the results that follow directly. A second result of the
    same call begins a new run.
    """
    run: list[Message] = []
    called: set[str] = set()
    open_ids: set[str] = set()
    for message in messages:
        calls = {call.id for call in message.tool_calls}
        if not (calls or open_ids):  # the common case: no calls, and no results that belong to one
            if run:
                yield tuple(run)
            run, called = [message], set()
            continue
        answered = {result.call_id for result in message.tool_results} & open_ids
        # Sets are changed in place, so that a step takes constant time however many calls a run has.
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


def orphan(messages: Iterable[Message]) -> str | None:
    """Return the call id of the first result in *messages* that has no earlier call there."""
    called: set[str] = set()
    for message in messages:
        for result in message.tool_results:
            if result.call_id not in called:
                return result.call_id
        called.update(call.id for call in message.tool_calls)
    return None


def is_settled(run: Sequence[Message]) -> bool:
    """Return whether all calls of a run have results."""
    answered = {result.call_id for message in run for result in message.tool_results}
    return all(call.id in answered for message in run for call in message.tool_calls)


def safe_ends(messages: Sequence[Message], *, final: bool) -> list[int]:
    """Return the indices after which *messages* may be cut.

    The last run counts only if all its calls have results, as more may follow, or if *final*.
    """
    ends: list[int] = []
    index = -1
    for run in groups(messages):
        index += len(run)
        if final or index < len(messages) - 1 or is_settled(run):
            ends.append(index)
    return ends


MAX_QUESTIONS = 3
"""More consecutive user messages than this expect no answer, as in a diary or a group chat."""


def is_turn_open(messages: Sequence[Message]) -> bool:
    """Return whether *messages* end with an unanswered question, tool call or result."""
    turns = [m for m in messages if m.kind == "message" and m.role != "system"]
    if not turns or turns[-1].role == "assistant":
        return bool(turns) and bool(turns[-1].tool_calls)
    return len(turns) <= MAX_QUESTIONS or any(m.role != "user" for m in turns[-MAX_QUESTIONS - 1 :])


def ends_turn(messages: Sequence[Message], index: int) -> bool:
    """Return whether the message at *index* is an answer, followed by a user message or nothing."""
    following = messages[index + 1].role if index + 1 < len(messages) else "user"
    return messages[index].role == "assistant" and following == "user"
