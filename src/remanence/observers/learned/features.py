"""Features of sentences: n-grams of their words, their grammar, their shape and place."""

import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from remanence.observers.learned.function_words import WORD, Classes, Language, language_of
from remanence.pacing import at_once

Role = Literal["user", "assistant", "tool"]
Start = Literal["message", "line", "sentence"]

GRAMS = (3, 4)
GRAMS_UNSPACED = (1, 2, 3, 4)
MIN_WORD = 2
_MAX_WORD = 200
_QUESTION = re.compile(r"[?？؟]")
_CODE = re.compile(r"[\w.]\(|[{};<>]|\w/\w|\w_\w|^\s*[$#>]|\w\.\w{2,4}\b|`|=")
_QUOTE = re.compile(r"[\"“”«»„「」『』‘]|(?<!\w)'|'(?!\w)")
_LIST = re.compile(r"\s*(?:[-*•]|\d+[.)])\s")
_EMOJI = re.compile("[\U0001f300-\U0001faff\u2600-\u27bf]")
_DIGIT = re.compile(r"\d")
_FINAL = ".!?。！？ "
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_SHARED = ("question", "ends ?", "ends :", "code", "list", "emoji")
"""Traits of a sentence that its neighbours see, beside its counts of tokens, digits and quotes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A sentence of a conversation, or one row of code or of a tool's output."""

    text: str
    role: Role
    start: Start
    """The beginning that it is: of a message, of a line, or of neither."""


class Features(NamedTuple):
    """Features of a line in three groups; each group is divided by the root of its size."""

    words: frozenset[str]
    """Distinct words in lower case, whose n-grams `word_grams` gives."""
    edges: tuple[str, ...]
    """How the text begins and ends; of the group of the n-grams."""
    grammar: tuple[str, ...]
    place: tuple[str, ...]


class _Reading(NamedTuple):
    line: Line
    tokens: list[str]
    words: list[str]
    traits: list[str]
    shared: list[str]


def features(lines: Sequence[Line]) -> list[Features]:
    """Features of the lines of one conversation, in order."""
    return at_once(reading(lines))


def reading(lines: Sequence[Line]) -> Generator[None, None, list[Features]]:
    """Return what `features` does; yields after each line."""
    if not lines:
        return []
    spoken = [line.text for line in lines if line.role != "tool"] or [line.text for line in lines]
    language = language_of(spoken)
    yield
    readings = []
    for line in lines:
        readings.append(_read(line))
        yield
    found = []
    for one, place in zip(readings, _places(readings), strict=True):
        found.append(_features(one, place, language))
        yield
    return found


def word_grams(word: str) -> set[str]:
    """Character n-grams of a word, with its bounds in a script that has spaces."""
    if word[0].isdigit():
        return set()
    if not word[0].isalpha():
        return {f"sign {word}"}
    unspaced = _UNSPACED.match(word)
    padded = word if unspaced else f" {word} "
    grams = {
        padded[at : at + size]
        for size in (GRAMS_UNSPACED if unspaced else GRAMS)
        for at in range(len(padded) - size + 1)
    }
    if len(word) >= MIN_WORD:
        grams.add(f"word {word}")
    return grams


def _read(line: Line) -> _Reading:
    tokens = WORD.findall(line.text)
    traits = list(_traits(line.text, tokens))
    counts = ("tokens", "digits", "quotes")
    shared = [trait for trait in traits if trait in _SHARED or trait.startswith(counts)]
    return _Reading(line, tokens, [token.lower() for token in tokens], traits, shared)


def _traits(text: str, tokens: Sequence[str]) -> Iterator[str]:
    yield f"tokens {_level(len(tokens), 2, 3, 5, 8, 12, 18, 25)}"
    yield f"length {_level(len(text), 5, 10, 20, 40, 60, 90, 130)}"
    yield f"digits {_level(len(_DIGIT.findall(text)), 1, 2, 4, 8)}"
    capitals = sum(token[0].isupper() and not token.isupper() for token in tokens[1:])
    yield f"capitals {_level(capitals, 1, 2, 4)}"
    if quotes := len(_QUOTE.findall(text)):
        yield f"quotes {min(quotes, 3)}"
    yield "question" if _QUESTION.search(text) else "no question"
    last = text.rstrip()[-1:]
    if last in {"?", "？", "؟"}:
        yield "ends ?"
    if last in {":", "："}:
        yield "ends :"
    if _CODE.search(text):
        yield "code"
    if _LIST.match(text):
        yield "list"
    if _EMOJI.search(text):
        yield "emoji"
    if text[:1].isupper():
        yield "capital"


