"""Traces of forgotten messages in the notes of other messages, and in later facts."""

import asyncio
import re
from collections.abc import AsyncIterator, Collection, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

from remanence.notes.literals import contains, find_literals
from remanence.notes.plain_text import everything_in, plain_text
from remanence.notes.terms import terms
from remanence.protocols import Store
from remanence.types import ConversationRef, Fact, MemoryState, Message, Repetition, Segment

PAGE: Final = 500
_MIN_INFLECTED: Final = 4
_SMALL_NUMBER: Final = re.compile(r"\d{1,2}")
"""Small numbers, such as days and hours, occur everywhere and are not evidence of a repetition."""

_Match: TypeAlias = tuple[Segment, AbstractSet[str], Sequence[str]]
"""A segment with the forgotten terms and values that it has."""
_Suspect: TypeAlias = tuple[ConversationRef, AbstractSet[str]]
"""The conversation of a fact, and the forgotten terms that the fact has."""


@dataclass(frozen=True, kw_only=True)
class Traces:
    """Finds notes and facts that repeat forgotten messages though their own sources do not.

    Observers see earlier notes and extractors the user's facts, so both may repeat them. A repeated
    term counts if no remaining message contains it. Texts are searched in threads.
    """

    store: Store
    state: MemoryState
    forgotten: Sequence[Message]

    @cached_property
    def _seqs(self) -> frozenset[int]:
        return frozenset(message.seq for message in self.forgotten)

    @cached_property
    def _values(self) -> frozenset[str]:
        texts = map(everything_in, self.forgotten)
        literals = (literal for text in texts for literal in find_literals(text))
        plain = (plain_text(literal.text) for literal in literals)
        return frozenset(value for value in plain if value and not _SMALL_NUMBER.fullmatch(value))

    @cached_property
    def _terms(self) -> frozenset[str]:
        said = frozenset(term for m in self.forgotten for term in terms(everything_in(m)))
        return said - terms(self.state.user or "")

    async def in_segments(self, segments: Sequence[Segment]) -> AbstractSet[str]:
        """Return the ids of the segments that repeat a value or a term."""
        found: set[str] = set()
        suspects: dict[str, AbstractSet[str]] = {}
        for segment, its_terms, its_values in await asyncio.to_thread(self._find_matches, segments):
            own = [m async for m in self._read(self.state.ref, segment.first_seq, segment.last_seq)]
            named, values = await asyncio.to_thread(_unsaid, own, its_terms, its_values)
            if values:
                found.add(segment.id)
            elif named:
                suspects[segment.id] = named
        unsaid = await self._absent_terms(self.state.ref, frozenset().union(*suspects.values()))
        return found | {id_ for id_, named in suspects.items() if named & unsaid}

    def _find_matches(self, segments: Sequence[Segment]) -> Sequence[_Match]:
        """Return the segments that have terms or values of the forgotten messages, with these."""
        found: list[_Match] = []
        for segment in segments:
            text = _segment_text(segment)
            plain, named = plain_text(text), terms(text) & self._terms
            values = [value for value in self._values if _has(plain, value)]
            if named or values:
                found.append((segment, named, values))
        return found

    async def in_facts(self, facts: Sequence[Fact], erased: Collection[str]) -> AbstractSet[str]:
        """Return the ids of facts that repeat a term, of all *facts* but the *erased* ones.

        A fact of another conversation can only have learned the term from an earlier fact. Facts
        saved by hand or from daily notes, which have no tape, are left alone.
        """
        suspects = await asyncio.to_thread(self._suspects, facts, erased)
        unsaid = await self._absent_terms_by_conversation(suspects.values())
        return {id_ for id_, (source, named) in suspects.items() if named & unsaid[source]}

    def _suspects(self, facts: Sequence[Fact], erased: Collection[str]) -> Mapping[str, _Suspect]:
        """Return the later facts that have a term of the forgotten messages, by id."""
        gone = [fact for fact in facts if fact.id in erased]
        known = frozenset(term for fact in gone for term in terms(fact.summary)) & self._terms
        since = min((fact.created_at for fact in gone), default=None)
        before = [f for f in facts if f.id not in erased and since and f.created_at < since]
        known -= frozenset(term for fact in before for term in terms(fact.summary))
        suspects: dict[str, _Suspect] = {}
        for fact in facts:
            is_later = since is not None and fact.created_at >= since
            if fact.id in erased or fact.conversation is None:
                continue
            if fact.conversation == self.state.ref.id:
                is_later = (fact.last_seq or 0) > min(self._seqs, default=0)
                named = terms(fact.summary) & self._terms
            else:
                named = terms(fact.summary) & known
            if is_later and named:
                suspects[fact.id] = ConversationRef(fact.tenant, fact.conversation), named
        return suspects

    async def said_again(
        self, derived: AbstractSet[str], repetitions: Sequence[Repetition]
    ) -> AbstractSet[str]:
        """Return the *derived* facts with repetitions whose conversations all say the terms.

        Repetitions from forgotten messages do not count, as they are erased with these.
        """
        suspects: list[tuple[str, _Suspect]] = []
        for repeats, fact in repetitions:
            if repeats in derived and not self._is_from_forgotten(fact):
                source = ConversationRef(fact.tenant, fact.conversation or "")
                suspects.append((repeats, (source, terms(fact.summary) & self._terms)))
        unsaid = await self._absent_terms_by_conversation([suspect for _, suspect in suspects])
        learned = {id_ for id_, (source, named) in suspects if named & unsaid[source]}
        return {id_ for id_, _ in suspects} - learned

    def _is_from_forgotten(self, fact: Fact) -> bool:
        first_seq = fact.first_seq or 0
        places = range(first_seq, (fact.last_seq or first_seq) + 1)
        return fact.conversation == self.state.ref.id and not self._seqs.isdisjoint(places)

    async def _absent_terms_by_conversation(
        self, suspects: Collection[_Suspect]
    ) -> Mapping[ConversationRef, AbstractSet[str]]:
        """Return, by conversation, the terms that neither its messages nor this one's contain."""
        here = await self._absent_terms(
            self.state.ref, frozenset().union(*(named for _, named in suspects))
        )
        named_by: dict[ConversationRef, AbstractSet[str]] = {}
        for source, named in suspects:
            named_by[source] = named_by.get(source, frozenset()) | (named & here)
        return {
            source: await self._absent_terms(source, named) for source, named in named_by.items()
        }

    async def _absent_terms(
        self, ref: ConversationRef, named: AbstractSet[str]
    ) -> AbstractSet[str]:
        """Return the terms that no remaining message contains; empty if the tape does not exist."""
        after, left = 0, set(named)
        while left and (page := await self.store.messages(ref, after=after, limit=PAGE)):
            others = [message for message in page if not self._is_forgotten(ref, message)]
            left -= await asyncio.to_thread(_terms_of, others)
            after = page[-1].seq
        return left if after else frozenset()

    async def _read(
        self, ref: ConversationRef, first_seq: int, last_seq: int
    ) -> AsyncIterator[Message]:
        """Yield the remaining messages of a range."""
        limit = last_seq - first_seq + 1
        for message in await self.store.messages(ref, after=first_seq - 1, limit=limit):
            if not self._is_forgotten(ref, message):
                yield message

    def _is_forgotten(self, ref: ConversationRef, message: Message) -> bool:
        return ref == self.state.ref and message.seq in self._seqs


