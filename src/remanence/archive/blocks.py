"""Observation blocks as JSON Lines: an append-only file per session, one block per line.

The format is zora's: `{"id": "obs_{timestamp}_{random}", "sessionId", "createdAt", "tier",
"observations", "sourceMessageRange": [from, to], "estimatedTokens"}`. A range counts messages from
0 and excludes `to`.
"""

import dataclasses
import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterable, Sequence, Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, get_args

from remanence.files import (
    UNFINISHED,
    append_line,
    in_thread,
    make_directory,
    remove,
    safe_name,
    write_whole,
)
from remanence.types import Segment

Tier: TypeAlias = Literal["session", "cross-session"]

DIRECTORY = "~/.zora/memory/observations"
KEEP_LAST = 200
CROSS_SESSION = "cross-session"
_LONGEST_NAME = 255
"""Maximum length of a file name in bytes."""

_WRITING = threading.Lock()
"""Serialises the writes of this process, in which several stores may use one directory.

Otherwise a file could be rewritten without blocks that another task appended meanwhile, or with
blocks that it deleted.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Notes of the messages `source_message_range[0] + 1 .. source_message_range[1]` of a tape."""

    id: str
    session_id: str
    created_at: datetime
    tier: Tier
    observations: str
    source_message_range: tuple[int, int]
    estimated_tokens: int

    @property
    def notes(self) -> tuple[object, ...]:
        """All that is the same after an import, which makes a segment with another id of a block."""
        return self.session_id, self.created_at, self.source_message_range, self.observations


_KEYS = {
    field.name: re.sub(r"_(\w)", lambda found: found[1].upper(), field.name)
    for field in dataclasses.fields(Block)
}
"""The fields of a block, with their names in a file."""


class LoadedBlocks(NamedTuple):
    """Blocks, oldest first, and the number of malformed lines."""

    blocks: tuple[Block, ...]
    malformed: int


class BlockStore:
    """Blocks in a directory that only its owner can read.

    Safe for concurrent tasks and threads. Other processes may append at the same time, unless one of
    them prunes the same session.

    Raises:
        StoreUnavailable: a file cannot be read or written; it is left unchanged.
    """

    def __init__(self, directory: str | Path = DIRECTORY, *, keep_last: int = KEEP_LAST) -> None:
        self._directory = Path(directory).expanduser()
        self._keep_last = keep_last

    def __str__(self) -> str:
        return f"blocks in {str(self._directory)!r}"

    @in_thread
    def append(self, *blocks: Block) -> int:
        """Append the blocks that are not in their files yet, under any id, and return their number.

        They are on disk when this returns.
        """
        with _WRITING:
            make_directory(self._directory)
            files = {file for block in blocks for file in self._files_of(block)}
            found = [block for file in files for block in _load(file).blocks]
            known = {each for block in found for each in (block.id, block.notes)}
            new = [block for block in blocks if known.isdisjoint((block.id, block.notes))]
            for block in new:
                append_line(self._files_of(block)[0], _encode(block))
        return len(new)

    @in_thread
    def load_session(self, session_id: str) -> LoadedBlocks:
        """Load the blocks of a session, also from a file with an unescaped name."""
        own, *foreign = self._session_files(session_id)
        loaded = _load(own)
        for file in foreign:
            theirs = _load(file)
            blocks = [block for block in theirs.blocks if block.session_id == session_id]
            loaded = LoadedBlocks((*blocks, *loaded.blocks), theirs.malformed + loaded.malformed)
        return loaded

    @in_thread
    def sessions(self) -> tuple[str, ...]:
        """Return the names of the block files, without their suffix."""
        return tuple(sorted(file.stem for file in self._directory.glob("*.jsonl")))

    @in_thread
    def load_cross_session(self, limit: int | None = None) -> LoadedBlocks:
        """Load the newest *limit* blocks of the cross-session tier, by default all."""
        loaded = _load(self._cross_session_file)
        start = 0 if limit is None else max(0, len(loaded.blocks) - limit)
        return LoadedBlocks(loaded.blocks[start:], loaded.malformed)

    @in_thread
    def prune(self, session_id: str, keep_last: int | None = None) -> int:
        """Delete all but the newest *keep_last* blocks of a session, and return their number.

        By default, *keep_last* is the store's setting.
        """
        keep = self._keep_last if keep_last is None else keep_last
        pruned = 0
        with _WRITING:
            for file in self._session_files(session_id):
                pruned += _remove_blocks(file, {session_id}, keep_last=keep)
                keep = max(0, keep - len(_load(file).blocks))
        return pruned

    @in_thread
    def delete(self, *session_ids: str) -> tuple[str, ...]:
        """Delete sessions, also from the cross-session blocks; return the changed files."""
        across = self._cross_session_file
        changed: list[Path] = []
        with _WRITING:  # the file of all sessions first, as the disk may be too full to rewrite it
            remove(across.with_name(across.name + UNFINISHED))
            if _remove_blocks(across, frozenset(session_ids), is_erasure=True):
                changed.append(across)
            for session_id in session_ids:
                own, *foreign = self._session_files(session_id)
                for file in (own, *foreign):
                    remove(file.with_name(file.name + UNFINISHED))
                if remove(own):
                    changed.append(own)
                changed += [f for f in foreign if _remove_blocks(f, {session_id}, is_erasure=True)]
        return tuple(sorted(map(str, changed)))

    @in_thread
    def forget(
        self,
        session_id: str,
        seqs: AbstractSet[int],
        segment_ids: Sequence[str],
        *,
        keep: Sequence[str] = (),
    ) -> tuple[str, ...]:
        """Remove the blocks of segments, and all that cover a message; return the changed files.

        Blocks of the segments *keep* stay. Unfinished files, and malformed lines that may belong to
        the session, are removed, too.
        """
        kept = tuple(_digest(session_id, segment_id) for segment_id in keep)
        endings = tuple(_digest(session_id, segment_id) for segment_id in segment_ids)

        def goes(block: Block) -> bool:
            first, last = block.source_message_range
            covers = any(first < seq <= last for seq in seqs) and not block.id.endswith(kept)
            return covers or block.id.endswith(endings)

        files = sorted([*self._session_files(session_id), self._cross_session_file])
        with _WRITING:
            for file in files:
                remove(file.with_name(file.name + UNFINISHED))
            return tuple(
                str(file)
                for file in files
                if _remove_blocks(file, {session_id}, goes, is_erasure=True)
            )

    def _files_of(self, block: Block) -> list[Path]:
        """Return the file that a block is appended to, and others that may contain it."""
        if block.tier == "session":
            return self._session_files(block.session_id)
        return [self._cross_session_file]

    @property
    def _cross_session_file(self) -> Path:
        return self._directory / f"{CROSS_SESSION}.jsonl"

    def _session_files(self, session_id: str) -> list[Path]:
        """Return a session's file, and the file with its unescaped name if that is a different one.

        On a case-insensitive file system, the latter may belong to another session, which its blocks
        name.
        """
        own = self._directory / f"{safe_name(session_id, taken={CROSS_SESSION})}.jsonl"
        foreign = self._directory / f"{session_id}.jsonl"
        length = len(f"{foreign.name}{UNFINISHED}".encode("utf-8", "surrogatepass"))
        is_name = (
            foreign.parent == self._directory and "\0" not in session_id and length <= _LONGEST_NAME
        )
        is_free = foreign not in (own, self._cross_session_file)
        return [own, foreign] if is_name and is_free else [own]


