"""Find the dates in a text and replace relative ones with absolute ones."""

import re
from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator
from datetime import datetime
from functools import partial
from re import Match
from typing import NamedTuple

from remanence.dates.ambiguity import without_doubtful
from remanence.dates.clauses import Clauses
from remanence.dates.grammar import Grammar, words_of
from remanence.dates.language import Meaning, Phrase
from remanence.dates.meanings import DateReading, calendar_day
from remanence.dates.mention import DateMention
from remanence.dates.periods import Period
from remanence.dates.render import render_date
from remanence.dates.verbatim import code_spans, in_address
from remanence.dates.windows import windows_to_read
from remanence.pacing import at_once

_WORD_BEFORE = re.compile(r"([^\W\d_]+)[., (（]*(?:(?:le|den|the|el) )?$", re.IGNORECASE)


class _Candidate(NamedTuple):
    """A match; one without a mention is a trap, which only suppresses overlapping matches."""

    start: int
    end: int
    mention: DateMention | None


def find_dates(text: str, at: datetime) -> tuple[DateMention, ...]:
    """Find the dates in `text`, written at `at`, from left to right and without overlap.

    Where matches overlap, the leftmost and then the longest wins. Days are in the time zone of
    `at`. Code, addresses and paths are skipped.
    """
    return at_once(finding_dates(text, at))


def finding_dates(text: str, at: datetime) -> Generator[None, None, tuple[DateMention, ...]]:
    """Run `find_dates` in small steps, yielding after each pattern."""
    candidates: list[_Candidate] = []
    for grammar, windows in windows_to_read(text):
        for found in _candidates(grammar, text, windows, at):
            if found is None:
                yield
            else:
                candidates.append(found)
    mentions = list(_without_overlap(_in_prose(text, candidates))) if candidates else []
    return tuple(without_doubtful(text, mentions, at))


def resolve_dates(text: str, at: datetime) -> str:
    """Replace each relative date with an absolute one; a duration is followed by its two ends."""
    parts, done = [], 0
    for mention in find_dates(text, at):
        if not mention.relative:
            continue
        kept = (
            f"{mention.text} ({render_date(mention)})" if mention.lasting else render_date(mention)
        )
        parts += [text[done : mention.start], kept]
        done = mention.end
    return "".join([*parts, text[done:]])


def _candidates(
    grammar: Grammar, text: str, windows: Iterable[tuple[int, int]], at: datetime
) -> Iterator[_Candidate | None]:
    """Yield the matches, and None after each pattern, where the caller may pause."""
    clauses = Clauses(text, grammar)
    for start, end in windows:
        window = text[start:end]
        words = words_of(window)
        if not words.isdisjoint(grammar.language.foreign):
            continue
        for pattern in grammar.patterns:
            if not pattern.may_match(window, words):
                continue
            for match in pattern.regex.finditer(text, start, end):
                if _is_cut(match):
                    continue
                meaning = pattern.phrase.meaning
                if meaning is None:
                    yield _Candidate(*match.span(), None)
                elif mention := _read(grammar, pattern.phrase, meaning, match, at, clauses):
                    yield _Candidate(*match.span(), mention)
            yield None


def _is_cut(match: Match[str]) -> bool:
    """Return whether the end of the window may have cut the match or its lookahead."""
    return match.endpos < len(match.string) and match.end() > match.endpos - 12


def _read(
    grammar: Grammar,
    phrase: Phrase,
    meaning: Meaning,
    match: Match[str],
    at: datetime,
    clauses: Clauses,
) -> DateMention | None:
    """Return the mention of a match; None if the date is invalid or contradicted by its clause."""
    word, slots = str(phrase.implied.get("word", "")), dict(phrase.implied)
    for name, raw in match.groupdict().items():
        if raw is None:
            continue
        if name == "word" or name == "season":
            word = raw
        if name != "word":
            slots[name.split("_")[0]] = _value(grammar, name, raw)
    reading = DateReading(
        at=at, slots=slots, word=word, tenses=partial(clauses.tenses, match.start())
    )
    try:
        period = meaning(reading)
        if period and meaning is calendar_day:
            period = _on_its_weekday(grammar, match, period)
    except (ValueError, OverflowError):
        return None
    return _mention(grammar, match, period, word) if period else None


def _on_its_weekday(grammar: Grammar, match: Match[str], period: Period) -> Period:
    """Shift a date to the adjacent year in which its weekday is right: "samedi 5 septembre"."""
    before = _WORD_BEFORE.search(match.string[max(0, match.start() - 20) : match.start()])
    weekday = before and grammar.language.slots.get("weekday", {}).get(before[1].lower())
    if not period.relative or weekday is None or weekday == period.first.weekday():
        return period
    own = period.first
    days = (own.replace(year=own.year + years) for years in (1, -1))
    right = next((day for day in days if day.weekday() == weekday), own)
    return period._replace(first=right, last=right)


def _value(grammar: Grammar, name: str, raw: str) -> int | str:
    words = grammar.language.slots.get(name, {})
    return words.get(" ".join(raw.lower().replace("’", "'").split()), raw)


def _mention(grammar: Grammar, match: Match[str], period: Period, word: str) -> DateMention:
    return DateMention(
        start=match.start(),
        end=match.end(),
        text=match[0],
        first=period.first,
        last=period.last,
        grain=period.grain,
        relative=period.relative,
        approximate=period.approximate,
        lasting=period.lasting,
        word=word if period.grain in ("moment", "season") else "",
        language=grammar.language.name,
    )


def _in_prose(text: str, candidates: Iterable[_Candidate]) -> Iterator[_Candidate]:
    spans = code_spans(text)
    starts = [start for start, _ in spans]
    for found in candidates:
        before = bisect_right(starts, found.end - 1) - 1
        in_code = before >= 0 and spans[before][1] > found.start
        if not in_code and not in_address(text, found.start, found.end):
            yield found


def _without_overlap(candidates: Iterable[_Candidate]) -> Iterator[DateMention]:
    """Keep the leftmost, then longest matches; a trap wins ties, then an absolute date."""
    end = 0
    for found in sorted(candidates, key=_precedence):
        if found.start < end:
            continue
        end = found.end
        if found.mention:
            yield found.mention


def _precedence(found: _Candidate) -> tuple[int, int, int]:
    certainty = 0 if found.mention is None else 1 + found.mention.relative
    return found.start, -found.end, certainty
