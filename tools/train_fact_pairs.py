"""Fit the weights of `remanence.observers.learned.fact_pairs` to the pairs of facts of `data/facts`.

`python -m tools.train_fact_pairs` prints, by cutoff, how many of the outdated facts would end and how
many of the others, by cross-validation over wordings: of saved facts, of what users say shortly, of
difficult pairs and of lives. `--write` writes the weights with the cutoff `CUTOFF`. Needs
scikit-learn (the `dev` extra).
"""

import random
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tools import train_notes, train_pairs

from remanence.observers.learned.fact_pairs import FILE, fact_features
from remanence.observers.learned.pairs import ENDS

ROOT = train_pairs.ROOT
TARGET = train_notes.TARGET.with_name(FILE)
FOLDS = 10
BUCKETS = 1 << 16
C = 1.0
LEVELS = 12
CUTOFF = 1.5
CUTOFFS = (0.0, 0.5, 0.65, 1.0, 1.25, CUTOFF, 2.0)
OTHERS = 8
"""Facts of other slots that each later fact is put beside."""
WEIGHTS = {"saved": 2.0, "updates": 1.0, "lives": 2.0, "pairs": 0.5}
"""Of a pair of each kind; changes are far more frequent in difficult pairs than in lives."""
_NAMES = ("Ana", "User", "Ben", "The user", "Chloé", "User", "Darya", "The user", "Emre")
_COLON = re.compile("[:：]")
_VALUES = re.compile(r"\[([^|\]]*)\|([^\]]*)\]")


class FactPair(NamedTuple):
    """Two facts about one slot of a user, and whether the later one ends the earlier one."""

    language: str
    slot: str
    ends: bool
    earlier: str
    later: str


def written_pairs(kind: str, root: Path = ROOT) -> list[FactPair]:
    """Read the pairs of all languages: "saved" ones, or "updates" as users say them."""
    return [
        parse(path.parent.name, line)
        for path in sorted(root.glob(f"*/{kind}.txt"))
        for line in path.read_text("utf-8").splitlines()
    ]


def parse(language: str, line: str) -> FactPair:
    """Read a pair: `+` if the later fact ends the earlier one, else `-`, its slot and both facts."""
    head, _, text = line.partition(" | ")
    sign, slot = head.split()
    earlier, _, later = text.partition(" >> ")
    if not later:
        earlier, later = (_VALUES.sub(rf"\{side}", text) for side in (1, 2))
    return FactPair(language, slot, sign == "+", earlier.strip(), later.strip())


def pairs_of_slots(found: Sequence[FactPair]) -> Iterator[FactPair]:
    """Yield each later fact behind some facts of other slots in its language, which all stay."""
    chosen = random.Random(0)  # not for secrets
    for pair in found:
        others = [p for p in found if p.language == pair.language and p.slot != pair.slot]
        for other in chosen.sample(others, min(OTHERS, len(others))):
            earlier = chosen.choice((other.earlier, other.later))
            yield pair._replace(ends=False, earlier=earlier)


def with_name(pair: FactPair) -> FactPair:
    """A copy of a pair, with a name before both facts if neither has a key: "Ana works at Bosch"."""
    if _COLON.search(pair.earlier + pair.later):
        return pair._replace()
    name = _NAMES[zlib.crc32(pair.later.encode()) % len(_NAMES)]
    earlier, later = (f"{name} {text[0].lower()}{text[1:]}" for text in (pair.earlier, pair.later))
    return pair._replace(earlier=earlier, later=later)


def _rows() -> Iterator[tuple[str, bool, FactPair, FactPair]]:
    """Yield the kind of each row, whether it was written so, what it was made of, and the row."""
    for pair in train_pairs.pairs():
        kind = "lives" if pair.is_life else "pairs"
        stated = FactPair(pair.language, "", pair.relation == "ends", pair.earlier, pair.later)
        yield kind, True, stated, stated
    updates = written_pairs("updates")
    yield from (("updates", True, pair, pair) for pair in updates)
    yield from (("updates", False, pair, pair) for pair in pairs_of_slots(updates))
    saved = written_pairs("saved")
    beside = list(pairs_of_slots(saved))
    yield from (("saved", True, pair, pair) for pair in saved)
    yield from (("saved", False, pair, pair) for pair in beside)
    yield from (("saved", False, pair, with_name(pair)) for pair in (*saved, *beside))


class Data(train_notes.Table):
    """Pairs as arrays; what shares no part of a word is left out, as it has no score."""

    heads = (ENDS,)
    strength = C
    levels = LEVELS

    def __init__(self) -> None:
        rows = list(_rows())
        groups = [fact_features(row.earlier, row.later) for *_, row in rows]
        scored = [bool(own) for own in groups]
        kept = [row for row, has_score in zip(rows, scored, strict=True) if has_score]
        self.pairs = [pair for _, _, pair, _ in kept]
        self.inputs = train_notes.matrix(filter(None, groups), BUCKETS)
        self.truth = np.array([[pair.ends] for pair in self.pairs])
        self.weights = np.array([[WEIGHTS[kind]] for kind, *_ in kept])
        self.kinds = np.array([kind for kind, *_ in kept])
        self.is_written = np.array([is_written for _, is_written, *_ in kept])
        self.missed = {
            kind: sum(
                not has_score and of == kind and is_written and pair.ends
                for has_score, (of, is_written, pair, _) in zip(scored, rows, strict=True)
            )
            for kind in WEIGHTS
        }

    def report(self, scores: NDArray[np.float64]) -> None:
        """Print the shares of the pairs that end, by kind and cutoff."""
        truth = self.truth[:, 0]
        for kind in WEIGHTS:
            ends, stays = (self.is_written & (self.kinds == kind) & on for on in (truth, ~truth))
            made = ~self.is_written & (self.kinds == kind) & ~truth
            total = ends.sum() + self.missed[kind]
            print(f"{kind}: {total} outdated, {stays.sum()} others")
            for cutoff in CUTOFFS:
                found = scores >= cutoff
                print(
                    f"  cutoff {cutoff:5.2f}   {found[ends].sum() / total:.1%} of the outdated end,"
                    f" {found[stays].mean():.2%} of the others ({found[stays].sum()})"
                    + (f", {found[made].mean():.2%} of other slots" if made.any() else "")
                )


def main() -> int:
    options = train_notes.options_of(__doc__)
    data = Data()
    folds = [zlib.crc32((pair.language + pair.later).encode()) % FOLDS for pair in data.pairs]
    data.report(data.cross_validate(folds)[:, 0])
    if options.write:
        train_notes.write(TARGET, replace(data.fit(), cutoffs={ENDS: CUTOFF}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
