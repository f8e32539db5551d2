"""How much of a conversation its notes keep, beside baselines that have the same room.

The conversations are those of LoCoMo in the folder that REMANENCE_DATA names (by default
`../shared/data` beside the repository); the scorer is `../tools/score_notes.py` seen from there.
Each method is an `Observer` of the same memory, so all of them see the same messages and targets.
"""

import argparse
import asyncio
import importlib.util
import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, TypeAlias

from benchmarks.picking import OldestDropped, Picking, last_first, shuffled, sumy_orders
from benchmarks.rows import Row, show
from remanence import Memory, Message, Observer, Policy, Settings
from remanence.cli.replay import replay_policy
from remanence.notes import render_notes
from remanence.observers.extractive import ExtractiveObserver, ExtractiveReflector
from remanence.protocols import Reflector, ReflectRequest
from remanence.testing import FixedClock
from remanence.tokens import counter_for
from remanence.types import ConversationRef, Note, Segment

RATIO, SMALL_RATIO, REFLECTED_RATIO = 1 / 5, 1 / 8, 1 / 12
PUBLISHED = "notes that a language model wrote, size 20.4: 52"
MEASURES = ("full", "temporal", "fact", "invented", "size")

Scores: TypeAlias = Mapping[str, float]
Talk: TypeAlias = tuple[Message, ...]


class Source(NamedTuple):
    """The conversations by their files of questions, and what scores their notes."""

    talks: Mapping[Path, Talk]
    scorer: ModuleType


class Piece(NamedTuple):
    """Notes that stand for a range of messages, as rendered."""

    first_seq: int
    last_seq: int
    text: str
    notes: Sequence[Note]


def measure(*, only: str = "", with_sumy: bool = True) -> list[Row]:
    """The scores of the embedded observer and reflector, and of the baselines."""
    data = data_folder()
    scorer = data.parent / "tools" / "score_notes.py"
    if not (data / "locomo").is_dir() or not scorer.is_file():
        missing = data / "locomo" if scorer.is_file() else scorer
        skipped = f"skipped: there is no {missing.name}; REMANENCE_DATA names the evaluation data"
        return [Row(what="quality of notes, LoCoMo", measured=None, detail=skipped)]
    return asyncio.run(_measured(_source(data / "locomo", scorer, only), with_sumy=with_sumy))


