"""Scores of what a user says after a reply: that it gives an earlier statement another value."""

import re
from math import inf

import pytest
from hypothesis import given, strategies as st

from remanence.observers.learned.revisions import revision_features, score_of_revision


@pytest.mark.parametrize(
    ("said", "reply", "revises", "other"),
    [
        ("The class starts at 18:15.", "Enjoy it!", "sorry, 18:45", "yes, I will"),
        ("Ich zahle 40 Euro im Monat.", "Notiert.", "nicht 40, sondern 45", "dreimal die Woche"),
        ("La cena es el 12.", "El 12 está lleno, el 13 no.", "pues el 13", "qué pena"),
        ("会议在9点。", "记下了。", "不是9点，是10点", "谢谢"),
    ],
)
def test_another_value_scores_higher_than_other_words(
    said: str, reply: str, revises: str, other: str
) -> None:
    assert score_of_revision(said, reply, revises) > score_of_revision(said, reply, other)


def test_words_of_content_are_no_features() -> None:
    groups = revision_features("The quixot is at 9.", "Noted, quixot.", "the quixot is at 10")

    assert groups
    assert not [name for group in groups for name in group if "quixot" in name]


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_any_three_texts_have_a_score(said: str, reply: str, words: str) -> None:
    assert -inf <= score_of_revision(said, reply, words) < inf


@pytest.mark.parametrize("number", ["②", "²", "9" * 5_000])
def test_digits_that_are_no_whole_number_are_no_time_of_day(number: str) -> None:
    assert score_of_revision("My class starts at 18:15.", "Enjoy it!", number) == -inf


