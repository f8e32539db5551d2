"""Merge new facts with known ones: drop repetitions and supersede outdated facts."""

from collections.abc import Iterable, Sequence, Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import inf, log2
from operator import itemgetter

from remanence.clock import Clock
from remanence.facts.current import CurrentFacts
from remanence.facts.named import find_named
from remanence.facts.relations import contradicts, is_verbatim, say_same, score_of_fact_end
from remanence.facts.tags import SAVED, is_wish
from remanence.facts.worth import worth_of
from remanence.facts.wrong_clock import correct_times
from remanence.types import ConversationRef, Fact, FactChanges, FactDraft, Owner, Repetition

_FEW_FACTS = 16
"""The number of a user's facts up to which the cutoff of the learned score holds."""
_RISE_PER_DOUBLING = 0.7
"""Rise of that cutoff with each doubling of the number, as more facts are alike by chance."""


def merge_facts(
    drafts: Sequence[FactDraft],
    known: Sequence[Fact],
    *,
    owner: Owner,
    source: ConversationRef | None,
    made_by: str,
    clock: Clock,
    past: Sequence[Fact] = (),
) -> FactChanges:
    """Return the new facts in *drafts*, and the facts of *known*, newest first, that they end.

    A draft that repeats a fact, even one that ended after the draft was said, becomes a repetition
    of it. One that was said before the fact that replaces it takes its place among those of *past*
    that this one had replaced. A draft replaces the fact that it names, one that it denies, another
    home of the same person, and the fact that it most surely ends by a learned score. A saved one
    replaces the fact that it names whatever the times of both. A request to forget ends the facts
    that it names; if there are none, a wish in the words of such a request is one. Times of a clock
    that was ahead count as in `correct_times`.
    """
    now = clock.now()
    said_at = min((draft.valid_from or now for draft in drafts), default=now)
    known, past = (correct_times(facts, now=now, unknown=said_at) for facts in (known, past))
    requests = sum(1 for draft in drafts if draft.forgets)
    ended = [fact for fact in past if fact.valid_to is not None]
    merge = _Merge(known, ended, CurrentFacts(known))
    # Those of one millisecond are in no order.
    ids = sorted(clock.new_id("fact") for _ in drafts)
    for id_, draft in zip(ids, drafts, strict=True):
        if not draft.summary.strip():
            continue
        fact = Fact(
            id=id_,
            tenant=owner.tenant,
            user=owner.user,
            summary=" ".join(draft.summary.split()),
            type=draft.type,
            tags=tuple(dict.fromkeys(draft.tags)),
            conversation=source.id if source else None,
            first_seq=draft.first_seq,
            last_seq=draft.last_seq,
            made_by=made_by,
            created_at=now,
            valid_from=draft.valid_from or now,
        )
        if draft.forgets and (merge.forget(fact, draft) or not is_wish(fact)):
            continue
        repeated = merge.find_repeated(draft)
        corrected = draft.replaces if made_by == SAVED else None
        if corrected and (repeated is None or repeated.id != corrected):
            merge.correct(fact, draft)
        elif repeated is not None and is_wish(fact) and not is_wish(repeated):
            # The user's own words take the place of others for the same.
            merge.add(fact, replace(draft, replaces=repeated.id))
        elif repeated is not None:
            merge.repetitions.append(Repetition(repeated.id, fact))
        elif (later := merge.find_later(fact)) is not None:
            merge.add_before(later, fact)
        elif (outdated := merge.find_ended(fact)) is not None:
            merge.repetitions.append(Repetition(outdated.id, fact))
        else:
            merge.add(fact, draft)
    if not (merge.added or merge.repetitions or merge.ended):
        return FactChanges(requests=requests)
    return FactChanges(
        facts=tuple(merge.added.values()),
        replaced=merge.replaced,
        ended=tuple(merge.ended.values()),
        repetitions=tuple(merge.repetitions),
        newest=known[0].id if known else "",
        worth={fact.id: worth_of(fact) for fact in merge.added.values()},
        requests=requests,
    )


def needs_past(drafts: Sequence[FactDraft], *, now: datetime) -> bool:
    """Return whether `merge_facts` needs *past*: a fact may have ended since a draft was said."""
    return any(draft.valid_from is not None and draft.valid_from < now for draft in drafts)


def with_superseded(facts: Sequence[Fact], fact_ids: AbstractSet[str]) -> AbstractSet[str]:
    """Return the ids with those of the facts that they superseded, directly or not."""
    named = set(fact_ids)
    while more := {f.id for f in facts if f.superseded_by in named} - named:
        named |= more
    return named


