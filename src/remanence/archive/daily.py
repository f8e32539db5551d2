"""Daily notes in a directory: a Markdown file per day and user, summarised and archived.

    {directory}/{tenant}/{user}/2027-01-04.md           a day's notes, written by anyone
    {directory}/{tenant}/{user}/MEMORY.md               curated by hand; summaries are appended
    {directory}/{tenant}/{user}/archive/2027-01-04.md   a day's notes after they were summarised

Each step is atomic, and its result shows that it was done, so that consolidation may be repeated or
interrupted at any time.
"""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta, tzinfo
from glob import glob
from pathlib import Path
from urllib.parse import unquote

from remanence import telemetry
from remanence.archive import daily_notes
from remanence.archive.mentions import mentions_of
from remanence.background import guard_host_code
from remanence.clock import Clock
from remanence.dates.local_time import to_zone
from remanence.deadline import step_timeout
from remanence.errors import InvalidMessage, InvalidPolicy, StoreUnavailable
from remanence.files import (
    UNFINISHED,
    Lock,
    append_line,
    in_thread,
    make_directory,
    move,
    remove,
    safe_name,
    write_whole,
)
from remanence.notes import render_notes
from remanence.notes.redact import redact
from remanence.observers.draft_check import check_draft, check_values
from remanence.policy.policy import Policy
from remanence.protocols import CountTokens, Reflector, ReflectRequest
from remanence.types import ConversationRef, Note, Owner, Segment
from remanence.wire.message_rules import storable

MIN_TARGET_TOKENS = 200
"""Enough for a day with a few lines to be kept in full, with headings."""

WAIT_SECONDS = 0.1
INTERVAL_SECONDS = 3_600.0
"""The interval at which an open memory looks for old days."""

