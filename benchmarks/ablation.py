"""Scores of the embedded notes without one feature at a time: `python -m benchmarks.ablation`."""

import asyncio

from benchmarks.quality import MEASURES, RATIO, _as_pieces, _observed, _scores, _source, data_folder
from benchmarks.reading import SETS, told_by
from remanence.observers.extractive import ExtractiveObserver, features


async def _line() -> str:
    data = data_folder()
    source = _source(data / "locomo", data.parent / "tools" / "score_notes.py", "")
    scores = _scores(source, _as_pieces(await _observed(source, ExtractiveObserver(), RATIO)))
    told = [(await told_by(ExtractiveObserver(), name)).share() for name in SETS]
    return " ".join(f"{value:6.1f}" for value in (*(scores[name] for name in MEASURES), *told))


def main() -> None:
    """Print a line of scores as it is, then one without each feature."""
    table = features.FEATURES
    print(f"{'without':24}", *MEASURES, *(f"told, {name}" for name in SETS))
    print(f"{'nothing':24}", asyncio.run(_line()), flush=True)
    for feature in table:
        features.FEATURES = tuple(other for other in table if other is not feature)
        print(f"{feature.name:24}", asyncio.run(_line()), flush=True)


if __name__ == "__main__":
    main()
