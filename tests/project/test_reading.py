"""What notes tell a reader: the conversations and points of `benchmarks/told`."""

import pytest
from benchmarks.reading import (
    KINDS,
    SETS,
    TARGET,
    Point,
    Set,
    day_texts,
    files,
    is_told,
    points,
    told_by,
)

from remanence.observing.extractive import ExtractiveObserver

ALL = [(name, point) for name in SETS for point in points(name)]


@pytest.mark.parametrize(("name", "point"), ALL, ids=[point.about for _, point in ALL])
def test_a_point_was_told_by_the_user_on_one_day(name: Set, point: Point) -> None:
    [path] = [path for path in files(name) if path.stem == point.conversation]

    assert is_told(point, day_texts(path))


async def test_notes_tell_most_of_what_was_decided_what_changed_and_what_is_open() -> None:
    found = await told_by(ExtractiveObserver(), "tuning")

    assert found.share() >= TARGET
    assert {kind for kind in KINDS if found.share(kind) < TARGET - 10} == set()


def test_a_point_is_told_only_where_all_its_words_stand_on_one_day() -> None:
    point = Point("trip", "D", "the flat", ("Rua Augusta", "rent|pay", "1,250"))

    assert is_told(point, ["something else", "we pay 1,250 for rua augusta"])
    assert not is_told(point, ["we pay for rua augusta", "1,250"])
    assert not is_told(point, [])
