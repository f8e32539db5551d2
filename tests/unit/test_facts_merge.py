"""What repeats a known fact, and what takes its place."""

import dataclasses
from datetime import timedelta

import pytest

from remanence.clock import SystemClock
from remanence.facts import merge_facts
from remanence.facts.merge import needs_past
from remanence.facts.relations import is_stated_in
from remanence.testing import FixedClock
from remanence.types import ConversationRef, Fact, FactChanges, FactDraft, Owner

ANA = Owner("default", "ana")
SOURCE = ConversationRef("default", "a")


def changes(
    *summaries: "str | FactDraft",
    known: tuple[Fact, ...] = (),
    source: ConversationRef | None = None,
) -> FactChanges:
    drafts = [
        FactDraft(summary=s, first_seq=1, last_seq=1) if isinstance(s, str) else s
        for s in summaries
    ]
    clock = FixedClock(prefix="new")
    clock.advance(3_600)
    return merge_facts(drafts, known, owner=ANA, source=source, made_by="extractive/4", clock=clock)


def known(*summaries: str) -> tuple[Fact, ...]:
    now = FixedClock().now() - timedelta(days=9)
    return tuple(
        Fact(
            id=f"k{number}",
            tenant=ANA.tenant,
            user=ANA.user,
            summary=summary,
            type="knowledge",
            created_at=now,
            valid_from=now,
        )
        for number, summary in enumerate(summaries)
    )


def test_the_ids_of_facts_sort_as_they_were_said() -> None:
    drafts = [FactDraft(summary=f"keeps bee {n}") for n in range(9)]

    new = merge_facts(
        drafts, (), owner=ANA, source=None, made_by="extractive/4", clock=SystemClock()
    ).facts

    assert [fact.summary for fact in sorted(new, key=lambda fact: fact.id)] == [
        draft.summary for draft in drafts
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Ana keeps bees", "ana keeps  bees"),
        ("live in Lisbon", "I live in Lisbon"),
        ("daughter Mia was born on 2019-03-04", "my daughter Mia was born on 2019-03-04"),
        ("나는 서울에 살고 있어요", "나는 서울에 살고 있어요"),
        ("我住在北京", "我住在北京"),
        ("It is what it is.", "it is what it is."),
        (
            "Me da vergüenza hablar en público",
            "Como te digo, hablar en público me da mucha vergüenza",
        ),
    ],
)
def test_what_says_the_same_is_kept_as_a_repetition(old: str, new: str) -> None:
    made = changes(new, known=known(old))

    assert (made.facts, made.replaced, made.newest) == ((), {}, "k0")
    assert [(said.repeats, said.fact.summary) for said in made.repetitions] == [
        ("k0", " ".join(new.split()))
    ]


def test_what_is_said_twice_at_once_is_a_repetition_of_the_new_fact() -> None:
    drafts = [FactDraft(summary="I keep bees", first_seq=seq, last_seq=seq) for seq in (1, 2)]

    made = changes(*drafts)

    (fact,) = made.facts
    assert [(said.repeats, said.fact.first_seq) for said in made.repetitions] == [(fact.id, 2)]


def test_an_empty_draft_changes_nothing() -> None:
    assert changes(" ") == FactChanges()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I eat meat.", "I do not eat meat."),
        ("Ana is not allergic to peanuts", "Ana is allergic to peanuts"),
        ("Ich esse Fleisch.", "Ich esse kein Fleisch."),
        ("Dad is allergic to penicillin.", "Dad is not allergic to penicillin."),
        ("I should take aspirin in the morning", "I should never take aspirin in the morning"),
    ],
)
def test_what_denies_a_fact_takes_its_place(old: str, new: str) -> None:
    merged = changes(new, known=known(old))

    assert [fact.summary for fact in merged.facts] == [new]
    assert set(merged.replaced) == {"k0"}


