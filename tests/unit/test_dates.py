from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import pytest

from remanence.dates import DateMention, find_dates, iso_date, render_date, resolve_dates
from remanence.dates.language import Language, languages

MONDAY = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
SUNDAY = datetime(2023, 5, 14, 9, 0, tzinfo=UTC)

ENGLISH = [
    ("it is broken since friday", "it is broken since 2023-05-05"),
    ("I went yesterday.", "I went 2023-05-07."),
    ("the day before yesterday", "2023-05-06"),
    ("Today's plan", "2023-05-08's plan"),
    ("see you tomorrow!", "see you 2023-05-09!"),
    ("leaving the day after tomorrow", "leaving 2023-05-10"),
    ("tonight", "2023-05-08 night"),
    ("last night", "2023-05-07 night"),
    ("this morning", "2023-05-08 morning"),
    ("yesterday evening", "2023-05-07 evening"),
    ("last Friday", "2023-05-05"),
    ("last fri I went", "2023-05-05 I went"),
    ("this past Monday", "2023-05-01"),
    ("next Friday", "2023-05-12"),
    ("this coming Monday", "2023-05-15"),
    ("Tuesday last week", "2023-05-02"),
    ("next week on Tuesday", "2023-05-16"),
    ("two Fridays ago", "2023-04-28"),
    ("Friday, May 12th", "Friday, 2023-05-12"),
    ("last week", "week of 2023-05-01"),
    ("earlier this week", "week of 2023-05-08"),
    ("next week's game", "week of 2023-05-15's game"),
    ("the week before last", "week of 2023-04-24"),
    ("two weeks ago", "week of 2023-04-24"),
    ("a fortnight ago", "week of 2023-04-24"),
    ("in two weeks", "week of 2023-05-22"),
    ("in a couple of weeks' time", "week of 2023-05-22"),
    ("last weekend", "weekend of 2023-05-06"),
    ("two weekends ago", "weekend of 2023-04-29"),
    ("last month", "April 2023"),
    ("end of next month", "end of June 2023"),
    ("3 months ago", "February 2023"),
    ("a year ago", "May 2022"),
    ("5 years ago", "2018"),
    ("a couple of days ago", "2023-05-06"),
    ("3 days ago", "2023-05-05"),
    ("in 3 days", "2023-05-11"),
    ("half a year ago", "November 2022"),
    ("20 hours ago", "2023-05-07"),
    ("last year", "2022"),
    ("early next year", "early 2024"),
    ("last summer", "summer 2022"),
    ("this summer", "summer 2023"),
    ("last fall", "fall 2022"),
    ("last August", "August 2022"),
    ("next July", "July 2023"),
    ("in May last year", "in May 2022"),
    ("May 5 last year", "2022-05-05"),
    ("over the last two weeks", "over the last two weeks (2023-04-24 - 2023-05-08)"),
    ("for four months now", "for four months now (January 2023 - May 2023)"),
    ("LAST WEEK", "week of 2023-05-01"),
]
GERMAN = [
    ("die Heizung geht seit Freitag nicht", "die Heizung geht seit 2023-05-05 nicht"),
    ("Gestern war ich da, vorgestern auch", "2023-05-07 war ich da, 2023-05-06 auch"),
    ("heute Abend", "2023-05-08 Abend"),
    ("heute Morgen", "2023-05-08 Morgen"),
    ("Ich komme morgen früh, du übermorgen", "Ich komme 2023-05-09 früh, du 2023-05-10"),
    ("letzte Woche", "Woche vom 2023-05-01"),
    ("vorletzte Woche", "Woche vom 2023-04-24"),
    ("nächsten Monat", "Juni 2023"),
    ("letztes Jahr", "2022"),
    ("vor drei Tagen", "2023-05-05"),
    ("in zwei Wochen", "Woche vom 2023-05-22"),
    ("seit drei Jahren", "seit 2020"),
    ("letzten Freitag", "2023-05-05"),
    ("nächste Woche Freitag", "2023-05-19"),
    ("letzten Sommer", "Sommer 2022"),
]
FRENCH = [
    ("le samedi 23 on part", "le samedi 23 on part"),
    ("hier soir", "2023-05-07 soir"),
    ("avant-hier", "2023-05-06"),
    ("aujourd’hui", "2023-05-08"),
    ("demain et après-demain", "2023-05-09 et 2023-05-10"),
    ("la semaine dernière", "semaine du 2023-05-01"),
    ("le week-end dernier", "week-end du 2023-05-06"),
    ("le mois prochain", "juin 2023"),
    ("l'an dernier", "2022"),
    ("vendredi dernier", "2023-05-05"),
    ("il y a trois jours", "2023-05-05"),
    ("dans deux semaines", "semaine du 2023-05-22"),
    ("depuis trois ans", "depuis 2020"),
    ("l'été dernier", "été 2022"),
    ("ce matin", "2023-05-08 matin"),
]
SPANISH = [
    ("desde el viernes tendré otro horario", "desde el viernes tendré otro horario"),
    ("desde marzo viviremos aquí", "desde marzo viviremos aquí"),
    ("Mejor el martes 16.", "Mejor el martes 16."),
    ("Ayer fui", "2023-05-07 fui"),
    ("anteayer", "2023-05-06"),
    ("anoche", "2023-05-07 noche"),
    ("mañana por la mañana", "2023-05-09 por la mañana"),
    ("esta mañana", "2023-05-08 mañana"),
    ("pasado mañana", "2023-05-10"),
    ("la semana pasada", "semana del 2023-05-01"),
    ("el fin de semana pasado", "fin de semana del 2023-05-06"),
    ("el mes que viene", "junio de 2023"),
    ("el año pasado", "2022"),
    ("el viernes pasado", "2023-05-05"),
    ("el próximo viernes", "2023-05-12"),
    ("hace tres días", "2023-05-05"),
    ("dentro de dos semanas", "semana del 2023-05-22"),
    ("desde hace tres años", "desde 2020"),
    ("el verano pasado", "verano de 2022"),
]
KOREAN = [
    ("어제 친구를 만났어", "2023-05-07 친구를 만났어"),
    ("그저께는 쉬었다", "2023-05-06는 쉬었다"),
    ("오늘은, 내일도, 모레까지", "2023-05-08은, 2023-05-09도, 2023-05-10까지"),
    ("어젯밤", "2023-05-07 밤"),
    ("지난주에 갔다", "2023-05-01 주에 갔다"),
    ("이번 주", "2023-05-08 주"),
    ("다음 주 금요일에 보자", "2023-05-19에 보자"),
    ("지난 주말", "2023-05-06 주말"),
    ("지난달에", "2023년 4월에"),
    ("다음 달 3일", "2023-06-03"),
    ("작년, 올해, 내년", "2022년, 2023년, 2024년"),
    ("작년 5월", "2022년 5월"),
    ("3일 전에", "2023-05-05에"),
    ("일주일 전", "2023-05-01 주"),
    ("2주 뒤, 2주 후", "2023-05-22 주, 2023-05-22 주"),
    ("한 달 전", "2023년 4월"),
    ("이틀 전", "2023-05-06"),
    ("3년째", "3년째 (2020년-2023년)"),
    ("지난여름", "2022년 여름"),
]
JAPANESE = [
    ("昨日、友達に会った", "2023-05-07、友達に会った"),
    ("一昨日と今日は", "2023-05-06と2023-05-08は"),
    ("明日か明後日に", "2023-05-09か2023-05-10に"),
    ("昨夜は", "2023-05-07夜は"),
    ("先週の", "2023-05-01の週の"),
    ("来週の金曜日に", "2023-05-19に"),
    ("先週末は", "2023-05-06の週末は"),
    ("先月の", "2023年4月の"),
    ("来月の3日に", "2023-06-03に"),
    ("去年の夏", "2022年の夏"),
    ("今年と来年", "2023年と2024年"),
    ("3日前に", "2023-05-05に"),
    ("三年前に", "2020年に"),
    ("2週間後に", "2023-05-22の週に"),
    ("3ヶ月前の", "2023年2月の"),
]
CHINESE = [
    ("昨天我去了公园", "2023-05-07我去了公园"),
    ("前天、今天和明天", "2023-05-06、2023-05-08和2023-05-09"),
    ("后天见", "2023-05-10见"),
    ("後天見", "2023-05-10見"),
    ("昨晚", "2023-05-07晚"),
    ("上周", "2023-05-01那周"),
    ("上個星期", "2023-05-01那周"),
    ("下周五", "2023-05-19"),
    ("上個禮拜三", "2023-05-03"),
    ("上周末", "2023-05-06周末"),
    ("上个月", "2023年4月"),
    ("下個月", "2023年6月"),
    ("去年，今年，明年", "2022年，2023年，2024年"),
    ("去年5月", "2022年5月"),
    ("三天前", "2023-05-05"),
    ("两周后", "2023-05-22那周"),
    ("十二年前", "2011年"),
]


