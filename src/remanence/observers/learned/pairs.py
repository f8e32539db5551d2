"""Score of two statements of a user: that the later one ends what the earlier one says.

They are compared by how much they share, where they differ, the classes of their function words,
and learned scores of the later one. No word of content is a feature.
"""

from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import chain
from math import inf, sqrt
from typing import NamedTuple, TypeAlias

from remanence.observers.learned.features import UNSPACED, Line, level, symbol_of, tag, word_grams
from remanence.observers.learned.function_words import WORD, Classes
from remanence.observers.learned.score import scorer
from remanence.observers.learned.statements import CHANGES, statement_scores
from remanence.observers.learned.weights import load, packed_rows, unpack

FILE = "pairs.bin"
ENDS = "ends"
"""The head: that the later statement ends the earlier one."""

Groups: TypeAlias = tuple[tuple[str, ...], ...]

_SURE_CHANGE, _MOST = 1.0, 0.6
"""Score of a change from which a statement may end any other, and the share of the parts of words of
another that it says again from which it may end that.

Without these as conditions, 29 % of the facts of unseen users that a later one ends still hold, and
with them 19 %.
"""
_COLONS = (":", "：")
_STEM = 4
"""Letters of a word that two statements have, so that it is more than an article."""
_HEADS = ("end", "rep", "corr", "out", "habit", "fut", "pref", "inst", "dec", "personal", "next")


class Token(NamedTuple):
    """A word, a number or a colon, with the classes of a function word and its kind."""

    key: str
    classes: Classes
    kind: str


class _Statement(NamedTuple):
    """The words of a statement, without signs."""

    words: tuple[str, ...]
    classes: frozenset[str]
    content: frozenset[str]
    grams: frozenset[str]
    """Parts of the words of content."""
    numbers: frozenset[str]


def score_of_end(earlier: str, later: str) -> float:
    """Return how far the score is above its cutoff; minus infinity if they share no part of a word."""
    return score_of_groups(pair_features(earlier, later), FILE)


def may_end(earlier: str, later: str) -> bool:
    """Return whether the later statement surely says a change, or most of the earlier one again."""
    one, other = _statement(earlier), _statement(later)
    if len(one.grams & other.grams) >= _MOST * len(one.grams):
        return True
    return _change_score(later) >= _SURE_CHANGE


def score_of_groups(groups: Groups, file: str) -> float:
    """Return how far a score of features is above its cutoff; minus infinity if there are none.

    *file* names weights that ship with the package and have one head alone.
    """
    if not groups:
        return -inf
    weights = load(file)
    total = sum(_share(group, file) for group in groups)
    return weights.biases[0] + weights.scales[0] * total - weights.cutoffs[weights.heads[0]]


@lru_cache(maxsize=16_384)
def _share(group: tuple[str, ...], file: str) -> float:
    """Return the share of a group of features in a score; many pairs have the same."""
    return unpack(packed_rows(file).total(group), 1)[0] / sqrt(len(group))


def pair_features(earlier: str, later: str) -> Groups:
    """Groups of features of two statements; none if they share no part of a word of content."""
    shared = shared_features(earlier, later)
    one, other = _statement(earlier), _statement(later)
    return (_differences(one.words, other.words), *shared) if shared else ()


def shared_features(earlier: str, later: str) -> Groups:
    """The groups of features of two statements but for their differences word by word."""
    one, other = _statement(earlier), _statement(later)
    if one.grams.isdisjoint(other.grams):
        return ()
    found = _overlap(one, other), _classes(one.classes, other.classes)
    return (*filter(None, found), _scores(later), _change(one, other, later))


@lru_cache(maxsize=4_096)
def tokens_of(text: str) -> tuple[Token, ...]:
    """The tokens without signs; in a script without spaces, each character of what has no class."""
    said = WORD.findall(text)
    tagged = tag(text, [word.lower() for word in said])
    found: list[Token] = []
    for at, (token, classes) in enumerate(tagged):
        if token in _COLONS:
            found.append(Token(":", (), ":"))
        elif UNSPACED.match(token) and not classes:
            found += (Token(character, (), "word") for character in token)
        elif token[0].isalnum():
            kind = "digits" if token.isdigit() else symbol_of(token, classes)
            is_name = kind == "word" and at and len(tagged) == len(said) and said[at][0].isupper()
            found.append(Token(token, classes, "name" if is_name else kind))
    return tuple(found)