@pytest.mark.parametrize(("seq", "replaces"), [(1, True), (2, False)])
def test_words_that_quote_a_statement_of_their_message_take_its_place(
    seq: int, replaces: bool
) -> None:
    (held,) = known("The recital is on 9 March.")
    held = dataclasses.replace(held, conversation="a", first_seq=1)
    draft = FactDraft(summary="“The recital is on 9 March.” – the 16th after all", first_seq=seq)

    assert bool(changes(draft, known=(held,), source=SOURCE).replaced) is replaces


@pytest.mark.parametrize(("speaker", "replaces"), [("bo", True), ("ana", False)])
def test_only_its_speaker_ends_a_statement_by_words_that_quote_it(
    speaker: str, replaces: bool
) -> None:
    (held,) = known("bo: The recital is on 9 March.")
    held = dataclasses.replace(held, tags=("speaker:bo",), conversation="a", first_seq=1)
    summary = f"{speaker}: “The recital is on 9 March.” – the 16th after all"
    draft = FactDraft(summary=summary, tags=(f"speaker:{speaker}",), first_seq=1, last_seq=2)

    assert bool(changes(draft, known=(held,), source=SOURCE).replaced) is replaces


@pytest.mark.parametrize(
    "new",
    [
        "The dentist appointment was moved to 5 March at 11:00.",
        "The team moved to Slack.",
        "My sister moved to Madrid.",
        "Die Firma wohnt in einem Altbau.",
    ],
)
def test_what_somebody_or_something_else_moved_to_is_no_home_of_the_user(new: str) -> None:
    assert not changes(new, known=known("I live in Porto.", "Ich wohne in Kiel.")).replaced


@pytest.mark.parametrize(
    ("old", "new", "is_of_user"),
    [
        ("我住在北京", "我姐姐住在上海", False),
        ("我住在北京", "我妈搬到了广州", False),
        ("我住在北京", "公司搬到了上海", False),
        ("我住在北京", "我和姐姐住在上海", True),
        ("我住在北京", "我上周从北京搬到了成都", True),
        ("大阪に住んでいます", "姉は東京に住んでいます", False),
        ("大阪に住んでいます", "息子は今、名古屋に住んでいます", False),
        ("大阪に住んでいます", "会社が京都に引っ越しました", False),
        ("大阪に住んでいます", "今は東京に住んでいます", True),
        ("大阪に住んでいます", "実家は大阪ですが、私は先月京都に引っ越しました", True),
    ],
)
def test_a_home_in_a_script_without_spaces_is_of_whoever_is_named_before_it(
    old: str, new: str, is_of_user: bool
) -> None:
    assert bool(changes(new, known=known(old)).replaced) is is_of_user


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I work at SAP.", "My wife works at Siemens."),
        ("I work at a bakery.", "Lena works at a clinic."),
        ("My phone number is 555-0199.", "My mother's phone number is 555-0777."),
        ("My email is ana@x.example", "The email of my brother is tom@y.example"),
        ("My name is Ana.", "Our new colleague's name is Priya."),
        ("I prefer aisle seats.", "My brother prefers window seats."),
        ("I live in Lisbon.", "Tom moved to Paris."),
        ("Ana's phone is 555-0199", "Eva's phone is 555-0777"),
        ("Meine Telefonnummer ist 0221-5.", "Die Telefonnummer meiner Mutter ist 0221-7."),
        ("Je travaille chez Renault.", "Ma femme travaille chez Michelin."),
        ("Mi cumpleaños es el 3 de mayo.", "El cumpleaños de mi hermano es el 9 de junio."),
        ("Il mio compleanno è il 3 maggio.", "Il compleanno di mia sorella è il 9 giugno."),
        ("Мой день рождения 3 мая.", "День рождения моей мамы 9 июня."),
    ],
)
def test_values_of_two_people_do_not_replace_each_other(old: str, new: str) -> None:
    assert not changes(new, known=known(old)).replaced
    assert not changes(old, known=known(new)).replaced


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("My phone number is 555-0199.", "My new phone number is 555-0777."),
        ("My landlord's address is Mill Lane 4.", "My landlord's address is Harbour Street 9."),
        ("My sister Eva lives in Rome.", "Eva moved to Oslo."),
        ("Mi cumpleaños es en mayo.", "Mi cumpleaños es en junio."),
    ],
)
def test_another_value_of_the_same_person_replaces_the_earlier(old: str, new: str) -> None:
    assert set(changes(new, known=known(old)).replaced) == {"k0"}


