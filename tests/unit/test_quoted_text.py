"""Words of somebody else in a message of the user."""

import pytest
from tests.builders import numbered

from remanence import Memory, Message
from remanence.observers.extractive.quoted_text import quoted_spans
from remanence.observers.extractive.scored_text import relate, score_texts
from remanence.pacing import at_once
from remanence.types import Note

MAIL = (
    "Could you shorten this letter of my cousin?\n\nLiebe Vera,\nich bin nach Kiel gezogen. "
    "Ich arbeite jetzt als Hebamme.\nDeine Ulla"
)
FORWARDED = (
    "What should I answer?\n\nVon: Ulla Brandt <ulla@post.example>\nDatum: 3. Mai 2026 um 10:02\n"
    "Betreff: Neuigkeiten\n\nich bin nach Kiel gezogen. Ich arbeite jetzt als Hebamme."
)
BELOW_A_LINE = (
    "Can you sum this up?\n-------- Forwarded message --------\nI live in Turin now. I eat no meat."
)
REPLY = "> I moved to Kiel last week.\n> I work as a midwife now.\nShould I congratulate her?"
SIGNED = (
    "Look at this.\n\nFrom: Berit Dahl\nAbout: spring\n"
    "Dear members, I live in Narvik now and I am allergic to bees. Warmly, Berit"
)
PASTED = (
    "Back to work. Look at this.\n\nFrom: Berit Dahl <berit@post.example>\nTo: Vera\nSubject: spring\n"
    "Dear Vera, I live in Narvik now. My number is 5550 1234.\nWarmly, Berit\n\nCan I call her?"
)
SIGNED_BELOW = (
    "La mairie m'a répondu :\n\nDe : Odile Ferrand\nObjet : jardin\n\n"
    "Bonjour, je suis en congé jusqu'en mai et je travaille ensuite à Brest.\nCordialement, O. Ferrand"
)
CHAT = 'Look what Ben sent: "I quit my job at the bank. I live in Turin now, and I eat no meat."'


