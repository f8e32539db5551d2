"""What notes tell a reader: the conversations and points of `benchmarks/told`."""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from benchmarks.picking import Picking, last_first, shuffled
from benchmarks.reading import (
    SETS,
    Point,
    Set,
    day_texts,
    files,
    is_told,
    points,
    told_by,
)
from tests.slow import slow_except

from remanence import Note, Observer
from remanence.observers.extractive import ExtractiveObserver
from remanence.protocols import ObserveRequest
from remanence.types import Draft

LEAST_TOLD = 84.0
"""Percent of the points; the notes tell some seven more, so a part that breaks is noticed."""
LEAST_TOLD_BY_KIND = {"D": 84.0, "C": 88.0, "O": 66.0}
VISIBLY = 15.0


@pytest.mark.parametrize("name", SETS)
def test_a_point_was_told_on_one_day(name: Set) -> None:
    days = {path.stem: day_texts(path) for path in files(name)}

    assert points(name)
    assert [each for each in points(name) if not is_told(each, days[each.conversation])] == []


async def test_notes_tell_most_of_what_was_decided_what_changed_and_what_is_open() -> None:
    found = await told_by(ExtractiveObserver(), "tuning")

    assert found.share() >= LEAST_TOLD
    assert {k for k, least in LEAST_TOLD_BY_KIND.items() if found.share(k) < least} == set()


class Crippled:
    """The embedded observer without a part of what it does."""

    def __init__(self, spoil: Callable[[tuple[Note, ...]], Iterable[Note]]) -> None:
        self._spoil = spoil

    async def observe(self, request: ObserveRequest) -> Draft:
        draft = await ExtractiveObserver().observe(request)
        notes = tuple(self._spoil(draft.notes))
        return replace(draft, notes=notes, nothing=not notes)


PICKING: dict[str, Observer] = {
    "it chooses by chance": Picking(shuffled),
    "it chooses the newest": Picking(last_first),
}
CRIPPLED: dict[str, Observer] = {
    "it loses every second note": Crippled(lambda notes: notes[::2]),
    "it cuts each note after six words": Crippled(
        lambda notes: (replace(note, text=" ".join(note.text.split()[:6])) for note in notes)
    ),
    "it loses all digits": Crippled(
        lambda notes: (replace(note, text=re.sub(r"\d", "", note.text)) for note in notes)
    ),
    **PICKING,
}


@pytest.mark.parametrize("name", slow_except(CRIPPLED, ["it loses all digits", *PICKING]))
async def test_a_crippled_observer_falls_visibly_below_what_notes_tell(name: str) -> None:
    found = await told_by(CRIPPLED[name], "tuning")

    assert found.share() < LEAST_TOLD - VISIBLY


def test_a_point_is_told_only_where_all_its_words_stand_on_one_day() -> None:
    point = Point("trip", "D", "the flat", ("Rua Augusta", "rent|pay", "1,250"))

    assert is_told(point, ["something else", "we pay 1,250 for rua augusta"])
    assert not is_told(point, ["we pay for rua augusta", "1,250"])
    assert not is_told(point, [])
