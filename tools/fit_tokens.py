"""Fit the weights of the token estimator to texts with known counts.

    python -m tools.fit_tokens KINDS [MORE ...] --write      fit on everything, write the weights
    python -m tools.fit_tokens KINDS [MORE ...]              keep documents aside, report the errors on them
    python -m tools.fit_tokens KINDS [MORE ...] --new-kinds  keep each kind aside in turn, whole

A folder holds one `<kind>.jsonl` per kind of text; a line has `text` and its true counts under
`o200k`, `cl100k`, `claude_3` and `claude_4_7`. Errors are reported for KINDS; MORE steadies the fit and
counts half. Neighbouring lines come from one document, so what is kept aside are runs of lines.

The fit is ridge regression on the relative error. A detail seen in fewer than `--least-texts` texts
shares the weight `*` of its kind, which so becomes the estimate for all that was never seen.
"""

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from remanence.catalog import FAMILIES, Family
from remanence.tokens.estimator import OTHERS
from remanence.tokens.features import features
from remanence.tokens.pieces import cutter

WEIGHTS = Path(__file__).parents[1] / "src/remanence/tokens/coefficients.json"
COUNT_NAMES: dict[Family, str] = {
    "o200k": "o200k",
    "cl100k": "cl100k",
    "claude": "claude_4_7",
    "claude_3": "claude_3",
}
UNIT = 0.001
SMALLEST_TEXT = 15  # tokens; below, an error of one token would weigh too much
MORE_WEIGHT = 0.5
RIDGE = 0.01
SHAPE_RIDGE = 0.001
SHAPES = (
    *("script", "lead", "small", "capital", "upper", "mixed", "digits", "space", "spaces"),
    *("blanks", "signs", "line", "blank", "symbols"),
)
BLOCKS = 12

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Name(NamedTuple):
    """A column of the design: a detail of some kind of feature."""

    kind: str
    detail: str


class Text(NamedTuple):
    """A text with its true counts."""

    kind: str
    measured: bool
    held: bool
    text: str
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """How often each feature occurs in each text, as a sparse matrix in coordinates."""

    names: list[Name]
    texts: int
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    value: Floats

    def estimate(self, weights: Floats) -> Floats:
        return summed(self.row, self.value * weights[self.column], self.texts)

    def only(self, chosen: Flags) -> "Design":
        kept = chosen[self.row]
        return Design(
            names=self.names,
            texts=self.texts,
            row=self.row[kept],
            column=self.column[kept],
            value=self.value[kept],
        )


def main() -> None:
    options = _options()
    texts = list(read_texts(options.folders))
    design = merge_rare(design_of(texts), options.least_texts)
    print(f"{len(texts)} texts, {len(design.names)} features, {len(design.row)} entries")
    if options.write:
        write(design, fit_all(design, texts, np.ones(len(texts), bool)))
    elif options.new_kinds:
        report_new_kinds(design, texts)
    else:
        held = np.array([text.held for text in texts])
        weights = fit_all(design, texts, ~held)
        for index, family in enumerate(FAMILIES):
            report(family, errors(texts, held, design.estimate(weights[index]), index))


def read_texts(folders: list[Path]) -> Iterator[Text]:
    for place, folder in enumerate(folders):
        for path in sorted(folder.glob("*.jsonl")):
            with path.open(encoding="utf-8") as file:
                lines = [json.loads(line) for line in file]
            for number, line in enumerate(lines):
                yield Text(
                    kind=path.stem,
                    measured=place == 0,
                    held=number * BLOCKS // len(lines) % 4 == 1,
                    text=line["text"],
                    tokens=tuple(line[COUNT_NAMES[family]] for family in FAMILIES),
                )


def design_of(texts: list[Text]) -> Design:
    cut = cutter()
    columns: dict[Name, int] = {}
    known: dict[str, list[tuple[int, int]]] = {}
    row, column, value = [], [], []
    for number, text in enumerate(texts):
        sums: Counter[int] = Counter()
        for piece, times in Counter(cut(text.text)).items():
            if piece not in known:
                known[piece] = [
                    (columns.setdefault(Name(kind, detail), len(columns)), times)
                    for kind, detail, times in features(piece)
                ]
            for index, count in known[piece]:
                sums[index] += count * times
        row.append(np.full(len(sums), number))
        column.append(np.fromiter(sums.keys(), np.int64, len(sums)))
        value.append(np.fromiter(sums.values(), np.float64, len(sums)))
    return Design(
        names=list(columns),
        texts=len(texts),
        row=np.concatenate(row),
        column=np.concatenate(column),
        value=np.concatenate(value),
    )


def merge_rare(design: Design, least_texts: int) -> Design:
    texts = np.bincount(design.column, minlength=len(design.names))
    columns: dict[Name, int] = {}
    moved = np.empty(len(design.names), np.int64)
    for index, name in enumerate(design.names):
        kept = name if texts[index] >= least_texts else Name(name.kind, OTHERS)
        moved[index] = columns.setdefault(kept, len(columns))
    return Design(
        names=list(columns),
        texts=design.texts,
        row=design.row,
        column=moved[design.column],
        value=design.value,
    )


