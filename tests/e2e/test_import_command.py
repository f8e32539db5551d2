"""`remanence import`: many conversations from one stream, each message once."""

import asyncio
import json
import re
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from remanence import Message
from remanence.blocking import Memory
from remanence.cli import import_command
from remanence.clock import SystemClock

Cli = Callable[..., CompletedProcess[str]]
WORDS = "the quick brown fox jumps over a lazy dog near the old river bank at dawn "


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'memory.db'}"


def write(path: Path, *lines: object) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


def said(conversation: str | None, text: str, **more: Any) -> dict[str, Any]:  # JSON
    named = {} if conversation is None else {"conversation": conversation}
    return {**named, "role": "user", "content": text, **more}


def imported(cli: Cli, url: str, conversation: str, *options: str) -> list[dict[str, Any]]:
    """Return the messages of a conversation."""
    run = cli("messages", conversation, "--db", url, *options)
    return [json.loads(line) for line in run.stdout.splitlines()]


def contents(cli: Cli, url: str, conversation: str, *options: str) -> list[str]:
    return [message["content"] for message in imported(cli, url, conversation, *options)]


def test_messages_go_to_their_conversations_in_order(cli: Cli, tmp_path: Path, url: str) -> None:
    lines = [said(name, f"{name}{number}") for number in range(1_500) for name in "ab"]
    file = write(tmp_path / "history.jsonl", *lines)

    run = cli("import", file, "--db", url, "--no-observe")

    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("3,000 messages on tape")
    for name in "ab":
        assert contents(cli, url, name) == [f"{name}{number}" for number in range(1_500)]


@pytest.mark.parametrize("messages", [1, 300])
def test_no_message_is_left_for_the_first_search_to_index(
    cli: Cli, tmp_path: Path, messages: int
) -> None:
    lines = [said(f"c{name}", f"m{number}") for name in range(40) for number in range(messages)]
    file = write(tmp_path / "history.jsonl", *lines)

    run = cli("import", file, "--db", f"sqlite:///{tmp_path / 'memory.db'}", "--no-observe")

    assert run.returncode == 0, run.stderr
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        states = connection.execute("SELECT last_seq, indexed_seq FROM states").fetchall()
    assert states == [(messages, messages)] * 40


@pytest.mark.skipif(sys.platform == "win32", reason="no such names of files")
@pytest.mark.parametrize("name", ["two\nlines.jsonl", "latin-\udce9.jsonl"])
def test_a_file_may_have_any_name(cli: Cli, tmp_path: Path, url: str, name: str) -> None:
    file = write(tmp_path / name, said("a", "yes"))

    for _ in range(2):
        run = cli("import", file, "--db", url)
        assert run.returncode == 0, run.stderr
    assert contents(cli, url, "a") == ["yes"]


def test_one_message_is_one_message(cli: Cli, tmp_path: Path, url: str) -> None:
    run = cli("import", write(tmp_path / "history.jsonl", said("a", "yes")), "--db", url)
    shown = cli("inspect", "a", "--db", url)

    assert run.stdout.startswith("1 message on tape")
    assert "\n1 message, " in shown.stdout
    assert "\nraw tail: 1 message from 1 on" in shown.stdout


def test_a_second_run_adds_only_what_is_new(cli: Cli, tmp_path: Path, url: str) -> None:
    lines = [said("a", "yes"), said("a", "yes"), said("a", "with an id", id=17)]
    file = write(tmp_path / "history.jsonl", *lines)
    assert cli("import", file, "--db", url).returncode == 0

    write(file, *lines, said("a", "new"))
    again = cli("import", file, "--db", url)

    assert again.stdout.startswith("4 messages on tape, 1 new and 3 already there")
    assert contents(cli, url, "a") == ["yes", "yes", "with an id", "new"]


