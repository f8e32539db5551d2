"""Fit the weights of `remanence.observers.learned` to the labelled sentences of `data/notes`.

`python tools/train_notes.py` prints cross-validated figures over conversations, `--by-register` over
registers left out whole, which imitates a register that was never seen. `--write` writes the weights,
and `--final` prints their figures on what is set aside, which chooses nothing. Needs scikit-learn
(the `dev` extra). The same data and versions give the same weights.
"""

import argparse
import hashlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from math import sqrt
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_recall_curve

sys.path.insert(0, str(Path(__file__).parent))
import notes_corpus
import notes_figures

from remanence.observers.learned import weights as stored
from remanence.observers.learned.features import Line, Role, Start, features, word_grams
from remanence.observers.learned.score import ABSENT, NEIGHBOURS, STEPS, Scorer, neighbours_of

TARGET = Path(stored.__file__).with_name(stored.FILE)
BUCKETS = 1 << 16
OUTER, INNER = 5, 4
TEXT_C, CONTEXT_C = 5.0, 0.002
LATER = 0.3
"""Weight of a sentence for its worth, in a register where the worths are not as frequent as in
conversations."""
OWN = 10.0
"""How much less a head's own first score is regularised than the others, by its root."""
MIN_FOUND = 10
"""Sentences above a strict cutoff, for it to be believed."""

Corpus = list[list[notes_corpus.Sentence]]
Matrix: TypeAlias = Any  # a `scipy.sparse.csr_matrix`, which has no types
Floats = NDArray[np.float64]
Truth = Callable[[notes_corpus.Sentence], bool]
SPEAKERS: dict[str, Role] = {"u": "user", "a": "assistant", "t": "tool"}
STARTS: dict[str, Start] = {"+": "sentence", "/": "line"}


def labelled(*names: str) -> Truth:
    return lambda sentence: not sentence.labels.isdisjoint(names)


SLOTS = {
    "home": ("home", "address"),
    "work": ("job", "employer"),
    "contact": ("phone", "email"),
    "partner": ("partner",),
    "name": ("name",),
    "event": ("event", "plan", "travel"),
    "skill": ("skill", "language"),
}
"""Slots whose facts are stored in a way of their own, by the head that finds them."""


def in_slot(*names: str) -> Truth:
    return lambda sentence: sentence.slot in names


HEADS: dict[str, Truth] = {
    "worth": lambda sentence: sentence.worth >= 2,
    "vital": lambda sentence: sentence.worth == 3,
    "personal": lambda sentence: sentence.slot is not None,
    "quoted": labelled("quote", "trans", "fiction"),
    **{
        name: labelled(name)
        for name in (*notes_corpus.TAGS, "person", "advice", "world", *notes_corpus.FLAGS)
    },
    **{name: labelled(name) for name in notes_corpus.TIMES},
    **{f"fact:{name}": in_slot(*slots) for name, slots in SLOTS.items()},
}


def conversations(*, held: bool) -> Corpus:
    """Units of the part to fit, or of the part set aside, each with its sentences."""
    sentences = notes_corpus.read()
    apart = notes_corpus.held_out(sentences)
    units = [list(group) for _, group in groupby(sentences, key=notes_corpus.unit)]
    return [unit for unit in units if (notes_corpus.unit(unit[0]) in apart) == held]


def lines_of(unit: Sequence[notes_corpus.Sentence]) -> list[Line]:
    return [
        Line(text=s.text, role=SPEAKERS[s.speaker], start=STARTS.get(s.kind, "message"))
        for s in unit
    ]


def truth_of(units: Corpus) -> NDArray[np.bool_]:
    return np.array([[is_true(s) for is_true in HEADS.values()] for unit in units for s in unit])


def matrix_of(units: Corpus) -> Matrix:
    """A row per sentence, a column per bucket; each group of features divided as in `Scorer`."""
    buckets: dict[str, int] = {}
    rows, columns, values = [], [], []
    found = (one for unit in units for one in features(lines_of(unit)))
    for row, one in enumerate(found):
        grams = [*one.edges, *(gram for word in one.words for gram in word_grams(word))]
        for group in (grams, one.grammar, one.place):
            for name in group:
                if name not in buckets:
                    buckets[name] = stored.bucket(name, BUCKETS)
                rows.append(row)
                columns.append(buckets[name])
                values.append(1 / sqrt(len(group)))
    matrix = sparse.csr_matrix((values, (rows, columns)), shape=(max(rows) + 1, BUCKETS))
    matrix.sum_duplicates()
    return matrix


