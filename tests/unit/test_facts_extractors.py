"""Extractors: what the embedded one keeps, and how leniently a model's answer is read."""

import dataclasses
import json
from datetime import UTC, datetime
from itertools import permutations

import pytest

from remanence.errors import ObservationRejected
from remanence.facts import ExtractiveFacts, ModelFacts
from remanence.facts.answers import read_facts
from remanence.facts.statements import is_user
from remanence.facts.wishes import INSTRUCTION, PREFERENCE
from remanence.observers.observable import observable
from remanence.observers.spoken import spoken_lines
from remanence.protocols import ExtractRequest
from remanence.providers.fallback import FallbackModel
from remanence.testing import FixedClock
from remanence.testing.models import ScriptedModel, cut_off
from remanence.types import ConversationRef, Fact, FactDraft, Message, Note

NOW = datetime(2026, 5, 1, 10, 0, tzinfo=UTC)


def request(*texts: str, known: tuple[Fact, ...] = ()) -> ExtractRequest:
    messages = tuple(
        Message.user(text, created_at=NOW).replace(seq=seq, tokens=len(text) // 4)
        for seq, text in enumerate(texts, start=1)
    )
    return ExtractRequest(
        conversation=ConversationRef("default", "a"),
        user="ana",
        messages=messages,
        notes=(),
        known=known,
        now=NOW,
    )


def fact(summary: str) -> Fact:
    return Fact(
        id="known-fact",
        tenant="default",
        user="ana",
        summary=summary,
        type="profile",
        created_at=NOW,
        valid_from=NOW,
    )


async def extracted(*texts: str) -> tuple[FactDraft, ...]:
    return await ExtractiveFacts().extract(request(*texts))


@pytest.mark.parametrize(
    ("text", "kind", "word"),
    [
        ("My name is Ana and I live in Lisbon.", "profile", "Lisbon"),
        ("I work as a nurse at Santa Maria hospital.", "profile", "nurse"),
        ("Ich wohne in Berlin und arbeite als Lehrerin.", "profile", "Berlin"),
        ("J'habite à Lyon depuis longtemps avec Paul.", "profile", "Lyon"),
        ("Vivo en Sevilla con mi hermana Carmen.", "profile", "Sevilla"),
        ("저는 서울에 살고 있어요.", "profile", "서울"),
        ("我住在北京，我喜欢喝茶。", "profile", "北京"),
        ("私は京都に住んでいます。", "profile", "京都"),
        ("I speak fluent Portuguese and German.", "profile", "Portuguese"),
        ("Je suis épileptique.", "profile", "épileptique"),
        ("My Dutch is about B1 since the summer.", "profile", "Dutch"),
        ("I prefer window seats.", "behavior", "window"),
        ("I'm going to call the dentist on Monday.", "event", "dentist"),
    ],
)
async def test_statements_become_facts_of_the_type_that_is_sure_or_of_the_profile(
    text: str, kind: str, word: str
) -> None:
    drafts = await extracted(text)

    assert [(draft.type, word in draft.summary) for draft in drafts] == [(kind, True)]
    assert (drafts[0].first_seq, drafts[0].valid_from) == (1, NOW)


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("I'm a type 1 diabetic, any ideas for a snack?", "I'm a type 1 diabetic"),
        ("Since I'm vegan, what should I order?", "Since I'm vegan"),
        (
            "I'm a widow with three boys, can you help me plan the summer?",
            "I'm a widow with three boys",
        ),
        ("Je suis diabétique de type 1, tu aurais une idée ?", "Je suis diabétique de type 1"),
        (
            "Ich habe zwei Kinder, Mia und Ben, was können wir am Samstag machen?",
            "Ich habe zwei Kinder, Mia und Ben",
        ),
        ("Mi marido es alérgico al marisco, ¿qué pedimos?", "Mi marido es alérgico al marisco"),
        ("我有两个孩子，米娅和小本，周六我们能做什么？", "我有两个孩子，米娅和小本"),
        ("私は糖尿病です、おやつは何がいいですか？", "私は糖尿病です"),
        ("زوجي يعمل في طنطا، كم مرة يمر القطار؟", "زوجي يعمل في طنطا"),
        ("What can I cook tonight, I'm vegan?", "I'm vegan"),
        ("Что мне приготовить, я вегетарианка?", "я вегетарианка"),
        ("У меня двое сыновей, куда нам поехать летом?", "У меня двое сыновей"),
        (
            "Emma ist Vegetarierin und sie ist 9, was koche ich?",
            "Emma ist Vegetarierin und sie ist 9",
        ),
        ("Su padre es diabético, ¿qué ceno con él?", "Su padre es diabético"),
        ("Sua figlia è allergica alle noci, cosa cucino?", "Sua figlia è allergica alle noci"),
        (
            "Nora é celíaca e a sua irmã também, o que cozinho?",
            "Nora é celíaca e a sua irmã também",
        ),
        ("Nora eet vegan, zoals u weet, wat kook ik?", "Nora eet vegan, zoals u weet"),
        ("Te debo 30 euros, ¿vale?", "Te debo 30 euros"),
    ],
)
async def test_what_a_sentence_states_beside_its_question_is_a_fact(text: str, stated: str) -> None:
    assert [draft.summary for draft in await extracted(text)] == [stated]


