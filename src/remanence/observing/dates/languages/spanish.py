"""Spanish."""

from remanence.observing.dates import meanings as means
from remanence.observing.dates.language import Language, Rule

_MONTHS = (
    *("enero", "febrero", "marzo", "abril", "mayo", "junio"),
    *("julio", "agosto", "septiembre", "octubre", "noviembre", "diciembre"),
)

SPANISH = Language(
    name="spanish",
    slots={
        "number": {
            **{"un": 1, "una": 1, "dos": 2, "tres": 3, "cuatro": 4, "cinco": 5, "seis": 6, "siete": 7, "ocho": 8},
            **{"nueve": 9, "diez": 10, "once": 11, "doce": 12, "quince": 15, "veinte": 20, "treinta": 30},
            **{"un par de": 2},
        },
        "vague": {"unos": 3, "unas": 3, "unos pocos": 3, "unas pocas": 3, "algunos": 3, "algunas": 3, "varios": 4}
        | {"varias": 4, "pocos": 3, "pocas": 3},
        "unit": {
            **{"día": "day", "días": "day", "dia": "day", "dias": "day", "semana": "week", "semanas": "week"},
            **{"mes": "month", "meses": "month", "año": "year", "años": "year"},
            **{"fin de semana": "weekend", "fines de semana": "weekend"},
        },
        "unit_one": {"semana": "week", "mes": "month", "año": "year", "fin de semana": "weekend"},
        "minutes": {"hora": 60, "horas": 60, "minuto": 1, "minutos": 1},
        "shift": {"pasado": -1, "pasada": -1, "que viene": 1, "próximo": 1, "próxima": 1, "proximo": 1, "proxima": 1},
        "weekday": {
            **{"lunes": 0, "martes": 1, "miércoles": 2, "miercoles": 2, "jueves": 3, "viernes": 4, "sábado": 5},
            **{"sabado": 5, "domingo": 6},
        },
        "month": {**{name: number for number, name in enumerate(_MONTHS, 1)}, "setiembre": 9},
        "season": {"primavera": 0, "verano": 1, "otoño": 2, "invierno": 3},
    },
    macros={
        "count": r"(?:{number}|{vague})",
        "last": r"(?:pasado|último)",
        "next": r"(?:próximo|proximo)",
        "not_dated": r"(?! (?:del? )?\d| pasado| que viene| próximo| del? (?:año|este))",
        "before_month": (
            r"(?:(?<=\ben\s)|(?<=\bdesde\s)|(?<=\bhasta\s)|(?<=\bde\s)|(?<=\bprincipios\sde\s)|(?<=\bfinales\sde\s))"
        ),
    },
    trigger_words=frozenset({"ayer", "anteayer", "antier", "hoy", "mañana", "anoche", "noche", "tarde"}),
    left=r"(?<![\w@#$\\])(?<!\w[.-])(?<!\d,)",
    right=r"(?![\w(=\\]|\.(?-i:[a-z0-9_])|-\w)",
    past=(
        r"\b(?:fui|fue|fuimos|fueron|estuve|estuvo|estuvimos|tuve|tuvo|tuvimos|hice|hizo|hicimos|vi|vio|vimos|era|eran"
        r"|estaba|estaban|había|dije|dijo|vino|vine|puse|pude|\w{2,}(?:é|ó|aron|ieron|aste|iste)|(?:he|ha|hemos|han) \w+do)\b"
    ),
    future=r"\b(?:voy|vas|va|vamos|van|quiero|debo|tengo que|antes del?|\w{3,}(?:aré|eré|iré|ará|erá|irá|aremos|arán|erán))\b",
    traps=(
        r"(?:la|cada|una|de|toda la) mañana",
        r"(?:los|cada|todos los|un|de lunes a) {weekday}s?",
        r"hoy en día|hoy día|hasta mañana|viernes santo|domingo de (?:ramos|resurrección|pascua)",
        r"{weekday} a {weekday}",
    ),
    rules=(
        Rule(r"(?:anteayer|antier|antes de ayer)", means.some_day, {"shift": -2}),
        Rule(r"ayer", means.some_day, {"shift": -1}),
        Rule(r"hoy", means.some_day, {"shift": 0}),
        Rule(r"mañana", means.some_day, {"shift": 1}),
        Rule(r"pasado mañana", means.some_day, {"shift": 2}),
        Rule(r"anoche", means.some_day, {"shift": -1, "word": "noche"}),
        Rule(r"esta (?P<word>mañana|tarde|noche)", means.some_day, {"shift": 0}),
        Rule(r"(?:(?:el|la) )?{unit_one} {shift}", means.some_period),
        Rule(r"(?:(?:el|la) )?(?:próximo|próxima|proximo|proxima) {unit_one}", means.some_period, {"shift": 1}),
        Rule(r"(?:este|esta) {unit_one}(?! del?\b)", means.some_period, {"shift": 0}),
        Rule(r"(?:el|este) fin de semana(?! del?\b)", means.this_weekend),
        Rule(r"hace {count} {unit}", means.counted, {"sign": -1}),
        Rule(r"hace {count} {minutes}", means.counted_hours),
        Rule(r"(?:dentro de|en) {count} {unit}", means.counted, {"sign": 1}),
        Rule(r"(?:el )?{weekday} {last}", means.weekday_before),
        Rule(r"(?:el )?{last} {weekday}", means.weekday_before),
        Rule(r"(?:el )?{next} {weekday}", means.weekday_after),
        Rule(r"(?:el )?{weekday} (?:{next}|que viene)", means.weekday_after),
        Rule(r"este {weekday}", means.this_weekday),
        Rule(r"(?:el )?{weekday}", means.weekday_by_tense),
        Rule(r"(?:el )?{weekday} de la semana {shift}", means.weekday_of_week),
        Rule(r"(?:el|la) {season} {shift}", means.some_season),
        Rule(r"(?:este|esta) {season}(?! del? \d)", means.some_season, {"shift": 0}),
        Rule(r"{season} (?:del? )?{year}", means.calendar_season),
        Rule(r"{month} del año {shift}", means.month_of_year),
        Rule(r"{month} {shift}", means.some_month),
        Rule(r"{before_month}{month}{not_dated}", means.month_by_tense),
        Rule(r"{month} (?:del? )?{year}", means.calendar_month),
        Rule(r"(?:el )?{day} de {month}{not_dated}", means.calendar_day),
        Rule(r"(?:el )?{day} de {month},? (?:del? )?{year}", means.calendar_day),
    ),
    phrases={
        "week": "semana del {first}",
        "weekend": "fin de semana del {first}",
        "month": "{month} de {year}",
        "season": "{word} de {years}",
    },
    months=_MONTHS,
    seasons=("primavera", "verano", "otoño", "invierno"),
)