def _unsaid(
    messages: Sequence[Message], named: AbstractSet[str], values: Sequence[str]
) -> tuple[AbstractSet[str], Sequence[str]]:
    """Return the terms and the values that the messages do not have."""
    said = plain_text("\n".join(map(_message_text, messages)))
    return named - terms(said), [value for value in values if not _has(said, value)]


def _terms_of(messages: Sequence[Message]) -> AbstractSet[str]:
    return frozenset(term for message in messages for term in terms(_message_text(message)))


def _has(text: str, value: str) -> bool:
    """Return whether a text has a value: short ones as a whole word, others with any ending."""
    return value in text if len(value) >= _MIN_INFLECTED else contains(text, value)


def _message_text(message: Message) -> str:
    """Return all texts of a message, and its day, which notes and facts carry as a date."""
    return f"{everything_in(message)}\n{message.created_at:%Y-%m-%d}"


def _segment_text(segment: Segment) -> str:
    dropped = (f"{line.text} {line.detail}" for line in segment.dropped)
    replaced = (note.supersedes or "" for note in segment.notes)
    failed = (stretch.message for stretch in segment.failed)
    texts = (segment.text, *(note.text for note in segment.notes), *replaced, *segment.lost)
    return "\n".join((*texts, *dropped, *failed))
