"""How close the token estimates come, and how fast they are beside an exact tokenizer.

REMANENCE_DATA names the folder that holds `tokens/`: one file per kind of text, with true counts.
"""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.rows import Row, show
from remanence.catalog import FAMILIES, Family
from remanence.tokens import counter_for

COUNT_NAMES: dict[Family, str] = {
    "o200k": "o200k",
    "cl100k": "cl100k",
    "claude": "claude_4_7",
    "claude_3": "claude_3",
}
TARGETS: dict[Family, float] = {"o200k": 3.0, "claude": 4.0}
SPEED_KINDS = ("en_chat", "code_python", "json_tool_pretty", "zh_chat", "po_ru", "base64")
SPEED_CHARACTERS = 500_000

Count = Callable[[str], int]
Lines = list[dict[str, Any]]  # JSON lines


class Errors(NamedTuple):
    """Relative errors of a kind: of the sum of its texts, and the mean of the single texts."""

    of_sum: float
    of_texts: float


def measure() -> list[Row]:
    """Errors over the kinds of text and speeds; one row that says so where the data is absent."""
    kinds = read_kinds()
    if not kinds:
        return [Row(what="token estimate", measured=None, detail="set REMANENCE_DATA")]
    return [*accuracy(kinds), *speed(kinds)]


def read_kinds() -> dict[str, Lines]:
    """The texts with their true counts, by kind."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("REMANENCE_DATA") or beside) / "tokens"
    return {path.stem: read_lines(path) for path in sorted(folder.glob("*.jsonl"))}


def read_lines(path: Path) -> Lines:
    """The lines of a kind; JSON text may hold separators that `str.splitlines` would split at."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def accuracy(kinds: dict[str, Lines]) -> list[Row]:
    """Mean and worst error over kinds per family, with characters/4 as the reference."""
    rows = []
    for family in FAMILIES:
        ours = errors_of(counter_for(family).text, kinds, family)
        flat = errors_of(counter_for("flat").text, kinds, family)
        worst = max(ours, key=lambda kind: ours[kind].of_texts)
        rows.append(
            Row(
                what=f"token estimate, mean error over {len(kinds)} kinds of text, {family}",
                measured=mean(ours),
                unit="%",
                target=TARGETS.get(family),
                reference=f"characters/4: {mean(flat):.0f} %",
                detail=f"of sums {100 * sum(e.of_sum for e in ours.values()) / len(ours):.2f} %; "
                f"worst kind {worst} {100 * ours[worst].of_texts:.1f} %",
            )
        )
    return rows


def errors_of(count: Count, kinds: dict[str, Lines], family: Family) -> dict[str, Errors]:
    """The errors of a way to count, by kind."""
    found = {}
    for kind, lines in kinds.items():
        true = [line[COUNT_NAMES[family]] for line in lines]
        ours = [count(line["text"]) for line in lines]
        single = sum(abs(o - t) / max(t, 1) for o, t in zip(ours, true, strict=True))
        found[kind] = Errors(abs(sum(ours) / sum(true) - 1), single / len(lines))
    return found


def mean(errors: dict[str, Errors]) -> float:
    """The mean over kinds of the single texts' errors, in percent."""
    return 100 * sum(error.of_texts for error in errors.values()) / len(errors)


def speed(kinds: dict[str, Lines]) -> list[Row]:
    """Megabytes of text counted per second of CPU, beside an exact tokenizer where there is one."""
    exact = exact_tokenizer()
    rows = []
    for kind in SPEED_KINDS:
        text = "\n".join(line["text"] for line in kinds.get(kind, []))[:SPEED_CHARACTERS]
        if text:
            reference = f"exact: {megabytes_per_second(exact, text):.1f} MB/s" if exact else ""
            rows.append(
                Row(
                    what=f"token estimate, speed, {kind}",
                    measured=megabytes_per_second(counter_for("claude").text, text),
                    unit="MB/s",
                    target=2.0 if kind == "en_chat" else None,
                    at_least=True,
                    reference=reference,
                )
            )
    return rows


def megabytes_per_second(count: Count, text: str) -> float:
    """The best of five runs, the first of which also fills caches."""
    taken = []
    for _ in range(5):
        began = time.process_time()
        count(text)
        taken.append(time.process_time() - began)
    return len(text.encode()) / 1e6 / min(taken)


def exact_tokenizer() -> Count | None:
    """o200k by `bpe-openai`, which brings its vocabulary along."""
    try:
        import bpe_openai  # noqa: PLC0415 - only this comparison needs it
    except ImportError:
        return None
    encoding = bpe_openai.get_encoding("o200k_base")
    return lambda text: len(encoding.encode_ordinary(text))


def table() -> None:
    """Print the errors of each kind."""
    kinds = read_kinds()
    found = {family: errors_of(counter_for(family).text, kinds, family) for family in FAMILIES}
    print("kind", *FAMILIES, sep=" | ")
    for kind in kinds:
        cells = (found[family][kind] for family in FAMILIES)
        print(kind, *(f"{cell.of_sum:.1%} {cell.of_texts:.1%}" for cell in cells), sep=" | ")


def main() -> None:
    """Print the figures and the table behind them."""
    show(measure())
    table()


if __name__ == "__main__":
    main()
