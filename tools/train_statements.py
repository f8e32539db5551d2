"""Fit the weights of `remanence.observers.learned.statements` to lines of users.

They are fitted to the user's lines of `data/notes`; what is stated also to the short messages of
`data/statements`, and to the statements of users in `data/facts`, which are often about their affairs and
not about them: "Kickoff is at 14:00.".

`python -m tools.train_statements` prints by cross-validation how much of what users state is kept,
by the share of look-alikes that are kept too, how many changes are found, by the share of other
statements that are taken for one, and how many wishes, by the share of other lines; `--write` writes the weights with the cutoffs at the shares of
`FALSE`. Needs scikit-learn (the `dev` extra).
"""

import csv
import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, cycle, islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from tools import notes_corpus, train_notes
from tools.notes_corpus import Sentence
from tools.train_notes import Corpus, Floats, fold

from remanence import Message
from remanence.observers.learned.features import UNSPACED, Line, tag
from remanence.observers.learned.function_words import WORD
from remanence.observers.learned.score import MoreFeatures
from remanence.observers.learned.statements import (
    CHANGES,
    FILE,
    STATED,
    WHOLE,
    WISHES,
    surroundings,
)
from remanence.observers.spoken import spoken_lines

TARGET = train_notes.TARGET.with_name(FILE)
PREFACES = notes_corpus.ROOT / "prefaces.txt"
LAUGHTER = notes_corpus.ROOT / "laughter.txt"
FACTS = notes_corpus.ROOT.with_name("facts")
"""Statements of users, told to fit other scores; of their wishes and changes not all are marked."""
SHORT = notes_corpus.ROOT.with_name("statements")
"""Short messages of users, with a sign each; of their changes none is marked."""
STATEMENT, WISH, NEITHER = "+", "*", "-"
LAUGHING = 8
"""Every such short message is put beside laughter as well."""
FOLLOWING = 2
"""Turns put behind a lead-in."""
HEADS = (STATED, CHANGES, WISHES)
BUCKETS = 1 << 20
C = 2.0
CONTRAST = train_notes.Contrast(share=0.5, rarity=0.1)
LEVELS = {STATED: 64, CHANGES: 24, WISHES: 24}
"""Fewer cost the area of what is stated 0.001; changes lose 0.3 points by theirs, wishes nothing."""
LEAST = 8
"""Examples that have the frame of a whole sentence, for it to be a feature."""
LINES_ALIKE = 8
"""Lines beside each other that are in one part of the cross-validation."""
HARD = "stated"
"""The register whose every look-alike has a true statement of similar words."""
WEIGHTS = {
    HARD: 2.0,
    "memory": 2.0,
    notes_corpus.EVERYDAY: 1.0,
    notes_corpus.PLAIN: 1.0,
    notes_corpus.MESSAGES: 2.0,
    notes_corpus.TYPICAL: 1.0,
    notes_corpus.COMMON: 1.0,
    notes_corpus.STYLE: 0.6,
    notes_corpus.CHANGES: 0.0,
    notes_corpus.ANSWERS: 0.5,
    notes_corpus.RULES: 0.5,
    "": 0.6,
    FACTS.name: 0.5,
    SHORT.name: 2.0,
}
"""Weight of an example in the fit of what is stated by its register, 1 if it is not named."""
ONLY_BARE = (notes_corpus.CHANGES, notes_corpus.RULES)
"""Registers whose lines are not put behind other words."""
FALSE = {STATED: 0.22, CHANGES: 0.2, WISHES: 0.02}
"""Share above the cutoff of the look-alikes of the hard register, of the statements that say no change,
and of all lines that are no wish."""
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.22, 0.24, 0.3)
ANOTHERS = frozenset({"quote", "trans", "fiction"})
"""Labels of words that are not the speaker's own."""
_NOT_STATED = ANOTHERS | {"forget", "world", "advice"}
_STATED = frozenset({"inst", "pref", "con", "dec", "remember", "rep", "end"})
_CHANGES = frozenset({"rep", "end", "corr"})
_WISHES = frozenset({"inst", "pref"})
_LEAD_IN = re.compile(r".{2,60}?(?<!\d)[:：]\s?(?=\w)")
"""Words before a colon: "Translate into French: "."""