def read_table(name: str) -> list[list[str]]:
    path = Path(__file__).parents[1] / "data" / name
    return [line.split("\t") for line in path.read_text("utf-8").splitlines()[1:]]


TABLE = read_table("dates.tsv")
DURATIONS = read_table("durations.tsv")

TRAPS = [
    "You may be right. This may help, and it may 5 times.",
    "They march every second; the sun sat low.",
    "Last but not least, on the other hand, at last.",
    "We use monday.com and Friday-night.js.",
    "last_week = today() - date.today",
    "Call `resolve(yesterday)` or\n```\nlast week\n```",
    "See https://example.org/last/today?d=yesterday or mail today@example.org.",
    "Open src/today/notes.md, ~/tomorrow.txt and C:\\today\\x.",
    "Logged 2023-05-07T10:00:00Z and 2023-05-07 10:00, paid 7/3/2023.",
    "Born in 1990, here since 2016, back by May 2024, July 3, 2022.",
    "Every Friday and on Sundays, Monday to Friday.",
    "Black Friday, Friday the 13th, Sunday school.",
    "The last week of the month, my last year at school, the next day.",
    "On the 5th floor.",
    "The first Monday of the year, the last Friday of the month.",
    "Wenn hier ein Haken ist, sollte es gehen.",
    "2~3일 전, 2~3日前、二三日前",
    "两三天前",
    "a few years ago, several weeks ago, for a few years now",
    "vor ein paar Jahren, il y a quelques années, hace unos años, 몇 년 전, 数年前に, 几年前",
    "It feels like yesterday. In today's world.",
    "He had it for three years.",
    "Jeden Morgen, guten Morgen, Montag bis Freitag.",
    "J'ai été malade, mon ami. Les vendredis, mardi gras.",
    "Por la mañana, los viernes, hoy en día.",
    "다음 주제는 다음에, 매주 금요일, 지난번에, 오늘날.",
    "毎週末、明日香さん、毎週金曜日。",
    "說明天氣，以前天天，以后天天，每周五，晚上周围。",
]


