"""What an extractor, which may be the application's own, may return."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from tests.builders import AT

from remanence.errors import ObservationRejected
from remanence.facts.draft_check import check_facts
from remanence.types import FactDraft

SEQS = range(1, 31)
TEA = FactDraft(summary="Likes tea", type="behavior", tags=("food",), first_seq=1, last_seq=3)


@pytest.mark.parametrize("found", [None, "Likes tea", 3, [{"summary": "Likes tea"}], [None]])
def test_an_extractor_that_returns_no_drafts_is_refused(found: object) -> None:
    with pytest.raises(ObservationRejected, match=r"own/1 returned a .*FactDraft") as caught:
        check_facts(found, made_by="own/1", seqs=SEQS)

    assert caught.value.reason == "no_draft"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("summary", None),
        ("summary", "tea\0"),
        ("type", "rumour"),
        ("type", ["event"]),
        ("tags", None),
        ("tags", "food"),
        ("tags", (7,)),
        ("valid_from", "2026-05-01"),
        ("valid_from", datetime(2026, 5, 1)),  # noqa: DTZ001 - the wrong value
    ],
)
def test_a_value_that_a_fact_cannot_have_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(ObservationRejected, match=name.removesuffix("s")) as caught:
        check_facts([replace(TEA, **{name: value})], made_by="own/1", seqs=SEQS)

    assert caught.value.reason == "bad_value"


@pytest.mark.parametrize("source", [(77, 77), (3, 1), (0.5, 1), (1, None), ("1", "3"), (-1, 3)])
def test_a_fact_must_name_messages_of_its_source(source: tuple[Any, Any]) -> None:
    wrong = replace(TEA, first_seq=source[0], last_seq=source[1])

    with pytest.raises(ObservationRejected, match=r"1\.\.30: take") as caught:
        check_facts([wrong], made_by="own/1", seqs=SEQS)

    assert caught.value.reason == "out_of_range"


def test_drafts_of_any_iterable_are_taken_with_or_without_a_source_and_a_time() -> None:
    drafts = [TEA, replace(TEA, first_seq=None, last_seq=None), replace(TEA, valid_from=AT)]

    assert check_facts(iter(drafts), made_by="own/1", seqs=SEQS) == tuple(drafts)
