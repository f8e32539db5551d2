"""Fit the weights of `remanence.observers.learned.saved` to the saved facts of `data/facts`.

`python -m tools.train_saved` prints, by cutoff, how many of the replaced facts would end and how many
of the others: by cross-validation over wordings, languages and slots, and beside facts of other slots.
`--apart` fits without `LANGUAGES_APART` and `SLOTS_APART` and measures those; `--write` writes the
weights with the cutoff `CUTOFF`. Needs scikit-learn (the `dev` extra).
"""

import random
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tools import train_notes

from remanence.observers.learned.pairs import ENDS
from remanence.observers.learned.saved import FILE, saved_features

ROOT = Path(__file__).parents[1] / "data" / "facts"
TARGET = train_notes.TARGET.with_name(FILE)
LANGUAGES_APART = frozenset({"it", "ko", "pl"})
SLOTS_APART = frozenset(
    {"phone", "car", "deadline", "medication", "doctor", "hobby", "size", "language"}
)
"""What no fit has seen that is measured with `--apart`, and no choice of features or cutoff."""
FOLDS = 10
BUCKETS = 1 << 16
C = 30.0
CUTOFF = 1.25
CUTOFFS = (0.0, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
OTHERS = 8
"""Facts of other slots that each later fact is put beside."""
_NAMES = ("Ana", "User", "Ben", "The user", "Chloé", "User", "Darya", "The user", "Emre")
_COLON = re.compile("[:：]")
_VALUES = re.compile(r"\[([^|\]]*)\|([^\]]*)\]")


class SavedPair(NamedTuple):
    """Two facts about one slot of a user, and whether the later one ends the earlier one."""

    language: str
    slot: str
    ends: bool
    earlier: str
    later: str


def saved_pairs(root: Path = ROOT) -> list[SavedPair]:
    """Read the pairs of all languages."""
    return [
        parse(path.parent.name, line)
        for path in sorted(root.glob("*/saved.txt"))
        for line in path.read_text("utf-8").splitlines()
    ]


def parse(language: str, line: str) -> SavedPair:
    """Read a pair: `+` if the later fact ends the earlier one, else `-`, its slot and both facts."""
    head, _, text = line.partition(" | ")
    sign, slot = head.split()
    earlier, _, later = text.partition(" >> ")
    if not later:
        earlier, later = (_VALUES.sub(rf"\{side}", text) for side in (1, 2))
    return SavedPair(language, slot, sign == "+", earlier.strip(), later.strip())


def pairs_of_slots(found: Sequence[SavedPair]) -> Iterator[SavedPair]:
    """Yield each later fact behind some facts of other slots in its language, which all stay."""
    chosen = random.Random(0)  # not for secrets
    for pair in found:
        others = [p for p in found if p.language == pair.language and p.slot != pair.slot]
        for other in chosen.sample(others, min(OTHERS, len(others))):
            earlier = chosen.choice((other.earlier, other.later))
            yield pair._replace(ends=False, earlier=earlier)


def with_name(pair: SavedPair) -> SavedPair:
    """A copy of a pair, with a name before both facts if neither has a key: "Ana works at Bosch"."""
    if _COLON.search(pair.earlier + pair.later):
        return pair._replace()
    name = _NAMES[zlib.crc32(pair.later.encode()) % len(_NAMES)]
    earlier, later = (f"{name} {text[0].lower()}{text[1:]}" for text in (pair.earlier, pair.later))
    return pair._replace(earlier=earlier, later=later)


class Data(train_notes.Table):
    """Pairs as arrays, then those that were made of them; what shares no part of a word is left out."""

    heads = (ENDS,)
    strength = C

    def __init__(self, found: Sequence[SavedPair]) -> None:
        others, written = list(pairs_of_slots(found)), set(map(id, found))
        rows = [(copy, pair) for pair in (*found, *others) for copy in (pair, with_name(pair))]
        groups = [saved_features(shown.earlier, shown.later) for shown, _ in rows]
        kept = [row for row, own in zip(rows, groups, strict=True) if own]
        self.pairs = [pair for _, pair in kept]
        """What each row was made of."""
        self.inputs = train_notes.matrix(filter(None, groups), BUCKETS)
        self.truth = np.array([[pair.ends] for pair in self.pairs])
        self.weights = np.ones_like(self.truth, dtype=float)
        self.is_written = np.array([copy is pair and id(pair) in written for copy, pair in kept])
        self.missed = sum(p.ends for p in found) - (self.truth[:, 0] & self.is_written).sum()

    def report(self, name: str, scores: NDArray[np.float64]) -> None:
        """Print the shares of the pairs that end, by cutoff."""
        ends = self.truth[:, 0] & self.is_written
        stays = ~self.truth[:, 0] & self.is_written
        print(f"{name}: {ends.sum() + self.missed} replaced, {stays.sum()} others")
        for cutoff in CUTOFFS:
            found = scores >= cutoff
            share = found[ends].sum() / (ends.sum() + self.missed)
            print(
                f"  cutoff {cutoff:5.2f}   {share:.1%} of the replaced end,"
                f" {found[stays].mean():.1%} of the others,"
                f" {found[~self.is_written & ~self.truth[:, 0]].mean():.2%} of those of other slots"
            )


def _is_apart(pair: SavedPair) -> bool:
    return pair.language in LANGUAGES_APART or pair.slot in SLOTS_APART


def main() -> int:
    options = train_notes.options_of(__doc__, apart="measure what was set aside")
    found = saved_pairs()
    known = Data([pair for pair in found if not _is_apart(pair)])
    keys: dict[str, Callable[[SavedPair], str]] = {
        "wordings": lambda pair: pair.language + pair.later,
        "languages": lambda pair: pair.language,
        "slots": lambda pair: pair.slot,
    }
    for name, key in keys.items():
        folds = [zlib.crc32(key(pair).encode()) % FOLDS for pair in known.pairs]
        known.report(name, known.cross_validate(folds)[:, 0])
    if options.apart:
        weights = known.fit()
        for name, apart in (
            ("languages apart", [p for p in found if p.language in LANGUAGES_APART]),
            ("slots apart", [p for p in found if p.slot in SLOTS_APART]),
        ):
            data = Data(apart)
            data.report(name, train_notes.predict(weights, data.inputs)[:, 0])
    if options.write:
        train_notes.write(TARGET, replace(Data(found).fit(), cutoffs={ENDS: CUTOFF}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
