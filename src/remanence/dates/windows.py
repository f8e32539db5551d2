"""The windows of a text to search: those near a word that signals a date."""

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain

from remanence.dates.grammar import WORD, Grammar, fold, grammar_of, grammars, words_of

_REACH = 60
"""Characters to search around a trigger; no mention is longer."""
_GAP = 30
"""Triggers closer than this share a window."""

_MAX_FOREIGN = 1
"""Words by which another language may fit a window better."""

Windows = list[tuple[int, int]]


def windows_to_read(text: str) -> Iterator[tuple[Grammar, Windows]]:
    """Yield the languages of possible dates in `text`, each with the windows to search."""
    yield from _near_words(text)
    for grammar in _any_script_grammars() if text.isascii() else _unspaced_grammars():
        if grammar.may_be(text) and (first := grammar.trigger.search(text)):
            found = grammar.trigger.finditer(text, first.start())
            yield grammar, _windows(trigger.start() for trigger in found)


def is_foreign(grammar: Grammar, words: frozenset[str]) -> bool:
    """Return whether `words` are rather those of a language with confusable words."""
    if not grammar.language.confusable:
        return False
    most = len(words & grammar.known_words) + _MAX_FOREIGN
    return any(len(words & other.known_words) > most for other in _confusable(grammar))


@cache
def _confusable(grammar: Grammar) -> tuple[Grammar, ...]:
    return tuple(grammar_of(name) for name in grammar.language.confusable)


def _near_words(text: str) -> Iterator[tuple[Grammar, Windows]]:
    """Yield the languages with spaces between words, found in a single pass over the text."""
    triggers = words_of(text) & _all_trigger_words()
    if not triggers:
        return
    positions: dict[str, list[int]] = {word: [] for word in triggers}
    for found in WORD.finditer(text):
        if (places := positions.get(fold(found[0]))) is not None:
            places.append(found.start())
    for grammar in _spaced_grammars():
        own = [positions[word] for word in grammar.trigger_words & triggers]
        if own:
            yield grammar, _windows(sorted(chain.from_iterable(own)))


@cache
def _spaced_grammars() -> tuple[Grammar, ...]:
    return tuple(grammar for grammar in grammars() if grammar.language.triggers)


@cache
def _unspaced_grammars() -> tuple[Grammar, ...]:
    return tuple(grammar for grammar in grammars() if not grammar.language.triggers)


@cache
def _any_script_grammars() -> tuple[Grammar, ...]:
    return tuple(grammar for grammar in _unspaced_grammars() if not grammar.language.needs)


@cache
def _all_trigger_words() -> frozenset[str]:
    return frozenset().union(*(grammar.trigger_words for grammar in _spaced_grammars()))


def _windows(positions: Iterable[int]) -> Windows:
    found: Windows = []
    last = -1
    for position in positions:
        if found and position - last <= _GAP:
            found[-1] = (found[-1][0], position + _REACH)
        else:
            found.append((max(0, position - _REACH), position + _REACH))
        last = position
    return found
