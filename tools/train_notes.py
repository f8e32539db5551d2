"""Fit the weights of `remanence.observers.learned` to the labelled sentences of `data/notes`.

`python -m tools.train_notes` prints cross-validated figures over conversations, `--by-register` over
registers left out whole, which imitates a register that was never seen. `--write` writes the weights,
and `--final` prints their figures on what is set aside, which chooses nothing. Needs scikit-learn
(the `dev` extra). The same data and versions give the same weights.
"""

import argparse
import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress, groupby
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_recall_curve
from tools import notes_corpus, notes_figures
from tools.weights_file import dump

from remanence.observers.extractive.sentence_scores import TAGS
from remanence.observers.learned import weights as stored
from remanence.observers.learned.features import Line, features, word_grams
from remanence.observers.learned.score import MoreFeatures, Scorer, no_more

TARGET = Path(stored.__file__).with_name(stored.FILE)
BUCKETS = 1 << 17
FOLDS = 5
C = 5.0
LEVELS = 42
"""Levels to which coefficients are rounded, on either side of 0; fewer take less space."""
LEVELS_OF_NOTES = 16
LATER = 0.3
"""Weight of a sentence for its worth, in a register where the worths are not as frequent as in
conversations."""
WEIGHTS = {notes_corpus.RULES: 0.2, notes_corpus.TASKS: 0.2}
"""Weight of a line of a register that has more instructions, or requests, than conversations have."""
APART = (
    *(notes_corpus.LOOK_ALIKES, notes_corpus.CHANGES, notes_corpus.ANSWERS),
    *(notes_corpus.MESSAGES, notes_corpus.STYLE),
)
"""Registers for the scores of statements alone (`train_statements.py`): what makes their lines no
statements stands in other lines, which these scores do not read."""
PLAIN = (notes_corpus.EVERYDAY, notes_corpus.PLAIN, notes_corpus.TYPICAL, notes_corpus.COMMON)
PLAIN_WEIGHTS = {"quoted": 1.0, "inst": 0.3, "pref": 0.3, "personal": 0.3}
"""Weight of the messages of these registers by head, 0 if it is not named. In conversations people seldom write "I am allergic
to nuts.", but have it translated, and seldom give a rule in its plainest words."""
NOT_HASTY = ("personal", "inst", "pref")
"""Heads for which talks typed in haste do not count: their fragments would teach that a few words
tell a fact or a rule that can be read alone."""
BEGINNING = 0.3
"""Weight of the first sentence of a conversation for its dependence, as nothing is before it."""
VITAL = 3
"""Worth of what must never be lost."""
MIN_FOUND = 10
"""Sentences above a strict cutoff, for it to be believed."""

USUAL_COUNT = 100
"""Lines with a feature of usual frequency."""


class Contrast(NamedTuple):
    """How far `factors_of` tells features apart."""

    share: float
    """Share of a factor that the ratio of a feature decides."""
    rarity: float
    """Power of its count by which a factor falls, from 1 at `USUAL_COUNT`."""
    added: float = 0.6
    """Counts that are added to those of a feature, in the ratio of the two sides."""


CONTRAST = Contrast(share=0.3, rarity=0.15)
NO_CONTRAST = Contrast(share=0.0, rarity=0.0)

Corpus = list[list[notes_corpus.Sentence]]
Matrix: TypeAlias = Any  # a `scipy.sparse.csr_matrix`, which has no types
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Truth = Callable[[notes_corpus.Sentence], bool]


def labelled(*names: str) -> Truth:
    return lambda sentence: not sentence.labels.isdisjoint(names)


LABELS = {
    "Preference": {"inst", "pref"},
    "NextStep": {"open", "next"},
    "Issue": {"issue"},
    "Outcome": {"out"},
}
"""Labels of the lines that a tag is right for."""
HEADS: dict[str, Truth] = {
    "worth": lambda sentence: sentence.worth >= 2,
    "vital": lambda sentence: sentence.worth >= VITAL,
    "personal": lambda sentence: sentence.slot is not None,
    "quoted": labelled("quote", "trans", "fiction"),
    **{name: labelled(name) for name in ("dec", "pref", "issue", "next", "out", "fut", "habit")},
    **{name: labelled(name) for name in notes_corpus.FLAGS if name != "remember"},
    "dependent": lambda sentence: bool(sentence.is_dependent),
    "output": lambda sentence: sentence.worth >= 2,
    "home": lambda sentence: sentence.slot in ("home", "address"),
}


