"""Fit the weights of `remanence.observers.learned.fact` to facts of `data/notes` and `data/facts`.

`python -m tools.train_facts` prints by cross-validation over conversations how many of the facts that
a new conversation should know come first, and which are taken for several or for a wish; `--write`
writes the weights.
Needs scikit-learn (the `dev` extra).
"""

import csv
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import cycle, islice, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tools import notes_corpus, train_notes, train_statements
from tools.notes_corpus import Sentence
from tools.train_notes import FOLDS, Floats

from remanence.observers.learned.fact import FILE, KNOW, SEVERAL, WISH
from remanence.observers.learned.features import Line
from remanence.observers.learned.function_words import languages

ROOT = Path(__file__).parents[1] / "data" / "facts"
TARGET = train_notes.TARGET.with_name(FILE)
HEADS = (KNOW, SEVERAL, WISH)
BUCKETS = 1 << 16
C = 2.0
CUTOFFS = {KNOW: 0.0, SEVERAL: -1.5, WISH: 0.0}
LISTED = 5.0
"""Weight of a fact of `known.txt` and `several.txt`."""
WEIGHTS = {notes_corpus.RULES: 0.2, notes_corpus.TASKS: 0.2}
"""Weight of a line of a register that has more instructions, or requests, than conversations have."""
UNREAD = (notes_corpus.MESSAGES, notes_corpus.TYPICAL, notes_corpus.STYLE, notes_corpus.COMMON)
"""Registers that nobody read for what says several things."""
FOLLOWING = 2
"""Facts that each fact is joined with."""
SHARES = {3: 0.97, 2: 0.4, 1: 0.08, 0: 0.0}
"""How likely a new conversation should know a fact, by its weight in `known.txt`."""
_SLOTS = {
    1.0: "name health allergy diet medication",
    0.9: "age birthday home origin nationality language family partner child job employer style",
    0.7: "pet like dislike address studies school friend belief",
    0.35: "hobby skill routine goal email phone contact salary vehicle project tool other",
    0.25: "possession account code",
    0.12: "event plan travel",
}
SLOTS = {slot: share for share, slots in _SLOTS.items() for slot in slots.split()}
"""The same for a sentence with the slot."""
LASTING = frozenset(slot for slot, share in SLOTS.items() if share >= SLOTS["hobby"])
"""Slots of what is of weight beside something else."""
_NOT_MEANT = frozenset({"quote", "trans", "fiction", "world", "advice"})
_WISHES = frozenset({"inst", "pref"})
_AHEAD = frozenset({"next", "fut"})
_COMMAS = {"ja": "、", "zh": "，"}
"""What joins sentences in a script without spaces."""

Flags = NDArray[np.bool_]


class Example(NamedTuple):
    """A fact; `know` is how likely a new conversation should know it, None if nobody says so.

    `several` is None where it may say more than one thing, and `is_wish` where nobody says so.
    """

    text: str
    language: str
    fold: int
    weight: float
    know: float | None
    several: bool | None
    is_wish: bool | None


def examples() -> list[Example]:
    """What users say in the corpus, what is listed, and pairs of them in one sentence."""
    listed = [one for path in _paths("known.txt") for one in _listed(path)]
    told = [one for path in _paths("lives.tsv") for one in _told(path)]
    marked = [one for path in _paths("several.txt") for one in _marked(path)]
    signs = {one.text: one.several for one in marked}
    units = train_notes.conversations(held=False)
    said = [
        _of_sentence(sentence, train_notes.fold(unit), signs)
        for unit in units
        for sentence in unit
        if sentence.speaker == "u" and sentence.register != "tools"
    ]
    alone = [one for one in (*said, *listed, *told) if one.several is False]
    weighty = [
        one for one in (*said, *listed) if one.know is not None and one.know >= SLOTS["hobby"]
    ]
    prefaced = _prefaced([*weighty, *(one for one in said if one.is_wish), *listed])
    return [*said, *listed, *told, *marked, *_joined(alone, weighty), *prefaced]


def _paths(name: str) -> list[Path]:
    return sorted(ROOT.glob(f"*/{name}"))


def _of_sentence(sentence: Sentence, fold: int, signs: Mapping[str, bool | None]) -> Example:
    labels = sentence.labels
    is_fact = sentence.slot is not None or bool(labels & _WISHES)
    unlisted = None if sentence.register in UNREAD else False
    return Example(
        text=sentence.text,
        language=sentence.language,
        fold=fold,
        weight=WEIGHTS.get(sentence.register, 1.0),
        know=_share(sentence),
        several=signs.get(sentence.text, unlisted) if is_fact else None,
        is_wish=None
        if sentence.register == notes_corpus.HASTY
        else not labels.isdisjoint(_WISHES) and "person" not in labels,
    )


def _share(sentence: Sentence) -> float | None:
    labels = sentence.labels
    if labels & _NOT_MEANT:
        return None
    if labels & _WISHES:
        return 1.0 if "inst" in labels else 0.9
    if sentence.slot is not None:
        share = SLOTS[sentence.slot]
        if labels & _AHEAD and share < 1.0 and sentence.slot != "home":
            share = min(share, 0.3)
        return share * (0.5 if "out" in labels else 1.0) * (0.6 if "end" in labels else 1.0)
    if labels & {"dec", "next"}:
        return 0.1
    return 0.2 if sentence.worth == train_notes.VITAL else 0.05 if sentence.worth else 0.0


