"""Find the dates in a text and replace relative ones with absolute ones."""

import re
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from re import Match
from typing import NamedTuple

from remanence.dates.ambiguity import overlaps, without_doubtful
from remanence.dates.language import Language, Meaning, Phrase, fold, words_of
from remanence.dates.meanings import DateReading, calendar_day
from remanence.dates.periods import DateMention
from remanence.dates.render import POSSESSIVE, may_replace, render_date, words_with_date
from remanence.dates.windows import is_foreign, windows_to_read
from remanence.pacing import at_once

_WORD_BEFORE = re.compile(
    r"([^\W\d_]+(?:[- ]feira)?)[., (（]*(?:(?:le|den|the|el) )?$", re.IGNORECASE
)

# An unclosed fence extends to the end.
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_GAP = re.compile(r"[^!-~]")
_ADDRESS = re.compile(r"://|[@\\]|^(?:www\.|~?/|\.{1,2}/)|/.*/|/.*\.\w+$", re.DOTALL)
_MAX_TOKEN_CHARACTERS = 300
_MAX_PARTICLE = 12
_LOOKAHEAD = 12
"""Characters behind a match on which it may depend."""


class _Candidate(NamedTuple):
    """A match; one without a mention stays as said, and so do matches that overlap it."""

    start: int
    end: int
    fit: int
    """Words near it that its language knows."""
    mention: DateMention | None
    doubt: int
    """Of two alike the one with less is taken: 0 for a trap, 1 for an absolute date."""


def find_dates(text: str, at: datetime) -> tuple[DateMention, ...]:
    """Find the dates in `text`, written at `at`, from left to right and without overlap.

    Where matches overlap, the leftmost and then the longest wins. Days are in the time zone of
    `at`. Code, addresses and paths are skipped.
    """
    return at_once(finding_dates(text, at))


def finding_dates(text: str, at: datetime) -> Generator[None, None, tuple[DateMention, ...]]:
    """Run `find_dates` in small steps, yielding after each pattern."""
    candidates: list[_Candidate] = []
    for language, windows in windows_to_read(text):
        for found in _candidates(language, text, windows, at):
            if found is None:
                yield
            else:
                candidates.append(found)
    mentions = _without_overlap(_in_prose(text, candidates)) if candidates else ()
    return tuple(without_doubtful(text, mentions, at.date()))


def resolve_dates(text: str, at: datetime) -> str:
    """Replace each relative date with an absolute one, or let one follow: "next month (May 2026)".

    It follows words for the day of *at*, which are often more than a date: "we had a baby today".
    """
    parts, done = [], 0
    for mention in find_dates(text, at):
        is_today = mention.first == mention.last == at.date()
        date = mention.first.isoformat() if is_today else render_date(mention)
        if not mention.relative or text.startswith(f" ({date})", mention.end):
            continue
        following = text[mention.end : mention.end + len(date) + 3]
        stays = is_today and not following.startswith(POSSESSIVE)
        replaces = may_replace(mention, following) and not stays
        shown = date if replaces else words_with_date(mention, date, following)
        parts += [text[done : mention.start], shown]
        done = mention.end
    return "".join([*parts, text[done:]])


def _candidates(
    language: Language, text: str, windows: Iterable[tuple[int, int]], at: datetime
) -> Iterator[_Candidate | None]:
    """Yield the matches, and None after each pattern, where the caller may pause."""
    for start, end in windows:
        words = words_of(text[start:end])
        fit = len(words & language.known_words)
        if is_foreign(language, words):
            continue
        for pattern in language.patterns:
            for match in pattern.regex.finditer(text, start, end):
                if end < len(text) and match.end() > end - _LOOKAHEAD:
                    continue  # the end of the window may have cut it
                meaning = pattern.phrase.meaning
                if meaning is None:
                    yield _Candidate(*match.span(), fit, None, 0)
                else:
                    with suppress(ValueError, OverflowError):  # a day that no calendar has
                        mention = _read(language, pattern.phrase, meaning, match, at)
                        weekday = None if mention else _weekday_before(language, match)
                        doubt = 1 + mention.relative if mention else 3
                        start_at = (weekday or match).start()
                        yield _Candidate(start_at, match.end(), fit, mention, doubt)
            yield None


def _read(
    language: Language, phrase: Phrase, meaning: Meaning, match: Match[str], at: datetime
) -> DateMention | None:
    """Return the mention of a match; None if it may be more than one date, or none."""
    if "clause" in phrase.implied and not language.clause.is_ahead(match.string, *match.span()):
        return None
    word, slots = str(phrase.implied.get("word", "")), dict(phrase.implied)
    for name, raw in match.groupdict().items():
        if raw is None:
            continue
        if name == "word" or name == "season":
            word = raw
        if name != "word":
            plain = " ".join(fold(raw).replace("’", "'").split())
            slots[name.split("_")[0]] = language.slots.get(name, {}).get(plain, raw)
    if meaning is calendar_day and (before := _weekday_before(language, match)):
        slots["weekday"] = language.slots["weekday"][fold(before[1])]
    is_monday_first = language.is_monday_first
    period = meaning(DateReading(at=at, slots=slots, word=word, is_monday_first=is_monday_first))
    if period is None:
        return None
    before_words = match.string[max(0, match.start() - _MAX_PARTICLE) : match.start()]
    return DateMention(
        start=match.start(),
        end=match.end(),
        text=match[0],
        word=word if period.grain in ("moment", "season") else "",
        language=language.name,
        after_particle=language.particle.search(before_words) is not None,
        **period._asdict(),
    )


def _weekday_before(language: Language, match: Match[str]) -> Match[str] | None:
    """Return the match of a weekday as the word before a date: "samedi 5 septembre"."""
    before = _WORD_BEFORE.search(match.string, max(0, match.start() - 20), match.start())
    return before if before and fold(before[1]) in language.slots.get("weekday", {}) else None


def _in_prose(text: str, candidates: Iterable[_Candidate]) -> Iterator[_Candidate]:
    """Yield the candidates outside of code, addresses and paths."""
    code = [match.span() for match in _CODE.finditer(text)]
    for found in candidates:
        in_code = overlaps(code, found.start, found.end)
        if not in_code and not _in_address(text, found.start, found.end):
            yield found


def _in_address(text: str, start: int, end: int) -> bool:
    """Return whether `start..end` is part of a URL, an e-mail address or a path."""
    before = _GAP.split(text[max(0, start - _MAX_TOKEN_CHARACTERS) : start])[-1]
    after = _GAP.split(text[end : end + _MAX_TOKEN_CHARACTERS], maxsplit=1)[0]
    token = f"{before}_{after}".lstrip("([{<\"'")
    return _ADDRESS.search(token) is not None


def _without_overlap(candidates: Iterable[_Candidate]) -> Iterator[DateMention]:
    """Keep the leftmost, longest, best fitting matches with the least doubt."""
    end = 0
    for found in sorted(candidates, key=lambda one: (one.start, -one.end, -one.fit, one.doubt)):
        if found.start >= end:
            end = found.end
            if found.mention:
                yield found.mention
