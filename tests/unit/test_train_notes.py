"""The script that fits the learned scores, beside the code that ships."""

import re
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

import numpy as np
import pytest
from tools import notes_corpus

from remanence.observers.learned.features import Line
from remanence.observers.learned.openings import FILE as OPENINGS, line_of
from remanence.observers.learned.score import scorer as open_scorer
from remanence.observers.learned.statements import WHOLE, statement_scorer
from remanence.observers.learned.topics import FILE as TOPICS, topics
from remanence.observers.learned.weights import load

BENCHMARKS = Path("benchmarks")
UNSEEN_TABLES = (
    *("statements", "statements_2", "answers", "asking", "borrowed", "common", "everyday"),
    *("first", "hasty", "messages", "plain", "style", "typical"),
)
MARK = 3
"""The length of the longest mark of a column, such as `yes`."""

Corpus: TypeAlias = list[list[notes_corpus.Sentence]]


@pytest.fixture(scope="module")
def train_notes() -> ModuleType:
    pytest.importorskip("sklearn", reason="needs the extra dev")
    return import_module("tools.train_notes")


@pytest.fixture(scope="module")
def fitted(train_notes: ModuleType) -> Corpus:
    units: Corpus = train_notes.conversations(held=False)
    return units


def test_the_script_computes_the_scores_that_the_package_gives(
    train_notes: ModuleType, fitted: Corpus
) -> None:
    units, weights = fitted[:6], load()

    expected = train_notes.predict(weights, train_notes.matrix_of(train_notes.lines_of(units)))

    assert train_notes.scores_of(weights, units) == pytest.approx(expected, abs=0.001)


def test_the_script_for_statements_computes_the_scores_that_the_package_gives(
    train_notes: ModuleType, fitted: Corpus
) -> None:
    train_statements = import_module("tools.train_statements")
    found = train_statements.examples(fitted[:6])
    scorer = statement_scorer()

    expected = train_notes.predict(scorer.weights, train_statements.Data(found).inputs)

    scores = np.array([list(scorer.score(one.line).values()) for one in found])
    assert scores == pytest.approx(expected, abs=0.001)


def test_a_frame_that_few_lines_have_is_not_fitted(train_notes: ModuleType) -> None:
    train_statements = import_module("tools.train_statements")
    line = Line("Soy panadero.", "user")

    for lines, is_fitted in (([line] * 7, False), ([line] * 8, True)):
        (group,) = train_statements.without_rare_frames(lines)(line)
        assert any(name.startswith(WHOLE) for name in group) == is_fitted
        assert "word 1 panadero" in group


def test_the_script_for_openings_computes_the_scores_that_the_package_gives(
    train_notes: ModuleType,
) -> None:
    train_openings = import_module("tools.train_openings")
    found = train_openings.openings()[:40]
    scorer = open_scorer(OPENINGS)

    expected = train_notes.predict(scorer.weights, train_openings.Data(found).inputs)

    scores = [list(scorer.score(line_of(one.text)).values()) for one in found]
    assert np.array(scores) == pytest.approx(expected, abs=0.001)


def test_the_weights_have_the_heads_that_the_script_fits(train_notes: ModuleType) -> None:
    weights = load()

    assert weights.heads == tuple(train_notes.HEADS)
    assert weights.cutoffs.keys() == set(weights.heads)
    assert weights.strict.keys() <= set(weights.heads)


def test_a_feature_of_one_side_or_a_rare_one_gets_a_larger_factor(train_notes: ModuleType) -> None:
    one_side, both_sides, rare = [1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]
    inputs = train_notes.sparse.csr_matrix(np.array([one_side, both_sides, rare]).T)
    truth, weights = np.array([True, True, False, False]), np.ones(4)

    factors = train_notes.factors_of(inputs, truth, weights, train_notes.Contrast(0.5, 0.0))
    by_count = train_notes.factors_of(inputs, truth, weights, train_notes.Contrast(0.0, 0.5))
    without = train_notes.factors_of(inputs, truth, weights, train_notes.NO_CONTRAST)

    assert factors[0] > factors[1]
    assert by_count[2] > by_count[0] == by_count[1]
    assert without.tolist() == [1, 1, 1]


