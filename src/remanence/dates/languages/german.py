"""German."""

from remanence.dates import meanings as means
from remanence.dates.language import Language, Rule

_MONTHS = (
    *("Januar", "Februar", "März", "April", "Mai", "Juni"),
    *("Juli", "August", "September", "Oktober", "November", "Dezember"),
)
_SHIFTS = {
    **{
        f"{stem}{ending}": -1
        for stem in ("letzt", "vorig", "vergangen")
        for ending in ("e", "en", "er", "es", "em")
    },
    **{f"dies{ending}": 0 for ending in ("e", "en", "er", "es", "em")},
    **{
        f"{stem}{ending}": 1
        for stem in ("nächst", "kommend")
        for ending in ("e", "en", "er", "es", "em")
    },
}

GERMAN = Language(
    name="german",
    slots={
        "number": {
            "ein": 1,
            "einem": 1,
            "einer": 1,
            "einen": 1,
            "zwei": 2,
            "drei": 3,
            "vier": 4,
            "fünf": 5,
            "sechs": 6,
            "sieben": 7,
            "acht": 8,
            "neun": 9,
            "zehn": 10,
            "elf": 11,
            "zwölf": 12,
            "fünfzehn": 15,
            "zwanzig": 20,
            "dreißig": 30,
        },
        "vague": {"ein paar": 3, "einigen": 3, "wenigen": 3, "mehreren": 4},
        "unit": {
            "tag": "day",
            "tage": "day",
            "tagen": "day",
            "woche": "week",
            "wochen": "week",
            "wochenende": "weekend",
            "wochenenden": "weekend",
            "monat": "month",
            "monate": "month",
            "monaten": "month",
            "jahr": "year",
            "jahre": "year",
            "jahren": "year",
        },
        "unit_one": {
            "woche": "week",
            "wochenende": "weekend",
            "monat": "month",
            "monats": "month",
            "jahr": "year",
            "jahres": "year",
        },
        "minutes": {"stunde": 60, "stunden": 60, "minute": 1, "minuten": 1},
        "shift": _SHIFTS,
        "shift_far": {"vorletzte": -2, "vorletzten": -2, "vorletztes": -2, "übernächste": 2}
        | {"übernächsten": 2, "übernächstes": 2},
        "weekday": {
            "montag": 0,
            "dienstag": 1,
            "mittwoch": 2,
            "donnerstag": 3,
            "freitag": 4,
            "samstag": 5,
            "sonnabend": 5,
            "sonntag": 6,
        },
        "month": {**{name.lower(): number for number, name in enumerate(_MONTHS, 1)}, "jänner": 1},
        "season": {"frühling": 0, "frühjahr": 0, "sommer": 1, "herbst": 2, "winter": 3},
    },
    macros={
        "whose": r"(?:der|die|das|den|dem|mein|meine|meinem|seine|ihre)",
        "count": r"(?:{number}|{vague})",
        "last": r"(?:letzten|letzter|letztem|vorigen|vergangenen)",
        "next": r"(?:nächsten|nächster|nächstem|kommenden)",
        "part": r"(?:früh|vormittag|mittag|nachmittag|abend|nacht)",
        "before_month": (
            r"(?:(?<=\bim\s)|(?<=\bseit\s)|(?<=\bab\s)|(?<=\bbis\s)|(?<=\bende\s)|(?<=\bmitte\s)|(?<=\banfang\s))"
        ),
    },
    trigger_words=frozenset({"gestern", "vorgestern", "heute", "morgen", "übermorgen", "nacht"}),
    past=(
        r"\bseit (?=\w+tag\b)|\b(?:war|waren|warst|hatte|hatten|ging|gingen|kam|kamen|sah|fuhr|fuhren|machte|gab|wurde|wurden|traf|trafen"
        r"|(?:habe|hab|hat|haben|bin|ist|sind|seid|hast|bist)\b[^.!?;\n]{0,80}\b(?:\w*ge\w+(?:t|en)|\w+iert|be\w+(?:t|en)"
        r"|ver\w+(?:t|en)))\b"
    ),
    future=r"\b(?:werde|wird|werden|wirst|will|wollen|möchte|muss|müssen|soll|plane|planen|kommt|bis)\b",
    perfect=r"(?!)",
    traps=(
        r"(?:jeden|jedem|guten|schönen|den ganzen|am frühen) (?:morgen|{weekday})",
        r"{weekday}\s?(?:-|–|bis)\s?{weekday}",
        r"(?:am )?{weekday} (?:und|oder) (?:am )?{weekday}",
        r"(?:(?<=\bheute\s)|(?<=\bgestern\s)|(?<=\bam\s))morgen",
        r"heute zutage",
        r"(?:welt|leute|schnee) von (?:gestern|morgen)",
        r"{whose} (?:letzte|nächste)n? (?:tag|woche|monat|jahr) (?:des|der|vor|nach|im|in)",
    ),
    rules=(
        Rule(r"vorgestern", means.some_day, {"shift": -2}),
        Rule(r"gestern", means.some_day, {"shift": -1}),
        Rule(r"heute", means.some_day, {"shift": 0}),
        Rule(r"(?-i:morgen)", means.some_day, {"shift": 1}),
        Rule(r"morgen(?= {part}\b)", means.some_day, {"shift": 1}),
        Rule(
            r"morgen(?= (?-i:gehe|fahre|fliege|habe|hab|bin|ist|muss|werde|wird|kommt|treffe|will|kann|soll|gibt|geht))",
            means.some_day,
            {"shift": 1},
        ),
        Rule(r"übermorgen", means.some_day, {"shift": 2}),
        Rule(r"(?:letzte|vergangene|vorige) (?P<word>nacht)", means.some_day, {"shift": -1}),
        Rule(r"{shift} {unit_one}(?! vom)", means.some_period),
        Rule(r"{shift_far} {unit_one}(?! vom)", means.some_period),
        Rule(r"(?<=\bam\s)wochenende(?! vom)", means.this_weekend),
        Rule(r"dieses wochenende(?! vom)", means.this_weekend),
        Rule(r"vor {count} {unit}", means.count_units, {"sign": -1}),
        Rule(
            r"vor einem halben jahr", means.count_units, {"number": 6, "unit": "month", "sign": -1}
        ),
        Rule(r"vor {count} {minutes}", means.count_hours),
        Rule(r"in {count} {unit}", means.count_units, {"sign": 1}),
        Rule(r"(?<=\bseit\s){count} {unit}", means.count_units, {"sign": -1}),
        Rule(r"{last} {weekday}", means.weekday_before),
        Rule(r"{next} {weekday}", means.weekday_after),
        Rule(r"diesen {weekday}", means.this_weekday),
        Rule(r"{weekday}", means.weekday_by_tense),
        Rule(r"{shift} woche(?: am)? {weekday}", means.weekday_of_week),
        Rule(r"{weekday} {shift} woche", means.weekday_of_week),
        Rule(r"{shift} {season}(?! \d)", means.some_season),
        Rule(r"{season} {year}", means.calendar_season),
        Rule(r"{shift} {month}(?!\.? \d)", means.some_month),
        Rule(r"{month} {shift} jahre?s", means.month_of_year),
        Rule(r"{before_month}{month}(?!\.? \d)", means.month_by_tense),
        Rule(r"{month} {year}", means.calendar_month),
        Rule(r"{day}\. {month}(?! \d)", means.calendar_day),
        Rule(r"{day}\. {month} {year}", means.calendar_day),
    ),
    phrases={"week": "Woche vom {first}", "weekend": "Wochenende vom {first}"},
    months=_MONTHS,
    seasons=("Frühling", "Sommer", "Herbst", "Winter"),
)
