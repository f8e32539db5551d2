"""Snippets of texts around the words of a query, within a budget and without secrets."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace

from remanence.notes.excerpts import whole
from remanence.notes.redact import redact
from remanence.protocols import CountTokens
from remanence.recall.words import WORD, fold
from remanence.types import Hit

SNIPPET_CHARACTERS = 400
_SECRET_REACH = 2_000
"""Characters before and after a passage in which secrets are looked for, and their names."""
_KEY_BEGINS, _KEY_REACH = "-----BEGIN ", 20_000
"""How a private key begins, which may be much longer, and how far before a passage."""
_MIN_SNIPPET = 24
_SHORTEST_WORD = 3
_MAX_QUERY = 400
"""Characters of a query that are matched for snippets."""


def snippet(text: str, query: str, *, characters: int = SNIPPET_CHARACTERS) -> str:
    """Return a short text in full, and of a long one the stretch densest in query words."""
    flat = " ".join(text.split())
    if len(flat) <= characters:
        return flat
    places = sorted(_places(fold(flat), fold(query)))
    start = _densest(places, characters * 3 // 4) - characters // 8
    start = max(0, min(start, len(flat) - characters))
    start, end = start and whole(flat, start, step=1), whole(flat, start + characters)
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
