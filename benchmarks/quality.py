"""How much of a conversation its notes keep, beside baselines, in one run.

    python benchmarks/quality.py [--ratio 0.2 0.125] [--only conv-26] [--without-sumy]

Needs the evaluation data: REMANENCE_DATA names the folder that holds `locomo/`; the scorer lies
beside it in `../tools/score_notes.py`. Without them it says so and ends with code 0.
"""

import argparse
import importlib.util
import json
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from remanence.observing.extractive.observer import extract
from remanence.observing.extractive.reflector import condense
from remanence.observing.extractive.sentences import sentences
from remanence.observing.extractive.slicing import at_once
from remanence.observing.notes import render_notes
from remanence.protocols import ObserveRequest, ReflectRequest
from remanence.types import ConversationRef, Message, Note, Segment

SLICE_TOKENS = 4000
PUBLISHED = (
    "notes of a language model, size 22.2: full 52.2  temporal 28.8  fact 34.0  invented 10.6"
)
REF = ConversationRef("bench", "quality")


class Stretch(NamedTuple):
    """Messages that become one segment, and how many tokens of text they have."""

    messages: tuple[Message, ...]
    tokens: int


Method = Callable[[Stretch, int], tuple[Note, ...]]


def main() -> None:
    arguments = _arguments()
    data = Path(os.environ.get("REMANENCE_DATA", "data"))
    scorer_path = data.parent / "tools" / "score_notes.py"
    if not (data / "locomo").is_dir() or not scorer_path.is_file():
        print(f"skipped: no {data / 'locomo'} or no {scorer_path}; set REMANENCE_DATA")
        return
    scorer = _load(scorer_path)
    questions = sorted((data / "locomo").glob("*.qa.json"))
    questions = [path for path in questions if arguments.only in path.name]
    print(f"{'method':<34}{'full':>7}{'tempor.':>9}{'fact':>7}{'invent.':>9}{'size':>7}")
    for ratio in arguments.ratio:
        for name, method in _methods(scorer, sumy=not arguments.without_sumy).items():
            _report(f"{name} at {ratio}", scorer, questions, _observing(method, scorer, ratio))
    for name, reflect in (("reflected", _reflected), ("oldest dropped", _oldest_dropped)):
        made = _reflecting(reflect, scorer, arguments.reflect_from, arguments.reflect_to)
        title = f"{name} {arguments.reflect_from} to {arguments.reflect_to}"
        _report(title, scorer, questions, made)
    print(PUBLISHED)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ratio", type=float, nargs="+", default=[0.2, 0.125])
    parser.add_argument("--reflect-from", type=float, default=0.2)
    parser.add_argument("--reflect-to", type=float, default=0.083)
    parser.add_argument("--only", default="")
    parser.add_argument("--without-sumy", action="store_true")
    return parser.parse_args()


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("score_notes", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.STEM = lru_cache(None)(module.STEM)  # type: ignore[attr-defined]
    module.tokens = lru_cache(None)(module.tokens)  # type: ignore[attr-defined]
    return module


def _report(
    title: str,
    scorer: ModuleType,
    questions: Sequence[Path],
    segments_of: Callable[[Path], list[Segment]],
) -> None:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for path in questions:
            replay = Path(folder) / "replay.json"
            segments = segments_of(path.with_name(path.name.replace(".qa.json", ".jsonl")))
            replay.write_text(json.dumps({"segments": [_json(s) for s in segments]}))
            rows.append(scorer.score(str(path), str(replay)))
    total = sum(row["n"] for row in rows)
    keys = ("full", "temporal", "fact", "invented", "size")
    full, *others = (sum(row[key] * row["n"] for row in rows) / total for key in keys)
    print(
        f"{title:<34}{full:>7.1f}{others[0]:>9.1f}{others[1]:>7.1f}{others[2]:>9.1f}{others[3]:>7.1f}"
    )
    sys.stdout.flush()


def _observing(method: Method, scorer: ModuleType, ratio: float) -> Callable[[Path], list[Segment]]:
    def run(path: Path) -> list[Segment]:
        return [
            _segment(method(stretch, int(stretch.tokens * ratio)), stretch, scorer)
            for stretch in _stretches(path, scorer)
        ]

    return run


def _reflecting(
    reflect: Callable[[list[Segment], int, ModuleType], tuple[Note, ...]],
    scorer: ModuleType,
    first: float,
    second: float,
) -> Callable[[Path], list[Segment]]:
    def run(path: Path) -> list[Segment]:
        stretches = list(_stretches(path, scorer))
        observed = _observing(_extractive(scorer), scorer, first)(path)
        target = int(sum(stretch.tokens for stretch in stretches) * second)
        every = Stretch(tuple(m for s in stretches for m in s.messages), 0)
        return [_segment(reflect(observed, target, scorer), every, scorer)]

    return run


def _reflected(segments: list[Segment], target: int, scorer: ModuleType) -> tuple[Note, ...]:
    request = ReflectRequest(
        conversation=REF,
        segments=tuple(segments),
        generation=1,
        target_tokens=target,
        count_tokens=scorer.tokens,
        note_format="compact",
        now=segments[-1].created_at,
    )
    return at_once(condense(request))


def _oldest_dropped(segments: list[Segment], target: int, scorer: ModuleType) -> tuple[Note, ...]:
    notes = [note for segment in segments for note in segment.notes]
    while notes and scorer.tokens(render_notes(notes, "compact")) > target:
        del notes[: max(1, len(notes) // 50)]
    return tuple(notes)


def _methods(scorer: ModuleType, *, sumy: bool) -> dict[str, Method]:
    methods: dict[str, Method] = {
        "extractive": _extractive(scorer),
        "last sentences": _picked(scorer, lambda count: list(range(count))[::-1]),
        "random sentences": _picked(scorer, _shuffled),
    }
    if sumy:
        methods |= _sumy_methods(scorer)
    return methods


def _extractive(scorer: ModuleType) -> Method:
    def make(stretch: Stretch, target: int) -> tuple[Note, ...]:
        request = ObserveRequest(
            conversation=REF,
            messages=stretch.messages,
            known=(),
            target_tokens=target,
            count_tokens=scorer.tokens,
            note_format="compact",
            now=datetime.min.replace(tzinfo=UTC),
        )
        return at_once(extract(request))

    return make


def _shuffled(count: int) -> list[int]:
    order = list(range(count))
    random.Random(7).shuffle(order)
    return order


def _picked(scorer: ModuleType, order_of: Callable[[int], list[int]]) -> Method:
    def make(stretch: Stretch, target: int) -> tuple[Note, ...]:
        notes = _sentence_notes(stretch)
        return _best(notes, order_of(len(notes)), target, scorer)

    return make


def _sumy_methods(scorer: ModuleType) -> dict[str, Method]:
    from sumy.summarizers.lsa import LsaSummarizer  # noqa: PLC0415 - only for this baseline
    from sumy.summarizers.text_rank import TextRankSummarizer  # noqa: PLC0415

    return {
        "sumy LSA": _sumy(scorer, LsaSummarizer),
        "sumy TextRank": _sumy(scorer, TextRankSummarizer),
    }


def _sumy(scorer: ModuleType, summarizer: Any) -> Method:  # sumy ships no types
    from sumy.models.dom import ObjectDocumentModel, Paragraph, Sentence  # noqa: PLC0415
    from sumy.nlp.stemmers import Stemmer  # noqa: PLC0415

    def make(stretch: Stretch, target: int) -> tuple[Note, ...]:
        notes = _sentence_notes(stretch)
        rated: dict[int, float] = {}

        class Ranked(summarizer):  # type: ignore[misc]
            """The summarizer's own rating, without its cut by number of sentences."""

            def _get_best_sentences(self, found: Any, _: Any, rating: Any, *_a: Any) -> Any:
                rate = rating if callable(rating) else rating.__getitem__
                rated.update(enumerate(map(rate, found)))
                return ()

        ranked = Ranked(Stemmer("english"))
        ranked.stop_words = scorer.STOP
        tokenizer = _Tokenizer(scorer)
        document = ObjectDocumentModel([Paragraph([Sentence(n.text, tokenizer) for n in notes])])
        ranked(document, 1)
        order = sorted(rated, key=lambda index: -rated[index])
        return _best(notes, order, target, scorer)

    return make


class _Tokenizer:
    """Words for sumy without its corpus download."""

    def __init__(self, scorer: ModuleType) -> None:
        self._words = scorer.WORD

    def to_words(self, sentence: str) -> tuple[str, ...]:
        return tuple(self._words.findall(sentence.lower()))


def _best(
    notes: Sequence[Note], order: Sequence[int], target: int, scorer: ModuleType
) -> tuple[Note, ...]:
    chosen: list[int] = []
    room = target
    for index in order:
        cost = scorer.tokens(notes[index].text) + 1
        if cost <= room:
            chosen.append(index)
            room -= cost
    return tuple(notes[index] for index in sorted(chosen))


def _sentence_notes(stretch: Stretch) -> list[Note]:
    return [
        Note(
            text=" ".join(message.text[span.start : span.end].split()),
            first_seq=message.seq,
            last_seq=message.seq,
            observed_at=message.created_at,
            speaker=message.speaker,
        )
        for message in stretch.messages
        for span in sentences(message.text)
    ]


def _stretches(path: Path, scorer: ModuleType) -> Iterator[Stretch]:
    messages: list[Message] = []
    tokens = 0
    for seq, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        row = json.loads(line)
        at = datetime.fromisoformat(row["created_at"])
        messages.append(Message.from_openai(row).replace(seq=seq, created_at=at))
        tokens += scorer.tokens(scorer.text_of(row))
        if tokens >= SLICE_TOKENS:
            yield Stretch(tuple(messages), tokens)
            messages, tokens = [], 0
    if messages:
        yield Stretch(tuple(messages), tokens)


def _segment(notes: tuple[Note, ...], stretch: Stretch, scorer: ModuleType) -> Segment:
    text = render_notes(notes, "compact")
    first, last = stretch.messages[0], stretch.messages[-1]
    assert last.created_at is not None
    return Segment(
        id=str(first.seq),
        generation=0,
        first_seq=first.seq,
        last_seq=last.seq,
        text=text,
        notes=notes,
        tokens=scorer.tokens(text),
        source_tokens=stretch.tokens,
        sum_tokens=0,
        lost=(),
        made_by="bench",
        created_at=last.created_at,
    )


def _json(segment: Segment) -> dict[str, object]:
    return {
        "first_seq": segment.first_seq,
        "last_seq": segment.last_seq,
        "text": segment.text,
        "notes": [
            {
                "text": note.text,
                "first_seq": note.first_seq,
                "last_seq": note.last_seq,
                "observed_at": note.observed_at.isoformat() if note.observed_at else None,
                "referenced_at": note.referenced_at,
            }
            for note in segment.notes
        ],
    }


if __name__ == "__main__":
    main()
