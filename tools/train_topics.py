"""Fit the weights of `remanence.observers.learned.topics` to the labelled texts and words of `data/topics`.

`python -m tools.train_topics` prints by cross-validation over lines how often the most probable topic is
one of a text's, and `--write` writes the weights. Needs scikit-learn (the `dev` extra).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tools import train_notes

from remanence.observers.learned.topics import FILE, topic_grams

ROOT = Path(__file__).parents[1] / "data" / "topics"
TARGET = train_notes.TARGET.with_name(FILE)
BUCKETS = 1 << 17
FOLDS = 4
C = 5.0
LEVELS = 12


class Text(NamedTuple):
    """A text with its topics, the main one first; its language; and whether it is a word or two."""

    language: str
    topics: tuple[str, ...]
    text: str
    is_word: bool


def texts(root: Path = ROOT) -> Iterator[Text]:
    """Read the labelled statements and questions of all languages, and the words of their topics."""
    for path in sorted(root.glob("*.tsv")):
        for line in path.read_text("utf-8").splitlines():
            topics, text = line.split("\t")
            yield Text(path.stem, tuple(topics.split()), text, is_word=False)
    for path in sorted((root / "words").glob("*.txt")):
        for line in path.read_text("utf-8").splitlines():
            topic, words = line.split(": ")
            for word in words.split(", "):
                yield Text(path.stem, (topic,), word, is_word=True)


class Data(train_notes.Table):
    """Texts as arrays."""

    strength = C
    levels = LEVELS
    is_sparse = True

    def __init__(self, found: list[Text]) -> None:
        self.texts = found
        self.heads = tuple(sorted({topic for one in found for topic in one.topics}))
        grams = ([sorted(topic_grams(one.text))] for one in found)
        self.inputs = train_notes.matrix(grams, BUCKETS)
        self.truth = np.array([[head in one.topics for head in self.heads] for one in found])
        self.weights = np.ones(self.truth.shape)


def report(data: Data, scores: train_notes.Floats) -> None:
    """Print by language and of all how often the most probable topic is one of a text's."""
    best = scores.argmax(axis=1)
    right = np.array(
        [data.heads[at] in one.topics for at, one in zip(best, data.texts, strict=True)]
    )
    for language in [*sorted({one.language for one in data.texts}), ""]:
        own = np.array([not one.is_word and language in ("", one.language) for one in data.texts])
        print(f"{language or 'all'}: {right[own].mean():.1%} of {own.sum()} texts")


def main() -> int:
    options = train_notes.options_of(__doc__)
    data = Data(list(texts()))
    parts = [number % FOLDS for number in range(len(data.texts))]
    report(data, data.cross_validate(parts))
    if options.write:
        train_notes.write(TARGET, data.fit())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
