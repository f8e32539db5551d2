"""Standing wishes: the rules and preferences that a user laid down in their own words."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from remanence.dates import resolve_dates
from remanence.facts.merge import WISH
from remanence.notes.redact import redact
from remanence.observers.learned.features import Line
from remanence.observers.learned.statements import STATED, statement_scores
from remanence.observers.spoken import spoken_lines
from remanence.types import FactDraft, Message

INSTRUCTION, PREFERENCE = "instruction", "preference"
"""Tags of facts that ask for something, in any words."""
_MAX_CHARACTERS = 300
_QUESTION = re.compile(r"[?？؟]\s*$")


def mark_wishes(
    drafts: Sequence[FactDraft], messages: Sequence[Message], *, user: str
) -> tuple[FactDraft, ...]:
    """Tag with `WISH` the instructions and preferences that are in the user's own words.

    Each is a whole sentence of a message of the user's within its source. Text of a tool, of a page
    or of somebody else thus becomes no wish, whatever an extractor makes of it.
    """
    asking = {_key(draft.summary) for draft in drafts if _asks(draft)}
    said = set(_own_statements(messages, user, asking)) if asking else set()
    return tuple(
        replace(draft, tags=(*draft.tags, WISH))
        if _asks(draft) and _is_said(draft, said)
        else draft
        for draft in drafts
    )


def states(line: Line) -> bool:
    """Return whether a line is a statement that its speaker makes."""
    if line.is_quoted or len(line.text) > _MAX_CHARACTERS or _QUESTION.search(line.text):
        return False
    return statement_scores(line)[STATED] >= 0


def statement(text: str, source: Message) -> str:
    """Return a sentence of a message as a fact has it: dates are resolved, secrets redacted."""
    said = resolve_dates(text, source.created_at) if source.created_at else text
    return redact(" ".join(said.split()))


def is_user(source: Message, user: str) -> bool:
    """Return whether the speaker of a message of the role `user` is the user of that id."""
    return source.speaker.casefold() in {"user", user.casefold()}


def _asks(draft: FactDraft) -> bool:
    return not {INSTRUCTION, PREFERENCE}.isdisjoint(draft.tags)


def _is_said(draft: FactDraft, said: set[tuple[str, int]]) -> bool:
    first, last = draft.first_seq, draft.last_seq
    if first is None or last is None:
        return False
    return any(text == _key(draft.summary) and first <= seq <= last for text, seq in said)


def _own_statements(
    messages: Sequence[Message], user: str, wanted: set[str]
) -> Iterator[tuple[str, int]]:
    """Yield the user's statements among the wanted ones, each with the number of its message."""
    for line, source in spoken_lines(messages):
        if line.role != "user" or not is_user(source, user):
            continue
        text = _key(statement(line.text, source))
        if text in wanted and states(line):
            yield text, source.seq


def _key(text: str) -> str:
    """Return a sentence without the differences that copying it makes."""
    return " ".join(text.split()).strip(".!。！ ").casefold()
