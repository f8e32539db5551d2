import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

Cli = Callable[..., CompletedProcess[str]]

PINNED_SEGMENT = {"id", "generation", "first_seq", "last_seq", "tokens", "text", "notes", "lost"}
PINNED_NOTE = {
    "text", "first_seq", "last_seq", "observed_at", "referenced_at", "priority", "tag",
}  # fmt: skip


def parsed(run: CompletedProcess[str]) -> Any:  # JSON is of many types
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_the_json_of_a_replay_has_the_pinned_names(cli: Cli, transcript: Path) -> None:
    document = parsed(cli("replay", transcript, "--ratio", 0.5, "--json", "-"))

    assert set(document) == {"conversation", "messages", "tokens", "segments", "context", "stats"}
    assert (document["conversation"], document["messages"]) == ("trip", 28)
    assert set(document["tokens"]) == {"history", "context"}
    assert set(document["context"]) == {"system", "messages"}
    assert document["segments"]
    for segment in document["segments"]:
        assert set(segment) >= PINNED_SEGMENT
        assert all(set(note) >= PINNED_NOTE for note in segment["notes"])


def test_with_a_ratio_the_whole_transcript_is_observed_within_it(
    cli: Cli, transcript: Path
) -> None:
    segments = parsed(cli("replay", transcript, "--ratio", 0.3, "--json", "-"))["segments"]

    assert [s["first_seq"] for s in segments] == [1, *(s["last_seq"] + 1 for s in segments[:-1])]
    assert segments[-1]["last_seq"] == 28
    assert all(segment["generation"] == 0 for segment in segments)
    assert all(s["tokens"] <= 0.3 * s["source_tokens"] for s in segments)


def test_a_replay_shows_its_notes_or_how_to_get_some(cli: Cli, transcript: Path) -> None:
    noted, raw = cli("replay", transcript, "--ratio", 0.3), cli("replay", transcript)
    [first, *_] = parsed(cli("replay", transcript, "--ratio", 0.3, "--json", "-"))["segments"]

    assert first["text"].splitlines()[-1] in noted.stdout
    assert "No notes yet, as all messages fit the raw tail: --ratio 0.2 makes some." in raw.stdout
    assert "No notes yet" not in noted.stdout


def test_the_same_transcript_gives_the_same_notes(cli: Cli, transcript: Path) -> None:
    first = parsed(cli("replay", transcript, "--ratio", 0.3, "--json", "-"))
    second = parsed(cli("replay", transcript, "--ratio", 0.3, "--json", "-"))

    assert [s["text"] for s in first["segments"]] == [s["text"] for s in second["segments"]]


def test_json_goes_to_a_file_beside_a_summary(cli: Cli, transcript: Path, tmp_path: Path) -> None:
    run = cli("replay", transcript, "--json", tmp_path / "out.json")

    assert run.returncode == 0
    assert json.loads((tmp_path / "out.json").read_text())["messages"] == 28
    assert (tmp_path / "out.json").stat().st_mode & 0o777 == 0o600
    assert "trip.jsonl: 28 messages" in run.stdout
    assert run.stdout.count("ok     ") == 4


@pytest.mark.parametrize("name", ["trip.jsonl", "result.json"])
def test_a_replay_writes_its_json_over_no_file(
    cli: Cli, transcript: Path, tmp_path: Path, name: str
) -> None:
    tmp_path.joinpath("result.json").write_text("{}")
    before = tmp_path.joinpath(name).read_bytes()

    run = cli("replay", transcript, "--db", "sqlite:///memory.db", "--json", tmp_path / name)

    assert run.returncode == 2
    assert f"{name}' already exists: name a new file, or remove it" in run.stderr
    assert tmp_path.joinpath(name).read_bytes() == before
    assert not tmp_path.joinpath("memory.db").exists()


@pytest.mark.parametrize("is_there", [True, False])
def test_a_replay_writes_its_json_through_no_link(
    cli: Cli, transcript: Path, tmp_path: Path, *, is_there: bool
) -> None:
    victim = tmp_path / "victim.json"
    if is_there:
        victim.write_text("{}")
    (tmp_path / "out.json").symlink_to(victim)

    run = cli("replay", transcript, "--json", tmp_path / "out.json")

    assert run.returncode == 2
    assert "out.json' already exists" in run.stderr
    assert victim.exists() == is_there


def test_a_replay_writes_its_json_to_a_device(cli: Cli, transcript: Path) -> None:
    assert cli("replay", transcript, "--json", "/dev/null").returncode == 0


@pytest.mark.parametrize("preset", ["default", "lango", "zora", "brain"])
def test_every_preset_keeps_its_promises(cli: Cli, transcript: Path, preset: str) -> None:
    document = parsed(cli("replay", transcript, "--preset", preset, "--json", "-"))

    assert document["stats"]["checks"] == {"tiling": [], "anthropic": [], "openai": [], "tail": []}


def test_an_empty_message_keeps_its_number_and_is_told(cli: Cli, transcript: Path) -> None:
    run = cli("replay", transcript, "--json", "-")

    texts = [str(message["content"]) for message in parsed(run)["context"]["messages"]]
    assert any("[empty message]" in text for text in texts)
    assert "empty messages are kept as control text (1): line 4" in run.stderr


def test_a_replay_into_a_database_can_be_looked_at_and_repeated(cli: Cli, transcript: Path) -> None:
    url = "sqlite:///memory.db"

    once = cli("replay", transcript, "--db", url, "--conversation", "c1")
    again = cli("replay", transcript, "--db", url, "--conversation", "c1")
    (state,) = parsed(cli("inspect", "--db", url, "--json"))["conversations"]

    assert (once.returncode, again.returncode) == (0, 0)
    assert (state["conversation"], state["last_seq"]) == ("c1", 28)


