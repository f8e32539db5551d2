"""Render mentions as absolute dates in their own language."""

import re
from collections.abc import Iterator
from datetime import date
from functools import cache
from string import Formatter

from remanence.dates.language import Language, language_of, languages
from remanence.dates.periods import WINTER, DateMention, Grain

_WITHOUT_PREPOSITIONS = ("chinese", "japanese", "korean")
POSSESSIVE = ("'s", "’s")
_DAY, _YEAR, _WORD = r"\d{4}-\d\d-\d\d", r"\d{4}", r"[^\W\d_]+(?: [^\W\d_]+)?"


def render_date(mention: DateMention) -> str:
    """Return a text such as "2023-05-07", "week of 2023-05-01", "May 2023", or "2022".

    A duration is rendered as its two ends ("2020-2023").
    """
    language = language_of(mention.language)
    text = _phrase(language, mention.grain, mention.first, mention.word)
    if mention.lasting:
        dash = "-" if mention.grain == "year" else " - "
        text += dash + _phrase(language, mention.grain, mention.last, mention.word)
    return text


def may_replace(mention: DateMention, following: str) -> bool:
    """Return whether the date may take the place of its words: "April" is not "next month".

    Only a day may, or any period in languages without such prepositions. A duration is never
    replaced, nor a part of a day before a possessive ("tonight's show"), nor the words behind a
    particle that would govern the date: "call around tomorrow".
    """
    if mention.word and following.startswith(POSSESSIVE):
        return False
    stands_alone = mention.language in _WITHOUT_PREPOSITIONS
    fits = mention.grain in ("day", "moment") or stands_alone
    return fits and not mention.lasting and not mention.after_particle


def words_with_date(mention: DateMention, date: str, following: str) -> str:
    """Return the words of a mention with its date behind them: "next month (May 2026)".

    The words stay alone before a possessive ("next year's budget"), and where the date follows.
    """
    if following.startswith((f" ({date})", *POSSESSIVE)):
        return mention.text
    return f"{mention.text} ({date})"


def without_dates(text: str) -> str:
    """Return a text without the dates that `words_with_date` puts behind words."""
    return _dates().sub("", text)


@cache
def _dates() -> re.Pattern[str]:
    one = "|".join(dict.fromkeys(each for language in languages() for each in _forms(language)))
    return re.compile(rf" \((?:{one})(?: ?- ?(?:{one}))?\)")


def _forms(language: Language) -> Iterator[str]:
    """Yield an expression for each form of a date that `_phrase` gives in a language."""
    english = language_of("english")
    months, seasons = language.months or english.months, language.seasons or english.seasons
    fields = {"first": _DAY, "year": _YEAR, "years": rf"{_YEAR}(?:/\d\d)?", "number": r"\d\d?"}
    fields |= {"month": f"(?:{'|'.join(map(re.escape, months))})"}
    for grain, phrase in {**english.render, **language.render}.items():
        fields["word"] = f"(?:{'|'.join(map(re.escape, seasons))})" if grain == "season" else _WORD
        yield "".join(
            re.escape(text) + fields.get(field or "", "")
            for text, field, *_ in Formatter().parse(phrase)
        )


def iso_date(mention: DateMention) -> str:
    """Return the date in ISO 8601, to the precision of the mention.

    Of a season that is the year, as its months depend on the hemisphere.
    """
    text = mention.first.isoformat()
    return {"year": text[:4], "season": text[:4], "month": text[:7]}.get(mention.grain, text)


def _phrase(language: Language, grain: Grain, first: date, word: str) -> str:
    english = language_of("english")
    phrase = language.render.get(grain, english.render[grain])
    winter = first.month == 12
    seasons = language.seasons or english.seasons
    season = seasons[WINTER if winter else first.month // 3 - 1] if grain == "season" else ""
    return phrase.format(
        first=first.isoformat(),
        year=first.year,
        years=f"{first.year}/{(first.year + 1) % 100:02}" if winter else first.year,
        month=(language.months or english.months)[first.month - 1],
        number=first.month,
        word=word or season,
    ).rstrip()