MEMORY_FILE = "MEMORY.md"
LOCK_FILE = ".lock"
MAX_FOLDER_NAME = 240
"""Below the 255 of file systems. A longer name would end in a hash, which leads back to no user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidation:
    """The result for a user's old days.

    `signature` is the previous state of the memory file: `edited` if someone changed it since the
    last summary. Edits are kept.
    """

    tenant: str
    user: str
    days: tuple[date, ...]
    facts: int
    signature: daily_notes.Signature
    memory_file: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyNotes:
    """The daily notes of all users under a directory; days older than `keep_days` are old.

    `extract` saves the facts of a day's notes and returns the number of new ones; it may get the
    same notes again after an interruption.

    Raises:
        StoreUnavailable: a file cannot be read or written.
    """

    directory: Path
    keep_days: int
    reflector: Reflector
    policy: Policy
    count_text: CountTokens
    clock: Clock
    extract: Callable[[daily_notes.DayNotes, Owner], Awaitable[int]]

    def __str__(self) -> str:
        return f"daily notes in {str(self.directory)!r}"

    @in_thread
    def add(self, text: str, owner: Owner, zone: tzinfo) -> Path:
        """Append a note to the file of today in *zone*; it is on disk when this returns."""
        text = storable(text)
        if not text.strip():
            raise InvalidMessage("a note is empty: write some text")
        folder, now = self._folder(owner), to_zone(self.clock.now(), zone)
        file = folder / f"{now:%Y-%m-%d}.md"
        make_directory(folder)
        if not file.exists():
            append_line(file, f"# {now:%Y-%m-%d}".encode())
        append_line(file, daily_notes.entry(text, now).encode())
        return file

    @in_thread
    def curated_text(self, owner: Owner) -> str:
        """Return a user's memory file, without our markers, and with secrets redacted."""
        folder = self._folder_of(owner)
        body = "" if folder is None else _read_memory(folder).body
        return redact(daily_notes.without_markers(_readable(body))).strip()

    @in_thread
    def find(self, forgotten: Sequence[str], owner: Owner) -> tuple[str, ...]:
        """Return the files of a user, including archived ones, that mention a *forgotten* text."""
        mentions = mentions_of(forgotten)
        files = self._files(owner)
        return tuple(str(file) for file in files if mentions.are_in(_read(file) or ""))

    @in_thread
    def read_all(self, owner: Owner) -> tuple[tuple[str, str], ...]:
        """Return the files of a user with their texts."""
        files = self._files(owner)
        return tuple((str(file), _readable(_read(file) or "")) for file in files)

    async def forget(self, owner: Owner) -> tuple[str, ...]:
        """Delete all files of a user, and return their names; waits for a running consolidation.

        The folders are named after the user, and deleted, too, unless they contain other files.
        """
        if owner not in await self.owners():
            return ()
        if (lock := await self._lock(self._folder(owner))) is None:
            return ()
        with contextlib.closing(lock):
            files = await self._delete(owner)
            await self._delete_folders(owner)
        return files

    @in_thread
    def other_files(self, owner: Owner) -> tuple[str, ...]:
        """Return the files in a user's folder that `forget` leaves, such as those of an editor."""
        folder = self._folder_of(owner)
        files = [] if folder is None else _files_below(folder, "")
        return tuple(str(file) for file in files if file.name != LOCK_FILE)

    @in_thread
    def _delete(self, owner: Owner) -> tuple[str, ...]:
        files = self._files(owner)
        for file in (*files, *_files_below(self._folder(owner), f".md{UNFINISHED}")):
            file.unlink(missing_ok=True)
        return tuple(str(file) for file in files)

    @in_thread
    def _delete_folders(self, owner: Owner) -> None:
        """Delete the empty folders of a user; a process waiting for the lock recreates its file."""
        folder = self._folder(owner)
        if self._files(owner):
            return
        with contextlib.suppress(OSError):  # Windows keeps the file of a lock that is held
            remove(folder / LOCK_FILE)
        inner = [Path(parent) for parent, *_ in os.walk(folder, topdown=False)]
        for emptied in (*inner, folder.parent):
            with contextlib.suppress(OSError):  # not empty, or missing
                emptied.rmdir()

    @in_thread
    def check_layout(self) -> None:
        """Raise `InvalidPolicy` if the directory itself has day files, which belong to no user."""
        if days := _days(self.directory, before=date.max):
            raise InvalidPolicy(
                f"daily_directory={str(self.directory)!r} has {days[0]}.md, which belongs to no user: "
                "move such files to the folder of their user, such as "
                f"{str(self._folder(Owner('default', 'ana')))!r}"
            )

    @in_thread
    def owners(self) -> tuple[Owner, ...]:
        """Return the users that have a folder; other folders are ignored."""
        folders = [self.directory / name for name in sorted(_glob("*/*/", self.directory))]
        named = [(Owner(unquote(f.parent.name), unquote(f.name)), f) for f in folders]
        return tuple(owner for owner, folder in named if self._folder_of(owner) == folder)

    async def consolidate(self, owner: Owner) -> Consolidation:
        """Summarise a user's old days into the memory file, save their facts, and archive them.

        Raises:
            ObservationRejected, ModelError: a summary failed; that day's file stays.
        """
        folder = self._folder(owner)
        signature, days = await self._look(folder)
        facts = 0
        lock = await self._lock(folder) if days else None
        if lock is None:
            days = ()
        else:
            with contextlib.closing(lock):
                for day in days:
                    facts += await self._consolidate_day(folder, day, owner)
                await self._delete_folders(owner)
        memory_file = folder / MEMORY_FILE
        if signature == "edited":
            telemetry.memory_file_edited(str(memory_file))
        return Consolidation(
            tenant=owner.tenant,
            user=owner.user,
            days=days,
            facts=facts,
            signature=signature,
            memory_file=memory_file,
        )

    async def keep_up(self) -> None:
        """Consolidate old days at intervals until cancelled."""
        while True:
            try:
                for owner in await self.owners():
                    try:
                        with guard_host_code():
                            await self.consolidate(owner)
                    except Exception as error:  # noqa: BLE001 - nor must it stop those of others
                        telemetry.daily_notes_failed(owner.user, f"{type(error).__name__}: {error}")
                await self.check_layout()
            except (InvalidPolicy, StoreUnavailable) as error:
                telemetry.daily_notes_failed("everybody", str(error))
            await asyncio.sleep(INTERVAL_SECONDS)

    @in_thread
    def _look(self, folder: Path) -> tuple[daily_notes.Signature, tuple[date, ...]]:
        """Return the signature of a memory file, and the old days beside it."""
        today = self.clock.now().date()
        first_kept = today - timedelta(days=min(self.keep_days, today.toordinal()) - 1)
        return _read_memory(folder).signature, tuple(_days(folder, before=first_kept))

    async def _consolidate_day(self, folder: Path, day: date, owner: Owner) -> int:
        """Do the missing steps for a day; repeat them if its file was changed meanwhile."""
        facts = 0
        while found := await self._read_day(folder, day):
            text, is_summarised = found
            if not is_summarised:
                section, new = await self._summarise(folder, day, text, owner)
                await self._write_section(folder, section)
                facts += new
            await self._archive(folder, day, text)
        return facts

    @in_thread
    def _read_day(self, folder: Path, day: date) -> tuple[str, bool] | None:
        """Return the text of a day's file, and whether the memory file has its summary."""
        text = _read(folder / f"{day}.md")
        if text is None:
            return None
        summarised = daily_notes.marker(day, daily_notes.fingerprint(text))
        return text, summarised in _read_memory(folder).body

    async def _summarise(self, folder: Path, day: date, text: str, owner: Owner) -> tuple[str, int]:
        """Return the section for a day, and the number of new facts, which are saved."""
        safe_text = await asyncio.to_thread(lambda: redact(_readable(text)))
        source = daily_notes.fingerprint(text)
        archived = await self._archived_lines(folder, day)
        notes = daily_notes.notes_of_day(safe_text, day)
        notes = tuple(note for note in notes if note.text not in archived)
        kept: tuple[Note, ...] = ()
        facts = 0
        if notes:
            kept = await self._reflect(notes, owner)
            noted = daily_notes.DayNotes(day=day, notes=notes, source=source)
            facts = await self.extract(noted, owner)
        return daily_notes.summary(day, source, kept, self.policy.note_format), facts

    @in_thread
    def _archived_lines(self, folder: Path, day: date) -> set[str]:
        """Return the lines of a day that were summarised before."""
        archive = folder / "archive"
        texts = (
            redact(_readable(_read(archive / name) or "")) for name in _glob(f"{day}*.md", archive)
        )
        return {note.text for text in texts for note in daily_notes.notes_of_day(text, day)}

    async def _reflect(self, notes: tuple[Note, ...], owner: Owner) -> tuple[Note, ...]:
        text = "\n".join(note.text for note in notes)
        tokens = await asyncio.to_thread(self.count_text, text)
        now = self.clock.now()
        segment = Segment(
            id=self.clock.new_id("day"),
            generation=0,
            first_seq=notes[0].first_seq,
            last_seq=notes[-1].last_seq,
            text=text,
            notes=notes,
            tokens=tokens,
            source_tokens=tokens,
            sum_tokens=tokens,
            lost=(),
            made_by="daily/1",
            created_at=now,
        )
        request = ReflectRequest(
            conversation=ConversationRef(owner.tenant, f"daily notes of {owner.user}"),
            segments=(segment,),
            generation=1,
            target_tokens=max(MIN_TARGET_TOKENS, int(tokens * self.policy.reflect_ratio)),
            count_tokens=self.count_text,
            note_format=self.policy.note_format,
            now=now,
        )
        async with step_timeout(self.policy.observe_timeout_seconds):
            draft = await self.reflector.reflect(request)
        check_values(draft)
        rendered = render_notes(draft.notes, self.policy.note_format)
        await asyncio.to_thread(
            check_draft,
            draft,
            rendered,
            seqs=range(segment.first_seq, segment.last_seq + 1),
            tokens=self.count_text(rendered),
            limit_tokens=tokens + MIN_TARGET_TOKENS,
            source_text=text,
        )
        return draft.notes

    @in_thread
    def _write_section(self, folder: Path, section: str) -> None:
        """Append a section to the memory file; earlier text stays, byte for byte."""
        content = daily_notes.with_section(_read_memory(folder).body, section)
        write_whole(folder / MEMORY_FILE, content.encode("utf-8", "surrogateescape"))

    @in_thread
    def _archive(self, folder: Path, day: date, text: str) -> None:
        """Move a day's file to the archive, beside earlier files of that day, if unchanged."""
        file, archive = folder / f"{day}.md", folder / "archive"
        if _read(file) != text:
            return
        make_directory(archive)
        target, number = archive / file.name, 1
        while target.exists() and _read(target) != text:
            number += 1
            target = archive / f"{day}-{number}.md"
        move(file, target)

    def _folder(self, owner: Owner) -> Path:
        folder = self._folder_of(owner)
        if folder is None:
            raise InvalidMessage(
                f"user {owner.user!r} of tenant {owner.tenant!r} has no folder: name both, in at most "
                f"{MAX_FOLDER_NAME} characters as folders, where each byte other than a-z, 0-9, _ and - "
                "takes three"
            )
        return folder

    def _folder_of(self, owner: Owner) -> Path | None:
        """Return the folder of a user; None if a name is empty or too long for one."""
        names = [safe_name(name, max_length=MAX_FOLDER_NAME) for name in owner if name]
        if len(names) < 2 or any("~" in name for name in names):
            return None
        return self.directory.joinpath(*names)

    def _files(self, owner: Owner) -> list[Path]:
        """Return the Markdown files of a user, including archived ones."""
        folder = self._folder_of(owner)
        return [] if folder is None else _files_below(folder, ".md")

    async def _lock(self, folder: Path) -> Lock | None:
        """Acquire the lock for consolidating or emptying a folder; None if its user was forgotten.

        The lock is also released when the process ends.
        """
        lock = Lock(folder / LOCK_FILE)
        while (is_ours := await self._take(lock)) is False:  # noqa: ASYNC110 - another process sends no signal
            await asyncio.sleep(WAIT_SECONDS)
        return lock if is_ours else None

    @in_thread
    def _take(self, lock: Lock) -> bool | None:
        try:
            return lock.take()
        except FileNotFoundError:  # the folder is gone
            return None


def _glob(pattern: str, directory: Path) -> list[str]:
    """Return the names that match; folders may be deleted meanwhile, which `Path.glob` raises for."""
    return glob(pattern, root_dir=directory)  # noqa: PTH207 - see above


def _files_below(folder: Path, suffix: str) -> list[Path]:
    files = (Path(parent, name) for parent, _, names in os.walk(folder) for name in names)
    return sorted(file for file in files if file.name.endswith(suffix))


def _days(folder: Path, *, before: date) -> list[date]:
    days = []
    for name in _glob("????-??-??.md", folder):
        with contextlib.suppress(ValueError):  # such as 2027-02-31
            days.append(date.fromisoformat(name.removesuffix(".md")))
    return sorted(day for day in days if day < before)


def _read(file: Path) -> str | None:
    try:
        # Editors on Windows put a byte order mark at the beginning.
        with file.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as opened:
            return opened.read()
    except FileNotFoundError:
        return None


def _read_memory(folder: Path) -> daily_notes.Read:
    return daily_notes.read_memory(_read(folder / MEMORY_FILE))


def _readable(text: str) -> str:
    """Replace bytes that are not UTF-8, for models and the database."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
