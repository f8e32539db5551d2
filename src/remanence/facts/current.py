"""The current facts of a user, found by what they must share with a new one that concerns them."""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence, Set as AbstractSet
from itertools import count
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
        self._writes = count()
        self._places: dict[str, int] = {}
        """The order in which facts were written."""
        self._by_text: _Index = defaultdict(list)
        self._by_source: _Index = defaultdict(list)
        self._homes: list[str] = []
        self._no_statements: list[str] = []
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
        said = meaning(fact)
        self._facts[fact.id] = fact
        self._places[fact.id] = next(self._writes)
        self._by_text[fact.summary.casefold()].append(fact.id)
        self._by_source[fact.conversation, fact.first_seq].append(fact.id)
        if is_home(fact):
            self._homes.append(fact.id)
        for term in said.bag:
            self._by_term[said.numbers, term].append(fact.id)
        if _is_statement(fact):
            form = _form(said)
            self._by_form[form].append(fact.id)
            for stem in _stems(said):
                self._forms[stem].add(form)
        else:
            self._no_statements.append(fact.id)

    def remove(self, fact_id: str) -> None:
        """Remove a fact that has ended."""
        del self._facts[fact_id]

    def get(self, fact_id: str | None) -> Fact | None:
        """Return the current fact with an id."""
        return self._facts.get(fact_id) if fact_id else None

    def alike(self, said: Fact | FactDraft) -> list[Fact]:
        """Return the facts that may say the same as another, or deny it.

        They have its text, or its numbers and a rare term of it: facts that say the same share so
        many terms that one of the rarest ones is among them.
        """
        return self._last_written_first(self._alike(said))

    def _alike(self, said: Fact | FactDraft) -> set[str]:
        mine = meaning(said)
        found = [self._by_term.get((mine.numbers, term), ()) for term in mine.bag]
        spare = len(found) - ceil(ALIKE * len(found))
        same = self._by_text.get(said.summary.casefold(), ())
        return set().union(same, *sorted(found, key=len)[: spare + 1])

    def contrary(self, fact: Fact) -> list[Fact]:
        """Return the facts that may contradict another, or that it may contradict."""
        ids = self._alike(fact)
        ids.update(self._by_source.get((fact.conversation, fact.first_seq), ()))
        if is_home(fact):
            ids.update(self._homes)
        return self._last_written_first(ids)

    def comparable(self, fact: Fact) -> list[Fact]:
        """Return the facts of which a learned score may say that one ends the other.

        Facts that are no statements may share function words alone with what they end.
        """
        if not _is_statement(fact):
            return list(self)
        said = meaning(fact)
        forms = {form for stem in _stems(said) for form in self._forms.get(stem, ())}
        forms.discard(_form(said))
        ids = {fact_id for form in forms for fact_id in self._by_form[form]}
        return self._last_written_first(ids.union(self._no_statements))

    def _last_written_first(self, ids: AbstractSet[str]) -> list[Fact]:
        """Return the facts with these ids that are still current."""
        current = ids & self._facts.keys()
        return [self._facts[id_] for id_ in sorted(current, key=self._places.__getitem__)[::-1]]


def _is_statement(fact: Fact) -> bool:
    return fact.made_by.startswith(STATEMENTS)


def _form(said: Meaning) -> _Form:
    return frozenset(word for word in said.words if not word.isdigit())


def _stems(said: Meaning) -> Iterator[str]:
    return (term[:STEM] for term in said.bag if not term.isdigit())