@pytest.mark.parametrize(
    "rows",
    [ENGLISH, GERMAN, FRENCH, SPANISH, KOREAN, JAPANESE, CHINESE],
    ids=lambda rows: rows[0][0],
)
def test_a_relative_date_means_a_day_or_a_period(rows: list[tuple[str, str]]) -> None:
    assert [(text, with_dates(text, MONDAY)) for text, _ in rows] == rows


def with_dates(text: str, at: datetime) -> str:
    """Return a text with dates in place of relative ones; a duration is followed by its ends."""
    for mention in reversed([mention for mention in find_dates(text, at) if mention.relative]):
        date = render_date(mention)
        shown = f"{mention.text} ({date})" if mention.lasting else date
        text = text[: mention.start] + shown + text[mention.end :]
    return text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I'm moving to York next month.", "I'm moving to York next month (June 2023)."),
        ("Ich ziehe nächstes Jahr um.", "Ich ziehe nächstes Jahr (2024) um."),
        ("Nous étions à Rome l'été dernier.", "Nous étions à Rome l'été dernier (été 2022)."),
        ("去年我搬家了", "2022年我搬家了"),
        ("Next year's budget is fixed.", "Next year's budget is fixed."),
        ("I move next month (June 2023).", "I move next month (June 2023)."),
        (
            "I moved yesterday, not last week.",
            "I moved 2023-05-07, not last week (week of 2023-05-01).",
        ),
    ],
)
def test_a_period_follows_the_words_that_it_cannot_replace(text: str, expected: str) -> None:
    assert resolve_dates(text, MONDAY) == expected


def test_a_sentence_means_the_dates_of_the_table_or_its_words_stay() -> None:
    assert TABLE
    assert otherwise_dated(TABLE) == []


def test_a_duration_or_a_time_that_is_over_is_never_dated_ahead() -> None:
    assert DURATIONS
    assert otherwise_dated(DURATIONS) == []