@pytest.mark.parametrize(
    ("text", "wish"),
    [
        ("Keep your replies brief, right?", "Keep your replies brief"),
        ("Nenn mich bitte Kiki, ja?", "Nenn mich bitte Kiki"),
        ("Réponds toujours en trois lignes, d'accord?", "Réponds toujours en trois lignes"),
        ("Rispondi sempre in italiano, va bene?", "Rispondi sempre in italiano"),
        ("Sin emojis en tus respuestas, ¿vale?", "Sin emojis en tus respuestas"),
    ],
)
async def test_what_a_sentence_wishes_before_it_asks_to_agree_is_a_wish(
    text: str, wish: str
) -> None:
    (found,) = await extracted(text)

    assert (found.summary, found.type) == (wish, "behavior")


@pytest.mark.parametrize(
    "text",
    [
        "Book me a table for two, okay?",
        "Schreib mir eine Mail an Tom, ja?",
        "Tradúceme esto, ¿vale?",
        "Do you prefer tea, coffee, cocoa?",
        "Tu préfères la mer, la montagne, la ville ?",
    ],
)
async def test_a_task_or_a_choice_in_a_question_is_no_wish(text: str) -> None:
    assert await extracted(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "Could you remember that my shoes are Brooks Ghost, size 6.5?",
        "Can you please remember that I'm allergic to wool?",
        "Could you store my code 99?",
        "Can you call me by my first name?",
        "Kannst du dir merken, dass ich vegan bin?",
        "Kannst du dir bitte merken, dass ich Schuhgröße 39 habe?",
        "Peux-tu noter que je suis allergique au latex ?",
    ],
)
async def test_a_request_to_remember_in_the_form_of_a_question_is_a_whole_fact(text: str) -> None:
    assert [draft.summary for draft in await extracted(text)] == [text.rstrip("? ")]


@pytest.mark.parametrize(
    "text",
    [
        "Can you book me a table at my favourite place?",
        "Could you find my keys?",
        "Could you list my phone number?",
        "Can you tell me what my size is?",
        "Kannst du mir meine Termine zeigen?",
        "Can you check whether my flight leaves at 9?",
        "Do you remember that I live in York?",
        "Can you explain why my rent went up?",
    ],
)
async def test_another_favor_that_is_asked_states_nothing(text: str) -> None:
    assert await extracted(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "Are you allergic to cats, Bo?",
        "@kim you work nights, right?",
        "@kim jij eet geen vlees, toch?",
        "Du isst kein Fleisch, oder?",
        "Ty jesz mięso, tak?",
        "Am I allergic to penicillin, Bo?",
        "Do I owe Kim 30 euros, Bo?",
    ],
)
async def test_a_question_to_somebody_states_nothing_of_who_asks(text: str) -> None:
    assert await extracted(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "If I lived in Oslo, would I pay more tax?",
        "Suppose I'm allergic, what then?",
        "When I'm in Paris, where should I stay?",
        "Is it true that I'm allergic, or not?",
        "Do you like tea, coffee, water?",
        "Does my sister live in Leeds, and is she married?",
        "¿Es cierto que soy alérgica, o no?",
        "Предположим, я врач, сколько я зарабатываю?",
        "如果我住在奥斯陆，要交多少税？",
        "لو كنت أعيش في أوسلو، كم سأدفع من الإيجار؟",
    ],
)
async def test_neither_a_question_nor_what_it_supposes_is_a_fact(text: str) -> None:
    assert await extracted(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "Wie sagt man auf Italienisch, ich bin Vegetarierin?",
        "Can you translate into Italian, I'm a vegetarian?",
        "Comment dit-on en italien, je suis végétarienne ?",
    ],
)
async def test_words_that_a_question_asks_to_translate_are_no_fact(text: str) -> None:
    assert await extracted(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "My left ankle is weak.",
        "She prefers coffee.",
        "Mon frère veut toujours la fenêtre.",
        "Meine Mutter nimmt jeden Morgen Tabletten.",
        "父はいつも早起きです。",
    ],
)
async def test_a_fact_that_asks_for_nothing_is_no_wish(text: str) -> None:
    assert [draft.tags for draft in await extracted(text)] in ([()], [])


