"""The current facts of a user, found by what they must share with a new one that concerns them."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from math import ceil
from typing import TypeAlias

from remanence.facts.meaning import ALIKE, STEM, Meaning, is_home, meaning
from remanence.facts.tags import STATEMENTS
from remanence.types import Fact, FactDraft

_Form: TypeAlias = frozenset[str]
"""The words of a statement but for bare numbers, in which alone it differs from those it cannot end."""
_Index: TypeAlias = defaultdict[Hashable, list[str]]


class CurrentFacts:
    """The current facts of a user, the last written first.

    Its methods return the facts to compare with a new one: all for which the relation may hold, and
    as few others as an index can tell, as a user may have thousands.
    """

    def __init__(self, known: Sequence[Fact]) -> None:
        self._facts: dict[str, Fact] = {}
        self._places: dict[str, int] = {}
        self._homes: list[str] = []
        self._others: list[str] = []
        """Facts that are no statements, which may share function words alone with what they end."""
        self._by_text: _Index = defaultdict(list)
        self._by_source: _Index = defaultdict(list)
        self._by_term: _Index = defaultdict(list)
        self._by_form: _Index = defaultdict(list)
        self._forms: defaultdict[str, set[_Form]] = defaultdict(set)
        """Forms by the first letters of the terms of their facts."""
        for fact in reversed(known):
            self.add(fact)

    def __iter__(self) -> Iterator[Fact]:
        return reversed(self._facts.values())

    def __len__(self) -> int:
        return len(self._facts)

    def add(self, fact: Fact) -> None:
        """Add a fact that was written after all others."""
        said, key = meaning(fact), fact.id
        self._places[key] = len(self._places)
        self._facts[key] = fact
        self._by_text[fact.summary.casefold()].append(key)
        self._by_source[fact.conversation, fact.first_seq].append(key)
        for term in said.bag:
            self._by_term[said.numbers, term].append(key)
        if is_home(fact):
            self._homes.append(key)
        if not _is_statement(fact):
            self._others.append(key)
            return
        form = _form(said)
        self._by_form[form].append(key)
        for stem in _stems(said):
            self._forms[stem].add(form)

    def remove(self, fact_id: str) -> None:
        """Remove a fact that has ended."""
        del self._facts[fact_id]

    def get(self, fact_id: str | None) -> Fact | None:
        """Return the current fact with an id."""
        return self._facts.get(fact_id) if fact_id else None

    def alike(self, said: Fact | FactDraft) -> list[Fact]:
        """Return the facts that may say the same as another, or deny it."""
        return self._in_order(self._alike(said))

    def contrary(self, fact: Fact) -> list[Fact]:
        """Return the facts that may contradict another, or that it may contradict."""
        found = self._alike(fact).union(
            self._by_source.get((fact.conversation, fact.first_seq), ())
        )
        return self._in_order(found.union(self._homes) if is_home(fact) else found)

    def comparable(self, fact: Fact) -> list[Fact]:
        """Return the facts of which a learned score may say that one ends the other."""
        if not _is_statement(fact):
            return list(self)
        said = meaning(fact)
        forms = {form for stem in _stems(said) for form in self._forms.get(stem, ())}
        forms.discard(_form(said))
        found = set(self._others).union(*(self._by_form[form] for form in forms))
        return self._in_order(found)

    def _alike(self, said: Fact | FactDraft) -> set[str]:
        """Return the ids of facts with the text of another, or its numbers and a rare term of it.

        Facts that say the same share so many terms that one of the rarest ones is among them.
        """
        mine = meaning(said)
        found = [self._by_term.get((mine.numbers, term), ()) for term in mine.bag]
        spare = len(found) - ceil(ALIKE * len(found))
        return set(self._by_text.get(said.summary.casefold(), ())).union(
            *sorted(found, key=len)[: spare + 1]
        )

    def _in_order(self, found: Iterable[str]) -> list[Fact]:
        facts = self._facts
        ids = sorted(filter(facts.__contains__, found), key=self._places.__getitem__, reverse=True)
        return [facts[fact_id] for fact_id in ids]


def _is_statement(fact: Fact) -> bool:
    return fact.made_by.startswith(STATEMENTS)


def _form(said: Meaning) -> _Form:
    return frozenset(word for word in said.words if not word.isdigit())


def _stems(said: Meaning) -> Iterator[str]:
    return (term[:STEM] for term in said.bag if not term.isdigit())
