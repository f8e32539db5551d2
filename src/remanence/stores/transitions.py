"""State transitions of a conversation, the same for every backend.

Pure functions: a backend reads the state under its lock, calls a transition, and writes the result
with the token sums of its cursors. None means that another writer won a race; `StoreError` means a
call that no race explains and that would violate an invariant.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from remanence.errors import StoreError
from remanence.types import Erasure, Failure, MemoryState, Segment

_MAX_ERROR = 500


class Span(NamedTuple):
    """A live segment without its text."""

    id: str
    generation: int
    first_seq: int
    last_seq: int


def _advance(current: MemoryState, **changes: Any) -> MemoryState:  # the fields' own types
    return replace(current, lock_version=current.lock_version + 1, **changes)


def after_observation(
    current: MemoryState | None, expected: MemoryState, segment: Segment
) -> MemoryState | None:
    """Return the state after an observation.

    An observation that gives messages up without notes keeps the failure count, so that the wait is
    as long as before if the next messages fail, too. A stand-in by the embedded observer also keeps
    the failure of the configured one.
    """
    if current is None or current.observed_seq != expected.observed_seq:
        return None
    name = f"observation {segment.id!r} of {segment.first_seq}..{segment.last_seq}"
    if segment.generation != 0:
        raise StoreError(f"{name} has generation {segment.generation}: an observation has 0")
    if not current.observed_seq + 1 == segment.first_seq <= segment.last_seq <= current.last_seq:
        raise StoreError(
            f"{name} does not follow the cursor: it must start at {current.observed_seq + 1} "
            f"and end at {current.last_seq} or before"
        )
    return _advance(
        current,
        observed_seq=segment.last_seq,
        last_observed_at=segment.created_at,
        observe_failure=_next_failure(current, segment),
    )


def _next_failure(state: MemoryState, segment: Segment) -> Failure | None:
    failure = state.observe_failure
    if failure is None or segment.stands_in:
        return failure
    return replace(failure, rejections=0, timeouts=0) if segment.failed else None


def after_reobservation(
    current: MemoryState | None, segment: Segment, replaced: str, *, live: Sequence[Span]
) -> MemoryState | None:
    """Return the state after an observation replaced another; *live* are all live segments."""
    span = next((span for span in live if span.id == replaced), None)
    if current is None or span is None:
        return None
    if (segment.generation, segment.first_seq, segment.last_seq) != span[1:]:
        raise StoreError(
            f"observation {segment.id!r} of {segment.first_seq}..{segment.last_seq} must cover the "
            f"range of the segment it replaces, {replaced!r} of {span.first_seq}..{span.last_seq}"
        )
    return _advance(current, last_observed_at=segment.created_at, observe_failure=None)


def after_reflection(
    current: MemoryState | None, segment: Segment, replaced: Sequence[str], *, live: Sequence[Span]
) -> MemoryState | None:
    """Return the state after a reflection; *live* are all live segments in tape order."""
    spans = [span for span in live if span.id in set(replaced)]
    if current is None or len(spans) != len(set(replaced)):
        return None
    name = f"reflection {segment.id!r} of {segment.first_seq}..{segment.last_seq}"
    if segment.generation < 1:
        raise StoreError(f"{name} has generation {segment.generation}: a reflection has 1 or more")
    starts = [segment.first_seq, *(span.last_seq + 1 for span in spans)]
    if not spans or starts != [*(span.first_seq for span in spans), segment.last_seq + 1]:
        raise StoreError(f"{name} does not cover exactly the segments that it replaces")
    if segment.last_seq > current.active_seq:
        raise StoreError(f"{name} replaces segments beyond active_seq={current.active_seq}")
    if segment.first_seq > current.reflected_seq + 1:
        raise StoreError(
            f"{name} leaves observations before it: start at {current.reflected_seq + 1} or before"
        )
    return _advance(
        current,
        reflected_seq=max(current.reflected_seq, segment.last_seq),
        last_reflected_at=segment.created_at,
        reflect_failure=None,
    )


def after_activation(
    current: MemoryState | None,
    expected: MemoryState,
    *,
    active_seq: int,
    tail_seq: int,
    is_boundary: bool,
) -> MemoryState | None:
    """Return the state with the cursor moved; *is_boundary* says if a live segment ends there."""
    if current is None or current.active_seq != expected.active_seq:
        return None
    if tail_seq < current.tail_seq:
        return None
    if not current.active_seq <= active_seq <= current.observed_seq:
        raise StoreError(
            f"active_seq={active_seq} is not between {current.active_seq}, where it is, and "
            f"observed_seq={current.observed_seq}"
        )
    if not (is_boundary or active_seq == current.active_seq):
        raise StoreError(f"active_seq={active_seq} is not the end of a live segment")
    if tail_seq > active_seq + 1:
        raise StoreError(
            f"tail_seq={tail_seq} leaves messages after active_seq={active_seq} out of context"
        )
    return _advance(current, active_seq=active_seq, tail_seq=tail_seq)


def after_facts(
    current: MemoryState | None, expected: MemoryState, *, facts_seq: int
) -> MemoryState | None:
    """Return the state after facts were extracted up to *facts_seq*."""
    if current is None or current.facts_seq != expected.facts_seq:
        return None
    if not current.facts_seq <= facts_seq <= current.last_seq:
        raise StoreError(
            f"facts_seq={facts_seq} is not between {current.facts_seq}, where it is, and "
            f"last_seq={current.last_seq}"
        )
    return _advance(current, facts_seq=facts_seq, facts_failure=None)


def after_failure(
    current: MemoryState | None, expected: MemoryState, failure: Failure
) -> MemoryState | None:
    """Return the state after a failed step."""
    if current is None:
        return None
    cursors = (current.observed_seq, current.reflected_seq, current.facts_seq)
    if cursors != (expected.observed_seq, expected.reflected_seq, expected.facts_seq):
        return None
    failure = replace(failure, message=failure.message[:_MAX_ERROR])
    return _advance(current, **{f"{failure.step}_failure": failure})


def after_retry(current: MemoryState | None) -> MemoryState | None:
    """Return the state with its failures cleared; None if it has none."""
    if current is None or current.last_error is None:
        return None
    return _advance(current, observe_failure=None, reflect_failure=None, facts_failure=None)


def after_forgetting(
    current: MemoryState, erasure: Erasure, *, live: Sequence[Span]
) -> MemoryState:
    """Return the state after messages were forgotten; cursors stay, and segments must still tile."""
    gone = set(erasure.segments)
    spans: list[Span | Segment] = [span for span in live if span.id not in gone]
    spans += erasure.remade
    fault = coverage_fault(
        sorted(spans, key=lambda span: span.first_seq),
        reflected_seq=current.reflected_seq,
        observed_seq=current.observed_seq,
    )
    if fault is not None:
        raise StoreError(f"the remade segments do not cover the erased ones: {fault}")
    return _advance(current)


def after_fork(
    source: MemoryState, begun: MemoryState, segments: Iterable[Segment]
) -> tuple[MemoryState, list[Segment]]:
    """Return the state of a fork, and the segments of its source that it takes over.

    *begun* is the fork with the first messages of its source. The same notes are active if the
    source's raw tail begins on the fork's tape; otherwise contexts show everything that no
    reflection covers.
    """
    has_tail = source.tail_seq <= begun.last_seq
    kept = _tiles(segments, last_seq=begun.last_seq, end=begun.last_seq - (not has_tail))
    observed_seq = kept[-1].last_seq if kept else 0
    reflected_seq = max((one.last_seq for one in kept if one.generation), default=0)
    ends = [one.last_seq for one in kept if one.last_seq <= source.active_seq]
    active_seq = max(ends, default=0) if has_tail else reflected_seq
    tail_seq = min(source.tail_seq, active_seq + 1)
    forked = _advance(
        begun,
        observed_seq=observed_seq,
        reflected_seq=reflected_seq,
        active_seq=active_seq,
        tail_seq=tail_seq,
        last_observed_at=max((one.created_at for one in kept), default=None),
        last_reflected_at=max((one.created_at for one in kept if one.generation), default=None),
        facts_seq=min(source.facts_seq, begun.last_seq),
    )
    return forked, kept


def _tiles(segments: Iterable[Segment], *, last_seq: int, end: int) -> list[Segment]:
    """Return segments that end at *last_seq* or before, without gaps from the first message on.

    Reflections come first, and end at *end* or before. Live segments are preferred to superseded
    ones.
    """
    starts: dict[int, list[Segment]] = {}
    for segment in segments:
        if segment.last_seq <= (end if segment.generation else last_seq):
            starts.setdefault(segment.first_seq, []).append(segment)
    tiles: list[Segment] = []
    following = 1
    while found := [
        segment
        for segment in starts.get(following, ())
        if not tiles or tiles[-1].generation or not segment.generation
    ]:
        tile = max(found, key=lambda one: (one.live, one.generation, one.version))
        tiles.append(tile)
        following = tile.last_seq + 1
    return tiles


def describe(segment: Segment, source: str) -> str:
    """Return the log's description of a new segment."""
    reasons = sorted(Counter(line.reason for line in segment.dropped).items())
    counts = ", ".join(f"{count} {reason}" for reason, count in reasons)
    dropped = f"{len(segment.dropped)} lines dropped ({counts}), " if reasons else ""
    failed = "".join(
        f"; {first_seq}..{last_seq} failed: {reason}: {message}"
        for first_seq, last_seq, reason, message in segment.failed
    )
    return (
        f"{segment.id}: {segment.first_seq}..{segment.last_seq}, {segment.source_tokens} tokens "
        f"of {source} became {segment.tokens}, {len(segment.lost)} literals lost, "
        f"{dropped}by {segment.made_by}{failed}"
    )


def coverage_fault(
    live: Sequence[Span | Segment], *, reflected_seq: int, observed_seq: int
) -> str | None:
    """Return the first gap or overlap of the live segments, in tape order; None if they tile it."""
    following = 1
    for span in live:
        if span.first_seq != following:
            what = "a gap" if span.first_seq > following else "an overlap"
            return (
                f"there is {what} between {following} and segment {span.id!r} at {span.first_seq}"
            )
        if (span.generation > 0) != (span.last_seq <= reflected_seq):
            return (
                f"segment {span.id!r} of generation {span.generation} ends at {span.last_seq}, "
                f"but reflected_seq is {reflected_seq}"
            )
        if span.last_seq < span.first_seq:
            return f"segment {span.id!r} ends at {span.last_seq}, before it begins"
        following = span.last_seq + 1
    if following != observed_seq + 1:
        return f"segments end at {following - 1}, but observed_seq is {observed_seq}"
    return None
