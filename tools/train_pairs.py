"""Fit the weights of `remanence.observers.learned.pairs` to the statements of `data/facts`.

`python -m tools.train_pairs` prints by cross-validation over languages how many of the statements
that a later one ends are found, and what else would be ended, by cutoff; `--write` writes the
weights with the cutoff `CUTOFF`. Needs scikit-learn (the `dev` extra).
"""

import csv
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tools import train_notes

from remanence.dates import resolve_dates
from remanence.observers.learned.pairs import ENDS, FILE, pair_features

ROOT = Path(__file__).parents[1] / "data" / "facts"
TARGET = train_notes.TARGET.with_name(FILE)
FOLDS = 8
BUCKETS = 1 << 13
C = 0.5
CUTOFF = 0.8
CUTOFFS = (-1.0, -0.5, 0.0, 0.25, 0.5, CUTOFF, 1.0, 1.5)
WEIGHT_OF_PAIRS = 0.3
"""Weight of a written pair beside one of a life, where changes are as rare as they are."""


class Pair(NamedTuple):
    """Two statements of a user and what the later is to the earlier: "ends", "adds", "same" or ""."""

    language: str
    relation: str
    earlier: str
    later: str
    is_life: bool


def pairs(root: Path = ROOT) -> list[Pair]:
    """Read the pairs of all languages: the written ones, and those of lives."""
    found = []
    for folder in sorted(path for path in root.iterdir() if path.is_dir()):
        for row in _rows(folder / "pairs.tsv"):
            relation = {"changes": "ends", "other": ""}.get(row["label"], row["label"])
            found.append(Pair(folder.name, relation, row["earlier"], row["later"], is_life=False))
        lives = defaultdict(list)
        for row in _rows(folder / "lives.tsv"):
            lives[row["user"]].append(row)
        for life in lives.values():
            found += _pairs_of_life(folder.name, life)
    return found


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)


def _pairs_of_life(language: str, life: list[dict[str, str]]) -> Iterator[Pair]:
    """Yield each statement of a user with those before it that nothing has ended."""
    said: dict[str, str] = {}
    for row in life:
        relation, _, numbers = row["relation"].partition(" ")
        related = set(numbers.replace(" ", "").split(","))
        at = datetime.fromisoformat(row["date"]).replace(hour=12, tzinfo=UTC)
        text = resolve_dates(row["text"], at)
        for number, earlier in said.items():
            yield Pair(language, relation if number in related else "", earlier, text, is_life=True)
        if relation == "ends":
            said = {number: one for number, one in said.items() if number not in related}
        said[row["number"]] = text


class Data(train_notes.Table):
    """Pairs as arrays; those that share no part of a word are left out, as they have no score."""

    heads = (ENDS,)
    strength = C

    def __init__(self, found: list[Pair]) -> None:
        groups = [pair_features(pair.earlier, pair.later) for pair in found]
        self.pairs = [pair for pair, own in zip(found, groups, strict=True) if own]
        self.left_out = [pair for pair, own in zip(found, groups, strict=True) if not own]
        self.inputs = train_notes.matrix(filter(None, groups), BUCKETS)
        self.truth = np.array([[pair.relation == "ends"] for pair in self.pairs])
        self.is_life = np.array([pair.is_life for pair in self.pairs])
        self.weights = np.where(self.is_life, 1.0, WEIGHT_OF_PAIRS)[:, np.newaxis]


def report(data: Data, scores: NDArray[np.float64]) -> None:
    """Print a row per cutoff for the pairs of lives and for the written ones."""
    relations = np.array([pair.relation for pair in data.pairs])
    is_life = data.is_life
    missed = sum(pair.relation == "ends" and pair.is_life for pair in data.left_out)
    ended = (is_life & (relations == "ends")).sum() + missed
    for cutoff in CUTOFFS:
        found = scores >= cutoff
        lives, written = found & is_life, found & ~is_life
        counts = {
            name: (lives & (relations == name)).sum() for name in ("ends", "adds", "same", "")
        }
        shares = {
            name or "other": f"{written[~is_life & (relations == name)].mean():.0%}"
            for name in counts
        }
        print(
            f"cutoff {cutoff:5.2f}   of lives: {counts['ends'] / ended:.1%} of {ended} found,"
            f" {counts['ends']} of {lives.sum()} right, {counts['adds']} added to,"
            f" {counts['same']} repeated, {counts['']} unrelated   written: {shares}"
        )


def main() -> int:
    options = train_notes.options_of(__doc__)
    data = Data(pairs())
    names = sorted({pair.language for pair in data.pairs})
    folds = [names.index(pair.language) % FOLDS for pair in data.pairs]
    report(data, data.cross_validate(folds)[:, 0])
    if options.write:
        train_notes.write(TARGET, replace(data.fit(), cutoffs={ENDS: CUTOFF}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
