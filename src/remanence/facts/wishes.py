"""Standing wishes: the rules and preferences that a user laid down in their own words."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeAlias

from remanence.facts.lines import is_own, states
from remanence.facts.statements import is_user, statements, summarize
from remanence.facts.tags import WISH
from remanence.observers.extractive.pasted_text import typed_text
from remanence.observers.spoken import spoken_texts
from remanence.types import FactDraft, Message, TextPart

_Sentence: TypeAlias = tuple[str, str, Message]
"""A sentence, the words of its message that it is made from, and that message."""

INSTRUCTION, PREFERENCE = "instruction", "preference"
"""Tags of facts that ask for something, in any words."""


def mark_wishes(
    drafts: Sequence[FactDraft], messages: Sequence[Message], *, user: str
) -> tuple[FactDraft, ...]:
    """Tag with `WISH` the instructions and preferences that are in the user's own words.

    Each is a whole sentence of a message of the user's within its source, also one that asks, or all
    that one states beside its question, and is likely typed. Text of a tool, of a page or of somebody else thus
    becomes no wish, whatever an extractor makes of it.
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
    """Yield the user's likely typed sentences among the wanted ones, each with the number of its message."""
    typed: dict[int, str] = {}
    for text, within, source in chain(_lines(messages), _statements(messages)):
        key = _key(summarize(text, source))
        if key not in wanted or not is_user(source, user):
            continue
        if source.seq not in typed:
            typed[source.seq] = _typed_words(source)
        if within in typed[source.seq]:
            yield key, source.seq


def _lines(messages: Sequence[Message]) -> Iterator[_Sentence]:
    for said in filter(None, spoken_texts(messages)):
        if said.role == "user":
            yield from ((line.text, line.text, said.message) for line in said.lines if is_own(line))


def _statements(messages: Sequence[Message]) -> Iterator[_Sentence]:
    for said in filter(None, statements(messages)):
        own = (line.text for line in said.lines if states(line))
        for text in (said.text, *own) if not said.quoted else own:
            yield text, said.text, said.source


def _typed_words(message: Message) -> str:
    """Return what a user likely typed: of several texts the last, as documents come first."""
    texts = [part.text for part in message.content if isinstance(part, TextPart)]
    return typed_text(next(filter(str.strip, reversed(texts)), ""))


def _key(text: str) -> str:
    """Return a sentence without the differences that copying it makes."""
    return " ".join(text.split()).strip(".!。！ ").casefold()
