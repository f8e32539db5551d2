"""Export of a conversation's notes to blocks, and their import."""

from dataclasses import dataclass

from remanence.archive.blocks import Block, BlockStore, Tier, block_of, live_blocks
from remanence.engine.segment_writer import SegmentWriter
from remanence.errors import ObservationRejected
from remanence.notes import parse_notes
from remanence.protocols import Segments
from remanence.types import ConversationRef, Draft, Segment
from remanence.wire.boundaries import safe_ends

MADE_BY = "imported/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """The number of imported blocks, and why others were skipped; nothing is overwritten."""

    imported: int
    malformed: int
    conflicts: tuple[str, ...]


async def export_segments(
    store: BlockStore,
    segments: tuple[Segment, ...],
    *,
    source: Segments,
    ref: ConversationRef,
    tier: Tier = "session",
) -> int:
    """Append the segments that are not in *store* yet, and return their number.

    Segments that were erased from *source* meanwhile are removed again.
    """
    exported = await store.append(*(block_of(ref.id, each, tier=tier) for each in segments))
    left = {segment.id for segment in await source.segments(ref, live=False)}
    erased = [segment.id for segment in segments if segment.id not in left]
    if erased and not left:  # the conversation was deleted
        await store.delete(ref.id)
    elif erased:
        await store.forget(ref.id, set(), erased)
    return exported


async def import_blocks(
    store: BlockStore, ref: ConversationRef, segment_writer: SegmentWriter
) -> ImportReport:
    """Import blocks as observations, from the observed cursor on, until a block does not fit."""
    loaded = await store.load_session(ref.id)
    conflicts: list[str] = []
    if not loaded.blocks and not loaded.malformed:
        files = ", ".join(await store.sessions()) or "none"
        conflicts.append(f"there are no blocks of {ref.id!r}: the directory has files of {files}")
    imported = 0
    for block in live_blocks(loaded.blocks):
        conflict = await _import(segment_writer, ref, block)
        if conflict is None:
            imported += 1
        else:
            conflicts.append(f"block {block.id!r} was not imported: {conflict}")
    return ImportReport(imported=imported, malformed=loaded.malformed, conflicts=tuple(conflicts))


async def _import(segment_writer: SegmentWriter, ref: ConversationRef, block: Block) -> str | None:
    """Import a block; return None, or why it cannot become an observation of this tape."""
    store = segment_writer.store
    state = await store.state(ref)
    first_seq, last_seq = block.source_message_range[0] + 1, block.source_message_range[1]
    name = f"its messages {first_seq}..{last_seq}"
    if state is None or last_seq > state.last_seq:
        end = state.last_seq if state else 0
        return f"{name} are not on the tape, which ends at {end}: append the messages first"
    if last_seq <= state.observed_seq:
        live = await store.segments(ref, live=True)
        same = any(block_of(ref.id, segment).notes == block.notes for segment in live)
        what = "in this block" if same else "in other words, which are kept"
        return f"{name} are observed already, {what}"
    if first_seq != state.observed_seq + 1:
        return f"{name} do not follow message {state.observed_seq}, the last that is observed"
    messages = await store.messages(
        ref, after=state.observed_seq, limit=last_seq - state.observed_seq
    )
    if any(message.kind == "forgotten" for message in messages):
        return f"{name} include a forgotten one, whose words the block may have: delete the block"
    if len(messages) - 1 not in set(safe_ends(messages, final=last_seq == state.last_seq)):
        return f"{name} end between a tool call and its result"
    note_format = segment_writer.policy.note_format
    notes = parse_notes(block.observations, note_format, first_seq=first_seq, last_seq=last_seq)
    draft = Draft(notes=notes, made_by=MADE_BY, nothing=not notes)
    try:
        committed = await segment_writer.adopt(state, messages, draft, created_at=block.created_at)
    except ObservationRejected as error:
        return str(error)
    return None if committed else "the same messages were being observed: import again"
