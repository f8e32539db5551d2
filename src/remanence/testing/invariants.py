"""Checks of the promises P1, P3 and P6, for tests of programs that use remanence."""

import json
from collections.abc import Sequence

from remanence.context.context import BlockKind, Context
from remanence.types import MemoryState, Segment
from remanence.wire.json_value import JsonObject

_FACTS: tuple[BlockKind, ...] = ("facts", "own_facts")


def check_tiling(state: MemoryState, segments: Sequence[Segment]) -> None:
    """P1: reflections tile `(0, reflected]`, observations `(reflected, observed]`."""
    assert 0 <= state.reflected_seq <= state.active_seq <= state.observed_seq <= state.last_seq, (
        f"cursors out of order: {state}"
    )
    expected = 1
    for segment in segments:
        assert segment.first_seq == expected, (
            f"segment {segment.id} covers {segment.first_seq}..{segment.last_seq}, but the one "
            f"before ends at {expected - 1}"
        )
        is_reflection = segment.last_seq <= state.reflected_seq
        assert (segment.generation > 0) == is_reflection, f"{segment.id} is on the wrong side"
        expected = segment.last_seq + 1
    assert expected == state.observed_seq + 1, (
        f"segments end at {expected - 1}, the cursor is at {state.observed_seq}"
    )


def check_coverage(context: Context, state: MemoryState, segments: Sequence[Segment]) -> None:
    """P1: each message is raw, covered by a segment in the context, or listed in `omitted`."""
    shown = {block.segment_id for block in context.system}
    accounted = {message.seq for message in context.messages}
    for segment in segments:
        if segment.id in shown:
            accounted.update(range(segment.first_seq, segment.last_seq + 1))
    for gap in context.omitted:
        accounted.update(range(gap.first_seq, gap.last_seq + 1))
    missing = set(range(1, context.stats.last_seq + 1)) - accounted
    assert not missing, f"messages {sorted(missing)} are in no part of the context ({state})"


def flatten(context: Context) -> list[str]:
    """Return the Anthropic request as a string per block, without breakpoints and volatile block."""
    pieces = [_bytes(role, block) for role, block in _blocks(context)]
    return [piece for piece in pieces if "<memory-context>" not in piece]


def cached_prefix(context: Context) -> list[str]:
    """Return the blocks up to the last breakpoint, as `flatten` does."""
    blocks = _blocks(context)
    ends = [index for index, (_, block) in enumerate(blocks) if "cache_control" in block]
    return [_bytes(role, block) for role, block in blocks[: ends[-1] + 1]] if ends else []


def check_extends(earlier: Context, later: Context, *, facts_renewed: bool = False) -> None:
    """P3: *later* starts with the cached prefix of *earlier*, if both have the same notes.

    If *later* has more observations, its notes start with those of *earlier*. Facts stay the same as
    long as the reflections do. Set *facts_renewed* if they may change: after a pause in which the
    prompt cache expired, an erasure, or a change of user.
    """
    before = [block.segment_id for block in earlier.system if block.segment_id]
    after = [block.segment_id for block in later.system if block.segment_id]
    if not _same_base(earlier, later) or before != after[: len(before)]:
        return
    same_facts = _texts(earlier, *_FACTS) == _texts(later, *_FACTS)
    is_reflected = _texts(earlier, "reflection") != _texts(later, "reflection")
    if (facts_renewed or is_reflected) and not same_facts:
        return
    if before == after and _same_tail(earlier, later):
        prefix, whole = cached_prefix(earlier), flatten(later)
    else:
        moved: tuple[BlockKind, ...] = ("stand_in", "own_facts") if is_reflected else ("stand_in",)
        prefix, whole = _without(earlier, *moved), _without(later, *moved)
    for index, piece in enumerate(prefix):
        found = whole[index] if index < len(whole) else None
        assert found == piece, f"the prefix moved at block {index}: {piece!r} became {found!r}"


def _same_base(earlier: Context, later: Context) -> bool:
    kinds: tuple[BlockKind, ...] = ("identity", "system", "knowledge")
    return _texts(earlier, *kinds) == _texts(later, *kinds)


def _texts(context: Context, *kinds: BlockKind) -> list[str]:
    return [block.text for block in context.system if block.kind in kinds]


def _same_tail(earlier: Context, later: Context) -> bool:
    excerpts = [
        gap for context in (earlier, later) for gap in context.omitted if gap.reason == "excerpt"
    ]
    stand_ins = [[b.text for b in c.system if b.kind == "stand_in"] for c in (earlier, later)]
    starts = earlier.stats.first_raw_seq == later.stats.first_raw_seq
    return starts and stand_ins[0] == stand_ins[1] and not excerpts


def _without(context: Context, *kinds: BlockKind) -> list[str]:
    return [block.text for block in context.system if block.kind not in kinds]


def _blocks(context: Context) -> list[tuple[str, JsonObject]]:
    """Return the blocks of the Anthropic request, each with its role."""
    request = context.to_anthropic()
    blocks = [("system", block) for block in request.get("system", ())]
    for turn in request["messages"]:
        blocks += [(turn["role"], block) for block in turn["content"]]
    return blocks


def _bytes(role: str, block: JsonObject) -> str:
    plain = {key: value for key, value in block.items() if key != "cache_control"}
    return f"{role} {json.dumps(plain, ensure_ascii=False)}"