@pytest.mark.parametrize(
    "text",
    [
        "Where do you live?",
        "Thanks a lot, that helps!",
        "Could you check the logs again please?",
        "The function returns a list of tuples.",
        "Translate to French: I live in Oslo and have three sons.",
        "Übersetze ins Englische: Ich wohne in Graz und bin Lehrer.",
        "Forget where I live, please.",
        "Borra mi número de teléfono, por favor.",
        "If I lived in Tokyo, what would my rent be?",
        'He texted me: "I moved to Denver, new number 555-0117".',
    ],
)
async def test_questions_courtesy_and_matters_of_the_task_are_no_facts(text: str) -> None:
    assert [draft for draft in await extracted(text) if not draft.forgets] == []


@pytest.mark.parametrize(
    "text",
    [
        "Translate into Portuguese: I quit my job. I have never been happier.",
        "Please translate this into German:\nMy brother lives in Oslo.\nI work at a bakery.",
        "Übersetze das ins Englische:\nIch arbeite in einer Bäckerei.\nMeine Tochter heißt Mia.",
        "Corrige este texto:\nMe mudé a Lima en marzo.\nTrabajo en un banco.",
    ],
)
async def test_sentences_after_a_request_about_a_text_are_no_facts(text: str) -> None:
    assert await extracted(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "Can you look at parser.py? By the way, I'm allergic to peanuts.",
        "Book a table for two, please. I'm vegan and I live in Leeds.",
        "¿Me ayudas con esto? Soy alérgica a las nueces y vivo en Quito.",
        "Schreib eine Mail an meinen Chef. Ich bin krank und komme erst am Montag wieder.",
        "Напиши письмо моему врачу. У меня аллергия на пенициллин, мне 45 лет.",
    ],
)
async def test_a_statement_after_another_request_is_a_fact(text: str) -> None:
    (draft,) = await extracted(text)

    assert text.endswith(draft.summary)


@pytest.mark.parametrize(
    "text",
    [
        "my list:\nI have to renew my passport before June.",
        "update:\nI work at Bosch now.",
        "hiya! Please always answer in metric units.",
        "todo: passport. I live in Leeds and work in York.",
        "груз: посылка. я не ем рыбу",
    ],
)
async def test_what_a_user_says_behind_a_greeting_or_the_label_of_a_note_is_a_fact(
    text: str,
) -> None:
    assert any(text.endswith(draft.summary) for draft in await extracted(text))


@pytest.mark.parametrize(
    "text",
    [
        "My boss wrote: I am on leave until the 9th. Never call me at home.",
        "Imagine: you are a pirate. I have one eye and I live on rum.",
        "把下面的话译成英文：你好。我住在北京，我有两只狗。",
        "Write a short story in the first person. I'm a 70 year old sailor and I live in Lisbon.",
        "Bir korsanın günlüğünü yaz. Adım Kara Mehmet ve bir gözüm kör.",
        "写一段老兵的独白。我八十岁，住在重庆，打过仗。",
    ],
)
async def test_what_follows_a_request_or_an_announcement_of_a_text_is_no_fact(text: str) -> None:
    assert await extracted(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "Hi there! Please translate this into German:\nI live in Oslo. I work at a bakery.",
        "Guten Morgen!\nMein Chef hat geschrieben:\nIch wohne in Graz und habe zwei Söhne.",
        "¡Hola! Gracias. Corrige este texto:\nMe mudé a Lima en marzo.",
        "你好！翻译这段话：\n我住在北京，我有两只狗。",
    ],
)
async def test_a_greeting_before_a_request_about_a_text_makes_none_of_it_a_fact(text: str) -> None:
    assert await extracted(text) == ()


async def test_a_request_about_a_text_behind_a_fact_does_not_undo_it() -> None:
    (draft,) = await extracted("I live in Oslo. Translate this into German: I work at a bakery.")

    assert draft.summary == "I live in Oslo."


