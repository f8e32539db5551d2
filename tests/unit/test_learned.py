"""Learned scores of sentences: features, packed weights, scores and explanations."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.e2e.test_long_texts import calls_here
from tests.slow import slow_except
from tools.notes_corpus import lines
from tools.weights_file import dump

from remanence import Memory, Message
from remanence.observers.learned.features import Line, word_grams
from remanence.observers.learned.function_words import WORD, language_of, languages, parse
from remanence.observers.learned.score import Scorer, Scores, scorer
from remanence.observers.learned.statements import WHOLE, surroundings
from remanence.observers.learned.weights import (
    Weights,
    load,
    pack,
    parse as parse_weights,
    unpack,
)

CONVERSATION = [
    Line("Good morning!", "user"),
    Line("How can I help?", "assistant"),
    Line("I moved from Lisbon to Porto in January.", "user"),
    Line("From now on always answer in Portuguese.", "user"),
    Line("$ make test", "tool"),
    Line("Noted.", "assistant"),
]


def score(text: str) -> Scores:
    return scorer().score(Line(text, "user"))


def test_rows_survive_being_packed_added_and_unpacked() -> None:
    rows = [(-128, 127, 0), (5, -6, -7), (-128, 127, -1)]

    assert unpack(sum(map(pack, rows)), 3) == (-251, 248, -8)
    assert unpack(-3 * pack(rows[1]), 3) == (-15, 18, 21)


def test_weights_survive_being_written_and_read() -> None:
    weights = Weights(
        heads=("a", "b"),
        rows=bytes(range(256)),
        scales=(0.5, 0.25),
        biases=(-1.0, 2.0),
        cutoffs={"a": 0.5},
        strict={"b": 1.5},
    )

    read = parse_weights(dump(weights))

    assert (read.heads, read.rows) == (weights.heads, weights.rows)
    assert (read.scales, read.biases) == (weights.scales, weights.biases)
    assert (read.cutoffs, read.strict) == (weights.cutoffs, weights.strict)


@pytest.mark.parametrize(
    "rows",
    [bytes(1000), bytes(999) + b"\x05", b"\xff" + bytes(511), bytes(254) + b"\x01" + bytes(255)],
)
def test_weights_that_are_mostly_0_survive_being_written_and_read(rows: bytes) -> None:
    weights = Weights(heads=("a",), rows=rows, scales=(1.0,), biases=(0.0,))

    assert parse_weights(dump(weights)).rows == rows


def test_weights_take_at_most_a_megabyte_and_a_half() -> None:
    folder = Path(sys.modules[Scorer.__module__].__file__ or "").parent

    assert sum(path.stat().st_size for path in folder.glob("*.bin")) <= 1_500_000


def run(program: str, *, seed: str = "1") -> str:
    """The output of a new Python process, which has loaded nothing."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        check=True,
        timeout=60,
    )
    return done.stdout.decode().strip()


def test_a_conversation_scores_alike_in_every_process() -> None:
    program = (
        "from tests.unit.test_learned import CONVERSATION, scorer;"
        "print([scorer().score(line) for line in CONVERSATION])"
    )

    assert run(program, seed="1") == str([scorer().score(line) for line in CONVERSATION])


async def load_on_the_loop(function: str, file: str) -> int:
    """Observe, extract and reflect; return how much *function* read on the event loop."""
    async with Memory.open("sqlite:///:memory:") as memory:
        chat = memory.conversation("chat", user="ana")
        await chat.append(
            Message.user("I live in Lisbon. My number is 8814-2207."),
            Message.assistant("When did you move there?"),
            Message.user("Four years ago."),
            Message.user("Translate this: “I moved to Bergen.”"),
            Message.user("Forget the rule about my number. I moved to Porto."),
        )
        with calls_here(function, file) as lengths:
            await chat.end()
        assert await memory.facts.list(user="ana")
    return sum(lengths)


@pytest.mark.parametrize(
    ("function", "file"),
    slow_except(
        [("parse", "weights.py"), ("parse", "function_words.py"), ("_language", "language.py")],
        [("parse", "weights.py")],
    ),
)
def test_a_new_process_loads_weights_and_words_beside_the_event_loop(
    function: str, file: str
) -> None:
    program = (
        "import asyncio; from tests.unit.test_learned import load_on_the_loop;"
        f"print(asyncio.run(load_on_the_loop({function!r}, {file!r})))"
    )

    assert run(program) == "0"


@pytest.mark.parametrize(
    ("text", "worth", "personal", "inst", "forget"),
    [
        ("I moved from Lisbon to Porto in January.", 0.423, 0.675, -5.794, -5.552),
        ("ab jetzt bitte immer auf Deutsch antworten", 4.021, -3.416, 4.953, -4.856),
        ("我对花生过敏", 0.226, 2.668, -5.379, -5.471),
        ("olvida mi dirección antigua, por favor", 1.641, -3.792, -2.714, 5.133),
    ],
)
def test_a_sentence_has_the_scores_that_the_shipped_weights_give_it_everywhere(
    text: str, worth: float, personal: float, inst: float, forget: float
) -> None:
    scores = score(text)

    assert (scores["worth"], scores["personal"]) == (worth, personal)
    assert (scores["inst"], scores["forget"]) == (inst, forget)


def test_scores_tell_what_is_worth_noting_from_courtesy() -> None:
    scores = [scorer().score(line) for line in CONVERSATION]
    worth = [one["worth"] for one in scores]

    assert min(worth[2], worth[3]) > max(worth[0], worth[1], worth[4], worth[5])
    assert max(range(6), key=lambda at: scores[at]["inst"]) == 3
    assert max(range(6), key=lambda at: scores[at]["personal"]) == 2


