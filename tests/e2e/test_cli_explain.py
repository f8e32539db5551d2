import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

Cli = Callable[..., CompletedProcess[str]]

MESSAGES = [
    {"role": "system", "content": "You are a helpful assistant."},
    {"role": "user", "content": "Good morning! I moved from Lisbon to Porto in January."},
    {
        "role": "assistant",
        "content": "I look it up.",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "3 rows\nrow 1 ok"},
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(MESSAGES))
    return path


def test_a_transcript_may_come_from_stdin(cli: Cli, file: Path) -> None:
    command = [sys.executable, "-m", "remanence", "explain", "-", "--json"]
    run = subprocess.run(command, input=file.read_bytes(), capture_output=True, check=True)

    assert json.loads(run.stdout) == json.loads(cli("explain", file, "--json").stdout)


def test_explain_scores_every_sentence_but_those_of_the_system(cli: Cli, file: Path) -> None:
    run = cli("explain", file, "--score", "worth", "--json")

    assert run.returncode == 0, run.stderr
    shown = json.loads(run.stdout)["sentences"]
    (cutoff,) = {one["cutoff"] for one in shown}
    assert f"cutoff {cutoff:+.1f}" in cli("explain", file, "--score", "worth").stdout
    assert [(one["role"], one["text"]) for one in shown] == [
        ("user", "Good morning!"),
        ("user", "I moved from Lisbon to Porto in January."),
        ("assistant", "I look it up."),
        ("tool", "3 rows"),
        ("tool", "row 1 ok"),
    ]
    assert max(shown, key=lambda one: one["scores"]["worth"]) == shown[1]
    assert all(len(one["strongest"]) == 5 for one in shown)


def test_explain_takes_as_many_sentences_as_the_ratio_has_room_for(cli: Cli, file: Path) -> None:
    def taken(ratio: str) -> list[str]:
        run = cli("explain", file, "--ratio", ratio, "--json")
        return [one["text"] for one in json.loads(run.stdout)["sentences"] if one["taken"]]

    assert taken("0.001") == []
    assert "I moved from Lisbon to Porto in January." in taken("1")


def test_explain_shows_which_sentences_are_taken_and_by_which_features(
    cli: Cli, file: Path
) -> None:
    run = cli("explain", file, "--json")

    assert run.returncode == 0, run.stderr
    shown = json.loads(run.stdout)["sentences"]
    assert [one["text"] for one in shown][:2] == [
        "Good morning!",
        "I moved from Lisbon to Porto in January.",
    ]
    assert shown[0]["value"] == 0
    assert not shown[0]["taken"]
    assert "first person" in [factor["feature"] for factor in shown[1]["factors"]]


def test_explain_prints_the_same_table(cli: Cli, file: Path) -> None:
    run = cli("explain", file)

    assert run.returncode == 0, run.stderr
    assert " 2 user: I moved from Lisbon to Porto in January." in run.stdout
    assert "× 1.15 first person (1.15)" in " ".join(run.stdout.split())


def test_explain_shows_the_features_behind_the_score_that_is_asked_for(
    cli: Cli, file: Path
) -> None:
    run = cli("explain", file, "--score", "personal", "--strongest", 2)

    assert run.returncode == 0, run.stderr
    assert "user: I moved from Lisbon to Porto in January." in run.stdout
    assert "personal +" in run.stdout or "personal -" in run.stdout


@pytest.mark.parametrize("options", [("--strongest", 2), ("--score", "personal", "--ratio", 0.1)])
def test_explain_refuses_an_option_of_the_other_table(
    cli: Cli, file: Path, options: tuple[object, ...]
) -> None:
    run = cli("explain", file, *options)

    assert run.returncode == 2
    assert "--score" in run.stderr


def test_explain_shows_why_a_sentence_of_the_user_is_no_fact(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    said = [
        {"role": "user", "content": "I moved to Porto. Is it windy?"},
        {"role": "assistant", "content": "I think so."},
    ]
    path.write_text(json.dumps(said))
    run = cli("explain", path, "--score", "stated", "--json")
    printed = cli("explain", path, "--score", "stated")

    assert run.returncode == 0, run.stderr
    moved, asked = json.loads(run.stdout)["sentences"]
    assert (moved["text"], asked["text"]) == ("I moved to Porto.", "Is it windy?")
    assert moved["scores"]["stated"] > asked["scores"]["stated"]
    assert "cutoff" in printed.stdout


def test_explain_scores_what_a_sentence_states_beside_its_question_as_the_facts_do(
    cli: Cli, tmp_path: Path
) -> None:
    path = tmp_path / "chat.json"
    said = "my flight is LH 454, can you check the gate?"
    path.write_text(json.dumps([{"role": "user", "content": said}]))
    run = cli("explain", path, "--score", "stated", "--json")

    assert run.returncode == 0, run.stderr
    stated, asked = json.loads(run.stdout)["sentences"]
    assert (stated["text"], asked["text"]) == ("my flight is LH 454.", said)
    assert stated["scores"]["stated"] > asked["scores"]["stated"]


def test_explain_shows_the_score_and_the_cutoff_from_which_a_home_has_its_tag(
    cli: Cli, tmp_path: Path
) -> None:
    path = tmp_path / "chat.json"
    said = [
        {"role": "assistant", "content": "Anything else?"},
        {"role": "user", "content": "I live in Lisbon."},
        {"role": "user", "content": "I grew up in Faro."},
    ]
    path.write_text(json.dumps(said))

    run = cli("explain", path, "--score", "home")

    shown = re.findall(r"home ([+-][\d.]+), cutoff ([+-][\d.]+)", run.stdout)
    assert [float(score) >= float(cutoff) for score, cutoff in shown] == [True, False]


def test_explain_shows_whether_the_first_sentence_of_a_message_hands_over_a_text(
    cli: Cli, tmp_path: Path
) -> None:
    path = tmp_path / "chat.json"
    said = ("Translate this: I like tea. I live in Rome.", "Hello! I live in Rome.")
    path.write_text(json.dumps([{"role": "user", "content": text} for text in said]))
    run = cli("explain", path, "--score", "handover", "--json")

    assert run.returncode == 0, run.stderr
    request, greeting = json.loads(run.stdout)["sentences"]
    assert (request["text"], greeting["text"]) == ("Translate this:", "Hello!")
    assert request["scores"]["handover"] > 0 > greeting["scores"]["handover"]


def test_a_score_that_does_not_exist_is_wrong_use_and_the_known_ones_are_named(
    cli: Cli, file: Path
) -> None:
    run = cli("explain", file, "--score", "mood")

    assert run.returncode == 2
    assert "Usage: " in run.stderr
    assert "'mood' is not a score: choose one of worth, " in run.stderr
