"""Daily notes in a directory: a Markdown file a day for each user, summarised and archived.

    {directory}/{tenant}/{user}/2027-01-04.md           notes of a day, written by anyone
    {directory}/{tenant}/{user}/MEMORY.md               curated by hand; summaries are appended
    {directory}/{tenant}/{user}/archive/2027-01-04.md   a day's notes after its summary

Each step is atomic, and its result shows that it was done, so consolidation may be repeated, and
interrupted anywhere.
"""

import asyncio
import contextlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Protocol, TypeVar
from urllib.parse import unquote

from remanence import telemetry
from remanence.archive.daily_notes import (
    DayNotes,
    Signature,
    day_heading,
    entry,
    fingerprint,
    marker,
    notes_of_day,
    read_memory,
    summary,
    with_section,
    without_markers,
)
from remanence.clock import Clock
from remanence.errors import InvalidMessage, InvalidPolicy, StoreUnavailable
from remanence.files import (
    Lock,
    append_line,
    make_directory,
    move,
    run_in_thread,
    safe_name,
    write_whole,
)
from remanence.notes import render_notes
from remanence.notes.redact import redact
from remanence.observers.draft_check import check_draft
from remanence.policy.policy import Policy
from remanence.protocols import CountTokens, Reflector, ReflectRequest
from remanence.types import ConversationRef, Note, Segment

T = TypeVar("T")

MIN_TARGET_TOKENS = 200
"""Room for a day of a few lines to stay whole, with the headings of its notes."""

WAIT_SECONDS = 0.1
LOOK_SECONDS = 3_600.0
"""The interval at which a running memory looks for old days."""

_DAY_FILE = re.compile(r"(\d{4}-\d\d-\d\d)\.md")


