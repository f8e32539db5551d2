"""Daily notes: written day by day, summarised into a curated file, archived."""

import asyncio
import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from remanence import Context, Memory, Message, Policy, Settings
from remanence.archive.daily import LOCK_FILE, DailyNotes
from remanence.archive.daily_notes import DayNotes, notes_of_day, read_memory
from remanence.cli import main
from remanence.errors import (
    InvalidMessage,
    InvalidPolicy,
    ObservationRejected,
    ObservationSkipped,
    RemanenceError,
    StoreUnavailable,
)
from remanence.files import Lock
from remanence.protocols import ExtractRequest, ReflectRequest
from remanence.testing import FixedClock, ScriptedReflector
from remanence.types import Draft, FactDraft, Owner

MONDAY = datetime(2027, 1, 4, 9, 30, tzinfo=UTC)
DAY = 86_400
CRASH = Path(__file__).with_name("daily_crash.py")


@asynccontextmanager
async def opened(
    directory: Path, clock: FixedClock, *, workers: int = 0, keep_days: int = 2, **changes: Any
) -> AsyncIterator[Memory]:
    settings = Settings(
        url="sqlite:///:memory:",
        workers=workers,
        daily_directory=str(directory),
        daily_keep_days=keep_days,
    )
    async with Memory.open(settings=settings, clock=clock, **changes) as memory:
        yield memory


async def write_days(memory: Memory, clock: FixedClock, count: int, *, user: str = "ana") -> None:
    for number in range(count):
        await memory.note(f"Flight LH {450 + number} is booked for Ana.", user=user)
        await memory.note(f"The deploy of release {number} went well.", user=user)
        clock.advance(DAY)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("[!.]*"))


@pytest.mark.req("Z-92")
async def test_notes_of_a_day_are_one_markdown_file_of_the_user(tmp_path: Path) -> None:
    clock = FixedClock(MONDAY)
    async with opened(tmp_path, clock) as memory:
        file = await memory.note("The launch moved\nto Friday.", user="ana", tenant="acme")
        clock.advance(3_600)
        await memory.note("오늘 회의는 취소되었다.", user="ana", tenant="acme")

    assert file == tmp_path / "acme" / "ana" / "2027-01-04.md"
    assert file.read_text() == (
        "# 2027-01-04\n- 09:30 The launch moved to Friday.\n- 10:30 오늘 회의는 취소되었다.\n"
    )


async def test_a_note_is_in_the_file_of_its_users_day(tmp_path: Path) -> None:
    clock = FixedClock(datetime(2027, 1, 5, 2, tzinfo=UTC))
    zone = timezone(timedelta(hours=-5))
    async with opened(tmp_path, clock) as memory:
        text = "My flight LH 454 leaves tomorrow."
        file = await memory.note(text, user="ana", timezone=zone)
        clock.advance(3 * DAY)
        await memory.consolidate(user="ana")
        (fact,) = await memory.facts.list(user="ana")

    assert file.name == "2027-01-04.md"
    assert "leaves 2027-01-05" in fact.summary
    assert fact.valid_from.astimezone(zone).date() == date(2027, 1, 4)


async def test_a_note_holds_from_its_users_time_until_a_later_statement(tmp_path: Path) -> None:
    clock, zone = FixedClock(MONDAY), timezone(timedelta(hours=2))
    async with opened(tmp_path, clock) as memory:
        file = await memory.note("I live in Oslo.", user="ana", timezone=zone)
        clock.advance(3_600)
        await memory.facts.save("I moved to Bergen.", user="ana")
        clock.advance(3 * DAY)
        await memory.consolidate(user="ana")
        facts = await memory.facts.list(user="ana", history=True)
        curated = (file.parent / "MEMORY.md").read_text()

    noted = file.parent / "archive" / file.name
    assert noted.read_text() == "# 2027-01-04\n- 11:30 UTC+02:00 I live in Oslo.\n"
    assert "- 11:30 I live in Oslo.\n" in curated
    assert {fact.summary: (fact.valid_from, fact.valid_to) for fact in facts} == {
        "I live in Oslo.": (MONDAY, MONDAY + timedelta(hours=1)),
        "I moved to Bergen.": (MONDAY + timedelta(hours=1), None),
    }


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
async def test_a_line_written_by_hand_may_begin_with_an_hour_of_one_digit_in_any_editor(
    tmp_path: Path, encoding: str
) -> None:
    folder = tmp_path / "default" / "ana"
    folder.mkdir(parents=True)
    (folder / "2027-01-04.md").write_text("- 9:05 I'm allergic to peanuts.\n", encoding)
    (folder / "MEMORY.md").write_text("# Ana\n", encoding)
    async with opened(tmp_path, FixedClock(MONDAY + timedelta(days=3))) as memory:
        await memory.consolidate(user="ana")
        (fact,) = await memory.facts.list(user="ana")

    assert fact.summary == "I'm allergic to peanuts."
    assert fact.valid_from == MONDAY.replace(hour=9, minute=5)
    assert "\ufeff" not in (folder / "MEMORY.md").read_text("utf-8")


