"""Options that users name by their labels: "2", "then b", "option C".

`choices.tsv` has the exchanges beside which the rules were chosen, `unseen_choices.tsv` those of
another hand. In two of five the reply has a number or a letter that is no label.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.rows import Row, show
from remanence.observers.extractive.options import options_of
from remanence.observers.extractive.sentences import sentences

FILES = {"beside which they were chosen": "choices.tsv", "unseen": "unseen_choices.tsv"}


class Exchange(NamedTuple):
    """An assistant's message with options, a reply, and the labels that this names, in small letters."""

    labels: frozenset[str]
    asked: str
    reply: str


def measure() -> list[Row]:
    """Shares of the named options that are found, and of the found ones that are not named."""
    return [row for kind, file in FILES.items() for row in _measure(kind, file)]


def _measure(kind: str, file: str) -> Iterator[Row]:
    named = found = right = 0
    for one in _exchanges(file):
        labels = _found_in(one)
        named += len(one.labels)
        found += len(labels)
        right += len(labels & one.labels)
    yield _row(f"options named by their labels that are found, {kind}", right, named)
    yield _row(f"options found that are not named, {kind}", found - right, found)


def _exchanges(file: str) -> Iterator[Exchange]:
    with Path(__file__).with_name(file).open(encoding="utf-8", newline="") as opened:
        for _, labels, asked, reply in csv.reader(opened, delimiter="\t", quoting=csv.QUOTE_NONE):
            named = (label.strip().lower() for label in labels.split(","))
            yield Exchange(frozenset(named) - {"-"}, _lines(asked), _lines(reply))


def _lines(text: str) -> str:
    return text.replace("\\n", "\n")


def _found_in(one: Exchange) -> frozenset[str]:
    options = options_of(one.asked)
    said = (one.reply[span.start : span.end] for span in sentences(one.reply))
    return frozenset(option.label.lower() for each in said for option in options.named_in(each))


def _row(what: str, count: int, of: int) -> Row:
    return Row(what=what, measured=100 * count / of, unit="%", detail=f"{count} of {of}")


if __name__ == "__main__":
    show(measure())
