"""French."""

from remanence.observing.dates import meanings as means
from remanence.observing.dates.language import Language, Rule

_MONTHS = (
    *("janvier", "février", "mars", "avril", "mai", "juin"),
    *("juillet", "août", "septembre", "octobre", "novembre", "décembre"),
)

FRENCH = Language(
    name="french",
    slots={
        "number": {
            "un": 1,
            "une": 1,
            "deux": 2,
            "trois": 3,
            "quatre": 4,
            "cinq": 5,
            "six": 6,
            "sept": 7,
            "huit": 8,
            "neuf": 9,
            "dix": 10,
            "onze": 11,
            "douze": 12,
            "quinze": 15,
            "vingt": 20,
            "trente": 30,
        },
        "vague": {"quelques": 3, "plusieurs": 4},
        "unit": {
            "jour": "day",
            "jours": "day",
            "semaine": "week",
            "semaines": "week",
            "mois": "month",
            "an": "year",
            "ans": "year",
            "année": "year",
            "années": "year",
            "week-ends": "weekend",
        },
        "unit_one": {
            "semaine": "week",
            "mois": "month",
            "année": "year",
            "an": "year",
            "week-end": "weekend",
            "weekend": "weekend",
        },
        "minutes": {"heure": 60, "heures": 60, "minute": 1, "minutes": 1},
        "shift": {
            "dernier": -1,
            "dernière": -1,
            "derniere": -1,
            "passé": -1,
            "passée": -1,
            "prochain": 1,
            "prochaine": 1,
            "qui vient": 1,
        },
        "weekday": {
            "lundi": 0,
            "mardi": 1,
            "mercredi": 2,
            "jeudi": 3,
            "vendredi": 4,
            "samedi": 5,
            "dimanche": 6,
        },
        "month": {
            **{name: number for number, name in enumerate(_MONTHS, 1)},
            "fevrier": 2,
            "aout": 8,
            "decembre": 12,
        },
        "season": {"printemps": 0, "été": 1, "automne": 2, "hiver": 3},
    },
    macros={
        "count": r"(?:{number}|{vague})",
        "last": r"(?:dernier|passé)",
        "next": r"(?:prochain|qui vient)",
        "not_dated": r"(?! \d| dernier| prochain)",
        "before_month": (
            r"(?:(?<=\ben\s)|(?<=\bdepuis\s)|(?<=\bdébut\s)|(?<=\bfin\s)|(?<=\bmi-)|(?<=\bjusqu'en\s)|(?<=\bdès\s))"
        ),
    },
    # "hier" is German and Dutch for "here"
    foreign_words=frozenset(
        {
            *("der", "das", "und", "ist", "nicht", "ich", "wir", "sie", "ein", "eine", "einen"),
            *("wenn", "sollte", "auf", "mit", "wird", "sind", "het", "een", "niet", "van", "zijn"),
        }
    ),
    trigger_words=frozenset({"hier", "aujourd", "demain", "soir", "matin", "nuit", "lendemain"}),
    past=(
        r"\b(?:(?:ai|as|(?<!\by\s)a|avons|avez|ont|suis|es|est|sommes|êtes|sont) (?:\w+ ){0,2}?(?:\w+(?:é|ée|és|ées|i|is|it|u|us|ue)"
        r"|fait|dit|pris|mis|eu|été)|était|étaient|avait|avaient|fut|allait|étais)\b|\bj['’]ai (?:\w+ ){0,2}?(?:\w+[éiu]|fait|pris|été)\b"
    ),
    future=r"\b(?:vais|vas|va|allons|allez|vont|\w{2,}(?:rai|ras|rons|rez|ront)|dois|doit|veux|avant)\b",
    traps=(
        r"(?:les |tous les )?{weekday}s",
        r"(?:chaque|un) {weekday}",
        r"(?:le )?{weekday} (?:[12]?\d|3[01])(?!\d|[:./]\d| ?h\b|h| {month})",
        r"mardi gras",
        r"vendredi saint",
        r"le monde de demain",
        r"au jour d['’]aujourd['’]hui",
        r"(?:de|du) {weekday} (?:à|au) {weekday}",
    ),
    rules=(
        Rule(r"avant[-\s]hier", means.some_day, {"shift": -2}),
        Rule(r"hier", means.some_day, {"shift": -1}),
        Rule(r"aujourd'hui", means.some_day, {"shift": 0}),
        Rule(r"aujourd’hui", means.some_day, {"shift": 0}),
        Rule(r"demain", means.some_day, {"shift": 1}),
        Rule(r"après[-\s]demain", means.some_day, {"shift": 2}),
        Rule(r"ce (?P<word>matin|soir|midi)", means.some_day, {"shift": 0}),
        Rule(r"cet (?P<word>après-midi)", means.some_day, {"shift": 0}),
        Rule(r"cette (?P<word>nuit)", means.some_day, {"shift": 0}),
        Rule(r"la (?P<word>nuit) dernière", means.some_day, {"shift": -1}),
        Rule(r"(?:(?:la|le) |l['’])?{unit_one} {shift}", means.some_period),
        Rule(r"(?:cette|ce) {unit_one}(?:-ci)?(?! du)", means.some_period, {"shift": 0}),
        Rule(r"ce week-?end(?! du)", means.this_weekend),
        Rule(r"il y a {count} {unit}", means.counted, {"sign": -1}),
        Rule(r"il y a {count} {minutes}", means.counted_hours),
        Rule(r"dans {count} {unit}", means.counted, {"sign": 1}),
        Rule(r"(?<=\bdepuis\s){count} {unit}", means.counted, {"sign": -1}),
        Rule(r"(?:le )?{weekday} {last}", means.weekday_before),
        Rule(r"(?:le )?{weekday} {next}", means.weekday_after),
        Rule(r"ce {weekday}", means.this_weekday),
        Rule(r"{weekday}", means.weekday_by_tense),
        Rule(r"{weekday} de la semaine {shift}", means.weekday_of_week),
        Rule(r"(?:le |l['’]){season} {shift}", means.some_season),
        Rule(r"(?:cet|ce) {season}", means.some_season, {"shift": 0}),
        Rule(r"{season} {year}", means.calendar_season),
        Rule(r"(?<=\ben\s){month} {shift}", means.some_month),
        Rule(r"{month} de l['’](?:année dernière|an dernier)", means.month_of_year, {"shift": -1}),
        Rule(r"{before_month}{month}{not_dated}", means.month_by_tense),
        Rule(r"{month} {year}", means.calendar_month),
        Rule(r"(?:le )?{day}(?:er)? {month}{not_dated}", means.calendar_day),
        Rule(r"(?:le )?{day}(?:er)? {month} {year}", means.calendar_day),
    ),
    phrases={"week": "semaine du {first}", "weekend": "week-end du {first}"},
    months=_MONTHS,
    seasons=("printemps", "été", "automne", "hiver"),
)
