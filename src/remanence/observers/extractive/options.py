"""Options of a message that an answer names by their labels: "2", "then b", "option C, please"."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from remanence.languages.vocabulary import LANGUAGES, determiners, vocabulary, vocabulary_of
from remanence.notes.excerpts import ELLIPSIS, beginning, both_ends
from remanence.observers.extractive.passage import ASKS
from remanence.observers.extractive.readable import without_emphasis
from remanence.observers.extractive.sentences import sentences
from remanence.observers.learned.features import tag
from remanence.observers.learned.function_words import Classes

_LABEL = r"[A-Za-z]|\d{1,2}"
_KIND = r"(?:(?P<kind>[^\W\d_]{2,20})[ \t]|[^\W\d_A-Za-z])?"
"""The word before a label, "Option A", or its counter without a space."""
_SIGN = r"(?:[^\W\d_A-Za-z]|[°º])"
"""A counter behind a label, or the sign of an ordinal."""
_STOP = r"(?:[)）.](?=\D)|[ \t]?[:：]|[ \t]*[-–—](?=\s)|(?=[ \t]*$))"
_AT_START = rf"^[ \t>]*(?:[-*•+#]+[ \t]+)?{_KIND}[(（]?(?P<first>{_LABEL}){_SIGN}?{_STOP}"
_WITHIN = rf"(?<![^\s(（,;:，、；：。？！])[(（]?(?P<inline>{_LABEL})[)）]"
_LABELED = re.compile(rf"(?:{_AT_START}|{_WITHIN})[ \t]*", re.MULTILINE)
"""A label at the beginning of a line, or one with a bracket."""
_FIRST = frozenset({"0", "1", "a"})
_MARKS = frozenset(".:：)）")
"""Marks between a label and what is said about that point: "b) no idea"."""
_PAUSES = frozenset('.,;:!?。、，；：！？…–—()（）"“”&+/')
_DASHES = frozenset("-–—")
_EDGE = ""
_COUNTS = frozenset({"how", "when"})
"""Classes of words in a question that a number answers."""
_BEHIND_LABEL = frozenset(
    ("be", "was", "neg", "yes", "okay", "please", "or", "but", "can", "should", "will", "would")
)
"""Classes of words behind a label that opens a sentence, and behind no number of things."""
_MAX_JOIN = 3
"""Characters of a word between two labels: "1 and 3"."""
_SENTENCE_END = re.compile(r"\n|[.!。！](?=\s|[^\W\d_])")
_MAX_READ = 20_000
_MAX_OPTION = 60
"""Characters of an option that is quoted."""
_MAX_TEXT = 120
"""Characters of options that are quoted together."""


class Option(NamedTuple):
    """An entry of a labeled list, and the word before its label, if there is one."""

    label: str
    kind: str
    text: str


class _Token(NamedTuple):
    text: str
    classes: Classes

    @property
    def is_pause(self) -> bool:
        return self.text in _PAUSES or self.text == _EDGE


class Options(NamedTuple):
    """The entries of the lists of a message, by their labels in small letters.

    `counts` says that a number alone may be another answer: the message ends with a question how
    many, or when.
    """

    entries: Mapping[str, Option]
    counts: bool

    def named_in(self, sentence: str) -> Sequence[Option]:
        """Return the options that a sentence names by their labels, in this order."""
        if not self.entries:
            return ()
        tokens = [_Token(_EDGE, ()), *_tokens(sentence), *(2 * [_Token(_EDGE, ())])]
        small = vocabulary_of(sentence).function_words | determiners()
        named = dict.fromkeys(
            token.text
            for run in self._runs(tokens)
            if self._is_named(run, tokens, small)
            for token in tokens[run.start : run.stop]
            if token.text in self.entries
        )
        return [self.entries[label] for label in named]

    def _runs(self, tokens: Sequence[_Token]) -> Iterator[range]:
        """Yield where labels are with one short word or mark between them: "1 and 3", "a, b or c"."""
        run = range(0)
        for at, token in enumerate(tokens):
            if token.text in self.entries:
                if run and at == run.stop + 1 and _may_join(tokens[run.stop]):
                    run = range(run.start, at + 1)
                else:
                    if run:
                        yield run
                    run = range(at, at + 1)
        if run:
            yield run

    def _is_named(self, run: range, tokens: Sequence[_Token], small: frozenset[str]) -> bool:
        before, label = tokens[run.start - 1 : run.start + 1]
        last, behind, second = tokens[run.stop - 1 : run.stop + 2]
        kind = self.entries[label.text].kind
        if kind and before.text == kind:
            return True
        ends_sentence = len(run) > 1 and behind.text == "."
        if behind.text in _MARKS and second.text != _EDGE and not ends_sentence:
            about_it = self.entries[last.text]  # what is behind is about that point
            return about_it.text.rstrip().endswith(ASKS)
        if before.is_pause and behind.is_pause:
            return not (label.text.isdigit() and self.counts)
        if not label.text.isdigit():
            return _is_letter_of_option(run, before, last, behind, small)
        if before.text in determiners() and not self.counts:
            return behind.is_pause or bool(behind.classes) or behind.text in small
        is_several = len(run) > 1 and not _counts_things(tokens[run.start : run.stop], behind)
        if is_several and (before.is_pause or behind.is_pause):
            return True
        return (is_several or before.is_pause) and not _BEHIND_LABEL.isdisjoint(behind.classes)


def _may_join(between: _Token) -> bool:
    return len(between.text) <= _MAX_JOIN and between.text not in _MARKS


def _is_letter_of_option(
    run: range, before: _Token, last: _Token, behind: _Token, small: frozenset[str]
) -> bool:
    """Return whether a letter, or several, are labels rather than words, such as "a"."""
    is_behind_small = bool(before.classes) or before.text in small
    if len(run) > 1 and (before.is_pause or is_behind_small):
        return True
    if behind.is_pause and is_behind_small:
        return True
    is_apart = len(run) > 1 or before.is_pause or before.text in determiners()
    return is_apart and last.text not in _words_of_a_letter()


def _counts_things(numbers: Sequence[_Token], behind: _Token) -> bool:
    """Return whether numbers say how many of the things behind them: "2 or 3 times", "1 and 2 days"."""
    is_range = any("or" in token.classes or token.text in _DASHES for token in numbers)
    return is_range or "unit" in behind.classes


@lru_cache(maxsize=8)
def options_of(text: str) -> Options:
    """Return the entries of the labeled lists of a message.

    A list has two entries or more, and begins with 1, 0 or a. Of two lists with the same kind of
    labels, digits or letters, the later one counts.
    """
    text = without_emphasis(both_ends(text, _MAX_READ))
    lists: dict[bool, list[Option]] = {}
    runs: dict[bool, list[Option]] = {}
    for option in _entries(text):
        is_number = option.label.isdigit()
        run = runs.setdefault(is_number, [])
        if option.label.lower() in _FIRST:
            run[:] = [option]
        elif run and _follows(option.label, run[-1].label):
            run.append(option)
        if len(run) > 1:
            lists[is_number] = list(run)
    entries = {option.label.lower(): option for run in lists.values() for option in run}
    return Options(entries, bool(entries) and _asks_for_number(text))


def show(options: Sequence[Option]) -> str:
    """Return the first sentences of options, behind their labels, as one quotation of bounded size."""
    room = min(_MAX_OPTION, _MAX_TEXT // len(options))
    return "; ".join(f"{option.label}: {_shorten(option.text, room)}" for option in options)


def _shorten(text: str, room: int) -> str:
    sentence = text[: next(sentences(text)).end].rstrip(".")
    short = beginning(sentence, room).rstrip(ELLIPSIS)
    return short if short == sentence else f"{short} {ELLIPSIS}"


def _entries(text: str) -> Iterator[Option]:
    places = list(_LABELED.finditer(text))
    ends = [*(place.start() for place in places[1:]), len(text)]
    for place, end in zip(places, ends, strict=False):
        said = text[place.end() : end].strip().partition("\n")[0].rstrip(" \t.,;（(")
        if said:
            label = place["first"] or place["inline"]
            yield Option(label, (place["kind"] or "").casefold(), said)


def _follows(label: str, before: str) -> bool:
    if label.isdigit():
        return int(label) == int(before) + 1
    return ord(label.lower()) == ord(before.lower()) + 1


def _asks_for_number(text: str) -> bool:
    last = _SENTENCE_END.split(text.rstrip())[-1]
    asks = last.endswith(ASKS)
    return asks and any(not _COUNTS.isdisjoint(classes) for _, classes in _tokens(last))


def _tokens(text: str) -> list[_Token]:
    return [_Token(word, classes) for word, classes in tag(text) if not word.isspace()]


@cache
def _words_of_a_letter() -> frozenset[str]:
    """Return the letters that are words in some language: "a", "y", "o"."""
    words = frozenset[str]().union(*(vocabulary(each).function_words for each in LANGUAGES))
    return frozenset(word for word in words if len(word) == 1)