@pytest.mark.parametrize(
    ("said", "reply", "words"),
    [
        (
            "The deposit is due on 30 September.",
            "Chapter 6 by 31 July then.",
            "And the last thing.",
        ),
        ("Am 9. Mai hat Zosia Kommunion.", "Also am 16. Mai um 10.", "Hör mal, es gibt Neues."),
        ("8月9日から13日にしたいです。", "往路は8月10日ですね。", "次は宿ですね。"),
        ("We apply it on Tuesday.", "Aurora would not solve it.", "I agree, Aurora is out."),
    ],
)
def test_words_without_a_value_give_a_statement_no_other(said: str, reply: str, words: str) -> None:
    assert score_of_revision(said, reply, words) == -inf


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("My son is allergic to walnuts, he is 7.", "The dentist moved us to 4 May"),
        ("The budget is 9.500, my uncle pays the rest.", "The bus leaves at 16:40."),
        ("I switched to 16 mg of the new pills.", "Swam 2 km yesterday evening, cold as ice"),
        ("My rent runs until 30 June.", "The bakery pays 1450."),
        ("The contract runs 18 months.", "lunch at 12:45"),
        ("Der Kredit läuft über 12.000.", "Probe um 19:30"),
        ("Die Küche kommt am 8. April.", "Der neue Ofen braucht 60 Zentimeter"),
        ("El piso cuesta 900.", "Salimos a las 7:30"),
        ("J'ai 3 semaines de congé.", "Le chat pèse déjà quatre kilos et demi"),
        ("Syn ma 6 lat i uczulenie na mleko.", "Egzamin 21 czerwca"),
        ("Wanna 160 się zmieści.", "powrót 9 maja"),
        ("息子は7歳で、そばアレルギーです。", "健診は5月20日でした"),
        ("我女儿6岁，对花生过敏。", "考试5月20日"),
        ("Дочке 8 лет.", "собрание 19 мая"),
        ("Mio figlio ha 4 anni.", "il saggio è il 23 maggio"),
        ("Kızım 6 yaşında.", "Uçak 14:40'ta kalkıyor"),
    ],
)
def test_a_value_of_another_thing_revises_no_statement(said: str, words: str) -> None:
    assert score_of_revision(said, "OK.", words) == -inf


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("We moved to 12 Elm Road.", "my new number is 5125550148"),
        ("Die Kinder sind 7 und 9.", "falsch, 03055512098"),
        ("Vivo no 3 andar.", "desculpa, 912345687"),
        ("سكنت في عمارة 12", "رقمي الجديد 0791234560"),
        ("私は31歳です。", "すみません、08012345678でした"),
        ("J'habite au 14, rue des Lilas.", "non, 06 12 34 56 78"),
    ],
)
def test_a_number_of_many_more_digits_revises_no_statement(said: str, words: str) -> None:
    assert score_of_revision(said, "OK.", words) == -inf


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("The recital is on the 9th.", "sorry, the 16th"),
        ("My flight lands at 17:20.", "no, 18:05, they changed the gate and the carrier"),
        ("The picnic is on Saturday.", "Sunday, as it will rain"),
        ("Die Probe ist am 3. Juni.", "nein, am 10."),
        ("Der Zug fährt um 9.", "doch erst 9:45, wegen der neuen Baustelle bei Celle"),
        ("La cena es a las 21:00.", "mejor a las 21:30, que Luz sale tarde del trabajo"),
        ("El curso dura 6 semanas.", "son 8 semanas"),
        ("Le concert est le 12 mai.", "pardon, le 19"),
        ("Je cours 5 km le matin.", "plutôt 7 maintenant"),
        ("Wizyta jest 4 marca.", "jednak 11 marca"),
        ("会议在9点。", "不是9点，是10点"),
        ("発表は6月2日です。", "6月9日でした"),
        ("Экзамен 5 июня.", "нет, 12 июня"),
        ("Affitto a 700 euro.", "ora 750"),
        ("Toplantı 14:00'te.", "yok, 15:00"),
        ("De les begint om 10.", "toch 10:30"),
        ("The ticket costs 9 euros.", "no, 12.50"),
        ("Mój PIN to 5501.", "nie, 5510"),
        ("My landline is 020 79 46 01 18.", "no, 02079460119"),
        ("Meine Nummer ist 0301234567.", "falsch, 030 123 45 76"),
        ("Il budget è di 90 000 euro.", "scusa, 95000"),
        ("Наш кредит 3 миллиона.", "нет, 2750000"),
        ("Onze huur is 2k.", "nee, 2100"),
        ("El aforo es de 700.", "perdón, 700000"),
    ],
)
def test_a_value_of_the_same_kind_may_revise_a_statement(said: str, words: str) -> None:
    assert score_of_revision(said, "OK.", words) > -inf


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("The tenancy ends on 30 November.", "The interview is on 24 November."),
        ("The interview is on 24 November.", "My sister's wedding is on 12 December."),
        ("Der Zahnarzt ist am 9. Mai.", "Mein Zug geht am 3. Mai um 8:15."),
        ("meu último plantão é 31 de agosto", "a prova é dia 23 de maio"),
    ],
)
def test_a_statement_with_a_subject_of_its_own_revises_none(said: str, words: str) -> None:
    assert score_of_revision(said, "Noted.", words) == -inf


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("Meeting at 5: room Alpha.", "Meeting at 6: room Alpha."),
        ("Appointment 10 June: dentist.", "Appointment 12 June: dentist."),
        ("Zahnarzt am 10. Juni: 9 Uhr.", "Zahnarzt am 12. Juni: 9 Uhr."),
    ],
)
def test_another_time_before_a_colon_revises_the_statement(said: str, words: str) -> None:
    assert score_of_revision(said, "Noted.", words) > 0


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("Picture 1: my dog at the lake.", "Picture 4: my dog in the garden."),
        ("Tag 1: 5 km gelaufen.", "Tag 2: 6 km gelaufen."),
        ("第1天：我跑了5公里", "第2天：我跑了6公里"),
        ("Option A: 9 May in Rome.", "Option B: 16 May in Paris."),
    ],
)
def test_the_next_item_of_a_list_revises_none_before_it(said: str, words: str) -> None:
    assert score_of_revision(said, "Nice, thank you!", words) == -inf
    head = re.split("[:：]", said)[0]
    assert score_of_revision(said, "Nice, thank you!", f"{head}: 7") > -inf