@pytest.mark.parametrize(
    ("denial", "is_ended"),
    [
        ("I no longer live in Rome.", False),
        ("My home: I don't want to live in Rome.", False),
        ("Ya no vivo en Roma.", False),
        ("I no longer live in Lisbon.", True),
        ("No, I live in Rome.", True),
        ("I live in Rome, not far from Ostia.", True),
    ],
)
def test_a_home_that_is_denied_ends_no_other_one(denial: str, is_ended: bool) -> None:
    held = known("I moved: I live in Lisbon now.")

    assert bool(changes(denial, known=held).replaced) is is_ended


@pytest.mark.parametrize(
    "new", ["Last year I moved to Graz.", "Ana moved to Graz", "Ich wohne in Graz", "已经搬到 Graz"]
)
def test_a_move_of_the_user_ends_the_old_home(new: str) -> None:
    assert changes(new, known=known("I live in Porto.")).replaced


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I live in Turku and I'm allergic to wasps.", "I moved to Vaasa last month."),
        ("I live in Turku with my sister Aino, who has asthma.", "I now live in Vaasa."),
        ("Ich wohne in Bregenz und habe Zöliakie.", "Ich wohne jetzt in Dornbirn."),
        ("Je vis à Arras, je suis sourde et j'ai deux fils.", "Je vis à Douai maintenant."),
        ("Vivo en Toledo y mi hija tiene asma.", "Ahora vivo en Cuenca."),
        ("Я живу в Пскове, у меня астма и двое сыновей.", "Теперь я живу в Твери."),
        ("私は津に住んでいて、そばアレルギーがあります。", "先月、奈良に引っ越しました。"),
        ("我住在保定，有哮喘，还有一个儿子。", "我搬到了唐山。"),
        ("I live in Bonn (asthma since 2015, two sons Max and Leo).", "I live in Oslo."),
    ],
)
def test_a_move_leaves_a_fact_that_says_more_than_the_home(old: str, new: str) -> None:
    assert not changes(new, known=known(old)).replaced


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I'm vegan and the rent is 500 a month.", "the rent went up from 500 to 650 a month"),
        ("Sono celiaca e l'affitto è di 500 euro.", "L'affitto è passato da 500 a 650 euro."),
    ],
)
def test_another_value_leaves_a_fact_that_is_worth_knowing_in_another_clause(
    old: str, new: str
) -> None:
    assert changes(new, known=known(old)).replaced == {}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I live in Porto.", "I'm moving to Rome in March"),
        ("I live in Porto.", "I want to move to Lisbon some day"),
        ("大阪に住んでいます", "3月に東京に引っ越します"),
    ],
)
def test_a_plan_to_move_leaves_the_home(old: str, new: str) -> None:
    assert not changes(new, known=known(old)).replaced


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I live in Porto.", "I live in a house with a garden"),
        ("I live in Porto.", "We moved to a weekly release cycle"),
        ("Vivo en Madrid.", "Vivo en un piso compartido"),
        ("Ich wohne in Bochum.", "Ich wohne in einer WG"),
        ("Ich wohne in Bochum.", "Wir wohnen in einem Haus mit Garten"),
        ("J'habite à Nantes.", "J'habite au troisième étage"),
    ],
)
def test_a_home_that_names_no_place_ends_none(old: str, new: str) -> None:
    assert not changes(new, known=known(old)).replaced


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I live in Porto.", "I live in Porto with my brother Rui and two cats."),
        ("I live in Porto with my brother Rui and two cats.", "I live in Porto."),
    ],
)
def test_more_or_fewer_words_of_one_home_are_no_move(old: str, new: str) -> None:
    assert not changes(new, known=known(old)).replaced


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I've been living in a flat in Turku since 2018.", "I moved to Vaasa last month."),
        ("I live in Turku and I have asthma.", "I live in Vaasa and I have asthma."),
        (
            "I moved to Turku last month (December 2024), so I live in Turku now.",
            "I moved to Vaasa last month (February 2025), so I live in Vaasa now.",
        ),
    ],
)
def test_a_move_ends_a_home_alone_and_one_whose_rest_is_said_again(old: str, new: str) -> None:
    assert changes(new, known=known(old)).replaced