def test_the_time_of_a_line_has_an_offset_only_behind_utc() -> None:
    text = "- 9:05 UTC-07:00 LH 454\n- 10:00-11:00 gym\n- 27:80 foo\n- 13:00 UTC RE 5\n- 8:00 +1\n"

    assert [
        (note.text, str(note.observed_at)[11:]) for note in notes_of_day(text, MONDAY.date())
    ] == [
        ("9:05 LH 454", "09:05:00-07:00"),
        ("10:00-11:00 gym", "12:00:00+00:00"),
        ("27:80 foo", "12:00:00+00:00"),
        ("13:00 UTC RE 5", "13:00:00+00:00"),
        ("8:00 +1", "08:00:00+00:00"),
    ]


@pytest.mark.req("Z-55", "Z-76", "Z-77")
async def test_old_days_are_reflected_into_the_memory_file_and_archived(tmp_path: Path) -> None:
    clock = FixedClock(MONDAY)
    reflector = ScriptedReflector()
    folder = tmp_path / "default" / "ana"
    async with opened(tmp_path, clock, reflector=reflector) as memory:
        await write_days(memory, clock, 4)
        raw = (folder / "2027-01-04.md").read_bytes()
        [done] = await memory.consolidate(user="ana")

    assert done.days == (date(2027, 1, 4), date(2027, 1, 5), date(2027, 1, 6))
    assert names(folder) == ["2027-01-07.md", "MEMORY.md", "archive"]
    assert names(folder / "archive") == [f"2027-01-0{day}.md" for day in (4, 5, 6)]
    assert (folder / "archive" / "2027-01-04.md").read_bytes() == raw
    text = (folder / "MEMORY.md").read_text()
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## 2027-01-04",
        "## 2027-01-05",
        "## 2027-01-06",
    ]
    assert "Flight LH 450" in text
    first = reflector.requests[0].segments[0]
    assert [note.text for note in first.notes] == [
        "09:30 Flight LH 450 is booked for Ana.",
        "09:30 The deploy of release 0 went well.",
    ]


@pytest.mark.req("Z-04", "Z-35", "Z-91", "Z-93")
async def test_the_curated_memory_file_reaches_the_prompt_of_its_user(tmp_path: Path) -> None:
    clock = FixedClock(MONDAY)
    folder = tmp_path / "default" / "ana"
    async with opened(tmp_path, clock) as memory:
        await write_days(memory, clock, 4)
        (folder / "MEMORY.md").write_text("# About Ana\n- is allergic to nuts\n")
        await memory.consolidate(user="ana")
        mine = await asked(memory, "a", user="ana")
        (folder / "MEMORY.md").write_text("- changed by hand")
        again = await asked(memory, "a", user="ana")
        others = await asked(memory, "b", user="ben")

    text = "\n".join(block.text for block in mine.system if block.kind == "facts")
    assert "# About Ana\n- is allergic to nuts\n" in text
    assert "LH 450" in text
    assert "<!--" not in text
    assert mine.stats.cross_session_tokens > 0
    assert "allergic to nuts" in mine.to_openai()["messages"][0]["content"]
    assert again.system == mine.system
    assert "nuts" not in str(others.system)


