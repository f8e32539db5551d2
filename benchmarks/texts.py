"""Conversations made up from a seed: turns of varied English prose, a planted fact in each."""

import random
import re
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from benchmarks.planted import Planted
from benchmarks.words import CHATTY_FRAMES, PLAIN_FRAMES, SLOTS
from benchmarks.written import TURN_CHARACTERS, Turn

Style: TypeAlias = Literal["plain", "chatty"]


def turns(
    facts: Sequence[Planted],
    *,
    style: Style = "plain",
    seed: int = 1,
    characters: int = TURN_CHARACTERS,
) -> Iterator[Turn]:
    """A turn of about *characters* for each fact; the same seed gives the same turns."""
    source = random.Random(seed)
    for fact in facts:
        share = source.uniform(0.2, 0.5)
        room = characters - len(fact.said)
        said = {
            "user": list(_sentences(source, style, room * share)),
            "assistant": list(_sentences(source, style, room * (1 - share))),
        }
        carrier = said[fact.speaker]
        carrier.insert(source.randint(0, len(carrier)), fact.said)
        yield Turn(_paragraphs(said["user"], source), _paragraphs(said["assistant"], source), fact)


def prose(source: random.Random, characters: int, style: Style = "plain") -> str:
    """About so many characters of prose, a sentence at least, without a planted fact."""
    return " ".join(_sentences(source, style, characters))


def _sentences(source: random.Random, style: Style, characters: float) -> Iterator[str]:
    frames = PLAIN_FRAMES if style == "plain" else (*PLAIN_FRAMES, *CHATTY_FRAMES * 4)
    length = 0.0
    while True:
        sentence = _filled(source.choice(frames), source)
        if length and length + len(sentence) / 2 + 1 > characters:
            return
        length += len(sentence) + 1
        yield sentence


def _filled(frame: str, source: random.Random) -> str:
    text = re.sub(r"\{(\w+)\}", lambda slot: _word(slot[1], source), frame)
    return text[0].upper() + text[1:]


def _word(slot: str, source: random.Random) -> str:
    return str(source.randint(2, 40)) if slot == "small" else source.choice(SLOTS[slot])


def _paragraphs(sentences: list[str], source: random.Random) -> str:
    text = ""
    for sentence in sentences:
        gap = "\n\n" if source.random() < 0.15 else " "
        text += f"{gap if text else ''}{sentence}"
    return text