def conversations(*, held: bool, forgetting: bool = False) -> Corpus:
    """Units of the part to fit, or of the part set aside, each with its sentences.

    The register with look-alikes of requests to forget is left out unless it is asked for.
    """
    sentences = notes_corpus.read()
    if not forgetting:
        sentences = [one for one in sentences if one.register != notes_corpus.FORGETTING]
    apart = notes_corpus.held_out(sentences)
    units = [list(group) for _, group in groupby(sentences, key=notes_corpus.unit)]
    return [unit for unit in units if (notes_corpus.unit(unit[0]) in apart) == held]


def truth_of(units: Corpus) -> Flags:
    return np.array([[is_true(s) for is_true in HEADS.values()] for unit in units for s in unit])


def matrix_of(lines: Iterable[Line], more: MoreFeatures = no_more, size: int = BUCKETS) -> Matrix:
    """A row per line, a column per bucket."""
    return matrix((groups_of(line, more) for line in lines), size)


def groups_of(line: Line, more: MoreFeatures) -> Iterator[Sequence[str]]:
    found = features(line)
    yield [gram for word in found.words for gram in word_grams(word)]
    yield from (found.grammar, found.shape, *more(line))


def matrix(found: Iterable[Iterable[Sequence[str]]], size: int) -> Matrix:
    """A row per set of groups, a column per bucket; each group of features divided as in `Scorer`."""
    buckets: dict[str, int] = {}
    rows, columns, values = [], [], []
    row = -1
    for row, groups in enumerate(found):
        for group in groups:
            for name in sorted(group):  # as sets have another order in each run
                if name not in buckets:
                    buckets[name] = stored.bucket(name, size)
                rows.append(row)
                columns.append(buckets[name])
                values.append(1 / sqrt(len(group)))
    made = sparse.csr_matrix((values, (rows, columns)), shape=(row + 1, size))
    made.sum_duplicates()
    return made


def lines_of(units: Corpus) -> list[Line]:
    return [line for unit in units for line in notes_corpus.lines_of(unit)]


def weights_of(units: Corpus) -> Floats:
    """The weight of each sentence in a fit, a column per head."""
    later = is_later(units)
    registers = np.array([sentence.register for unit in units for sentence in unit])
    weights = np.ones((len(later), len(HEADS)))
    for register, weight in WEIGHTS.items():
        weights[registers == register] = weight
    for head in ("worth", "vital"):
        weights[later, list(HEADS).index(head)] *= LATER
    for head in NOT_HASTY:
        weights[registers == notes_corpus.HASTY, list(HEADS).index(head)] = 0
    weights[np.isin(registers, PLAIN)] = [PLAIN_WEIGHTS.get(head, 0.0) for head in HEADS]
    dependent = list(HEADS).index("dependent")
    begins = [not number for unit in units for number in range(len(unit))]
    weights[begins, dependent] *= BEGINNING
    unmarked = [sentence.is_dependent is None for unit in units for sentence in unit]
    weights[unmarked, dependent] = 0
    speakers = np.array([sentence.speaker for unit in units for sentence in unit])
    output = list(HEADS).index("output")
    weights[speakers != "t", output] = 0
    weights[np.ix_(registers == "tools", np.arange(len(HEADS)) != output)] = 0
    return weights


def is_later(units: Corpus) -> Flags:
    later = notes_corpus.FITTED_REGISTERS
    return np.array([sentence.register in later for unit in units for sentence in unit])


def is_usual(units: Corpus) -> Flags:
    """The sentences of conversations whose labels are as frequent, and as hard, as in life."""
    others = (*notes_corpus.FITTED_REGISTERS, *notes_corpus.TALKS)
    return np.array([sentence.register not in others for unit in units for sentence in unit])


