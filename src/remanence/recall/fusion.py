"""Fusing the hits of several searches by rank, and cutting them to snippets and a budget."""

import re
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from remanence.facts.tags import speaker_of
from remanence.languages.letters import LETTER_OR_DIGIT
from remanence.notes.excerpts import whole
from remanence.notes.plain_text import plain_text
from remanence.notes.redact import redact
from remanence.protocols import CountTokens
from remanence.types import Fact, Hit

Found = TypeVar("Found")

RANK_CONSTANT = 60
"""The constant k of reciprocal rank fusion (Cormack et al., 2009): higher values flatten ranks."""

SNIPPET_CHARACTERS = 400
_SECRET_REACH = 2_000
"""Characters before and after a passage in which secrets are looked for, and their names."""
_KEY_BEGINS, _KEY_REACH = "-----BEGIN ", 20_000
"""How a private key begins, which may be much longer, and how far before a passage."""
_MIN_SNIPPET = 24
WORD = re.compile(rf"{LETTER_OR_DIGIT}+")
"""A word with its combining marks, which `\\w` excludes, and zero-width joiners."""
_SHORTEST_WORD = 3
_MAX_CACHED = 2_000
"""Characters of a text whose folded form is remembered, as each turn searches the same messages."""
_MAX_QUERY = 400
"""Characters of a query that are matched for snippets."""


def by_reciprocal_rank(
    rankings: Iterable[Iterable[Found]], key: Callable[[Found], Hashable]
) -> list[tuple[Found, float]]:
    """Fuse rankings: an item scores the sum of 1 / (60 + rank) over all rankings that have it.

    Of items with the same key, the first one stays.
    """
    scores: dict[Hashable, float] = {}
    first: dict[Hashable, Found] = {}
    for ranking in rankings:
        for rank, found in enumerate(ranking, start=1):
            scores[key(found)] = scores.get(key(found), 0.0) + 1 / (RANK_CONSTANT + rank)
            first.setdefault(key(found), found)
    return [(first[each], scores[each]) for each in sorted(first, key=lambda each: -scores[each])]


def fuse(rankings: Iterable[Sequence[Hit]]) -> tuple[Hit, ...]:
    """Return the hits of all rankings, best first, with their scores."""
    fused = by_reciprocal_rank(
        rankings, lambda hit: (hit.kind, hit.conversation, hit.source_id, hit.first_seq, hit.text)
    )
    return tuple(replace(hit, score=score) for hit, score in fused)


def fact_hit(fact: Fact) -> Hit:
    """Return a fact as a hit."""
    return Hit(
        kind="fact",
        text=fact.summary,
        first_seq=fact.first_seq or 0,
        last_seq=fact.last_seq or 0,
        at=fact.valid_from,
        score=0.0,
        source_id=fact.id,
        conversation=fact.conversation,
        speaker=speaker_of(fact) or None,
    )


class _Folded(dict[int, str]):
    """Characters in small letters without accents, by their codes, filled on first use."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        forms = (plain_text(character), character.casefold(), character)
        self[code] = folded = next(form for form in forms if len(form) == 1)
        return folded


_FOLDED = _Folded()


def fold(text: str) -> str:
    """Return the text case-folded, without accents, where that keeps its length: offsets stay valid."""
    if text.isascii():
        return text.casefold()
    return _fold_cached(text) if len(text) <= _MAX_CACHED else text.translate(_FOLDED)


@lru_cache(maxsize=2_048)
def _fold_cached(text: str) -> str:
    return text.translate(_FOLDED)


def snippet(text: str, query: str, *, characters: int = SNIPPET_CHARACTERS) -> str:
    """Return a short text in full, and of a long one the stretch densest in query words."""
    flat = " ".join(text.split())
    if len(flat) <= characters:
        return flat
    places = sorted(_places(fold(flat), fold(query)))
    start = _densest(places, characters * 3 // 4) - characters // 8
    start = max(0, min(start, len(flat) - characters))
    start, end = whole(flat, start, step=1), whole(flat, start + characters)
    cut = flat[start:end]
    head, tail = start > 0, end < len(flat)
    if head and " " in cut[:40]:
        cut = cut[cut.index(" ") + 1 :]
    if tail and " " in cut[-40:]:
        cut = cut[: cut.rindex(" ")]
    return f"{'… ' if head else ''}{cut}{' …' if tail else ''}"


def redact_snippet(short: str, text: str, query: str) -> str:
    """Return the snippet *short* of a text, or if secrets are near it one of the redacted text.

    It may begin with a secret whose name it leaves out.
    """
    flat = " ".join(text.split())
    at = max(0, flat.find(short.strip(" …")))
    near = around(flat, at, at + len(short))
    clean = redact(near)
    if clean == near:
        return short
    return snippet(clean, query, characters=len(short) + max(0, len(clean) - len(near)))


def around(text: str, start: int, end: int) -> str:
    """Return the part of a text that shows which words of a passage are secrets."""
    low = max(0, start - _SECRET_REACH)
    key = text.rfind(_KEY_BEGINS, max(0, start - _KEY_REACH), low + len(_KEY_BEGINS))
    return text[low if key < 0 else key : end + _SECRET_REACH]


def within(
    hits: Sequence[Hit], query: str, max_tokens: int | None, count_text: CountTokens
) -> tuple[Hit, ...]:
    """Return the hits whose snippets fit the budget, with the best one's shortened to fit."""
    if max_tokens is None:
        return tuple(hits)
    kept: list[Hit] = []
    for each in hits:
        hit = each if kept else _shorten(each, query, max_tokens, count_text)
        tokens = count_text(hit.snippet)
        if tokens <= max_tokens:
            kept.append(hit)
            max_tokens -= tokens
    return tuple(kept)


def _shorten(hit: Hit, query: str, max_tokens: int, count_text: CountTokens) -> Hit:
    """Return a hit with a snippet that fits, or is too short to be cut."""
    text, characters = hit.snippet, len(hit.snippet)
    while count_text(text) > max_tokens and characters > _MIN_SNIPPET:
        characters = characters * 3 // 4
        text = snippet(hit.snippet, query, characters=characters)
    return replace(hit, snippet=text)


def _places(text: str, query: str) -> Iterator[int]:
    """Yield the offsets of query words, also inside words for scripts without spaces."""
    for word in dict.fromkeys(WORD.findall(query[:_MAX_QUERY])):
        if word.isascii() and len(word) < _SHORTEST_WORD:
            continue
        pairs = () if word.isascii() else (word[at : at + 2] for at in range(len(word) - 1))
        for part in {word, *pairs}:
            place = text.find(part)
            while place >= 0:
                yield place
                place = text.find(part, place + len(part))


def _densest(places: Sequence[int], width: int) -> int:
    """Return the start of the stretch of *width* with the most offsets; 0 without any."""
    counts = [bisect_left(places, place + width) - index for index, place in enumerate(places)]
    return places[counts.index(max(counts))] if places else 0
