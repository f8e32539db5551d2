"""Conversations and the notes that the embedded observer makes of them, to be read side by side.

`UPDATE_GOLDEN=1` rewrites the notes; read the difference before it is committed.
"""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.builders import count_utf8_tokens, observe_request

from remanence.notes import render_notes
from remanence.observers.extractive.observer import extract
from remanence.pacing import at_once
from remanence.types import Message, ToolCallPart

_FOLDER = Path(__file__).parent.parent / "golden" / "notes"
_CASES = sorted(path.name.removesuffix(".in.txt") for path in _FOLDER.glob("*.in.txt"))
_RATIO = 0.5  # short conversations without small talk: at a fifth little would be left to read


def _messages(text: str) -> tuple[Message, ...]:
    rows: list[str] = []
    for line in text.splitlines():
        if line.startswith("\t"):
            rows[-1] += "\n" + line[1:]
        else:
            rows.append(line)
    messages: list[Message] = []
    for seq, row in enumerate(rows, 1):
        at, _, rest = row.partition(" ")
        speaker, _, said = rest.partition(": ")
        moment = datetime.fromisoformat(at).replace(tzinfo=UTC)
        messages.append(_message(speaker, said, f"call-{seq}", f"call-{seq - 1}", moment, seq))
    return tuple(messages)


def _message(
    speaker: str, said: str, call_id: str, last_call_id: str, at: datetime, seq: int
) -> Message:
    if speaker == "tool":
        message = Message.tool(last_call_id, said)
    elif said.startswith("CALL "):
        name, _, arguments = said.removeprefix("CALL ").partition(" ")
        message = Message.assistant(
            tool_calls=[ToolCallPart(id=call_id, name=name, arguments=arguments)]
        )
    elif speaker == "assistant":
        message = Message.assistant(said)
    else:
        message = Message.user(said, name=None if speaker == "user" else speaker)
    return message.replace(seq=seq, created_at=at)


@pytest.mark.parametrize("case", _CASES)
def test_the_notes_of_a_conversation_are_those_that_were_read_and_agreed_on(case: str) -> None:
    source = (_FOLDER / f"{case}.in.txt").read_text("utf-8")
    messages = _messages(source)
    request = observe_request(
        *messages,
        target_tokens=int(count_utf8_tokens(source) * _RATIO),
        count_tokens=count_utf8_tokens,
        now=datetime(2026, 12, 1, tzinfo=UTC),
    )
    made = render_notes(at_once(extract(request)), "compact") + "\n"
    agreed = _FOLDER / f"{case}.out.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        agreed.write_text(made, "utf-8")
    assert made == agreed.read_text("utf-8")
