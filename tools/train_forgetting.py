"""Fit the weights of `remanence.observers.learned.forgetting` to the user's lines of `data/notes`.

They are also fitted to statements in frames, such as "Please forget that …": as each statement is in
as many that request as in others, its own words cannot tell the two apart.

`python -m tools.train_forgetting` prints by cross-validation, for lines and frames that the fit has not
seen, how many requests to forget are found, by the share of their look-alikes that are taken for one;
how many statements and missed requests are close below the cutoff; and how many of those set aside are
found. `--by-language` leaves out a language at a time. `--write` writes the weights with the cutoff at
the share `FALSE`. Needs scikit-learn (the `dev` extra).
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tools import notes_corpus, train_notes
from tools.notes_corpus import Sentence
from tools.train_notes import Corpus, Flags, Floats, fold
from tools.train_statements import continued, cutoff, is_statement, print_shares

from remanence.observers.learned.features import QUESTION, Line
from remanence.observers.learned.forgetting import FILE, FORGETS, with_negations, without_reply
from remanence.observers.learned.score import Scorer
from remanence.observers.learned.statements import alone
from remanence.observers.learned.weights import Weights

TARGET = train_notes.TARGET.with_name(FILE)
FRAMES = notes_corpus.ROOT / "forgetting_frames.txt"
BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
UNSEEN = {
    "of everything, not fitted": BENCHMARKS / "unseen_total.tsv",
    "of one thing, not fitted": BENCHMARKS / "unseen_forgetting.tsv",
    "of what is not to be kept, not fitted": BENCHMARKS / "unseen_withheld.tsv",
}
"""Requests to forget (`keep`) and others like them (`drop`): about everything or a whole area, about one
thing, and about what is just told or an earlier wish; a fifth of what hands of the register wrote."""
PLACE = "…"
"""Where a statement stands in a frame."""
MAX_FRAMED = 60
"""Characters of a statement that is put in frames."""
FRAMES_EACH = 3
"""Frames that request, and others, in which a statement is put."""
BUCKETS = 1 << 18
C = 2.0
CONTRAST = train_notes.Contrast(share=0.5, rarity=0.1)
REGISTER, FRAMED = "register", "frames"
REQUEST, WISH, OTHER = "requests", "wishes", "others"
WEIGHTS = {REGISTER: 10.0, FRAMED: 0.4, REQUEST: 8.0, WISH: 3.0, OTHER: 1.0}
"""Weight of a line of the register with the look-alikes, of a statement in a frame, and of a line of
another register: a request, a wish on how to answer, which may ask in the same words, or any other."""
FALSE = 0.075
"""Share of the look-alikes above the cutoff."""
MARGINS = (0.25, 0.45, 1.0, 2.0)


class Example(NamedTuple):
    """A line of a user, of a conversation or put together from a statement and a frame."""

    line: Line
    asks: bool
    kind: str
    language: str
    fold: int
    is_stated: bool = False


def said(units: Corpus) -> Iterator[Example]:
    """Yield the lines of users."""
    for unit in units:
        for line, sentence in zip(notes_corpus.lines_of(unit), unit, strict=True):
            if line.role == "user":
                asks = "forget" in sentence.labels
                yield Example(
                    line=alone(line),
                    asks=asks,
                    kind=_kind(sentence),
                    language=sentence.language,
                    fold=fold(unit),
                    is_stated=not asks and is_statement(sentence) is True,
                )


def _kind(sentence: Sentence) -> str:
    if sentence.register == notes_corpus.FORGETTING:
        return REGISTER
    if "forget" in sentence.labels:
        return REQUEST
    return OTHER if sentence.labels.isdisjoint(("inst", "pref")) else WISH


def framed(units: Corpus) -> Iterator[Example]:
    """Yield short statements of users about themselves, each in some frames of its language.

    The frames of a language take turns. Those of a statement are `FOLDS` apart, as what is put in one
    of them is of the fold that its place gives.
    """
    known = {asks: frames(asks=asks) for asks in (True, False)}
    for language, texts in _statements(units).items():
        for (number, text), turn, asks in product(enumerate(texts), range(FRAMES_EACH), known):
            own = known[asks][language]
            at = (number + turn * train_notes.FOLDS) % len(own)
            yield Example(
                line=Line(put_in(own[at], text), "user"),
                asks=asks,
                kind=FRAMED,
                language=language,
                fold=at % train_notes.FOLDS,
            )


def frames(*, asks: bool) -> dict[str, list[str]]:
    """Return the frames that request, or those that do not, by language."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for row in FRAMES.read_text("utf-8").splitlines():
        language, sign, frame = row.split(" ", 2)
        if (sign == "+") == asks:
            found[language].append(frame)
    return found