@pytest.mark.parametrize(
    "text",
    [
        "Hello, I live in Porto.",
        "ok thanks, my daughter is called Ines",
        "Übrigens, ich wohne in Bremen.",
        "Bonsoir, je travaille dans une librairie.",
        "Hola, soy alérgica a las fresas.",
        "そういえば、私は京都に住んでいます。",
    ],
)
async def test_a_statement_behind_a_greeting_or_a_filler_is_a_fact(text: str) -> None:
    (draft,) = await extracted(text)

    assert draft.summary == text


@pytest.mark.parametrize(
    "text",
    [
        "Imagine, I live in Porto.",
        "Thanks a lot, you're great!",
        "Stell dir vor, ich wohne in Rom.",
    ],
)
async def test_a_preface_does_not_make_a_fact(text: str) -> None:
    assert await extracted(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "noch was: ich bin schwanger, 14. Woche",
        "pour info: ma fille est intolérante au lactose",
        "una cosa: sono intollerante al lattosio",
        "outra coisa: trabalho em Braga",
        "jeszcze jedno: jestem w ciąży, 14. tydzień",
        "и ещё: у меня астма",
        "あと一つ：妊娠五か月です",
    ],
)
async def test_a_statement_behind_a_lead_in_is_a_fact(text: str) -> None:
    (draft,) = await extracted(text)

    assert draft.summary == text


@pytest.mark.parametrize(
    "text",
    [
        "allergy: penicillin, badly",
        "traitement: Kardégic 75 depuis l'infarctus",
        "allergia: crostacei, grave",
        "alergia: camarão, grave",
        "alergia: orzechy ziemne, silna",
        "аллергия: орехи, сильная",
        "过敏：花生，很严重",
    ],
)
async def test_a_statement_in_the_form_of_a_note_is_a_fact(text: str) -> None:
    (draft,) = await extracted(text)

    assert draft.summary == text


@pytest.mark.parametrize(
    "text",
    [
        "Translate into French: one thing: I'm allergic to nuts",
        "Übersetze ins Englische: noch etwas: ich bin gegen Nüsse allergisch",
        "przetłumacz na angielski: jeszcze jedno: mam cukrzycę",
        "corrige ce texte:\nAllergie: arachides.\nJe ne veux plus être appelée le soir.",
        "corrige esto:\nAlergia: frutos secos.\nTomo Sintrom.",
        "翻译成英文：还有一点：我对花生过敏",
    ],
)
async def test_neither_a_lead_in_nor_the_form_of_a_note_makes_a_fact_of_a_text(text: str) -> None:
    assert await extracted(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "noch etwas: bitte immer mit Quellenangabe antworten",
        "autre point: réponds toujours en phrases courtes",
        "un'altra cosa: scrivimi sempre in forma breve",
        "kleinigheid: noem me nooit mevrouw",
        "ещё одно: всегда отвечай коротко",
        "한 가지 더: 항상 짧게 대답해 줘",
    ],
)
async def test_a_wish_behind_a_lead_in_is_a_wish(text: str) -> None:
    (draft,) = await extracted(text)

    assert not {INSTRUCTION, PREFERENCE}.isdisjoint(draft.tags)


@pytest.mark.parametrize(
    "text",
    [
        "pasillo, escalera y dos baños pequeños.",
        "salon, kuchnia i dwa balkony",
    ],
)
async def test_a_fact_with_no_sure_score_is_no_wish(text: str) -> None:
    (draft,) = await extracted(text)

    assert {INSTRUCTION, PREFERENCE}.isdisjoint(draft.tags)


async def test_a_secret_parts_no_sentence_and_hides_no_fact_after_it() -> None:
    (message,) = observable([Message.user("My password is hunter22. I work at Siemens.")])

    assert [line.text for line in spoken_lines([message])] == [
        "My password is [secret].",
        "I work at Siemens.",
    ]
    assert "I work at Siemens." in {draft.summary for draft in await extracted(message.text)}


async def test_of_a_very_long_text_the_whole_sentences_of_both_ends_are_read() -> None:
    numbered = (f"I visited harbour number {number} last year." for number in range(5_000))
    said = f"I keep bees. {' '.join(numbered)} I live in Rome."
    (message,) = observable([Message.user(said)])

    lines = [line.text for line in spoken_lines([message])]

    assert (lines[0], lines[-1]) == ("I keep bees.", "I live in Rome.")
    assert sum(map(len, lines)) < 20_000 < len(said)
    assert all(line.startswith("I visited harbour number ") for line in lines[1:-1])
    assert all(line.endswith(" last year.") for line in lines[1:-1])