def weights_of(units: Corpus) -> Floats:
    """The weight of each sentence in a fit, a column per head."""
    later = is_later(units)
    weights = np.ones((len(later), len(HEADS)))
    for head in ("worth", "vital"):
        weights[later, list(HEADS).index(head)] = LATER
    return weights


def is_later(units: Corpus) -> NDArray[np.bool_]:
    later = notes_corpus.FITTED_REGISTERS
    return np.array([sentence.register in later for unit in units for sentence in unit])


def logistic(
    inputs: Matrix | Floats, truth: NDArray[np.bool_], *, weights: Floats, c: float
) -> LogisticRegression:
    if sparse.issparse(inputs):
        model = LogisticRegression(
            C=c, solver="liblinear", dual=True, tol=0.01, max_iter=300, random_state=0
        )
    else:
        model = LogisticRegression(C=c, solver="newton-cholesky")
    return model.fit(inputs, truth, sample_weight=weights)


def fit_text(inputs: Matrix, truth: NDArray[np.bool_], weights: Floats) -> stored.Layer:
    columns = zip(truth.T, weights.T, strict=True)
    return layer_of([logistic(inputs, column, weights=w, c=TEXT_C) for column, w in columns])


def fit_context(inputs: Floats, truth: NDArray[np.bool_], weights: Floats) -> stored.Layer:
    """Weights of the second scores, drawn towards the first score of the same head, not to zero."""
    models = []
    for at, column in enumerate(truth.T):
        eased = inputs.copy()
        eased[:, at] *= OWN
        model = logistic(eased, column, weights=weights[:, at], c=CONTEXT_C)
        model.coef_[0, at] *= OWN
        models.append(model)
    return layer_of(models)


def layer_of(models: Sequence[LogisticRegression]) -> stored.Layer:
    """Coefficients of a model per head, rounded to signed bytes."""
    scales = [float(np.abs(model.coef_).max()) / 127 or 1.0 for model in models]
    columns = [
        np.rint(model.coef_[0] / scale).astype(np.int8)
        for model, scale in zip(models, scales, strict=True)
    ]
    return stored.Layer(
        rows=np.stack(columns, axis=1).tobytes(),
        scales=tuple(scales),
        biases=tuple(float(model.intercept_[0]) for model in models),
    )


def text_steps(layer: stored.Layer, inputs: Matrix) -> Floats:
    """First scores in the steps of `Scorer`."""
    numbers = np.frombuffer(layer.rows, dtype=np.int8).reshape(len(layer), -1).astype(float)
    scores = (inputs @ numbers) * np.array(layer.scales) + np.array(layer.biases)
    steps: Floats = np.clip(np.rint(scores * STEPS), -127, 127)
    return steps


def context_inputs(units: Corpus, steps: Floats) -> Floats:
    """First scores of each sentence and its neighbours, side by side."""
    padded = np.vstack([steps, np.full(steps.shape[1], ABSENT)])
    places, start = [], 0
    for unit in units:
        places += [
            [start + at if at >= 0 else len(steps) for at in around]
            for around in neighbours_of(lines_of(unit))
        ]
        start += len(unit)
    places_of = np.array(places)
    return np.hstack([padded[places_of[:, part]] for part in range(len(NEIGHBOURS))])


def fit(units: Corpus, inputs: Matrix) -> stored.Weights:
    """Weights of both layers; the second sees scores of sentences that the first was not fitted to."""
    truth, weights = truth_of(units), weights_of(units)
    folds = np.repeat([fold(unit, INNER, "inner") for unit in units], list(map(len, units)))
    steps = np.zeros(truth.shape)
    for number in range(INNER):
        rest = folds != number
        layer = fit_text(inputs[rest], truth[rest], weights[rest])
        steps[~rest] = text_steps(layer, inputs[~rest])
    context = fit_context(context_inputs(units, steps) / STEPS, truth, weights)
    return stored.Weights(
        heads=tuple(HEADS),
        text=fit_text(inputs, truth, weights),
        context=replace(context, scales=tuple(scale / STEPS for scale in context.scales)),
    )