class ExtractFacts(Protocol):
    """Saves the facts of a day's notes for a user, and returns how many are new.

    It may get the same notes again after an interruption.
    """

    async def __call__(self, day: DayNotes, *, user: str, tenant: str) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidation:
    """The result for a user's old days.

    `signature` describes the memory file before: `edited` if someone changed it since the last
    summary. Edits are kept.
    """

    tenant: str
    user: str
    days: tuple[date, ...]
    facts: int
    signature: Signature
    memory_file: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyNotes:
    """The daily notes of all users below a directory; days before `keep_days` ago are old.

    Raises:
        StoreUnavailable: a file cannot be read or written.
    """

    directory: Path
    keep_days: int
    reflector: Reflector
    policy: Policy
    count_text: CountTokens
    clock: Clock
    extract: ExtractFacts | None = None

    async def add(self, text: str, *, user: str, tenant: str) -> Path:
        """Append a note to today's file; it is on disk when this returns."""
        if not text.strip():
            raise InvalidMessage("a note is empty: write some text")
        folder, now = self._folder(user, tenant), self.clock.now()
        file = folder / f"{now:%Y-%m-%d}.md"
        await self._run(lambda: _add(file, day_heading(now.date()), entry(text, now)))
        return file

    async def curated_text(self, *, user: str, tenant: str) -> str:
        """Return a user's memory file, without our markers and with secrets redacted."""
        memory_file = self._folder(user, tenant) / "MEMORY.md"
        body = (await self._run(lambda: read_memory(_read(memory_file)))).body
        return redact(without_markers(_readable(body))).strip()

    async def find(self, texts: Sequence[str], *, user: str, tenant: str) -> tuple[str, ...]:
        """Return the files of a user, archived ones too, that have one of the texts."""
        folder = self._folder(user, tenant)
        sought = [" ".join(text.casefold().split()) for text in texts]

        def has_one(file: Path) -> bool:
            content = " ".join((_read(file) or "").casefold().split())
            return any(text in content for text in sought)

        return await self._run(lambda: tuple(str(f) for f in _files(folder) if has_one(f)))

    async def read_all(self, *, user: str, tenant: str) -> tuple[tuple[str, str], ...]:
        """Return the files of a user with their texts."""
        folder = self._folder(user, tenant)
        return await self._run(
            lambda: tuple((str(f), _readable(_read(f) or "")) for f in _files(folder))
        )

    async def forget(self, *, user: str, tenant: str) -> tuple[str, ...]:
        """Delete all files of a user, and return them, after a consolidation under way."""
        folder = self._folder(user, tenant)
        if not await self._run(folder.is_dir):
            return ()

        def delete() -> tuple[str, ...]:
            files = tuple(_files(folder))
            for file in files:
                file.unlink()
            return tuple(str(file) for file in files)

        with contextlib.closing(await self._lock(folder)):
            return await self._run(delete)

    async def check_layout(self) -> None:
        """Raise `InvalidPolicy` if day files are in the directory itself: they have no user."""
        days = await self._run(lambda: _days(self.directory, before=date.max))
        if days:
            raise InvalidPolicy(
                f"daily_directory={str(self.directory)!r} holds {days[0]}.md, which has no user: "
                "move the files of days to a folder of their user, such as "
                f"{str(self._folder('ana', 'default'))!r}"
            )

    async def users(self) -> tuple[tuple[str, str], ...]:
        """Return the tenants and users that have a folder."""
        return await self._run(lambda: tuple(_users(self.directory)))

    async def consolidate(self, *, user: str, tenant: str) -> Consolidation:
        """Summarise a user's old days into the memory file, keep their facts, archive them.

        Raises:
            ObservationRejected, ModelError: a summary could not be made; that day stays.
        """
        folder = self._folder(user, tenant)
        memory_file = folder / "MEMORY.md"
        signature = (await self._run(lambda: read_memory(_read(memory_file)))).signature
        first_kept = self.clock.now().date() - timedelta(days=self.keep_days - 1)
        days = await self._run(lambda: tuple(_days(folder, before=first_kept)))
        facts = 0
        if days:
            with contextlib.closing(await self._lock(folder)):
                for day in days:
                    facts += await self._consolidate_day(folder, day, user, tenant)
        if signature == "edited":
            telemetry.memory_file_edited(str(memory_file))
        return Consolidation(
            tenant=tenant,
            user=user,
            days=days,
            facts=facts,
            signature=signature,
            memory_file=memory_file,
        )

    async def keep_up(self) -> None:
        """Consolidate old days until cancelled, including those that became old in between runs."""
        while True:
            try:
                await self._check_layout_or_log()
                for tenant, user in await self.users():
                    await self._consolidate_or_log(user, tenant)
            except StoreUnavailable as error:
                telemetry.daily_notes_failed("everybody", str(error))
            await asyncio.sleep(LOOK_SECONDS)

    async def _check_layout_or_log(self) -> None:
        try:
            await self.check_layout()
        except InvalidPolicy as error:
            telemetry.daily_notes_failed("everybody", str(error))

    async def _consolidate_or_log(self, user: str, tenant: str) -> None:
        try:
            await self.consolidate(user=user, tenant=tenant)
        except Exception as error:  # noqa: BLE001 - one user's notes must not stop the others'
            telemetry.daily_notes_failed(user, f"{type(error).__name__}: {error}")

    async def _consolidate_day(self, folder: Path, day: date, user: str, tenant: str) -> int:
        """Do the missing steps for a day; repeat them if it was written meanwhile."""
        file, memory_file = folder / f"{day}.md", folder / "MEMORY.md"
        facts = 0
        while (text := await self._run(lambda: _read(file))) is not None:
            source = fingerprint(text)
            body = (await self._run(lambda: read_memory(_read(memory_file)))).body
            if marker(day, source) not in body:
                facts += await self._summarise(memory_file, day, text, user, tenant)
            if await self._run(lambda: _read(file)) == text:
                await self._run(lambda: _archive(file, text))
        return facts

    async def _summarise(
        self, memory_file: Path, day: date, text: str, user: str, tenant: str
    ) -> int:
        safe_text = await asyncio.to_thread(lambda: redact(_readable(text)))
        source = fingerprint(text)
        notes = notes_of_day(safe_text, day)
        kept = await self._reflect(notes, safe_text, user, tenant) if notes else ()
        facts = 0
        if self.extract is not None and notes:
            noted = DayNotes(day=day, notes=notes, source=source)
            facts = await self.extract(noted, user=user, tenant=tenant)
        section = summary(day, source, kept, self.policy.note_format)
        await self._run(lambda: _write_section(memory_file, section))
        return facts

    async def _reflect(
        self, notes: tuple[Note, ...], text: str, user: str, tenant: str
    ) -> tuple[Note, ...]:
        tokens = await asyncio.to_thread(self.count_text, text)
        request = ReflectRequest(
            conversation=ConversationRef(tenant, f"daily notes of {user}"),
            segments=(self._segment(notes, text, tokens),),
            generation=1,
            target_tokens=max(MIN_TARGET_TOKENS, int(tokens * self.policy.reflect_ratio)),
            count_tokens=self.count_text,
            note_format=self.policy.note_format,
            now=self.clock.now(),
        )
        async with asyncio.timeout(self.policy.observe_timeout_seconds):
            draft = await self.reflector.reflect(request)
        rendered = render_notes(draft.notes, self.policy.note_format)
        await asyncio.to_thread(
            check_draft,
            draft,
            rendered,
            tokens=self.count_text(rendered),
            limit_tokens=tokens + MIN_TARGET_TOKENS,
            source_text=text,
        )
        return draft.notes

    def _segment(self, notes: tuple[Note, ...], text: str, tokens: int) -> Segment:
        return Segment(
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
            created_at=self.clock.now(),
        )

    def _folder(self, user: str, tenant: str) -> Path:
        names = [safe_name(name) for name in (tenant, user) if name]
        if len(names) < 2 or any("~" in name for name in names):
            raise InvalidMessage(
                f"user {user!r} of tenant {tenant!r} has no folder: name both, in at most 120 bytes"
            )
        return self.directory.joinpath(*names)

    async def _lock(self, folder: Path) -> Lock:
        """Acquire the right to consolidate or empty a folder; it is released when the process ends."""
        lock = Lock(folder / ".lock")
        while not await self._run(lock.take):  # noqa: ASYNC110 - another process sends no signal
            await asyncio.sleep(WAIT_SECONDS)
        return lock

    async def _run(self, work: Callable[[], T]) -> T:
        return await run_in_thread(work, what=f"daily notes in {str(self.directory)!r}")


