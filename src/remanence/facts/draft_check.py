"""Checks of an extractor's drafts, which may be the application's own. Pure: no clock, no database."""

from collections.abc import Iterable
from datetime import datetime
from typing import get_args

from remanence.arguments import bad_character
from remanence.errors import ObservationRejected
from remanence.types import FactDraft, FactType


def check_facts(found: object, *, made_by: str, seqs: range) -> tuple[FactDraft, ...]:
    """Return the drafts of an extractor, made from messages among *seqs*.

    Raises:
        ObservationRejected: `no_draft`, `bad_value` or `out_of_range`; the message names the value
            and the remedy.
    """
    if isinstance(found, str) or not isinstance(found, Iterable):
        raise ObservationRejected(
            "no_draft",
            f"{made_by} returned a {type(found).__name__}: return a tuple of FactDraft, which is "
            "empty if there are no facts",
        )
    drafts = tuple(found)
    for draft in drafts:
        if not isinstance(draft, FactDraft):
            raise ObservationRejected(
                "no_draft",
                f"{made_by} returned a {type(draft).__name__} among its facts: use FactDraft",
            )
        if problem := _problem(draft):
            raise ObservationRejected("bad_value", f"{made_by} returned a fact whose {problem}")
        _check_range(draft, made_by, seqs)
    return drafts


def _problem(draft: FactDraft) -> str | None:
    """Return the field of a draft that has an impossible value, with the remedy."""
    tags: object = draft.tags
    if not isinstance(tags, list | tuple):
        return f"tags={tags!r:.80} are not a tuple: use a tuple of str"
    for name, text in (("summary", draft.summary), *(("tag", tag) for tag in tags)):
        if not isinstance(text, str):
            return f"{name}={text!r:.80} is not text: use str"
        if problem := bad_character(text):
            return f"{name} {problem}"
    if draft.type not in get_args(FactType):
        return f"type={draft.type!r:.80} is unknown: use one of {', '.join(get_args(FactType))}"
    at: object = draft.valid_from
    if at is not None and not (isinstance(at, datetime) and at.utcoffset() is not None):
        return f"valid_from={at!r:.80} is not a time with a zone: take the created_at of a message"
    return None


def _check_range(draft: FactDraft, made_by: str, seqs: range) -> None:
    first: object = draft.first_seq
    last: object = draft.last_seq
    if not first or not seqs:
        return
    if isinstance(first, int) and isinstance(last, int) and seqs.start <= first <= last < seqs.stop:
        return
    raise ObservationRejected(
        "out_of_range",
        f"{made_by} returned a fact of messages {first!r:.20}..{last!r:.20}, and its source is "
        f"{seqs.start}..{seqs.stop - 1}: take first_seq and last_seq from the request",
    )