def test_a_change_of_one_thing_leaves_a_fact_that_says_another_besides() -> None:
    held = known("I'm vegetarian and my two kids are called Mia and Leo.")

    assert not changes("I'm not vegetarian anymore, I eat meat again.", known=held).replaced


def test_names_in_another_order_say_something_else() -> None:
    merged = changes("Bob lent Ana money", known=known("Ana lent Bob money"))

    assert [fact.summary for fact in merged.facts] == ["Bob lent Ana money"]
    assert not merged.replaced


def test_a_fact_in_other_words_takes_the_place_of_the_one_that_it_names() -> None:
    draft = FactDraft(summary="my daughter Mia is nine", replaces="k0")
    merged = changes(draft, known=known("daughter Mia is nine"))

    assert merged.replaced == {"k0": merged.facts[0].id}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("live in Lisbon", "live in Porto"),
        ("live in Lisbon", "moved to Porto"),
        ("wohne in Berlin", "wohne in Hamburg"),
        ("vivo en Madrid", "vivo en Sevilla"),
        ("I now live in Lisbon", "I live in Porto now"),
    ],
)
def test_another_home_of_the_same_person_takes_its_place(old: str, new: str) -> None:
    made = changes(new, known=known(old))

    assert made.replaced == {"k0": made.facts[0].id}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("live in Lisbon", "visited Porto"),
        ("prefer window seats", "prefer vegetarian food"),
        ("favorite color blue", "favorite band Calexico"),
        ("keep bees in garden 3", "keep bees in garden 4"),
        ("cat named Pixel", "dog chases cars"),
        ("ran 5 km", "ran 10 km"),
        ("allergic to peanuts", "allergic to cats"),
    ],
)
def test_what_can_both_hold_stands_side_by_side(old: str, new: str) -> None:
    made = changes(new, known=known(old))

    assert len(made.facts) == 1
    assert made.replaced == {}


@pytest.mark.parametrize(
    ("speaker", "replaces"),
    [("Jo\u00ebl", True), ("joe\u0308l", True), ("Mara", False), ("", False)],
)
def test_a_value_is_replaced_by_another_of_the_same_speaker(speaker: str, replaces: bool) -> None:
    (held,) = known("Jo\u00ebl: live in Lisbon")
    held = dataclasses.replace(held, tags=("speaker:Jo\u00ebl",))
    tags = (f"speaker:{speaker}",) if speaker else ()
    draft = FactDraft(summary=f"{speaker}: live in Porto".removeprefix(": "), tags=tags)

    assert bool(changes(draft, known=(held,)).replaced) is replaces


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Budget: 90,000 at most.", "We raised the budget to 98,000."),
        ("Editor: Vim.", "I gave up Vim, the editor is Emacs now."),
        ("I live in Lisbon.", "Good news: I live in Porto."),
    ],
)
def test_words_before_a_colon_are_no_speaker(old: str, new: str) -> None:
    assert changes(new, known=known(old)).replaced