def _listed(path: Path) -> Iterator[Example]:
    for line in path.read_text("utf-8").splitlines():
        head, _, text = line.partition(" | ")
        weight, *marks = head.split()
        yield _example(path, text)._replace(
            know=SHARES[int(weight)], several=False, is_wish="wish" in marks
        )


def _told(path: Path) -> Iterator[Example]:
    """Statements of lives, most of which say one thing."""
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            yield _example(path, row["text"])._replace(several=False, weight=1.0)


def _marked(path: Path) -> Iterator[Example]:
    signs = {"+": True, "-": False, "?": None}
    for line in path.read_text("utf-8").splitlines():
        sign, _, text = line.partition(" ")
        yield _example(path, text)._replace(several=signs[sign])


def _example(path: Path, text: str) -> Example:
    fold = hashlib.sha256(text.encode()).digest()[0] % FOLDS
    return Example(text, path.parent.name, fold, LISTED, None, None, None)


def _joined(alone: Sequence[Example], others: Sequence[Example]) -> Iterator[Example]:
    """Yield facts with another of the same language in the sentence, behind it or before it."""
    groups = _groups(others)
    for group, members in _groups(alone).items():
        following = cycle(groups[group])
        joints = cycle(_joints(group[0]))
        for number, one in enumerate(members):
            for other in islice(following, FOLLOWING):
                first, last = (other, one) if number % 3 == 0 else (one, other)
                shares = [share for share in (one.know, other.know) if share is not None]
                yield Example(
                    text=_join(first.text, next(joints), last.text),
                    language=one.language,
                    fold=one.fold,
                    weight=1 / FOLLOWING,
                    know=max(shares),
                    several=True,
                    is_wish=None,
                )


def _prefaced(found: Sequence[Example]) -> Iterator[Example]:
    """Yield facts behind words such as "By the way", as they were said."""
    for (language, _), members in _groups(found).items():
        words, *marks = train_statements.prefaces(language)
        behind = cycle(product(marks, words))
        for one in {one.text: one for one in members}.values():
            mark, preface = next(behind)
            text = train_statements.put_behind(preface, mark, one.text)
            yield one._replace(text=text, several=None)


def _groups(found: Iterable[Example]) -> Mapping[tuple[str, int], list[Example]]:
    """Examples by language and fold, in an order that their texts give."""
    groups: defaultdict[tuple[str, int], list[Example]] = defaultdict(list)
    for one in sorted(found, key=lambda one: hashlib.sha256(one.text.encode()).digest()):
        groups[one.language, one.fold].append(one)
    return groups


@cache
def _joints(code: str) -> tuple[str, ...]:
    if code in _COMMAS:
        return (_COMMAS[code],)
    words = next(language.words for language in languages() if language.code == code)
    word = next(word for word, classes in words.items() if "and" in classes)
    comma, after = ("،", "") if code == "ar" else (",", " ")
    return f"{comma} ", f" {word}{after}", f"{comma} {word}{after}"


def _join(first: str, joint: str, last: str) -> str:
    if last[1:2].islower() and not last.startswith("I "):
        last = last[0].lower() + last[1:]
    return f"{first.rstrip('.。!！ …;；،,?')}{joint}{last}"


class Data(train_notes.Table):
    """Examples as arrays. What may be known is there twice, as known and as not."""

    heads = HEADS
    strength = C

    def __init__(self, found: Sequence[Example]) -> None:
        twice = [*found, *(one for one in found if one.know is not None)]
        self.examples = twice
        self.is_copy = np.arange(len(twice)) >= len(found)
        self.inputs = train_notes.matrix_of((Line(one.text, "user") for one in twice), size=BUCKETS)
        self.folds = np.array([one.fold for one in twice])
        self.truth = np.array(
            [
                (not copy, bool(one.several), bool(one.is_wish))
                for one, copy in zip(twice, self.is_copy, strict=True)
            ]
        )
        self.weights = np.array(
            [
                one.weight * np.array(_parts(one, is_copy=bool(copy)))
                for one, copy in zip(twice, self.is_copy, strict=True)
            ]
        )


def _parts(one: Example, *, is_copy: bool) -> list[float]:
    """The weight of an example for each head."""
    know = one.know or 0.0
    if is_copy:
        return [1 - know, 0.0, 0.0]
    return [know, float(one.several is not None), float(one.is_wish is not None)]


def report(data: Data, scores: Floats) -> None:
    """Print what is found, of all facts and of those that are listed."""
    listed = ~data.is_copy & np.array([one.weight == LISTED for one in data.examples])
    for at, head in enumerate(HEADS):
        rows = ~data.is_copy & (data.weights[:, at] > 0)
        truth = data.truth[:, at]
        if head == KNOW:
            truth = np.array([one.know == SHARES[3] for one in data.examples])
            rows = listed & np.array([one.know is not None for one in data.examples])
            first = np.sort(scores[rows, at])[-int(truth[rows].sum())]
            print(f"{head}: {(scores[rows & truth, at] >= first).mean():.1%} come first")
            continue
        for name, kind in (("", rows), (" listed", rows & listed)):
            found, false = (
                (scores[kind & part, at] >= CUTOFFS[head]).mean() for part in (truth, ~truth)
            )
            print(f"{head}:{name} {found:.1%} found, {false:.1%} of the others")


def main() -> int:
    options = train_notes.options_of(__doc__)
    data = Data(examples())
    report(data, data.cross_validate(data.folds))
    if options.write:
        train_notes.write(TARGET, replace(data.fit(), cutoffs=CUTOFFS))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