def otherwise_dated(rows: list[list[str]]) -> list[str]:
    """The rows of a table whose sentence has other dates, with these."""
    return [
        f"{said_on}: {sentence}: {found}, not {expected}"
        for _, _, said_on, sentence, expected in rows
        if (found := relative_dates(sentence, said_on)) != expected
    ]


def relative_dates(sentence: str, said_on: str) -> str:
    """Return the first and last days of the relative dates in a sentence."""
    mentions = find_dates(sentence, datetime.fromisoformat(f"{said_on}T12:00:00+00:00"))

    found = (
        f"{mention.first}" if mention.first == mention.last else f"{mention.first}/{mention.last}"
        for mention in mentions
        if mention.relative
    )
    return " ".join(found) or "words stay"


@pytest.mark.parametrize("language", languages(), ids=lambda language: language.name)
def test_the_sentence_beside_a_phrase_has_the_dates_beside_it(language: Language) -> None:
    phrases = [phrase for phrase in language.phrases if phrase.sentence]

    found = [", ".join(map(render_date, find_dates(each.sentence, MONDAY))) for each in phrases]

    assert phrases
    assert [
        f"{phrase.pattern}: {phrase.sentence}: {dates}, not {phrase.dates}"
        for phrase, dates in zip(phrases, found, strict=True)
        if dates != phrase.dates
    ] == []


@pytest.mark.parametrize("text", TRAPS)
def test_text_that_only_looks_like_a_relative_date_stays_as_it_is(text: str) -> None:
    assert resolve_dates(text, MONDAY) == text


@pytest.mark.parametrize(
    ("at", "text", "expected"),
    [
        ("2023-12-31", "tomorrow, next month", "2024-01-01, January 2024"),
        ("2023-12-30", "next week", "week of 2024-01-01"),
        ("2024-01-01", "yesterday, last month, last week", "2023-12-31, December 2023, week of 2023-12-25"),
        ("2024-02-28", "tomorrow", "2024-02-29"),
        ("2023-02-28", "tomorrow", "2023-03-01"),
        ("2024-02-29", "a year ago", "February 2023"),
        ("2023-03-31", "last month, a month ago", "February 2023, February 2023"),
        ("2023-04-10", "last spring, this summer, last summer", "spring 2022, summer 2023, summer 2022"),
    ],
)  # fmt: skip
def test_the_turn_of_months_and_years_and_leap_days_are_respected(
    at: str, text: str, expected: str
) -> None:
    assert with_dates(text, datetime.fromisoformat(at)) == expected


@pytest.mark.parametrize(
    ("at", "text"),
    [
        ("2023-01-10", "last winter, this winter, last summer, this summer"),
        ("2023-05-08", "next fall, next spring, last winter"),
        ("2023-10-10", "last summer, next winter"),
    ],
)
def test_a_season_of_another_year_in_the_south_stays_as_said(at: str, text: str) -> None:
    assert with_dates(text, datetime.fromisoformat(at)) == text


def test_the_date_of_a_season_is_its_year() -> None:
    mentions = find_dates("last summer, in the winter of 2020", MONDAY)

    assert [iso_date(mention) for mention in mentions] == ["2022", "2020"]


def test_weekends_said_on_a_sunday_are_the_current_and_the_previous_one() -> None:
    said = "this weekend, last weekend"

    assert with_dates(said, SUNDAY) == "weekend of 2023-05-13, weekend of 2023-05-06"


def test_the_day_is_that_of_the_time_zone_of_the_message() -> None:
    late = datetime(2023, 5, 8, 23, 30, tzinfo=timezone(timedelta(hours=9)))

    assert resolve_dates("today", late) == "today (2023-05-08)"


@pytest.mark.parametrize(
    ("said", "resolved"),
    [
        ("We had a baby today!", "We had a baby today (2023-05-08)!"),
        ("My flight is tonight at 22:15.", "My flight is tonight (2023-05-08) at 22:15."),
        ("Heute auf Deutsch: Tomek ist krank.", "Heute (2023-05-08) auf Deutsch: Tomek ist krank."),
        ("I leave tomorrow.", "I leave 2023-05-09."),
        ("Today's my first day.", "2023-05-08's my first day."),
    ],
)
def test_the_day_of_a_message_stays_in_its_words_with_the_date_behind_them(
    said: str, resolved: str
) -> None:
    assert resolve_dates(said, MONDAY) == resolved


