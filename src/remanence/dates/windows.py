"""The windows of a text to search: those near a word that signals a date."""

from collections.abc import Iterable, Iterator
from itertools import chain

from remanence.dates.language import WORD, Language, fold, language_of, languages, words_of

_REACH = 60
"""Characters to search around a trigger; no mention is longer."""
_GAP = 30
"""Triggers closer than this share a window."""

_MAX_FOREIGN = 1
"""Words by which another language may fit a window better."""

Windows = list[tuple[int, int]]


def windows_to_read(text: str) -> Iterator[tuple[Language, Windows]]:
    """Yield the languages of possible dates in `text`, each with the windows to search."""
    yield from _near_words(text)
    for language in languages():
        if not language.triggers and language.may_be(text):
            found = _windows(trigger.start() for trigger in language.trigger.finditer(text))
            if found:
                yield language, found


def is_foreign(language: Language, words: frozenset[str]) -> bool:
    """Return whether `words` are rather those of a language with confusable words."""
    if not language.confusable:
        return False
    most = len(words & language.known_words) + _MAX_FOREIGN
    return any(len(words & language_of(name).known_words) > most for name in language.confusable)


def _near_words(text: str) -> Iterator[tuple[Language, Windows]]:
    """Yield the languages with spaces between words, found in a single pass over the text."""
    words = words_of(text)
    triggers = {language: language.trigger_words & words for language in languages()}
    positions: dict[str, list[int]] = {word: [] for own in triggers.values() for word in own}
    for found in WORD.finditer(text) if positions else ():
        if (places := positions.get(fold(found[0]))) is not None:
            places.append(found.start())
    for language, own in triggers.items():
        if own:
            yield language, _windows(sorted(chain.from_iterable(positions[w] for w in own)))


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
