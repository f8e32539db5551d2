"""How long the learned scores of 30,000 tokens take, beside counting those tokens."""

import statistics
import time
from collections.abc import Callable, Iterator
from itertools import groupby

from tools import notes_corpus

from benchmarks.rows import Row, show
from remanence import count_tokens
from remanence.observers.learned.features import Line
from remanence.observers.learned.score import Scorer
from remanence.observers.learned.weights import load

TOKENS = 30_000
TARGET_MS = 300.0


def measure(*, count: int = 5) -> list[Row]:
    """Medians over *count* runs, each with a scorer that has seen no word before."""
    parts = list(conversations())
    lines = [line for part in parts for line in part]
    texts = [line.text for line in lines]
    load()
    counting = median(lambda: [count_tokens(text) for text in texts], count)
    scoring = median(lambda: list(map(Scorer(load()).score, lines)), count)
    known = Scorer(load())
    again = median(lambda: list(map(known.score, lines)), count)
    detail = f"{len(texts):,} sentences in {len(parts)} conversations of all languages"
    reference = "counting the tokens"
    return [
        Row(what="count 30,000 tokens", measured=counting, unit="ms"),
        Row(
            what="score 30,000 tokens", measured=scoring, unit="ms", target=TARGET_MS, detail=detail
        ),
        Row(what="score 30,000 tokens of known words", measured=again, unit="ms", target=TARGET_MS),
        Row(what="score ÷ count", measured=scoring / counting, unit="×", reference=reference),
    ]


def conversations() -> Iterator[list[Line]]:
    """Labelled conversations that are not set aside, of every language in turn, up to `TOKENS`."""
    sentences = notes_corpus.read()
    apart = notes_corpus.held_out(sentences)
    units = [list(group) for _, group in groupby(sentences, key=notes_corpus.unit)]
    units = [unit for unit in units if notes_corpus.unit(unit[0]) not in apart and len(unit) > 1]
    units.sort(key=lambda unit: (unit[0].conversation[-2:], unit[0].register, unit[0].language))
    tokens = 0
    for unit in units:
        tokens += sum(count_tokens(sentence.text) for sentence in unit)
        if tokens > TOKENS:
            return
        yield notes_corpus.lines_of(unit)


def median(work: Callable[[], object], count: int) -> float:
    """Milliseconds of this process in the median run."""
    runs = []
    for _ in range(count):
        began = time.process_time()
        work()
        runs.append((time.process_time() - began) * 1_000)
    return statistics.median(runs)


if __name__ == "__main__":
    show(measure())
