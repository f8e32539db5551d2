"""`remanence import` of sessions of Claude Code and Codex."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, TypeAlias

import pytest

Cli = Callable[..., CompletedProcess[str]]
Json: TypeAlias = dict[str, Any]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'memory.db'}"


def write(path: Path, *lines: Json) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


def claude_code(id_: str, *blocks: object, role: str = "user", **more: object) -> Json:
    message = {"role": role, "content": blocks[0] if isinstance(blocks[0], str) else [*blocks]}
    known = {"sessionId": "s1", "timestamp": "2025-10-01T10:02:00.123Z", "isSidechain": False}
    return {**known, "uuid": id_, "parentUuid": None, "type": role, "message": message, **more}


def codex(kind: str, **payload: object) -> Json:
    return {"timestamp": "2025-11-01T10:00:00.000Z", "type": kind, "payload": payload}


def codex_text(role: str, text: str) -> Json:
    kind = "input_text" if role == "user" else "output_text"
    content = [{"type": kind, "text": text}]
    return codex("response_item", type="message", role=role, content=content)


def imported(cli: Cli, file: Path, url: str) -> Json:
    run = cli("import", file, "--db", url, "--json")
    assert run.returncode == 0, run.stderr
    counted: Json = json.loads(run.stdout)
    return counted


def tape(cli: Cli, url: str) -> list[Json]:
    run = cli("messages", "s1", "--db", url)
    return [json.loads(line) for line in run.stdout.splitlines()]


CALL = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "/a.py"}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "def login(): pass"}
CLAUDE_CODE: list[Json] = [
    {"type": "summary", "summary": "Fix bug", "leafUuid": "u9"},
    {"type": "file-history-snapshot", "messageId": "u8", "snapshot": {}},
    claude_code("u1", "Fix the login bug."),
    claude_code("u2", {"type": "thinking", "thinking": "hm", "signature": "x"}, role="assistant"),
    claude_code("u3", CALL, role="assistant"),
    claude_code("u4", RESULT),
    claude_code("u5", {"type": "text", "text": "Fixed."}, role="assistant"),
    claude_code("u6", "Caveat: ...", isMeta=True),
    claude_code("u7", "<command-name>/clear</command-name>"),
    claude_code("u8", "Look for callers.", isSidechain=True),
]


def test_a_session_of_claude_code_is_a_conversation(cli: Cli, tmp_path: Path, url: str) -> None:
    file = write(tmp_path / "s1.jsonl", *CLAUDE_CODE)

    counted = imported(cli, file, url)

    messages = tape(cli, url)
    assert [message["id"] for message in messages] == ["u1", "u3", "u4", "u5"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert messages[0]["created_at"] == "2025-10-01T10:02:00.123000+00:00"
    assert counted["left_out"] == {
        "summary": 1,
        "file-history-snapshot": 1,
        "thinking": 1,
        "isMeta": 1,
        "text of the program": 1,
        "isSidechain": 1,
    }


def test_text_that_a_program_puts_beside_or_into_that_of_the_user_is_left_out(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    text, reminder = "Thanks.", "<system-reminder>\nUse <b>tests</b>.\n</system-reminder>"
    file = write(
        tmp_path / "s1.jsonl",
        claude_code("u1", {"type": "text", "text": "[Request interrupted by user]"}),
        claude_code("u2", "[Request interrupted by user for tool use]"),
        claude_code("u3", {"type": "text", "text": reminder}, {"type": "text", "text": text}),
        claude_code("u4", f"{text}\n{reminder}"),
        claude_code("u5", f"What is <system-reminder>? {text}"),
        codex_text("developer", "<permissions instructions>..."),
    )

    counted = imported(cli, file, url)

    assert [message["content"] for message in tape(cli, url)] == [
        text,
        text,
        f"What is <system-reminder>? {text}",
    ]
    assert counted["left_out"] == {"text of the program": 5}


def test_a_longer_session_adds_only_what_is_new_also_from_elsewhere(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    imported(cli, write(tmp_path / "s1.jsonl", *CLAUDE_CODE), url)
    file = write(tmp_path / "moved.jsonl", *CLAUDE_CODE, claude_code("u10", "Deploy it."))

    assert imported(cli, file, url)["new"] == 1
    assert tape(cli, url)[-1]["content"] == "Deploy it."


def test_a_result_whose_call_is_missing_is_left_out(cli: Cli, tmp_path: Path, url: str) -> None:
    file = write(tmp_path / "s1.jsonl", claude_code("u1", RESULT), claude_code("u2", "Go on."))

    counted = imported(cli, file, url)

    assert (counted["new"], counted["left_out"]) == (1, {"unpaired message": 1})


def test_a_rollout_of_codex_is_a_conversation(cli: Cli, tmp_path: Path, url: str) -> None:
    call = {"call_id": "c1", "type": "function_call", "name": "shell", "arguments": "{}"}
    file = write(
        tmp_path / "rollout.jsonl",
        codex("session_meta", id="s1", cwd="/p"),
        codex("session_meta", id="the session that it was forked from"),
        codex_text("user", "<environment_context>...</environment_context>"),
        codex_text("user", "Add a test."),
        codex("event_msg", type="user_message", message="Add a test."),
        codex("response_item", type="reasoning", summary=[], encrypted_content="gAAA"),
        codex("response_item", **call),
        codex("response_item", type="function_call_output", call_id="c1", output="a.py"),
        codex_text("assistant", "Test added."),
    )

    counted = imported(cli, file, url)
    again = imported(cli, file, url)

    messages = tape(cli, url)
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert [message["content"] for message in messages] == [
        "Add a test.",
        None,
        "a.py",
        "Test added.",
    ]
    left_out = {"session_meta": 2, "text of the program": 1, "event_msg": 1, "reasoning": 1}
    assert counted["left_out"] == left_out
    assert again["new"] == 0