def put_in(frame: str, text: str) -> str:
    """Return a statement in the place of a frame."""
    text = text.rstrip(".!。！।")
    return frame.replace(PLACE, text if frame.startswith(PLACE) else continued(text))


def _statements(units: Corpus) -> dict[str, list[str]]:
    """Short single statements of users about themselves, in an order that their texts give."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for first, *more in units:
        is_own = first.slot is not None and first.labels.isdisjoint(("person", "remember"))
        is_short = len(first.text) <= MAX_FRAMED and not QUESTION.search(first.text)
        if is_own and is_short and not more and first.register != notes_corpus.FORGETTING:
            found[first.language].add(first.text)
    return {
        language: sorted(texts, key=lambda text: hashlib.sha256(text.encode()).digest())
        for language, texts in found.items()
    }


class Data(train_notes.Table):
    """Examples as arrays."""

    heads = (FORGETS,)
    strength = C
    contrast = CONTRAST

    def __init__(self, found: list[Example]) -> None:
        self.inputs = train_notes.matrix_of((one.line for one in found), with_negations, BUCKETS)
        self.truth = np.array([[one.asks] for one in found])
        self.folds = np.array([one.fold for one in found])
        self.languages = np.array([one.language for one in found])
        self.kinds = np.array([one.kind for one in found])
        self.is_stated = np.array([one.is_stated for one in found])
        self.weights = np.array([[WEIGHTS[one.kind]] for one in found])


def report(data: Data, scores: Floats) -> float:
    """Print a row per share of false ones, and one per margin, and return the cutoff."""
    asks = data.truth[:, 0]
    kinds: dict[str, Flags] = {kind: data.kinds == kind for kind in (REGISTER, FRAMED)}
    kinds["conversations"] = np.isin(data.kinds, (REQUEST, WISH, OTHER))
    print_shares(scores, asks, kinds)
    at = cutoff(scores[kinds[REGISTER] & ~asks], FALSE)
    is_below = scores < at
    stated = data.is_stated & ~kinds[REGISTER]
    alike = data.is_stated & kinds[REGISTER]
    for margin in MARGINS:
        is_near = is_below & (scores >= at - margin)
        shares = [
            f"{name} {is_near[rows].mean():.2%}"
            for name, rows in (
                ("of statements", stated),
                ("of those of the register", alike),
                ("of missed requests: register", kinds[REGISTER] & asks & is_below),
                ("frames", kinds[FRAMED] & asks & is_below),
            )
        ]
        print(f"{margin} below the cutoff:", ", ".join(shares))
    return at


def print_set_aside(weights: Weights, at: float) -> None:
    """Print how many of the user's requests that are set aside are found, and how many others."""
    scorer = Scorer(weights, with_negations)
    held = [(one.line, one.asks) for one in said(train_notes.conversations(held=True))]
    for name, lines in (
        ("set aside", held),
        *((name, list(_read(table))) for name, table in UNSEEN.items()),
    ):
        scored = [(scorer.score(without_reply(line))[FORGETS] >= at, asks) for line, asks in lines]
        found, others = (
            [is_found for is_found, asks in scored if asks is kind] for kind in (True, False)
        )
        print(
            f"{name}: {sum(found)} of {len(found)} requests, {sum(others)} of {len(others)} others"
        )


def _read(table: Path) -> Iterator[tuple[Line, bool]]:
    for row in table.read_text("utf-8").splitlines():
        kind, _, text = row.split("\t")
        yield Line(text, "user"), kind == "keep"


def main() -> int:
    options = train_notes.options_of(__doc__, by_language="leave out a language at a time")
    units = train_notes.conversations(held=False, forgetting=True)
    data = Data([*said(units), *framed(units)])
    keys = data.languages if options.by_language else data.folds
    at = report(data, data.cross_validate(keys)[:, 0])
    weights = data.fit()
    print_set_aside(weights, at)
    if options.write:
        train_notes.write(TARGET, replace(weights, cutoffs={FORGETS: at}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