def test_a_mention_says_where_it_stands_and_what_period_it_means() -> None:
    text = "We met last month, in Rome."

    (mention,) = find_dates(text, MONDAY)

    assert (text[mention.start : mention.end], mention.text) == ("last month", "last month")
    assert (mention.first, mention.last) == (date(2023, 4, 1), date(2023, 4, 30))
    assert (mention.grain, mention.relative) == ("month", True)


@pytest.mark.parametrize(
    ("text", "grain", "first", "last"),
    [
        ("yesterday", "day", date(2023, 5, 7), date(2023, 5, 7)),
        ("last weekend", "weekend", date(2023, 5, 6), date(2023, 5, 7)),
        ("last week", "week", date(2023, 5, 1), date(2023, 5, 7)),
        ("last summer", "season", date(2022, 6, 1), date(2022, 8, 31)),
        ("last year", "year", date(2022, 1, 1), date(2022, 12, 31)),
        ("last night", "moment", date(2023, 5, 7), date(2023, 5, 7)),
        ("for two years now", "year", date(2021, 1, 1), date(2023, 5, 8)),
    ],
)
def test_the_period_of_a_mention_includes_its_first_and_last_day(
    text: str, grain: str, first: date, last: date
) -> None:
    (mention,) = find_dates(text, MONDAY)

    assert (mention.grain, mention.first, mention.last) == (grain, first, last)


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("on 2023-05-07T10:00", "2023-05-07"),
        ("since 2016", "2016"),
        ("in May 2022", "May 2022"),
        ("July 3, 2022", "2022-07-03"),
        ("2023년 5월 3일", "2023-05-03"),
        ("2023年5月3日", "2023-05-03"),
        ("le 3 juillet 2023", "2023-07-03"),
        ("3 de julio de 2023", "2023-07-03"),
        ("3. Juli 2022", "2022-07-03"),
        ("summer of 2022", "summer 2022"),
    ],
)
def test_absolute_dates_are_found_and_not_called_relative(text: str, rendered: str) -> None:
    (mention,) = find_dates(text, MONDAY)

    assert (render_date(mention), mention.relative) == (rendered, False)


def test_a_mention_made_by_hand_is_rendered_in_english() -> None:
    mention = DateMention(
        start=0, end=9, text="last week", first=date(2023, 5, 1), last=date(2023, 5, 7), grain="week", relative=True
    )  # fmt: skip

    assert render_date(mention) == "week of 2023-05-01"


def test_dates_outside_the_calendar_are_left_alone() -> None:
    assert resolve_dates("yesterday", datetime.min) == "yesterday"  # noqa: DTZ901
    assert resolve_dates("next year, February 30", datetime.max) == "next year, February 30"  # noqa: DTZ901


def test_languages_are_told_apart_within_one_message() -> None:
    assert (
        resolve_dates("어제 met him, gestern auch", MONDAY) == "2023-05-07 met him, 2023-05-07 auch"
    )


@pytest.mark.parametrize(
    "said",
    [
        "The next one is on Thursday 11th.",
        "we moved it to thursday, the 11th",
        "Am Donnerstag, den 11. geht es los.",
        "jeudi 11 à la gare",
        "입사 5/11 목요일",
        "It's Monday and I am tired.",
        "Es ist Montag, ich bin müde.",
        "월요일이라 바쁘다",
    ],
)
def test_a_weekday_beside_the_number_of_its_day_or_said_of_today_stays(said: str) -> None:
    assert resolve_dates(said, MONDAY) == said


