"""Standing wishes: the rules and preferences that a user laid down in their own words."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from remanence.facts.lines import is_own, states
from remanence.facts.statements import is_user, statements, summarize
from remanence.facts.tags import WISH
from remanence.observers.spoken import spoken_texts
from remanence.types import FactDraft, Message

INSTRUCTION, PREFERENCE = "instruction", "preference"
"""Tags of facts that ask for something, in any words."""


def mark_wishes(
    drafts: Sequence[FactDraft], messages: Sequence[Message], *, user: str
) -> tuple[FactDraft, ...]:
    """Tag with `WISH` the instructions and preferences that are in the user's own words.

    Each is a whole sentence of a message of the user's within its source, also one that asks, or all
    that one states beside its question. Text of a tool, of a page or of somebody else thus becomes no wish, whatever
    an extractor makes of it.
    """
    asking = {_key(draft.summary) for draft in drafts if _asks(draft)}
    said = set(_own_statements(messages, user, asking)) if asking else set()
    return tuple(
        replace(draft, tags=(*draft.tags, WISH))
        if _asks(draft) and _is_said(draft, said)
        else draft
        for draft in drafts
    )


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
    """Yield the user's sentences among the wanted ones, each with the number of its message."""
    for spoken in filter(None, spoken_texts(messages)):
        if spoken.role == "user" and is_user(spoken.message, user):
            for line in spoken.lines:
                key = _key(summarize(line.text, spoken.message))
                if key in wanted and is_own(line):
                    yield key, spoken.message.seq
    for said in statements(messages):
        if said is None or not is_user(said.source, user):
            continue
        own = (line.text for line in said.lines if states(line))
        for text in (said.text, *own) if not said.quoted else own:
            key = _key(summarize(text, said.source))
            if key in wanted:
                yield key, said.source.seq


def _key(text: str) -> str:
    """Return a sentence without the differences that copying it makes."""
    return " ".join(text.split()).strip(".!。！ ").casefold()