def _users(directory: Path) -> list[tuple[str, str]]:
    """Return the tenants and users with a folder; other folders are ignored."""
    if not directory.is_dir():
        return []
    folders = [f for t in sorted(directory.iterdir()) if t.is_dir() for f in sorted(t.iterdir())]
    named = [(unquote(f.parent.name), unquote(f.name), f) for f in folders if f.is_dir()]
    return [
        (tenant, user)
        for tenant, user, folder in named
        if (safe_name(tenant), safe_name(user)) == (folder.parent.name, folder.name)
    ]


def _files(folder: Path) -> list[Path]:
    """Return the Markdown files of a user, archived ones too."""
    return sorted(folder.rglob("*.md"))


def _days(folder: Path, *, before: date) -> list[date]:
    if not folder.is_dir():
        return []
    days = []
    for file in folder.iterdir():
        if name := _DAY_FILE.fullmatch(file.name):
            with contextlib.suppress(ValueError):  # such as 2027-02-31, which is not a day
                days.append(date.fromisoformat(name[1]))
    return sorted(day for day in days if day < before)


def _read(file: Path) -> str | None:
    try:
        with file.open(encoding="utf-8", errors="surrogateescape", newline="") as opened:
            return opened.read()
    except FileNotFoundError:
        return None


def _readable(text: str) -> str:
    """Replace bytes that are not UTF-8, for models and the database."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _add(file: Path, heading: str, line: str) -> None:
    make_directory(file.parent)
    if not file.exists():
        append_line(file, heading.encode())
    append_line(file, line.encode("utf-8", "surrogateescape"))


def _write_section(memory_file: Path, section: str) -> None:
    """Append a section; earlier text stays, byte for byte."""
    body = read_memory(_read(memory_file)).body
    content = with_section(body, section)
    write_whole(memory_file, content.encode("utf-8", "surrogateescape"))


def _archive(file: Path, text: str) -> None:
    """Move a day's file to the archive, next to earlier files of that day."""
    archive = file.parent / "archive"
    make_directory(archive)
    target, number = archive / file.name, 1
    while target.exists() and _read(target) != text:
        number += 1
        target = archive / f"{file.stem}-{number}{file.suffix}"
    move(file, target)