def data_folder() -> Path:
    """Where the evaluation data are."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("REMANENCE_DATA") or beside)


async def _measured(source: Source, *, with_sumy: bool) -> list[Row]:
    observer = ExtractiveObserver()
    notes = await _observed(source, observer, RATIO)
    rows = list(_aimed(_scores(source, _as_pieces(notes))))
    small = _scores(source, _as_pieces(await _observed(source, observer, SMALL_RATIO)))
    rows.append(
        Row(
            what=f"notes of LoCoMo at {SMALL_RATIO}, full",
            measured=small["full"],
            unit="%",
            target=45.0,
            at_least=True,
            detail=_others(small),
        )
    )
    rows.append(await _reflection_row(source, notes))
    for name, rival in _baselines(source, with_sumy=with_sumy).items():
        scores = _scores(source, _as_pieces(await _observed(source, rival, RATIO)))
        what = f"notes of LoCoMo at {RATIO}, full, {name}"
        rows.append(Row(what=what, measured=scores["full"], unit="%", detail=_others(scores)))
    return rows


def _aimed(scores: Scores) -> Iterable[Row]:
    """The measures that have a target, of the embedded observer."""
    targets = {"full": 60.0, "temporal": 69.0, "fact": 36.0, "invented": 1.0, "size": 20.0}
    for name, target in targets.items():
        yield Row(
            what=f"notes of LoCoMo at {RATIO}, {name}",
            measured=scores[name],
            unit="%",
            target=target,
            at_least=name not in ("invented", "size"),
            reference=PUBLISHED if name == "full" else "",
        )


async def _reflection_row(source: Source, notes: Mapping[Path, Sequence[Segment]]) -> Row:
    reflected = await _reflected(notes, ExtractiveReflector())
    dropped = await _reflected(notes, OldestDropped())
    mine, floor = _scores(source, reflected), _scores(source, dropped)
    return Row(
        what="reflection from 1/5 to 1/12 of LoCoMo, full",
        measured=mine["full"],
        unit="%",
        target=floor["full"],
        at_least=True,
        reference=f"oldest notes dropped: {floor['full']:.1f} ({_others(floor)})",
        detail=_others(mine),
    )


def _others(scores: Scores) -> str:
    return ", ".join(f"{name} {scores[name]:.1f}" for name in MEASURES[1:])


def _baselines(source: Source, *, with_sumy: bool) -> dict[str, Observer]:
    orders = {"newest sentences": last_first, "random sentences": shuffled}
    if with_sumy:
        orders |= sumy_orders(source.scorer.STOP)
    return {name: Picking(order) for name, order in orders.items()}


async def _observed(
    source: Source, observer: Observer, ratio: float
) -> dict[Path, Sequence[Segment]]:
    """What a memory with this observer keeps of each conversation."""
    policy = replay_policy(Settings(), ratio=ratio)
    return {path: await _notes_of(talk, observer, policy) for path, talk in source.talks.items()}


async def _notes_of(talk: Talk, observer: Observer, policy: Policy) -> Sequence[Segment]:
    newest = talk[-1].created_at
    assert newest is not None
    clock = FixedClock(newest)
    async with Memory.open(
        "sqlite:///:memory:", policy=policy, clock=clock, observer=observer
    ) as memory:
        chat = memory.conversation("locomo")
        await chat.append(*talk)
        await chat.flush(everything=True)
        return await chat.observations()


async def _reflected(
    notes: Mapping[Path, Sequence[Segment]], reflector: Reflector
) -> dict[Path, Sequence[Piece]]:
    """The notes of each conversation condensed at once to a twelfth of its tokens."""
    made: dict[Path, Sequence[Piece]] = {}
    for path, segments in notes.items():
        request = ReflectRequest(
            conversation=ConversationRef("bench", "locomo"),
            segments=tuple(segments),
            generation=1,
            target_tokens=int(sum(s.source_tokens for s in segments) * REFLECTED_RATIO),
            count_tokens=counter_for(Policy.default().model).text,
            note_format="compact",
            now=segments[-1].created_at,
        )
        draft = await reflector.reflect(request)
        text = render_notes(draft.notes, "compact")
        made[path] = [Piece(segments[0].first_seq, segments[-1].last_seq, text, draft.notes)]
    return made


def _as_pieces(notes: Mapping[Path, Sequence[Segment]]) -> dict[Path, Sequence[Piece]]:
    return {
        path: [Piece(s.first_seq, s.last_seq, s.text, s.notes) for s in segments]
        for path, segments in notes.items()
    }


def _scores(source: Source, made: Mapping[Path, Sequence[Piece]]) -> Scores:
    """The mean over all questions of all conversations."""
    rows: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        replay = Path(folder) / "replay.json"
        for path, pieces in made.items():
            replay.write_text(json.dumps({"segments": [_json(piece) for piece in pieces]}))
            rows.append(source.scorer.score(str(path), str(replay)))
    total = sum(row["n"] for row in rows)
    return {name: sum(row[name] * row["n"] for row in rows) / total for name in MEASURES}


def _json(piece: Piece) -> dict[str, object]:
    return {
        "first_seq": piece.first_seq,
        "last_seq": piece.last_seq,
        "text": piece.text,
        "notes": [
            {
                "text": note.text,
                "first_seq": note.first_seq,
                "last_seq": note.last_seq,
                "observed_at": note.observed_at.isoformat() if note.observed_at else None,
                "referenced_at": note.referenced_at,
            }
            for note in piece.notes
        ],
    }


def _source(folder: Path, scorer: Path, only: str) -> Source:
    questions = [path for path in sorted(folder.glob("*.qa.json")) if only in path.name]
    return Source({path: _talk(path) for path in questions}, _loaded(scorer))


def _talk(questions: Path) -> Talk:
    lines = questions.with_name(questions.name.replace(".qa.json", ".jsonl")).read_text("utf-8")
    rows = [json.loads(line) for line in lines.splitlines()]
    return tuple(Message.from_openai(row) for row in rows)


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("score_notes", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("STEM", "tokens"):  # the same words and lines come again with each method
        setattr(module, name, lru_cache(None)(getattr(module, name)))
    return module


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="conversations whose file name holds this")
    parser.add_argument("--without-sumy", action="store_true")
    arguments = parser.parse_args()
    show(measure(only=arguments.only, with_sumy=not arguments.without_sumy))


if __name__ == "__main__":
    main()
