import pytest

from remanence.notes.literals import LossReport, find_literals


def _lost(sources: list[str], note_text: str, *, limit: int = 50) -> tuple[str, ...]:
    report = LossReport(note_text)
    for text in sources:
        report.add(text)
    return tuple(literal.text for literal in report.missing()[:limit])


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("see https://example.org/a?b=1.", "https://example.org/a?b=1", "url"),
        ("open src/app/page.tsx now", "src/app/page.tsx", "path"),
        ("it is in /etc/hosts today", "/etc/hosts", "path"),
        ("user mia_li_3668 called", "mia_li_3668", "id"),
        ("ask ana@example.org", "ana@example.org", "id"),
        ("发到ana@example.org吧", "ana@example.org", "id"),
        ("ana@example.org로 보내 주세요", "ana@example.org", "id"),
        ("look at www.example.org.", "www.example.org", "url"),
        ("请看example.org/pay?n=1吧", "example.org/pay?n=1", "url"),
        ("commit 4f2a9c1e broke it", "4f2a9c1e", "id"),
        ("due on 2026-05-08.", "2026-05-08", "date"),
        ("出发 5月3日 早上", "5月3日", "date"),
        ("회의는 5월 3일", "5월 3일", "date"),
        ("meet at 10:30 am", "10:30 am", "date"),
        ("it opens at 5:30pm.", "5:30pm", "date"),
        ("it opens at 5:30 p.m. sharp", "5:30 p.m.", "date"),
        ("razem 16 660 zł za okna", "16 660", "number"),
        ("il reste 1\u202f250\u202f300,50 € à payer", "1\u202f250\u202f300,50 €", "number"),
        ("it costs 1,250.50 today", "1,250.50", "number"),
        ("up by 12.5% again", "12.5%", "number"),
        ("kept at –23 °C there", "–23 °C", "number"),
        ("a tube of 9'' here", "9''", "number"),
        ("a tube of 9″ here", "9″", "number"),
        ("call getUser() first", "getUser()", "code"),
        ("rename user_id there", "user_id", "code"),
        ("run `npm ci` here", "npm ci", "code"),
        ("she read \u201cMomo\u201d twice", "Momo", "quote"),
        ("我爱《红楼梦》", "红楼梦", "quote"),
        ("we went to New York then", "New York", "name"),
        ("see Ticket QF-7781 now", "QF-7781", "id"),
        ("the Code Q7TN4W is yours", "Q7TN4W", "id"),
        ("it stands in /etc/sync/sync.toml.", "/etc/sync/sync.toml", "path"),
    ],
)
def test_a_literal_is_found_with_its_kind(text: str, value: str, kind: str) -> None:
    assert (value, kind) in [(literal.text, literal.kind) for literal in find_literals(text)]


@pytest.mark.parametrize("text", ["at 5.km/h and/or e.g./i.e.", "with socket.io", "Vue.ai/or not"])
def test_not_each_slash_or_dot_makes_a_url(text: str) -> None:
    assert "url" not in [literal.kind for literal in find_literals(text)]


def test_the_first_word_of_a_sentence_is_no_name() -> None:
    assert find_literals("Yesterday was fine. Everything works.") == ()


def test_literals_that_a_note_holds_are_not_lost() -> None:
    source = "Order W-20931 costs 1,250 euros, asked Nadia."
    assert _lost([source], "order w-20931: 1250 euros, Nadia") == ()


def test_a_number_inside_another_number_counts_as_lost() -> None:
    assert _lost(["it is 12 now"], "it was 312") == ("12",)


def test_lost_literals_come_once_and_ids_before_names() -> None:
    sources = ["we met Paula and Paula", "the ticket is AB-77, says Paula"]
    assert _lost(sources, "") == ("AB-77", "Paula")


def test_no_more_lost_literals_are_listed_than_asked_for() -> None:
    assert len(_lost([" ".join(str(n) for n in range(100, 200))], "", limit=7)) == 7


@pytest.mark.parametrize(
    ("source", "note"),
    [
        ("the sofa was £1,286 in all", "sofa 1,286 pounds"),
        ("razem 16 660 zł", "okna 16660 zł"),
        ("razem 16 660 zł", "okna 16 660 zł"),
        ("in 2026 we had 100 guests", "100 guests, 2026"),
    ],
)
def test_an_amount_is_the_same_in_another_form(source: str, note: str) -> None:
    assert _lost([source], note) == ()


def test_numbers_beside_each_other_are_two() -> None:
    assert _lost(["call 020 7946 today"], "020, then 79") == ("7946",)
    assert _lost(["of 100 we sold 12"], "in 2026 100 of us sold 12") == ()


def test_a_german_noun_is_no_lost_name_but_a_full_name_is() -> None:
    source = (
        "Ich habe mit Frau Ute Brandt über die Miete und den Keller gesprochen, es sind 12 Stufen."
    )
    assert _lost([source], "") == ("12", "Frau Ute Brandt")


def test_full_width_digits_are_the_same_number() -> None:
    assert _lost(["価格は１２３円"], "価格 123円") == ()


def test_a_number_without_its_minus_is_lost_whatever_the_minus_looks_like() -> None:
    assert _lost(["kept at –23 °C there"], "kept at 23 °C") == ("–23 °C",)
    assert _lost(["kept at –23 °C there"], "kept at -23 °C") == ()
    assert _lost(["rooms 10–12 are free"], "rooms 10–12") == ()


def test_a_very_long_text_is_scanned_at_its_ends() -> None:
    text = "first-1 " + "x " * 300_000 + "last-2"
    assert [literal.text for literal in find_literals(text)] == ["first-1", "last-2"]


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ("potkali jsme Šimona v Ústí", ["Šimona", "Ústí"]),
        ("wczoraj była tu Łucja ze Żnina", ["Łucja", "Żnina"]),
        ("вчера приехал Фёдор из Ялты", ["Фёдор", "Ялты"]),
        ("είδα τον Άρη στη Λάρισα", ["Άρη", "Λάρισα"]),
        ("dün İzmir tarafına gittik", ["İzmir"]),
    ],
)
def test_names_begin_with_the_capital_letters_of_any_script(said: str, names: list[str]) -> None:
    assert [literal.text for literal in find_literals(said)] == names


@pytest.mark.parametrize(
    ("said", "names"),
    [("Heidelberg", ["Heidelberg"]), ("Jansen.", ["Jansen"]), ("Yes.", []), ("Danke!", [])],
)
def test_a_word_that_is_all_of_an_answer_is_a_name_unless_it_is_a_small_one(
    said: str, names: list[str]
) -> None:
    assert [literal.text for literal in find_literals(said)] == names
