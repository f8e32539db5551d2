"""Facts that can be read alone: joined to what they lack, or with the question that they answer."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from remanence.facts import ExtractiveFacts, merge_facts
from remanence.facts.statements import quotes_once
from remanence.facts.wishes import mark_wishes
from remanence.protocols import ExtractRequest
from remanence.testing import FixedClock
from remanence.types import ConversationRef, Fact, FactChanges, FactDraft, Message, Owner

NOW = datetime(2026, 5, 4, 10, 0, tzinfo=UTC)
CONVERSATION = ConversationRef("default", "a")


def said(*texts: str) -> tuple[Message, ...]:
    """Return messages of the user, and of the assistant where a text begins with "> "."""
    return tuple(
        (
            Message.assistant(text.removeprefix("> "), created_at=NOW)
            if text.startswith("> ")
            else Message.user(text, created_at=NOW)
        ).replace(seq=seq, tokens=len(text) // 4)
        for seq, text in enumerate(texts, start=1)
    )


async def facts(*texts: str) -> tuple[FactDraft, ...]:
    request = ExtractRequest(
        conversation=CONVERSATION,
        user="ana",
        messages=said(*texts),
        notes=(),
        known=(),
        now=NOW,
    )
    return await ExtractiveFacts().extract(request)


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("<@U024BE7LH> I live in Lisbon.", "I live in Lisbon."),
        ("hi @memo_bot, please answer in French", "please answer in French"),
        ("@memo I'm allergic to nickel.", "I'm allergic to nickel."),
        ("@memo, я живу в Казани.", "я живу в Казани."),
        ("@memo ich wohne in Köln", "ich wohne in Köln"),
        ("@kat lives in Berlin.", "@kat lives in Berlin."),
        ("@kat: I live in Rome.", "@kat: I live in Rome."),
        ("@acme/lib is my package, I live in Rome.", "@acme/lib is my package, I live in Rome."),
        ("@lena, @tim, ich wohne in Köln", "@lena, @tim, ich wohne in Köln"),
    ],
)
async def test_a_fact_has_no_mention_of_whom_its_message_addresses(text: str, summary: str) -> None:
    (fact,) = await facts(text)

    assert fact.summary == summary


@pytest.mark.parametrize(
    "text",
    [
        "@lena – allergisch gegen Erdbeeren, @tim – Veganer",
        "@lena, allergique aux noix",
        "@lena - mora em Lisboa",
        "@lena, @tim i ja mieszkamy w Krakowie",
        "@lena - works at Siemens",
        "@lena, my aunt, lives in Hull",
        "@lena me debe 30 euros",
        "@lena мне должна 300 рублей",
        "<@U024BE7LH> - vegetarian",
    ],
)
async def test_a_statement_about_the_one_mentioned_says_of_whom(text: str) -> None:
    assert all(fact.summary.startswith(text[:5]) for fact in await facts(text))


@pytest.mark.parametrize(
    "text",
    [
        "I rent a storage unit in Leith. 64.50 a month.",
        "Our cat Biscuit has bad kidneys. He's on a prescription diet.",
        "Ich nehme Ramipril. Morgens 5 mg, vor dem Frühstück.",
        "Le médecin m'a donné de l'amoxicilline. À prendre trois fois par jour.",
        "Mi hermana se casa en Cádiz. El 12 de septiembre.",
        "Faccio nuoto alla piscina di via Manin. Il martedì e il giovedì.",
        "Ik huur een kamer bij mevrouw De Wit. Kost 520 per maand.",
        "Я снимаю гараж на Лесной. Четыре тысячи в месяц.",
        "我在学游泳。每周三晚上七点。",
        "boiler serviced. she found a leak as well, £60 extra, so 310 in total.",
        "Le plombier est passé. Il a trouvé une fuite, donc 310 € en tout.",
    ],
)
async def test_a_sentence_that_lacks_its_noun_is_one_fact_with_the_sentence_before(
    text: str,
) -> None:
    assert [fact.summary for fact in await facts(text)] == [text]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("I'm allergic to walnuts.", "I live in Dundee with my brother Hamish."),
        ("Ich arbeite als Hebamme in Gera.", "Meine Tochter heißt Jule."),
        ("Je suis végétarienne depuis 2019.", "Mon fils s'appelle Basile."),
    ],
)
async def test_sentences_that_can_be_read_alone_are_facts_of_their_own(
    first: str, second: str
) -> None:
    found = await facts(f"{first} {second}")

    assert [fact.summary for fact in found] == [first, second]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How many guests are coming to the barbecue?", "fourteen then."),
        ("Wie oft gehst du zur Krankengymnastik?", "zweimal pro woche"),
        ("何時に待ち合わせますか？", "7時です。"),
    ],
)
async def test_an_answer_is_a_fact_with_its_question_and_goes_with_either_message(
    question: str, answer: str
) -> None:
    (fact,) = await facts(f"> {question}", answer)

    assert fact.summary == f"“{question}” – {answer}"
    assert (fact.first_seq, fact.last_seq) == (1, 2)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Is there anything else I can help with?", "My sister Orla is moving to Galway in June."),
        ("Kann ich sonst noch etwas tun?", "Ich bin gegen Latex allergisch."),
        ("Voulez-vous que je détaille la deuxième étape ?", "Mon fils Basile a sept ans."),
        ("他に何か気になることはありますか？", "私は京都の旅館で働いています。"),
    ],
)
async def test_what_can_be_read_alone_after_a_question_is_a_fact_without_it(
    question: str, text: str
) -> None:
    (fact,) = await facts(f"> {question}", text)

    assert fact.summary == text
    assert fact.first_seq == 2


async def test_a_question_of_two_words_is_quoted_with_the_sentence_before() -> None:
    (fact,) = await facts("> I'd book the earlier train. Shall I?", "no, I'll take the 9:40.")

    assert fact.summary == "“I'd book the earlier train. Shall I?” – no, I'll take the 9:40."


@pytest.mark.parametrize(
    ("proposal", "answer"),
    [
        ("Das Standesamt hat am 3. zu, der 10. August ist noch frei.", "dann am 10."),
        ("Je peux vous offrir soit 50 Go de plus, soit une clé 4G.", "va pour les 50 Go"),
        ("土曜は満席で、金曜の19時なら空いています。", "じゃあ金曜の19時で"),
    ],
)
async def test_words_that_take_up_a_proposal_are_a_fact_with_it(proposal: str, answer: str) -> None:
    (fact,) = await facts(f"> {proposal}", answer)

    assert fact.summary == f"“{proposal}” – {answer}"
    assert (fact.first_seq, fact.last_seq) == (1, 2)


async def test_a_guess_is_not_quoted_with_a_sentence_that_can_be_read_alone() -> None:
    asked, guess = "My car whines. Is it the belt?", "Possibly a wheel bearing or the steering."
    text = "cita en el taller es el martes a las 9:15 entonces."

    summaries = [fact.summary for fact in await facts(asked, f"> {guess}", f"uf. {text}")]

    assert text in summaries


async def test_sentences_that_can_be_read_alone_are_a_fact_behind_words_on_another_text() -> None:
    stated = "Teraz tak: mam nadciśnienie, kardiolog powiedział w maju. biorę ramipryl 5 mg co rano"
    texts = (
        'Traduce al inglés: "Me llamo Iván Soto y busco piso en Gijón"',
        '> "My name is Iván Soto and I\'m looking for a flat in Gijón."',
        f"to dla mamy. {stated}",
    )

    assert [fact.summary for fact in await facts(*texts)] == [stated]


@pytest.mark.parametrize(
    ("request_", "text", "answer"),
    [
        (
            "Traduis en français : I can offer you 50 GB more. Or else a 4G key.",
            "Je peux vous offrir soit 50 Go de plus, soit une clé 4G.",
            "va pour les 50 Go",
        ),
        (
            "次の文を英語にしてください。「私は医者です。」",
            "I am a doctor and I live in Berlin.",
            "じゃあ金曜の19時で",
        ),
        (
            "Wie klingt das als Aushang?",
            "„Das Standesamt hat am 3. zu, der 10. August ist noch frei.“",
            "dann am 10.",
        ),
    ],
)
async def test_a_text_that_the_agent_translates_or_drafts_is_no_proposal(
    request_: str, text: str, answer: str
) -> None:
    assert not any(
        text[1:-1] in fact.summary for fact in await facts(request_, f"> {text}", answer)
    )


@pytest.mark.parametrize(
    ("text", "is_own"),
    [
        (
            "A voice-over for a documentary, spoken by the fisherman: I inherited my boat.",
            False,
        ),
        (
            "Wir proben ein Gespräch, Sie spielen die Bewerberin und beginnen so: Ich wohne in Jena.",
            False,
        ),
        ("Note: I'm vegan and I live in Bonn.", True),
        ("About me: I work as a nurse in Leeds.", True),
    ],
)
async def test_a_text_that_is_handed_over_behind_a_colon_is_no_fact(
    text: str, *, is_own: bool
) -> None:
    assert bool(await facts(text)) == is_own


@pytest.mark.parametrize(
    ("before", "summaries"),
    [
        ("I weigh 82 kg.", ["bo: I weigh 82 kg."]),
        ("How much do you weigh?", ["ana: “How much do you weigh?” – 68 kilos."]),
    ],
)
async def test_a_member_answers_the_questions_of_another_and_not_their_statements(
    before: str, summaries: list[str]
) -> None:
    first, second = said(before, "68 kilos.")
    request = ExtractRequest(
        conversation=CONVERSATION,
        user="club",
        messages=(first.replace(name="bo"), second.replace(name="ana")),
        notes=(),
        known=(),
        now=NOW,
    )

    assert [fact.summary for fact in await ExtractiveFacts().extract(request)] == summaries


async def test_a_sentence_after_an_answer_that_can_be_read_alone_has_no_question() -> None:
    *_, last = await facts("> How is it going there?", "good so far. my desk is small, 80 cm")

    assert last.summary == "my desk is small, 80 cm"


async def test_a_short_question_is_quoted_without_a_long_sentence_before_it() -> None:
    (fact,) = await facts(
        f"> {'The hall is booked for that day, ' * 4}or so. How many?", "fourteen then."
    )

    assert fact.summary == "“How many?” – fourteen then."


CORRECTED = (
    "Wir wollen am 3. August in Graz heiraten, mit 40 Gästen",
    "> Das Standesamt hat am 3. August leider zu. Der 10. August ist noch frei.",
    "dann der 10.",
)


def merged(drafts: tuple[FactDraft, ...], known: tuple[Fact, ...] = ()) -> FactChanges:
    clock = FixedClock(NOW, prefix="later" if known else "first")
    owner, maker = Owner("default", "ana"), ExtractiveFacts().name
    return merge_facts(drafts, known, owner=owner, source=CONVERSATION, made_by=maker, clock=clock)


async def test_a_correction_in_a_few_words_quotes_the_fact_that_it_ends() -> None:
    changes = merged(await facts(*CORRECTED))

    stated, corrected = changes.facts
    said, reply, words = (text.removeprefix("> ") for text in CORRECTED)
    assert corrected.summary == f"“{said}” – “{reply}” – {words}"
    assert (corrected.first_seq, corrected.last_seq) == (1, 3)
    assert changes.replaced == {stated.id: corrected.id}


@pytest.mark.parametrize(
    ("said", "reply", "words"),
    [
        ("My yoga class starts at 18:15 on Thursdays.", "Enjoy it!", "sorry, 18:45"),
        ("Mon train pour Dijon part à 7 h 10.", "C'est noté.", "non, à 7 h 40"),
        ("Minha consulta é na quarta às 9h.", "Anotado.", "opa, às 10h"),
        ("Мой поезд в Тверь в 9:40.", "Записал.", "ой, в 10:40"),
    ],
)
async def test_a_correction_of_a_few_words_is_a_fact_with_the_statement_and_ends_it(
    said: str, reply: str, words: str
) -> None:
    changes = merged(await facts(said, f"> {reply}", words))

    stated, corrected = changes.facts
    assert corrected.summary == f"“{said}” – {words}"
    assert changes.replaced == {stated.id: corrected.id}


@pytest.mark.parametrize(
    ("others", "said", "words"),
    [
        (["My son Theo is 11 years old."], "My bike lock is 2281.", "sorry, 2218"),
        (["Meine Miete beträgt 950 Euro."], "Mein Budget ist 300 Euro.", "nein, 350"),
        (["Ma fille a 8 ans.", "Ma pointure est 39."], "Mon loyer est de 720 euros.", "non, 750"),
    ],
)
async def test_a_correction_ends_the_latest_of_the_statements_that_it_fits(
    others: list[str], said: str, words: str
) -> None:
    texts = [text for one in (*others, said) for text in (one, "> Noted.")]
    changes = merged(await facts(*texts, words))

    assert [fact.summary for fact in changes.facts if fact.id in changes.replaced] == [said]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("My bike lock is 2281.", "sorry, 2218"),
        ("My landline is 020 79 46 01 18.", "sorry, 02079460119"),
    ],
)
async def test_a_correction_rather_ends_a_statement_with_as_many_digits(
    said: str, words: str
) -> None:
    every = ("My rent is 950 euros.", said, "My budget is 300.")
    texts = [text for one in every for text in (one, "> Noted.")]
    changes = merged(await facts(*texts, words))

    assert [fact.summary for fact in changes.facts if fact.id in changes.replaced] == [said]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("My phone number is 020 79 46 01 18.", "sorry, 02079460119"),
        ("Mein Gehalt ist 61k.", "nein, 63000"),
        ("Mi presupuesto son 3 millones.", "perdón, 2500000"),
    ],
)
async def test_a_correction_ends_the_only_statement_with_a_number_in_another_form(
    said: str, words: str
) -> None:
    changes = merged(await facts(said, "> Noted.", words))

    assert [fact.summary for fact in changes.facts if fact.id in changes.replaced] == [said]


@pytest.mark.parametrize(("hours", "is_revised"), [(1, True), (5, False)])
async def test_words_revise_no_statement_of_hours_before(hours: int, is_revised: bool) -> None:
    stated, reply, words = said("My yoga class starts at 18:15.", "> Enjoy it!", "sorry, 18:45")
    later = words.replace(created_at=NOW + timedelta(hours=hours))
    request = ExtractRequest(
        conversation=CONVERSATION,
        user="ana",
        messages=(stated, reply, later),
        notes=(),
        known=(),
        now=NOW + timedelta(days=1),
    )
    summaries = [fact.summary for fact in await ExtractiveFacts().extract(request)]
    assert ("“My yoga class starts at 18:15.” – sorry, 18:45" in summaries) is is_revised


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ("It takes an hour.", "great, thanks"),
        ("How old is your son?", "he's 9"),
        ("Shall I remind you?", "yes, at 8:00"),
        ("Noted.", "and on Saturday I see my aunt"),
    ],
)
async def test_other_words_after_a_reply_leave_the_statement_before_it(
    reply: str, words: str
) -> None:
    changes = merged(await facts("My haircut is on Friday at 9:00.", f"> {reply}", words))

    assert changes.facts[0].summary == "My haircut is on Friday at 9:00."
    assert changes.replaced == {}


@pytest.mark.parametrize(
    ("said", "also"),
    [
        ("My collar size is 42.", "My brother's collar size is 39."),
        ("My office extension is 2210.", "My studio extension is 2275."),
        ("My locker at the Lido is 17.", "My locker at the Palace is 31."),
        ("My bike lock 4402 cost 35 EUR.", "My bike lock 4403 cost 80 EUR."),
        ("Mein Garten hat 120 Quadratmeter.", "Der Garten meiner Tante hat 300 Quadratmeter."),
    ],
)
async def test_the_same_of_another_thing_leaves_the_statement_before_it(
    said: str, also: str
) -> None:
    changes = merged(await facts(said, "> Noted.", also))

    assert said in [fact.summary for fact in changes.facts]
    assert changes.replaced == {}


async def test_corrections_of_corrections_quote_only_so_much() -> None:
    texts = ["Wir zahlen 40 Euro im Monat."]
    for amount in range(40, 70):
        texts += ["> Notiert.", f"nicht {amount}, sondern {amount + 1}"]

    lengths = [len(fact.summary) for fact in await facts(*texts)]

    assert 200 < max(lengths) < 350


async def test_a_number_that_opens_an_answer_stays_with_what_goes_on_from_it() -> None:
    (fact,) = await facts("> Which version?", "1.7. and python 3.11")

    assert fact.summary == "“Which version?” – 1.7. and python 3.11"


async def test_a_fact_that_is_saved_after_its_correction_is_one_of_the_past() -> None:
    stated, corrected = await facts(*CORRECTED)
    known = merged((replace(corrected, valid_from=NOW + timedelta(minutes=1)),)).facts

    (late,) = merged((stated,), known).facts

    assert late.superseded_by == known[0].id


async def test_words_about_another_thing_than_the_statement_before_end_nothing() -> None:
    said = await facts(
        "I need a cake for my son Leo, he turns 7 on the 14th of June.",
        "> Noted, for the 14th. The bakery closes at 2 pm, so noon would be the latest.",
        "noon on Saturday then",
    )

    assert len(said) == 2
    assert merged(said).replaced == {}


@pytest.mark.parametrize("text", ["fourteen then.", "zweimal die woche", "no, the 9:40."])
async def test_an_answer_to_a_question_that_nobody_asked_is_no_fact(text: str) -> None:
    assert await facts("> Good morning, Ana.", text) == ()


async def test_a_question_after_a_statement_is_no_part_of_the_fact() -> None:
    (fact,) = await facts("I rent a storage unit in Leith. too much, no?")

    assert fact.summary == "I rent a storage unit in Leith."


async def test_a_correction_that_states_nothing_alone_stays_with_the_statement_before_it() -> None:
    first = "Ich hatte gesagt, Renate verträgt keinen Knoblauch."
    text = f"{first} Stimmt gar nicht: Sie mag nur den Geruch nicht."

    (fact,) = await facts(text)

    assert fact.summary == text


@pytest.mark.parametrize(
    "text",
    [
        "Never book me a flight before nine. Not even a cheap one.",
        "Please don't suggest getting another dog. People do that, and it hurts.",
    ],
)
async def test_a_rule_of_two_sentences_is_a_wish_of_the_user(text: str) -> None:
    (rule,) = mark_wishes(await facts(text), said(text), user="ana")

    assert rule.summary == text
    assert "wish" in rule.tags


@pytest.mark.parametrize(
    ("text", "is_wish"),
    [
        ("Can you answer in Swedish from now on?", True),
        ("Kan du svara på svenska från och med nu?", True),
        ("¿Puedes hablarme siempre de tú?", True),
        ("“Can you answer in Swedish from now on?”", False),
    ],
)
def test_a_question_in_own_words_is_a_wish_if_its_tag_says_so(text: str, is_wish: bool) -> None:
    asking = FactDraft(summary=text.strip("“”"), tags=("instruction",), first_seq=1, last_seq=1)

    (marked,) = mark_wishes([asking], said(text), user="ana")

    assert ("wish" in marked.tags) is is_wish


async def test_the_words_of_a_question_are_no_wish_of_who_answers() -> None:
    texts = ("> Shall I always answer in French?", "yes, for 2 weeks then")
    quoting = FactDraft(
        summary=f"“{texts[0][2:]}” – {texts[1]}", tags=("instruction",), first_seq=1, last_seq=2
    )

    assert mark_wishes([quoting], said(*texts), user="ana") == (quoting,)


@pytest.mark.parametrize(
    "text",
    [
        "Always write to me in Dutch.",
        "Antworte immer auf Deutsch.",
        "Réponds toujours en français.",
    ],
)
async def test_a_short_rule_after_a_question_stays_as_it_was_said(text: str) -> None:
    texts = ("> Anything else?", text)

    (rule,) = mark_wishes(await facts(*texts), said(*texts), user="ana")

    assert rule.summary == text
    assert "wish" in rule.tags


@pytest.mark.parametrize("greeting", ["Hello! Nice to meet you.", "Noted."])
@pytest.mark.parametrize(
    "text", ["I drive a Skoda.", "Vivo en Madrid.", "Mon chien s'appelle Bello."]
)
async def test_what_can_be_read_alone_is_a_fact_behind_words_that_ask_nothing(
    greeting: str, text: str
) -> None:
    found = await facts("Hi.", f"> {greeting}", text)

    assert [fact.summary for fact in found] == [text]


@pytest.mark.parametrize(
    ("summary", "made_by", "is_sure"),
    [
        ("“Class is at 18:15.” – sorry, 18:45", "extractive/9", True),
        ("Bo: “Class is at 18:15.” – sorry, 18:45", "extractive/9", True),
        ("“Class is at 18:15.” – sorry, 18:45", "extract/3 gpt", False),
        ("“Class is at 18:15.” – “Every week?” – sorry, 18:45", "extractive/9", False),
        ("“My password is [secret] – sorry, 18:45", "extractive/9", False),
        ("“My IBAN is [secret]” – no, [secret]", "extractive/9", False),
        ("Class is at 18:15.", "extractive/9", False),
    ],
)
def test_only_a_statement_with_one_quotation_is_surely_from_two_messages(
    summary: str, made_by: str, is_sure: bool
) -> None:
    tags = ("speaker:Bo",) if summary.startswith("Bo") else ()
    fact = Fact(
        id="f",
        tenant="default",
        user="ana",
        summary=summary,
        type="profile",
        tags=tags,
        made_by=made_by,
        created_at=NOW,
        valid_from=NOW,
    )

    assert quotes_once(fact) is is_sure


@pytest.mark.parametrize("text", ["Write dates as day, month, year.", "Spell names as I do."])
async def test_a_wish_is_one_whatever_it_follows(text: str) -> None:
    (first,), (later,) = await facts(text), await facts("> OK.", text)

    assert first.type == "behavior"
    assert first == replace(later, first_seq=1, last_seq=1)


@pytest.mark.parametrize(
    "output",
    [
        "```\nd4e5f6 My fix for HPX-4412\n```",
        "2026-03-02T05:41:07Z gw-3 app: I am leader now",
        "Mar  2 05:41:08 gw-3 app: I am leader now",
        "$ git log --oneline\na1b2c3 I always retry twice\nd4e5f6 My fix for HPX-4412",
    ],
)
async def test_code_and_output_that_a_user_pastes_are_no_facts(output: str) -> None:
    assert await facts(f"{output}\n\nI live in Bonn.") == await facts("I live in Bonn.") != ()


async def test_a_time_of_seconds_within_a_sentence_makes_it_no_output() -> None:
    assert await facts("My best marathon took 03:42:10.")
