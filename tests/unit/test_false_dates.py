"""Words that look like a relative date but are part of something else stay as said."""

from datetime import UTC, datetime

import pytest

from remanence.dates import find_dates, resolve_dates

THURSDAY = datetime(2026, 11, 5, 12, 0, tzinfo=UTC)
SUNDAY = datetime(2026, 11, 8, 12, 0, tzinfo=UTC)


def relative_dates(text: str, at: datetime = THURSDAY) -> list[str]:
    return [mention.text for mention in find_dates(text, at) if mention.relative]


@pytest.mark.parametrize(
    "said",
    [
        "备注须在11月7日之前送达",
        "11月7日以前付清",
        "十一月七日之前寄出",
        "11/7日前确认",
        "每月5日前还款",
        "12月2日前定稿",
        "3月5日之后再说",
        "7日之前交表",
        "11月7日前に欲しい",
        "11月30日後でも",
        "十二月三日前に送る",
        "毎月5日前に家賃",
        "11/7日前に届けて",
        "11월 7일 전에 주세요",
        "12월 2일 후에 만나요",
        "매달 10일 전에 내요",
        "11/7일 전에 주세요",
        "Kasım 7 gün önce değil",
    ],
)
def test_the_number_of_a_day_in_a_month_counts_no_days_from_today(said: str) -> None:
    assert relative_dates(said) == []


@pytest.mark.parametrize(
    "said",
    [
        "先灰度10%的用户，一周后再全量。",
        "まず10%のユーザー、一週間後に全員。",
        "먼저 10%에게, 2주 뒤 모두에게 공개해.",
        "Önce kullanıcıların %10'u, bir hafta sonra herkes.",
    ],
)
def test_what_comes_first_is_what_a_later_step_counts_from(said: str) -> None:
    assert relative_dates(said) == []


@pytest.mark.parametrize(
    "said",
    [
        "Mein Lieblingsfilm ist Übermorgen.",
        "Ich arbeite bei der Zeitung Heute in Wien.",
        "저는 오늘의집에서 일해요.",
        "我是后天免疫缺陷患者。",
    ],
)
def test_a_word_of_another_meaning_has_no_date(said: str) -> None:
    assert relative_dates(said) == []


@pytest.mark.parametrize(
    "said",
    [
        "When I was a child, my father said tomorrow we go to Rome.",
        "In 1999 my doctor said I would be blind tomorrow.",
        "My boss wrote on Monday: you start tomorrow.",
        "Als Kind sagte mein Vater, morgen ziehen wir nach Rom.",
        "Mein Chef schrieb am Montag: Du fängst morgen an.",
        "Toen ik klein was, zei mijn vader dat we morgen verhuizen.",
        "De niño mi padre me dijo que mañana nos mudamos a Roma.",
        "Quand j'étais petit, mon père a dit que demain on part.",
        "Da bambino mio padre diceva che domani si parte.",
        "Quando eu era criança, meu pai disse que amanhã mudamos.",
        "В детстве отец сказал, что завтра мы переезжаем.",
        "Çocukken babam yarın taşınıyoruz dedi.",
        "小时候父亲告诉我，明天我们搬家。",
        "子どもの頃、父は明日引っ越すと言った。",
        "어렸을 때 아버지는 내일 이사한다고 했어요.",
    ],
)
def test_a_time_ahead_that_was_said_at_an_earlier_time_has_no_date(said: str) -> None:
    assert relative_dates(said) == []


@pytest.mark.parametrize(
    ("said", "dated"),
    [
        ("My doctor said I have surgery tomorrow.", ["tomorrow"]),
        ("Last year my landlord said I must move out next month.", ["Last year"]),
        ("I told you yesterday that I fly tomorrow.", ["yesterday", "tomorrow"]),
        ("I moved here in 2019 and fly home tomorrow.", ["tomorrow"]),
        ("Mein Arzt hat gesagt, dass ich morgen operiert werde.", ["morgen"]),
        ("Mi jefe me dijo que mañana tengo libre.", ["mañana"]),
        ("Ma mère a dit qu'elle vient demain.", ["demain"]),
        ("医生说我后天做手术。", ["后天"]),
        ("医者は明日手術だと言った。", ["明日"]),
    ],
)
def test_a_reported_time_ahead_has_a_date_unless_it_was_said_earlier_than_yesterday(
    said: str, dated: list[str]
) -> None:
    assert relative_dates(said) == dated


