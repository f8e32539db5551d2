"""Fit the weights of `remanence.observers.learned.openings` to the openings of messages.

`python -m tools.train_openings` prints how well openings of `data/openings` are told apart by weights
that were fitted to other kinds of openings, or to other languages; `--apart` fits without
`LANGUAGES_APART` and measures those and the lines that are set aside; `--write` writes weights that are
fitted to all but the latter. Needs scikit-learn (the `dev` extra).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from tools import notes_corpus, train_notes
from tools.train_statements import ANOTHERS, LINES_ALIKE, PREFACES, is_statement, short

from remanence.observers.learned.features import QUESTION
from remanence.observers.learned.openings import FILE, HANDOVER, head_of, line_of

ROOT = Path(__file__).parents[1] / "data" / "openings"
TARGET = train_notes.TARGET.with_name(FILE)
EACH_APART = 5
"""Each line of a file whose number is divided by this is set aside."""
LANGUAGES_APART = frozenset({"ko", "nl"})
NEAR = ROOT / "near"
"""Openings that are hard to tell apart: their typical words are in those of both sides."""
BUCKETS = 1 << 18
C = 10.0
CUTOFF = 0.0
CUTOFFS = (-0.5, -0.25, 0.0, 0.25, 0.5)
WEIGHTS = {ROOT: 3.0, NEAR: 2.0}
"""Weight of an opening in the fit, by its folder."""
PREFACE, TURN = 1.0, 1.0
"""Weights of a preface, and of an opening of `data/notes`."""
STATEMENT, ASKING = 0.1, 0.25
"""Weights of a statement of `data/statements`, and of a question of `data/notes`, which hand over nothing."""
_LINE = re.compile(r"(own|other) ([+/]) (.+?) \| (.+)")
_UNSPACED = frozenset({"ja", "zh"})
"""Languages with no space between sentences."""

Flags = NDArray[np.bool_]


class Opening(NamedTuple):
    """The opening of a message, and whether somebody else's text follows it."""

    language: str
    number: int
    hands_over: bool
    text: str
    weight: float
    joint: str = ""
    following: str = ""
    folder: Path | None = None

    @property
    def is_apart(self) -> bool:
        return self.folder is not None and self.number % EACH_APART == 0

    @property
    def message(self) -> str:
        return f"{self.text}{self.joint}{self.following}"


def openings(*folders: Path) -> list[Opening]:
    """Read the messages of all languages, of all folders if none is named."""
    return [
        parse(path, number, line)
        for folder in folders or WEIGHTS
        for path in sorted(folder.glob("*.txt"))
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
    ]


def parse(path: Path, number: int, line: str) -> Opening:
    """Read a message: `own` or `other`, `/` if the rest is on a new line or `+`, and both parts."""
    match = _LINE.fullmatch(line)
    if match is None:
        raise ValueError(f"{path}, line {number}: not `own|other +|/ opening | text`")
    whose, joint, opening, following = match.groups()
    space = "" if path.stem in _UNSPACED else " "
    return Opening(
        language=path.stem,
        number=number,
        hands_over=whose == "other",
        text=opening,
        weight=WEIGHTS[path.parent],
        joint="\n" if joint == "/" else space,
        following=following,
        folder=path.parent,
    )


def more_openings() -> Iterator[Opening]:
    """Yield the prefaces, and the openings, lead-ins and questions of users in `data/notes`."""
    for line in PREFACES.read_text("utf-8").splitlines():
        language, prefaces = line.split(": ")
        ends = "。：" if language in _UNSPACED else ".:"
        for number, preface in enumerate(re.split("[,،、，] ?", prefaces)):
            for end in ends:
                yield Opening(
                    language, number, hands_over=False, text=f"{preface}{end}", weight=PREFACE
                )
    for unit in train_notes.conversations(held=False):
        if unit[0].register in (notes_corpus.HASTY, notes_corpus.MESSAGES, notes_corpus.COMMON):
            continue  # they hardly ever begin with words that hand over a text
        for message in _messages(unit):
            first, *others = message
            is_another = bool(first.labels & ANOTHERS)
            weight = TURN
            if others and not is_another:
                hands_over = any(sentence.labels & ANOTHERS for sentence in others)
            elif (
                not others and head_of(first.text) != first.text and is_statement(first) is not None
            ):
                hands_over = is_another
            elif not is_another and QUESTION.search(first.text):
                hands_over, weight = False, ASKING
            else:
                continue
            number = train_notes.fold(unit)
            yield Opening(first.language, number, hands_over, first.text, weight)


def statements() -> Iterator[Opening]:
    """Yield the statements among the short messages of users, which hand over nothing."""
    for number, one in enumerate(short()):
        if one.is_stated and not QUESTION.search(one.line.text):
            part = number // LINES_ALIKE
            yield Opening(
                one.language, part, hands_over=False, text=one.line.text, weight=STATEMENT
            )


def _messages(unit: Sequence[notes_corpus.Sentence]) -> Iterator[list[notes_corpus.Sentence]]:
    """Yield the messages of the user, each with its sentences."""
    message: list[notes_corpus.Sentence] = []
    for sentence in unit:
        if sentence.kind in notes_corpus.SPEAKERS and message:
            yield message
            message = []
        if sentence.speaker == "u":
            message.append(sentence)
    if message:
        yield message


class Data(train_notes.Table):
    """Openings as arrays."""

    heads = (HANDOVER,)
    strength = C

    def __init__(self, found: Sequence[Opening]) -> None:
        self.openings = found
        self.inputs = train_notes.matrix_of((line_of(one.text) for one in found), size=BUCKETS)
        self.truth = np.array([[one.hands_over] for one in found])
        self.weights = np.array([[one.weight] for one in found])

    def rows(self, test: Callable[[Opening], bool]) -> Flags:
        return np.array([test(one) for one in self.openings])

    def report(self, name: str, rows: Flags, scores: train_notes.Floats) -> None:
        """Print by cutoff the shares of openings that are taken to hand over a text."""
        truth = self.truth[:, 0]
        area = roc_auc_score(truth[rows], scores[rows])
        print(f"{name}: {rows.sum()} openings, area under the curve {area:.3f}")
        for cutoff in CUTOFFS:
            found, false = ((scores[rows & part] >= cutoff).mean() for part in (truth, ~truth))
            print(f"  cutoff {cutoff:5.2f}   found {found:.1%}, of the others {false:.1%}")


def main() -> int:
    options = train_notes.options_of(__doc__, apart="measure what was set aside")
    data = Data([*openings(), *more_openings(), *statements()])
    line_apart = data.rows(lambda one: one.is_apart)
    language_apart = data.rows(lambda one: one.language in LANGUAGES_APART)
    known = Data(list(compress(data.openings, ~line_apart & ~language_apart)))
    of_file = known.rows(lambda one: one.folder is not None)
    by_kind = known.cross_validate(one.number % EACH_APART for one in known.openings)[:, 0]
    known.report("other kinds", of_file, by_kind)
    known.report("turns of notes", known.rows(lambda one: one.folder is None), by_kind)
    by_language = known.cross_validate(one.language for one in known.openings)[:, 0]
    known.report("other languages", of_file, by_language)
    if options.apart:
        scores = train_notes.predict(known.fit(), data.inputs)[:, 0]
        data.report("lines apart", line_apart & ~language_apart, scores)
        of_file = data.rows(lambda one: one.folder is not None)
        data.report("languages apart", language_apart & of_file, scores)
    if options.write:
        train_notes.write(TARGET, replace(data.fit(~line_apart), cutoffs={HANDOVER: CUTOFF}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
