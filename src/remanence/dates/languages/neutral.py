"""Notations common to all languages: ISO dates, and years that a word marks as such."""

from remanence.dates import meanings as means
from remanence.dates.language import Language, Rule

NEUTRAL = Language(
    name="neutral",
    slots={},
    trigger=r"(?:19|20)\d\d",
    left=r"(?<![\w@#$\\/])(?<!\w[.-])(?<!\d,)",
    right=r"(?!\d|-\w|[.,]\d)",
    macros={
        "before_year": r"(?=\d{4})(?:"
        + "|".join(
            rf"(?<=\b{word}\s)"
            for word in (
                *(
                    "since",
                    "in",
                    "from",
                    "until",
                    "till",
                    "by",
                    "of",
                    "late",
                    "early",
                    "before",
                    "after",
                ),
                *(
                    "during",
                    "spring",
                    "summer",
                    "autumn",
                    "fall",
                    "winter",
                    "seit",
                    "ab",
                    "bis",
                    "jahr",
                ),
                *(
                    "depuis",
                    "en",
                    "desde",
                    "hasta",
                    "année",
                    "año",
                    "été",
                    "hiver",
                    "automne",
                    "verano",
                ),
            )
        )
        + ")"
    },
    rules=(
        Rule(
            r"{year}-(?P<month>0[1-9]|1[0-2])-(?P<day>0[1-9]|[12]\d|3[01])(?![\d-])",
            means.calendar_day,
        ),
        Rule(r"{year}-(?P<month>0[1-9]|1[0-2])(?![\w-])", means.calendar_month),
        Rule(
            r"{year}/(?P<month>0?[1-9]|1[0-2])/(?P<day>0?[1-9]|[12]\d|3[01])(?![/\w])",
            means.calendar_day,
        ),
        Rule(r"{before_year}{year}(?![\w%-])", means.calendar_year),
    ),
    phrases={},
)