def fold(unit: Sequence[notes_corpus.Sentence], count: int, salt: str) -> int:
    name = f"{salt} {notes_corpus.unit(unit[0])}"
    return hashlib.sha256(name.encode()).digest()[0] % count


def scores_of(weights: stored.Weights, units: Corpus) -> Floats:
    """Scores by the code that ships, a column per head."""
    scorer = Scorer(weights)
    scores = [score for unit in units for score in scorer.score(lines_of(unit))]
    return np.array([[score[head] for head in HEADS] for score in scores])


def cross_validate(units: Corpus, key: Callable[[list[notes_corpus.Sentence]], object]) -> Floats:
    """Scores of each unit under weights fitted to units with another key."""
    inputs = matrix_of(units)
    keys = [key(unit) for unit in units]
    by_unit: dict[int, Floats] = {}
    for left_out in sorted(set(keys), key=str):
        rest = [unit for unit, k in zip(units, keys, strict=True) if k != left_out]
        rows = np.repeat([k != left_out for k in keys], list(map(len, units)))
        weights = fit(rest, inputs[rows])
        for at, unit in enumerate(units):
            if keys[at] == left_out:
                by_unit[at] = scores_of(weights, [unit])
        print(f"fitted without {left_out}", file=sys.stderr)
    return np.vstack([by_unit[at] for at in range(len(units))])


def cutoffs(truth: NDArray[np.bool_], scores: Floats) -> tuple[dict[str, float], dict[str, float]]:
    """By head, the score of the best F1, and the lowest one with a precision of 0.9."""
    balanced, strict = {}, {}
    for at, head in enumerate(HEADS):
        precision, recall, bounds = precision_recall_curve(truth[:, at], scores[:, at])
        f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-9)
        balanced[head] = float(bounds[f1[:-1].argmax()])
        enough = recall[:-1] * truth[:, at].sum() >= MIN_FOUND
        good = np.flatnonzero((precision[:-1] >= 0.9) & enough)
        if good.size:
            strict[head] = float(bounds[good[0]])
    return balanced, strict


def print_figures(
    title: str,
    units: Corpus,
    rows: NDArray[np.bool_],
    truth: NDArray[np.bool_],
    scores: Floats,
    at: dict[str, float],
) -> None:
    languages = np.array([sentence.language for unit in units for sentence in unit])
    cutoff = {head: at[head] for head in HEADS}
    notes_figures.print_heads(title, truth[rows], scores[rows], cutoff)
    notes_figures.print_languages(languages[rows], truth[rows], scores[rows], cutoff)


def report_set_aside(weights: stored.Weights) -> None:
    units = conversations(held=True)
    for title, unseen in (("set aside, registers seen", False), ("registers unseen", True)):
        part = [u for u in units if (u[0].register in notes_corpus.UNSEEN_REGISTERS) == unseen]
        truth, scores = truth_of(part), scores_of(weights, part)
        rows = np.ones(len(truth), dtype=np.bool_)
        print_figures(title, part, rows, truth, scores, weights.cutoffs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--by-register", action="store_true", help="leave out a register at a time")
    parser.add_argument("--write", action="store_true", help="write weights fitted to all of it")
    parser.add_argument("--final", action="store_true", help="only measure what is set aside")
    options = parser.parse_args()
    if options.final:
        report_set_aside(stored.load())
        return 0
    units = conversations(held=False)
    if options.by_register:
        scores = cross_validate(units, lambda unit: unit[0].register)
    else:
        scores = cross_validate(units, lambda unit: fold(unit, OUTER, "outer"))
    truth = truth_of(units)
    later = is_later(units)
    balanced, strict = cutoffs(truth[~later], scores[~later])
    for title, rows in (("conversations", ~later), ("later registers", later)):
        print_figures(f"cross-validated, {title}", units, rows, truth, scores, balanced)
    if options.write:
        weights = replace(fit(units, matrix_of(units)), cutoffs=balanced, strict=strict)
        TARGET.write_bytes(stored.dump(weights))
        print(f"\n{TARGET.name}: {TARGET.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
