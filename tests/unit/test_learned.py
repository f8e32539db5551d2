"""Learned scores of sentences: features, packed weights, scores and explanations."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from remanence.observers.learned.features import Line, features, word_grams
from remanence.observers.learned.function_words import WORD, language_of, languages, parse
from remanence.observers.learned.score import Scorer, neighbours_of, scorer
from remanence.observers.learned.weights import (
    FILE,
    Layer,
    Weights,
    dump,
    load,
    pack,
    parse as parse_weights,
    unpack,
)


def said(text: str, role: str = "user", start: str = "message") -> Line:
    return Line(text=text, role=role, start=start)  # type: ignore[arg-type]


CONVERSATION = [
    said("Good morning!"),
    said("How can I help?", "assistant"),
    said("I moved from Lisbon to Porto in January."),
    said("From now on always answer in Portuguese.", start="line"),
    said("$ make test", "tool"),
    said("Noted.", "assistant"),
]


def test_rows_survive_being_packed_added_and_unpacked() -> None:
    rows = [(-128, 127, 0), (5, -6, -7), (-128, 127, -1)]

    assert unpack(sum(map(pack, rows)), 3) == (-251, 248, -8)
    assert unpack(-3 * pack(rows[1]), 3) == (-15, 18, 21)


def test_weights_survive_being_written_and_read() -> None:
    text = Layer(rows=bytes(range(256)), scales=(0.5, 0.25), biases=(-1.0, 2.0))
    context = Layer(rows=bytes(24), scales=(0.1, 0.2), biases=(0.0, 0.0))
    weights = Weights(
        heads=("a", "b"), text=text, context=context, cutoffs={"a": 0.5}, strict={"b": 1.5}
    )

    read = parse_weights(dump(weights))

    assert (read.heads, read.text, read.context) == (weights.heads, text, context)
    assert (read.cutoffs, read.strict) == (weights.cutoffs, weights.strict)


def test_weights_take_at_most_a_megabyte_and_a_half() -> None:
    path = Path(sys.modules[Scorer.__module__].__file__ or "").with_name(FILE)

    assert path.stat().st_size <= 1_500_000
    assert len(load().context) == 6 * len(load().heads)


def test_a_conversation_scores_alike_in_every_process() -> None:
    program = (
        "from tests.unit.test_learned import CONVERSATION, scorer;"
        "print(scorer().score(CONVERSATION))"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    }

    assert len(runs) == 1
    assert runs.pop().decode().strip() == str(scorer().score(CONVERSATION))


@pytest.mark.parametrize(
    ("text", "worth", "personal", "inst", "forget"),
    [
        ("I moved from Lisbon to Porto in January.", 2.206, 1.543, -3.931, -4.867),
        ("ab jetzt bitte immer auf Deutsch antworten", 2.899, -0.391, 3.319, -5.299),
        ("我对花生过敏", 0.632, 2.026, -6.963, -5.692),
        ("olvida mi dirección antigua, por favor", 0.93, -2.081, -3.709, 6.183),
    ],
)
def test_a_sentence_has_the_scores_that_the_shipped_weights_give_it_everywhere(
    text: str, worth: float, personal: float, inst: float, forget: float
) -> None:
    (scores,) = scorer().score([said(text)])

    assert (scores["worth"], scores["personal"]) == (worth, personal)
    assert (scores["inst"], scores["forget"]) == (inst, forget)


def test_scores_tell_what_is_worth_noting_from_courtesy() -> None:
    scores = scorer().score(CONVERSATION)
    worth = [one["worth"] for one in scores]

    assert min(worth[2], worth[3]) > max(worth[0], worth[1], worth[4], worth[5])
    assert max(range(6), key=lambda at: scores[at]["inst"]) == 3
    assert max(range(6), key=lambda at: scores[at]["personal"]) == 2


def test_an_explanation_names_the_strongest_features_first() -> None:
    first, *_ = scorer().explain(CONVERSATION[2:3], head="worth", limit=5)

    amounts = [abs(part.amount) for part in first.strongest]
    assert len(amounts) == 5
    assert amounts == sorted(amounts, reverse=True)
    assert first.scores == scorer().score(CONVERSATION[2:3])[0]


def test_the_parts_of_an_explanation_add_up_to_the_difference_of_two_scores() -> None:
    def explain(line: Line) -> tuple[float, float]:
        (one,) = scorer().explain([line], head="worth", limit=100_000)
        return one.scores["worth"], sum(part.amount for part in one.strongest)

    (score, parts), (low_score, low_parts) = map(explain, (CONVERSATION[2], CONVERSATION[0]))

    rounding = 0.3  # first scores are rounded to sixteenths
    assert score - low_score == pytest.approx(parts - low_parts, abs=rounding)


def test_an_unknown_head_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'mood' is not a head: choose one of worth, "):
        scorer().explain(CONVERSATION, head="mood", limit=3)


def test_no_lines_have_no_scores() -> None:
    assert scorer().score([]) == []
    assert features([]) == []


@pytest.mark.parametrize("text", ["", " ", "\ud800", "_", "'", "?" * 10_000, "ab" * 10_000])
def test_any_text_has_scores(text: str) -> None:
    assert scorer().score([said(text)])[0].keys() == set(load().heads)


def test_a_neighbour_changes_the_score_of_a_sentence() -> None:
    alone = scorer().score([said("The 14th.")])
    asked = scorer().score([said("When do you fly to Abuja?", "assistant"), said("The 14th.")])

    assert alone[0] != asked[1]


def test_a_line_has_six_neighbours_within_its_message_and_beyond() -> None:
    lines = [said("a"), said("b", start="line"), said("c", "assistant")]

    assert list(neighbours_of(lines)) == [
        (0, -1, 1, 0, -1, 2),
        (1, 0, 2, 0, -1, 2),
        (2, 1, -1, 2, 1, -1),
    ]


def test_n_grams_keep_the_bounds_of_words_where_a_script_has_them() -> None:
    assert word_grams("ab") == {" ab", "ab ", " ab ", "word ab"}
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
    assert language_of([text]).code == code


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
