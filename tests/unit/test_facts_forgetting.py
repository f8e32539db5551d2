"""Requests to forget: they end the facts that they name, and no others."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from remanence.facts import ExtractiveFacts, merge_facts
from remanence.protocols import ExtractRequest
from remanence.testing import FixedClock
from remanence.types import ConversationRef, Fact, FactChanges, FactDraft, Message, Owner

TOLD_AT = datetime(2026, 5, 1, 10, 0, tzinfo=UTC)
ASKED_AT = TOLD_AT + timedelta(days=1)
ANA, CHAT = Owner("default", "ana"), ConversationRef("default", "chat")


def changes_by(
    drafts: tuple[FactDraft, ...], *known: Fact, past: tuple[Fact, ...] = ()
) -> FactChanges:
    name = ExtractiveFacts().name
    clock = FixedClock(ASKED_AT + timedelta(days=1), prefix=f"{len(known)}-")
    return merge_facts(drafts, known, owner=ANA, source=CHAT, made_by=name, clock=clock, past=past)


def told(*texts: str) -> tuple[Fact, ...]:
    return changes_by(tuple(FactDraft(summary=text, valid_from=TOLD_AT) for text in texts)).facts


def said(text: str, *, by: str | None = None, at: datetime = ASKED_AT) -> Message:
    if text.startswith("> "):
        return Message.assistant(text.removeprefix("> "), created_at=at)
    return Message.user(text, created_at=at, name=by)


async def extracted(*messages: Message) -> tuple[FactDraft, ...]:
    request = ExtractRequest(
        conversation=CHAT,
        user="ana",
        messages=tuple(one.replace(seq=seq, tokens=9) for seq, one in enumerate(messages, 1)),
        notes=(),
        known=(),
        now=ASKED_AT,
    )
    return await ExtractiveFacts().extract(request)


async def requested(*texts: str, speaker: str | None = None) -> tuple[FactDraft, ...]:
    return await extracted(*(said(text, by=speaker) for text in texts))


async def ended_by(text: str, *facts: str) -> list[str]:
    changes = changes_by(await requested(text), *told(*facts))
    assert not changes.facts
    return [fact.summary for fact in changes.ended]


@pytest.mark.parametrize(
    ("text", "fact", "other"),
    [
        ("Please forget that I have epilepsy.", "I have epilepsy.", "My aunt has epilepsy."),
        ("Delete my shoe size, please.", "My shoe size is 41.", "My glove size is 8."),
        ("Bitte vergiss, dass ich Raucher bin.", "Ich bin Raucher.", "Mein Vater ist Raucher."),
        ("Olvida que soy celíaca, por favor.", "Soy celíaca.", "Mi abuela es celíaca."),
        ("Oublie que je suis divorcé, s'il te plaît.", "Je suis divorcé.", "Je suis facteur."),
        ("Dimentica per favore che sono divorziata.", "Sono divorziata.", "Sono infermiera."),
        ("Zapomnij proszę, że mam padaczkę.", "Mam padaczkę.", "Mam psa."),
        ("Забудь, что у меня эпилепсия.", "У меня эпилепсия.", "У мамы эпилепсия."),
    ],
)
async def test_a_request_to_forget_ends_the_fact_that_it_names_and_becomes_none(
    text: str, fact: str, other: str
) -> None:
    assert await ended_by(text, fact, other) == [fact]


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("Yes, forget that I have asthma.", "I have asthma."),
        ("Yes – forget that I have asthma.", "I have asthma."),
        ("No, no, forget that I have asthma.", "I have asthma."),
        ("Yes, thanks, forget that I have asthma.", "I have asthma."),
        ("Gut, vergiss, dass mein Bruder Schulden hat.", "Mein Bruder hat Schulden."),
        ("D'accord, oublie que j'ai de l'asthme.", "J'ai de l'asthme."),
        ("Vale, olvida que tengo asma.", "Tengo asma."),
        ("Tá bom, esquece que tenho asma.", "Tenho asma."),
        ("Oké, vergeet dat ik astma heb.", "Ik heb astma."),
        ("Dobra, zapomnij, że mam astmę.", "Mam astmę."),
        ("Да, забудь, что у меня астма.", "У меня астма."),
    ],
)
async def test_a_request_to_forget_may_begin_with_a_reply(text: str, fact: str) -> None:
    assert await ended_by(text, fact) == [fact]


@pytest.mark.parametrize(
    "text",
    [
        "Okay, don't forget that I have asthma.",
        "No, no, don't forget that I have asthma.",
        "Ja, ich habe meinen Schirm im Zug vergessen.",
        "Vale, no olvides que tengo asma.",
        "Tak, zapomniałem parasola w pociągu.",
    ],
)
async def test_what_follows_a_reply_is_no_request_by_that(text: str) -> None:
    assert not any(draft.forgets for draft in await requested(text))


@pytest.mark.parametrize(
    "mention",
    [
        "@memo_bot ",
        "<@U024BE7LH> ",
        "<@!118567>",
        "<@U024BE7LH|memo bot>, ",
        "<@1> @kat ",
        "hey @bot ",
    ],
)
@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("please forget that I have asthma", "I have asthma."),
        ("delete my phone number", "My phone number is 0151 5550199."),
        ("Bitte vergiss, dass ich Asthma habe.", "Ich habe Asthma."),
    ],
)
async def test_a_request_to_forget_may_begin_with_a_mention(
    mention: str, text: str, fact: str
) -> None:
    assert await ended_by(f"{mention}{text}", fact) == [fact]


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("@lena deleted my plate", "My plate is KX 44."),
        ("<@U024BE7LH> removed my old locker code", "My old locker code is 7."),
        ("@lena wiste mijn schoenmaat", "Mijn schoenmaat is 44."),
        ("@lena verwijderde mijn adres", "Mijn adres is Kade 4."),
        ("@lena will, dass ich meine Tante vergesse", "Meine Tante heißt Ute."),
        ("@lena quiere que olvide a mi tía", "Mi tía se llama Eva."),
    ],
)
async def test_what_the_one_mentioned_does_is_no_request(text: str, fact: str) -> None:
    changes = changes_by(await requested(text), *told(fact))

    assert (changes.ended, changes.replaced) == ((), {})


async def test_a_request_behind_a_reply_is_no_new_value_of_the_fact_that_it_repeats() -> None:
    messages = ("Ich habe Asthma.", "Okay, vergiss, dass ich Asthma habe.")
    first, request = await requested(*messages)
    assert (first.summary, first.forgets, request.forgets) == (messages[0], False, True)


@pytest.mark.parametrize(
    ("text", "fact", "others"),
    [
        (
            "Please forget that I have epilepsy.",
            "I have epilepsy, so I don't drive.",
            ["My aunt has epilepsy, so she doesn't drive.", "I drive, but have epilepsy."],
        ),
        (
            "Vergiss, dass ich Diabetikerin bin.",
            "Bin Diabetikerin, Typ 2, nehme Metformin.",
            ["Typ 2, nehme Metformin.", "Erinnerung: Diabetikerin anrufen."],
        ),
        ("忘记我有糖尿病这件事", "我有糖尿病,二甲双胍一天两次。", ["二甲双胍一天两次。"]),
    ],
)
async def test_a_request_ends_a_fact_whose_first_clause_it_names(
    text: str, fact: str, others: list[str]
) -> None:
    assert await ended_by(text, fact, *others) == [fact]


@pytest.mark.parametrize(
    "text",
    [
        "Please forget that I'm allergic to kiwis.",
        "please forget that I am allergic to kiwis",
        "Vergiss bitte, dass ich gegen Kiwis allergisch bin.",
        "Oublie que je suis allergique aux kiwis.",
        "Olvida que soy alérgica a los kiwis.",
        "Забудь, что у меня аллергия на киви.",
        "キウイアレルギーだということは忘れてください。",
        "请忘记我对猕猴桃过敏。",
        "I told you that I'm allergic to kiwis, could you forget that?",
    ],
)
async def test_a_request_to_forget_is_no_fact_whatever_it_names(text: str) -> None:
    assert not changes_by(await requested(text)).facts


@pytest.mark.parametrize(
    "text",
    [
        "Vergiss nicht, dass ich gegen Kiwis allergisch bin.",
        "N'oublie pas que je suis allergique aux kiwis.",
    ],
)
async def test_what_is_not_to_be_forgotten_becomes_a_fact(text: str) -> None:
    assert [fact.summary for fact in changes_by(await requested(text)).facts] == [text]


@pytest.mark.parametrize(
    ("text", "facts", "ended"),
    [
        (
            "I'd like you to forget everything about Branka.",
            ("My ex Branka lives in Split.", "I have a sister.", "Branka hates mornings."),
            {"My ex Branka lives in Split.", "Branka hates mornings."},
        ),
        (
            "Vergiss bitte alles über Kai.",
            ("Mein Bruder Kai wohnt in Ulm.", "Ich arbeite bei Bosch."),
            {"Mein Bruder Kai wohnt in Ulm."},
        ),
        (
            "Forget what I said about the diagnosis of Branka.",
            ("The diagnosis of Branka is gout.", "Branka hates mornings."),
            {"The diagnosis of Branka is gout."},
        ),
        (
            "Please forget everything about Jutta Kranz.",
            ("My landlady is Jutta Kranz.", "Jutta Weber bakes.", "I collect stamps."),
            {"My landlady is Jutta Kranz."},
        ),
        (
            "Olvida todo lo que sabes sobre Marta Vidal Gil.",
            ("Mi suegra es Marta Vidal Gil.", "Marta Vidal vive en Soria."),
            {"Mi suegra es Marta Vidal Gil."},
        ),
        (
            "Kannst du bitte alles vergessen, was ich über Renate gesagt habe?",
            ("Renate hat Diabetes.", "Renate verträgt keinen Knoblauch.", "Ich backe gern."),
            {"Renate hat Diabetes.", "Renate verträgt keinen Knoblauch."},
        ),
        (
            "Forget the stuff about my ex Branka.",
            ("Branka hates mornings.", "I have a sister."),
            {"Branka hates mornings."},
        ),
    ],
)
async def test_a_request_to_forget_somebody_ends_what_is_known_of_them(
    text: str, facts: tuple[str, ...], ended: set[str]
) -> None:
    changes = changes_by(await requested(text), *told(*facts))

    assert {fact.summary for fact in changes.ended} == ended
    assert not changes.facts


async def test_the_reason_of_a_request_to_forget_names_no_other_fact() -> None:
    request = "btw forget what i said about owing tyrell, paid him"

    assert await ended_by(request, "also paid the civic off, the 2nd 310") == []


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("Forget the surprise party for Anna.", ["My wife Anna has gout.", "I met Anna in May."]),
        ("Forget what I said about the money for Hugh.", ["My brother Hugh lives in Calgary."]),
        ("Forget the trip to Berlin.", ["I was born in Berlin."]),
        ("Esquece a briga com o Rafael.", ["Meu irmão Rafael tem epilepsia."]),
        ("Olvida la fiesta para Anna.", ["Estoy casado con Anna."]),
    ],
)
async def test_a_request_to_forget_a_matter_with_somebody_ends_nothing_else_about_them(
    text: str, facts: list[str]
) -> None:
    assert await ended_by(text, *facts) == []


@pytest.mark.parametrize(
    ("text", "facts", "ended"),
    [
        (
            "Can you forget what I told you about my overdraft?",
            ("My overdraft is 900 pounds.", "My sister's overdraft is gone.", "I have two sons."),
            {"My overdraft is 900 pounds."},
        ),
        (
            "Please drop the rule about bullet points.",
            ("Always answer in bullet points.", "I collect vinyl.", "My son scored 40 points."),
            {"Always answer in bullet points."},
        ),
        (
            "Vergiss die Sache mit dem Bausparvertrag.",
            ("Ich habe einen Bausparvertrag bei der LBS.", "Mein Vertrag bei Bosch endet im Mai."),
            {"Ich habe einen Bausparvertrag bei der LBS."},
        ),
    ],
)
async def test_a_request_ends_what_has_all_of_its_words_that_do_not_ask(
    text: str, facts: tuple[str, ...], ended: set[str]
) -> None:
    assert {*await ended_by(text, *facts)} == ended


@pytest.mark.parametrize(
    ("text", "fact", "other"),
    [
        ("Borra mi número.", "Mi número es 55.", "Mi número de pasaporte es AAB123456."),
        ("Supprime ma date de naissance.", "Ma date de naissance est le 3 mai 1990.", ""),
        ("Supprime ma date.", "", "Ma date de naissance est le 3 mai 1990."),
        ("Borra mi número de la tarjeta.", "Mi número de la tarjeta es 4471.", "Mi número es 55."),
    ],
)
async def test_a_request_to_forget_a_thing_ends_no_other_that_is_named_behind_it(
    text: str, fact: str, other: str
) -> None:
    assert await ended_by(text, *filter(None, (fact, other))) == [fact] * bool(fact)


@pytest.mark.parametrize(
    ("text", "facts", "left"),
    [
        (
            "Please forget my plate, my locker code and my shoe size.",
            ["My plate is KX 44.", "My locker code is 7.", "My shoe size is 41."],
            ["My sister's plate is KX 12."],
        ),
        (
            "Lösche bitte meine Kundennummer und meine Schuhgröße.",
            ["Meine Kundennummer ist 551.", "Meine Schuhgröße ist 41."],
            ["Meine Tante hat eine Kundennummer."],
        ),
        (
            "Oublie mon immatriculation et mon courriel.",
            ["Mon immatriculation est AB-44.", "Mon courriel est k@l.example."],
            [],
        ),
        (
            "Olvida mi matrícula y mi talla.",
            ["Mi matrícula es 4471.", "Mi talla es 41."],
            ["Mi abuela usa la talla 41."],
        ),
        (
            "Dimentica il mio soprannome e la mia targa.",
            ["Il mio soprannome è Pippo.", "La mia targa è FX 44."],
            [],
        ),
        ("Забудь мой ник и мой размер.", ["Мой ник — Kot.", "Мой размер 41."], []),
        ("Usuń moje hasło i mój numer.", ["Moje hasło to 44.", "Mój numer to 55."], []),
        (
            "Forget my plate and keep my locker code.",
            ["My plate is KX 4."],
            ["My locker code is 7."],
        ),
        ("Delete my plate and see my new van.", ["My plate is KX 4."], ["My new van is red."]),
        (
            "Forget my plate and remember that I moved to Hull.",
            ["My plate is KX 4."],
            ["I moved to Hull."],
        ),
    ],
)
async def test_a_request_ends_each_thing_that_it_names_by_my(
    text: str, facts: list[str], left: list[str]
) -> None:
    assert {*await ended_by(text, *facts, *left)} == {*facts}


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("Oublie ma pointure s'il te plaît", "Ma pointure est 39."),
        ("Wis mijn schoenmaat alsjeblieft", "Mijn schoenmaat is 44."),
        ("Usuń moje hasło proszę", "Moje hasło do szafki to 44."),
        ("Borra mi médico por favor", "Mi médico es Robles."),
        ("Vergiss mein Kennzeichen, Auto ist verkauft", "Mein Kennzeichen ist B-KX 44."),
        ("Delete my plate, mate", "My plate is KX 44."),
        ("Veuillez effacer mon surnom.", "Mon surnom est Kiki."),
        ("Забудь мой пароль", "Мой пароль — Kot44."),
        ("Delete my plate", "My plate – KX 44."),
    ],
)
async def test_a_request_to_forget_may_be_polite_or_give_a_reason(text: str, fact: str) -> None:
    assert await ended_by(text, fact, "My aunt sells cars in Turin.") == [fact]


@pytest.mark.parametrize(
    ("text", "facts", "ended"),
    [
        ("Forget where she works.", ["I work for a bakery."], []),
        ("Please forget how much they owe.", ["I owe my uncle 900 pounds."], []),
        ("Forget her birthday.", ["My birthday is 3 May."], []),
        ("Forget that he plays for Celtic.", ["I play for Celtic."], []),
        ("Please forget that she has gout.", ["I have gout.", "Ana has gout."], ["Ana has gout."]),
        ("Vergiss, dass er Gicht hat.", ["Ich habe Gicht."], []),
        ("Oublie qu'elle est végétarienne.", ["Je suis végétarienne."], []),
        ("Olvida que él tiene gota.", ["Tengo gota."], []),
        ("Забудь, что у неё подагра.", ["У меня подагра."], []),
        (
            "Bitte löschen Sie die Kontonummer.",
            ["Meine Kontonummer ist 55."],
            ["Meine Kontonummer ist 55."],
        ),
        (
            "Olvida la receta del flan.",
            ["Mi receta del flan lleva anís."],
            ["Mi receta del flan lleva anís."],
        ),
        (
            "Please forget the gate code, she changed it.",
            ["My gate code is 7."],
            ["My gate code is 7."],
        ),
    ],
)
async def test_a_request_about_somebody_else_ends_no_fact_about_the_user(
    text: str, facts: list[str], ended: list[str]
) -> None:
    assert await ended_by(text, *facts) == ended


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("Don't forget that I'm vegan.", "I'm vegan."),
        ("Forget it.", "I'm vegan."),
        ("I forgot my door code again.", "My door code is 4471."),
        ("My husband forgot that I'm vegan.", "I'm vegan."),
        ("Please forget that my mother is vegan.", "I'm vegan."),
        ("Please forget that I'm no longer vegan.", "I'm vegan."),
        ("Vergiss nicht, dass ich Raucher bin.", "Ich bin Raucher."),
        ("No olvides que soy celíaca.", "Soy celíaca."),
        (
            "Please don't forget about my dentist appointment",
            "I have an appointment with the dentist on 5 May.",
        ),
        ("Vergiss bitte nicht meine Allergie.", "Meine Allergie ist eine gegen Nüsse."),
        ("Не забудь о моей аллергии.", "Моя аллергия на орехи."),
    ],
)
async def test_words_about_forgetting_end_no_fact_that_they_do_not_ask_to_forget(
    text: str, fact: str
) -> None:
    changes = changes_by(await requested(text), *told(fact))

    assert not changes.ended


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("just my address pls", "My address is 2280 S Bannock St, Denver."),
        ("and my phone number pls", "My phone number is 555-0199."),
        ("ok my rent pls", "My rent is 820."),
        ("meine Kundennummer bitte", "Meine Kundennummer ist 551."),
        ("y mi número por favor", "Mi número es 551."),
    ],
)
async def test_to_ask_for_a_thing_politely_neither_ends_nor_adds_a_fact(
    text: str, fact: str
) -> None:
    changes = changes_by(await requested(text), *told(fact))

    assert changes == FactChanges()


@pytest.mark.parametrize(
    ("texts", "ended"),
    [
        (("I have epilepsy.", "Please forget that."), ["I have epilepsy."]),
        (("I have two sons. I have epilepsy. Please forget that.",), ["I have epilepsy."]),
        (("Ich habe Epilepsie. Bitte nicht speichern.",), ["Ich habe Epilepsie."]),
        (("Tengo epilepsia.", "Uy. Eso no lo guardes."), ["Tengo epilepsia."]),
        (("てんかんがあります。今の、覚えないで",), ["てんかんがあります。"]),
        (("I have epilepsy.", "> Noted.", "Please forget that."), ["I have epilepsy."]),
        (("I smoke.", "> Why?", "I have two sons. Forget that."), ["I have two sons."]),
        (("No como carne.", "Por favor, olvida eso."), ["No como carne."]),
        (("Я не ем мяса.", "Пожалуйста, забудь это."), ["Я не ем мяса."]),
        (("I owe the bank $12,000.", "Please forget that."), ["I owe the bank $12,000."]),
        (("I have epilepsy. Can I drive?", "Forget it."), []),
        (("I have epilepsy.", "Find me a flight to Oslo.", "Forget it."), []),
        (("I have epilepsy.", "Please forget what I said about Rome."), []),
        (("Ich nehme Lithium.", "Vergiss, was sie nimmt."), []),
        (("My ex has gout.", "Get him out of your memory, please."), ["My ex has gout."]),
    ],
)
async def test_a_request_that_names_nothing_ends_the_statement_right_before_it(
    texts: tuple[str, ...], ended: list[str]
) -> None:
    changes = changes_by(await requested(*texts))

    assert [fact.summary for fact in changes.facts if fact.valid_to] == ended


@pytest.mark.parametrize(
    ("reply", "request_"),
    [
        ("> Want a joke?", "Forget it!"),
        ("> Shall I look for a neurologist?", "No, forget that."),
        ("> Shall I look for a neurologist? There are several near the station.", "Forget it."),
        (f"> Shall I look for a neurologist{', or for another doctor' * 4}?", "Forget it."),
        ("> Soll ich Rezepte suchen?", "Vergiss es."),
        ("> レシピを探しましょうか？", "忘れて。"),
        ("> Great, I'll set a reminder every morning.", "Please don't store that."),
    ],
)
async def test_a_request_that_answers_a_question_or_a_proposal_ends_no_statement_before_it(
    reply: str, request_: str
) -> None:
    changes = changes_by(await requested("I have epilepsy.", reply, request_))

    assert [(fact.summary, fact.valid_to) for fact in changes.facts] == [("I have epilepsy.", None)]


@pytest.mark.parametrize(
    "text",
    [
        "Please don't remove that.",
        "Don't delete that.",
        "Don't keep forgetting that.",
        "Stop forgetting that.",
        "Bitte nicht löschen.",
        "Lösche das bitte nicht.",
        "Das bitte nicht streichen.",
        "Das hast du vergessen.",
        "Hör auf, das zu vergessen.",
        "No lo borres.",
        "Deja de olvidarlo.",
        "Não apague isso.",
        "Не удаляй это.",
        "Nie usuwaj tego.",
        "Ne l'efface pas.",
        "Niet verwijderen alsjeblieft.",
        "请不要删除。",
        "削除しないでください。",
    ],
)
async def test_a_request_not_to_forget_ends_no_statement_before_it(text: str) -> None:
    changes = changes_by(await requested("I have epilepsy.", text))

    assert not any(fact.valid_to for fact in changes.facts)


@pytest.mark.parametrize(
    "text",
    [
        "Forget everything.",
        "Forget everything I told you.",
        "Please forget about me.",
        "Forget both.",
        "Bitte vergiss alles.",
        "Olvida todo sobre mí, por favor.",
        "私のことは全部忘れてください。",
        "Забудь меня.",
        "Please forget where I work.",
    ],
)
async def test_a_request_to_forget_more_than_the_last_statement_does_not_end_that_alone(
    text: str,
) -> None:
    changes = changes_by(await requested("I have asthma.", "I have epilepsy.", text))

    assert not any(fact.valid_to for fact in changes.facts)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("The safe code is 9917, don't save it", ", I only need it for the sheet."),
        ("I have epilepsy. Please don't store that", ", it is private."),
        ("Ik heb schulden. Sla dat niet op", ", het is alleen voor deze brief."),
        ("Mam długi, nie zapisuj tego", ", potrzebuję tylko do listu."),
    ],
)
async def test_a_reason_behind_a_request_not_to_keep_something_does_not_keep_it(
    text: str, reason: str
) -> None:
    assert not [
        fact for fact in changes_by(await requested(text + reason)).facts if not fact.valid_to
    ]


async def test_a_request_ends_the_statement_before_it_and_no_other_in_its_words() -> None:
    known = told("I have epilepsy.")
    statement, request = await requested(
        "I have epilepsy, and I take Keppra.", "Please forget that."
    )
    both = changes_by((statement, request), *known)
    later = changes_by((request,), *known)

    assert [fact.summary for fact in both.facts if fact.valid_to] == [statement.summary]
    assert (both.ended, later.ended) == ((), ())


async def test_a_request_ends_the_known_fact_that_the_statement_before_it_repeats() -> None:
    known = told("I'm allergic to peanuts.", "I'm allergic to kiwis.")
    changes = changes_by(
        await requested("I am allergic to peanuts.", "Please forget that."), *known
    )

    assert [fact.summary for fact in changes.ended] == ["I'm allergic to peanuts."]


async def test_a_request_in_a_group_ends_the_last_statement_of_its_own_speaker() -> None:
    changes = changes_by(
        await extracted(
            said("I have epilepsy.", by="Ana"),
            said("I live in Rome.", by="Bo"),
            said("Please forget that.", by="Ana"),
        )
    )

    assert [fact.summary for fact in changes.facts if fact.valid_to] == ["I have epilepsy."]


@pytest.mark.parametrize(
    ("replies", "hours", "ends"), [(0, 2, True), (0, 3, False), (7, 0, True), (8, 0, False)]
)
async def test_a_request_ends_a_statement_within_two_hours_and_eight_messages(
    replies: int, hours: int, ends: bool
) -> None:
    changes = changes_by(
        await extracted(
            said("I have epilepsy.", at=ASKED_AT - timedelta(hours=hours)),
            *(said("> Noted.") for _ in range(replies)),
            said("Please forget that."),
        )
    )

    assert any(fact.valid_to for fact in changes.facts) == ends


async def test_a_fact_told_and_taken_back_in_one_extraction_is_no_current_fact() -> None:
    said = "I have epilepsy."
    changes = changes_by(
        (
            FactDraft(summary=said, valid_from=TOLD_AT),
            *await requested("Please forget that I have epilepsy."),
        )
    )

    assert not changes.ended
    assert [(fact.summary, fact.valid_to) for fact in changes.facts if not fact.valid_to] == []


async def test_a_forgotten_fact_that_was_read_again_stays_forgotten_until_it_is_told_again() -> (
    None
):
    (ended,) = changes_by(
        await requested("Please forget that I have epilepsy."), *told("I have epilepsy.")
    ).ended
    copy, again = (
        changes_by((FactDraft(summary="I have epilepsy.", valid_from=at),), past=(ended,))
        for at in (TOLD_AT, ASKED_AT + timedelta(days=1))
    )

    assert (copy.facts, len(copy.repetitions)) == ((), 1)
    assert [fact.summary for fact in again.facts] == ["I have epilepsy."]


async def test_nobody_else_can_ask_to_forget_what_the_user_told() -> None:
    known = told("I have epilepsy.", "Ana knows Bo.")
    for text in ("Please forget that I have epilepsy.", "Forget everything about Ana."):
        request = await requested(text, speaker="Bo")
        assert [draft.forgets for draft in request] == [True]
        assert changes_by(request, *known) == FactChanges(requests=1)


async def test_another_speaker_can_ask_to_forget_what_they_told_themselves() -> None:
    known = tuple(
        replace(fact, tags=(f"speaker:{fact.summary.partition(':')[0]}",))
        for fact in told("Bo: I have epilepsy.", "Cy: I have epilepsy.", "Bo: I like Ana.")
    )
    for text, ended in (
        ("Please forget that I have epilepsy.", "Bo: I have epilepsy."),
        ("Forget everything about Ana.", "Bo: I like Ana."),
    ):
        changes = changes_by(await requested(text, speaker="bo"), *known)
        assert [fact.summary for fact in changes.ended] == [ended]
