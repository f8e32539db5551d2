"""What notes tell a reader: the conversations and points of `benchmarks/told`."""

import pytest
from benchmarks.reading import FILES, KINDS, TARGET, Point, day_texts, is_told, points, told_by

from remanence.observing.extractive import ExtractiveObserver


@pytest.mark.parametrize("point", points(), ids=lambda point: point.about)
def test_a_point_was_told_by_the_user_on_one_day(point: Point) -> None:
    [path] = [path for path in FILES if path.stem == point.conversation]

    assert is_told(point, day_texts(path))


async def test_notes_tell_most_of_what_was_decided_what_changed_and_what_is_open() -> None:
    found = await told_by(ExtractiveObserver())

    assert found.share() >= TARGET
    assert {kind for kind in KINDS if found.share(kind) < TARGET - 10} == set()