def _level(count: int, *bounds: int) -> int:
    return sum(count >= bound for bound in bounds)


def _features(reading: _Reading, place: list[str], language: Language) -> Features:
    line, tokens, words, traits, _ = reading
    shapes = dict.fromkeys(f"shape {_shape(token)}" for token in tokens)
    tagged = language.tag(line.text.lower().replace("’", "'"), words)
    return Features(
        words=frozenset(word[:_MAX_WORD] for word in words),
        edges=tuple(_edges(line.text, words)),
        grammar=tuple(_grammar(line.role, tagged)),
        place=(*traits, *shapes, *place),
    )


def _edges(text: str, words: Sequence[str]) -> Iterator[str]:
    if words:
        end = text.rstrip(_FINAL)
        yield f"first {words[0]}"
        yield f"last {words[-1]}"
        yield f"begins {text[:3].lower()}"
        yield f"final {end[-3:].lower()}"
        yield f"final {end[-2:].lower()}|"


def _shape(token: str) -> str:
    if token.isdigit():
        return f"digits {min(len(token), 6)}"
    if token[0].isdigit():
        return _DIGIT.sub("9", token)[:6]
    if not token[0].isalpha():
        return token
    if token[0].isupper():
        return "Aa" if token[1:].islower() else "AA" if token.isupper() and len(token) > 1 else "a"
    return "a"


def _grammar(role: Role, tagged: Sequence[tuple[str, Classes]]) -> set[str]:
    found = {f"has {name}" for _, classes in tagged for name in classes}
    frame = ["^"]
    for token, classes in tagged:
        symbol = classes[0] if classes else _symbol(token)
        if symbol != "word" or frame[-1] != "word":
            frame.append(symbol)
    frame.append("$")
    pairs = {f"order {a} {b}" for a, b in pairwise(frame)}
    triples = {f"order {a} {b} {c}" for a, b, c in zip(frame, frame[1:], frame[2:], strict=False)}
    return found | pairs | triples | {f"{role}: {feature}" for feature in found | pairs}


def _symbol(token: str) -> str:
    return "number" if token[0].isdigit() else "word" if token[0].isalpha() else token[0]


def _places(readings: Sequence[_Reading]) -> list[list[str]]:
    """Features of where each line stands, message by message."""
    starts = [at for at, r in enumerate(readings) if at == 0 or r.line.start == "message"]
    bounds = [*starts, len(readings)]
    places: list[list[str]] = []
    for start, end in pairwise(bounds):
        before = readings[start - 1] if start else None
        after = readings[end] if end < len(readings) else None
        message = readings[start:end]
        places += [_place(message, at, before, after) for at in range(len(message))]
    return places


def _place(
    message: Sequence[_Reading], at: int, before: _Reading | None, after: _Reading | None
) -> list[str]:
    reading = message[at]
    role, size = reading.line.role, _level(len(message), 2, 3, 4, 7)
    previous = before.line.role if before else "none"
    place = [
        f"role {role}",
        f"at {min(at, 3)}",
        f"{role}: at {min(at, 3)}",
        f"left {min(len(message) - 1 - at, 3)}",
        f"size {size}",
        f"{role}: size {size}",
        f"starts {reading.line.start}",
        f"after {previous}",
        f"{role}: after {previous}",
        f"before {after.line.role if after else 'none'}",
        *(f"{role}: {trait}" for trait in reading.shared),
        *(f"{role}: {trait}" for trait in reading.traits if trait.startswith("capitals")),
    ]
    if at:
        place += [f"previous: {trait}" for trait in message[at - 1].shared]
        place += [f"opening: {trait}" for trait in message[0].shared]
    elif before:
        place += [f"{role}: reply to: {trait}" for trait in before.shared]
    if at + 1 < len(message):
        place += [f"next: {trait}" for trait in message[at + 1].shared]
    elif after:
        place += [f"reply: {trait}" for trait in after.shared]
    return place