@dataclass(slots=True)
class _Merge:
    """The state of a merge: which facts are current while drafts are added, oldest draft first.

    What becomes of a draft does not depend on which facts before it are known and which are added.
    """

    known: Sequence[Fact]
    past: Sequence[Fact]
    current: CurrentFacts
    added: dict[str, Fact] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)
    ended: dict[str, Fact] = field(default_factory=dict)
    repetitions: list[Repetition] = field(default_factory=list)

    def _successor(self, fact: Fact) -> str | None:
        return self.replaced.get(fact.id, fact.superseded_by)

    def find_repeated(self, draft: FactDraft) -> Fact | None:
        """Return the current fact that says the same; one that is to be replaced, word for word."""
        same = (
            fact
            for fact in self.current.alike(draft)
            if say_same(draft, fact) and (draft.replaces != fact.id or is_verbatim(draft, fact))
        )
        return next(same, None)

    def find_later(self, fact: Fact) -> Fact | None:
        """Return a current fact that was said later and replaces this one."""
        at = fact.valid_from
        contrary = (known for known in self.current.contrary(fact) if known.valid_from > at)
        other = next((known for known in contrary if contradicts(known, fact)), None)
        if other is not None:
            return other
        comparable = (known for known in self.current.comparable(fact) if known.valid_from > at)
        return self._surest((known, self._score(fact, known)) for known in comparable)

    def find_ended(self, fact: Fact) -> Fact | None:
        """Return the fact that says the same, and that ended after this one was said.

        Of two statements of one time the later written one counts, but a request to forget ends both,
        and an import that is repeated saves the same text with the same time.
        """
        is_dated_save = fact.made_by == SAVED and fact.valid_from < fact.created_at
        facts = (*self.past, *self.known, *self.ended.values(), *self.added.values())
        by_id = {old.id: old for old in facts}
        for old in by_id.values():
            successor = by_id.get(self.replaced.get(old.id, ""))
            end = successor.valid_from if successor else old.valid_to
            is_late = end is None or fact.valid_from > end
            is_same = is_dated_save and is_verbatim(fact, old)
            if is_late or (fact.valid_from == end and self._successor(old) and not is_same):
                continue
            if say_same(fact, old):
                return old
        return None

    def forget(self, request: Fact, draft: FactDraft) -> bool:
        """End the facts that a request names, or that say what it points back at, if there are any."""
        said = [old for old in self.current if old.valid_from <= request.valid_from]
        if draft.points_back:
            named: Sequence[Fact] = [old for old in said if say_same(draft, old)]
        else:
            named = find_named(request, said)
        for old in named:
            facts = self.added if old.id in self.added else self.ended
            facts[old.id] = replace(old, valid_to=request.valid_from)
            self.current.remove(old.id)
        return bool(named)

    def add_before(self, later: Fact, fact: Fact) -> None:
        """Add a fact that a later one has replaced, after those that were said before it."""
        facts = (*self.known, *self.past, *self.added.values())
        while True:
            replaced = [old for old in facts if self._successor(old) == later.id]
            same = next((old for old in replaced if say_same(old, fact)), None)
            if same is not None:
                self.repetitions.append(Repetition(same.id, fact))
                return
            values = [
                old for old in replaced if contradicts(fact, old) or self._score(old, fact) >= 0
            ]
            between = [old for old in values if old.valid_from > fact.valid_from]
            if not between:
                break
            later = min(between, key=lambda old: old.valid_from)
        self.replaced |= dict.fromkeys((old.id for old in values), fact.id)
        self.added[fact.id] = replace(fact, valid_to=later.valid_from, superseded_by=later.id)

    def correct(self, fact: Fact, draft: FactDraft) -> None:
        """Add a fact in place of the one that its draft names, and of others that say the same."""
        for old in self.current.alike(draft):
            if old.id != draft.replaces and say_same(draft, old):
                self._end(old, fact)
        self.add(fact, draft)

    def add(self, fact: Fact, draft: FactDraft) -> None:
        """Add a fact, which may replace known ones and earlier ones of the same drafts."""
        named = self.current.get(draft.replaces)
        for old in self.current.contrary(fact):
            if old is not named and old.valid_from <= fact.valid_from and contradicts(fact, old):
                self._end(old, fact)
        if named is not None:
            self._end(named, fact)
        comparable = self.current.comparable(fact)
        before = (old for old in comparable if old.valid_from <= fact.valid_from)
        surest = self._surest((old, self._score(old, fact)) for old in before)
        if surest is not None:
            self._end(surest, fact)
        self.added[fact.id] = fact
        self.current.add(fact)

    def _end(self, old: Fact, fact: Fact) -> None:
        self.replaced[old.id] = fact.id
        self.current.remove(old.id)

    def _score(self, earlier: Fact, later: Fact) -> float:
        """Return how far the score that a later fact ends an earlier one is above its cutoff."""
        doublings = log2(max(1.0, len(self.current) / _FEW_FACTS))
        return score_of_fact_end(earlier, later) - _RISE_PER_DOUBLING * doublings

    @staticmethod
    def _surest(scored: Iterable[tuple[Fact, float]]) -> Fact | None:
        """Return the first fact with the highest score, if that is not below 0."""
        fact, score = max(scored, key=itemgetter(1), default=(None, -inf))
        return fact if score >= 0 else None