@pytest.mark.parametrize("count", [3_000, 10_000])
async def test_of_thousands_of_short_lines_a_few_hundred_of_both_ends_are_read(count: int) -> None:
    numbers = "\n".join(str(number) for number in range(count))
    (message,) = observable([Message.user(f"I keep bees.\n{numbers}\nI live in Rome.")])

    lines = [line.text for line in spoken_lines([message])]

    assert (lines[0], lines[-1], len(lines)) == ("I keep bees.", "I live in Rome.", 400)


@pytest.mark.parametrize("text", ["🐈", "después"])
async def test_words_and_signs_without_content_are_no_fact(text: str) -> None:
    assert [draft.summary for draft in await extracted(f"I keep bees.\n{text}")] == ["I keep bees."]
    assert not await extracted(text)


async def test_a_name_that_is_spelt_like_a_function_word_is_content() -> None:
    assert [draft.summary for draft in await extracted("I'm from the US.")] == ["I'm from the US."]


async def test_a_fact_about_the_home_has_its_tag() -> None:
    (home,) = await extracted("I live in Oslo with my two dogs.")

    assert home.tags == ("slot:home",)


@pytest.mark.parametrize(
    "text",
    [
        "We meet in Cologne on Friday",
        "We're going on holiday to Spain in May",
        "We drove to Scotland on Saturday",
        "Wir zelten im August in Dänemark",
    ],
)
async def test_a_trip_is_not_a_home(text: str) -> None:
    (trip,) = await extracted(text)

    assert "slot:home" not in trip.tags


@pytest.mark.parametrize("before", ["Hi, I'm Ana Ferreira.", "Anything else?", "Noted."])
async def test_a_home_has_its_tag_whatever_was_said_before(before: str) -> None:
    said = request("I live in Lisbon.")
    messages = [Message.assistant(before), *said.messages]
    numbered = tuple(m.replace(seq=seq, tokens=9) for seq, m in enumerate(messages, start=1))
    (home,) = await ExtractiveFacts().extract(dataclasses.replace(said, messages=numbered))

    assert home.tags == ("slot:home",)


@pytest.mark.parametrize(
    ("name", "begins"), [(None, "I live"), ("Ana", "I live"), ("Bo Li", "Bo Li: I live")]
)
async def test_a_fact_names_its_speaker_unless_that_is_the_user(
    name: str | None, begins: str
) -> None:
    said = request("I live in Oslo with my two dogs.")
    named = dataclasses.replace(said, messages=(said.messages[0].replace(name=name),))
    (fact,) = await ExtractiveFacts().extract(named)

    assert fact.summary.startswith(begins)
    assert ("speaker:Bo Li" in fact.tags) is (name == "Bo Li")


async def test_a_user_whose_name_has_marks_is_still_the_user() -> None:
    said = request("I live in Oslo with my two dogs.")
    (message,) = said.messages
    named = dataclasses.replace(said, user="[Zoe#1]", messages=(message.replace(name="[zoe#1]"),))
    (fact,) = await ExtractiveFacts().extract(named)

    assert fact.summary.startswith("I live")


@pytest.mark.parametrize(("user", "name"), [*permutations(["Jos\u00e9", "jose\u0301"])])
async def test_a_user_whose_name_is_in_another_normal_form_is_still_the_user(
    user: str, name: str
) -> None:
    said = request("I live in Oslo with my two dogs.")
    (message,) = said.messages
    named = dataclasses.replace(said, user=user, messages=(message.replace(name=name),))
    (fact,) = await ExtractiveFacts().extract(named)

    assert fact.summary.startswith("I live")


def test_a_speaker_has_one_name_in_each_normal_form() -> None:
    speakers = {Message.user("Hi.", name=name).speaker for name in ("Jos\u00e9", "Jose\u0301")}

    assert speakers == {"Jos\u00e9"}


@pytest.mark.parametrize(
    ("user", "name", "speaker"),
    [("bo#1234", "bo-1234", "bo-1234"), ("bo-1234", "bo#1234", "bo-1234~0985029663b045b2")],
)
async def test_another_name_that_is_like_the_user_is_not_the_user(
    user: str, name: str, speaker: str
) -> None:
    said = request("I live in Oslo with my two dogs.")
    (message,) = said.messages
    named = dataclasses.replace(said, user=user, messages=(message.replace(name=name),))
    (fact,) = await ExtractiveFacts().extract(named)

    assert f"speaker:{speaker}" in fact.tags