@pytest.mark.parametrize(
    "said",
    [
        "My flight is on Friday, May 9.",
        "The dentist appointment will be on Thursday, 8 May.",
        "Der Flug geht am Freitag, 9. Mai.",
        "El vuelo sale el viernes 9 de mayo.",
        "Le vol part vendredi 9 mai.",
        "O voo parte na sexta, 9 de maio.",
        "5月9日星期五出发。",
    ],
)
def test_a_weekday_that_does_not_fit_moves_no_day_to_another_year(said: str) -> None:
    assert find_dates(said, datetime(2026, 5, 6, 20, 0, tzinfo=UTC)) == ()


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("J'ai reporté l'ouverture au samedi 2 décembre.", "2023-12-02"),
        ("Die Abnahme war eigentlich am Montag, 4. Dezember, geplant.", "2023-12-04"),
    ],
)
def test_a_weekday_tells_the_year_of_its_day(said: str, written: str) -> None:
    assert written in resolve_dates(said, MONDAY)


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("dress fitting is friday 10 march at 4pm", "friday 2023-03-10 at 4pm"),
        ("now friday 10 march, 5.30pm", "friday 2023-03-10, 5.30pm"),
        ("the fitting is friday march 10 at noon", "friday 2023-03-10 at noon"),
        ("fri the 10th of march suits me", "fri 2023-03-10 suits me"),
        ("thursday 18th of may works", "thursday 2023-05-18 works"),
        ("we fly thursday 18 may", "thursday 2023-05-18"),
        ("thursday 18 may is fine", "thursday 2023-05-18 is fine"),
        ("thu, may 18 at six", "thu, 2023-05-18 at six"),
        ("sat 20 may with mum", "sat 2023-05-20 with mum"),
        ("freitag, 10. märz, 17:30 uhr", "freitag, 2023-03-10"),
        ("am donnerstag, den 18. mai", "donnerstag, den 2023-05-18"),
        ("rdv vendredi 10 mars à 16h", "vendredi 2023-03-10 à 16h"),
        ("jeudi 18 mai", "jeudi 2023-05-18"),
        ("afspraak vrijdag 10 maart om 16 uur", "vrijdag 2023-03-10 om"),
        ("donderdag 18 mei", "donderdag 2023-05-18"),
        ("viernes 10 de marzo a las 4", "viernes 2023-03-10 a las 4"),
        ("sexta-feira 10 de março às 16h", "sexta-feira 2023-03-10 às 16h"),
        ("quinta feira, 18 de maio", "quinta feira, 2023-05-18"),
        ("Wednesday-Friday 10 March", "Wednesday-Friday 2023-03-10"),
        ("quinta, 18 de maio", "quinta, 2023-05-18"),
        ("venerdì 10 marzo alle 16", "venerdì 2023-03-10 alle 16"),
        ("в пятницу 10 марта в 16", "в пятницу 2023-03-10 в 16"),
        ("10 mart cuma", "2023-03-10 cuma"),
    ],
)
def test_a_month_in_lower_case_is_dated_beside_its_day_and_weekday(said: str, written: str) -> None:
    assert written in resolve_dates(said, MONDAY)


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("계약은 3월 10일 금요일 오후 2시에", "2023-03-10 금요일 오후"),
        ("계약은 3월 10일(금) 오후 2시에", "2023-03-10(금)"),
        ("契約は3月10日金曜日の午後2時", "2023-03-10金曜日"),
        ("契約は3月10日(金)14時", "2023-03-10(金)"),
        ("契約は3月10日（金曜日）です", "2023-03-10（金曜日）"),
        ("签约是3月10日星期五下午两点", "2023-03-10星期五"),
        ("3月10号（周五）见", "2023-03-10（周五）"),
        ("İmza 10 Mart Cuma günü.", "2023-03-10 Cuma günü"),
    ],
)
def test_a_weekday_behind_a_day_tells_its_year(said: str, written: str) -> None:
    assert written in resolve_dates(said, MONDAY)


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("the fitting is Friday 10 March 4pm", "Friday 2023-03-10 4pm"),
        ("friday 10 march 16:30", "friday 2023-03-10 16:30"),
        ("freitag, 10. märz 16 uhr", "freitag, 2023-03-10 16 uhr"),
        ("vendredi 10 mars 16h30", "vendredi 2023-03-10 16h30"),
        ("vrijdag 10 maart 16 uur", "vrijdag 2023-03-10 16 uur"),
        ("viernes 10 de marzo 16:30", "viernes 2023-03-10 16:30"),
        ("sexta, 10 de março 16h", "sexta, 2023-03-10 16h"),
        ("venerdì 10 marzo 16.30", "venerdì 2023-03-10 16.30"),
        ("в пятницу 10 марта 16:30", "в пятницу 2023-03-10 16:30"),
        ("Friday 10 March 17", "Friday 10 March 17"),
        ("Friday 10 March 1854", "Friday 10 March 1854"),
        ("vendredi 10 mars 17", "vendredi 10 mars 17"),
    ],
)
def test_a_time_behind_a_day_is_not_its_year(said: str, written: str) -> None:
    assert written in resolve_dates(said, MONDAY)