@pytest.mark.parametrize(
    "said",
    [
        "I prepare my clothes for tomorrow every evening.",
        "I get my schedule for next week every Friday.",
        "I never eat yesterday's rice.",
        "Every evening I get up and prepare for tomorrow.",
        "Jeden Freitag Morgen gehe ich schwimmen.",
        "Ich verschiebe immer alles auf morgen.",
        "Ik stel altijd alles uit tot overmorgen.",
        "Siempre dejo todo para mañana.",
        "Je remets toujours tout à demain.",
        "Rimando sempre tutto a domani.",
        "Deixo sempre tudo para amanhã.",
        "Всегда откладываю всё на завтра.",
        "İşleri hep yarın yaparım.",
        "我总是把事情拖到明天。",
        "私はいつも明日に延ばします。",
        "저는 항상 일을 내일로 미뤄요.",
    ],
)
def test_a_habit_has_no_date(said: str) -> None:
    assert relative_dates(said) == []


@pytest.mark.parametrize(
    ("said", "dated"),
    [
        ("I have the dentist tomorrow, as every month.", ["tomorrow"]),
        ("I usually drink tea but tomorrow I see the dentist.", ["tomorrow"]),
        ("Every patient gets a letter tomorrow.", ["tomorrow"]),
        ("I have physio tomorrow and every Thursday after that.", ["tomorrow"]),
        ("I never complain and tomorrow I fly home.", ["tomorrow"]),
        ("Je prends toujours le bus et demain je vois le médecin.", ["demain"]),
        ("Lavoro sempre e domani ho il dentista.", ["domani"]),
        ("We meet tomorrow at nine as always.", ["tomorrow"]),
        ("Wir treffen uns morgen wie immer um neun.", ["morgen"]),
        ("Mañana nos vemos como siempre.", ["Mañana"]),
        ("On se voit demain comme d'habitude.", ["demain"]),
        ("завтра как обычно", ["завтра"]),
        ("明日はいつも通り出勤します。", ["明日"]),
        ("Ich habe morgen immer noch den Termin.", ["morgen"]),
        ("Cada paciente recibe mañana una carta.", ["mañana"]),
        ("Je travaille toujours le lundi mais demain je suis libre.", ["demain"]),
        ("Di solito lavoro ma domani ho il dentista.", ["domani"]),
        ("Ik werk altijd maar morgen heb ik de tandarts.", ["morgen"]),
        ("我每天跑步，但明天休息。", ["明天"]),
        ("私は毎日走りますが、明日は休みます。", ["明日"]),
        ("저는 매주 수요일에 회의가 있어서 내일 호텔을 정할게요.", ["내일"]),
    ],
)
def test_an_appointment_beside_a_habit_has_its_date(said: str, dated: list[str]) -> None:
    assert relative_dates(said) == dated


@pytest.mark.parametrize(
    "said", ["两年三个月前搬家", "1年3か月前に買った", "1년 3개월 전에 샀어요", "一周三天后见"]
)
def test_a_count_in_two_units_is_not_read_by_its_last_unit(said: str) -> None:
    assert relative_dates(said) == []


@pytest.mark.parametrize(
    ("said", "dated"),
    [
        ("本月7日之前", ["本月"]),
        ("来月5日前に振り込む", ["来月5日"]),
        ("다음 달 3일 전에", ["다음 달 3일"]),
        ("三日前见过", ["三日前"]),
        ("我三天前在车站见过她", ["三天前"]),
        ("3日前に会った", ["3日前"]),
        ("저는 3일 전에 만났어요", ["3일 전"]),
    ],
)
def test_days_counted_from_today_have_a_date(said: str, dated: list[str]) -> None:
    assert relative_dates(said) == dated


