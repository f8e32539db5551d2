"""Chinese, in simplified and traditional characters."""

from remanence.dates import meanings as means
from remanence.dates.language import Language, Rule

_DIGITS = {character: value for value, character in enumerate("一二三四五六七八九", 1)}
_NUMBERS = {
    **_DIGITS,
    "两": 2,
    "兩": 2,
    "十": 10,
    **{f"十{character}": 10 + value for character, value in _DIGITS.items()},
    **{f"{character}十": 10 * value for character, value in _DIGITS.items()},
}
_SHIFTS = {"上上": -2, "上": -1, "这": 0, "這": 0, "本": 0, "下": 1, "下下": 2}
_WEEK_NAMES = ("周", "週", "星期", "礼拜", "禮拜")
_DAY_OF_WEEK = {**{name: value for value, name in enumerate("一二三四五六日")}, "天": 6}

CHINESE = Language(
    name="chinese",
    needs="[一-鿿]",
    excludes="[ぁ-ゟァ-ヿ]",
    trigger=(
        "昨[天日晚夜年]|今[天日晚夜早年]|明[天日晚早年]|[前后後去][天年]|大前|大后|大後|[上这這本下][个個]?[周週月星礼禮季]|[以之]?前|[以之]?[后後]"
        "|周末|週末|[周週][一二三四五六日天]|星期|礼拜|禮拜|月[0-9]|年|[0-9]月"
    ),
    slots={
        "number": _NUMBERS,
        "vague": {"几": 3, "幾": 3, "数": 3, "數": 3, "好几": 4, "好幾": 4},
        "unit": {
            "天": "day",
            "日": "day",
            "周": "week",
            "週": "week",
            "年": "year",
            "个月": "month",
            "個月": "month",
            **{
                f"{count}{name}": "week"
                for count in ("个", "個", "")
                for name in ("星期", "礼拜", "禮拜")
            },
            **{f"{count}周": "week" for count in ("个", "個")},
        },
        "minutes": {"小时": 60, "小時": 60, "个小时": 60, "個小時": 60, "分钟": 1, "分鐘": 1},
        "shift": _SHIFTS,
        "shift_year": {"前年": -2, "去年": -1, "今年": 0, "明年": 1, "后年": 2, "後年": 2},
        "weekday": {
            f"{week}{day}": value for week in _WEEK_NAMES for day, value in _DAY_OF_WEEK.items()
        },
        "weekday_name": _DAY_OF_WEEK,
        "season": {
            "春天": 0,
            "夏天": 1,
            "秋天": 2,
            "冬天": 3,
            "春": 0,
            "夏": 1,
            "秋": 2,
            "冬": 3,
            "春季": 0,
            "夏季": 1,
            "秋季": 2,
            "冬季": 3,
        },
    },
    macros={
        "count": r"(?<![\d一二三四五六七八九十两兩][~～-])(?<![一二三四五六七八九十两兩几幾数數百千万])(?:{number}|{vague})",
        "week": r"(?:周|週|星期|礼拜|禮拜)",
        "month": r"(?P<month>1[0-2]|[1-9])月",
        "dayofmonth": r"(?P<day>[12]\d|3[01]|[1-9])[日号號]",
        "before": r"(?:以前|之前|前)",
        "after": r"(?:以后|以後|之后|之後|后|後)",
    },
    left=r"(?<![\d第每零百千万亿年][.,])(?<![\d第每零百千万亿])",
    right=r"(?!_)",
    past=r"了|过|過|刚|剛|曾",
    future=r"会|會|要|约了|约好|定在|订了|訂了|打算|准备|準備|将|將|想|计划|計劃|去吧|见",
    clause_end=r"[。！？!?，,；;\n]",
    traps=(
        "每(?:个|個)?(?:{weekday}|周末|週末)",
        "{weekday}(?:到|至|-|—|和|跟|、|或|及)(?:周|週|星期|礼拜|禮拜)?[一二三四五六日天]",
        "(?:说|說|声|聲|表|证|證|文|透|照|发|發)明[天日年]",
        "(?:以|之|目|从|從|生|事|提)前(?:天|年)",
        "(?:以|之|先|今|然|最|随|隨|背|幕|走)[后後](?:天|年)",
        "[过過]去年",
        "[晚早马馬身地天网路]上[周週](?:末)?",
        "(?:以|之|地|天|如|一|手|脚)下[周週]",
        "(?:前天|后天|後天)(?:性|气|氣)",
        "[一二三四五六七八九十][周週](?:年|围|圍)",
        "{count}[年天]前[后後]",
        r"(?<!月)\d{1,2}[日号號](?:是|，)?[(（]?{weekday}",
        r"{weekday}[，、]?\d{1,2}[日号號]",
    ),
    rules=(
        Rule("大前天", means.some_day, {"shift": -3}),
        Rule("前天", means.some_day, {"shift": -2}),
        Rule("(?:昨天|昨日)", means.some_day, {"shift": -1}),
        Rule("(?:今天|今日)", means.some_day, {"shift": 0}),
        Rule("(?:明天|明日)", means.some_day, {"shift": 1}),
        Rule("[后後]天", means.some_day, {"shift": 2}),
        Rule("大[后後]天", means.some_day, {"shift": 3}),
        Rule("昨(?P<word>晚|夜)", means.some_day, {"shift": -1}),
        Rule("今(?P<word>晚|夜|早)", means.some_day, {"shift": 0}),
        Rule("明(?P<word>晚|早)", means.some_day, {"shift": 1}),
        Rule(
            "{shift}(?:个|個)?{week}(?![一二三四五六日天末年])", means.some_period, {"unit": "week"}
        ),
        Rule("{shift}(?:个|個)月", means.some_period, {"unit": "month"}),
        Rule("本月", means.some_period, {"shift": 0, "unit": "month"}),
        Rule("{shift_year}", means.some_period, {"unit": "year"}),
        Rule("{shift}(?:个|個)?(?:周|週)末", means.some_period, {"unit": "weekend"}),
        Rule("(?:(?:这|這|本)(?:个|個)?)?(?:周|週)末", means.this_weekend),
        Rule("{count}{unit}{before}", means.count_units, {"sign": -1}),
        Rule("{count}{unit}{after}", means.count_units, {"sign": 1}),
        Rule("半年{before}", means.count_units, {"number": 6, "unit": "month", "sign": -1}),
        Rule("半年{after}", means.count_units, {"number": 6, "unit": "month", "sign": 1}),
        Rule("{count}{minutes}{before}", means.count_hours),
        Rule("{shift}(?:个|個)?{week}{weekday_name}", means.weekday_of_week),
        Rule("{weekday}", means.weekday_by_tense),
        Rule("上(?:个|個){season}", means.some_season, {"shift": -1}),
        Rule("(?:这|這)(?:个|個){season}", means.some_season, {"shift": 0}),
        Rule("下(?:个|個){season}", means.some_season, {"shift": 1}),
        Rule("{year}年{season}", means.calendar_season),
        Rule("{year}年(?![\\d前后後])", means.calendar_year),
        Rule("{year}年{month}(?!\\d)", means.calendar_month),
        Rule("{year}年{month}{dayofmonth}", means.calendar_day),
        Rule("{shift_year}的?{month}(?!\\d)", means.month_of_year),
        Rule("{shift_year}的?{month}{dayofmonth}", means.calendar_day),
        Rule("(?<!年){month}{dayofmonth}", means.calendar_day),
        Rule("{shift}(?:个|個)月{dayofmonth}", means.day_of_month),
    ),
    phrases={
        "week": "{first}那周",
        "weekend": "{first}周末",
        "month": "{year}年{number}月",
        "season": "{year}年{word}",
        "year": "{year}年",
        "moment": "{first}{word}",
    },
    seasons=("春天", "夏天", "秋天", "冬天"),
)
