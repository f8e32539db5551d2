"""Score of two facts: that the later one ends the earlier one.

Besides what scores of statements compare, facts are compared word by word: what is replaced or
added, of which kind and between which words, and which words are shared. The words that a value is
replaced by are no features, so that any employer replaces any other.
"""

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from remanence.observers.learned.features import level, word_grams
from remanence.observers.learned.pairs import (
    Groups,
    Token,
    score_of_groups,
    shared_features,
    tokens_of,
)

FILE = "fact_pairs.bin"
_AROUND = 2
"""Words on either side of a change that say what it is a value of: "works at", "is _ years"."""
Tokens: TypeAlias = Sequence[Token]


class _Change(NamedTuple):
    """Tokens of the earlier fact in whose place the later one has others, and their place."""

    earlier: Tokens
    later: Tokens
    place: str
    before: Tokens
    after: Tokens

    @property
    def what(self) -> str:
        return "replace" if self.earlier and self.later else "insert" if self.later else "delete"


def score_of_facts(earlier: str, later: str) -> float:
    """Return how far the score is above its cutoff; minus infinity if they share no part of a word."""
    return score_of_groups(fact_features(earlier, later), FILE)


def fact_features(earlier: str, later: str) -> Groups:
    """Groups of features of two facts; none if they share no part of a word."""
    changed = _changes_of_words(earlier, later)
    return (*changed, *shared_features(earlier, later)) if changed else ()


def _changes_of_words(earlier: str, later: str) -> Groups:
    """Groups of features of how the words of two facts differ."""
    if _shareable(earlier).isdisjoint(_shareable(later)):
        return ()
    one, other = tokens_of(earlier), tokens_of(later)
    shared, changes, pattern = _compare(one, other)
    if not any(token.key[0].isalnum() for token in shared) and _grams(one).isdisjoint(
        _grams(other)
    ):
        return ()  # They share words on either side of a colon.
    only: tuple[Tokens, Tokens] = (
        [token for change in changes for token in change.earlier],
        [token for change in changes for token in change.later],
    )
    is_value = (
        len(changes) == 1 and changes[0].what == "replace" and "start" not in changes[0].place
    )
    groups = (
        (pattern, f"changes {min(4, len(changes))}", *_key(one, other)),
        _kinds(changes),
        _amounts(one, other, shared, only),
        _frames(changes),
        (f"shared {name}" for name in _names(shared)),
        (f"earlier {name}" for name in _names(() if is_value else only[0])),
        (f"later {name}" for name in _names(() if is_value else only[1])),
    )
    return tuple(filter(None, (tuple(dict.fromkeys(group)) for group in groups)))


@lru_cache(maxsize=4_096)
def _shareable(text: str) -> frozenset[str]:
    """The words, numbers and n-grams of a text, of which two facts share one if they have a score."""
    tokens = tokens_of(text)
    return _grams(tokens).union(token.key for token in tokens if token.key[0].isalnum())


def _compare(one: Tokens, other: Tokens) -> tuple[Tokens, Sequence[_Change], str]:
    """Return the tokens that two facts share, their changes, and the order of both."""
    keys, later_keys = ([token.key for token in tokens] for tokens in (one, other))
    codes = SequenceMatcher(None, keys, later_keys, autojunk=False).get_opcodes()
    shared = [t for code, begin, end, *_ in codes if code == "equal" for t in one[begin:end]]
    changes = []
    for code, begin, end, start, stop in codes:
        if code != "equal":
            opens, closes = not (begin and start), end == len(one) or stop == len(other)
            place = " ".join(("start",) * opens + ("end",) * closes) or "middle"
            around = one[max(0, begin - _AROUND) : begin], one[end : end + _AROUND]
            changes.append(_Change(one[begin:end], other[start:stop], place, *around))
    return shared, changes, f"pattern {' '.join(code for code, *_ in codes[:6])}"


def _key(one: Tokens, other: Tokens) -> Iterator[str]:
    """Yield whether the words before a colon are the same."""
    keys = [_before_colon(tokens) for tokens in (one, other)]
    if any(keys):
        yield f"key {keys[0] == keys[1] if all(keys) else 'of one'}"


def _before_colon(tokens: Tokens) -> Sequence[str]:
    keys = [token.key for token in tokens]
    return keys[: keys.index(":")] if ":" in keys else ()


def _kinds(changes: Sequence[_Change]) -> Iterator[str]:
    """Yield what changes at which place, and the kinds of the words there and around."""
    for change in changes:
        what = f"{'lone ' * (len(changes) == 1)}{change.what}"
        earlier, later = ({token.kind for token in tokens} for tokens in change[:2])
        before = change.before[-1].kind if change.before else "edge"
        after = change.after[0].kind if change.after else "edge"
        yield f"{what} {change.place}"
        yield f"{what} {change.place} {' '.join(sorted(earlier | later))}"
        yield f"{what} {change.place} between {before} {after}"
        yield f"{what} before {before}"
        yield f"{what} after {after}"
        yield f"{what} between {before} {after}"
        yield f"{what} sizes {min(3, len(change.earlier))} {min(3, len(change.later))}"
        for which, kinds in (
            ("both", earlier & later),
            ("earlier", earlier - later),
            ("later", later - earlier),
        ):
            yield from (f"{what} {which} {kind}" for kind in sorted(kinds))


def _frames(changes: Sequence[_Change]) -> Iterator[str]:
    """Yield the words on either side of the only change."""
    for change in changes if len(changes) == 1 else ():
        before, after = (
            [token.key for token in tokens] for tokens in (change.before, change.after)
        )
        for size in range(1, len(before) + 1):
            yield f"{change.what} behind {' '.join(before[-size:])}"
        for size in range(1, len(after) + 1):
            yield f"{change.what} ahead of {' '.join(after[:size])}"


def _amounts(one: Tokens, other: Tokens, shared: Tokens, only: Sequence[Tokens]) -> Iterator[str]:
    """Yield how much is shared, how alike the rest is, and the classes that only one fact has."""
    words = sum(not token.classes and token.key[0].isalpha() for token in shared)
    share = len(shared) / max(len(one), len(other))
    earlier, later = map(_grams, only)
    alike = len(earlier & later) / (min(len(earlier), len(later)) or 1)
    yield f"shared words {min(4, words)}"
    yield f"other shared {min(4, len(shared) - words)}"
    yield f"share {level(share, 0.2, 0.4, 0.5, 0.6, 0.75, 0.85)}"
    yield f"rest alike {level(alike, 0.05, 0.2, 0.4, 0.6)}"
    for which, tokens in zip(("earlier", "later"), only, strict=True):
        yield from (f"{which} has {name}" for token in tokens for name in token.classes)


def _grams(tokens: Iterable[Token]) -> frozenset[str]:
    return frozenset(gram for token in tokens if not token.classes for gram in _parts(token))


def _names(tokens: Iterable[Token]) -> Iterator[str]:
    """Yield the n-grams of words of content, and function words with their first class."""
    for token in tokens:
        if token.classes:
            yield from (f"word {token.key}", f"class {token.classes[0]}")
        else:
            yield from _parts(token)


def _parts(token: Token) -> Iterable[str]:
    return () if token.key[0].isdigit() else _word_grams(token.key)


@lru_cache(maxsize=1 << 14)
def _word_grams(word: str) -> tuple[str, ...]:
    return tuple(sorted(word_grams(word)))