def test_of_two_values_in_one_conversation_the_later_one_replaces_the_earlier() -> None:
    made = changes("live in Lisbon", "live in Porto", known=known("live in Rome"))

    assert [fact.summary for fact in made.facts] == ["live in Lisbon", "live in Porto"]
    lisbon, porto = (fact.id for fact in made.facts)
    assert made.replaced == {"k0": lisbon, lisbon: porto}


def test_an_older_statement_does_not_replace_a_newer_one() -> None:
    (held,) = known("live in Lisbon")
    older = FactDraft(summary="live in Rome", valid_from=held.valid_from - timedelta(days=1))

    made = changes(older, known=(held,))

    (rome,) = made.facts
    assert made.replaced == {}
    assert (rome.valid_to, rome.superseded_by) == (held.valid_from, held.id)


@pytest.mark.parametrize(("days", "is_current"), [(-9, False), (3, False), (5, True), (6, True)])
def test_an_outdated_value_is_current_again_only_if_it_was_said_after_its_end(
    days: int, is_current: bool
) -> None:
    siemens, zeiss = known("I work at Siemens.", "Ana works at Zeiss")
    end = siemens.valid_from + timedelta(days=5)
    siemens = dataclasses.replace(siemens, valid_to=end, superseded_by=zeiss.id)
    zeiss = dataclasses.replace(zeiss, valid_from=end, made_by="saved")
    at = siemens.valid_from + timedelta(days=days)

    made = merge_facts(
        [FactDraft(summary="I work at Siemens.", valid_from=at)],
        [zeiss],
        owner=ANA,
        source=SOURCE,
        made_by="extractive/4",
        clock=FixedClock(),
        past=[zeiss, siemens],
    )

    assert bool(made.facts) is is_current
    assert [said.repeats for said in made.repetitions] == ([] if is_current else [siemens.id])


def test_a_value_that_is_outdated_within_one_batch_is_not_current_again() -> None:
    (held,) = known("I work at Siemens.")
    day = timedelta(days=1)

    made = changes(
        FactDraft(summary="Ana works at Zeiss", valid_from=held.valid_from + day, replaces=held.id),
        FactDraft(summary="I work at Siemens.", valid_from=held.valid_from - day),
        known=(held,),
    )

    assert [fact.summary for fact in made.facts] == ["Ana works at Zeiss"]
    assert [said.repeats for said in made.repetitions] == [held.id]


@pytest.mark.parametrize(
    ("old", "new", "replaces"),
    [
        (("slot:home",), ("slot:home",), True),
        (("slot:home",), (), False),
        ((), ("slot:home",), False),
    ],
)
def test_the_later_of_two_facts_about_the_home_replaces_the_earlier(
    old: tuple[str, ...], new: tuple[str, ...], replaces: bool
) -> None:
    (held,) = known("Wohnhaft seit langem irgendwo")
    draft = FactDraft(summary="something else entirely", tags=new)

    made = changes(draft, known=(dataclasses.replace(held, tags=old),))

    assert bool(made.replaced) is replaces


def test_an_older_fact_of_a_slot_is_one_of_the_past() -> None:
    (held,) = known("Vivo en Porto")
    home = dataclasses.replace(held, tags=("slot:home",))
    older = FactDraft(
        summary="Lisboa es mi ciudad",
        tags=("slot:home",),
        valid_from=held.valid_from - timedelta(days=300),
    )

    assert [fact.superseded_by for fact in changes(older, known=(home,)).facts] == [home.id]


def test_the_past_is_read_only_for_what_was_said_before_now() -> None:
    now, day = FixedClock().now(), timedelta(days=1)
    drafts = [FactDraft(summary="I keep bees"), FactDraft(summary="I ski", valid_from=now - day)]

    assert needs_past(drafts, now=now)
    assert not needs_past(drafts[:1], now=now)
    assert not needs_past(drafts, now=now - day)