async def noted(memory: Memory, text: str) -> tuple[Note, ...]:
    chat = memory.conversation("a", user="vera")
    await chat.append(Message.user(text), Message.assistant("Done."))
    await chat.end()
    return tuple(note for segment in await chat.observations() for note in segment.notes)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        (MAIL, ["ich bin nach Kiel gezogen. Ich arbeite jetzt als Hebamme.\nDeine Ulla"]),
        (CHAT, ["I quit my job at the bank. I live in Turin now, and I eat no meat."]),
        (FORWARDED, [FORWARDED[FORWARDED.index("Von:") :]]),
        (BELOW_A_LINE, [BELOW_A_LINE[BELOW_A_LINE.index("---") :]]),
        (SIGNED, [SIGNED[SIGNED.index("From:") :]]),
        (PASTED, [PASTED[PASTED.index("From:") :]]),
        ("Name: Vera Holm\nMail: Vera <vera@post.example>\nI eat no meat.", []),
        (SIGNED_BELOW, [SIGNED_BELOW[SIGNED_BELOW.index("De :") :]]),
        ("About us:\nTown: Kiel\nDiet: vegan\nKids: Mia, Leo", []),
        ("About us:\nTown: Kiel\nDiet: vegan\n\nI work as a nurse, mostly at night", []),
        (REPLY, ["> I moved to Kiel last week.\n> I work as a midwife now."]),
        ("My details:\nName: Vera Holm\nMail: vera@post.example\nTown: Kiel\n\nI eat no meat.", []),
        (
            "她写道：「我已经搬到杭州去了，现在在一家医院里当护士，每天都很忙，不过我很喜欢这份新的工作和同事们。」",
            [
                "我已经搬到杭州去了，现在在一家医院里当护士，每天都很忙，不过我很喜欢这份新的工作和同事们。"
            ],
        ),
        ("Hi Vera,\nI moved to Kiel.\nUlla", []),
        ("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\nI live in Kiel.", []),
        ('I like "Blue in Green" and "So What".', []),
        (
            'I call my cat "Miso" since she came to us from the shelter in May, and my dog "Tofu".',
            [],
        ),
        (
            "Elle a dit «Bonjour». J'habite à Lisbonne et je suis infirmière. Et moi, «Salut».",
            [],
        ),
        (
            "Er sagte »Hallo«. Ich wohne in Bremen und arbeite als Krankenpfleger. Dann »Tschüss«.",
            [],
        ),
        ('The 5" pipe is here. I live in Lisbon and work as a nurse. The 6" pipe is not.', []),
        ("Er rief „Halt! Stopp!“ und lief weg.", ["Halt! Stopp!"]),
        ("My uncle texted 'I'm fine. I'm in Oslo.'", ["I'm fine. I'm in Oslo."]),
        ("She wrote: “All fine.\nI live in Turin now.”", ["All fine.\nI live in Turin now."]),
        ("The '90s were loud. My friends' house was not. My 'office' is a desk.", []),
        ('Er sagte „Ja." Ich wohne in Bonn. Ich mag Tee. Sie sagte „Nein."', []),
        ('Er rief „Halt! Stopp!" und lief weg.', ["Halt! Stopp!"]),
        ("Hon sa ”Hej! Jag bor i Lund.” Och jag?", ["Hej! Jag bor i Lund."]),
        ('I said yes." My boat is in Cork. I like it. She said "No."', []),
        ("Il a dit (« Je pars. Je vis à Nice. »)", ["Je pars. Je vis à Nice."]),
        ("I read “Dr. Faustus” and 'The Trial'. I liked ‘Dune’.", []),
        ("Buy these:\nEggs,\nMilk,\nBread", []),
        ("This is my plan.\n\nfirst the eggs,\nthen the bread", []),
    ],
)
def test_quotations_and_letters_are_found_by_their_form(text: str, quoted: list[str]) -> None:
    assert [text[start:end].strip() for start, end in quoted_spans(text)] == quoted


BEHIND_A_REMARK = "A pity. Let me paste what she wrote:\nI live in Turin now. I eat no meat."
SPEECH = (
    "mein chef meinte „am 24. oktober fliegen wir für drei monate nach chile, der untermieter heißt "
    "falk“"
)


@pytest.mark.parametrize(
    "text",
    [
        MAIL,
        CHAT,
        FORWARDED,
        BELOW_A_LINE,
        SIGNED,
        PASTED,
        SIGNED_BELOW,
        REPLY,
        BEHIND_A_REMARK,
        SPEECH,
    ],
)
async def test_what_somebody_else_wrote_is_no_fact_about_the_user(text: str) -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        await noted(memory, text)

        assert await memory.facts.list(user="vera") == ()


LETTER = "Mail from Ulla:\n\nDear Vera,\nI live in Kiel from April.\nBest regards,\nU. Brandt\n\n"


@pytest.mark.parametrize(
    ("letter", "own"),
    [
        (LETTER, "I move out on 30 May."),
        (
            "Mail von Ulla:\n\nLiebe Vera,\nich wohne in Kiel.\n\nViele Grüße\n\nUlla Brandt\nHaus GmbH\n\n",
            "Ich ziehe am 30. Mai um 10 Uhr aus.",
        ),
        (
            "A mail:\n\nFrom: Ulla <u@post.example>\nSent: Monday\n\nI live in Kiel.\nBest\nUlla\n\n",
            "I'm diabetic, by the way.",
        ),
        (
            "房东来信：\n\n尊敬的林女士：\n我四月起住在苏州。\n此致\n敬礼\n王磊\n\n",
            "我5月30日上午十点搬走。",
        ),
    ],
)
async def test_what_a_user_writes_behind_a_signed_letter_is_their_own(
    letter: str, own: str
) -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        notes = await noted(memory, letter + own)

        (fact,) = await memory.facts.list(user="vera")

    assert fact.summary == own
    assert own[:-1] in [note.text for note in notes]


