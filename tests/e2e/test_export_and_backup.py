"""Everything kept of a user as JSON Lines, and copies of a memory in use."""

import asyncio
import json
import os
import re
import resource
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from remanence import Memory, Message, Settings, blocking
from remanence.cli import main
from remanence.errors import StoreUnavailable
from remanence.protocols import ModelRequest
from remanence.testing.store_contract.samples import START
from remanence.types import Usage


def names(directory: Path) -> list[str]:
    return sorted(file.name for file in directory.iterdir())


def one_of(lines: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return next(line for line in lines if line["line"] == kind)


async def test_an_export_has_all_that_is_kept_of_a_user_and_nothing_of_others(
    tmp_path: Path,
) -> None:
    settings = Settings(daily_directory=str(tmp_path / "days"))
    async with Memory.open("sqlite:///:memory:", settings=settings) as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(Message.user("I live in Lisbon."), Message.assistant("Noted: Lisbon."))
        await chat.end()
        await memory.facts.save("I live in Lisbon", user="ana")
        await memory.note("Ana called", user="ana")
        other = memory.conversation("other", user="ben")
        await other.append(Message.user("I live in Porto."))
        await other.end()

        lines = [json.loads(line) async for line in memory.export_user("ana")]

    assert [*dict.fromkeys(line["line"] for line in lines)] == [
        "user",
        "conversation",
        "message",
        "segment",
        "log",
        "fact",
        "repetition",
        "event",
        "daily_notes",
    ]
    assert lines[2]["content"] == "I live in Lisbon."
    assert (lines[2]["conversation"], lines[2]["seq"], lines[2]["role"]) == ("chat", 1, "user")
    fact, again = (one_of(lines, kind) for kind in ("fact", "repetition"))
    assert "Lisbon" in fact["summary"]
    assert (again["repeats"], again["made_by"]) == (fact["id"], "saved")
    assert one_of(lines, "daily_notes")["text"].endswith("Ana called\n")
    assert "Porto" not in json.dumps(lines)


async def test_an_export_has_errors_model_calls_and_events_and_none_of_others() -> None:
    async def observe(request: ModelRequest) -> str:
        raise ValueError("no notes about Lisbon")

    async with Memory.open("sqlite:///:memory:", observer=observe) as memory:
        for user, city in (("ana", "Lisbon"), ("ben", "Porto")):
            chat = memory.conversation(f"chat of {user}", user=user)
            await chat.append(Message.user(f"I live in {city}."))
            call = Usage(model="m", input_tokens=9, output_tokens=1, outcome="quota", at=START)
            await chat.record_call(call)
        await memory.conversation("chat of ana", user="ana").flush(everything=True)
        lines = [json.loads(line) async for line in memory.export_user("ana")]

    assert "no notes about Lisbon" in one_of(lines, "log")["detail"]
    assert [one["outcome"] for one in lines if one["line"] == "model_call"] == ["quota", "failed"]
    assert one_of(lines, "event")["type"] == "failed"
    assert {one["conversation"] for one in lines if "conversation" in one} == {"chat of ana"}


async def test_an_export_names_no_earlier_user_of_a_conversations_id() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        earlier = memory.conversation("chat", user="ben")
        await earlier.append(Message.user("I live in Porto."))
        await earlier.delete()
        await memory.conversation("chat", user="ana").append(Message.user("I live in Lisbon."))
        lines = [line async for line in memory.export_user("ana")]

    assert not any("ben" in line for line in lines)


def test_an_export_works_without_await() -> None:
    with blocking.Memory.open("sqlite:///:memory:") as memory:
        memory.conversation("chat", user="ana").append(Message.user("Hello."))

        lines = [json.loads(line)["line"] for line in memory.export_user("ana")]

    assert lines == ["user", "conversation", "message"]


def test_an_export_of_an_unknown_user_fails_and_prints_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    with blocking.Memory.open(url) as memory:
        memory.conversation("chat", user="ana").append(Message.user("Hello."))

    code = main(["export", "--user", "nobody", "--db", url])

    printed = capsys.readouterr()
    assert (code, printed.out) == (1, "")
    assert printed.err.startswith(
        "remanence: tenant 'default' has nothing stored about user 'nobody': "
    )


async def test_a_copy_made_while_others_write_is_whole(tmp_path: Path) -> None:
    async with Memory.open(f"sqlite:///{tmp_path / 'memory.db'}") as memory:
        chat = memory.conversation("chat")
        stop = asyncio.Event()

        async def write() -> None:
            while not stop.is_set():
                await chat.append(Message.user("One more line, which is written meanwhile."))

        async with asyncio.TaskGroup() as group:
            group.create_task(write())
            for number in range(5):
                before = (await chat.state()).last_seq
                await memory.backup(tmp_path / f"copy-{number}.db")
                after = (await chat.state()).last_seq
                async with Memory.open(
                    f"sqlite:///{tmp_path / f'copy-{number}.db'}", read_only=True
                ) as copy:
                    copied = len(await copy.conversation("chat").messages())
                    assert [p for p in await copy.check() if p.level == "error"] == []
                assert before <= copied <= after
            stop.set()

    assert stat.S_IMODE((tmp_path / "copy-0.db").stat().st_mode) == 0o600


async def test_a_copy_replaces_no_file_and_a_failed_one_leaves_none(tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    async with Memory.open("sqlite:///:memory:") as memory:
        await memory.conversation("chat").append(Message.user("Hello."))
        await memory.backup(target)

        with pytest.raises(StoreUnavailable, match="exists"):
            await memory.backup(target)
        with pytest.raises(StoreUnavailable, match="does not exist: create it"):
            await memory.backup(tmp_path / "nowhere" / "copy.db")

    assert names(tmp_path) == ["copy.db"]
    async with Memory.open(f"sqlite:///{target}", read_only=True) as copy:
        assert (await copy.conversation("chat").messages())[0].text == "Hello."


async def test_a_copy_for_which_there_is_no_room_leaves_no_file(tmp_path: Path) -> None:
    folder, (soft, hard) = tmp_path / "copies", resource.getrlimit(resource.RLIMIT_FSIZE)
    folder.mkdir()
    async with Memory.open("sqlite:///:memory:", settings=Settings(workers=0)) as memory:
        await memory.conversation("chat").append(Message.user("Hello. " * 700_000))
        resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, hard))  # more than SQLite's cache
        try:
            with pytest.raises(StoreUnavailable, match="check the disk"):
                await memory.backup(folder / "copy.db")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert names(folder) == []