@pytest.mark.parametrize("name", ["_user", "__", "\u200b", " ", "#user", "<user>", "us\u200ber"])
async def test_a_name_that_is_like_no_name_or_the_role_is_not_the_user(name: str) -> None:
    said = request("I live in Oslo with my two dogs.")
    (message,) = said.messages
    named = message.replace(name=name)
    (fact,) = await ExtractiveFacts().extract(dataclasses.replace(said, messages=(named,)))

    assert f"speaker:{named.speaker}" in fact.tags
    assert is_user(message.replace(name="User"), said.user)
    assert not is_user(named, said.user)


async def test_every_word_of_an_embedded_fact_was_said() -> None:
    texts = (
        "My name is Ana and I live in Lisbon. I prefer window seats, and I'm allergic to peanuts.",
        "Every morning I run 5 km. We decided to use PostgreSQL for the tracker.",
    )
    said = " ".join(texts).lower()

    drafts = await extracted(*texts)

    assert len(drafts) >= 4
    for draft in drafts:
        assert all(word.strip(",.;").lower() in said for word in draft.summary.split())


@pytest.mark.req("Z-56")
@pytest.mark.parametrize(
    "text",
    [
        '[{"summary": "Likes tea", "type": "behavior", "tags": ["food", "drink"]}]',
        '```json\n[{"summary": "Likes tea", "type": "behavior", "tags": ["food", "drink"],}]\n```',
        'Here they are:\n{"summary": "Likes tea", "type": "Behaviour", "tags": "food, Drink"}',
        '{"facts": [{"summary": "Likes  tea", "type": "preference", "tags": ["food", "drink"]}]}',
        '[{"summary": "Likes tea", "type": "behavior", "tags": ["food", "drink", 3]}, {"summ',
        '[{"summary": ""}, {"summary": "Likes tea", "type": "behavior", "tags": ["food", "drink"]}, 3]',
    ],
)
def test_a_list_of_facts_is_read_with_its_flaws(text: str) -> None:
    (found,) = read_facts(text) or ()

    assert (found.summary, found.type, found.tags) == ("Likes tea", "behavior", ("food", "drink"))


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        " [ ] ",
        "```json\n[]\n```",
        "`[]`",
        '{"facts": []}',
        "Nothing new was said.\n\n[\n]",
    ],
)
def test_an_empty_list_is_no_fact(text: str) -> None:
    assert read_facts(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I have nothing to say.",
        "{",
        "[[[",
        "{" * 5_000,
        "I cannot do that; an empty list would be [].",
        '[{"summary": "Ana calls it "home"", "type": "profile", "tags": []}]',
        '[{"summary":"Ana lives in Lisbon","tags":[],"sour',
        "summary: Ana lives in Lisbon\ntags: []",
        "[\n  {\n    'summary': 'Ana lives in Lisbon',\n    'tags': []\n  }\n]",
    ],
)
def test_what_is_no_list_is_told_from_an_empty_one(text: str) -> None:
    assert read_facts(text) is None


def test_characters_that_cannot_be_stored_are_taken_out_of_a_fact() -> None:
    (found,) = (
        read_facts(
            r'[{"summary": "\u0000"}, {"summary": "a\u0000b \ud83d", "tags": ["\u0000", "c\ud83d"]}]'
        )
        or ()
    )

    assert (found.summary, found.tags) == ("ab ?", ("c?",))


def test_an_unknown_type_is_knowledge() -> None:
    (found,) = read_facts('[{"summary": "x", "type": "rumour", "replaces": "fact 3"}]') or ()

    assert (found.type, found.replaces) == ("knowledge", 3)


async def test_a_model_is_shown_what_is_known_and_may_replace_it() -> None:
    model = ScriptedModel(['[{"summary": "Lives in Porto", "type": "profile", "replaces": 1}]'])

    (draft,) = await ModelFacts(model).extract(
        request("I moved to Porto.", known=(fact("Lives in Lisbon"),))
    )

    assert "1. Lives in Lisbon" in model.requests[0].prompt
    assert "I moved to Porto." in model.requests[0].prompt
    assert (draft.replaces, draft.first_seq) == ("known-fact", 1)


async def test_facts_that_a_model_weighs_in_its_thoughts_are_left_out() -> None:
    thoughts = 'Perhaps {"summary": "Likes coffee"}?\n</think>\n'
    model = ScriptedModel([thoughts + '[{"summary": "Likes tea"}]'])

    drafts = await ModelFacts(model).extract(request("I like tea."))

    assert [draft.summary for draft in drafts] == ["Likes tea"]