@pytest.mark.req("Z-62")
async def test_a_memory_file_that_is_too_long_says_that_its_end_is_left_out(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "default" / "ana"
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text("".join(f"- line {n} of many\n" for n in range(900)))
    async with opened(tmp_path, FixedClock(MONDAY)) as memory:
        context = await asked(memory, "a", user="ana")

    [text] = [block.text for block in context.system if block.kind == "facts"]
    assert "- line 0 of many" in text
    assert text.endswith("[… the rest of MEMORY.md is left out]")
    assert context.stats.cross_session_tokens <= memory.policy.facts_tokens


async def asked(memory: Memory, conversation: str, *, user: str) -> Context:
    chat = memory.conversation(conversation, user=user)
    await chat.append(Message.user("Where were we?"))
    return await chat.context(system="You help.")


async def test_days_that_lie_in_the_directory_itself_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "2027-01-02.md").write_text("- the launch moved\n")
    async with opened(tmp_path, FixedClock(MONDAY), workers=1) as memory:
        with pytest.raises(InvalidPolicy, match=r"has 2027-01-02.md.*default/ana"):
            await memory.consolidate()
        async with asyncio.timeout(60):
            while "2027-01-02.md" not in caplog.text:  # noqa: ASYNC110 - a log has no event
                await asyncio.sleep(0)


async def test_the_embedded_reflector_keeps_the_facts_of_a_day(tmp_path: Path) -> None:
    clock = FixedClock(MONDAY)
    async with opened(tmp_path, clock) as memory:
        await write_days(memory, clock, 4)
        await memory.consolidate(user="ana")

    assert "LH 450" in (tmp_path / "default" / "ana" / "MEMORY.md").read_text()


async def test_a_day_of_one_line_is_kept_whole(tmp_path: Path) -> None:
    clock = FixedClock(MONDAY)
    async with opened(tmp_path, clock) as memory:
        await memory.note("Flight LH 454 leaves at 13:25 from gate B42.", user="ana")
        clock.advance(3 * DAY)
        await memory.consolidate(user="ana")

    text = (tmp_path / "default" / "ana" / "MEMORY.md").read_text()
    for value in ("LH 454", "13:25", "B42"):
        assert value in text


async def test_consolidating_again_changes_nothing(tmp_path: Path) -> None:
    clock = FixedClock(MONDAY)
    memory_file = tmp_path / "default" / "ana" / "MEMORY.md"
    async with opened(tmp_path, clock) as memory:
        await write_days(memory, clock, 4)
        await memory.consolidate(user="ana")
        before = memory_file.read_bytes()
        [again] = await memory.consolidate(user="ana")

    assert (again.days, again.signature) == ((), "intact")
    assert memory_file.read_bytes() == before


@pytest.mark.req("X-27", "Z-91")
async def test_an_edit_by_hand_is_kept_and_reported(tmp_path: Path) -> None:
    clock = FixedClock(MONDAY)
    memory_file = tmp_path / "default" / "ana" / "MEMORY.md"
    async with opened(tmp_path, clock) as memory:
        await write_days(memory, clock, 4)
        memory_file.write_text("# Ana\n\nPrefers trains.")
        [first] = await memory.consolidate(user="ana")
        edited = memory_file.read_text().replace("Flight LH 450", "Flight LH 450 (cancelled)")
        memory_file.write_text(edited)
        clock.advance(DAY)
        [second] = await memory.consolidate(user="ana")
        [third] = await memory.consolidate(user="ana")

    text = memory_file.read_text()
    assert [first.signature, second.signature, third.signature] == ["unsigned", "edited", "intact"]
    assert text.partition("\n")[2].startswith("# Ana\n\nPrefers trains.\n")
    assert text.partition("\n")[2].startswith(edited.partition("\n")[2])
    assert text.count("(cancelled)") == 1