Flags = NDArray[np.bool_]


class Example(NamedTuple):
    """A line of a user, of a register or without one if it was put together for the fit."""

    line: Line
    is_stated: bool | None
    is_change: bool
    is_wish: bool
    language: str
    fold: int
    register: str = ""
    value: str = ""
    """The text from the marked value on, if it has one."""
    message: str = ""
    """The place of its message, if that has several sentences."""


def is_statement(sentence: Sentence) -> bool | None:
    """Return whether a user states a fact, a wish or a decision; None where readers may differ."""
    if sentence.slot is not None:
        return True
    if sentence.labels & _NOT_STATED:
        return False
    if sentence.labels & _STATED:
        return True
    return False if sentence.worth < 2 else None


def examples(units: Corpus) -> list[Example]:
    """The lines of users that are clearly a statement or clearly none, as said and put together."""
    said, single, alone, lead_ins = (list[Example]() for _ in range(4))
    for unit in units:
        pairs = list(zip(notes_corpus.lines_of(unit), unit, strict=True))
        own = [
            Example(
                line=line,
                is_stated=is_statement(sentence),
                is_change=not sentence.labels.isdisjoint(_CHANGES),
                is_wish=not sentence.labels.isdisjoint(_WISHES),
                language=sentence.language,
                fold=fold(unit),
                register=sentence.register,
                value=sentence.text.removeprefix(sentence.marked.partition("⟦")[0]),
            )
            for line, sentence in pairs
            if line.role == "user"
        ]
        said += own
        if len(unit) == 1 and unit[0].register not in ONLY_BARE:
            single += own
            if unit[0].labels & ANOTHERS:
                lead_ins += [one for one in own if _LEAD_IN.match(one.line.text)]
            else:
                alone += own
    statements = [one for one in alone if one.is_stated]
    behind = put_behind_lead_ins(lead_ins, statements)
    unmeant = [one._replace(is_stated=False) for one in behind]
    found = [*said, *unmeant, *put_behind_prefaces(single), *shorten_to_notes(single)]
    return [one for one in found if one.is_stated is not None]


def told() -> Iterator[Example]:
    """Yield the statements of `FACTS`, and the small talk among the facts of users."""
    for folder in sorted(path for path in FACTS.iterdir() if path.is_dir()):
        lines = [
            (part.removeprefix("*"), True)
            for line in (folder / "revisions.txt").read_text("utf-8").splitlines()
            for part in line.partition(" >> ")[0].split(" // ")
        ]
        with (folder / "lives.tsv").open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            lines += [(row["text"], True) for row in rows]
        for line in (folder / "known.txt").read_text("utf-8").splitlines():
            weight, _, text = line.partition(" | ")
            lines.append((text, not weight.startswith("0")))
        for number, (text, is_stated) in enumerate(lines):
            yield Example(
                line=Line(text, "user"),
                is_stated=is_stated,
                is_change=False,
                is_wish=False,
                language=folder.name,
                fold=number // LINES_ALIKE % train_notes.FOLDS,
                register=FACTS.name,
            )


def short() -> Iterator[Example]:
    """Yield the sentences of the messages of `SHORT`, each with the sign of its message."""
    for path in sorted(SHORT.glob("*.txt")):
        for number, row in enumerate(path.read_text("utf-8").splitlines(), 1):
            sign, _, text = row.partition(" ")
            if sign not in (STATEMENT, WISH, NEITHER):
                raise ValueError(f"{path}, line {number}: not `+|*|- text`")
            own = [line for line in spoken_lines((Message.user(text),)) if line.role == "user"]
            for line in own if len(own) > 1 else [Line(text, "user")]:
                yield Example(
                    line=line,
                    is_stated=sign != NEITHER,
                    is_change=False,
                    is_wish=sign == WISH,
                    language=path.stem,
                    fold=number // LINES_ALIKE % train_notes.FOLDS,
                    register=SHORT.name,
                    message=f"{path.stem} {number}" if len(own) > 1 else "",
                )


