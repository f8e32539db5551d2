"""Where a conversation may be cut: never between a tool call and its result."""

from collections.abc import Iterator, Sequence

from remanence.types import Message


def groups(messages: Sequence[Message]) -> Iterator[tuple[Message, ...]]:
    """Split messages into the smallest runs that may stand alone.

    A message that calls tools and the results that follow it directly are one run. A second
    result of the same call begins another.
    """
    run: list[Message] = []
    open_ids: set[str] = set()
    for message in messages:
        answered = {result.call_id for result in message.tool_results} & open_ids
        if not answered:
            if run:
                yield tuple(run)
            run = []
            open_ids = {call.id for call in message.tool_calls}
        open_ids -= answered
        run.append(message)
    if run:
        yield tuple(run)


def safe_ends(messages: Sequence[Message], *, final: bool) -> list[int]:
    """Indices after which *messages* may be cut.

    The last run counts only if all its calls are answered, for their results may still follow;
    unless it is *final*.
    """
    ends: list[int] = []
    index = -1
    for run in groups(messages):
        index += len(run)
        if final or index < len(messages) - 1 or _is_settled(run):
            ends.append(index)
    return ends


def _is_settled(run: Sequence[Message]) -> bool:
    answered = {result.call_id for message in run for result in message.tool_results}
    return all(call.id in answered for call in run[0].tool_calls)
