import asyncio
import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from tests.slow import slow_except

from remanence import Message, Policy, Settings
from remanence.blocking import Memory as BlockingMemory
from remanence.cli import main
from remanence.cli.app import COMMANDS
from remanence.errors import ModelError
from remanence.stores import open_store
from remanence.testing import ScriptedModel
from remanence.testing.store_contract.samples import observation, usage
from remanence.types import (
    ConversationRef,
    FailedStretch,
    Segment,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference" / "cli.md"

Cli = Callable[..., CompletedProcess[str]]


@pytest.fixture
def database(cli: Cli, transcript: Path, tmp_path: Path) -> str:
    """A database with one conversation, `trip`, of which a part is observed."""
    url = f"sqlite:///{tmp_path}/memory.db"
    small = ["observe_tokens=600", "tail_tokens=900", "tail_keep_tokens=200"]
    tmp_path.joinpath("remanence.toml").write_text("[policy]\n" + "\n".join(small))
    assert cli("replay", transcript, "--db", url).returncode == 0
    return url


def parsed(run: CompletedProcess[str]) -> Any:  # JSON is of many types
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.fixture(scope="module")
def demo() -> Any:  # JSON is of many types
    """What `demo --json` prints, run as a user runs it."""
    command = [sys.executable, "-m", "remanence", "demo", "--json"]
    run = subprocess.run(command, capture_output=True, check=True, text=True)
    assert run.stderr == ""
    return json.loads(run.stdout)


def test_the_demo_needs_a_fraction_of_the_tokens_of_the_full_history(demo: Any) -> None:
    saved = demo["saved"]

    assert saved["context_tokens"] < 0.5 * saved["history_tokens"]
    assert saved["prompt_tokens"] < 0.6 * saved["prompt_tokens_without_memory"]
    assert saved["repeated_prefix_share"] > 0.8
    assert saved["activations"] >= 3


def test_the_demo_covers_every_message_by_notes_or_raw(demo: Any) -> None:
    segments, state = demo["segments"], demo["state"]

    assert [s["first_seq"] for s in segments] == [1, *(s["last_seq"] + 1 for s in segments[:-1])]
    assert segments[-1]["last_seq"] == state["observed_seq"]
    assert state["active_seq"] >= state["tail_seq"] - 1
    assert demo["stats"]["first_raw_seq"] == state["tail_seq"]


def test_the_demo_ends_with_the_context_and_what_it_saved(cli: Cli) -> None:
    run = cli("demo")

    headings = ["The tape", "Tiers", "Notes", "Loss report", "The assembled context"]
    places = [run.stdout.index(f"\n{heading}") for heading in [*headings, "What it saved"]]
    assert run.returncode == 0
    assert places == sorted(places)
    assert "a prompt cache serves them" in " ".join(run.stdout.split())


def test_help_names_every_command(cli: Cli) -> None:
    run = cli("--help")

    assert run.returncode == 0
    assert all(name.split()[0] in run.stdout for name in COMMANDS)


@pytest.mark.parametrize("group", [(), ("keys",), ("config",)])
def test_the_list_of_commands_cuts_no_summary_short(cli: Cli, group: tuple[str, ...]) -> None:
    _, _, commands = cli(*group, "--help").stdout.partition("\nCommands:\n")
    assert commands
    assert "..." not in commands


def test_the_help_of_a_command_begins_with_its_line_in_the_list(cli: Cli) -> None:
    for name, summary in COMMANDS.items():
        usage, first, *_ = cli(*name.split(), "-h").stdout.split("\n\n")
        assert " ".join(first.split()) == summary, usage


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("nope",),
        ("replay",),
        ("replay", "missing.jsonl"),
        ("import", "missing.jsonl"),
        ("demo", "--nope"),
    ],
)
def test_wrong_use_exits_with_2_and_says_why_on_stderr(cli: Cli, arguments: tuple[str]) -> None:
    run = cli(*arguments)

    assert run.returncode == 2
    assert run.stderr
    assert run.stdout == ""


def test_the_version_is_that_of_the_package(cli: Cli) -> None:
    run = cli("--version")

    assert re.fullmatch(r"\d+\.\d+\.\d+\S*\n", run.stdout)


def test_help_loads_no_package_that_only_commands_need() -> None:
    code = (
        "import sys; from remanence.cli import main; main(['--help']); "
        "print(sorted({'apsw', 'opentelemetry', 'pydantic', 'rich'} & set(sys.modules)))"
    )

    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)

    assert run.stdout.splitlines()[-1] == "[]"


def test_inspect_lists_the_conversations_of_a_database(cli: Cli, database: str) -> None:
    listed = parsed(cli("inspect", "--db", database, "--json"))
    shown = cli("inspect", "--db", database)

    (state,) = listed["conversations"]
    assert (state["tenant"], state["conversation"], state["last_seq"]) == ("default", "trip", 28)
    assert state["last_seq"] >= state["observed_seq"] >= state["active_seq"] > 0
    assert "trip" in shown.stdout


def test_inspect_shows_one_conversation_with_its_tape_and_log(cli: Cli, database: str) -> None:
    document = parsed(cli("inspect", "trip", "--db", database, "--json"))
    shown = cli("inspect", "trip", "--db", database)

    assert document["segments"][0]["first_seq"] == 1
    assert [entry["version"] for entry in document["log"]] == list(
        range(1, len(document["log"]) + 1)
    )
    assert f"observed {document['observed_seq']}" in shown.stdout
    assert f"last {document['last_seq']}" in shown.stdout
    assert "Log (" in shown.stdout


def test_inspect_shows_a_segment_with_its_messages_and_what_it_lost(
    cli: Cli, database: str
) -> None:
    first = parsed(cli("inspect", "trip", "--db", database, "--json"))["segments"][0]

    document = parsed(cli("inspect", "trip", "--db", database, "--segment", first["id"], "--json"))
    shown = cli("inspect", "trip", "--db", database, "--segment", first["id"])

    assert [message["seq"] for message in document["source"]] == list(
        range(first["first_seq"], first["last_seq"] + 1)
    )
    assert document["lost"] == first["lost"]
    assert "Lost literals" in shown.stdout
    assert "Which gate has LH 454?" in shown.stdout