@pytest.mark.parametrize(
    ("fact", "note", "expected"),
    [
        ("I want answers of three lines.", "user: I want answers of three lines, always", True),
        ("I take 100 mg of losartan.", "I take 50 mg of losartan", False),
        ("I no longer eat meat.", "I eat meat", False),
        ("I keep bees.", "I keep geese", False),
        ("So do I.", "The ferry was late", True),
    ],
)
def test_a_note_has_a_fact_with_its_words_numbers_and_denial(
    fact: str, note: str, expected: bool
) -> None:
    (held,) = known(fact)

    assert is_stated_in(held, note) is expected


@pytest.mark.parametrize(
    ("old", "new", "replaces"),
    [
        (
            "Der Elternabend ist am 21. November.",
            "Der Elternabend ist jetzt am 28. November.",
            True,
        ),
        ("I keep kosher", "I no longer keep kosher", True),
        ("my boat leaves at 17:05", "my sister's bus leaves at 18:20 now", False),
        ("I play the viola at the Arts Club", "My brother left the Arts Club", False),
        ("I teach at Marsh School", "my niece teaches at Marsh School now", False),
        ("lease 4410 ends in June", "lease 4401 ends in June", False),
        ("I drink coffee.", "I don't drink alcohol anymore.", False),
        ("Ich nehme Ibuprofen.", "Ich nehme kein Aspirin mehr.", False),
        ("My daughter plays the cello.", "My daughter no longer plays hockey.", False),
        ("Room 12 is for guests.", "Room 14 is for guests.", False),
        ("Ich mache den Markt trotzdem, 16. Mai", "Ok, dann nehme ich trotzdem 14 Kisten", False),
        ("The rent is due on my sister's account", "The rent of my studio is due later", False),
        ("We have two cats.", "We don't have a garden, just a balcony.", False),
        ("Nuestro perro se llama Toby.", "Nuestro perro no sube al sofá.", False),
        ("Ticket 311 is for Ana.", "Ticket 311 is not urgent.", False),
        ("My van's plate is HH-AB 123.", "My uncle's van's plate is HH-CD 456.", False),
        ("Die Lieferung ist am 12. Mai.", "Die Lieferung wurde abgesagt.", True),
        (
            "The recital is on 9 March.",
            "The recital is not on the 9th after all, they moved it to 16 March.",
            True,
        ),
        (
            "Biorę szarą kanapę.",
            "Jednak nie biorę szarej kanapy, tylko granatową.",
            True,
        ),
        ("Omas Arzttermin ist am 5.5.", "Oma hat den Arzttermin verschoben, auf den 12.5.", True),
        ("Rispondimi in inglese", "Invece dell'inglese, rispondimi in italiano", True),
        ("歯医者の予約は6月3日の10時です。", "歯医者の予約が6月10日に変わりました。", True),
        (
            "Die Heizung wird am 8. Oktober gewartet",
            "Der Monteur hat abgesagt, die Heizungswartung ist erst am 15.",
            True,
        ),
        (
            "Das WLAN-Passwort ist Sonnenblume77",
            "Neues Notebook, das Passwort zum Anmelden daran lautet jetzt Igel2024",
            False,
        ),
        ("In juni gaan we naar Texel.", "Texel gaat niet door.", True),
        ("The recital has moved to 16 March.", "The gym moved my class to 9 June instead.", False),
        ("The recital has moved to 16 March.", "The recital moved again, to 23 March.", True),
        (
            "La reunión se ha cambiado al 9 de junio.",
            "El dentista me ha cambiado la cita al 3 de mayo.",
            False,
        ),
        ("Szafka 105 jest moja", "Szafka 150 nie ma klucza", False),
        ("Emma's birthday is on 3 May.", "Emma's new teacher is Mrs Hall.", False),
        ("My sister's birthday is on 9 July.", "My sister's new job is in Leeds.", False),
        ("Emma's teacher is Mr Brown.", "Emma's new teacher is Mrs Hall.", True),
    ],
)
def test_a_statement_ends_what_it_says_otherwise_and_no_other_thing(
    old: str, new: str, replaces: bool
) -> None:
    assert bool(changes(new, known=known(old)).replaced) is replaces


