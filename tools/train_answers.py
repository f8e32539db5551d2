"""Fit the weights of `remanence.observers.learned.answers` to what users say after an agent.

They are fitted to the exchanges of `data/exchanges`, and to the first sentences of users in the
conversations of `data/notes` whose dependence is marked, without the talks: their hands marked full
sentences whose subject is lost as well.

`python -m tools.train_answers` prints by cross-validation, and for the exchanges that are set aside,
how many sentences that need the question are found, and how many others are taken for such; `--write`
writes the weights. Needs scikit-learn (the `dev` extra).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score
from tools import notes_corpus, train_notes

from remanence.observers.learned.answers import FILE, NEEDS_QUESTION
from remanence.observers.learned.features import Line
from remanence.observers.spoken import spoken_lines
from remanence.types import Message

EXCHANGES = notes_corpus.ROOT.with_name("exchanges")
UNSEEN = Path(__file__).parents[1] / "benchmarks" / "unseen_exchanges.tsv"
TARGET = train_notes.TARGET.with_name(FILE)
BUCKETS = 1 << 14
C = 5.0
WEIGHTS = {EXCHANGES.name: 1.0, notes_corpus.ROOT.name: 0.5}
"""Weight of a sentence in the fit, by its source."""
LINES_ALIKE = 8
"""Lines beside each other that are in one part of the cross-validation."""
_LINE = re.compile(r"([+-]) (.+?) \| (.+)")


class Answer(NamedTuple):
    """What a user says after an agent."""

    line: Line
    needs_question: bool
    source: str
    fold: int


def exchanges() -> Iterator[Answer]:
    """Yield the answers of `EXCHANGES`."""
    for path in sorted(EXCHANGES.glob("*.txt")):
        for number, row in enumerate(path.read_text("utf-8").splitlines()):
            match = _LINE.fullmatch(row)
            if match is None:
                raise ValueError(f"{path}, line {number + 1}: not `+|- agent's words | user's`")
            sign, asked, said = match.groups()
            fold = number // LINES_ALIKE % train_notes.FOLDS
            yield Answer(line_of(asked, said), sign == "+", EXCHANGES.name, fold)


def line_of(asked: str, said: str) -> Line:
    """Return the first line of what a user says, which replies to the last of an agent's."""
    lines = spoken_lines([Message.assistant(asked), Message.user(said)])
    return next(line for line in lines if line.role == "user")


def unseen() -> Iterator[Answer]:
    """Yield the answers of `UNSEEN`, to which nothing may be fitted."""
    for row in UNSEEN.read_text("utf-8").splitlines():
        need, _, asked, said = row.split("\t")
        yield Answer(line_of(asked, said), need == "needs", UNSEEN.stem, 0)


def marked() -> Iterator[Answer]:
    """Yield the first sentences after an agent's whose dependence is marked."""
    for unit in train_notes.conversations(held=False):
        if unit[0].register in notes_corpus.TALKS:
            continue
        for line, sentence in zip(notes_corpus.lines_of(unit), unit, strict=True):
            replies = line.reply_to is not None and line.reply_to.role == "assistant"
            is_first = line.role == "user" and line.opening is None
            if replies and is_first and sentence.is_dependent is not None:
                fold = train_notes.fold(unit)
                yield Answer(line, sentence.is_dependent, notes_corpus.ROOT.name, fold)


class Data(train_notes.Table):
    """Answers as arrays."""

    heads = (NEEDS_QUESTION,)
    strength = C

    def __init__(self, answers: Iterable[Answer]) -> None:
        self.answers = tuple(answers)
        self.inputs = train_notes.matrix_of((one.line for one in self.answers), size=BUCKETS)
        self.truth = np.array([[one.needs_question] for one in self.answers])
        self.weights = np.array([[WEIGHTS.get(one.source, 0.0)] for one in self.answers])
        self.sources = np.array([one.source for one in self.answers])

    def report(self, scores: train_notes.Floats) -> None:
        """Print for each source how many answers are found, and how many others are taken for one."""
        for source in dict.fromkeys(self.sources):
            rows = self.sources == source
            truth, own = self.truth[rows, 0], scores[rows]
            found, false = ((own[part] >= 0).mean() for part in (truth, ~truth))
            area = roc_auc_score(truth, own)
            print(
                f"{source}: {rows.sum()} sentences, area under the curve {area:.3f}, "
                f"found {found:.1%}, of the others {false:.1%}"
            )


def main() -> int:
    options = train_notes.options_of(__doc__)
    data, apart = Data(chain(exchanges(), marked())), Data(unseen())
    data.report(data.cross_validate(one.fold for one in data.answers)[:, 0])
    weights = replace(data.fit(), cutoffs={NEEDS_QUESTION: 0.0})
    apart.report(train_notes.predict(weights, apart.inputs)[:, 0])
    if options.write:
        train_notes.write(TARGET, weights)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
