"""The command line as a user meets it: arguments in; exit code, stdout and stderr out."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from remanence.background import Background


@pytest.fixture
async def background() -> AsyncIterator[Background]:
    """The owner of a test's background tasks."""
    async with Background() as owner:
        yield owner


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    """A short transcript of both dialects, with a tool call and an empty message."""
    file = tmp_path / "trip.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in trip()), encoding="utf-8")
    return file


def trip(turns: int = 12) -> list[dict[str, object]]:
    """Messages about a trip: after two special ones, *turns* questions with answers."""
    lines: list[dict[str, object]] = [
        {"role": "user", "name": "Ana", "content": "Which gate has LH 454?"},
        {"role": "assistant", "content": "I look.", "tool_calls": [_call("gate", "LH 454")]},
        {"role": "tool", "tool_call_id": "gate", "content": '{"gate": "B42", "boarding": "12:55"}'},
        {"role": "assistant", "content": ""},
    ]
    for number in range(turns):
        lines.append({"role": "user", "name": "Ana", "content": _question(number)})
        lines.append(
            {"role": "assistant", "content": f"Noted: booking R{number:03}-{number * 37}."}
        )
    for number, line in enumerate(lines):
        line["created_at"] = f"2026-05-{1 + number // 4:02}T10:{number % 4 * 9:02}:00Z"
    return lines


def _call(id_: str, flight: str) -> dict[str, object]:
    function = {"name": "find_gate", "arguments": json.dumps({"flight": flight})}
    return {"id": id_, "type": "function", "function": function}


def _question(number: int) -> str:
    return (
        f"On day {number + 1} I arrive in town {number} at {7 + number % 12}:15 and stay at the "
        f"Hotel Linde{number}. Please book room {200 + number} for {90 + number} euros, and tell "
        f"Tomasz{number} that I bring {number + 2} boxes of samples."
    )