async def test_bytes_of_a_memory_file_that_are_no_utf_8_stay_and_are_shown_as_replaced(
    tmp_path: Path,
) -> None:
    clock = FixedClock(MONDAY)
    folder = tmp_path / "default" / "ana"
    async with opened(tmp_path, clock) as memory:
        await write_days(memory, clock, 3)
        (folder / "MEMORY.md").write_bytes(b"Meet at the caf\xe9.\n")
        [done] = await memory.consolidate(user="ana")
        context = await asked(memory, "a", user="ana")

    assert len(done.days) == 2
    assert b"\nMeet at the caf\xe9.\n" in (folder / "MEMORY.md").read_bytes()
    assert "Meet at the caf\ufffd.\n" in context.system[1].text


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text + "x",
        lambda text: text.partition("\n")[2],
        lambda text: "# Title first\n" + text,
        lambda text: text.replace("Flight", "Train"),
        lambda text: text.replace("sha256 of the rest is ", "sha256 of the rest is 0"),
    ],
)
async def test_every_kind_of_edit_is_noticed(tmp_path: Path, edit: Callable[[str], str]) -> None:
    clock = FixedClock(MONDAY)
    memory_file = tmp_path / "default" / "ana" / "MEMORY.md"
    async with opened(tmp_path, clock) as memory:
        await write_days(memory, clock, 3)
        await memory.consolidate(user="ana")
        memory_file.write_text(edit(memory_file.read_text()))
        [done] = await memory.consolidate(user="ana")

    assert done.signature in ("edited", "unsigned")


async def test_a_day_that_is_written_again_after_its_archive_is_added_to_it(
    tmp_path: Path,
) -> None:
    clock = FixedClock(MONDAY)
    folder = tmp_path / "default" / "ana"
    async with opened(tmp_path, clock) as memory:
        await write_days(memory, clock, 3)
        await memory.consolidate(user="ana")
        (folder / "2027-01-04.md").write_text("Late: the badge is K-7.\n")
        await memory.consolidate(user="ana")

    assert names(folder / "archive") == ["2027-01-04-2.md", "2027-01-04.md", "2027-01-05.md"]
    assert "badge is K-7" in (folder / "MEMORY.md").read_text()


async def test_lines_of_a_rewritten_day_that_were_summarised_before_are_left_out(
    tmp_path: Path,
) -> None:
    clock = FixedClock(MONDAY)
    async with opened(tmp_path, clock) as memory:
        file = await memory.note("I live in Oslo.", user="ana")
        before = file.read_text()
        clock.advance(3 * DAY)
        await memory.consolidate(user="ana")
        file.write_text(f"{before}- 18:00 My sister Lena lives in Rome.\n")
        [done] = await memory.consolidate(user="ana")

    curated = (file.parent / "MEMORY.md").read_text()
    assert curated.count("## 2027-01-04") == 2
    assert curated.count("I live in Oslo.") == 1
    assert curated.endswith("## 2027-01-04\n\n- 18:00 My sister Lena lives in Rome.\n")
    assert done.facts == 1


async def test_the_new_lines_of_a_rewritten_day_are_summarised_alone(
    tmp_path: Path,
) -> None:
    clock, reflector = FixedClock(MONDAY), ScriptedReflector()
    async with opened(tmp_path, clock, reflector=reflector) as memory:
        file = await memory.note("I live in Oslo, " + "near the old harbour, " * 50, user="ana")
        before = file.read_text()
        clock.advance(3 * DAY)
        await memory.consolidate(user="ana")
        file.write_text(f"{before}- 18:00 My sister Lena lives in Rome.\n")
        await memory.consolidate(user="ana")

    (segment,) = reflector.requests[1].segments
    assert segment.text == "18:00 My sister Lena lives in Rome."
    assert segment.tokens < 20


@pytest.mark.parametrize(
    ("outcome", "error"),
    [
        (Draft(notes=(), made_by="bad"), ObservationRejected),
        (ObservationSkipped("over_budget", "the day budget is spent"), ObservationSkipped),
    ],
)
async def test_a_day_whose_summary_fails_stays_as_it_is(
    tmp_path: Path, outcome: Draft | Exception, error: type[RemanenceError]
) -> None:
    clock = FixedClock(MONDAY)
    folder = tmp_path / "default" / "ana"
    async with opened(tmp_path, clock, reflector=ScriptedReflector([outcome])) as memory:
        await write_days(memory, clock, 3)
        with pytest.raises(error):
            await memory.consolidate(user="ana")
        assert names(folder) == [f"2027-01-0{day}.md" for day in (4, 5, 6)]
        [done] = await memory.consolidate(user="ana")

    assert len(done.days) == 2