@pytest.mark.parametrize(
    "said",
    [
        "The refund arrives in 14 days after receipt",
        "Payment is due in 30 days from the invoice date",
        "The stitches come out in two weeks post surgery",
        "Rückgabe in 14 Tagen nach Erhalt",
        "Die Antwort kommt in zwei Wochen nach der Untersuchung",
        "Zahlbar in 30 Tagen ab Rechnungsdatum",
        "Retour dans 14 jours après réception",
        "Livré dans 3 jours ouvrés",
        "Il y a trois jours de retard",
        "Llega en 3 días laborables",
        "Se devuelve en 14 días desde la entrega",
        "Consegna tra 3 giorni lavorativi",
        "Il rimborso arriva fra 14 giorni dalla consegna",
        "Entrega em 3 dias úteis",
        "Devolução em 14 dias após o recebimento",
        "Há dois dias de espera",
        "Betaling over 14 dagen na ontvangst",
        "De kosten zijn verspreid over drie maanden",
        "Возврат через 14 дней с момента получения",
        "Гарантия кончится через 12 месяцев со дня покупки",
        "Teslimattan itibaren 14 gün sonra iade olmaz",
        "Kasım'dan 3 gün önce",
        "自签收起7天后不能退货",
        "付款后3天后到账",
        "下单三天后发货",
        "購入から14日後に届く",
        "イベント3日前にキャンセルした場合",
        "薬を飲んで2時間後に測る",
        "出発する3日前に連絡して",
        "令和6年前の契約",
        "수령일로부터 14일 후에는 환불이 안 돼요",
        "구매 7일 후에 들어와요",
        "약을 먹고 이틀 후에 나았어요",
        "결제 3일 전까지 취소 가능",
        "Zwrot w ciągu 14 dni od otrzymania",
        "Hoàn tiền sau 14 ngày kể từ khi nhận",
        "रसीद के 14 दिन बाद",
        "بعد 14 يوما من الاستلام",
    ],
)
def test_a_count_from_another_event_or_in_working_days_has_no_date(said: str) -> None:
    assert relative_dates(said) == []


@pytest.mark.parametrize(
    ("said", "dated"),
    [
        ("We open in two weeks from now", ["in two weeks from now"]),
        ("We leave in two weeks, after the holidays", ["in two weeks"]),
        ("Wir fliegen in drei Tagen nach Rom", ["in drei Tagen"]),
        ("Wir reisen in drei Tagen ab", ["in drei Tagen"]),
        ("On part dans deux jours pour Lyon", ["dans deux jours"]),
        ("Il y a deux jours dans le train", ["Il y a deux jours"]),
        ("Nos vamos en dos días a Roma", ["en dos días"]),
        ("Partiamo tra due giorni per Roma", ["tra due giorni"]),
        ("Viajo em dois dias para Roma", ["em dois dias"]),
        ("We vliegen over twee weken naar Rome", ["over twee weken"]),
        ("Через два дня с мамой поедем на дачу", ["Через два дня"]),
        ("İki gün sonra Roma'ya gidiyoruz", ["İki gün sonra"]),
        ("他们公司三天后搬家", ["三天后"]),
        ("そして3日後に会う", ["3日後"]),
        ("たった2日前に買った", ["2日前"]),
        ("그리고 3일 후에 출발해요", ["3일 후"]),
    ],
)
def test_a_count_from_now_has_a_date_beside_all_kinds_of_words(said: str, dated: list[str]) -> None:
    assert relative_dates(said) == dated


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("Hace 3 días que espero", "Hace 3 días (2026-11-02 - 2026-11-05) que espero"),
        ("Faz três dias que espero", "Faz três dias (2026-11-02 - 2026-11-05) que espero"),
        ("Il y a trois ans que j'attends", "Il y a trois ans (2023-2026) que j'attends"),
    ],
)
def test_the_time_since_something_began_stays_before_its_clause(said: str, written: str) -> None:
    assert resolve_dates(said, THURSDAY) == written


