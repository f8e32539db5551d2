"""Fit the weights of `remanence.observers.learned.revisions` to the exchanges of `data/facts`.

`python -m tools.train_revisions` prints by cross-validation how many of the revised statements are
found, by the share of the replies of users in `data/notes` that would revise one although they are
labelled as no change; `--write` writes the weights with the cutoff at the share `FALSE`. Needs
scikit-learn (the `dev` extra).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tools import notes_corpus, train_notes
from tools.notes_corpus import Sentence
from tools.train_notes import FOLDS, Corpus, Floats, fold
from tools.train_statements import cutoff, is_statement

from remanence.observers.extractive.passage import ASKS
from remanence.observers.learned.features import Line
from remanence.observers.learned.revisions import FILE, MAX_BACK, REVISES, revision_features

ROOT = Path(__file__).parents[1] / "data" / "facts"
TARGET = train_notes.TARGET.with_name(FILE)
BUCKETS = 1 << 12
C = 1.0
LINES_ALIKE = 6
"""Lines of a file that are in one fold, with those at their place in the files of other languages."""
FALSE = 0.005
"""Share of the replies of the notes corpus above the cutoff."""
SHARES = (0.005, 0.01, 0.02, 0.04)
_CHANGES = frozenset({"corr", "rep", "end", "dec"})


class Exchange(NamedTuple):
    """A statement of a user, the reply after it, what the user says then, and what that does to it."""

    earlier: str
    reply: str
    words: str
    revises: bool
    fold: int


def exchanges(root: Path = ROOT) -> Iterator[Exchange]:
    """Yield the exchanges of all languages, once per statement."""
    for path in sorted(root.glob("*/revisions.txt")):
        for number, line in enumerate(path.read_text("utf-8").splitlines()):
            yield from parse(line, number // LINES_ALIKE % FOLDS)


def parse(line: str, number: int = 0) -> Iterator[Exchange]:
    """Read `statement // statement >> reply >> words`, with `*` before a statement that they revise."""
    said, reply, words = line.split(" >> ")
    for text in said.split(" // "):
        yield Exchange(text.removeprefix("*"), reply, words, text.startswith("*"), number)


def exchanges_of_notes(units: Corpus) -> Iterator[list[Exchange]]:
    """Yield for each reply of a user that is labelled as no change the statements before it."""
    for unit in units:
        messages: list[list[tuple[Line, Sentence]]] = []
        for pair in zip(notes_corpus.lines_of(unit), unit, strict=True):
            if pair[0].opening is None:
                messages.append([])
            messages[-1].append(pair)
        said: list[tuple[int, str]] = []
        for number, own in enumerate(messages):
            (line, sentence), before = own[0], messages[number - 1]
            if line.role != "user":
                continue
            is_reply = number and before[0][0].role != "user"
            if is_reply and sentence.labels.isdisjoint(_CHANGES) and not line.text.endswith(ASKS):
                reply = " ".join(line.text for line, _ in before[-2:])
                near = [text for at, text in said[-MAX_BACK:] if number - at <= MAX_BACK]
                yield [
                    Exchange(text, reply, line.text, revises=False, fold=fold(unit))
                    for text in near
                ]
            said += [(number, line.text) for line, sentence in own if is_statement(sentence)]


class Data(train_notes.Table):
    """Exchanges as arrays: the written ones, and those of the notes corpus by their reply."""

    heads = (REVISES,)
    strength = C

    def __init__(self, written: Sequence[Exchange], replies: Sequence[Sequence[Exchange]]) -> None:
        found = [*written, *chain.from_iterable(replies)]
        self.inputs = train_notes.matrix((revision_features(*one[:3]) for one in found), BUCKETS)
        self.truth = np.array([[one.revises] for one in found])
        self.weights = np.ones_like(self.truth, dtype=float)
        self.folds = np.array([one.fold for one in found])
        self.written = len(written)
        self.starts = np.cumsum([self.written, *map(len, replies)])[:-1]


def report(data: Data, scores: Floats) -> float:
    """Print a row per share of false ones and return the cutoff."""
    of_replies = np.maximum.reduceat(scores, data.starts)
    written, revises = scores[: data.written], data.truth[: data.written, 0]
    for share in SHARES:
        at = cutoff(of_replies, share)
        print(
            f"cutoff {at:5.2f}   {share:.1%} of {len(of_replies)} replies,"
            f" {(written[revises] >= at).mean():.1%} of {revises.sum()} revised statements,"
            f" {(written[~revises] >= at).mean():.1%} of {(~revises).sum()} others"
        )
    least: float = cutoff(of_replies, FALSE)
    return least


def main() -> int:
    options = train_notes.options_of(__doc__)
    replies = exchanges_of_notes(train_notes.conversations(held=False))
    data = Data(list(exchanges()), [one for one in replies if one])
    least = report(data, data.cross_validate(data.folds)[:, 0])
    if options.write:
        train_notes.write(TARGET, replace(data.fit(), cutoffs={REVISES: least}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