async def test_a_model_is_shown_old_facts_that_share_words_with_the_messages_before_the_newest() -> (
    None
):
    old = dataclasses.replace(fact("Rents a flat in Rotterdam with his family"), id="old")
    known = (*(fact(f"Has read {number} books") for number in range(120)), old)
    model = ScriptedModel(['[{"summary": "Lives in Delft", "replaces": 100}]'])

    (draft,) = await ModelFacts(model).extract(
        request("We moved to Delft, the whole family.", known=known)
    )

    assert draft.replaces == "old"
    assert "99. Has read 98 books" in model.requests[0].prompt


async def test_a_model_replaces_no_fact_that_it_was_not_shown() -> None:
    known = tuple(fact(f"Likes tea of kind {n}") for n in range(130))
    model = ScriptedModel(['[{"summary": "Likes coffee", "replaces": 115}]'])

    (draft,) = await ModelFacts(model).extract(request("I like coffee.", known=known))

    assert draft.replaces is None


async def test_a_model_is_shown_the_messages_before_and_their_numbers_count_as_said() -> None:
    asked, answered = request("Do you have room 731?", "Yes, since I was five.").messages
    model = ScriptedModel(
        ['[{"summary": "Has had room 731 since the age of five", "source": [1, 2]}]']
    )
    later = dataclasses.replace(request(), before=(asked,), messages=(answered,))

    (draft,) = await ModelFacts(model).extract(later)

    assert (draft.first_seq, draft.last_seq) == (2, 2)
    assert model.requests[0].prompt.startswith(
        "<data-1 earlier messages>\nFri 2026-05-01 10:00 UTC\n#1 user: Do you have room 731?\n"
        "</data-1>\n\n<data-1 messages>\nFri 2026-05-01 10:00 UTC\n#2 user: Yes, since I was five.\n"
    )


async def test_messages_after_the_last_note_reach_the_model_beside_the_notes() -> None:
    told = request("I grow roses. " * 800, "I keep bees.")
    note = Note(text="Ana grows roses", first_seq=1, last_seq=1)
    model = ScriptedModel(["NOTHING"])

    await ModelFacts(model).extract(dataclasses.replace(told, notes=(note,)))

    assert "Ana grows roses" in model.requests[0].prompt
    assert "I keep bees." in model.requests[0].prompt
    assert "I grow roses" not in model.requests[0].prompt


async def test_messages_with_wishes_reach_the_model_beside_their_notes() -> None:
    wishes = ["From now on, no emojis please.", "Kan du svara på svenska från och med nu?"]
    told = request("I grow roses. " * 800, *wishes, "I keep bees.")
    notes = (
        Note(text="Ana grows roses and bees", first_seq=1, last_seq=4),
        Note(text="svara på svenska", first_seq=3, last_seq=3, tag="Preference"),
    )
    model = ScriptedModel(["NOTHING"])

    await ModelFacts(model).extract(dataclasses.replace(told, notes=notes))

    assert (
        model.requests[0]
        .prompt.partition("</data-1>\n\n")[2]
        .startswith(
            "<data-1 noted messages>\nFri 2026-05-01 10:00 UTC\n"
            f"#2 user: {wishes[0]}\n#3 user: {wishes[1]}\n</data-1>\n\n"
        )
    )


async def test_a_fact_with_a_number_that_nobody_said_is_left_out() -> None:
    answer = '[{"summary": "Takes flight LH 455"}, {"summary": "Takes flight LH 454"}]'
    model = ScriptedModel([answer])

    drafts = await ModelFacts(model).extract(request("My flight is LH 454."))

    assert [draft.summary for draft in drafts] == ["Takes flight LH 454"]


async def test_a_fact_with_an_address_that_nobody_wrote_is_left_out() -> None:
    addresses = ["ana@evil.example", "https://evil.example", "www.evil.example", "ana@example.org"]
    answer = json.dumps([{"summary": f"Ana is at {address}"} for address in addresses])

    drafts = await ModelFacts(ScriptedModel([answer])).extract(request("I am ana@example.org."))

    assert [draft.summary for draft in drafts] == ["Ana is at ana@example.org"]


async def test_two_names_that_a_model_joins_by_a_slash_are_no_invented_address() -> None:
    facts = ["Uses socket.io/redis", "Uses socket.io/mongo"]
    model = ScriptedModel([json.dumps([{"summary": summary} for summary in facts])])

    drafts = await ModelFacts(model).extract(request("I use socket.io, and redis behind it."))

    assert [draft.summary for draft in drafts] == facts[:1]