async def test_imports_at_the_same_time_count_each_message_once(
    tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # without settings from outside
    file = write(tmp_path / "history.jsonl", *(said("a", f"m{number}") for number in range(180)))

    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(import_command.run(file=file, db=url, observe=False))

    shown = re.findall(r"180 messages on tape, (\d+) new", capsys.readouterr().out)
    assert len(shown) == 3
    assert sum(map(int, shown)) == 180


def test_a_second_file_of_a_conversation_follows_the_first(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    for name in ("may", "june"):
        file = write(tmp_path / f"{name}.jsonl", said("a", "yes"), said("a", f"in {name}"))
        run = cli("import", file, "--db", url, "--no-observe")
        assert run.returncode == 0, run.stderr

    assert contents(cli, url, "a") == ["yes", "in may", "yes", "in june"]


def test_files_of_one_name_in_two_folders_are_two_imports(
    cli: Cli, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("may", "june", "may"):
        (tmp_path / folder).mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / folder)
        lines = said("a", "yes"), said("a", f"in {folder}")
        write(Path("history.jsonl"), *lines)
        for file in ("history.jsonl", tmp_path / folder / "history.jsonl"):
            run = cli("import", file, "--db", url, "--no-observe")
            assert run.returncode == 0, run.stderr

    assert contents(cli, url, "a") == ["yes", "in may", "yes", "in june"]


def test_a_line_may_be_a_conversation_with_its_user_and_time(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    messages = [said(None, "Hello."), said(None, "Later.", created_at="2025-05-02T08:00:00+02:00")]
    head = {"conversation": "a", "tenant": "acme", "user": "ana", "date": "2025-05-01"}
    file = write(tmp_path / "history.jsonl", {**head, "messages": messages})

    assert cli("import", file, "--db", url).returncode == 0

    first, second = imported(cli, url, "a", "--tenant", "acme")
    assert first["created_at"] == "2025-05-01T00:00:00+00:00"
    assert second["created_at"] == "2025-05-02T08:00:00+02:00"
    usage = cli("inspect", "a", "--db", url, "--tenant", "acme", "--json")
    assert json.loads(usage.stdout)["user"] == "ana"


def test_a_name_beside_messages_is_that_of_each_user_message_without_one(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    messages = [
        said(None, "I live in Oslo."),
        said(None, "I live in Rome.", name="cem"),
        {"role": "assistant", "content": "Noted."},
    ]
    line = {"conversation": "a", "user": "ana", "name": "bo", "messages": messages}

    assert cli("import", write(tmp_path / "history.jsonl", line), "--db", url).returncode == 0

    names = [message.get("name") for message in imported(cli, url, "a")]
    assert names == ["bo", "cem", None]
    facts = json.loads(cli("facts", "ana", "--db", url, "--json").stdout)["facts"]
    assert {fact["summary"].partition(":")[0] for fact in facts} == {"bo", "cem"}


def test_keys_of_users_messages_that_are_not_read_are_counted(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    lines = [said("a", "Hello.", user="ana", sender="bo", rating=None, id="m1") for _ in "ab"]
    file = write(tmp_path / "history.jsonl", *lines)

    counted = json.loads(cli("import", file, "--db", url, "--json").stdout)

    assert counted["left_out"] == {"sender": 2}


def test_a_message_without_text_is_counted(cli: Cli, tmp_path: Path, url: str) -> None:
    file = write(tmp_path / "history.jsonl", said("a", "Hello."), said("a", ""))

    run = cli("import", file, "--db", url)

    assert "left out: message without text 1" in run.stdout
    assert contents(cli, url, "a") == ["Hello.", "[empty message]"]


def test_a_kind_of_message_that_is_not_known_is_counted(cli: Cli, tmp_path: Path, url: str) -> None:
    kinds = ("control", "message", "chat", ["control"])
    lines = [said("a", "Hello.", seq=1, kind=kind) for kind in kinds]
    file = write(tmp_path / "history.jsonl", *lines)

    counted = json.loads(cli("import", file, "--db", url, "--json").stdout)

    assert counted["left_out"] == {"kind": 2}
    assert [message.get("kind") for message in imported(cli, url, "a")] == [
        "control",
        None,
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"conversation": "a", "role": "user"}, "has no content"),
        (
            said(None, "Where?"),
            "line 3: {'role': 'user', 'content': 'Where?'} names no conversation",
        ),
        (said("a", "When?", created_at="soon"), "is not a time"),
        (said("a", "Another.", id="1"), "is taken by message 1"),
        ({"conversation": "a", "role": "tool", "tool_call_id": "x", "content": "?"}, "'x'"),
        (said("a", "Who?", user=["ana"]), "is not a name"),
        (said("a", "Who?", user="a\tna"), "is not a name"),
        (said("a\x1bb", "Where?"), "is not a name"),
        (said("a", "Where?", tenant=""), "is not a name"),
    ],
)
def test_a_line_that_cannot_be_imported_is_named_and_those_before_it_are_kept(
    cli: Cli, tmp_path: Path, url: str, wrong: dict[str, Any], why: str
) -> None:
    lines = [said("a", "First.", id="1"), said("a", "Second."), wrong]
    file = write(tmp_path / "history.jsonl", *lines)

    run = cli("import", file, "--db", url)

    assert run.returncode == 1
    assert run.stderr.startswith("Stopped after 2 messages, 2 of them new.\n")
    assert run.stderr.count("history.jsonl, line 3: ") == 1
    assert why in run.stderr
    assert contents(cli, url, "a") == ["First.", "Second."]
    write(file, *lines[:2], said("a", "Third."))
    assert cli("import", file, "--db", url).returncode == 0
    assert contents(cli, url, "a") == ["First.", "Second.", "Third."]


def test_a_line_in_the_place_of_another_that_was_imported_is_to_be_given_an_id(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    file = write(tmp_path / "history.jsonl", said("a", "First."))
    assert cli("import", file, "--db", url).returncode == 0

    write(file, said("a", "Another."))
    run = cli("import", file, "--db", url)

    assert run.returncode == 1
    assert 'another message was imported from this place: give the line an "id"' in run.stderr
    assert "import:" not in run.stderr
    write(file, said("a", "Another.", id="2"))
    assert cli("import", file, "--db", url).returncode == 0
    assert contents(cli, url, "a") == ["First.", "Another."]


def test_a_line_that_names_another_user_of_its_conversation_is_refused(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    users = [{"user": "ana"}, {}, {"user": "bo"}]
    lines = [said("a", f"Number {n}.", **user) for n, user in enumerate(users)]
    file = write(tmp_path / "history.jsonl", *lines)

    run = cli("import", file, "--db", url)

    assert run.returncode == 1
    assert run.stderr.startswith("Stopped after 2 messages, 2 of them new.\n")
    assert "history.jsonl, line 3: " in run.stderr
    assert contents(cli, url, "a") == ["Number 0.", "Number 1."]


def test_an_export_of_a_user_is_refused_with_what_can_be_imported(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    with Memory.open(url) as memory:
        memory.conversation("trip", user="ana").append(Message.user("My flight is LH 454."))
    (tmp_path / "ana.jsonl").write_text(cli("export", "--user", "ana", "--db", url).stdout)
    run = cli("import", tmp_path / "ana.jsonl", "--db", url)

    assert run.returncode == 1
    assert "ana.jsonl, line 1: " in run.stderr
    assert "is part of an export: it is only for reading; copy" in run.stderr
    assert "'remanence messages'" in run.stderr


def test_a_directory_is_refused_as_one(cli: Cli, tmp_path: Path) -> None:
    run = cli("import", tmp_path)

    assert run.returncode == 2
    assert "is a directory: name a file in it" in " ".join(run.stderr.split())


def test_messages_that_name_no_conversation_go_to_the_one_that_is_given(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    file = write(tmp_path / "history.jsonl", said(None, "One."), said("b", "Two."))

    assert cli("import", file, "--db", url, "--conversation", "a").returncode == 0

    assert contents(cli, url, "a") == ["One."]
    assert contents(cli, url, "b") == ["Two."]


def test_what_was_imported_is_observed(cli: Cli, tmp_path: Path, url: str) -> None:
    lines = [said(name, f"{number} {WORDS * 5}") for name in "abc" for number in range(150)]
    file = write(tmp_path / "history.jsonl", *lines)

    without = json.loads(cli("import", file, "--db", url, "--no-observe", "--json").stdout)
    whole = json.loads(cli("import", file, "--db", url, "--json").stdout)

    assert [without[key] for key in ("messages", "new", "observed_tokens")] == [450, 450, 0]
    assert (whole["messages"], whole["new"]) == (450, 0)
    assert whole["observed_tokens"] > 20_000
    assert whole["waiting"] == 0
    for name in "abc":
        state = json.loads(cli("inspect", name, "--db", url, "--json").stdout)
        assert 0 < state["observed_seq"] < 150
    assert json.loads(cli("doctor", "--db", url, "--json").stdout)["problems"] == []


def test_a_database_that_fails_while_it_is_observed_is_one_line_of_error(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    lines = [said("a", f"{number}: {WORDS * 20}") for number in range(60)]
    file = write(tmp_path / "history.jsonl", *lines)
    assert cli("import", file, "--db", url, "--no-observe").returncode == 0
    with closing(sqlite3.connect(tmp_path / "memory.db")) as database:
        database.execute("DROP TABLE model_calls")

    run = cli("import", file, "--db", url)

    assert run.returncode == 1
    assert "remanence: " in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize("key", ["created_at", "createdAt", "create_time", "timestamp", "date"])
@pytest.mark.parametrize(
    "value", ["2025-05-01T08:00:00Z", 1746086400, 1746086400.0, 1746086400000, "1746086400"]
)
def test_the_time_of_a_message_is_read_in_each_common_form(
    cli: Cli, tmp_path: Path, url: str, key: str, value: object
) -> None:
    lines = [said("a", "Hello.", **{key: value})]
    file = write(
        tmp_path / "history.jsonl",
        *lines,
        {"conversation": "b", key: value, "messages": [said(None, "Hello.")]},
    )

    assert cli("import", file, "--db", url).returncode == 0

    for name in "ab":
        (message,) = imported(cli, url, name)
        assert message["created_at"] == "2025-05-01T08:00:00+00:00"


def test_times_without_an_offset_are_in_the_time_zone_that_is_given(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    times = ("2022-07-14T21:30", "2022-07-15T04:30Z", 1657859400, "2022-07-15T06:30+02:00")
    lines = [said("a", f"Number {at}", created_at=at) for at in times]
    file = write(tmp_path / "history.jsonl", *lines)

    unknown = cli("import", file, "--db", url, "--timezone", "California")
    assert cli("import", file, "--db", url, "--timezone", "America/Los_Angeles").returncode == 0

    there = "2022-07-14T21:30:00-07:00"
    read = [message["created_at"] for message in imported(cli, url, "a")]
    assert read == [there, there, there, "2022-07-15T06:30:00+02:00"]
    assert "'California' is not a time zone: write its name" in " ".join(unknown.stderr.split())


def test_a_message_without_a_time_has_that_of_the_one_before_or_else_after(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    may, june = "2025-05-01T08:00:00+02:00", "2025-06-01T08:00:00+00:00"
    file = write(
        tmp_path / "history.jsonl",
        said("a", "At first."),
        said("b", "Dated.", created_at=june),
        said("a", "Dated.", created_at=may),
        said("b", "Undated."),
        said("a", "Undated."),
        {"conversation": "b", "date": may, "messages": [said(None, "In an older session.")]},
    )

    assert cli("import", file, "--db", url).returncode == 0

    assert [message["created_at"] for message in imported(cli, url, "a")] == [may] * 3
    assert [message["created_at"] for message in imported(cli, url, "b")] == [june] * 3


def test_a_message_without_a_time_waits_for_one_that_is_read_with_later_messages(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    may = "2025-05-01T08:00:00+00:00"
    before = [said("b", f"Number {number}.", created_at=may) for number in range(999)]
    opening, dated = said("a", "At first."), said("a", "Dated.", created_at=may)
    file = write(tmp_path / "history.jsonl", *before, opening, dated)

    assert cli("import", file, "--db", url, "--no-observe").returncode == 0

    assert [message["created_at"] for message in imported(cli, url, "a")] == [may] * 2


def test_an_import_without_times_leaves_facts_at_once(cli: Cli, tmp_path: Path, url: str) -> None:
    file = write(tmp_path / "history.jsonl", said("a", "I am allergic to peanuts."))

    assert cli("import", file, "--db", url, "--user", "ana").returncode == 0

    (fact,) = json.loads(cli("facts", "ana", "--db", url, "--json").stdout)["facts"]
    assert "peanuts" in fact["summary"]


def test_an_import_leaves_facts_that_another_process_put_off_for_more_messages(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    file = write(tmp_path / "history.jsonl", said("a", "I am allergic to peanuts."))
    cli("import", file, "--db", url, "--user", "ana", "--no-observe")
    with Memory.open(url) as memory:
        chat, clock = memory.conversation("a", user="ana"), SystemClock()
        latest = clock.now() + timedelta(seconds=5)
        while (at := chat.state().look_at) is None or at <= clock.now() <= latest:
            time.sleep(0.01)

    assert cli("import", file, "--db", url, "--user", "ana").returncode == 0

    assert json.loads(cli("facts", "ana", "--db", url, "--json").stdout)["facts"]


def test_messages_that_name_no_user_are_of_the_one_that_is_given(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    file = write(tmp_path / "history.jsonl", said("a", "One."), said("b", "Two.", user="bo"))

    assert cli("import", file, "--db", url, "--user", "me").returncode == 0

    for name, user in (("a", "me"), ("b", "bo")):
        assert json.loads(cli("inspect", name, "--db", url, "--json").stdout)["user"] == user


def test_a_user_that_is_given_leaves_conversations_to_the_user_that_they_name(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    file = write(tmp_path / "history.jsonl", said("a", "One.", user="ana"), said("a", "Two."))

    run = cli("import", file, "--db", url, "--user", "me")

    assert run.returncode == 0, run.stderr
    assert contents(cli, url, "a") == ["One.", "Two."]
    assert json.loads(cli("inspect", "a", "--db", url, "--json").stdout)["user"] == "ana"


def test_a_user_that_is_given_does_not_write_to_a_conversation_of_another(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    for user in ("ana", "me"):
        file = write(tmp_path / f"{user}.jsonl", said("a", f"I am {user}."))
        run = cli("import", file, "--db", url, "--user", user)

    assert run.returncode == 1
    assert contents(cli, url, "a") == ["I am ana."]


def test_messages_that_leave_no_facts_as_they_have_no_user_or_got_it_later_are_counted(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    file = write(
        tmp_path / "history.jsonl", said("a", "I live in Lisbon.", id="1"), said("b", "Hi.")
    )

    def run(*options: str) -> tuple[int, int, str]:
        run = cli("import", file, "--db", url, "--json", *options)
        counted = json.loads(run.stdout)
        return counted["without_user"], counted["late_users"], run.stderr

    without, again, late, known = run(), run(), run("--user", "ana"), run("--user", "ana")

    assert without[:2] == (2, 0)
    assert without[2].startswith("2 messages without a user: no facts are kept of them")
    assert again == known == (0, 0, "")
    assert late[:2] == (0, 2)
    assert late[2].startswith("conversations that got their user after their first messages: 2;")