def test_a_conversation_of_other_messages_is_left_alone(
    cli: Cli, transcript: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text('{"role": "user", "content": "something else"}\n')
    url = "sqlite:///memory.db"
    assert cli("replay", other, "--db", url, "--conversation", "c1").returncode == 0

    run = cli("replay", transcript, "--db", url, "--conversation", "c1")

    assert run.returncode == 1
    assert (
        "conversation 'c1' holds other messages: name another one with --conversation" in run.stderr
    )
    (state,) = parsed(cli("inspect", "--db", url, "--json"))["conversations"]
    assert state["last_seq"] == 1


def test_a_conversation_of_a_user_is_left_alone_with_a_remedy_of_the_shell(
    cli: Cli, transcript: Path
) -> None:
    options = ("--db", "sqlite:///memory.db", "--conversation", "c1")
    assert cli("import", transcript, *options, "--user", "ana").returncode == 0

    run = cli("replay", transcript, *options)

    assert run.returncode == 1
    assert "conversation 'c1' belongs to a user, and a replay has none" in run.stderr
    assert "another one with --conversation, or use 'remanence import --user'" in run.stderr


def test_a_transcript_with_an_error_at_its_end_writes_nothing(
    cli: Cli, transcript: Path, tmp_path: Path
) -> None:
    with transcript.open("a") as file:
        file.write('{"role": "robot", "content": "beep"}\n')

    run = cli("replay", transcript, "--db", "sqlite:///memory.db")

    assert run.returncode == 1
    assert (
        "remanence: trip.jsonl, line 29: role 'robot' is unknown: use one of "
        "assistant, system, tool, user; "
    ) in run.stderr
    assert not tmp_path.joinpath("memory.db").exists()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "bad.jsonl is empty"),
        ("\n\n", "bad.jsonl is empty"),
        ("{nope\n", "bad.jsonl, line 1: '{nope' is not JSON"),
        ("[1, 2]", "bad.jsonl, line 1, message 1: 1 is not an object"),
        ('{"messages": []}', "bad.jsonl holds no message"),
        (
            '{"role": "user", "content": "a", "created_at": "soon"}',
            "created_at 'soon' is not a time",
        ),
        ('{"role": "tool", "content": "a", "tool_call_id": "x9"}', "line 1: the tool result answe"),
        ('{"role": "user", "content": "\\ud800"}', "bad.jsonl, line 1: TextPart.text has the lone"),
        ('{"role": "user", "content": "\\u0000"}', "bad.jsonl, line 1: TextPart.text has a NUL"),
    ],
)
def test_a_bad_transcript_fails_in_one_line(
    cli: Cli, tmp_path: Path, content: str, expected: str
) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text(content)

    run = cli("replay", file)

    assert run.returncode == 1
    assert run.stderr.startswith("remanence: ")
    assert expected in run.stderr
    assert len(run.stderr.splitlines()) == 1
    assert run.stdout == ""


@pytest.mark.parametrize(
    "options",
    [
        ("--preset", "lngo"),
        ("--ratio", "0"),
        ("--ratio", "1.5"),
        ("--ratio", "much"),
        ("--json", "no/such/directory/out.json"),
    ],
)
def test_wrong_options_are_wrong_use(cli: Cli, transcript: Path, options: tuple[str, str]) -> None:
    run = cli("replay", transcript, *options)

    assert run.returncode == 2
    assert options[0] in run.stderr


def test_a_pipe_is_read_once(cli: Cli, transcript: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(transcript.read_bytes()))
    writer.start()

    document = parsed(cli("replay", pipe, "--json", "-"))
    writer.join()

    assert document["messages"] == 28


def test_settings_of_the_environment_hold_for_a_replay(
    cli: Cli, transcript: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMANENCE_POLICY__OBSERVE_TOKENS", "300")
    monkeypatch.setenv("REMANENCE_POLICY__TAIL_TOKENS", "500")
    monkeypatch.setenv("REMANENCE_POLICY__TAIL_KEEP_TOKENS", "100")

    document = parsed(cli("replay", transcript, "--json", "-"))

    assert len(document["segments"]) >= 2
    assert document["tokens"]["context"] < document["tokens"]["history"]


SMALL = [
    "transcripts/coding-fun-coding-project-ideas.jsonl",
    "transcripts/coding-setting-parent-container-width-with-vw.jsonl",
    "transcripts/coding-investigating-failure-in-data-fetching.jsonl",
    "transcripts/coding-meme-ai-generator-with-voting.jsonl",
    "transcripts/companion-en.jsonl",
    "transcripts/companion-zh.jsonl",
    "locomo/conv-26.jsonl",
]
LARGE = [
    "transcripts/airline-agent.jsonl",
    "transcripts/music-ko.jsonl",
    "locomo/conv-41.jsonl",
    "locomo/conv-43.jsonl",
    "locomo/conv-47.jsonl",
    "locomo/conv-49.jsonl",
]


@pytest.mark.parametrize("ratio", [None, 0.2])
@pytest.mark.parametrize(
    "name", [*SMALL, *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE)]
)
@pytest.mark.timeout(60)
def test_real_transcripts_keep_every_promise(
    cli: Cli, data_dir: Path, name: str, ratio: float | None
) -> None:
    options = () if ratio is None else ("--ratio", ratio)

    run = cli("replay", data_dir / name, *options, "--json", "-")

    document = parsed(run)
    lines = data_dir.joinpath(name).read_text(encoding="utf-8").strip().count("\n") + 1
    assert document["messages"] == lines
    assert document["stats"]["checks"] == {"tiling": [], "anthropic": [], "openai": [], "tail": []}