@pytest.mark.parametrize(
    "said",
    [
        "on the 10th of march",
        "friday 11 may or so",
        "thursday 18 may be too late",
        "on thursday the 18th may work better",
        "Thursday 18 may not come",
        "friday march 10 miles, saturday rest",
        "am 10. mai",
        "le 10 mars",
        "op 10 maart",
        "el 10 de marzo",
        "10 mart",
        "15 Mart Pazarlama",
        "3월 10일 오후 2시에",
        "3월 9일 금요일에",
        "3월 10일 금요일마다",
        "3月10日に会う",
        "3月9日金曜日に会う",
        "3月9日星期五见",
    ],
)
def test_a_month_that_may_be_a_verb_or_has_no_weekday_that_agrees_stays(said: str) -> None:
    assert resolve_dates(said, MONDAY) == said


@pytest.mark.parametrize(
    "said",
    [
        "ouvert mardi à samedi, fermé dimanche et lundi",
        "周二和周五晚上有课",
        "Montag und Donnerstag ist Training",
        "화요일과 금요일에 수업",
        "火曜と金曜に英語",
        "We always meet on Friday",
        "I usually work late on Thursday",
        "Wir treffen uns immer am Freitag",
        "D'habitude on se voit vendredi",
        "Siempre nos vemos el viernes",
        "Di solito ci vediamo venerdì",
        "Sempre nos vemos na sexta-feira",
        "We zien elkaar altijd op vrijdag",
        "Мы обычно встречаемся в пятницу",
        "Genellikle cuma günü buluşuruz",
        "我们通常星期五上课",
        "いつも金曜日に会います",
        "보통 금요일에 만나요",
    ],
)
def test_weekdays_of_every_week_are_no_dates(said: str) -> None:
    assert resolve_dates(said, MONDAY) == said


@pytest.mark.parametrize(
    "said",
    [
        "We met on Friday, and we'll meet again on Monday.",
        "I was diagnosed with diabetes in March.",
        "My birthday is on May 4, the party on the 6th.",
        "How was the weekend? Next weekend we sail, the weekend after next we rest.",
        "By Thursday 19:00, or Friday, May 12.",
        "Am Freitag fliege ich, im Juni bin ich zurück.",
        "Je dois rendre le dossier vendredi, ou le 3 juin au plus tard.",
        "土曜日に自転車で転びました。5月20日に退院します。",
    ],
)
def test_a_day_of_one_of_several_weeks_or_years_stays_as_said(said: str) -> None:
    assert resolve_dates(said, MONDAY) == said.replace("May 12", "2023-05-12")


def test_a_number_after_a_day_counts_as_its_own_only_after_a_weekday() -> None:
    assert resolve_dates("Yesterday 5 people came", MONDAY) == "2023-05-07 5 people came"
    assert resolve_dates("next Friday 19 we sail", MONDAY) == "next Friday 19 we sail"


@pytest.mark.parametrize(
    "said",
    [
        "This weekend we hike.",
        "Dieses Wochenende fahren wir.",
        "Ce week-end on part.",
        "Este fin de semana viajo.",
        "Questo fine settimana parto.",
        "Este fim de semana eu viajo.",
        "Dit weekend gaan we weg.",
        "В эти выходные я дома.",
        "Bu hafta sonu gideceğiz.",
        "这周末在家。",
        "この週末は家にいる",
        "이번 주말은 집에 있어",
    ],
)
def test_this_weekend_is_the_one_that_has_begun(said: str) -> None:
    (found,) = find_dates(said, SUNDAY)

    assert (found.grain, found.first) == ("weekend", date(2023, 5, 13))


@pytest.mark.parametrize(
    "said",
    ["I liked tonight's show.", "Last night’s game was great.", "Tomorrow night's dinner is at 8."],
)
def test_a_part_of_a_day_stays_as_said_before_a_possessive(said: str) -> None:
    assert resolve_dates(said, datetime(2026, 4, 22, 20, tzinfo=UTC)) == said


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("Parto domani l'altro.", "Parto 2026-04-24."),
        ("Ieri l’altro pioveva.", "2026-04-20 pioveva."),
        ("Dinner is tomorrow night.", "Dinner is 2026-04-23 night."),
    ],
)
def test_words_that_belong_to_a_day_are_read_with_it(said: str, written: str) -> None:
    assert resolve_dates(said, datetime(2026, 4, 22, 20, tzinfo=UTC)) == written