@pytest.mark.parametrize(
    "behind",
    [
        "P.S. I sold my car last week.",
        "PS I have a dog. I work in Linz now.",
        "追伸：私は犬を飼いました。",
        "Dear Vera,\nI am the new caretaker. I live on the ground floor.",
        "On 3 May at 10:02, Karl <k@post.example> wrote:\nI work in Linz now. I have two cats.",
        "I work in Linz now.\nBest\nKarl",
    ],
)
async def test_a_postscript_or_another_letter_behind_a_signature_is_no_fact(behind: str) -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        await noted(memory, LETTER + behind)

        assert await memory.facts.list(user="vera") == ()


@pytest.mark.parametrize(
    "text",
    [
        "Mail from school:\n\nDear Vera,\nbring these.\nPassport\nBirth Record\n\nI work on Fridays.\nBest\nUlla",
        "Translate this poem:\n\nI live by the sea.\nThe sea is mine\nAnd Thine\n\nI have a dog. I eat no fish.",
    ],
)
async def test_lines_in_the_middle_of_a_text_of_somebody_else_sign_nothing(text: str) -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        await noted(memory, text)

        assert await memory.facts.list(user="vera") == ()


@pytest.mark.parametrize(
    ("own", "quoted"),
    [
        ("Je vis à Metz.", "Ma tante a écrit « Je suis guérie. Je vis à Gand. »"),
        ("Ich wohne in Kiel.", "Mein Onkel schrieb: „Mir geht's gut. Ich wohne in Graz.“"),
        ("I live in Leeds.", "My aunt texted 'I'm fine. I live in Cork.'"),
        (
            "I live in Leeds.",
            "Aunt Rosa, who runs a shop, wrote “I'm back. I live in Cork with two dogs.”",
        ),
        ("私は京都に住んでいます。", "姉は「結婚したよ。私は神戸に住んでいます。」と言った。"),
    ],
)
async def test_a_quotation_of_two_sentences_is_no_fact_and_ends_none(own: str, quoted: str) -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        await noted(memory, own)
        await noted(memory, quoted)

        (fact,) = await memory.facts.list(user="vera", history=True)

    assert fact.summary == own
    assert fact.valid_to is None


@pytest.mark.parametrize(
    "quoted",
    [
        "Ma tante a écrit « Je suis guérie. Je vis à Gand. »",
        "My aunt wrote “I'm fine. I live in Cork”",
        "姉は「結婚したよ。私は神戸に住んでいます」と言った",
    ],
)
async def test_a_note_keeps_a_short_quotation_together_with_its_marks(quoted: str) -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        (note,) = await noted(memory, quoted)

    assert note.text == quoted


async def test_the_users_own_words_behind_a_short_quotation_stay_a_fact() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        await noted(memory, "Mon père dit « Ça va. Je lis. » J'habite à Metz.")

        (fact,) = await memory.facts.list(user="vera")

    assert fact.summary == "J'habite à Metz."


@pytest.mark.parametrize(
    ("text", "frame", "word"),
    [
        (MAIL, "letter", "Kiel"),
        (CHAT, "Ben", "Turin"),
        (BELOW_A_LINE, "sum", "Turin"),
        (
            "Translate this into French: I have two sons. I am allergic to wasps. I live in York.",
            "Translate",
            "wasps",
        ),
    ],
)
async def test_notes_say_whose_words_they_are(text: str, frame: str, word: str) -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        (note,) = [note for note in await noted(memory, text) if word in note.text]

    assert note.priority != "CRITICAL"
    assert frame in note.text
    assert note.text.index("“") < note.text.index(word) < note.text.rindex("”")


