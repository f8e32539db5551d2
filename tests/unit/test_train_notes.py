"""The script that fits the learned scores, beside the code that ships."""

import pytest

pytest.importorskip("sklearn", reason="needs remanence[dev]")

import numpy as np
from tools import notes_corpus, train_notes, train_statements

from remanence.observers.learned.statements import statement_scorer
from remanence.observers.learned.weights import load


def test_the_script_computes_the_scores_that_the_package_gives() -> None:
    units, weights = train_notes.conversations(held=False)[:6], load()

    expected = train_notes.predict(weights, train_notes.matrix_of(train_notes.lines_of(units)))

    assert train_notes.scores_of(weights, units) == pytest.approx(expected, abs=0.001)


def test_the_script_for_statements_computes_the_scores_that_the_package_gives() -> None:
    found = train_statements.examples(train_notes.conversations(held=False)[:6])
    scorer = statement_scorer()

    expected = train_notes.predict(scorer.weights, train_statements.Data(found).inputs)

    scores = np.array([list(scorer.score(one.line).values()) for one in found])
    assert scores == pytest.approx(expected, abs=0.001)


def test_the_weights_have_the_heads_that_the_script_fits() -> None:
    weights = load()

    assert weights.heads == tuple(train_notes.HEADS)
    assert weights.cutoffs.keys() == set(weights.heads)
    assert weights.strict.keys() <= set(weights.heads)


def test_no_sentence_that_is_set_aside_is_fitted() -> None:
    fitted = {notes_corpus.unit(unit[0]) for unit in train_notes.conversations(held=False)}
    apart = {notes_corpus.unit(unit[0]) for unit in train_notes.conversations(held=True)}

    assert fitted.isdisjoint(apart)
    assert not any(
        unit[0].register in notes_corpus.UNSEEN_REGISTERS
        for unit in train_notes.conversations(held=False)
    )