def put_beside_laughter(others: Iterable[Example]) -> Iterator[Example]:
    """Yield some messages of one sentence with laughter behind them, or before every third, as true as without.

    In the corpus people laugh about what they do not mean, so that "haha" took what they state back.
    """
    rows = (line.split(": ") for line in LAUGHTER.read_text("utf-8").splitlines())
    laughter = {language: words.split(", ") for language, words in rows}
    single = (one for one in others if not one.message)
    for number, one in enumerate(islice(single, 0, None, LAUGHING)):
        own = laughter[one.language]
        laugh, text = own[number % len(own)], one.line.text
        text = f"{laugh} {text}" if number % 3 == 0 else f"{text.rstrip(' .。।')} {laugh}"
        yield one._replace(line=one.line._replace(text=text), register="")


def put_behind_lead_ins(lead_ins: list[Example], others: list[Example]) -> Iterator[Example]:
    """Yield others of the same language, two behind what each lead-in has before its colon."""
    first = _groups(lead_ins)
    for group, members in _groups(others).items():
        following = cycle(members)
        for lead_in in first[group]:
            before = _LEAD_IN.match(lead_in.line.text)
            for one in islice(following, FOLLOWING):
                text = f"{before[0] if before else ''}{one.line.text}"
                yield one._replace(line=one.line._replace(text=text), register="")


def put_behind_prefaces(others: list[Example]) -> Iterator[Example]:
    """Yield others after words such as "Hello" in their own sentence, as true as before.

    Each has a colon behind those words, and every second one comes with a comma as well.
    """
    for (language, _), members in _groups(others).items():
        words, comma, colon = prefaces(language)
        for number, (one, preface) in enumerate(zip(members, cycle(words), strict=False)):
            for mark in (comma, colon)[number % 2 :]:
                text = put_behind(preface, mark, one.line.text)
                yield one._replace(line=one.line._replace(text=text), register="")


def prefaces(language: str) -> tuple[list[str], str, str]:
    """Return words such as "Hello", and the comma and the colon that go behind them."""
    known = dict(line.split(": ") for line in PREFACES.read_text("utf-8").splitlines())
    first, comma, more = re.split("([,،、，] ?)", known[language], maxsplit=1)
    return [first, *more.split(comma)], comma, ": " if comma.endswith(" ") else "："


def put_behind(preface: str, mark: str, text: str) -> str:
    """Return a text behind other words of its sentence."""
    start = preface.lower() if text[:1].islower() else preface
    return f"{start}{mark}{continued(text)}"


def continued(text: str) -> str:
    """Return a text as it is behind other words of its sentence: "my" for "My", but "I" for "I"."""
    return text[0].lower() + text[1:] if text[1:2].islower() else text


def shorten_to_notes(others: list[Example]) -> Iterator[Example]:
    """Yield others as a note has them, as true as before: "allergic: penicillin, badly".

    The first word of content names the topic; the value follows, or all that is behind that word.
    """
    for one in others:
        text = one.line.text
        before = text.removesuffix(one.value).lower()
        tokens = tag(before, WORD.findall(before))
        topic = next((word for word, classes in tokens if word[0].isalpha() and not classes), "")
        rest = one.value or text[before.find(topic) + len(topic) :].strip(" ,.:：，。")
        if topic and rest:
            colon = "：" if UNSPACED.match(topic) else ": "
            yield one._replace(line=one.line._replace(text=f"{topic}{colon}{rest}"), register="")


def _groups(found: list[Example]) -> dict[tuple[str, int], list[Example]]:
    """Examples by language and fold, in an order that their texts give."""
    groups: defaultdict[tuple[str, int], list[Example]] = defaultdict(list)
    for one in sorted(found, key=lambda one: hashlib.sha256(one.line.text.encode()).digest()):
        groups[one.language, one.fold].append(one)
    return groups


def without_rare_frames(lines: Iterable[Line]) -> MoreFeatures:
    """Return `surroundings`, but without the frames of whole sentences that few lines have."""
    names = chain.from_iterable(chain.from_iterable(map(surroundings, lines)))
    counts = Counter(name for name in names if name.startswith(WHOLE))
    rare = {name for name, count in counts.items() if count < LEAST}

    def common(line: Line) -> Iterator[tuple[str, ...]]:
        for group in surroundings(line):
            yield tuple(name for name in group if name not in rare)

    return common


