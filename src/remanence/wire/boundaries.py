"""Boundaries at which a conversation may be cut: never between a tool call and its result."""

from collections.abc import Iterable, Iterator, Sequence

from remanence.wire.links import link, open_links
from remanence.wire.message import Message


def groups(messages: Sequence[Message]) -> Iterator[tuple[Message, ...]]:
    """Split messages into the smallest runs that cannot be cut.

    A run is a message with tool calls, further assistant messages before the first result (some
    hosts append each call separately) or the result of a provider's own tool, and the results that
    follow directly. A second result of the same call begins a new run.
    """
    run: list[Message] = []
    called: set[str] = set()
    open_ids: set[str] = set()
    open_at_server: set[str] = set()
    for message in messages:
        calls, results = open_links(message)
        if not (calls or open_ids):  # the common case: no calls, and no results that belong to one
            if run:
                yield tuple(run)
            run, called = [message], set()
            continue
        answered = results & open_ids
        # Sets are changed in place, so that a step takes constant time however many calls a run has.
        is_of_turn = message.role == "assistant" and (
            open_at_server or (open_ids and len(open_ids) == len(called))
        )
        if not answered and (not is_of_turn or calls.keys() & called):
            if run:
                yield tuple(run)
            run = []
            called, open_ids, open_at_server = set(), set(), set()
        called |= calls.keys()
        open_ids |= calls.keys()
        open_ids -= answered
        open_at_server.update(id_ for id_, kind in calls.items() if kind == "server_call")
        open_at_server -= answered
        run.append(message)
    if run:
        yield tuple(run)


def orphan(messages: Iterable[Message]) -> str | None:
    """Return the call id of the first result in *messages* that has no earlier call there."""
    called: set[str] = set()
    for message in messages:
        for kind, id_ in filter(None, map(link, message.content)):
            if kind != "result":
                called.add(id_)
            elif id_ not in called:
                return id_
    return None


def is_settled(run: Iterable[Message]) -> bool:
    """Return whether all calls of a run have results."""
    called: set[str] = set()
    answered: set[str] = set()
    for message in run:
        calls, results = open_links(message)
        called |= calls.keys()
        answered |= results
    return called <= answered


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
        return bool(turns) and not is_settled(turns[-1:])
    return len(turns) <= MAX_QUESTIONS or any(m.role != "user" for m in turns[-MAX_QUESTIONS - 1 :])


def ends_turn(messages: Sequence[Message], index: int) -> bool:
    """Return whether the message at *index* is an answer, followed by a user message or nothing."""
    following = messages[index + 1].role if index + 1 < len(messages) else "user"
    return messages[index].role == "assistant" and following == "user"
