"""Render mentions as absolute dates in their own language."""

from datetime import date

from remanence.dates.language import Language, language_of
from remanence.dates.mention import DateMention, Grain
from remanence.dates.periods import WINTER

_DEFAULT_PHRASES: dict[Grain, str] = {
    "day": "{first}",
    "weekend": "weekend of {first}",
    "week": "week of {first}",
    "month": "{month} {year}",
    "season": "{word} {years}",
    "year": "{year}",
    "moment": "{first} {word}",
}


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


def iso_date(mention: DateMention) -> str:
    """Return the date in ISO 8601, to the precision of the mention."""
    text = mention.first.isoformat()
    return {"year": text[:4], "month": text[:7]}.get(mention.grain, text)


def _phrase(language: Language, grain: Grain, first: date, word: str) -> str:
    winter = first.month == 12
    season = WINTER if winter else first.month // 3 - 1
    phrase = language.render.get(grain, _DEFAULT_PHRASES[grain])
    names = language.months or language_of("english").months
    seasons = language.seasons or language_of("english").seasons
    return phrase.format(
        first=first.isoformat(),
        year=first.year,
        years=f"{first.year}/{(first.year + 1) % 100:02}" if winter else first.year,
        month=names[first.month - 1],
        number=first.month,
        word=word or (seasons[season] if grain == "season" else ""),
    ).rstrip()
