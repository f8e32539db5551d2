"""English."""

from remanence.dates import meanings as means
from remanence.dates.language import Language, Rule

_WEEKDAYS = {
    "monday": 0,
    "tuesday": 1,
    "wednesday": 2,
    "thursday": 3,
    "friday": 4,
    "saturday": 5,
    "sunday": 6,
}
_SHORT_WEEKDAYS = {
    "mon": 0,
    "tue": 1,
    "tues": 1,
    "wed": 2,
    "weds": 2,
    "thu": 3,
    "thur": 3,
    "thurs": 3,
    "fri": 4,
    "sat": 5,
    "sun": 6,
}
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_MONTH_VALUES = {
    **{name.lower(): number for number, name in enumerate(_MONTHS, 1)},
    **{name.lower()[:3]: number for number, name in enumerate(_MONTHS, 1)},
    "sept": 9,
}
_NUMBERS = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
    "fifteen": 15,
    "twenty": 20,
    "thirty": 30,
    "a couple of": 2,
    "a couple": 2,
    "couple of": 2,
}
_UNITS = {
    "day": "day",
    "days": "day",
    "week": "week",
    "weeks": "week",
    "wk": "week",
    "wks": "week",
    "weekend": "weekend",
    "weekends": "weekend",
    "month": "month",
    "months": "month",
    "year": "year",
    "years": "year",
    "yr": "year",
    "yrs": "year",
}
_DATE_END = r"(?!\s?[-–]\s?\d|[.,]\d|%|:\d)"
_AFTER_DAY_NUMBER = r"(?= (?:and|or|at|in|for|with|to|because|so|but|when|if|we|i|he|she|they|it|my|the)\b|[,;:!?)]|\.(?!\d)|$|\n)"