async def test_a_user_whose_days_cannot_be_summarised_holds_up_no_other_user(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FixedClock(MONDAY)
    async with opened(tmp_path, clock) as memory:
        for user in ("ana", "ben"):
            await memory.note("The ferry leaves at nine.", user=user)
        clock.advance(3 * DAY)

    reflector = ScriptedReflector([RuntimeError("no answer")])
    archived = tmp_path / "default" / "ben" / "archive" / "2027-01-04.md"
    async with opened(tmp_path, clock, workers=1, reflector=reflector), asyncio.timeout(60):
        while not archived.exists():  # noqa: ASYNC110 - files do not tell
            await asyncio.sleep(0.01)

    assert names(tmp_path / "default" / "ana") == ["2027-01-04.md"]
    assert "of 'ana' were not consolidated: RuntimeError: no answer" in caplog.text


async def test_an_open_memory_consolidates_what_became_old_while_it_was_closed(
    tmp_path: Path,
) -> None:
    clock = FixedClock(MONDAY)
    async with opened(tmp_path, clock) as memory:
        await write_days(memory, clock, 3)
        await memory.note("Milan is fine.", user="Bob", tenant="acme")
        clock.advance(3 * DAY)

    archives = [tmp_path / "default" / "ana" / "archive", tmp_path / "acme" / "%42ob" / "archive"]
    async with opened(tmp_path, clock, workers=1), asyncio.timeout(60):
        while [len(names(archive)) for archive in archives] != [3, 1]:  # noqa: ASYNC110 - files do not tell
            await asyncio.sleep(0.01)


async def test_a_day_without_a_line_is_archived_and_has_no_fact(tmp_path: Path) -> None:
    folder = tmp_path / "default" / "ana"
    folder.mkdir(parents=True)
    (folder / "2027-01-01.md").write_text("# 2027-01-01\n")
    async with opened(tmp_path, FixedClock(MONDAY)) as memory:
        [done] = await memory.consolidate(user="ana")

    assert (done.days, done.facts) == ((date(2027, 1, 1),), 0)
    assert names(folder / "archive") == ["2027-01-01.md"]


async def test_more_days_than_the_calendar_has_keep_every_day(tmp_path: Path) -> None:
    clock = FixedClock(MONDAY)
    async with opened(tmp_path, clock, keep_days=10**10) as memory:
        await write_days(memory, clock, 3)
        [done] = await memory.consolidate(user="ana")

    assert done.days == ()


@pytest.mark.req("Z-55")
async def test_the_facts_of_a_day_are_extracted_before_it_is_archived(tmp_path: Path) -> None:
    folder = tmp_path / "acme" / "ana"
    asked: list[tuple[list[str], date, Owner]] = []

    async def extract(day: DayNotes, owner: Owner) -> int:
        assert (folder / "2027-01-01.md").exists()
        asked.append(([note.text for note in day.notes], day.day, owner))
        return 2

    daily = DailyNotes(
        directory=tmp_path,
        keep_days=1,
        reflector=ScriptedReflector(),
        policy=Policy.default(),
        count_text=len,
        clock=FixedClock(MONDAY),
        extract=extract,
    )
    folder.mkdir(parents=True)
    (folder / "2027-01-01.md").write_text("- Ana likes oat milk\n")

    done = await daily.consolidate(Owner("acme", "ana"))

    assert asked == [(["Ana likes oat milk"], date(2027, 1, 1), ("acme", "ana"))]
    assert (done.facts, done.days) == (2, (date(2027, 1, 1),))


@pytest.mark.req("Z-55")
async def test_an_open_memory_keeps_the_facts_of_old_days_with_their_source(
    tmp_path: Path,
) -> None:
    clock = FixedClock(MONDAY)
    async with opened(tmp_path, clock) as memory:
        await memory.note("I prefer oat milk in my coffee.", user="ana", tenant="acme")
        await memory.note("Thanks, see you later!", user="ana", tenant="acme")
        clock.advance(3 * DAY)
        [done] = await memory.consolidate(user="ana", tenant="acme")
        [fact] = await memory.facts.list(user="ana", tenant="acme")
        found = await memory.facts.search("oat milk", user="ana", tenant="acme")
        others = await memory.facts.list(user="ana")

    assert done.facts == 1
    assert "oat milk" in fact.summary
    assert "09:30" not in fact.summary
    assert (fact.valid_from, fact.first_seq, fact.type) == (MONDAY, 2, "behavior")
    assert str(fact.conversation).startswith("daily notes 2027-01-04 ")
    assert (found, others) == ((fact,), ())


async def test_a_note_that_found_no_space_leaves_nothing_and_may_be_written_again(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, FixedClock(MONDAY)) as memory:
        file = await memory.note("Flight LH 450 is booked.", user="ana")
        file.write_bytes(before := file.read_bytes() + b"- more\n" * 10_000)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10, hard))
        try:
            with pytest.raises(StoreUnavailable, match=r"\(File too large\): fix that"):
                await memory.note("The deploy went well.", user="ana")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert file.read_bytes() == before

        await memory.note("The deploy went well.", user="ana")

    assert file.read_text().splitlines()[-2:] == ["- more", "- 09:30 The deploy went well."]


