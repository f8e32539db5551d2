"""Past versions of a conversation: its state, live segments and raw tail.

A version lasts until the next change, so its tape ends where that change begins.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from remanence.errors import ConversationNotFound
from remanence.types import LogEntry, LogKind, MemoryState, Message, Segment, Snapshot


def state_at(state: MemoryState, log: Sequence[LogEntry], version: int) -> MemoryState:
    """Return the state of a past version; `snapshot_at` corrects its token sums.

    Version 0 is before the first change. Past failures are only in the log.

    Raises:
        ConversationNotFound: the log has no such version.
    """
    if version == state.lock_version:
        return state
    entries = {entry.version: entry for entry in log}
    following = entries.get(version + 1)
    if following is None or (version and version not in entries):
        raise ConversationNotFound(
            f"conversation {state.ref.id!r} has no version {version}: use one from its log, "
            f"{_first(log)} to {state.lock_version}"
        )
    at = entries.get(version)
    return replace(
        state,
        last_seq=following.last_seq,
        observed_seq=at.observed_seq if at else 0,
        active_seq=at.active_seq if at else 0,
        reflected_seq=at.reflected_seq if at else 0,
        tail_seq=at.tail_seq if at else 1,
        last_observed_at=_last(log, "observed", version),
        last_reflected_at=_last(log, "reflected", version),
        observe_failure=None,
        reflect_failure=None,
        lock_version=version,
        lease_owner=None,
        lease_until=None,
    )


def snapshot_at(
    state: MemoryState, segments: Iterable[Segment], tail: Sequence[Message]
) -> Snapshot:
    """Return the snapshot of a *state* from `state_at`.

    *segments* includes superseded ones; *tail* has the messages `tail_seq..last_seq`.

    Raises:
        ConversationNotFound: segments of that version have been deleted.
    """
    version = state.lock_version
    live = sorted(
        (
            segment
            for segment in segments
            if segment.version <= version
            and (segment.superseded is None or segment.superseded > version)
        ),
        key=lambda segment: segment.first_seq,
    )
    if sum(segment.last_seq - segment.first_seq + 1 for segment in live) != state.observed_seq:
        raise ConversationNotFound(
            f"version {version} of conversation {state.ref.id!r} cannot be shown: some of its "
            "segments were forgotten, or deleted after a reflection replaced them"
        )
    sums = {0: 0} | {segment.last_seq: segment.sum_tokens for segment in live}
    unobserved = sum(message.tokens for message in tail if message.seq > state.observed_seq)
    last_sum_tokens = sums[state.observed_seq] + unobserved
    counted = replace(
        state,
        last_sum_tokens=last_sum_tokens,
        observed_sum_tokens=sums[state.observed_seq],
        active_sum_tokens=sums[state.active_seq],
        tail_sum_tokens=last_sum_tokens - sum(message.tokens for message in tail),
        last_message_at=tail[-1].created_at if tail else state.last_message_at,
    )
    return Snapshot(state=counted, segments=tuple(live), tail=tuple(tail))


def _first(log: Sequence[LogEntry]) -> int:
    """Return the first version that can be shown; older log entries may have been deleted."""
    return log[0].version if log and log[0].version > 1 else 0


def _last(log: Sequence[LogEntry], kind: LogKind, version: int) -> datetime | None:
    times = [entry.at for entry in log if entry.kind == kind and entry.version <= version]
    return times[-1] if times else None