def predict(weights: stored.Weights, inputs: Matrix) -> Floats:
    """Scores of the rows of a matrix, a column per head."""
    numbers = np.frombuffer(weights.rows, dtype=np.int8).reshape(weights.buckets, -1).astype(float)
    scores: Floats = (inputs @ numbers) * np.array(weights.scales) + np.array(weights.biases)
    return scores


def factors_of(inputs: Matrix, truth: Flags, weights: Floats, contrast: Contrast) -> Floats:
    """Factors of the columns of a fit: a feature with a large one gets its coefficient for less.

    These are features that are rare, and those that stand mostly on one side, by the ratio of their
    naive Bayes probabilities (Wang and Manning, "Baselines and Bigrams", 2012).
    """
    on, off = (np.asarray(inputs.T @ (weights * side)).ravel() for side in (truth, ~truth))
    seen, share = on + off > 0, on.sum() / (on.sum() + off.sum())
    on, off = on + contrast.added * share, off + contrast.added * (1 - share)
    ratios = np.abs(np.log(on / on.sum()) - np.log(off / off.sum()))
    counts = np.asarray((inputs > 0).sum(axis=0)).ravel()
    factors: Floats = (USUAL_COUNT / np.maximum(counts, 1)) ** contrast.rarity
    factors *= 1 + contrast.share * (ratios / ratios[seen].mean() - 1)
    return factors


class Table:
    """Rows of features, each with its truth and its weight for every head."""

    heads: tuple[str, ...] = tuple(HEADS)
    strength = C
    levels = LEVELS
    levels_of: Mapping[str, int] = {}
    """By head, where it is not `levels`."""
    contrast = NO_CONTRAST
    is_sparse = False
    """Most coefficients are 0, by an L1 penalty instead of L2."""
    inputs: Matrix
    truth: Flags
    weights: Floats

    @property
    def to_fit(self) -> Matrix:
        """The features of `inputs` that a fit knows."""
        return self.inputs

    def fit(self, rows: Flags | slice = slice(None)) -> stored.Weights:
        """A logistic regression per head, fitted to some of the rows, and rounded to integers."""
        columns, scales, biases = [], [], []
        by_head = zip(self.heads, self.truth[rows].T, self.weights[rows].T, strict=True)
        for head, truth, weights in by_head:
            coefficients, bias = self._fit(self.to_fit[rows], truth, weights)
            levels = self.levels_of.get(head, self.levels)
            scale = float(np.abs(coefficients).max()) / levels or 1.0
            columns.append(np.rint(coefficients / scale).astype(np.int8))
            scales.append(scale)
            biases.append(bias)
        return stored.Weights(
            heads=self.heads,
            rows=np.stack(columns, axis=1).tobytes(),
            scales=tuple(scales),
            biases=tuple(biases),
        )

    def _fit(self, inputs: Matrix, truth: Flags, weights: Floats) -> tuple[Floats, float]:
        factors = factors_of(inputs, truth, weights, self.contrast)
        model = LogisticRegression(
            C=self.strength,
            l1_ratio=float(self.is_sparse),
            dual=not self.is_sparse,
            solver="liblinear",
            tol=0.01,
            max_iter=300,
            random_state=0,
        ).fit(inputs @ sparse.diags(factors), truth, sample_weight=weights)
        return model.coef_[0] * factors, float(model.intercept_[0])

    def cross_validate(self, keys: Iterable[object]) -> Floats:
        """Scores of each row, a column per head, under weights fitted to rows with other keys."""
        names = np.array([str(key) for key in keys])
        scores = np.zeros(self.truth.shape)
        for left_out in sorted(set(names)):
            there = names == left_out
            scores[there] = predict(self.fit(~there), self.inputs[there])
            print(f"fitted without {left_out}", file=sys.stderr)
        return scores


class Sentences(Table):
    """The sentences of conversations."""

    levels = LEVELS_OF_NOTES
    contrast = CONTRAST

    def __init__(self, units: Corpus) -> None:
        self.units = units
        self.inputs = matrix_of(lines_of(units))
        self.truth = truth_of(units)
        self.weights = weights_of(units)


