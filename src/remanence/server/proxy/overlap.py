"""The end of a tape within a history, though its client changed messages there or before."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from remanence.server.proxy.identity import (
    chain,
    compactions,
    is_changed_copy,
    is_equal,
    is_same,
    key_of,
)
from remanence.types import Message

MIN_MESSAGES: Final = 6
_MIN_TEXT: Final = 80
_MIN_CALL: Final = 8
"""Evidence that a history with another beginning belongs to a tape. At least two messages must
overlap, and reach one of these: number of messages, characters of texts, length of a call's id. A
compaction of the provider is evidence enough.

Less is not enough: many conversations share a greeting and its answer.
"""

_SLIDING_TEXT: Final = 24
"""Characters of unchanged texts that are enough if the client sends its newest messages only."""


class Overlap(NamedTuple):
    """The messages of a history up to the end of a tape; the last one changed has number *changed*.

    Those from the index *first* on were compared.
    """

    first: int
    length: int
    changed: int


def find_overlap(
    end: Sequence[Message],
    messages: Sequence[Message],
    keys: Sequence[str],
    *,
    slides: bool,
    head: int,
    shortest: int,
) -> Overlap | None:
    """Find the last place in a history where a tape's *end* is, from the *shortest* length on.

    *keys* are those of the history's *messages*, of which the *head* repeats the tape's beginning.
    """
    if not end:
        return None
    last_key, before_last = key_of(end[-1]), (end[-2].id or "") if len(end) > 1 else ""
    for length in range(len(messages), max(head, shortest - 1), -1):
        if keys[length - 1] != last_key and not is_changed_copy(end[-1], messages[length - 1]):
            continue
        first = max(head, length - len(end))
        pairs = list(zip(end[first - length :], messages[first:length], strict=True))
        if not all(is_same(*pair) for pair in pairs) or not _is_evident(pairs, slides=slides):
            continue
        # If more messages follow, their own tape is longer.
        is_edit = may_be_edit(end[-1], is_older=length == len(messages) - 1)
        if not is_edit or is_unchanged(*pairs[-1], before_last):
            changed = [at for at, pair in enumerate(pairs, first + 1) if not is_equal(*pair)]
            return Overlap(first, length, max(changed, default=0))
    return None


def _is_evident(pairs: Sequence[tuple[Message, Message]], *, slides: bool) -> bool:
    """Return whether overlapping messages, stored and resent, are unlikely in two conversations."""
    known = [(old, new) for old, new in pairs if old.kind != "forgotten"]
    calls = [call.id for _, new in known for call in new.tool_calls]
    results = [result.call_id for _, new in known for result in new.tool_results]
    unchanged = {new.text for old, new in known if is_equal(old, new)}
    texts = unchanged | {new.text for _, new in known if new.role == "user"}
    if any(compactions(old) & compactions(new) for old, new in known):
        return True
    return len(known) > 1 and (
        len(known) >= MIN_MESSAGES
        or sum(map(len, texts)) >= _MIN_TEXT
        or (slides and sum(map(len, unchanged)) >= _SLIDING_TEXT)
        or any(len(id_) >= _MIN_CALL for id_ in (*calls, *results))
    )


def is_unchanged(stored: Message, resent: Message, previous: str) -> bool:
    """Return whether a message is the stored one, which may be forgotten, after the *previous* id."""
    return is_equal(stored, resent) or stored.id == next(chain([resent], previous))


def may_be_edit(stored: Message, *, is_older: bool) -> bool:
    """Return whether a changed copy of a message may be an edit of it, or another answer.

    Clients shorten older answers and results without an edit, and add to the newest results.
    """
    if stored.kind == "forgotten" or stored.role == "user":
        return True
    return stored.role == "assistant" and not is_older