async def test_facts_of_a_day_are_kept_once_where_consolidation_was_interrupted(
    tmp_path: Path,
) -> None:
    clock = FixedClock(MONDAY)
    memory_file = tmp_path / "default" / "ana" / "MEMORY.md"
    asked: list[str] = []

    class Interrupting:
        """An extractor that puts something in the way of the summary."""

        name = "interrupting"

        async def extract(self, request: ExtractRequest) -> tuple[FactDraft, ...]:
            asked.append(request.user)
            memory_file.mkdir()
            return (FactDraft(summary="Ana keeps bees"),)

    async with opened(tmp_path, clock, extractor=Interrupting()) as memory:
        await memory.note("I keep bees.", user="ana")
        clock.advance(3 * DAY)
        with pytest.raises(StoreUnavailable):
            await memory.consolidate(user="ana")
        memory_file.rmdir()
        [done] = await memory.consolidate(user="ana")
        facts = await memory.facts.list(user="ana", history=True)

    assert asked == ["ana"]
    assert (len(done.days), [fact.summary for fact in facts]) == (1, ["Ana keeps bees"])


async def test_a_summary_under_way_brings_nothing_of_a_forgotten_user_back(tmp_path: Path) -> None:
    clock = FixedClock(MONDAY)
    forgetting: list[asyncio.Task[Any]] = []

    class Slow(ScriptedReflector):
        async def reflect(self, request: ReflectRequest) -> Draft:
            if not forgetting:
                forgetting.append(asyncio.create_task(memory.forget_user("ana")))
                await asyncio.wait(forgetting, timeout=0.3)  # it has to wait for this summary
            return await super().reflect(request)

    async with opened(tmp_path, clock, reflector=Slow()) as memory, asyncio.timeout(60):
        await write_days(memory, clock, 3)
        await memory.consolidate(user="ana")
        await forgetting[0]
        facts = await memory.facts.list(user="ana", history=True)

    assert facts == ()
    assert list((tmp_path / "default" / "ana").rglob("*.md")) == []


async def test_nothing_is_left_of_a_forgotten_user_but_what_others_put_there(
    tmp_path: Path,
) -> None:
    clock = FixedClock(MONDAY)
    async with opened(tmp_path, clock) as memory:
        for user in ("ana", "bo"):
            await write_days(memory, clock, 3, user=user)
            await memory.consolidate(user=user)
        (tmp_path / "default" / "ana" / "MEMORY.md.new").write_text("Ana keeps bees.")
        (tmp_path / "default" / "ana" / "old").mkdir()
        (tmp_path / "default" / "bo" / "photo.jpg").write_bytes(b"jpg")
        receipts = [await memory.forget_user(user) for user in ("ana", "bo", "bo")]
        done = await memory.consolidate()

    assert names(tmp_path / "default") == ["bo"]
    assert names(tmp_path / "default" / "bo") == ["photo.jpg"]
    photo = str(tmp_path / "default" / "bo" / "photo.jpg")
    assert [receipt.still_in for receipt in receipts] == [(), (photo,), (photo,)]
    assert [receipt.erased for receipt in receipts] == [True, True, False]
    assert [each.user for each in done] == ["bo"]