@pytest.mark.parametrize("start", ["https://", "http://www.", "www.", ""])
async def test_the_beginning_of_a_web_address_may_be_added_or_left_out(start: str) -> None:
    model = ScriptedModel([json.dumps([{"summary": f"Blogs at {start}ana.example/blog/"}])])

    drafts = await ModelFacts(model).extract(request("I blog at ana.example/blog now."))

    assert len(drafts) == 1


async def test_an_address_of_which_a_secret_was_removed_counts_as_said() -> None:
    answer = '[{"summary": "Uses https://ana:[secret]@example.org/db"}]'
    said = request("I use https://ana:hunter2-xyz@example.org/db for my notes.")

    assert len(await ModelFacts(ScriptedModel([answer])).extract(said)) == 1


@pytest.mark.parametrize(
    ("said", "summary"),
    [
        ("Mia is nine.", "Mia is 9 years old"),
        ("We met ten years ago.", "Met her husband in 2016"),
        ("Lunch on Monday at half past twelve.", "Lunch on Monday, May 11, 2026, at 12:30"),
        ("The rent is 1.250 euros.", "Pays a rent of 1,250 euros"),
    ],
)
async def test_a_fact_may_have_a_number_that_was_said_in_words(said: str, summary: str) -> None:
    model = ScriptedModel([json.dumps([{"summary": summary}])])

    drafts = await ModelFacts(model).extract(request(said))

    assert [draft.summary for draft in drafts] == [summary]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("I cannot do that.", "malformed"),
        (cut_off('[{"summary": "Likes tea"}, {"summ'), "cut_off"),
    ],
)
async def test_an_answer_that_is_no_whole_list_counts_as_a_failure(
    answer: str, reason: str
) -> None:
    with pytest.raises(ObservationRejected) as caught:
        await ModelFacts(ScriptedModel(otherwise=answer)).extract(request("I like tea."))

    assert caught.value.reason == reason


async def test_a_list_that_is_long_for_its_messages_is_cut_off_with_a_log_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answer = json.dumps([{"summary": f"Likes tea of kind {n}"} for n in range(90)])
    model, text = ModelFacts(ScriptedModel(otherwise=answer)), "I like tea. " * 40
    short, long = await model.extract(request(text)), await model.extract(request(*[text] * 6))

    assert (len(short), len(long)) == (20, 36)
    assert "a: of 90 facts the first 20 were kept, as the messages are short" in caplog.messages


@pytest.mark.parametrize(("messages", "max_tokens"), [(1, 2_000), (6, 3_600), (60, 4_096)])
async def test_the_output_limit_of_facts_follows_from_the_length_of_the_messages(
    messages: int, max_tokens: int
) -> None:
    model = ScriptedModel(["NOTHING"])

    await ModelFacts(model).extract(request(*["I like tea. " * 40] * messages))

    assert model.requests[0].max_output_tokens == max_tokens


async def test_a_truncated_list_is_asked_for_again_with_the_whole_output_limit() -> None:
    answer = '[{"summary": "Likes tea"}, {"summary": "Likes cake"}]'
    model = ScriptedModel([cut_off(answer[:40]), answer])

    drafts = await ModelFacts(model).extract(request("I like tea."))

    assert [draft.summary for draft in drafts] == ["Likes tea", "Likes cake"]
    assert [asked.max_output_tokens for asked in model.requests] == [2_000, 4_096]


async def test_a_truncated_list_counts_if_it_is_as_long_as_what_is_kept() -> None:
    answer = json.dumps([{"summary": f"Likes tea of kind {n}"} for n in range(25)])[:-20]

    drafts = await ModelFacts(ScriptedModel([cut_off(answer)])).extract(request("I like tea."))

    assert len(drafts) == 20


async def test_nothing_is_an_answer() -> None:
    for answer in ("NOTHING", "[]"):
        assert await ModelFacts(ScriptedModel([answer])).extract(request("Hello.")) == ()


async def test_where_a_model_refuses_in_words_the_next_one_extracts_the_facts() -> None:
    first = ScriptedModel(["I'm sorry, but I can't help with that."], name="first")
    second = ScriptedModel(['[{"summary": "Likes tea.", "type": "preference"}]'], name="second")
    models = FallbackModel([first, second], clock=FixedClock())

    (draft,) = await ModelFacts(models).extract(request("I like tea."))

    assert draft.summary == "Likes tea."
