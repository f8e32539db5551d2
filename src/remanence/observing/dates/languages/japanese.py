"""Japanese."""

from remanence.observing.dates import meanings as means
from remanence.observing.dates.language import Language, Rule

_DIGITS = {character: value for value, character in enumerate("一二三四五六七八九", 1)}
_NUMBERS = {
    **_DIGITS,
    "十": 10,
    **{f"十{character}": 10 + value for character, value in _DIGITS.items()},
    **{f"{character}十": 10 * value for character, value in _DIGITS.items()},
}
_WEEKDAYS = {name: value for value, name in enumerate("月火水木金土日")}

JAPANESE = Language(
    name="japanese",
    needs="[ぁ-ゟァ-ヿ]",
    trigger=(
        "昨[日夜晩年]|一昨|おととい|きのう|今[日夜晩朝週月年度]|きょう|本日|明日|明後日|あした|あさって|ゆうべ|先[週月々]|先日|来[週月年]"
        "|再来|去年|おととし|前|後|週末|[月火水木金土日]曜|月[0-9０-９]|年|次の|この間"
    ),
    slots={
        "number": _NUMBERS,
        "vague": {"数": 3, "何": 3},
        "unit": {
            **{"日": "day", "日間": "day", "週": "week", "週間": "week", "年": "year", "年間": "year"},
            **{f"{counter}月": "month" for counter in "ヶか箇ヵカケ"},
            **{f"{counter}月間": "month" for counter in "ヶか箇ヵカケ"},
        },
        "minutes": {"時間": 60, "分": 1},
        "shift_week": {"先々週": -2, "先週": -1, "今週": 0, "来週": 1, "再来週": 2},
        "shift_month": {"先々月": -2, "先月": -1, "今月": 0, "来月": 1, "再来月": 2},
        "shift_year": {"一昨年": -2, "おととし": -2, "去年": -1, "昨年": -1, "今年": 0, "来年": 1, "再来年": 2},
        "weekday": {
            **{f"{name}曜日": value for name, value in _WEEKDAYS.items()},
            **{f"{name}曜": value for name, value in _WEEKDAYS.items()},
        },
        "season": {"春": 0, "夏": 1, "秋": 2, "冬": 3},
    },
    macros={
        "count": r"(?:{number}|{vague})",
        "month": r"(?P<month>1[0-2]|[1-9])月",
        "dayofmonth": r"(?P<day>[12]\d|3[01]|[1-9])日",
        "not_part": r"(?![本番子])",
    },
    left=r"(?<![\d一二三四五六七八九十百千万年毎第][.,])(?<![\d毎第])",
    right=r"(?![a-z_])",
    past=r"(?:[っいきしちりみえけせてねべめれんだ]た|だった|でした|ました)(?![いりらく])",
    future=r"つもり|予定|ましょう|よう|たい|だろう|でしょう",
    clause_end=r"[。！？!?、\n()（）]",
    traps=(
        "毎週(?:末|の?{weekday})",
        "{weekday}[〜~～-][月火水木金土日]曜?日?",
        "明日香|今日子|明日美|今日的|{count}年前後|{count}日前後",
        "週末ごと|{weekday}(?:ごと|版)",
    ),
    rules=(
        Rule("(?:一昨日|おととい)", means.some_day, {"shift": -2}),
        Rule("(?:昨日|きのう)", means.some_day, {"shift": -1}),
        Rule("(?:今日|きょう|本日)", means.some_day, {"shift": 0}),
        Rule("(?:明日|あした)", means.some_day, {"shift": 1}),
        Rule("(?:明後日|あさって)", means.some_day, {"shift": 2}),
        Rule("(?:昨夜|ゆうべ|昨日の夜)", means.some_day, {"shift": -1, "word": "夜"}),
        Rule("昨(?P<word>晩)", means.some_day, {"shift": -1}),
        Rule("今(?P<word>朝|夜|晩)", means.some_day, {"shift": 0}),
        Rule("{shift_week}", means.some_period, {"unit": "week"}),
        Rule("{shift_month}", means.some_period, {"unit": "month"}),
        Rule("{shift_year}", means.some_period, {"unit": "year"}),
        Rule("{shift_week}の?末", means.some_period, {"unit": "weekend"}),
        Rule("{shift_week}の週末", means.some_period, {"unit": "weekend"}),
        Rule("(?<![の日])(?:この)?週末", means.this_weekend),
        Rule("今週末", means.this_weekend),
        Rule("{count}{unit}ほど?前", means.counted, {"sign": -1}),
        Rule("{count}{unit}前", means.counted, {"sign": -1}),
        Rule("{count}{unit}後", means.counted, {"sign": 1}),
        Rule("半年前", means.counted, {"number": 6, "unit": "month", "sign": -1}),
        Rule("半年後", means.counted, {"number": 6, "unit": "month", "sign": 1}),
        Rule("{count}{minutes}前", means.counted_hours),
        Rule("(?:この前|この間|前)の{weekday}", means.weekday_before),
        Rule("(?:次|今度)の{weekday}", means.weekday_after),
        Rule("{weekday}", means.weekday_by_tense),
        Rule("{shift_week}の?{weekday}", means.weekday_of_week),
        Rule("(?:この前の|前の){season}", means.some_season, {"shift": -1}),
        Rule("(?:次|今度)の{season}", means.some_season, {"shift": 1}),
        Rule("この{season}", means.some_season, {"shift": 0}),
        Rule("{year}年の?{season}", means.calendar_season),
        Rule("{year}年(?![\\d前後])", means.calendar_year),
        Rule("{year}年の?{month}(?!\\d)", means.calendar_month),
        Rule("{year}年の?{month}{dayofmonth}", means.calendar_day),
        Rule("{shift_year}の?{month}(?!\\d)", means.month_of_year),
        Rule("{shift_year}の?{month}{dayofmonth}", means.calendar_day),
        Rule("(?<!年)(?<!年の){month}{dayofmonth}", means.calendar_day),
        Rule("{shift_month}の?{dayofmonth}", means.day_of_month),
    ),
    phrases={
        "week": "{first}の週",
        "weekend": "{first}の週末",
        "month": "{year}年{number}月",
        "season": "{year}年{word}",
        "year": "{year}年",
        "moment": "{first}{word}",
    },
    seasons=("春", "夏", "秋", "冬"),
)