async def test_a_user_may_be_forgotten_by_several_calls_at_once(tmp_path: Path) -> None:
    async with opened(tmp_path, FixedClock(MONDAY)) as memory, asyncio.timeout(60):
        for _ in range(5):
            await memory.note("I keep bees.", user="ana")
            async with asyncio.TaskGroup() as group:
                for _ in range(3):
                    group.create_task(memory.forget_user("ana"))
            assert names(tmp_path) == []


async def test_folders_may_disappear_while_the_users_are_listed(tmp_path: Path) -> None:
    ended = threading.Event()

    def come_and_go() -> None:
        while not ended.is_set():
            with contextlib.suppress(OSError):
                (tmp_path / "acme" / "bo" / "archive").mkdir(parents=True)
            shutil.rmtree(tmp_path / "acme", ignore_errors=True)

    async with opened(tmp_path, FixedClock(MONDAY)) as memory:
        await memory.note("I keep bees.", user="ana")
        thread = threading.Thread(target=come_and_go)
        thread.start()
        try:
            for _ in range(200):
                await memory.consolidate()
                await memory.forget_user("bo", tenant="acme")
        finally:
            ended.set()
            thread.join()


async def test_a_consolidation_that_waits_while_its_user_is_forgotten_does_nothing(
    tmp_path: Path,
) -> None:
    clock = FixedClock(MONDAY)
    async with opened(tmp_path, clock) as memory, asyncio.timeout(60):
        await write_days(memory, clock, 3)
        held = Lock(tmp_path / "default" / "ana" / LOCK_FILE)
        assert held.take()
        async with asyncio.TaskGroup() as group:
            waiting: list[asyncio.Task[Any]] = [group.create_task(memory.forget_user("ana"))]
            waiting += [group.create_task(memory.consolidate(user="ana")) for _ in range(8)]
            await asyncio.wait(waiting, timeout=0.3)  # they have to wait for the lock
            held.close()

    assert names(tmp_path) == []


async def test_a_consolidation_that_makes_the_lock_of_a_forgotten_user_anew_deletes_it(
    tmp_path: Path,
) -> None:
    clock = FixedClock(MONDAY)
    folder = tmp_path / "default" / "ana"
    async with opened(tmp_path, clock) as memory, asyncio.timeout(60):
        await write_days(memory, clock, 3)
        held = Lock(folder / LOCK_FILE)
        assert held.take()
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(memory.consolidate(user="ana"))
            await asyncio.wait([waiting], timeout=0.3)
            for file in folder.iterdir():
                file.unlink()
            held.close()

    assert names(tmp_path) == []


async def test_secrets_of_a_day_do_not_reach_the_summary(tmp_path: Path) -> None:
    clock = FixedClock(MONDAY)
    folder = tmp_path / "default" / "ana"
    async with opened(tmp_path, clock) as memory:
        await memory.note("The password is hunter2-7731 for the router.", user="ana")
        clock.advance(3 * DAY)
        await memory.consolidate(user="ana")

    assert "router" in (folder / "MEMORY.md").read_text()
    assert "hunter2" not in (folder / "MEMORY.md").read_text()


async def test_a_name_of_forty_letters_of_any_script_has_a_folder(tmp_path: Path) -> None:
    user, clock = "Ж" * 40, FixedClock(MONDAY)
    async with opened(tmp_path, clock) as memory:
        await memory.note("I live in Oslo.", user=user)
        clock.advance(3 * DAY)
        [done] = await memory.consolidate()
        erased = await memory.forget_user(user)

    assert (done.user, done.facts) == (user, 1)
    assert len(erased.files) == 2
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("user", "why"),
    [
        ("", "is not a name"),
        pytest.param("x" * 500, "has no folder: name both, in at most 240 characters", id="long"),
        pytest.param("Ж" * 41, "each byte other than a-z, 0-9, _ and - takes three", id="cyrillic"),
    ],
)
async def test_a_user_without_a_folder_is_refused(tmp_path: Path, user: str, why: str) -> None:
    async with opened(tmp_path, FixedClock(MONDAY)) as memory:
        with pytest.raises(InvalidMessage, match=why):
            await memory.note("hello", user=user)


