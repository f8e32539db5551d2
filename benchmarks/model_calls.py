"""Tokens that the calls of an observing model take for each token of conversation it observed.

A stand-in answers each request in the form that its prompt asks for: an observation with notes that
are the same in each run (those that a language model wrote where there are such, otherwise the
embedded observer's), a reflection with each sixth note that it is shown, facts with each eighth,
and a repair with SKIP, the shortest answer there is. Input and output of all calls are added up,
and nothing is taken off for prompt caches.
"""

import argparse
import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from benchmarks.quality import data_folder
from benchmarks.rows import Row, show
from remanence import Memory, Message, Policy, Segment
from remanence.cli.replay import TapeClock, batches, is_due
from remanence.cli.transcripts import Entry, entries
from remanence.observers.llm.lines import format_line
from remanence.protocols import Model, ModelAnswer, ModelRequest
from remanence.testing.models import scripted_answer
from remanence.tokens import counter_for
from remanence.types import Note, Purpose

TARGET = 1.94
BEFORE = (
    "2.91 with a full stamp on each message and line, all known notes, and a repair for any literal"
)
FILES = ("locomo/conv-??.jsonl", "transcripts/airline-agent.jsonl", "transcripts/coding-*.jsonl")
PURPOSES: tuple[Purpose, ...] = ("observe", "repair", "reflect", "facts")
SESSION_GAP = timedelta(hours=1)
REFLECTED, KEPT_AS_FACTS = 6, 8
_RANGE = re.compile(r"messages #(\d+) to #(\d+)")


class StandIn:
    """Answers with the notes that it was given, and counts the tokens of its calls."""

    name = "stand-in"

    def __init__(self, notes: Sequence[Note]) -> None:
        self.calls: Counter[Purpose] = Counter()
        self.tokens: Counter[Purpose] = Counter()
        self._notes = notes
        self._count = counter_for(Policy.default().model).text

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        answer = self._answer(request)
        self.calls[request.purpose] += 1
        self.tokens[request.purpose] += sum(
            map(self._count, (request.stable, request.prompt, answer))
        )
        return scripted_answer(answer, request, model=self.name)

    def _answer(self, request: ModelRequest) -> str:
        match request.purpose:
            case "observe":
                return "\n".join(map(format_line, self._asked(request))) or "NOTHING"
            case "reflect":
                return "\n".join(map(format_line, self._shown(request)[::REFLECTED]))
            case "facts":
                facts = [_fact(note) for note in self._shown(request)[::KEPT_AS_FACTS]]
                return json.dumps(facts, ensure_ascii=False)
            case _:
                return "SKIP"

    def _asked(self, request: ModelRequest) -> list[Note]:
        """The notes of the messages that the request names at its end."""
        first_seq, last_seq = map(int, _RANGE.findall(" ".join(request.prompt.split()))[-1])
        return [note for note in self._notes if first_seq <= note.first_seq <= last_seq]

    def _shown(self, request: ModelRequest) -> list[Note]:
        return [note for note in self._notes if note.text in request.prompt]


class Measured(NamedTuple):
    """A conversation with its tokens, and the calls that were made for it."""

    name: str
    observed_tokens: int
    note_tokens: int
    calls: Counter[Purpose]
    tokens: Counter[Purpose]

    @property
    def ratio(self) -> float:
        return self.tokens.total() / self.observed_tokens


def measure(*, only: str = "") -> list[Row]:
    """The tokens of all calls per observed token, of all conversations and of each."""
    paths = [
        path for name in FILES for path in sorted(data_folder().glob(name)) if only in str(path)
    ]
    what = "tokens of all model calls per observed token"
    if not paths:
        skipped = "skipped: REMANENCE_DATA names no folder with the evaluation data"
        return [Row(what=what, measured=None, detail=skipped)]
    found = asyncio.run(_measured(paths))
    whole = Measured(
        "all",
        sum(one.observed_tokens for one in found),
        sum(one.note_tokens for one in found),
        sum((one.calls for one in found), Counter()),
        sum((one.tokens for one in found), Counter()),
    )
    total = Row(
        what=what, measured=whole.ratio, target=TARGET, reference=BEFORE, detail=_detail(whole)
    )
    each = (
        Row(what=f"the same, {one.name}", measured=one.ratio, detail=_detail(one)) for one in found
    )
    return [total, *each]


def _detail(one: Measured) -> str:
    calls = ", ".join(f"{name} {one.calls[name]} calls {one.tokens[name]:,}" for name in PURPOSES)
    return f"{one.observed_tokens:,} observed, notes {one.note_tokens:,}; {calls}"


async def _measured(paths: Sequence[Path]) -> list[Measured]:
    return [await _measured_file(path) for path in paths]


async def _measured_file(path: Path) -> Measured:
    with path.open("rb") as file:
        talk = list(entries(file, name=path.name))
    written = path.with_name(f"{path.stem}.llm-notes.json")
    notes = list(_notes_of(talk, written)) if written.exists() else await _embedded_notes(talk)
    model = StandIn(notes)
    observed_tokens, segments = await _replay(talk, model)
    note_tokens = sum(segment.tokens for segment in segments)
    return Measured(path.stem, observed_tokens, note_tokens, model.calls, model.tokens)


async def _replay(talk: Sequence[Entry], model: Model | None) -> tuple[int, Sequence[Segment]]:
    """The observed tokens and the observations of a conversation that ended."""
    clock, policy = TapeClock(), Policy.default()
    made: dict[str, Segment] = {}
    async with Memory.open("sqlite:///:memory:", policy=policy, clock=clock, model=model) as memory:
        chat = memory.conversation("bench", user="user")
        for batch in batches(talk):
            for message in batch:
                clock.reach(message.created_at)
            await chat.append(*batch)
            if is_due(policy, await chat.state()):
                await chat.flush()
        state = await chat.end()
        assert state.failures == 0, state.last_error
        for entry in await chat.log():
            segments = (await chat.snapshot(entry.version)).segments
            made |= {segment.id: segment for segment in segments if not segment.generation}
    return state.observed_sum_tokens, tuple(made.values())


async def _embedded_notes(talk: Sequence[Entry]) -> list[Note]:
    _, segments = await _replay(talk, None)
    return [replace(note, topic=None) for segment in segments for note in segment.notes]


def _notes_of(talk: Sequence[Entry], path: Path) -> Iterator[Note]:
    """The lines that a language model wrote of each session, spread over its messages."""
    lines = json.loads(path.read_text("utf-8"))
    for number, session in enumerate(_sessions(talk), start=1):
        texts = [line["text"] for line in lines if line["session"] == number]
        for place, text in enumerate(texts):
            message = session[place * len(session) // len(texts)]
            yield Note(
                text=text,
                first_seq=message.seq,
                last_seq=message.seq,
                observed_at=message.created_at,
                priority="IMPORTANT",
            )


def _sessions(talk: Sequence[Entry]) -> list[list[Message]]:
    sessions: list[list[Message]] = []
    for seq, entry in enumerate(talk, start=1):
        message = entry.message.replace(seq=seq)
        assert message.created_at is not None
        last = sessions[-1][-1].created_at if sessions else None
        if last is None or message.created_at - last > SESSION_GAP:
            sessions.append([])
        sessions[-1].append(message)
    return sessions


def _fact(note: Note) -> dict[str, object]:
    return {
        "summary": note.text,
        "type": "knowledge",
        "tags": ["note"],
        "source": [note.first_seq, note.last_seq],
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="conversations whose path holds this")
    show(measure(only=parser.parse_args().only))


if __name__ == "__main__":
    main()
