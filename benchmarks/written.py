"""Turns of text that people and models wrote, from the evaluation data, with facts planted in it."""

import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.planted import Planted

TURN_CHARACTERS = 3_100
_SOURCES = (
    "locomo/conv-*[0-9].jsonl",
    "transcripts/coding-*.jsonl",
    "transcripts/airline-agent.jsonl",
    "transcripts/companion-*.jsonl",
    "transcripts/music-ko.jsonl",
)
_BREAK = re.compile(r"(?<=[.!?])[ \n]+|(?<=[。！？])|\n+")
_FENCE = "```"


class Turn(NamedTuple):
    """What the user says, what the assistant answers, and the fact in one of them."""

    user: str
    assistant: str
    fact: Planted


def has_texts(data: Path) -> bool:
    """Whether the folder of the evaluation data has any of the texts."""
    return any(next(data.glob(pattern), None) for pattern in _SOURCES)


def turns(
    data: Path, facts: Sequence[Planted], *, seed: int = 1, characters: int = TURN_CHARACTERS
) -> Iterator[Turn]:
    """A turn of about *characters* for each fact; the texts begin anew where they run out."""
    source = random.Random(seed)
    readers = [Reader(paths) for pattern in _SOURCES if (paths := sorted(data.glob(pattern)))]
    weights = [reader.characters for reader in readers]
    for fact in facts:
        (reader,) = source.choices(readers, weights)
        share = source.uniform(0.2, 0.5)
        room = characters - len(fact.said)
        texts = {
            "user": reader.read("user", int(room * share)),
            "assistant": reader.read("assistant", int(room * (1 - share))),
        }
        texts[fact.speaker] = _with_fact(texts[fact.speaker], fact.said, source)
        yield Turn(texts["user"], texts["assistant"], fact)


class Reader:
    """Reads on in what each role said in some files."""

    def __init__(self, paths: Sequence[Path]) -> None:
        rows = [json.loads(line) for path in paths for line in path.read_text("utf-8").splitlines()]
        self._said = {
            role: "\n".join(
                row["content"]
                for row in rows
                if row["role"] == role and isinstance(row.get("content"), str)
            )
            for role in ("user", "assistant")
        }
        self._places = {"user": 0, "assistant": 0}
        self.characters = sum(len(text) for text in self._said.values())

    def read(self, role: str, characters: int) -> str:
        """The next *characters* or a few less, to the end of a line or a word."""
        text, start = self._said[role], self._places[role]
        if start + characters >= len(text):
            start = 0
        end = start + characters
        cut = max(text.rfind("\n", start + characters * 3 // 4, end), text.rfind(" ", start, end))
        end = cut if cut > start else end
        self._places[role] = end
        return text[start:end].strip()


def _with_fact(text: str, fact: str, source: random.Random) -> str:
    """The text with a fact at the end of a sentence or a line, outside of code."""
    places = [0, len(text)]
    places += [
        match.end()
        for match in _BREAK.finditer(text)
        if text.count(_FENCE, 0, match.end()) % 2 == 0
    ]
    place = source.choice(places)
    head, tail = text[:place].rstrip(" "), text[place:].lstrip(" ")
    return " ".join(piece for piece in (head, fact, tail) if piece).replace("\n ", "\n")