async def test_a_backup_removes_what_killed_ones_left_and_no_other_files(tmp_path: Path) -> None:
    left, ours = "old.db.0123abcd.unfinished", "now.db.0123abcd.unfinished"
    others = ["mine.unfinished", "old.db.unfinished", "x.0123abcd.unfinishe"]
    for name in (left, f"{left}-journal", ours, *others):
        (tmp_path / name).write_text("I live in Lisbon.")
        if name != ours:
            os.utime(tmp_path / name, (0, 0))
    async with Memory.open("sqlite:///:memory:") as memory:
        await memory.backup(tmp_path / "copy.db")

    assert names(tmp_path) == sorted(["copy.db", ours, *others])


async def test_of_copies_made_to_one_file_at_once_one_is_kept_and_the_others_say_so(
    tmp_path: Path,
) -> None:
    url, target = f"sqlite:///{tmp_path / 'memory.db'}", tmp_path / "copies" / "copy.db"
    target.parent.mkdir()
    refused: list[str] = []

    async def back_up(memory: Memory) -> None:
        try:
            await memory.backup(target)
        except StoreUnavailable as error:
            refused.append(str(error))

    async with Memory.open(url) as one, Memory.open(url) as two:
        await one.conversation("chat").append(Message.user("Hello. " * 20_000))
        async with asyncio.TaskGroup() as group:
            for memory in (one, two, one, two):
                group.create_task(back_up(memory))

    assert (
        refused
        == [f"{str(target)!r} already exists: name a new file for the copy, or remove it"] * 3
    )
    assert names(target.parent) == ["copy.db"]
    async with Memory.open(f"sqlite:///{target}", read_only=True) as copy:
        assert [p for p in await copy.check() if p.level == "error"] == []


async def test_a_copy_that_cannot_be_written_names_the_copy(tmp_path: Path) -> None:
    if not hasattr(os, "geteuid") or os.geteuid() == 0:
        target = Path("/proc/copy.db")  # where even root can write no file
    else:
        (tmp_path / "closed").mkdir(mode=0o500)
        target = tmp_path / "closed" / "copy.db"
    async with Memory.open(f"sqlite:///{tmp_path / 'memory.db'}") as memory:
        with pytest.raises(StoreUnavailable, match=f"^'{target}' cannot be opened: "):
            await memory.backup(target)


@pytest.mark.parametrize("version", ["earlier", "later"])
def test_a_database_of_another_version_is_copied_as_it_is(tmp_path: Path, version: str) -> None:
    path, copy = tmp_path / "memory.db", tmp_path / "copy.db"
    with blocking.Memory.open(f"sqlite:///{path}") as memory:
        memory.conversation("chat", user="ana").append(Message.user("Hello."))
    applied = "SELECT number, name FROM schema_migrations ORDER BY number"
    with closing(apsw.Connection(str(path))) as connection:
        if version == "earlier":
            connection.execute("DELETE FROM schema_migrations WHERE number > 1")
        else:
            connection.execute("INSERT INTO schema_migrations VALUES (999, 'later', 0, '9.9')")
        known = connection.execute(applied).fetchall()

    assert main(["backup", str(copy), "--db", f"sqlite:///{path}"]) == 0
    for file in (path, copy):
        with closing(apsw.Connection(str(file))) as connection:
            assert connection.execute(applied).fetchall() == known
            assert connection.execute("SELECT count(*) FROM messages").fetchall() == [(1,)]


