"""What notes at a fifth keep of the labelled conversations, by scores fitted without them.

The weights of the observer's features were chosen by these figures, so they are tuned: to other
conversations they say less than the blind readings do.
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np
from tools import notes_corpus, train_notes
from tools.notes_corpus import Sentence

from benchmarks.rows import Row, show
from remanence import Message, Policy
from remanence.observers.extractive import (
    features,
    observer,
    passages,
    scored_text,
    sentence_scores,
)
from remanence.observers.extractive.corrections import Corrections
from remanence.observers.extractive.observer import Choice, choose
from remanence.observers.extractive.passage import Passage
from remanence.observers.extractive.selection import Candidate
from remanence.observers.learned.score import Scorer
from remanence.observers.learned.weights import Weights
from remanence.pacing import at_once
from remanence.protocols import ObserveRequest
from remanence.tokens import counter_for
from remanence.types import ConversationRef

KINDS = {
    "short, dense conversations": ("plans",),
    "conversations typed in haste": (notes_corpus.HASTY,),
    "talks, half of them written in sight of the scores": notes_corpus.TALKS,
}
"""Registers that are measured apart."""
MIN_SENTENCES = 15
KEPT_SHARE = 0.6
"""Share of the characters of a sentence that notes have to have."""
COUNT = counter_for(Policy.default().model).text

Unit = Sequence[Sentence]
Said = tuple[Message, Sequence[Sentence]]


class Figures(NamedTuple):
    """Counts of sentences: those of worth 3, kept ones, marked ones and what these are."""

    counts: Counter[str]

    def share(self, part: str, whole: str) -> float:
        """A percentage."""
        return 100 * self.counts[part] / max(1, self.counts[whole])


def measure() -> list[Row]:
    """Shares for the conversations of both times, and what the labels themselves would keep."""
    by_fold, known = cross_validated()
    rows = []
    kind_of = {register: kind for kind, registers in KINDS.items() for register in registers}
    for name in ("conversations", *KINDS):
        units = [unit for unit in known if kind_of.get(unit[0].register, "conversations") == name]
        kept = _figures(units, by_fold)
        with _chosen_by_labels(units):
            best = _figures(units, by_fold)
        rows += [
            Row(
                what=f"labelled as never to be lost that notes at a fifth keep, {name}",
                measured=kept.share("kept 3", "worth 3"),
                unit="%",
                reference=f"chosen by the labels themselves {best.share('kept 3', 'worth 3'):.1f}",
                detail=f"{kept.counts['worth 3']} sentences in {len(units)} conversations",
            ),
            Row(
                what=f"sentences in these notes that say little alone, {name}",
                measured=kept.share("dependent", "marked"),
                unit="%",
                detail=f"{kept.counts['marked']} marked sentences",
            ),
            Row(
                what=f"of what is taken before all others, labelled as never to be lost, {name}",
                measured=kept.share("first 3", "first"),
                unit="%",
                detail=f"worth noting {kept.share('first 2', 'first'):.0f}",
            ),
        ]
    return rows


def cross_validated() -> tuple[dict[int, Scorer], list[Unit]]:
    """By fold, a scorer that has not seen its conversations; and the conversations."""
    units = [
        unit
        for unit in train_notes.conversations(held=False)
        if unit[0].register not in train_notes.APART
    ]
    table = train_notes.Sentences(units)
    truth, known = table.truth, table.weights > 0
    folds = np.repeat([train_notes.fold(unit) for unit in units], list(map(len, units)))
    fitted: dict[int, Weights] = {}
    scores = np.zeros(truth.shape)
    for fold in range(train_notes.FOLDS):
        rest = folds != fold
        fitted[fold] = table.fit(rest)
        scores[~rest] = train_notes.predict(fitted[fold], table.inputs[~rest])
    usual = train_notes.is_usual(units)
    balanced, strict = train_notes.cutoffs(known[usual], truth[usual], scores[usual])
    scorers = {
        fold: Scorer(replace(weights, cutoffs=balanced, strict=strict))
        for fold, weights in fitted.items()
    }
    return scorers, [unit for unit in units if len(unit) >= MIN_SENTENCES]


def _figures(units: Sequence[Unit], by_fold: dict[int, Scorer]) -> Figures:
    counts: Counter[str] = Counter()
    for unit in units:
        with _scored_by(by_fold[train_notes.fold(unit)]):
            said, request = _request(unit)
            counts += _counted(said, at_once(choose(request)))
    return Figures(counts)


@contextmanager
def _scored_by(scorer: Scorer) -> Iterator[None]:
    """Have the observer use a scorer."""
    readers = (passages, scored_text, sentence_scores)
    usual = passages.scorer
    for module in readers:
        module.scorer = lambda: scorer  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for module in readers:
            module.scorer = usual  # type: ignore[attr-defined]


@contextmanager
def _chosen_by_labels(units: Sequence[Unit]) -> Iterator[None]:
    """Have the observer choose what is labelled as never to be lost, the shortest first."""
    vital = {_plain(s.text) for unit in units for s in unit if s.worth == train_notes.VITAL}

    def weigh(
        found: Sequence[Passage], stretches: Sequence[int], corrections: Corrections
    ) -> Generator[None, None, tuple[Candidate, ...]]:
        candidates = yield from features.weigh(found, stretches, corrections)
        return tuple(
            replace(
                candidate,
                terms=((str(number), 1.0),),
                factor=1.0 if _plain(p.source) in vital else 0.01,
                is_standing=False,
            )
            for number, (p, candidate) in enumerate(zip(found, candidates, strict=True))
        )

    usual = observer.weigh
    observer.weigh = weigh  # type: ignore[assignment]
    try:
        yield
    finally:
        observer.weigh = usual


def _request(unit: Unit) -> tuple[list[Said], ObserveRequest]:
    """The messages of a conversation with their sentences, and the request to observe them."""
    turns: list[list[Sentence]] = []
    for sentence in unit:
        if sentence.kind in notes_corpus.SPEAKERS or not turns:
            turns.append([])
        turns[-1].append(sentence)
    said: list[Said] = []
    for seq, turn in enumerate(turns, 1):
        parts = (("\n" if s.kind == "/" else " ") + s.text for s in turn)
        make = Message.user if turn[0].speaker == "u" else Message.assistant
        at = turn[0].said_at + timedelta(minutes=seq)
        said.append((make("".join(parts).strip(), created_at=at).replace(seq=seq), turn))
    messages = tuple(message for message, _ in said)
    return said, ObserveRequest(
        conversation=ConversationRef("labelled", unit[0].conversation),
        messages=messages,
        known=(),
        target_tokens=sum(COUNT(message.full_text) for message in messages) // 5,
        count_tokens=COUNT,
        note_format="compact",
        now=datetime(2026, 11, 1, tzinfo=UTC),
    )


def _counted(said: Sequence[Said], choice: Choice) -> Counter[str]:
    """Count the sentences of a conversation by what notes have of them."""
    kept: defaultdict[int, list[Passage]] = defaultdict(list)
    for index in choice.selection.kept:
        kept[choice.found[index].seq].append(choice.found[index])
    counts: Counter[str] = Counter()
    for message, sentences in said:
        for sentence in sentences:
            text = _plain(sentence.text)
            own = [p for p in kept[message.seq] if text and _share(p, text)]
            counts["worth 3"] += sentence.worth == train_notes.VITAL
            if sum(_share(p, text) for p in own) < KEPT_SHARE:
                continue
            counts["kept 3"] += sentence.worth == train_notes.VITAL
            if sentence.is_dependent is not None:
                counts["marked"] += 1
                counts["dependent"] += sentence.is_dependent and not _has_company(own, text)
            if any(p.is_standing for p in own):
                counts["first"] += 1
                counts["first 2"] += sentence.worth > 1
                counts["first 3"] += sentence.worth == train_notes.VITAL
    return counts


def _share(p: Passage, text: str) -> float:
    """The share of a sentence that a passage has, 0 if they have nothing in common."""
    source = _plain(p.source)
    return min(1.0, len(source) / len(text)) if source and (source in text or text in source) else 0


def _has_company(own: Sequence[Passage], text: str) -> bool:
    """Whether a passage quotes a question or has more than the sentence."""
    return any(p.reply_to is not None or len(_plain(p.source)) > len(text) for p in own)


def _plain(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())


def main() -> None:
    """Print the figures."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    show(measure())


if __name__ == "__main__":
    main()
