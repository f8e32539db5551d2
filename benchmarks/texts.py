"""Conversations made up from a seed: turns of varied English prose, a planted fact in each."""

import random
import re
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Literal, NamedTuple, TypeAlias

from benchmarks.words import CHATTY_FRAMES, FIRST_NAMES, LAST_NAMES, PLAIN_FRAMES, SLOTS

Style: TypeAlias = Literal["plain", "chatty"]

TURN_CHARACTERS = 3_100
START = date(2027, 1, 4)


class Fact(NamedTuple):
    """A planted sentence: both the name and the value must be in the prompt later."""

    name: str
    value: str
    sentence: str


class Turn(NamedTuple):
    """What the user says, what the assistant answers, and the fact in one of them."""

    user: str
    assistant: str
    fact: Fact


def turns(
    count: int, *, style: Style = "plain", seed: int = 1, characters: int = TURN_CHARACTERS
) -> Iterator[Turn]:
    """*count* turns of about *characters* each; the same seed gives the same turns."""
    source = random.Random(seed)
    for fact in facts(count, source):
        share = source.uniform(0.2, 0.5)
        room = characters - len(fact.sentence)
        user = list(_sentences(source, style, room * share))
        assistant = list(_sentences(source, style, room * (1 - share)))
        carrier = source.choice((user, assistant))
        carrier.insert(source.randint(0, len(carrier)), fact.sentence)
        yield Turn(_paragraphs(user, source), _paragraphs(assistant, source), fact)


def facts(count: int, source: random.Random) -> Iterator[Fact]:
    """*count* facts about as many people, each with a value that no other fact has."""
    people = [f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES]
    taken: set[str] = set()
    for name in source.sample(people, count):
        kind = source.choice(tuple(_FACT_FRAMES))
        value = next(value for value in _values(kind, source) if value not in taken)
        taken.add(value)
        yield Fact(name, value, source.choice(_FACT_FRAMES[kind]).format(name=name, value=value))


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


_FACT_FRAMES = {
    "code": (
        "The badge number of {name} is {value}.",
        "{name} has the locker key {value}.",
        "The parcel for {name} carries the code {value}.",
        "For the record, {name} booked under the reference {value}.",
    ),
    "amount": (
        "The invoice of {name} came to {value} euros.",
        "{name} still owes us {value} euros.",
        "We agreed on a fee of {value} euros with {name}.",
    ),
    "date": (
        "{name} has the appointment on {value}.",
        "The lease of {name} ends on {value}.",
        "{name} moves to the new office on {value}.",
    ),
    "phone": (
        "You can reach {name} under {value}.",
        "The extension of {name} is {value}.",
    ),
}


def _values(kind: str, source: random.Random) -> Iterator[str]:
    while True:
        match kind:
            case "code":
                letters = "".join(source.choices("ABCDEFGHJKLMNPQRSTUVWXYZ", k=2))
                yield f"{letters}-{source.randint(1000, 9999)}"
            case "amount":
                whole = f"{source.randint(1, 98)},{source.randint(100, 999)}"
                yield f"{whole}.{source.randint(10, 99)}"
            case "date":
                day = START + timedelta(days=source.randint(60, 3_000))
                yield f"{day.day} {day:%B %Y}"
            case _:
                yield f"0{' '.join(str(source.randint(100, 999)) for _ in range(3))}"
