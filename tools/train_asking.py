"""Fit the weights by which words of a request to forget ask, and do not name what is to be forgotten.

They are fitted to the words of the requests in `data/notes/forgetting_things.txt`, whose things are
marked: "Forget what I said about my ⟦salary⟧.", and to words of the statements in `data/statements`,
which are taken to name things.

`python -m tools.train_asking` prints by cross-validation over requests how many words that ask are
found, by the share of words of things that are taken for such; `--write` writes the weights with the
cutoff at the share `FALSE`. Needs scikit-learn (the `dev` extra).
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, islice
from typing import NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score
from tools import notes_corpus, train_notes
from tools.train_statements import cutoff, print_shares, short

from remanence.observers.learned.features import tag, word_grams
from remanence.observers.learned.forgetting import ASKING, ASKS
from remanence.observers.learned.function_words import WORD

TARGET = train_notes.TARGET.with_name(ASKING)
THINGS = notes_corpus.ROOT / "forgetting_things.txt"
BUCKETS = 1 << 14
STATEMENTS_EACH = 10
"""One of so many short statements is read for its words."""
MARKED, STATED = "requests", "statements"
WEIGHTS = {MARKED: 1.0, STATED: 0.2}
FALSE = 0.08
"""Share of the words of things above the cutoff."""
_MARK = re.compile("[⟦⟧]")


class Word(NamedTuple):
    """A word of content in lower case."""

    text: str
    asks: bool
    source: str
    language: str
    fold: int


def marked() -> Iterator[Word]:
    """Yield the words of the marked requests."""
    for number, row in enumerate(THINGS.read_text("utf-8").splitlines()):
        language, _, text = row.partition(" | ")
        parts = _MARK.split(text)
        ends = list(accumulate(map(len, parts)))
        things = list(zip(ends[0::2], ends[1::2], strict=False))
        for start, word in _content("".join(parts)):
            is_thing = any(first <= start < end for first, end in things)
            yield Word(word, not is_thing, MARKED, language, number % train_notes.FOLDS)


def stated() -> Iterator[Word]:
    """Yield words of short statements."""
    statements = (one for one in short() if one.is_stated and not one.message)
    for one in islice(statements, 0, None, STATEMENTS_EACH):
        for _, word in _content(one.line.text):
            yield Word(word, asks=False, source=STATED, language=one.language, fold=one.fold)


def _content(text: str) -> Iterator[tuple[int, str]]:
    """Yield the words of content of a text, each with its place."""
    said, end = text.lower(), 0
    for word, classes in tag(said, WORD.findall(said)):
        start = said.index(word, end)
        end = start + len(word)
        if word[0].isalnum() and not classes:
            yield start, word


class Data(train_notes.Table):
    """Words as arrays."""

    heads = (ASKS,)
    strength = 5.0
    levels = 12

    def __init__(self, found: list[Word]) -> None:
        self.inputs = train_notes.matrix(([tuple(word_grams(one.text))] for one in found), BUCKETS)
        self.truth = np.array([[one.asks] for one in found])
        self.folds = np.array([one.fold for one in found])
        self.sources = np.array([one.source for one in found])
        self.weights = np.array([[WEIGHTS[one.source]] for one in found])


def main() -> int:
    options = train_notes.options_of(__doc__)
    data = Data([*marked(), *stated()])
    scores, asks = data.cross_validate(data.folds)[:, 0], data.truth[:, 0]
    rows = data.sources == MARKED
    print_shares(scores, asks, {MARKED: rows})
    print(
        f"area under the curve: {roc_auc_score(asks[rows], scores[rows]):.3f} of {rows.sum()} words"
    )
    at = cutoff(scores[rows & ~asks], FALSE)
    print(f"at the cutoff {(scores[rows & asks] >= at).mean():.1%} of the words that ask are found")
    if options.write:
        train_notes.write(TARGET, replace(data.fit(), cutoffs={ASKS: at}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
