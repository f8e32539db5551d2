"""Two conversations with the answers that a model gave to the requests about them.

`<name>/messages.jsonl` is the conversation. `<name>/NN-<purpose>.txt` is the answer to the request
of that number: what a capable model wrote that was given the request and nothing else.
"""

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from remanence import Context, Memory, Message, Policy, Segment
from remanence.cli.replay import TapeClock, is_due
from remanence.protocols import ModelAnswer, ModelRequest
from remanence.testing.models import scripted_answer
from remanence.types import Fact, LogEntry

FOLDER = Path(__file__).parent

POLICIES = {
    "journey": Policy(
        facts_idle_seconds=0,
        observe_tokens=1_000,
        observe_max_tokens=2_000,
        tail_tokens=1_000,
        tail_keep_tokens=300,
        keep_last=2,
        note_ratio=0.35,
        reflect_tokens=(700, 3_000),
        reflect_ratio=0.6,
    ),
    "signup": Policy(
        facts_idle_seconds=0,
        observe_tokens=3_000,
        observe_max_tokens=4_000,
        tail_tokens=3_000,
        tail_keep_tokens=300,
        keep_last=2,
        note_ratio=0.2,
        reflect_tokens=(600, 3_000),
        reflect_ratio=0.6,
    ),
}
"""Budgets under which some fifty messages are observed several times and condensed once."""


class RecordedModel:
    """Answers each request with the answer that was recorded for its place and purpose."""

    name = "recorded-model"

    def __init__(self, folder: Path) -> None:
        self.requests: list[ModelRequest] = []
        self.answers: list[str] = []
        self._folder = folder

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        self.requests.append(request)
        path = self._folder / f"{len(self.requests):02}-{request.purpose}.txt"
        assert path.exists(), f"no answer {path.name} to:\n{request.stable}\n{request.prompt}"
        self.answers.append(path.read_text("utf-8"))
        return scripted_answer(self.answers[-1], request, model=self.name)


class Recorded(NamedTuple):
    """What memory made of a recorded conversation."""

    model: RecordedModel
    messages: Sequence[Message]
    segments: Sequence[Segment]
    live: Sequence[Segment]
    log: Sequence[LogEntry]
    context: Context
    facts: Sequence[Fact]


def conversation(name: str) -> list[Message]:
    """The messages of a recorded conversation."""
    rows = map(json.loads, (FOLDER / name / "messages.jsonl").read_text("utf-8").splitlines())
    return [
        Message.from_openai(row).replace(created_at=datetime.fromisoformat(created_at))
        for row in rows
        if (created_at := row.pop("created_at"))
    ]


async def replay(name: str) -> Recorded:
    """Append a conversation turn by turn, with a model whose answers are recorded."""
    model, clock, talk = RecordedModel(FOLDER / name), TapeClock(), conversation(name)
    policy = POLICIES[name]
    async with Memory.open("sqlite:///:memory:", policy=policy, clock=clock, model=model) as memory:
        chat = memory.conversation(name, user="someone")
        for message in talk:
            clock.reach(message.created_at)
            await chat.append(message)
            if message.role == "assistant" and is_due(policy, await chat.state()):
                await chat.flush()
        state = await chat.end()
        assert state.failures == 0, state.last_error
        snapshots = [await chat.snapshot(entry.version) for entry in await chat.log()]
        every = {segment.id: segment for shown in snapshots for segment in shown.segments}
        return Recorded(
            model=model,
            messages=await chat.messages(),
            segments=tuple(every.values()),
            live=(*await chat.reflections(), *await chat.observations()),
            log=await chat.log(),
            context=await chat.context(system="You are helpful."),
            facts=await memory.facts.list(user="someone"),
        )