@pytest.mark.parametrize(
    "said",
    [
        "我问下周敏再说",
        "麻烦帮我找下周杰伦的歌",
        "联系下周总监",
        "提醒下周丽交材料",
        "你去查下周立波的资料",
        "我想叫上周明一起去",
        "我和上周老师约了",
        "我遇上周老师了",
        "跟上周教练学游泳",
        "问下周三的课",
        "剩下周一没排",
        "跟上周一样",
        "下周一起吃饭",
        "下周三天都在出差",
        "楼下周大爷",
        "这周围没有停车场",
        "成本周转太慢",
        "日本周边产品很贵",
        "基本月薪是八千",
        "当今天下大乱",
        "如今年纪大了",
        "从今天气转凉",
        "他聪明天真",
        "清明天气很好",
        "小明天天迟到",
        "失去年轻时的梦",
    ],
)
def test_chinese_characters_of_two_other_words_are_no_date(said: str) -> None:
    assert relative_dates(said) == []


@pytest.mark.parametrize(
    ("said", "dated"),
    [
        ("他说下周去北京出差", ["下周"]),
        ("会议通知说下周停课", ["下周"]),
        ("问题下周解决", ["下周"]),
        ("提醒我下周二交表", ["下周二"]),
        ("约下周一见", ["下周一"]),
        ("推迟到下周再说", ["下周"]),
        ("快递下周到", ["下周"]),
        ("下周期末考试", ["下周"]),
        ("和上周比瘦了", ["上周"]),
        ("下周三天气好吗", ["下周三"]),
        ("老师上周布置了作业", ["上周"]),
        ("上周医生说没事", ["上周"]),
        ("上海上周下雪了", ["上周"]),
        ("我的车上周坏了", ["上周"]),
        ("本周我值班", ["本周"]),
        ("等今天下班再说", ["今天"]),
        ("问明天下午的安排", ["明天"]),
        ("明天天气怎么样", ["明天"]),
        ("截至今年十月", ["今年"]),
        ("今年年轻人少了", ["今年"]),
    ],
)
def test_chinese_dates_are_found_beside_all_kinds_of_words(said: str, dated: list[str]) -> None:
    assert relative_dates(said) == dated


@pytest.mark.parametrize(
    "said",
    [
        "将来年金がもらえるか心配",
        "手術以来週に一度通っています",
        "入社以来月に二回出張",
        "説明日程を教えて",
        "連絡先週末に確認",
        "日本日帰りの旅行",
        "昨今日本は暑い",
        "過去年間の平均",
        "今日本にいます",
        "明日菜さんと会う",
        "働きのうちに入らない",
        "べんきょうが好き",
        "とうきょうに住んでいる",
        "きょうだいは三人",
    ],
)
def test_japanese_characters_of_two_other_words_are_no_date(said: str) -> None:
    assert relative_dates(said) == []


@pytest.mark.parametrize(
    ("said", "dated"),
    [
        ("俺明日休み", ["明日"]),
        ("母は先週退院した", ["先週"]),
        ("弟が来年卒業する", ["来年"]),
        ("スマホ今日買った", ["今日"]),
        ("今日本屋に行った", ["今日"]),
        ("明日美容院に行く", ["明日"]),
        ("昨日今日と雨だ", ["昨日", "今日"]),
        ("再来週の月曜", ["再来週の月曜"]),
        ("一昨年結婚した", ["一昨年"]),
        ("でもきのうは行った", ["きのう"]),
        ("きょう病院に行った", ["きょう"]),
        ("あした会おう", ["あした"]),
    ],
)
def test_japanese_dates_are_found_beside_all_kinds_of_words(said: str, dated: list[str]) -> None:
    assert relative_dates(said) == dated