def options_of(description: str | None, **flags: str) -> argparse.Namespace:
    """Read the flags of a script, which has `--write` beside those that are given."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--write", action="store_true", help="write weights fitted to all of it")
    for name, help_text in flags.items():
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, action="store_true", help=help_text)
    return parser.parse_args()


def write(path: Path, weights: stored.Weights) -> None:
    path.write_bytes(dump(weights))
    print(f"{path.name}: {path.stat().st_size:,} bytes")


def fold(unit: Sequence[notes_corpus.Sentence]) -> int:
    name = f"outer {notes_corpus.unit(unit[0])}"
    return hashlib.sha256(name.encode()).digest()[0] % FOLDS


def scores_of(weights: stored.Weights, units: Corpus) -> Floats:
    """Scores by the code that ships, a column per head."""
    scorer = Scorer(weights)
    scores = [scorer.score(line) for line in lines_of(units)]
    return np.array([[score[head] for head in HEADS] for score in scores])


def cutoffs(
    known: Flags, truth: Flags, scores: Floats
) -> tuple[dict[str, float], dict[str, float]]:
    """By head, the score of the best F1, and the lowest one with a precision of 0.9."""
    balanced, strict = {}, {}
    for at, head in enumerate(HEADS):
        rows = known[:, at]
        precision, recall, bounds = precision_recall_curve(truth[rows, at], scores[rows, at])
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
    rows: Flags,
    truth: Flags,
    scores: Floats,
    at: dict[str, float],
) -> None:
    languages = np.array([sentence.language for unit in units for sentence in unit])
    cutoff = {head: at[head] for head in HEADS}
    known = weights_of(units) > 0
    notes_figures.print_heads(title, known[rows], truth[rows], scores[rows], cutoff)
    notes_figures.print_languages(languages[rows], truth[rows], scores[rows], cutoff)


def print_tags(units: Corpus, rows: Flags, scores: Floats, strict: dict[str, float]) -> None:
    """Print how many lines of people and agents a tag is given to, and how many have its label."""
    heads = list(HEADS)
    sentences = [sentence for unit in units for sentence in unit]
    tagged: dict[str, list[bool]] = {}
    for sentence, own in compress(zip(sentences, scores, strict=True), rows):
        for head, tag, above in TAGS:
            if head in strict and own[heads.index(head)] >= strict[head] + above:
                if sentence.speaker != "t":
                    tagged.setdefault(tag, []).append(not sentence.labels.isdisjoint(LABELS[tag]))
                break
    for name, right in tagged.items():
        print(f"{name:10} {len(right):4} lines, {sum(right) / len(right):.2f} have its label")


def report_set_aside(weights: stored.Weights) -> None:
    units = conversations(held=True)
    for title, unseen in (("set aside, registers seen", False), ("registers unseen", True)):
        part = [u for u in units if (u[0].register in notes_corpus.UNSEEN_REGISTERS) == unseen]
        truth, scores = truth_of(part), scores_of(weights, part)
        rows = np.ones(len(truth), dtype=np.bool_)
        print_figures(title, part, rows, truth, scores, weights.cutoffs)


def main() -> int:
    options = options_of(
        __doc__,
        by_register="leave out a register at a time",
        final="only measure what is set aside",
    )
    if options.final:
        report_set_aside(stored.load())
        return 0
    units = [u for u in conversations(held=False) if u[0].register not in APART]
    table = Sentences(units)
    keys = [unit[0].register if options.by_register else fold(unit) for unit in units]
    scores = table.cross_validate(np.repeat(keys, list(map(len, units))))
    truth = table.truth
    later = is_later(units)
    known, usual = table.weights > 0, is_usual(units)
    balanced, strict = cutoffs(known[usual], truth[usual], scores[usual])
    parts = {"conversations": usual, "talks": ~usual & ~later, "later registers": later}
    for title, rows in parts.items():
        print_figures(f"cross-validated, {title}", units, rows, truth, scores, balanced)
        print_tags(units, rows, scores, strict)
    if options.write:
        write(TARGET, replace(table.fit(), cutoffs=balanced, strict=strict))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