def _remove_blocks(
    file: Path,
    session_ids: AbstractSet[str],
    goes: Callable[[Block], bool] = lambda _: True,
    *,
    keep_last: int = 0,
    is_erasure: bool = False,
) -> int:
    """Remove all but the newest *keep_last* blocks of sessions from a file; return their number.

    An erasure also removes malformed lines, such as from an interrupted write, unless they name
    another session.
    """
    lines = _lines(file)
    blocks = [(number, _decode(line)) for number, line in enumerate(lines)]
    found = [n for n, block in blocks if block and block.session_id in session_ids and goes(block)]
    gone = set(found[: max(0, len(found) - keep_last)])
    if is_erasure:
        torn = (n for n, block in blocks if block is None)
        gone |= {n for n in torn if any(_may_be_of(each, lines[n]) for each in session_ids)}
    if gone:
        kept = [line for number, line in enumerate(lines) if number not in gone]
        write_whole(file, b"".join(line + b"\n" for line in kept))
    return len(gone)


def _may_be_of(session_id: str, line: bytes) -> bool:
    _, _, rest = line.partition(b'"sessionId": "')
    name = json.dumps(session_id, ensure_ascii=False)[1:].encode("utf-8", "backslashreplace")
    return not rest or rest.startswith(name) or name.startswith(rest)


def block_of(session_id: str, segment: Segment, *, tier: Tier = "session") -> Block:
    """Convert a segment to a block; the same segment always gets the same id."""
    milliseconds = int(segment.created_at.timestamp() * 1000)
    return Block(
        id=f"obs_{milliseconds}_{_digest(session_id, segment.id)}",
        session_id=session_id,
        created_at=segment.created_at,
        tier=tier,
        observations=segment.text,
        source_message_range=(segment.first_seq - 1, segment.last_seq),
        estimated_tokens=segment.tokens,
    )


def _digest(session_id: str, segment_id: str) -> str:
    return hashlib.sha256(f"{session_id}\n{segment_id}".encode()).hexdigest()[:12]


def live_blocks(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """Return blocks in order of their messages, without blocks that a later block covers."""
    live: list[Block] = []
    for block in blocks:
        first, last = block.source_message_range
        live = [
            other
            for other in live
            if other.source_message_range[0] < first or other.source_message_range[1] > last
        ]
        live.append(block)
    return tuple(sorted(live, key=lambda block: block.source_message_range))


def _load(file: Path) -> LoadedBlocks:
    decoded = [_decode(line) for line in _lines(file)]
    blocks = tuple(block for block in decoded if block is not None)
    return LoadedBlocks(blocks, len(decoded) - len(blocks))


def _lines(file: Path) -> list[bytes]:
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return []
    return [line for line in content.split(b"\n") if line.strip()]


def _encode(block: Block) -> bytes:
    data = {_KEYS[name]: value for name, value in dataclasses.asdict(block).items()}
    data["createdAt"] = block.created_at.astimezone(UTC).isoformat()
    return json.dumps(data, ensure_ascii=False).encode("utf-8", "backslashreplace")


def _decode(line: bytes) -> Block | None:
    """Parse a line as a block; None if it is malformed, as any program may have written the file."""
    try:
        data = json.loads(line)
        fields = {name: data[key] for name, key in _KEYS.items()}
        first, last = fields["source_message_range"]
        created_at = datetime.fromisoformat(fields["created_at"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    texts = (fields["id"], fields["session_id"], fields["observations"])
    counts = (first, last, fields["estimated_tokens"])
    if not (
        all(isinstance(text, str) for text in texts)
        and all(type(count) is int and count >= 0 for count in counts)
        and fields["tier"] in get_args(Tier)
        and first <= last
    ):
        return None
    fields["created_at"] = created_at if created_at.tzinfo else created_at.replace(tzinfo=UTC)
    fields["source_message_range"] = (first, last)
    return Block(**fields)