ENGLISH = Language(
    name="english",
    slots={
        "number": _NUMBERS,
        "vague": {"a few": 3, "few": 3, "several": 4, "a couple or three": 3},
        "unit": _UNITS,
        "unit_one": {"week": "week", "month": "month", "year": "year"},
        "unit_weekend": {"weekend": "weekend"},
        "minutes": {"hour": 60, "hours": 60, "hrs": 60, "minute": 1, "minutes": 1, "mins": 1},
        "shift": {"last": -1, "this": 0, "next": 1, "coming": 1, "this coming": 1},
        "shift_ended": {"last": -1, "past": -1, "this past": -1, "this last": -1},
        "weekday": {**_WEEKDAYS, **_SHORT_WEEKDAYS},
        "weekday_full": _WEEKDAYS,
        "weekday_many": {f"{name}s": value for name, value in _WEEKDAYS.items()},
        "month": _MONTH_VALUES,
        "month_any": _MONTH_VALUES,
        "season": {"spring": 0, "summer": 1, "fall": 2, "autumn": 2, "winter": 3},
    },
    macros={
        "count": r"(?:{number}|{vague})",
        "before_month": r"(?:(?<=\bin\s)|(?<=\bsince\s)|(?<=\buntil\s)|(?<=\btill\s)|(?<=\bduring\s))",
        "before_clear_month": (
            r"(?:(?<=\bby\s)|(?<=\bof\s)|(?<=\bfrom\s)|(?<=\bearly\s)|(?<=\blate\s)|(?<=\bmid\s)|(?<=\baround\s)"
            r"|(?<=\bbefore\s)|(?<=\bafter\s)|(?<=\bback\sin\s))"
        ),
        "not_dated": r"(?! \d|,? (?:of )?(?:19|20)\d\d)",
        "in_no_year": r"(?!,? (?:of )?(?:19|20)\d\d)",
        "ordinal": r"(?:st|nd|rd|th)",
        "whose": r"(?:the|my|our|his|her|their|your|its|that|one)",
        "date_end": _DATE_END,
    },
    trigger_words=frozenset(
        {
            *("yesterday", "today", "tonight", "tomorrow", "tmrw", "night", "evening", "morning"),
            *("afternoon", "ago", "fortnight"),
            *(f"{n}{s}" for n in range(1, 32) for s in ("st", "nd", "rd", "th")),
        }
    ),
    capital=frozenset({"may", "march", "mar", "sun", "sat", "mon", "wed"}),
    past=(
        r"\bsince (?=\w+day\b)|\b(?:was|were|wasn't|weren't|had|did|didn't|went|got|took|saw|came|made|met|won|lost|ran|ate|drove|flew"
        r"|bought|brought|found|felt|gave|heard|held|kept|knew|led|left|read|rode|said|sent|sold|spent|spoke|stood"
        r"|swam|taught|told|thought|threw|wore|wrote|began|broke|built|caught|chose|cut|drew|drank|fell|fought"
        r"|forgot|grew|hung|hurt|paid|put|rang|sang|slept|stole|woke|been|gone|done|seen|couldn't|haven't|hasn't"
        r"|hadn't|already|(?!excited|supposed|scheduled|interested|need|worried|invited|booked|married|thrilled|pumped"
        r"|tired|naked|embed|hundred|red\b|bed\b|med\b)[a-z]{2,}ed)\b"
    ),
    future=(
        r"\b(?:will|won't|shall|going to|gonna|plan|plans|planning|planned to|hope to|hoping|want to|can't wait"
        r"|cannot wait|looking forward|let's|until|should|might|need to|have to|must|can we|could we|see you|starting"
        r"|(?:is|are|am|be) \w+ing|upcoming|ready for|excited for|excited about|due|deadline|by)\b"
        r"|(?:'ll|’ll|'d like|’d like)\b|(?:'m|'re|’m|’re) (?!been)\w+ing\b"
    ),
    perfect=r"\b(?:(?:have|has)(?! (?:an?|the|my|your|his|her|our|their|some|no|two|three|to)\b)|haven't|hasn't|been)\b|(?:'ve|’ve|'s been|’s been)\b",
    clause_end=r"[.!?;,:\n]\s|\n| (?:and|but|so|because|though|then|while) ",
    traps=(
        r"{whose} (?:last|next|first|past|previous) (?:day|week|month|year)(?: or so)?",
        r"(?:last|next|first) (?:day|week|month|year|weekend|{weekday_full})(?= (?:of|before|after)\b)",
        r"(?:first|second|third|fourth) {weekday_full}",
        r"(?:the|every|each|any|some|a|that|one|most|all|those|every other) {weekday_full}",
        r"{weekday}s?\s?(?:-|–|to|through|thru|till|until)\s?{weekday}s?",
        r"(?:black|good|casual|holy|fat|ash|palm|easter|cyber|super bowl|bloody) {weekday_full}",
        r"{weekday},? the {day}{ordinal}",
        r"the {day}{ordinal},? (?:a )?{weekday}",
        r"(?:kind|sort|type) of {weekday_full}",
        r"the past an? {unit}",
        r"sunday (?:school|roast|best|times|service|paper)",
        r"today['’]s (?:world|society|age|market|youth|standards|economy|climate)",
        r"kids (?:of )?today",
        r"(?:feels?|felt|seems?) like (?:it was )?(?:just |only )?yesterday",
        r"like it was (?:just |only )?yesterday",
        r"yesterday['’]s news",
        r"here today,? gone tomorrow",
        r"(?:the|a better|for) (?:world|leaders|generation) of tomorrow",
        r"(?:once|twice|times?|every) (?:in )?{count} {unit}(?: ago)?",
        r"in (?:a|one) day",
        r"this may (?:be|not|have|seem|sound|come|help|take|well)",
    ),
    rules=(
        Rule(r"(?:the )?day before yesterday", means.some_day, {"shift": -2}),
        Rule(r"(?:the )?day after tomorrow", means.some_day, {"shift": 2}),
        Rule(r"yesterday", means.some_day, {"shift": -1}),
        Rule(r"(?:later |earlier )?today", means.some_day, {"shift": 0}),
        Rule(r"(?:tomorrow|tmrw)", means.some_day, {"shift": 1}),
        Rule(r"tonight", means.some_day, {"shift": 0, "word": "night"}),
        Rule(r"last (?P<word>night|evening)", means.some_day, {"shift": -1}),
        Rule(r"this (?P<word>morning|afternoon|evening)", means.some_day, {"shift": 0}),
        Rule(r"(?:earlier |later )?{shift} {unit_one}(?! of\b)", means.some_period),
        Rule(r"{shift_ended} {unit_weekend}(?! of\b)", means.some_period),
        Rule(r"(?:this |the )?(?:next) {unit_weekend}(?! of\b)", means.some_period, {"shift": 1}),
        Rule(r"this weekend(?! of\b)", means.this_weekend),
        Rule(r"the weekend(?! of\b)", means.the_weekend),
        Rule(
            r"(?:this|the) coming weekend(?! of\b)",
            means.some_period,
            {"shift": 0, "unit": "weekend"},
        ),
        Rule(r"the {unit} before last", means.some_period, {"shift": -2}),
        Rule(r"the {unit} after next", means.some_period, {"shift": 2}),
        Rule(r"{count} {unit} (?:ago|back)", means.count_units, {"sign": -1}),
        Rule(
            r"(?:half a|a half|six months or half a) year ago",
            means.count_units,
            {"number": 6, "unit": "month", "sign": -1},
        ),
        Rule(r"a fortnight ago", means.count_units, {"number": 2, "unit": "week", "sign": -1}),
        Rule(r"{count} {minutes} ago", means.count_hours),
        Rule(r"(?:half an|an|one) hour ago", means.count_hours, {"number": 1, "minutes": 60}),
        Rule(r"in {count} {unit}(?:['’] time)?(?! of\b)", means.count_units, {"sign": 1}),
        Rule(r"{count} {unit} from (?:now|today)", means.count_units, {"sign": 1}),
        Rule(r"{weekday_many} ago", means.weekdays_counted, {"number": 1}),
        Rule(r"{count} {weekday_many} ago", means.weekdays_counted),
        Rule(
            r"for {count} {unit}(?! ago| back| from| now| already|\s\()", means.lasting_in_perfect
        ),
        Rule(
            r"for (?:over |almost |nearly |about )?{count} {unit}(?: now| already)(?!\s\()",
            means.lasting,
        ),
        Rule(r"{count} {unit} (?:now|already)(?!\s\()", means.lasting),
        Rule(r"(?:the|these) (?:last|past) {count} {unit}(?!\s\(| of\b)", means.lasting),
        Rule(
            r"(?:in|over|during|for|within|throughout) the (?:last|past) {unit_one}(?!\s\(| of\b)",
            means.lasting,
            {"number": 1},
        ),
        Rule(r"this past {unit_one}(?!\s\()", means.lasting, {"number": 1}),
        Rule(r"(?:on )?{shift_ended} {weekday}", means.weekday_before),
        Rule(r"(?:next|coming|this coming) {weekday}", means.weekday_after),
        Rule(r"this {weekday_full}", means.this_weekday),
        Rule(r"(?<=\bon\s){weekday_full}", means.weekday_by_tense),
        Rule(r"{weekday_full}(?! (?-i:[A-Z]))", means.weekday_by_tense),
        Rule(r"{weekday},? (?:of )?{shift} week", means.weekday_of_week),
        Rule(r"{shift} week(?: on)? {weekday}", means.weekday_of_week),
        Rule(r"{shift} {season}{in_no_year}", means.some_season),
        Rule(r"this past {season}{in_no_year}", means.some_season, {"shift": -1}),
        Rule(r"{season} (?:of )?{year}", means.calendar_season),
        Rule(r"{shift} {month}{not_dated}", means.some_month),
        Rule(r"this past {month}{not_dated}", means.some_month, {"shift": -1}),
        Rule(r"{month} (?:of )?{shift} year", means.month_of_year),
        Rule(r"(?<=\bsince\s){month_any}{not_dated}", means.month_gone),
        Rule(r"{before_month}{month_any}{not_dated}", means.month_by_tense),
        Rule(r"{before_clear_month}{month}{not_dated}", means.month_by_tense),
        Rule(r"{month_any},? (?:of )?{year}", means.calendar_month),
        Rule(r"{month}\.? {day}{ordinal}?{date_end}", means.calendar_day),
        Rule(r"{month_any}\.? (?:the )?{day}{ordinal}{date_end}", means.calendar_day),
        Rule(r"{month_any}\.? {day}{ordinal}?,? ?{year}", means.calendar_day),
        Rule(r"{month_any}\.? {day}{ordinal}?,? (?:of )?{shift} year", means.calendar_day),
        Rule(r"{day} {month}{not_dated}", means.calendar_day),
        Rule(r"(?:the )?{day}{ordinal} (?:of )?{month_any}{not_dated}", means.calendar_day),
        Rule(r"(?:the )?{day}{ordinal}? (?:of )?{month_any},? (?:of )?{year}", means.calendar_day),
        Rule(
            r"(?:the )?{day}{ordinal}? (?:of )?{month_any},? (?:of )?{shift} year",
            means.calendar_day,
        ),
        Rule(r"(?<=\bon\s)the {day}{ordinal}" + _AFTER_DAY_NUMBER, means.day_of_month),
        Rule(r"(?:on )?the {day}{ordinal} of {shift} month", means.day_of_month),
    ),
    phrases={
        "week": "week of {first}",
        "weekend": "weekend of {first}",
        "month": "{month} {year}",
        "season": "{word} {years}",
    },
    months=_MONTHS,
    seasons=("spring", "summer", "autumn", "winter"),
)