@pytest.mark.parametrize("said", ["今年度の予算です", "来年度から課長です", "今年度预算"])
def test_a_fiscal_year_is_not_the_calendar_year(said: str) -> None:
    assert relative_dates(said) == []


@pytest.mark.parametrize(
    "said",
    [
        "We met last week",
        "I leave next week on Friday",
        "La semaine dernière il a plu",
        "上周我搬家了",
        "下周五开会",
        "来週の金曜日に会う",
        "지난주에 갔다",
    ],
)
def test_a_week_counted_on_a_sunday_may_begin_or_end_then_and_stays(said: str) -> None:
    assert relative_dates(said, SUNDAY) == []
    assert relative_dates(said, THURSDAY) != []


@pytest.mark.parametrize(
    ("said", "dated"),
    [
        ("Nächste Woche fliege ich", ["Nächste Woche"]),
        ("Het was vrijdag vorige week", ["vrijdag vorige week"]),
        ("Ci vediamo la settimana prossima", ["settimana prossima"]),
        ("На прошлой неделе было холодно", ["На прошлой неделе"]),
        ("Geçen hafta taşındık", ["Geçen hafta"]),
    ],
)
def test_a_sunday_ends_a_week_where_all_weeks_begin_on_monday(said: str, dated: list[str]) -> None:
    assert relative_dates(said, SUNDAY) == dated


@pytest.mark.parametrize(
    "said",
    [
        "The house was built in two weeks",
        "I learned the song in three days",
        "She hasn't called back in a week",
        "We bought and sold it, and it was done in two days",
        "Wir haben das Haus in zwei Wochen gebaut",
        "Das Buch wurde in drei Tagen gelesen",
        "Ha leído el libro en dos días",
        "Aprendió la canción en tres días",
    ],
)
def test_the_time_that_something_took_is_not_counted_ahead(said: str) -> None:
    assert relative_dates(said) == []


@pytest.mark.parametrize(
    ("said", "dated"),
    [
        ("I was told the exam is in two weeks", ["in two weeks"]),
        ("I need it in two weeks", ["in two weeks"]),
        ("We finished it yesterday and leave in two weeks", ["yesterday", "in two weeks"]),
        ("We moved in two weeks ago", ["two weeks ago"]),
        ("Wir haben in zwei Wochen Prüfung", ["in zwei Wochen"]),
        ("Viajo a Roma en dos semanas", ["en dos semanas"]),
    ],
)
def test_what_is_ahead_is_dated_beside_words_of_the_past(said: str, dated: list[str]) -> None:
    assert relative_dates(said) == dated


@pytest.mark.parametrize(
    "said",
    [
        'My favourite song is "Yesterday".',
        "We watched 'Tomorrow Never Dies' with the children.",
        "She asked “are you coming tomorrow?” and left.",
        "Er sagte „ich komme morgen“ und kam nie.",
        "La canción «Ayer» es triste.",
        "「明日への手紙」を聞いた",
        "我喜欢《昨天》这首歌",
        "Our band is called The Day After Tomorrow.",
        "I read the book Last Summer every year.",
    ],
)
def test_a_quotation_or_a_name_has_no_relative_date(said: str) -> None:
    assert relative_dates(said) == []


@pytest.mark.parametrize(
    ("said", "dated"),
    [
        ("SEE YOU TOMORROW", ["TOMORROW"]),
        ("Good. Tomorrow I fly.", ["Tomorrow"]),
        ("To do:\nTomorrow: call the plumber", ["Tomorrow"]),
        ("They left Friday last week.", ["Friday last week"]),
        ("I can't tomorrow, it's the girls' party", ["tomorrow"]),
        ("Wir fliegen Nächste Woche.", ["Nächste Woche"]),
        ('It is "urgent", so call them tomorrow.', ["tomorrow"]),
    ],
)
def test_a_date_beside_a_quotation_or_at_the_start_of_a_sentence_is_read(
    said: str, dated: list[str]
) -> None:
    assert relative_dates(said) == dated