@lru_cache(maxsize=4_096)
def _statement(text: str) -> _Statement:
    words = [token for token in tokens_of(text) if token.key != ":"]
    content = frozenset(word.key for word in words if not word.classes)
    # The n-grams of words, without the words, and whole numbers; a single letter has none.
    grams = (
        {word} if word[0].isdigit() else word_grams(word) - {f"word {word}"} for word in content
    )
    return _Statement(
        words=tuple(word.key for word in words),
        classes=frozenset(name for word in words for name in word.classes),
        content=content,
        grams=frozenset(chain.from_iterable(grams)),
        numbers=frozenset(word.key for word in words if word.key[0].isdigit()),
    )


def _overlap(one: _Statement, other: _Statement) -> tuple[str, ...]:
    """The features of how much two statements share."""
    common, shared = len(one.grams & other.grams), one.content & other.content
    fewer, more = (len(said.content) - len(shared) for said in (one, other))
    earlier, later = (
        level(common / len(said.grams), 0.05, 0.15, 0.3, 0.45, 0.6, 0.8) for said in (one, other)
    )
    longest = max(map(len, shared), default=0)
    numbers = _relation(one.numbers, other.numbers)
    features = (
        f"covers earlier {earlier}",
        f"covers later {later}",
        f"common grams {level(common, 1, 2, 4, 7, 12)}",
        f"longest common {level(longest, 1, 3, 4, 5, 6, 8, 10)}",
        f"only earlier {level(fewer, 1, 2, 3, 5)}",
        f"only later {level(more, 1, 2, 3, 5)}",
        f"only either {level(fewer, 1, 2, 3)} {level(more, 1, 2, 3)}",
    )
    return (*features, f"numbers {numbers}") if numbers else features


def _relation(one: frozenset[str], other: frozenset[str]) -> str:
    """Return how the numbers of two statements relate, "" if they have none."""
    if one == other:
        return "same" if one else ""
    if not (one and other):
        return "later" if other else "earlier"
    return "within" if one < other or other < one else "other"


def _differences(one: Sequence[str], other: Sequence[str]) -> tuple[str, ...]:
    """The features of what is replaced, added or left out, and at which place."""
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    changes = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    alike = level(matcher.ratio(), 0.1, 0.25, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    features = [f"changes {level(len(changes), 1, 2, 3, 5)}", f"alike {alike}"]
    for change, begin, end, start, stop in changes:
        size = len(other) if stop > start else len(one)
        place = _place(*((start, stop) if stop > start else (begin, end)), size)
        features.append(f"{change} {place}")
    return tuple(dict.fromkeys(features))


def _place(begin: int, end: int, size: int) -> str:
    if begin == 0:
        return "all" if end == size else "start"
    return "end" if end == size else "middle"


def _classes(one: frozenset[str], other: frozenset[str]) -> tuple[str, ...]:
    """The classes of function words, with which of the statements have them."""
    found = ((one & other, "both"), (one - other, "earlier"), (other - one, "later"))
    return tuple(f"{which}: {name}" for names, which in found for name in sorted(names))


def _change(one: _Statement, other: _Statement, later: str) -> tuple[str, ...]:
    """The score that the later statement says a change, in steps, alone and with a common word."""
    names_it = any(len(word) >= _STEM for word in one.content & other.content)
    change = _change_score(later)
    return (
        f"change {level(change, -1.5, -1, -0.5, 0, 0.5, 1, 1.5)}",
        f"change {level(change, -1, 0, 1)} {names_it}",
    )


@lru_cache(maxsize=4_096)
def _change_score(text: str) -> float:
    """Return by how much the score that a statement says a change is above its cutoff."""
    return statement_scores(Line(text, "user"))[CHANGES]


@lru_cache(maxsize=4_096)
def _scores(text: str) -> tuple[str, ...]:
    """The scores of a statement, in steps."""
    line = Line(text, "user")
    own, scores = scorer(), scorer().score(line)
    over = {CHANGES: _change_score(text)} | {h: own.over(scores, h) for h in _HEADS}
    return tuple(f"{head} {level(above, -2, -1, 0, 1)}" for head, above in over.items())