async def test_a_note_introduces_a_letter_by_the_line_above_its_salutation() -> None:
    text = (
        "Kannst du mir bei diesem Brief helfen? Er ist vom Vermieter:\nSehr geehrte Frau O,\n"
        "hiermit erhöhe ich die Miete auf 965 Euro. Ich bin ab dem 3. Mai im Urlaub.\n"
        "Mit freundlichen Grüßen\nHartmut Böning"
    )
    async with Memory.open("sqlite:///:memory:") as memory:
        notes = await noted(memory, text)

    assert any(note.text.startswith("Er ist vom Vermieter: “") for note in notes)


async def test_a_note_quotes_lines_without_the_marks_before_them() -> None:
    text = (
        "The hospital wrote this to me, what matters in it?\n> Dear Ms W,\n"
        "> Your mother must not eat after midnight. I am on leave from 20 March.\n"
        "> Kind regards, Dr L"
    )
    async with Memory.open("sqlite:///:memory:") as memory:
        notes = await noted(memory, text)

    assert not any(">" in note.text for note in notes)


async def test_words_that_may_be_the_users_own_are_not_in_quotation_marks() -> None:
    text = (
        "Si hablara mejor inglés no te molestaría. Soy piloto de drones y tengo examen en Londres."
    )
    async with Memory.open("sqlite:///:memory:") as memory:
        (note,) = await noted(memory, text)

    assert note.text.startswith("Si hablara mejor inglés no te molestaría: Soy piloto de drones")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '"A Short Walk Through the Hills of Umbria, with Maps, third edition" is the book I lend out.',
            'third edition" is the book I lend out',
        ),
        (
            "„Die Vermessung aller Inseln der Nordsee in zwölf Karten“ ist mein liebstes Buch.",
            "Karten“ ist mein liebstes Buch",
        ),
        (
            "«Tutti i sentieri delle Dolomiti, nuova edizione illustrata» è il libro che cerco.",
            "illustrata» è il libro che cerco",
        ),
        ("“Mind the gap. Hold on.” hangs above my desk in Leeds.", "Hold on” hangs above my desk"),
        (
            '"Please reply in Dutch, always. Never use headings." is how I want it.',
            'Never use headings" is how I want it',
        ),
    ],
)
async def test_a_quotation_is_not_parted_from_its_predicate(text: str, expected: str) -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        notes = await noted(memory, text)

    assert any(expected in note.text for note in notes), notes


def test_a_few_words_of_the_user_are_not_joined_to_a_quotation_before_them() -> None:
    quoted = "«Hola a todos, me mudo a Lugo en mayo. No como carne, así que nada de barbacoa.»"
    said = f"Mi jefa escribió: {quoted} ¿Y ahora?"
    (text,) = at_once(score_texts(numbered(Message.user(said))))
    list(relate([text]))

    assert [said[start:end] for start, end in text.spans][-1] == "¿Y ahora?"


@pytest.mark.parametrize(
    "text",
    [
        "Look what Ben sent:\n> I am in Turin from tomorrow on and not back until next week.",
        'Look what Ben sent: "I am in Turin from tomorrow on and not back until next week."',
    ],
)
async def test_dates_in_the_words_of_somebody_else_stay_as_said(text: str) -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        (note,) = [note for note in await noted(memory, text) if "Turin" in note.text]

    assert "from tomorrow on" in note.text
    assert "(" not in note.text  # as in "next week (week of 2026-05-18)"


@pytest.mark.parametrize(
    "text",
    [
        "hey. so we finally got the flat!! jo and i are moving end of october",
        "hiya! Please always answer in metric units.",
        "my list:\nI have to renew my passport before June.",
        "We moved in May. These are my facts:\nI live in Hull. I am allergic to nuts.",
        "coche: un Seat rojo. Nunca conduzco de noche.",
    ],
)
async def test_a_greeting_or_a_label_does_not_say_that_what_follows_is_anothers(text: str) -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        notes = await noted(memory, text)

    assert not any("“" in note.text for note in notes)


async def test_the_same_sentence_of_the_user_alone_comes_first() -> None:
    async with Memory.open("sqlite:///:memory:") as memory:
        (note,) = await noted(memory, "I am allergic to wasps.")

    assert note.priority == "CRITICAL"