@pytest.mark.parametrize("content", [None, b"", b"SQLite format 3", b"x" * 200])
def test_a_file_that_is_not_a_database_of_remanence_is_not_copied(
    tmp_path: Path, content: bytes | None
) -> None:
    """Without content, there is a database of another application."""
    path, copy = tmp_path / "memory.db", tmp_path / "copy.db"
    if content is None:
        with closing(apsw.Connection(str(path))) as connection:
            connection.execute("CREATE TABLE songs (title)")
    else:
        path.write_bytes(content)

    assert main(["backup", str(copy), "--db", f"sqlite:///{path}"]) == 1
    assert names(tmp_path) == ["memory.db"]


def test_what_a_query_would_forget_is_shown_whole(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    message = "I live in Lisbon, " + "very near the river, " * 20 + "at the end of the street."
    fact = "Lives in Lisbon" + " with a dog" * 20 + " and a cat."
    with blocking.Memory.open(url) as memory:
        memory.conversation("first", user="ana").append(Message.user(message, id="m1"))
        memory.conversation("second", user="ana").append(Message.user("Hello.", id="m1"))
        memory.facts.save(fact, user="ana")

    assert main(["forget", "second", "--query", "Lisbon", "--everywhere", "--db", url]) == 0

    shown = capsysbinary.readouterr().out.decode()
    assert f"message m1 (first, 1): user: {message}\n" in shown
    assert f": {fact}\n" in shown


def test_forget_export_and_backup_work_in_the_shell(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    db = ["--db", f"sqlite:///{tmp_path / 'memory.db'}"]
    with blocking.Memory.open(db[1]) as memory:
        chat = memory.conversation("chat", user="ana")
        chat.append(
            Message.user("My number is Kestrel-2207.", id="m1"),
            Message.user("Hello.", id="m2"),
            Message.user("I live in Lisbon.", id="m3"),
        )
        chat.flush(everything=True)

    assert main(["backup", str(tmp_path / "copy.db"), *db]) == 0
    capsysbinary.readouterr()
    assert main(["backup", "sqlite:///copy.db"]) == 2
    remedy = b"sqlite:///copy.db is the URL of a database: name the new file, and the database with"
    assert remedy in b" ".join(capsysbinary.readouterr().err.split())
    assert main(["forget", "chat", "--query", "Kestrel-2207", *db]) == 0
    assert (
        b"message m1 (chat, 1): user: My number is Kestrel-2207." in capsysbinary.readouterr().out
    )
    other = ["forget", "chat", "--query", "Kestrel-2207", "--everywhere", *db]
    assert main(other) == 0
    assert b"message m1 (chat, 1): user: My number" in capsysbinary.readouterr().out
    assert main(["forget", "chat", "--query", "passport", *db]) == 0
    assert capsysbinary.readouterr().out == b"nothing to forget was found in tenant 'default'\n"
    assert main(["forget", "--user", "bo", "--yes", *db]) == 0
    unknown = capsysbinary.readouterr()
    assert unknown.out == b""
    assert unknown.err.startswith(b"nothing to forget was found of user 'bo' in tenant 'default'")
    assert main(["forget", "chat", "--message", "m1", "--yes", "--json", *db]) == 0
    receipt = json.loads(capsysbinary.readouterr().out)
    assert ([m["id"] for m in receipt["messages"]], receipt["erased"]) == (["m1"], True)
    assert b"kestrel" not in (tmp_path / "memory.db").read_bytes().lower()
    assert main(["export", "--user", "ana", *db]) == 0
    lines = [json.loads(line)["line"] for line in capsysbinary.readouterr().out.splitlines()]
    assert lines[:5] == ["user", "conversation", "message", "message", "message"]
    assert main(["forget", "chat", "--message", "m2", "--yes", "--verbose", *db]) == 0
    assert re.fullmatch(
        rb"forgotten:\nmessage m2 \(chat, 2\)\nnotes \S+\n"
        rb"remade from the other messages: 1 segment; 0 notes gone, 0 new\n",
        capsysbinary.readouterr().out,
    )
    assert main(["forget", "--user", "ana", "--yes", *db]) == 0
    summary = b"forgotten: 1 conversation, 1 message, 1 segment, 1 fact (--verbose lists them)\n"
    assert capsysbinary.readouterr().out == summary
    assert main(["forget", *db]) == 2
    assert main(["forget", "chat", *db]) == 2
    assert main(["export", "chat", *db]) == 2


def test_a_user_of_whom_only_daily_notes_are_kept_is_named_with_what_was_erased(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url, days = f"sqlite:///{tmp_path / 'memory.db'}", str(tmp_path / "days")
    monkeypatch.setenv("REMANENCE_DAILY_DIRECTORY", days)
    with blocking.Memory.open(url, settings=Settings(daily_directory=days)) as memory:
        file = memory.note("Ana called", user="ana")

    code = main(["forget", "--user", "ana", "--yes", "--db", url])

    assert code == 0
    assert not file.exists()
    assert capsys.readouterr().out.startswith("forgotten: 1 changed file")