def test_inspect_shows_which_lines_of_a_model_became_no_note_and_why(
    cli: Cli, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    model = ScriptedModel(["#1 user: likes tea\n#1 user: pays 9,731 euros"])
    policy = Policy(observe_tokens=5, keep_last=0)
    with BlockingMemory.open(url, policy=policy, model=model) as memory:
        memory.conversation("trip").append(Message.user("I like tea, as you know."))
        memory.conversation("trip").flush()
    shown = parsed(cli("inspect", "trip", "--db", url, "--json"))
    (segment,) = shown["segments"]

    listed = cli("inspect", "trip", "--db", url, "--segment", segment["id"])

    dropped = {"text": "user: pays 9,731 euros", "reason": "invented", "detail": "9,731"}
    assert segment["dropped"] == [dropped]
    assert "1 lines dropped (1 invented)" in shown["log"][0]["detail"]
    assert "Dropped lines (1)" in listed.stdout
    assert re.search(r"invented +9,731 +user: pays 9,731 euros", listed.stdout)


def test_inspect_says_which_messages_were_given_up_and_why(cli: Cli, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    with BlockingMemory.open(url, policy=Policy(enabled=False)) as memory:
        memory.conversation("trip").append(Message.user("I like tea."), Message.user("Thanks."))
    stretch = FailedStretch(1, 1, "error", "ValueError: no tea")
    failed = observation(1, 1, id="obs_1", text="", notes=(), tokens=0, failed=(stretch,))
    asyncio.run(observe(url, failed, observation(2, 2, id="obs_2", text="", notes=(), tokens=0)))

    tape = cli("inspect", "trip", "--db", url).stdout
    given_up = cli("inspect", "trip", "--db", url, "--segment", "obs_1").stdout
    empty = cli("inspect", "trip", "--db", url, "--segment", "obs_2").stdout

    assert "given up, in no note: message 1\n" in tape
    assert "messages 1..1 are in no note: error: ValueError: no tea" in given_up
    assert "(nothing was worth a note)" not in given_up
    assert "(nothing was worth a note)" in empty


def test_inspect_says_why_a_conversation_left_no_facts(cli: Cli, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    dead = ScriptedModel(otherwise=ModelError("connection", "nobody answers"))
    with BlockingMemory.open(url, extractor=dead) as memory:
        chat = memory.conversation("trip", user="ana")
        chat.append(Message.user("I'm allergic to peanuts."))
        chat.end()

    shown = cli("inspect", "trip", "--db", url)

    assert "the facts step failed 1 time: connection: nobody answers" in shown.stdout


def test_inspect_shows_a_conversation_as_it_was_at_a_version(cli: Cli, database: str) -> None:
    now = parsed(cli("inspect", "trip", "--db", database, "--json"))
    first = parsed(cli("inspect", "trip", "--db", database, "--version", 1, "--json"))
    shown = cli("inspect", "trip", "--db", database, "--version", 0)
    unknown = cli("inspect", "trip", "--db", database, "--version", 99)

    assert [entry["version"] for entry in first["log"]] == [1]
    assert first["last_seq"] < now["last_seq"] == now["stats"]["last_seq"]
    assert [segment["last_seq"] for segment in first["segments"]] == [first["observed_seq"]]
    assert "Which gate has LH 454?" in shown.stdout.partition("Context (")[2]
    assert unknown.returncode == 1
    assert "has no version 99" in unknown.stderr
    assert cli("inspect", "trip", "--version", 1, "--flush").returncode == 2


def test_inspect_does_no_work_unless_it_is_asked_to(
    cli: Cli, database: str, tmp_path: Path
) -> None:
    before = parsed(cli("inspect", "trip", "--db", database, "--json"))
    tmp_path.joinpath("remanence.toml").write_text(
        "[policy]\nobserve_tokens = 100\nkeep_last = 0\nnote_ratio = 0.5\n"
    )

    looked = parsed(cli("inspect", "trip", "--db", database, "--json"))
    flushed = parsed(cli("inspect", "trip", "--db", database, "--flush", "--json"))

    assert looked.pop("stats") == before.pop("stats") | {"observe_due": True}
    assert looked == before
    assert flushed["observed_seq"] > before["observed_seq"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("nope",), "tenant 'default' has no conversation 'nope': 'remanence inspect' lists all"),
        (("trip", "--tenant", "t2"), "tenant 't2' has no conversation 'trip'"),
        (("trip", "--segment", "obs_0"), "conversation 'trip' has no segment 'obs_0'"),
    ],
)
def test_inspect_says_what_is_not_there(
    cli: Cli, database: str, arguments: tuple[str, ...], expected: str
) -> None:
    run = cli("inspect", *arguments, "--db", database)

    assert run.returncode == 1
    assert expected in run.stderr
    assert run.stdout == ""


@pytest.mark.parametrize("option", [("--limit", "2"), ("--after", "a"), ("--user", "ana")])
def test_an_option_of_the_list_is_wrong_use_for_one_conversation(
    cli: Cli, option: tuple[str, str]
) -> None:
    run = cli("inspect", "trip", *option)

    assert run.returncode == 2
    assert "leave out CONVERSATION" in run.stderr


def test_a_segment_without_its_conversation_is_wrong_use(cli: Cli) -> None:
    assert cli("inspect", "--segment", "obs_0").returncode == 2


@pytest.mark.parametrize("command", ["inspect", "doctor"])
def test_looking_at_a_database_does_not_make_it(cli: Cli, command: str, tmp_path: Path) -> None:
    run = cli(command, "--db", "sqlite:///none.db")

    assert run.returncode == 1
    assert run.stderr == (
        "remanence: there is no database at sqlite:///none.db: name one with --db or "
        "REMANENCE_URL\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_doctor_finds_nothing_wrong_with_a_sound_database(cli: Cli, database: str) -> None:
    shown = cli("doctor", "--db", database)

    assert shown.returncode == 0
    assert "is consistent" in shown.stdout
    assert "past retention" in shown.stdout
    assert parsed(cli("doctor", "--db", database, "--json"))["problems"] == []


def test_a_value_that_is_not_a_choice_is_named_with_the_choices(cli: Cli) -> None:
    run = cli("config", "show", "--preset", "nope")

    assert run.returncode == 2
    assert "Invalid value for '--preset': 'nope' is not one of 'default', " in run.stderr


@pytest.fixture
def problems(cli: Cli, tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    """What doctor reports after a program with its own policy worked and another appended."""

    def report(texts: int, *, worked: bool) -> list[dict[str, Any]]:
        url = f"sqlite:///{tmp_path}/own.db"
        policy = Policy(observe_tokens=20_000, tail_tokens=30_000)
        words = Message.user("some words about a trip " * 100)
        if worked:
            with BlockingMemory.open(url, policy=policy) as memory:
                memory.conversation("trip").append(words)
                memory.conversation("trip").flush()
        with BlockingMemory.open(url, settings=Settings(workers=0)) as memory:
            memory.conversation("trip").append(*[words] * texts)
        found: list[dict[str, Any]] = parsed(cli("doctor", "--db", url, "--json"))["problems"]
        return found

    return report


@pytest.mark.parametrize(("texts", "waits"), [(25, False), (50, True)])
def test_doctor_judges_what_is_due_by_the_policy_of_the_program(
    cli: Cli, problems: Callable[..., list[dict[str, Any]]], texts: int, waits: bool
) -> None:
    found = problems(texts, worked=True)

    assert bool(found) == waits
    for problem in found:
        assert (problem["level"], problem["conversation"]) == ("info", "trip")
        assert "wait to be observed" in problem["what"]
        command = problem["remedy"].rpartition("'remanence ")[2].rstrip("'")
        state = parsed(cli(*shlex.split(command), "--json"))
        assert state["observed_seq"] > 0


def test_the_command_that_a_check_names_works_on_the_database_of_the_check(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/own.db"
    with BlockingMemory.open(url, settings=Settings(workers=0)) as memory:
        memory.conversation("trip").append(*[Message.user("some words about a trip " * 100)] * 25)
        (problem,) = memory.check()

    command = problem.remedy.rpartition("'remanence ")[2].rstrip("'")
    monkeypatch.setenv("REMANENCE_URL", url)
    (known,) = parsed(cli("doctor", "--json"))["problems"]
    monkeypatch.setenv("REMANENCE_URL", "sqlite:///memory.db")
    state = parsed(cli(*shlex.split(command), "--json"))

    assert state["observed_seq"] > 0
    assert "'remanence flush trip --tenant default'" in known["remedy"]


def test_doctor_judges_what_nobody_worked_on_by_the_settings(
    problems: Callable[..., list[dict[str, Any]]],
) -> None:
    (problem,) = problems(25, worked=False)

    assert "wait to be observed" in problem["what"]


def test_doctor_names_a_lease_that_a_clock_ahead_of_ours_made(
    cli: Cli, database: str, tmp_path: Path
) -> None:
    with sqlite3.connect(tmp_path / "memory.db") as connection:
        connection.execute(
            "UPDATE states SET lease_owner = 'p1', lease_until = '2999-01-01T00:00:00.000000+00:00'"
        )
    connection.close()

    (problem,) = parsed(cli("doctor", "--db", database, "--json"))["problems"]

    assert (problem["level"], problem["conversation"]) == ("warning", "trip")
    assert "the lease of process 'p1' ends at 2999-01-01 00:00:00 UTC" in problem["what"]
    assert "clocks" in problem["remedy"]


def test_doctor_fails_on_a_file_that_is_no_database(cli: Cli, tmp_path: Path) -> None:
    tmp_path.joinpath("notes.txt").write_text("no database at all, just some words\n" * 50)

    run = cli("doctor", "--db", "sqlite:///notes.txt")

    assert run.returncode == 1
    assert "notes.txt" in run.stderr
    assert "Traceback" not in run.stderr


def test_migrate_makes_the_tables_and_tells_their_version(cli: Cli, tmp_path: Path) -> None:
    document = parsed(cli("migrate", "--db", "sqlite:///new.db", "--json"))
    shown = cli("migrate", "--db", "sqlite:///new.db")

    assert document["database"] == "sqlite:///new.db"
    assert document["schema"] >= 1
    assert f"schema version {document['schema']}" in shown.stdout
    assert tmp_path.joinpath("new.db").exists()


def test_flush_does_the_work_of_a_conversation_at_once(cli: Cli, database: str) -> None:
    before = parsed(cli("inspect", "trip", "--db", database, "--json"))
    due = cli("flush", "trip", "--db", database)
    after = parsed(cli("flush", "trip", "--db", database, "--everything", "--retry", "--json"))

    assert before["observed_seq"] < before["last_seq"] == after["observed_seq"]
    assert due.returncode == 0
    assert f"trip: observed {before['observed_seq']} of {before['last_seq']} messages" in due.stdout


def test_config_show_tells_each_value_and_where_it_came_from(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tmp_path.joinpath("remanence.toml").write_text("workers = 2\n")
    monkeypatch.setenv("REMANENCE_POLICY__KEEP_LAST", "3")

    document = parsed(cli("config", "show", "--preset", "zora", "--db", "sqlite:///a.db", "--json"))
    sources = {key: (entry["value"], entry["source"]) for key, entry in document.items()}

    assert sources["url"] == ("sqlite:///a.db", "argument")
    assert sources["workers"] == (2, "file remanence.toml")
    assert sources["policy.keep_last"] == (3, "environment")
    assert sources["policy.tail_tokens"] == (30_000, "preset zora")
    assert sources["durability"] == ("full", "default")


def test_config_show_masks_the_password_in_the_address_of_a_model(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = "openai:m@http://ana:pw-5@5@gpu.internal:8000/v1"
    monkeypatch.setenv("REMANENCE_MODEL", model)

    run = cli("config", "show", "--json")

    shown = json.loads(run.stdout)
    assert "5@" not in run.stdout
    assert shown["model"]["value"] == "openai:m@http://ana:***@gpu.internal:8000/v1"


def test_config_show_names_settings_that_contradict_one_another(cli: Cli, tmp_path: Path) -> None:
    budget = '[[budgets]]\nscope = "user"\nhard_usd = 1.0\n'
    tmp_path.joinpath("remanence.toml").write_text(f"usage_keep_days = 7\n{budget}")

    run = cli("config", "show")

    assert run.returncode == 1
    assert "the budget of each user counts all model calls, but usage_keep_days=7" in run.stderr


def test_config_show_names_the_key_of_another_systems_file(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {"enabled": True, "messageTokenThreshold": 1_500}
    tmp_path.joinpath("lango.json").write_text(json.dumps({"observationalMemory": keys}))
    monkeypatch.setenv("REMANENCE_CONFIG", "lango.json")

    run = cli("config", "show", "--json")

    shown = json.loads(run.stdout)
    assert shown["preset"]["value"] == "lango"
    assert shown["policy.observe_tokens"]["value"] == 1_500
    assert shown["policy.observe_tokens"]["source"] == (
        "file lango.json: observationalMemory.messageTokenThreshold"
    )
    assert "an observation is due when the tokens" in shown["policy.observe_tokens"]["meaning"]
    assert shown["policy.reflect_tokens"]["source"] == "preset lango"


@pytest.mark.req("X-21")
def test_config_alone_shows_the_settings_with_their_meaning(cli: Cli) -> None:
    run = cli("config")

    assert run.returncode == 0
    assert "policy.tail_tokens = 8,000  (default)" in run.stdout
    assert "prices = []  (default)" in run.stdout  # as a variable is written
    assert "the budget of the raw tail; above it, activation is due." in run.stdout
    assert parsed(cli("config", "--json")) == parsed(cli("config", "show", "--json"))
    misplaced = cli("config", "--json", "path")
    assert misplaced.returncode == 2
    assert "write --json after 'path'" in misplaced.stderr


def test_a_very_long_id_is_shortened_in_a_table_and_whole_in_json(cli: Cli, tmp_path: Path) -> None:
    url, name = f"sqlite:///{tmp_path / 'ids.db'}", "trip-" * 100
    with BlockingMemory.open(url) as memory:
        memory.conversation(name).append(Message.user("Hello."))
    listed = cli("inspect", "--db", url)
    whole = parsed(cli("inspect", "--db", url, "--json"))

    assert name not in listed.stdout
    assert f"{name[:117]}..." in listed.stdout
    assert [each["conversation"] for each in whole["conversations"]] == [name]


@pytest.mark.parametrize(
    "command",
    [
        ("messages", "trip" * 1_000),
        ("inspect", "trip", "--segment", "obs" * 1_000),
        ("forget", "trip", "--yes", "--message", "m" * 1_000),
        ("forget", "trip", "--yes", "--fact", "f" * 1_000),
        ("export", "--user", "ana" * 1_000),
        ("facts", "ana" * 1_000),
    ],
)
def test_an_error_names_only_the_beginning_of_a_very_long_id(
    cli: Cli, database: str, command: tuple[str, ...]
) -> None:
    run = cli(*command, "--db", database)

    assert command[-1][:70] in run.stderr + run.stdout
    assert len(run.stderr + run.stdout) < 500


def test_a_very_long_id_does_not_widen_the_rows_of_a_table_on_a_terminal(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'ids.db'}"
    long, usual = "trip-" * 600, f"begins-{'0' * 32}-{'1' * 16}"
    with BlockingMemory.open(url) as memory:
        for name in (long, usual):
            memory.conversation(name).append(Message.user("Hello."))
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    monkeypatch.setenv("COLUMNS", "80")
    listed = re.sub(r"\x1b\[[\d;]*m", "", cli("inspect", "--db", url).stdout)

    assert max(map(len, listed.splitlines())) < 150
    assert f"{long[:57]}..." in listed
    assert usual in listed


@pytest.mark.req("X-21")
def test_every_setting_has_a_meaning_and_a_variable(cli: Cli) -> None:
    document = parsed(cli("config", "show", "--json"))

    assert [key for key, entry in document.items() if not entry["meaning"]] == []
    assert document["policy.keep_last"]["variable"] == "REMANENCE_POLICY__KEEP_LAST"


def test_a_password_in_a_url_is_not_shown(cli: Cli) -> None:
    shown = cli("config", "show", "--db", "postgresql://ana:secret@db/memory")
    failed = cli("doctor", "--db", "other://ana:secret@db/memory")

    assert "postgresql://ana:***@db/memory" in shown.stdout
    assert "secret" not in shown.stdout + failed.stderr


def test_config_path_names_the_file_that_is_read(cli: Cli, tmp_path: Path) -> None:
    assert parsed(cli("config", "path", "--json"))["file"] is None
    tmp_path.joinpath("remanence.json").write_text("{}")

    assert parsed(cli("config", "path", "--json"))["file"] == str(tmp_path / "remanence.json")


def test_migrate_needs_no_key_of_the_models_in_the_settings(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setenv("REMANENCE_OBSERVER_MODEL", "anthropic:claude-haiku-4-5")

    assert cli("migrate").returncode == 0


def test_bad_settings_fail_before_anything_is_opened(cli: Cli, tmp_path: Path) -> None:
    tmp_path.joinpath("remanence.toml").write_text("[policy]\ntail_tokens = 500\n")

    run = cli("migrate")

    assert run.returncode == 1
    assert "tail_keep_tokens=1500 is impossible" in run.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["remanence.toml"]


def test_a_bad_budget_of_the_environment_is_said_to_be_there(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMANENCE_BUDGETS", '[{"usd": "much"}]')
    run = cli("migrate")
    assert run.returncode == 1
    assert "(environment) is impossible" in run.stderr


def test_notes_of_nobody_are_a_failure(
    cli: Cli, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMANENCE_DAILY_DIRECTORY", str(tmp_path))
    notes = cli("consolidate", "--user", "nobody", "--db", database)

    assert notes.returncode == 1
    assert "no daily notes of user 'nobody'" in notes.stderr


def test_a_failure_is_one_line_and_with_debug_also_a_traceback(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "remanence"]
    doctor = ["doctor", "--db", "sqlite:///none.db"]

    plain, debug = (
        subprocess.run(
            [*command, *options, *doctor],
            capture_output=True,
            check=False,
            cwd=tmp_path,
            text=True,
        )
        for options in ([], ["--debug"])
    )

    assert (plain.returncode, debug.returncode) == (1, 1)
    assert len(plain.stderr.splitlines()) == 1
    assert "Traceback" in debug.stderr
    assert debug.stderr.endswith(plain.stderr)


def test_the_tape_is_drawn_in_ascii_where_the_terminal_has_no_more(
    database: str, tmp_path: Path
) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "remanence", "inspect", "trip", "--db", database]

    run = subprocess.run(command, capture_output=True, check=True, cwd=tmp_path, env=environment)

    text = run.stdout.decode("ascii")
    assert re.search(r"^\[[#=.-]+\]$", text, re.MULTILINE)
    assert "^ last 28" in text or "last 28 ^" in text
    assert "\x1b" not in text


@pytest.mark.skipif(os.name != "posix", reason="a shell closes streams by POSIX")
@pytest.mark.parametrize(
    ("command", "streams", "told"),
    [
        ("inspect", ">&-", "remanence: the standard output: Bad file descriptor"),
        ("messages trip", ">&- <&-", "remanence: the standard output: Bad file descriptor"),
        ("delete trip", "<&-", "nothing was deleted: answer 'yes', or pass --yes"),
        ("delete trip", "2>&-", ""),
    ],
)
def test_a_stream_that_is_closed_is_a_failure_without_a_traceback(
    database: str, command: str, streams: str, told: str
) -> None:
    shell = f'"{sys.executable}" -m remanence {command} --db "{database}" {streams}'

    run = subprocess.run(
        ["/bin/sh", "-c", shell], capture_output=True, check=False, text=True, input=""
    )

    assert run.returncode == 1
    assert "Traceback" not in run.stderr
    assert run.stderr.strip().endswith(told)


def test_no_command_prints_a_character_that_drives_a_terminal(cli: Cli, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    hostile = "I live at \x1b]0;owned\x07 gate \x9b31m B42\u202e and \u2066 the gate is\x7f mine."
    with BlockingMemory.open(url) as memory:
        chat = memory.conversation("trip", user="ana")
        for number in range(3):
            chat.append(Message.user(f"{number}. {hostile}"))
        chat.end()
        memory.facts.save(f"Ana says: {hostile}", user="ana")
        (segment, *_) = chat.observations()
    commands = [
        ("inspect", "trip"),
        ("inspect", "trip", "--version", "1"),
        ("inspect", "trip", "--segment", segment.id),
        ("inspect", "trip", "--json"),
        ("messages", "trip"),
        ("recall", "trip", "gate"),
        ("recall", "trip", "gate", "--json"),
        ("search", "--user", "ana", "gate"),
        ("facts", "ana"),
        ("facts", "ana", "--json"),
        ("export", "--user", "ana"),
        ("forget", "trip", "--query", "gate"),
    ]
    for command in commands:
        run = cli(*command, "--db", url)
        shown = run.stdout + run.stderr
        assert (run.returncode, "B42" in shown) == (0, True), command
        assert re.search("[^\n\t -~\xa0-\u2029\u202f-\u2065\u206a-\U0010ffff]", shown) is None, (
            command
        )

    lines = cli("messages", "trip", "--db", url).stdout.splitlines()
    assert json.loads(lines[0])["content"] == f"0. {hostile}"


def test_a_line_is_whole_where_no_terminal_wraps_it(
    cli: Cli, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")

    lines = cli("doctor", "--db", database).stdout.splitlines()
    hits = cli("recall", "trip", "flight", "--db", database).stdout.splitlines()
    tape = cli("inspect", "trip", "--db", database).stdout.splitlines()

    assert any(
        line.startswith("(Due work is") and line.endswith("config show'.)") for line in lines
    )
    assert any(re.fullmatch(r"raw tail: .* tokens", line) for line in tape)
    assert len(hits) > 1
    assert all(hit.startswith(("kind", "note", "message")) for hit in hits)


def test_output_that_nobody_reads_is_no_error_message(database: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "remanence", "inspect", "trip", "--db", database]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read()

    assert errors == b""


def test_every_command_is_documented() -> None:
    text = REFERENCE.read_text(encoding="utf-8")

    assert [name for name in COMMANDS if f"## `remanence {name}" not in text] == []


def test_every_option_is_documented(cli: Cli) -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    missing = {
        (name, option)
        for name in COMMANDS
        for option in re.findall(r"(--[a-z]+)", cli(*name.split(), "--help").stdout)
        if option != "--help" and f"`{option}" not in text
    }

    assert missing == set()


def test_main_gives_the_exit_code_instead_of_leaving_the_process() -> None:
    assert main(["--version"]) == 0


def test_doctor_names_like_findings_once_with_a_count_and_examples(
    cli: Cli, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    with BlockingMemory.open(url, settings=Settings(workers=0)) as memory:
        for number in range(90):
            chat = memory.conversation(f"chat-{number:02}")
            chat.append(*(Message.user("seven brave sailors " * (90 + number)) for _ in range(20)))

    run = cli("doctor", "--db", url)

    assert run.returncode == 0
    assert run.stdout.count("tokens wait to be observed") == 1
    assert "90 conversations: 'chat-00'" in run.stdout
    assert "or if there is none yet, by the settings here" in " ".join(run.stdout.split())


def test_doctor_reports_a_damaged_row_and_goes_on(cli: Cli, database: str) -> None:
    connection = sqlite3.connect(database.removeprefix("sqlite:///"))
    with connection:
        connection.execute("UPDATE states SET observe_failure = '['")
        connection.execute("UPDATE messages SET content = '{' WHERE seq = 5")
    connection.close()

    run = cli("doctor", "--db", database)

    assert run.returncode == 1
    assert "message 5 cannot be read" in run.stdout
    assert "state 1 cannot be read" in run.stdout


@pytest.mark.parametrize("command", ["doctor", "inspect", "usage"])
def test_looking_at_an_empty_file_names_it(cli: Cli, command: str, tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()

    run = cli(command, "--db", f"sqlite:///{tmp_path}/empty.db")

    assert run.returncode == 1
    assert "empty.db" in run.stderr
    assert "is an empty file" in run.stderr


def test_the_help_of_a_key_names_the_scopes(cli: Cli) -> None:
    shown = " ".join(cli("keys", "create", "--help").stdout.split())

    assert "read, write, erase, metrics; may be repeated" in shown


def test_a_key_is_revoked_by_its_token_which_is_never_printed(cli: Cli, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/memory.db"
    token = cli("keys", "create", "app", "--db", database).stdout.strip()
    key_id = token.split("_")[1]

    first, second = (cli("keys", "revoke", token, "--db", database) for _ in range(2))
    by_id = cli("keys", "revoke", key_id, "--db", database)
    unknown = cli("keys", "revoke", "rk_0_secret", "--db", database)

    assert (first.returncode, first.stdout) == (0, f"revoked {key_id}\n")
    assert (second.returncode, second.stdout) == (0, f"{key_id} is revoked already\n")
    assert by_id.stdout == second.stdout
    assert unknown.returncode == 1
    assert unknown.stderr.startswith("remanence: there is no key")
    assert "secret" not in unknown.stderr


ON_EXISTING = (
    ["forget", "--user", "ana", "--yes"],
    ["forget", "trip", "--message", "m1", "--yes"],
    ["delete", "trip", "--yes"],
    ["flush", "trip"],
    ["import-notes", "trip", "--from", "."],
    ["consolidate"],
    ["keys", "revoke", "key"],
)
"""Commands that write, to a database that exists."""


@pytest.mark.parametrize("command", ON_EXISTING, ids=" ".join)
def test_a_command_on_an_empty_file_fails_and_leaves_it_empty(
    cli: Cli, command: list[str], tmp_path: Path
) -> None:
    (tmp_path / "empty.db").touch()

    run = cli(*command, "--db", f"sqlite:///{tmp_path}/empty.db")

    assert run.returncode == 1
    assert "is an empty file" in run.stderr
    assert (tmp_path / "empty.db").read_bytes() == b""


@pytest.mark.parametrize(
    "command",
    [
        *ON_EXISTING,
        ["inspect"],
        ["import", "said.jsonl"],
        ["replay", "said.jsonl"],
        ["keys", "create", "app"],
    ],
    ids=" ".join,
)
def test_a_command_on_tables_of_an_earlier_version_asks_for_a_migration_and_changes_nothing(
    cli: Cli, command: list[str], tmp_path: Path
) -> None:
    (tmp_path / "said.jsonl").write_text('{"role": "user", "content": "Hi.", "conversation": "a"}')
    database = f"sqlite:///{tmp_path}/memory.db"
    assert cli("migrate", "--db", database).returncode == 0
    connection = sqlite3.connect(tmp_path / "memory.db")
    with connection:
        connection.execute("DELETE FROM schema_migrations WHERE number > 1")
    connection.close()
    before = (tmp_path / "memory.db").read_bytes()

    run = cli(*command, "--db", database)

    assert run.returncode == 1
    assert "has tables of an earlier version: run 'remanence migrate' on it" in run.stderr
    assert (tmp_path / "memory.db").read_bytes() == before


def test_consolidating_where_there_is_no_database_creates_none(cli: Cli, tmp_path: Path) -> None:
    run = cli("consolidate", "--db", f"sqlite:///{tmp_path}/memory.db")

    assert run.returncode == 1
    assert "there is no database at" in run.stderr
    assert not (tmp_path / "memory.db").exists()


def test_a_model_whose_package_is_missing_is_named_in_a_line(cli: Cli, tmp_path: Path) -> None:
    run = cli("chat", "--model", "mistral:foo", "--db", f"sqlite:///{tmp_path}/memory.db")

    assert run.returncode == 1
    assert run.stderr.count("\n") == 1
    assert "'mistral:foo' needs the package of its provider: pip install" in run.stderr


def test_messages_are_printed_as_a_transcript_that_replay_reads(
    cli: Cli, database: str, tmp_path: Path
) -> None:
    printed = cli("messages", "trip", "--db", database)
    (tmp_path / "again.jsonl").write_text(printed.stdout)
    copy = f"sqlite:///{tmp_path}/copy.db"
    cli("replay", tmp_path / "again.jsonl", "--db", copy)

    def texts(url: str, conversation: str) -> list[tuple[int, str, str | None]]:
        with BlockingMemory.open(url, read_only=True) as memory:
            messages = memory.conversation(conversation).messages()
            return [(m.seq, m.full_text, m.name) for m in messages]

    assert printed.stdout.count("\n") == 28
    assert texts(copy, "again") == texts(database, "trip")
    assert cli("messages", "trip", "--after", 26, "--db", database).stdout.count("\n") == 2


def test_a_message_is_printed_in_one_line_with_the_id_that_forget_takes_also_if_it_has_results(
    cli: Cli, tmp_path: Path
) -> None:
    url, copy = f"sqlite:///{tmp_path}/memory.db", f"sqlite:///{tmp_path}/copy.db"
    calls = tuple(ToolCallPart(id=id_, name="gate", arguments="{}") for id_ in ("a", "b", "c"))
    results = tuple(
        ToolResultPart(call_id=call.id, content=(TextPart(text=f"Gate {call.id}."),))
        for call in calls
    )
    told = TextPart(text="Here they are.")
    with BlockingMemory.open(url) as memory:
        chat = memory.conversation("trip")
        chat.append(
            Message.user("Which gates?"),
            Message(role="assistant", content=calls),
            Message(role="tool", content=results),
            Message(role="user", name="Ana", content=(*results, told)),
        )
        tape = chat.messages()
    printed = cli("messages", "trip", "--db", url)
    lines = [json.loads(line) for line in printed.stdout.splitlines()]
    (tmp_path / "trip.jsonl").write_text(printed.stdout)
    cli("import", tmp_path / "trip.jsonl", "--conversation", "trip", "--db", copy)

    assert [(line["seq"], line["id"]) for line in lines] == [(m.seq, m.id) for m in tape]
    with BlockingMemory.open(copy, read_only=True) as memory:
        copied = memory.conversation("trip").messages()
    assert [(m.id, m.role, m.name, m.content) for m in copied] == [
        (m.id, m.role, m.name, m.content) for m in tape
    ]
    forgotten = cli("forget", "trip", "--message", lines[3]["id"], "--yes", "--db", url)
    assert forgotten.stdout.startswith("forgotten: 1 message")


def test_printed_messages_are_a_whole_copy_whatever_provider_they_come_from(
    cli: Cli, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    call = {"type": "tool_use", "id": "c1", "name": "weather", "input": {}}
    thought = {"type": "thinking", "thinking": "Use the tool.", "signature": "s1"}
    cited = {"type": "text", "text": "Rain.", "citations": [{"type": "char_location"}]}
    signed = {"functionCall": {"name": "weather", "args": {}}, "thoughtSignature": "s2"}
    with BlockingMemory.open(url) as memory:
        chat = memory.conversation("trip", user="ana")
        chat.append(
            Message.user("Weather in Rome?", name="Ana Maria"),
            Message.from_anthropic({"role": "assistant", "content": [thought, call]}),
            Message.tool("c1", "timeout", is_error=True),
            Message.from_anthropic({"role": "assistant", "content": [cited]}),
            Message.from_gemini({"role": "model", "parts": [signed]}),
            Message.user("Answer briefly.", kind="control"),
            Message.user("Notes: Rome.", kind="memory"),
            Message.user("My PIN is 1234.", id="pin"),
        )
        chat.forget("pin")
        tape = chat.messages()
    printed = cli("messages", "trip", "--db", url)
    (tmp_path / "trip.jsonl").write_text(printed.stdout)
    copy = ("import", tmp_path / "trip.jsonl", "--db", url, "--user", "ana", "--conversation")
    again = json.loads(cli(*copy, "trip", "--json").stdout)
    assert cli(*copy, "copy").returncode == 0

    assert printed.stderr == ""
    assert (again["messages"], again["new"], again["left_out"]) == (8, 0, {})
    with BlockingMemory.open(url, read_only=True) as memory:
        copied = memory.conversation("copy", user="ana").messages()
    assert [(m.role, m.name, m.content) for m in copied] == [
        (m.role, m.name, m.content) for m in tape
    ]
    assert [m.kind for m in copied] == [*["message"] * 5, "control", "memory", "control"]


def test_printed_messages_that_lose_something_are_counted(cli: Cli, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    reasoning = {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "e"}
    answer = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "B42."}],
    }
    with BlockingMemory.open(url) as memory:
        messages = Message.from_openai_responses([reasoning, answer])
        memory.conversation("trip").append(Message.user("Which gate?"), *messages)

    printed = cli("messages", "trip", "--db", url)

    assert printed.stdout.count("\n") == 2
    assert printed.stderr.startswith(
        "messages that lose something in each provider's form: 1, the first is number 2"
    )


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "command",
    slow_except(["messages trip", "config", "doctor", "config --json"], ["messages trip"]),
)
def test_a_command_whose_reader_leaves_ends_quietly_as_by_sigpipe(
    database: str, command: str, unbuffered: str
) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    db = ["--db", database] if command.startswith(("messages", "doctor")) else []
    run = subprocess.run(
        [sys.executable, "-m", "remanence", *command.split(), *db],
        stdout=write_end,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        check=False,
        text=True,
    )
    os.close(write_end)

    assert (run.returncode, run.stderr) == (141, "")


@pytest.mark.parametrize(
    ("options", "place"), [((), "the standard output"), (("--json", "/dev/full"), "/dev/full")]
)
@pytest.mark.parametrize("unbuffered", slow_except(["", "1"], [""]))
def test_an_output_without_space_is_named(
    transcript: Path, options: tuple[str, ...], place: str, unbuffered: str
) -> None:
    with Path("/dev/full").open("w") as full:
        run = subprocess.run(
            [sys.executable, "-m", "remanence", "replay", transcript, *options],
            stdout=full,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            check=False,
            text=True,
        )

    assert run.returncode == 1
    assert run.stderr.splitlines()[-1] == f"remanence: {place}: No space left on device"


def test_search_finds_words_in_all_conversations_of_a_user(cli: Cli, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    with BlockingMemory.open(url) as memory:
        for name, user in (("trip", "ana"), ("party", "ana"), ("other", "bo")):
            memory.conversation(name, user=user).append(Message.user(f"Tulips for {name}."))

    found = parsed(cli("search", "--user", "ana", "tulips", "--db", url, "--json"))["hits"]
    shown = cli("search", "--user", "ana", "tulips", "--db", url).stdout
    nothing = cli("search", "--user", "ana", "aardvark", "--db", url)

    assert {hit["conversation"] for hit in found} == {"trip", "party"}
    assert "party" in shown
    assert (nothing.returncode, nothing.stdout) == (0, "nothing of user 'ana' matches 'aardvark'\n")


@pytest.mark.parametrize("command", [("search", "--user", "ana"), ("recall", "trip")])
@pytest.mark.parametrize(
    ("options", "found"),
    [
        (("--since", "2026-03", "--until", "2026-03-02"), {"I pay the rent on the first."}),
        (("--until", "2026-03"), set()),
        (("--kind", "fact", "--since", "2026-04"), {"The rent is 900 euros."}),
    ],
)
def test_a_search_takes_a_period_and_a_kind(
    cli: Cli, tmp_path: Path, command: tuple[str, ...], options: tuple[str, ...], found: set[str]
) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    with BlockingMemory.open(url) as memory:
        rent = [
            Message.user(
                "I pay the rent on the first.", created_at=datetime(2026, 3, 1, tzinfo=UTC)
            ),
            Message.user("Did the rent rise?", created_at=datetime(2026, 4, 1, tzinfo=UTC)),
        ]
        memory.conversation("trip", user="ana").append(*rent)
        start = datetime(2026, 4, 2, tzinfo=UTC)
        memory.facts.save("The rent is 900 euros.", user="ana", valid_from=start)

    hits = parsed(cli(*command, "rent", *options, "--db", url, "--json"))["hits"]

    assert {hit["text"] for hit in hits if hit["kind"] != "note"} == found


def test_recall_finds_messages_by_words(cli: Cli, database: str) -> None:
    found = parsed(cli("recall", "trip", "gate B42", "--db", database, "--json"))["hits"]
    shown = cli("recall", "trip", "gate B42", "--db", database, "--limit", 1)
    nothing = cli("recall", "trip", "aardvark", "--db", database)

    assert "B42" in found[0]["snippet"]
    assert "B42" in shown.stdout
    assert "matches 'aardvark'" in nothing.stdout


def test_tables_show_times_in_utc_whatever_offset_a_message_has(cli: Cli, tmp_path: Path) -> None:
    file, url = tmp_path / "trip.jsonl", f"sqlite:///{tmp_path}/memory.db"
    said = {"role": "user", "content": "The gate is B42.", "created_at": "2026-05-02T00:30+02:00"}
    file.write_text(json.dumps({"conversation": "trip", **said}))
    assert cli("import", file, "--db", url).returncode == 0

    assert "2026-05-01 22:30" in cli("recall", "trip", "gate", "--db", url).stdout


def test_one_long_fact_does_not_pad_the_other_lines_in_a_pipe(cli: Cli, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    with BlockingMemory.open(url) as memory:
        memory.facts.save("Ana lives in Lisbon", user="ana")
        memory.facts.save(f"Ana keeps bees {'and sells their honey ' * 40}", user="ana")

    head, *lines = cli("facts", "ana", "--db", url).stdout.splitlines()

    assert len(lines) == 2
    assert max(map(len, lines)) > 800
    assert all(line == line.rstrip() for line in [head, *lines])


def test_facts_of_a_user_are_listed_and_found(cli: Cli, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    with BlockingMemory.open(url) as memory:
        memory.facts.save("Ana lives in Lisbon", user="ana")
        memory.facts.save("Ana keeps bees", user="ana", type="behavior", tags=["hobby"])

    listed = parsed(cli("facts", "ana", "--db", url, "--json"))["facts"]
    found = cli("facts", "ana", "--search", "bees", "--db", url)

    assert {fact["summary"] for fact in listed} == {"Ana lives in Lisbon", "Ana keeps bees"}
    assert "Ana keeps bees" in found.stdout
    assert "hobby" in found.stdout
    assert "Lisbon" not in found.stdout
    missing = cli("facts", "bo", "--db", url)
    assert missing.stdout == f"tenant 'default' of {url} has no facts of user 'bo'\n"
    assert "'remanence inspect --json' lists the tenants and users" in missing.stderr
    searched = cli("facts", "ana", "--search", "wasps", "--db", url)
    assert "has no such fact of user 'ana'" in searched.stdout


def test_delete_erases_a_conversation_only_when_somebody_said_yes(cli: Cli, database: str) -> None:
    command = [sys.executable, "-m", "remanence", "delete", "trip", "--db", database]
    refused = subprocess.run(command, check=False, input="no\n", capture_output=True, text=True)
    kept = parsed(cli("inspect", "--db", database, "--json"))["conversations"]
    done = cli("delete", "trip", "--yes", "--db", database)

    assert refused.returncode == 1
    assert "nothing was deleted" in refused.stderr
    assert len(kept) == 1
    assert done.returncode == 0
    assert parsed(cli("inspect", "--db", database, "--json"))["conversations"] == []
    assert cli("delete", "trip", "--yes", "--db", database).returncode == 1


def test_a_repeated_delete_erases_what_another_process_kept_in_use(database: str) -> None:
    command = [sys.executable, "-m", "remanence", "delete", "trip", "--yes", "--db", database]
    delete = partial(subprocess.run, command, check=False, capture_output=True, text=True)
    reader = sqlite3.connect(database.removeprefix("sqlite:///"), isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM messages").fetchone()
    runs = [delete()]
    reader.close()
    runs += [delete(), delete()]

    assert [run.returncode for run in runs] == [1, 0, 1]
    assert "when that process is done" in runs[0].stderr
    assert "has no conversation 'trip'" in runs[2].stderr


@pytest.mark.parametrize("command", [["delete", "trip"], ["forget", "--user", "ana"]])
def test_ctrl_c_ends_a_question_at_once_and_erases_nothing(
    cli: Cli, database: str, command: list[str]
) -> None:
    shell = [sys.executable, "-m", "remanence", *command, "--db", database]
    with subprocess.Popen(shell, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stderr is not None
        shown = b""
        while b"Type yes: " not in shown:
            shown += run.stderr.read(1)
        run.send_signal(signal.SIGINT)
        code = run.wait(5)

    assert code == 130
    assert parsed(cli("inspect", "--db", database, "--json"))["conversations"]


def test_without_a_terminal_the_question_ends_its_line(database: str) -> None:
    command = [sys.executable, "-m", "remanence", "delete", "trip", "--db", database]
    run = subprocess.run(command, check=False, input="no\n", capture_output=True, text=True)

    question, answer = run.stderr.splitlines()
    assert question.endswith("Type yes: ")
    assert answer.startswith("nothing was deleted")


@pytest.mark.parametrize("command", [["delete", "tripp"], ["forget", "tripp", "--message", "m1"]])
def test_nobody_is_asked_about_a_conversation_that_does_not_exist(
    cli: Cli, database: str, command: list[str]
) -> None:
    done = cli(*command, "--db", database)

    assert done.returncode == 1
    assert "has no conversation 'tripp'" in done.stderr
    assert "Type yes" not in done.stderr


def test_inspect_lists_a_page_with_unbroken_ids_and_says_how_to_go_on(
    cli: Cli, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    ids = [f"{number:08}-1b9d-4bed-8cb4-2f24a9cf8d1e-{'x' * 60}" for number in range(5)]
    with BlockingMemory.open(url) as memory:
        for name in ids:
            memory.conversation(name).append(Message.user("Hello."))

    first = cli("inspect", "--db", url, "--limit", 3)
    rest = parsed(cli("inspect", "--db", url, "--after", ids[2], "--json"))

    assert [name for name in ids if name in first.stdout] == ids[:3]
    assert f"--after {ids[2]!r}" in first.stderr
    assert [state["conversation"] for state in rest["conversations"]] == ids[3:]
    assert rest["more"] is False


def test_inspect_lists_the_conversations_of_one_user_of_the_default_tenant(
    cli: Cli, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    with BlockingMemory.open(url) as memory:
        for name, tenant in (("ana", "default"), ("bob", "default"), ("ana", "other")):
            memory.conversation(f"{name} at {tenant}", user=name, tenant=tenant).append(
                Message.user("Hello.")
            )

    listed = parsed(cli("inspect", "--db", url, "--user", "ana", "--json"))
    nobody = cli("inspect", "--db", url, "--user", "carl")

    assert [state["conversation"] for state in listed["conversations"]] == ["ana at default"]
    assert "holds no conversation of user 'carl'" in nobody.stdout


def test_a_list_without_a_further_conversation_says_after_which_one(
    cli: Cli, database: str
) -> None:
    run = cli("inspect", "--db", database, "--after", "zzz")

    assert run.returncode == 0
    assert "holds no conversation after 'zzz'" in run.stdout


def test_inspect_shows_the_notes_of_a_conversation(cli: Cli, database: str) -> None:
    document = parsed(cli("inspect", "trip", "--db", database, "--json"))
    shown = cli("inspect", "trip", "--db", database)

    newest = document["segments"][-1]["text"].splitlines()[-1]
    assert "\nNotes" in shown.stdout
    assert " ".join(newest.split())[:60] in " ".join(shown.stdout.split())


def test_usage_shows_every_figure_whole_in_80_columns(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    large = usage(input_tokens=123_456_789_012, output_tokens=9_876_543_210, cost_usd=98_765.4321)
    models = ("anthropic:claude-sonnet-4-5-20250929", "openai:an-organisation/its-own-model-large")
    calls = [
        replace(large, model=model, purpose=purpose, cache_read_tokens=111_222_333_444)
        for model in models
        for purpose in ("observe", "reflect", "chat")
    ]
    asyncio.run(record(url, calls))
    monkeypatch.setenv("COLUMNS", "80")

    lines = cli("usage", "--db", url).stdout.splitlines()

    assert max(map(len, lines)) <= 80
    figures = ["1", "0", "123,456,789,012", "111,222,333,444", "9,876,543,210", "98,765.4321"]
    rows = [line.split() for line in lines if line.startswith(("observe", "reflect", "chat"))]
    assert [row[1:] for row in rows] == [figures] * 6
    assert [line for line in lines if line in models] == sorted(models)


async def observe(url: str, *segments: Segment) -> None:
    store = await open_store(url)
    for segment in segments:
        state = await store.state(ConversationRef("default", "trip"))
        assert state is not None
        await store.commit_observation(state, segment)
    await store.close()


async def record(url: str, calls: list[Usage]) -> None:
    store = await open_store(url)
    await store.record_usage(calls)
    await store.close()


@pytest.mark.parametrize("value", ["2026-13", "2026-02-30", "may"])
def test_a_time_that_usage_cannot_read_is_named_as_it_was_written(cli: Cli, value: str) -> None:
    run = cli("usage", "--since", value)

    assert run.returncode == 2
    assert (
        f"'{value}' is not a time: write a month, a day or a time, such as 2026-03, " in run.stderr
    )


@pytest.mark.parametrize("until", ["2026-11", "2026-12", "2026-12-01T00:00:00+01:00"])
def test_usage_until_a_time_that_is_not_after_since_is_wrong_use(cli: Cli, until: str) -> None:
    run = cli("usage", "--since", "2026-12", "--until", until)

    assert run.returncode == 2
    assert "name a later --until, or leave one out" in run.stderr


@pytest.mark.parametrize("other", [("chat-7",), ("--to", "blocks"), ("--json",)])
def test_an_export_is_of_a_user_or_of_a_conversation(cli: Cli, other: tuple[str, ...]) -> None:
    run = cli("export", *other, "--user", "ana")

    assert run.returncode == 2
    assert "leave out the conversation, --to and --json" in " ".join(run.stderr.split())
    assert run.stdout == ""


def test_a_tilde_in_the_url_and_the_settings_file_is_the_home_directory(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "x.toml").write_text("workers = 7\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("REMANENCE_CONFIG", "~/x.toml")

    with BlockingMemory.open("sqlite:///~/m.db", settings="~/x.toml") as memory:
        memory.conversation("a").append(Message.user("Hello."))

    assert parsed(cli("config", "show", "--json"))["workers"]["value"] == 7
    assert "Hello." in cli("messages", "a", "--db", "sqlite:///~/m.db").stdout
    assert (home / "m.db").exists()
