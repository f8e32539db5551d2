"""Korean. Particles follow a date without a space and stay in the text."""

from remanence.observing.dates import meanings as means
from remanence.observing.dates.language import Language, Rule

_PARTICLES = (
    "에게 에서 에 은 는 이나 이랑 이고 이야 이에요 이었 인데 이라 이지 이 가 을 를 의 도 만 부터 까지 쯤 경 정도 으로 로 와 과 랑 하고"
    " 처럼 보다 중 말 초 내내 동안 예요 입니다 였 밤 아침 저녁 오후 오전 새벽 점심 낮 안 야 엔 께"
)
_DAYS_BY_NAME = {"하루": 1, "이틀": 2, "사흘": 3, "나흘": 4, "닷새": 5, "엿새": 6, "열흘": 10, "보름": 15}
_SHIFTS = {"지난": -1, "저번": -1, "이번": 0, "다음": 1, "담": 1, "오는": 1, "지지난": -2, "저저번": -2, "다다음": 2}

KOREAN = Language(
    name="korean",
    needs="[가-힣]",
    trigger=(
        "어제|어저께|그저께|그제|엊그제|오늘|내일|모레|글피|지난|저번|이번|다음|다다음|오는|작년|재작년|올해|올여름|올|금년|내년|이달"
        "|어젯밤|간밤|주말|[월화수목금토일]요일|전|뒤|후|째|월 ?[0-9]|년|담 ?[주달]"
    ),
    slots={
        "number": {
            **{"한": 1, "두": 2, "세": 3, "네": 4, "다섯": 5, "여섯": 6, "일곱": 7, "여덟": 8, "아홉": 9, "열": 10},
            **{"일": 1, "이": 2, "삼": 3, "사": 4, "오": 5, "육": 6, "칠": 7, "팔": 8, "구": 9, "십": 10},
        },
        "number_days": _DAYS_BY_NAME,
        "vague": {"몇": 3, "여러": 4},
        "unit": {"일": "day", "주": "week", "주일": "week", "달": "month", "개월": "month", "년": "year", "해": "year"},
        "unit_one": {"주": "week", "주말": "weekend", "달": "month", "해": "year"},
        "minutes": {"시간": 60, "분": 1},
        "shift": _SHIFTS,
        "shift_year": {"작년": -1, "지난해": -1, "재작년": -2, "올해": 0, "금년": 0, "내년": 1, "내후년": 2, "올": 0},
        "weekday": {f"{name}요일": value for value, name in enumerate("월화수목금토일")},
        "season": {"봄": 0, "여름": 1, "가을": 2, "겨울": 3},
    },
    macros={
        "count": r"(?:{number}|{vague})",
        "month": r"(?<!\d)(?P<month>1[0-2]|[1-9])월",
        "dayofmonth": r"(?P<day>[12]\d|3[01]|[1-9])일",
    },
    left=r"(?<![가-힣])(?<!\d)(?<!\d[.,])",
    right=rf"(?![가-힣\d]|[a-z_]\w)|(?=(?:{'|'.join(_PARTICLES.split())})(?!\w*[()_=]))",
    past=r"(?:[았었했갔봤왔됐났샀렸졌쳤겼켰였냈썼줬뒀잤]|먹었)(?:다|어|지|네|고|는|는데|습니다|음|던|거든|더라|구나|죠|을)",
    future=r"(?:[할갈볼될먹]|을) ?(?:거|게|래|까|예정|계획|것)|겠|하자|가자|예정|계획|만나자|[ㄹ을] ?거",
    clause_end=r"[.!?;,:\n()]",
    traps=(
        "매주 ?(?:말|{weekday})",
        "{weekday}마다|주말마다|매일 오늘",
        "{weekday} ?(?:-|~|부터) ?{weekday}",
        "지난(?:날| 날| 번| 시간)",
        "오늘날|내일모레 ?마흔",
    ),
    rules=(
        Rule("(?:그저께|그제|그젯)", means.some_day, {"shift": -2}),
        Rule("그그저께", means.some_day, {"shift": -3}),
        Rule("(?:어제|어저께)", means.some_day, {"shift": -1}),
        Rule("오늘", means.some_day, {"shift": 0}),
        Rule("내일", means.some_day, {"shift": 1}),
        Rule("(?:내일 ?)?모레", means.some_day, {"shift": 2}),
        Rule("글피", means.some_day, {"shift": 3}),
        Rule("(?:어젯밤|어제 ?밤|간밤)", means.some_day, {"shift": -1, "word": "밤"}),
        Rule("오늘 ?밤", means.some_day, {"shift": 0, "word": "밤"}),
        Rule("{shift} ?{unit_one}", means.some_period),
        Rule("이달", means.some_period, {"shift": 0, "unit": "month"}),
        Rule("{shift_year}(?<!올)", means.some_period, {"unit": "year"}),
        Rule("(?:이번 ?)?주말", means.this_weekend),
        Rule("엊그제", means.counted, {"vague": 2, "unit": "day", "sign": -1}),
        Rule("{count} ?{unit} ?전", means.counted, {"sign": -1}),
        Rule("{count} ?{unit} ?[뒤후]", means.counted, {"sign": 1}),
        Rule("{number_days} ?전", means.counted, {"unit": "day", "sign": -1}),
        Rule("{number_days} ?[뒤후]", means.counted, {"unit": "day", "sign": 1}),
        Rule("며칠 ?전", means.counted, {"vague": 3, "unit": "day", "sign": -1}),
        Rule("며칠 ?[뒤후]", means.counted, {"vague": 3, "unit": "day", "sign": 1}),
        Rule("반년 ?전", means.counted, {"number": 6, "unit": "month", "sign": -1}),
        Rule("{count} ?{minutes} ?전", means.counted_hours),
        Rule("{count} ?{unit} ?째(?! \\()", means.lasting),
        Rule("(?:지난|저번) ?{weekday}", means.weekday_before),
        Rule("(?:다음|담|오는) ?{weekday}", means.weekday_after),
        Rule("이번 ?{weekday}", means.this_weekday),
        Rule("{weekday}", means.weekday_by_tense),
        Rule("{shift} ?주 ?{weekday}", means.weekday_of_week),
        Rule("지난 ?{season}", means.some_season, {"shift": -1}),
        Rule("(?:이번|올) ?{season}", means.some_season, {"shift": 0}),
        Rule("다음 ?{season}", means.some_season, {"shift": 1}),
        Rule("{year}년 ?{season}", means.calendar_season),
        Rule("{year}년(?! ?(?:\\d|[전뒤후]))", means.calendar_year),
        Rule("{year}년 ?{month}(?! ?\\d)", means.calendar_month),
        Rule("{year}년 ?{month} ?{dayofmonth}", means.calendar_day),
        Rule("{shift_year} ?{month}(?! ?\\d)", means.month_of_year),
        Rule("{shift_year} ?{month} ?{dayofmonth}", means.calendar_day),
        Rule("{month} ?{dayofmonth}", means.calendar_day),
        Rule("(?:지난|이번|다음) ?{month}(?! ?\\d)", means.month_by_tense),
        Rule("{shift} ?달 ?{dayofmonth}", means.day_of_month),
    ),
    phrases={
        "week": "{first} 주",
        "weekend": "{first} 주말",
        "month": "{year}년 {number}월",
        "season": "{year}년 {word}",
        "year": "{year}년",
    },
    seasons=("봄", "여름", "가을", "겨울"),
)