class Data(train_notes.Table):
    """Examples as arrays."""

    heads = HEADS
    strength = C
    levels_of = LEVELS
    contrast = CONTRAST

    def __init__(self, found: list[Example]) -> None:
        lines = [one.line for one in found]
        self.inputs = train_notes.matrix_of(lines, surroundings, BUCKETS)
        self._to_fit = train_notes.matrix_of(lines, without_rare_frames(lines), BUCKETS)
        self.truth = np.array([(bool(one.is_stated), one.is_change, one.is_wish) for one in found])
        self.folds = np.array([one.fold for one in found])
        self.registers = np.array([one.register for one in found])
        weights = np.array([WEIGHTS.get(one.register, 1.0) for one in found])
        has_changes = ~np.isin(self.registers, (FACTS.name, SHORT.name))
        has_wishes = self.registers != FACTS.name
        # Changes are told from other statements alone.
        columns = [weights, has_changes & self.truth[:, 0], has_wishes]
        self.weights = np.stack(columns, axis=1)
        self.weights[self._unmeant([one.message for one in found])] = 0

    @property
    def to_fit(self) -> train_notes.Matrix:
        """All features but rare frames of whole sentences, which would only tell single lines."""
        return self._to_fit

    def _unmeant(self, messages: Sequence[str]) -> list[int]:
        """The sentences of statements and wishes that do not make their message one.

        The one that does is the surest by a fit to all other examples.
        """
        alone = np.array([not message for message in messages])
        coefficients, _ = self._fit(
            self.to_fit[alone], self.truth[alone, 0], self.weights[alone, 0]
        )
        scores: list[float] = (self.inputs @ coefficients).tolist()
        of_several: list[int] = np.flatnonzero(~alone & self.truth[:, 0]).tolist()
        rows = sorted(of_several, key=scores.__getitem__)
        surest = {messages[row]: row for row in rows}
        return [row for row in rows if surest[messages[row]] != row]


def report(data: Data, scores: Floats) -> dict[str, float]:
    """Print a row per share of false ones and return the cutoffs."""
    stated, changes, wishes = data.truth.T
    hard = data.registers == HARD
    said = ~np.isin(data.registers, ("", FACTS.name, SHORT.name))
    talk = np.isin(data.registers, notes_corpus.REGISTERS)
    print_shares(scores[:, 0], stated, {HARD: hard, "conversations": talk})
    print_shares(scores[:, 1], changes, {"changes": said & stated})
    print_shares(scores[:, 2], wishes, {"wishes": said, "conversations": talk})
    print(f"area under the curve of {HARD}: {roc_auc_score(stated[hard], scores[hard, 0]):.4f}")
    return {
        STATED: cutoff(scores[hard & ~stated, 0], FALSE[STATED]),
        CHANGES: cutoff(scores[said & stated & ~changes, 1], FALSE[CHANGES]),
        WISHES: cutoff(scores[said & ~wishes, 2], FALSE[WISHES]),
    }


def cutoff(false: Floats, share: float) -> float:
    """Return the score that a share of false ones reaches."""
    return float(np.quantile(false, 1 - share))


def print_shares(scores: Floats, truth: Flags, kinds: dict[str, Flags]) -> None:
    """Print which shares of each kind are above cutoffs at shares of the false ones of the first."""
    first = next(iter(kinds.values()))
    for share in SHARES:
        at = cutoff(scores[first & ~truth], share)
        cells = [f"cutoff {at:5.2f}"]
        for name, rows in kinds.items():
            kept, false = ((scores[rows & part] >= at).mean() for part in (truth, ~truth))
            cells.append(f"{name}: kept {kept:.1%} false {false:.1%}")
        print("   ".join(cells))


def main() -> int:
    options = train_notes.options_of(__doc__)
    units = train_notes.conversations(held=False)
    data = Data([*examples(units), *told(), *short(), *put_beside_laughter(short())])
    cutoffs = report(data, data.cross_validate(data.folds))
    if options.write:
        train_notes.write(TARGET, replace(data.fit(), cutoffs=cutoffs))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
