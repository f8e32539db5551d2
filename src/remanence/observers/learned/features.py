"""Features of a sentence: n-grams of its words, its grammar, its shape, and the message that it answers."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from remanence.observers.learned.function_words import WORD, Classes, language_of, lower_words

Role = Literal["user", "assistant", "tool"]

GRAM = 4
GRAMS_HANGUL = (2, 3)
GRAMS_UNSPACED = (1, 2, 3, 4)
_MIN_WORD, _MAX_WORD = 2, 200
QUESTION = re.compile(r"[?？؟]")
_CODE = re.compile(r"[\w.]\(|[{};<>]|\w/\w|\w_\w|^\s*[$#>]|\w\.\w{2,4}\b|`|=")
QUOTE = re.compile(r"[\"“”«»„「」『』‘]|(?<!\w)'|'(?!\w)")
_LIST = re.compile(r"\s*(?:[-*•]|\d+[.)])\s")
_EMOJI = re.compile("[\U0001f300-\U0001faff\u2600-\u27bf]")
_DIGIT = re.compile(r"\d")
_FINAL = ".!?。！？ "
UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_HANGUL = re.compile(r"[\uac00-\ud7a3]")


class Line(NamedTuple):
    """A sentence of a conversation, or one row of code or of a tool's output."""

    text: str
    role: Role
    reply_to: "Line | None" = None
    """The last line of the message before."""
    opening: "Line | None" = None
    """The first line of its message, unless it is the first itself."""
    is_quoted: bool = False
    """Most of it is within quotation marks or a letter of somebody else; no feature."""
    is_handed_over: bool = False
    """It is behind "Translate this:"; no feature."""


class Features(NamedTuple):
    """Features of a line in three groups; each group is divided by the root of its size."""

    words: frozenset[str]
    """Distinct words in lower case, whose n-grams `word_grams` gives."""
    grammar: tuple[str, ...]
    shape: tuple[str, ...]


def features(line: Line) -> Features:
    """Features of a line; other lines of its message have no part in them."""
    tokens = WORD.findall(line.text)
    words = [token.lower() for token in tokens]
    tagged = tag(line.text, words)
    return Features(
        words=frozenset(word[:_MAX_WORD] for word in words),
        grammar=tuple(_grammar(line.role, tagged)),
        shape=(*_shape(line, tokens), *_edges(line.text, words)),
    )


def tag(text: str, words: Sequence[str] | None = None) -> list[tuple[str, Classes]]:
    """Tokens of a text with the classes of its function words; *words* are those of `lower_words`."""
    words = lower_words(text) if words is None else words
    return language_of(text, words).tag(text.lower().replace("’", "'"), words)


def word_grams(word: str) -> set[str]:
    """Character n-grams of a word, with its bounds in a script that has spaces."""
    if word[0].isdigit():
        return set()
    if not word[0].isalpha():
        return {f"sign {word}"}
    unspaced = UNSPACED.match(word)
    padded = word if unspaced else f" {word} "
    of_script = GRAMS_HANGUL if _HANGUL.match(word) else (GRAM,)
    sizes = GRAMS_UNSPACED if unspaced else of_script
    grams = {padded[at : at + size] for size in sizes for at in range(len(padded) - size + 1)}
    if len(word) >= _MIN_WORD:
        grams.add(f"word {word}")
    return grams


def _grammar(role: Role, tagged: Sequence[tuple[str, Classes]]) -> set[str]:
    found: set[str] = set()
    frame = ["^"]
    for token, classes in tagged:
        found.update(*(_with_role(role, f"has {name}") for name in classes))
        symbol = symbol_of(token, classes)
        if symbol != "word" or frame[-1] != "word":
            frame.append(symbol)
    frame.append("$")
    found.update(map(_order, frame, frame[1:]))
    found.update(map(_order, frame, frame[1:], frame[2:]))
    return found


def _with_role(role: Role, feature: str) -> tuple[str, str]:
    return feature, f"{role}: {feature}"


def _order(*symbols: str) -> str:
    return f"order {' '.join(symbols)}"


def symbol_of(token: str, classes: Classes) -> str:
    """Return the first class of a token, or its kind."""
    if classes:
        return classes[0]
    return "number" if token[0].isdigit() else "word" if token[0].isalpha() else token[0]


def _shape(line: Line, tokens: Sequence[str]) -> Iterator[str]:
    yield f"role {line.role}"
    shared = _shared_traits(line.text, len(tokens))
    capitals = sum(token[0].isupper() and not token.isupper() for token in tokens[1:])
    yield from _with_role(line.role, f"capitals {level(capitals, 1, 2, 4)}")
    for trait in shared:
        yield from _with_role(line.role, trait)
    yield f"length {level(len(line.text), 5, 10, 20, 40, 60, 90, 130)}"
    if _LIST.match(line.text):
        yield "list"
    if line.text[:1].isupper():
        yield "capital"
    yield f"{line.role}: after {line.reply_to.role if line.reply_to else 'none'}"
    if line.reply_to:
        replied = line.reply_to.text
        for trait in _shared_traits(replied, len(WORD.findall(replied))):
            yield f"{line.role}: reply to: {trait}"


def _shared_traits(text: str, tokens: int) -> list[str]:
    """Traits of a text that matter to a reply too."""
    last = text.rstrip()[-1:]
    traits = {
        f"tokens {level(tokens, 2, 3, 5, 8, 12, 18, 25)}": True,
        f"digits {level(len(_DIGIT.findall(text)), 1, 2, 4, 8)}": True,
        f"quotes {min(3, len(QUOTE.findall(text)))}": True,
        "question": QUESTION.search(text),
        "ends ?": last in ("?", "？", "؟"),
        "ends :": last in (":", "："),
        "code": _CODE.search(text),
        "emoji": not text.isascii() and _EMOJI.search(text),
    }
    return [name for name, is_present in traits.items() if is_present]


def _edges(text: str, words: Sequence[str]) -> Iterator[str]:
    if words:
        yield f"first {words[0]}"
        yield f"last {words[-1]}"
        yield f"begins {text[:3].lower()}"
        yield f"final {text.rstrip(_FINAL)[-3:].lower()}"


def level(amount: float, *bounds: float) -> int:
    """Return how many of the bounds an amount reaches."""
    return sum(amount >= bound for bound in bounds)