def test_the_more_facts_there_are_the_surer_the_score_has_to_be() -> None:
    old, new = "Der Elternabend ist am 21. November.", "Der Elternabend ist jetzt am 28. November."
    others = [f"Das {number}. Buch gehört Lena" for number in range(1_000)]

    assert changes(new, known=known(old, *others[:10])).replaced
    assert not changes(new, known=known(old, *others)).replaced
    assert not changes(*others[:600], new, known=known(old)).replaced  # many, said at once


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Ich wohne in Berlin.", "“Ich wohne in Hamburg, und wo wohnst du?” – ganz woanders"),
        ("My favourite colour is green.", "“Is your favourite colour green?” – no, blue"),
        ("I'm vegetarian.", "“And now?” – I eat fish again these days, so not vegetarian anymore."),
        (
            "Tenho dermatologista no dia 8, às 15h.",
            "A clínica remarcou meu oftalmologista pro dia 22, às 10h.",
        ),
    ],
)
def test_words_that_say_little_alone_replace_no_fact_that_says_more(old: str, new: str) -> None:
    assert changes(new, known=known(old)).replaced == {}


@pytest.mark.parametrize(
    ("wish", "new", "ends"),
    [
        (
            "et pas de tableaux s'il te plaît, je lis sur mon téléphone",
            "nouveau téléphone depuis hier, 06 12 34 56 78",
            False,
        ),
        (
            "tylko bez emoji, czytam to na telefonie",
            "dobra lecę, aha telefon mam nowy 605 118 240",
            False,
        ),
        (
            "Please call me Kim, everyone at work does.",
            "Everyone at work calls me Kim now.",
            False,
        ),
        ("No emojis, please.", "I don't mind emojis any more.", True),
        ("Bitte immer ohne Tabellen.", "Tabellen stören mich nicht mehr.", True),
    ],
)
def test_a_statement_that_is_no_wish_ends_one_only_if_it_denies(
    wish: str, new: str, ends: bool
) -> None:
    (fact,) = known(wish)

    assert bool(changes(new, known=(dataclasses.replace(fact, tags=("wish",)),)).replaced) is ends


@pytest.mark.parametrize(("made_by", "ends"), [("extract/5 a-model", False), ("saved", True)])
def test_what_a_model_says_of_something_else_ends_no_wish(made_by: str, ends: bool) -> None:
    (fact,) = known("always quote prices in SEK")
    wish = dataclasses.replace(fact, tags=("wish",))
    new = FactDraft(summary="The shop quotes prices in EUR now")
    clock = FixedClock()

    merged = merge_facts([new], (wish,), owner=ANA, source=None, made_by=made_by, clock=clock)

    assert bool(merged.replaced) is ends


def test_another_wish_ends_a_wish() -> None:
    (fact,) = known("Always answer in bullet points.")
    new = FactDraft(summary="Answer in full sentences from now on.", tags=("wish",))

    assert changes(new, known=(dataclasses.replace(fact, tags=("wish",)),)).replaced


@pytest.mark.parametrize(
    ("wish", "new"),
    [
        ("Always write in Dutch.", "Write in English again."),
        ("Schreib immer auf Englisch.", "Schreib wieder auf Deutsch."),
        ("Escribe siempre en francés.", "Escribe otra vez en español."),
        ("Пиши всегда по-английски.", "Пиши снова по-русски."),
    ],
)
def test_what_asks_for_something_without_the_tag_of_wishes_ends_one(wish: str, new: str) -> None:
    (fact,) = known(wish)

    assert changes(new, known=(dataclasses.replace(fact, tags=("wish",)),)).replaced