async def test_a_user_without_a_folder_has_contexts_and_can_be_exported_and_forgotten(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    user = "x" * 500
    async with opened(tmp_path, FixedClock(MONDAY)) as memory:
        chat = memory.conversation("chat", user=user)
        await chat.append(Message.user("The gate is B42.", id="gate"))
        context = await chat.context()
        receipt = await chat.forget("gate")
        exported = [json.loads(line)["line"] async for line in memory.export_user(user)]

    assert context.system == ()
    assert receipt.message_ids == ("gate",)
    assert receipt.still_in == ()
    assert exported == ["user", "conversation", "message", "log", "event"]
    assert "has no folder" not in caplog.text


async def test_half_a_character_of_a_note_is_a_question_mark_as_in_a_fact(tmp_path: Path) -> None:
    async with opened(tmp_path, FixedClock(MONDAY)) as memory:
        day = await memory.note("Thanks \ud83d, see you.", user="ana")

    assert day.read_text() == "# 2027-01-04\n- 09:30 Thanks ?, see you.\n"


async def test_daily_notes_need_a_directory() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        with pytest.raises(InvalidPolicy, match="daily_directory"):
            await memory.consolidate(user="ana")


def test_headings_of_a_day_are_topics_of_the_lines_below() -> None:
    notes = notes_of_day("# 2027-01-04\nplain\n## Travel\n* LH 454\n\n1. RE 5\n", date(2027, 1, 4))

    assert [(note.text, note.topic, note.first_seq) for note in notes] == [
        ("plain", None, 2),
        ("LH 454", "Travel", 4),
        ("RE 5", "Travel", 6),
    ]


def test_list_marks_are_removed_only_at_the_beginning_of_a_line() -> None:
    text = "- DTW-PHX (175) and 1) RE 5\nopen 09:00. All day\n2. by 2026-04-30. Next week\n"

    assert [note.text for note in notes_of_day(text, date(2027, 1, 4))] == [
        "DTW-PHX (175) and 1) RE 5",
        "open 09:00. All day",
        "by 2026-04-30. Next week",
    ]


@pytest.mark.timeout(120)
def test_a_kill_before_any_change_of_a_file_loses_and_doubles_nothing(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, CRASH, tmp_path], capture_output=True, check=False, text=True
    )
    assert run.returncode == 0, run.stderr

    kills = json.loads(run.stdout)

    assert len(kills) > 12
    for number in kills:
        folder = tmp_path / str(number) / "default" / "ana"
        text = (folder / "MEMORY.md").read_text()
        body, signature = read_memory(text)
        assert signature == "intact"
        assert body.startswith("Curated by hand.\n")
        assert [line for line in body.splitlines() if line.startswith("## ")] == [
            "## 2027-01-04",
            "## 2027-01-05",
        ]
        for day in (4, 5):
            archived = (folder / "archive" / f"2027-01-0{day}.md").read_text()
            assert archived == f"- the badge of day {day} is K-{day}\n"
        assert names(folder / "archive") == ["2027-01-04.md", "2027-01-05.md"]
        assert names(folder) == ["MEMORY.md", "archive"]


def test_days_are_consolidated_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in os.environ if name.startswith("REMANENCE_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "notes" / "default" / "ana"
    folder.mkdir(parents=True)
    (folder / "2020-02-03.md").write_text("- the badge is K-7\n")
    (tmp_path / "remanence.toml").write_text('url = "sqlite:///m.db"\ndaily_directory = "notes"\n')

    assert main(["migrate", "--json"]) == 0
    capsys.readouterr()
    assert main(["consolidate", "--json"]) == 0
    [done] = json.loads(capsys.readouterr().out)["consolidated"]
    (folder / "MEMORY.md").write_text((folder / "MEMORY.md").read_text() + "more\n")
    assert main(["consolidate", "--user", "ana"]) == 0

    assert (done["user"], done["days"], done["signature"]) == ("ana", ["2020-02-03"], "absent")
    assert "was edited since its last summary" in capsys.readouterr().err
