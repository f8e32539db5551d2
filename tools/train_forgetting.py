"""Fit the weights of `remanence.observers.learned.forgetting` to the user's lines of `data/notes`.

`python -m tools.train_forgetting` prints by cross-validation how many requests to forget are found,
by the share of their look-alikes that are taken for one, and then how many of those set aside;
`--write` writes the weights with the
cutoff at the share `FALSE`. Needs scikit-learn (the `dev` extra).
"""

from dataclasses import replace

import numpy as np
from tools import notes_corpus, train_notes
from tools.train_notes import Corpus, fold
from tools.train_statements import cutoff, print_shares

from remanence.observers.learned.forgetting import FILE, FORGETS
from remanence.observers.learned.score import Scorer
from remanence.observers.learned.statements import after_question, surroundings
from remanence.observers.learned.weights import Weights

TARGET = train_notes.TARGET.with_name(FILE)
BUCKETS = 1 << 18
C = 2.0
WEIGHT = 10.0
"""Weight of a line of the register with the look-alikes."""
FALSE = 0.05
"""Share of the look-alikes above the cutoff."""


class Data(train_notes.Table):
    """The lines of users as arrays."""

    heads = (FORGETS,)
    strength = C

    def __init__(self, units: Corpus) -> None:
        said = [
            (line, sentence, fold(unit))
            for unit in units
            for line, sentence in zip(notes_corpus.lines_of(unit), unit, strict=True)
            if line.role == "user"
        ]
        self.inputs = train_notes.matrix_of((line for line, *_ in said), surroundings, BUCKETS)
        self.truth = np.array([["forget" in sentence.labels] for _, sentence, _ in said])
        self.folds = np.array([fold_ for *_, fold_ in said])
        self.is_alike = np.array([one.register == notes_corpus.FORGETTING for _, one, _ in said])
        self.weights = np.where(self.is_alike, WEIGHT, 1.0)[:, np.newaxis]


def print_set_aside(weights: Weights, at: float) -> None:
    """Print how many of the user's requests that are set aside are found, and how many others."""
    scorer = Scorer(weights, surroundings)
    said = [
        (scorer.score(after_question(line))[FORGETS] >= at, "forget" in sentence.labels)
        for unit in train_notes.conversations(held=True)
        for line, sentence in zip(notes_corpus.lines_of(unit), unit, strict=True)
        if line.role == "user"
    ]
    found, others = (
        [is_found for is_found, asks in said if asks is kind] for kind in (True, False)
    )
    print(
        f"set aside: {sum(found)} of {len(found)} requests, {sum(others)} of {len(others)} others"
    )


def main() -> int:
    options = train_notes.options_of(__doc__)
    data = Data(train_notes.conversations(held=False, forgetting=True))
    scores, forgets = data.cross_validate(data.folds)[:, 0], data.truth[:, 0]
    print_shares(scores, forgets, {"register": data.is_alike, "conversations": ~data.is_alike})
    print_set_aside(data.fit(), cutoff(scores[data.is_alike & ~forgets], FALSE))
    if options.write:
        at = cutoff(scores[data.is_alike & ~forgets], FALSE)
        train_notes.write(TARGET, replace(data.fit(), cutoffs={FORGETS: at}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