@pytest.mark.slow  # only new data can change it: `make unseen`
def test_one_sentence_makes_a_message_a_statement_and_none_makes_it_another(
    train_notes: ModuleType,
) -> None:
    train_statements = import_module("tools.train_statements")
    arabic = takewhile(lambda one: one.language == "ar", train_statements.short())
    found = [one for number, one in enumerate(arabic) if one.message or number % 10 == 0]

    meant = train_statements.Data(found).weights[:, 0] > 0

    sentences: dict[tuple[str, bool], list[bool]] = {}
    for one, counts in zip(found, meant, strict=True):
        sentences.setdefault((one.message, one.is_stated), []).append(bool(counts))
    several = {key: counts for key, counts in sentences.items() if key[0]}
    assert len(several) > 100
    assert all(
        sum(counts) == (1 if is_stated else len(counts))
        for (_, is_stated), counts in several.items()
    )


@pytest.mark.slow  # only new data can change it: `make unseen`
def test_no_sentence_that_is_set_aside_is_fitted(train_notes: ModuleType, fitted: Corpus) -> None:
    units = {notes_corpus.unit(unit[0]) for unit in fitted}
    apart = {notes_corpus.unit(unit[0]) for unit in train_notes.conversations(held=True)}

    assert units.isdisjoint(apart)
    assert not any(unit[0].register in notes_corpus.UNSEEN_REGISTERS for unit in fitted)


@pytest.mark.slow  # only new data can change it: `make unseen`
def test_no_line_of_an_unseen_table_of_statements_is_fitted(
    train_notes: ModuleType, fitted: Corpus
) -> None:
    train_statements = import_module("tools.train_statements")
    fitted_lines = {
        sentence.text
        for unit in fitted
        for sentence in unit
        if sentence.speaker == "u" and sentence.register in (*train_notes.APART, *train_notes.PLAIN)
    }
    fitted_lines |= {one.line.text for one in train_statements.told()}
    fitted_lines |= {one.line.text for one in train_statements.short()}

    unseen = {
        cell
        for name in UNSEEN_TABLES
        for line in (BENCHMARKS / f"unseen_{name}.tsv").read_text("utf-8").splitlines()
        for cell in line.split("\t")[1:]
        if len(cell) > MARK
    }
    assert fitted_lines & unseen == set()


@pytest.mark.slow  # only new data can change it: `make unseen`
def test_no_unseen_request_to_forget_is_fitted(train_notes: ModuleType) -> None:
    train_forgetting = import_module("tools.train_forgetting")
    things = import_module("tools.train_asking").THINGS.read_text("utf-8")
    register = train_notes.conversations(held=False, forgetting=True)
    fitted = {one.line.text for one in train_forgetting.said(register)}
    fitted |= {re.sub("[⟦⟧]", "", row.partition(" | ")[2]) for row in things.splitlines()}
    unseen = {
        row.split("\t")[2]
        for table in train_forgetting.UNSEEN.values()
        for row in table.read_text("utf-8").splitlines()
    }
    unseen |= {
        row.split("\t")[1]
        for name in ("requests.tsv", "unseen_requests.tsv")
        for row in (BENCHMARKS / name).read_text("utf-8").splitlines()
    }

    assert not fitted & unseen


@pytest.mark.slow  # only new data can change it: `make unseen`
def test_no_exchange_that_is_set_aside_is_fitted() -> None:
    train_answers = import_module("tools.train_answers")
    fitted, unseen = (
        {(one.line.text, one.line.reply_to.text) for one in answers if one.line.reply_to}
        for answers in (train_answers.exchanges(), train_answers.unseen())
    )

    assert len(unseen) > MARK
    assert not fitted & unseen


def test_the_script_for_topics_computes_the_scores_that_the_package_gives(
    train_notes: ModuleType,
) -> None:
    train_topics = import_module("tools.train_topics")
    found = list(train_topics.texts())[::5_000]
    weights = load(TOPICS)

    scores = train_notes.predict(weights, train_topics.Data(found).inputs)

    odds = np.exp(scores)
    expected = odds / odds.sum(axis=1, keepdims=True)
    assert np.array([topics(one.text) for one in found]) == pytest.approx(expected)


def test_no_row_of_the_table_of_questions_is_fitted() -> None:
    train_topics = import_module("tools.train_topics")
    table = (BENCHMARKS / "unseen_questions.tsv").read_text("utf-8").splitlines()
    unseen = {row.split("\t")[3] for row in table}

    assert len(unseen) > MARK
    assert not unseen & {one.text for one in train_topics.texts()}