def test_an_explanation_names_the_strongest_features_first() -> None:
    first = scorer().explain(CONVERSATION[2], head="worth", limit=5)

    amounts = [abs(part.amount) for part in first.strongest]
    assert len(amounts) == 5
    assert amounts == sorted(amounts, reverse=True)
    assert first.scores == scorer().score(CONVERSATION[2])


@pytest.mark.parametrize("line", [CONVERSATION[0], CONVERSATION[2]])
def test_the_parts_of_an_explanation_and_its_bias_add_up_to_the_score(line: Line) -> None:
    whole = scorer().explain(line, head="worth", limit=100_000)
    short = scorer().explain(line, head="worth", limit=2)

    assert whole.others == pytest.approx(0, abs=0.05)
    for one in (whole, short):
        parts = sum(part.amount for part in one.strongest) + one.others
        assert parts + one.bias == pytest.approx(one.scores["worth"])


def test_an_unknown_head_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'mood' is not a head: choose one of worth, "):
        scorer().explain(CONVERSATION[0], head="mood", limit=3)


@pytest.mark.parametrize("text", ["", " ", "\ud800", "_", "'", "?" * 10_000, "ab" * 10_000])
def test_any_text_has_scores(text: str) -> None:
    assert score(text).keys() == set(load().heads)


def test_a_sentence_scores_alike_whatever_else_its_message_says() -> None:
    said = "I am allergic to penicillin."
    alone = lines([("assistant", ["Hello."]), ("user", [said])])
    beside = lines([("assistant", ["Hello."]), ("user", ["Can you look at parser.py?", said])])

    assert scorer().score(list(alone)[-1]) == scorer().score(list(beside)[-1])


def test_the_message_that_it_answers_changes_the_score_of_a_sentence() -> None:
    asked = lines([("assistant", ["When do you fly to Abuja?"]), ("user", ["The 14th."])])

    assert scorer().score(list(asked)[-1]) != score("The 14th.")


def test_a_message_without_text_leaves_the_one_before_to_be_answered() -> None:
    said = lines([("assistant", ["Where to?"]), ("tool", []), ("user", ["Porto."])])

    assert [line.reply_to and line.reply_to.text for line in said] == [None, "Where to?"]


def test_n_grams_keep_the_bounds_of_words_where_a_script_has_them() -> None:
    assert word_grams("ab") == {" ab ", "word ab"}
    assert word_grams("東京") == {"東", "京", "東京", "word 東京"}
    assert word_grams("2024") == set()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Ich habe das nicht gewusst, aber wir können es noch ändern", "de"),
        ("Je ne mange plus de viande depuis janvier", "fr"),
        ("来月から岡山で働くことになりました", "ja"),
        ("我对花生过敏", "zh"),
        ("Меня зовут Анна, я живу в Казани", "ru"),
        ("mujhe aaj kuch nahi khana hai", "hi-latn"),
    ],
)
def test_the_language_of_a_text_is_that_of_its_script_or_its_small_words(
    text: str, code: str
) -> None:
    assert language_of(text, WORD.findall(text.lower())).code == code


def test_a_language_is_a_file_of_classes() -> None:
    language = parse("xx", "i: mi\nnomore: ne_plu\nwill: -os\nneg: mal-")
    words = WORD.findall("mi ne plu venos malbona")

    assert language.tag("", words) == [
        ("mi", ("i",)),
        ("ne", ()),
        ("plu", ("nomore",)),
        ("venos", ("will",)),
        ("malbona", ("neg",)),
    ]


def test_every_language_names_the_same_classes() -> None:
    classes = {
        name for one in languages() if one.code == "en" for x in one.words.values() for name in x
    }

    for language in languages():
        own = {name for found in language.words.values() for name in found}
        assert len(own & classes) >= 50, language.code
        assert all(re.fullmatch(r"[a-z]+", name) for name in own)


def test_each_function_word_of_a_language_is_found_in_its_texts() -> None:
    spaced = [language for language in languages() if language.anywhere is None]
    missed = [
        (language.code, entry)
        for language in spaced
        for entry, classes in language.words.items()
        if not set(classes) <= set(language.tag(entry, WORD.findall(entry))[-1][1])
    ]

    assert len(spaced) > 12
    assert missed == []


def test_a_word_with_an_ending_shares_features_with_the_word_in_each_script() -> None:
    pairs = (
        ("Oma", "Omas"),
        ("병원", "병원에서"),
        ("दिल्ली", "दिल्लीवाला"),
        ("больница", "больницу"),
    )

    for word, inflected in pairs:
        assert word_grams(word) & word_grams(inflected), word


def whole_frames(text: str) -> list[str]:
    (group,) = surroundings(Line(text, "user"))
    return [name for name in group if name.startswith(WHOLE)]


@pytest.mark.parametrize(
    ("one", "alike", "other"),
    [
        ("I'm a lawyer.", "I'm a nurse!", "She's a nurse."),
        ("Ich bin Gärtner.", "ich bin Zahnärztin", "Er ist Gärtner."),
        ("Я учитель.", "Я врач", "Он врач."),
    ],
)
def test_short_sentences_with_the_same_function_words_have_one_frame(
    one: str, alike: str, other: str
) -> None:
    assert whole_frames(one) == whole_frames(alike)
    assert not set(whole_frames(one)) & set(whole_frames(other))


def test_a_long_sentence_has_no_frame_as_a_whole() -> None:
    assert whole_frames("I'm a lawyer and have lived in Leeds since I was a child.") == []