def summed(place: NDArray[np.int64], value: Floats, length: int) -> Floats:
    return np.bincount(place, value, length).astype(np.float64, copy=False)


def fit_all(design: Design, texts: list[Text], chosen: Flags) -> list[Floats]:
    part = design.only(chosen)
    return [fit(part, texts, index) for index in range(len(FAMILIES))]


def fit(design: Design, texts: list[Text], index: int, start: Floats | None = None) -> Floats:
    """Weights for the family at *index*, from the texts that have entries in *design*."""
    true = np.array([text.tokens[index] for text in texts], float)
    share = np.array([1.0 if text.measured else MORE_WEIGHT for text in texts])
    scale = share / np.maximum(true, SMALLEST_TEXT)
    ridge = np.array([SHAPE_RIDGE if _is_shape(name) else RIDGE for name in design.names])
    value = design.value * scale[design.row]
    wanted = np.zeros(design.texts)
    wanted[np.unique(design.row)] = 1
    wanted *= true * scale

    def forward(weights: Floats) -> Floats:
        return summed(design.row, value * weights[design.column], design.texts)

    def backward(rest: Floats) -> Floats:
        return summed(design.column, value * rest[design.row], len(ridge))

    diagonal = summed(design.column, value * value, len(ridge)) + ridge
    first = np.zeros(len(ridge)) if start is None else start
    return conjugate_gradient(
        lambda w: backward(forward(w)) + ridge * w, backward(wanted), diagonal, first
    )


def _is_shape(name: Name) -> bool:
    return name.kind.split()[0] in SHAPES


def conjugate_gradient(
    apply: Callable[[Floats], Floats], wanted: Floats, diagonal: Floats, start: Floats
) -> Floats:
    """Solve `apply(x) == wanted`, with the diagonal as preconditioner."""
    solution, rest = start.copy(), wanted - apply(start)
    scaled = rest / diagonal
    step, energy = scaled.copy(), rest @ scaled
    goal = 1e-8 * (wanted @ (wanted / diagonal))
    for _ in range(80):
        if energy < goal:
            break
        applied = apply(step)
        length = energy / (step @ applied)
        solution += length * step
        rest -= length * applied
        scaled = rest / diagonal
        energy, before = rest @ scaled, energy
        step = scaled + energy / before * step
    return solution


class KindError(NamedTuple):
    """Relative errors of one kind: of the sum of its texts, and the mean of the single ones."""

    of_sum: float
    of_texts: float


def errors(texts: list[Text], chosen: Flags, tokens: Floats, index: int) -> dict[str, KindError]:
    found: dict[str, list[tuple[float, int]]] = {}
    for text, take, estimate in zip(texts, chosen, tokens, strict=True):
        if take and text.measured:
            found.setdefault(text.kind, []).append((estimate, text.tokens[index]))
    return {kind: _kind_error(np.array(pairs)) for kind, pairs in found.items()}


def _kind_error(pairs: Floats) -> KindError:
    estimated, true = pairs.T
    single = np.abs(estimated - true) / np.maximum(true, 1)
    return KindError(abs(estimated.sum() / true.sum() - 1), single.mean())


def report(family: str, found: dict[str, KindError]) -> None:
    sums = np.mean([error.of_sum for error in found.values()])
    single = np.mean([error.of_texts for error in found.values()])
    print(f"\n{family}: mean over kinds {sums:.2%} of sums, {single:.2%} of texts")
    for kind, error in sorted(found.items()):
        print(f"  {kind:22} {error.of_sum:7.2%} {error.of_texts:7.2%}", flush=True)


def report_new_kinds(design: Design, texts: list[Text]) -> None:
    everything = np.ones(len(texts), bool)
    for index, family in enumerate(FAMILIES):
        whole = fit(design, texts, index)
        found: dict[str, KindError] = {}
        for kind in sorted({text.kind for text in texts if text.measured}):
            aside = np.array([text.kind == kind for text in texts])
            weights = fit(design.only(everything & ~aside), texts, index, whole)
            found |= errors(texts, aside, design.estimate(weights), index)
        report(f"{family}, kinds not fitted", found)


def write(design: Design, weights: list[Floats]) -> None:
    """One line per kind; the details of a kind in order, each with a weight per family."""
    table: dict[str, dict[str, list[int]]] = {}
    for name, row in zip(design.names, np.rint(np.array(weights).T / UNIT), strict=True):
        table.setdefault(name.kind, {})[name.detail] = [int(number) for number in row]
    lines = [
        f"{as_json(kind)}: {as_json(dict(sorted(table[kind].items())))}" for kind in sorted(table)
    ]
    head = f'{{"families": {json.dumps(list(FAMILIES))}, "unit": {UNIT}, "weights": {{\n'
    WEIGHTS.write_text(head + ",\n".join(lines) + "\n}}\n", encoding="utf-8")


def as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--least-texts", type=int, default=100)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", action="store_true")
    what.add_argument("--new-kinds", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
