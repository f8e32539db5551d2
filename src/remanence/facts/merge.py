"""Merge new facts with known ones: drop repetitions and supersede outdated facts."""

import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence, Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from itertools import pairwise, takewhile
from math import inf, log2
from typing import TypeAlias

from remanence.clock import Clock
from remanence.languages.vocabulary import Cue, Vocabulary, find_cues, vocabulary_of
from remanence.observers.extractive.passage import Quotation, is_answer, quotation_of
from remanence.observers.extractive.render import Word, has_digit, terms, terms_of, words
from remanence.observers.extractive.sentence_scores import is_dependent
from remanence.observers.learned.fact import SEVERAL, fact_scores
from remanence.observers.learned.features import UNSPACED, Line, tag
from remanence.observers.learned.forgetting import asks_to_forget
from remanence.observers.learned.function_words import WORD, language_of
from remanence.observers.learned.pairs import score_of_end
from remanence.observers.learned.saved import score_of_saved
from remanence.observers.learned.score import scorer
from remanence.types import ConversationRef, Fact, FactChanges, FactDraft, Owner, Repetition

HOME = "slot:home"
"""Tag of a fact about where the user lives: the later of two replaces the earlier."""
SPEAKER = "speaker:"
"""Beginning of the tag of a fact that somebody else said, whose name its summary begins with."""

WISH = "wish"
"""Tag of what the user asks for in their own words; it counts only where an extraction gave it."""
SAVED = "saved"
"""Maker of facts that a program or the tool of a model saved."""
STATEMENTS = "extractive/"
"""Beginning of `made_by` of facts that are statements, in the words of the user."""
_FEW_FACTS = 16
"""The number of a user's facts up to which the cutoff of the learned score holds."""
_RISE_PER_DOUBLING = 0.3
"""Rise of that cutoff with each doubling of the number, as more facts are alike by chance."""

_SURELY_SEVERAL = 1.6
"""Score from which a fact that is not about a home surely says several things."""
_ALIKE = 0.8
_MAX_DENIED = 3
"""Words of a thing that a fact denies or affirms, without its numbers."""
_STEM = 3
"""Letters of a word that may have an ending in another fact."""
_PARTS = re.compile("[,;:،؛、，；：]")
_OWNED = 2
"""Words after "my" of which one names the thing: "my new phone"."""

_Keys: TypeAlias = frozenset[Hashable]


@dataclass(frozen=True, slots=True)
class _Meaning:
    """The terms of a summary: all, and those with digits.

    `text` is the summary without its speaker, and `words` are all of its words and signs. `stems`
    are the terms that may have an ending in another fact.
    `names` are names in the order of the text. `owners` are the user's people and things that it
    names: "my sister", "my flight". `person` names whose home it tells: empty for the user, None if
    it tells no home.
    """

    speaker: str
    text: str
    words: frozenset[str]
    bag: frozenset[str]
    stems: tuple[str, ...]
    owners: frozenset[str]
    person: frozenset[str] | None
    names: tuple[str, ...]
    is_negative: bool
    numbers: frozenset[str]


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

    A draft that repeats a fact becomes a repetition of it. One that was said before the fact that
    replaces it takes its place among those of *past* that this one had replaced. A draft replaces
    the fact that it names, one that it denies, another home of the same person, and the fact
    that it most surely ends by a learned score. A request to forget ends the facts that it names.
    """
    now = clock.now()
    ended = [fact for fact in past if fact.valid_to is not None]
    merge = _Merge(known, ended, len(known), {fact.id: _keys(fact, made_by) for fact in known})
    for draft in drafts:
        if not draft.summary.strip():
            continue
        fact = Fact(
            id=clock.new_id("fact"),
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
        if draft.forgets:
            merge.forget(fact)
            continue
        merge.relate(fact, draft)
        repeated = merge.find_repeated(draft)
        if repeated is not None and is_wish(fact) and not is_wish(repeated):
            # The user's own words take the place of others for the same.
            merge.add(fact, replace(draft, replaces=repeated.id))
        elif repeated is not None:
            merge.repetitions.append(Repetition(repeated.id, fact))
        elif (later := merge.find_later(fact)) is not None:
            merge.add_before(later, fact)
        elif (forgotten := merge.find_forgotten(fact)) is not None:
            merge.repetitions.append(Repetition(forgotten.id, fact))
        else:
            merge.add(fact, draft)
    if not (merge.added or merge.repetitions or merge.ended):
        return FactChanges()
    return FactChanges(
        facts=tuple(merge.added.values()),
        replaced=merge.replaced,
        ended=tuple(merge.ended.values()),
        repetitions=tuple(merge.repetitions),
        newest=known[0].id if known else "",
    )


def needs_past(drafts: Sequence[FactDraft], known: Sequence[Fact], *, now: datetime) -> bool:
    """Return whether `merge_facts` needs *past*: a draft was said before one of the known facts."""
    latest = max((fact.valid_from for fact in known), default=now)
    return any((draft.valid_from or now) < latest for draft in drafts)


def is_wish(fact: Fact) -> bool:
    """Return whether a fact is what the user asks for, in their own words."""
    return WISH in fact.tags and fact.made_by != SAVED


def with_superseded(facts: Sequence[Fact], fact_ids: AbstractSet[str]) -> AbstractSet[str]:
    """Return the ids with those of the facts that they superseded, directly or not."""
    named = set(fact_ids)
    while more := {f.id for f in facts if f.superseded_by in named} - named:
        named |= more
    return named


def is_stated_in(said: Fact, text: str) -> bool:
    """Return whether a text has nearly all words of a fact, and all its numbers, and denies as it does."""
    fact, other = _meaning(said), _meaning_of(text)
    if not fact.numbers <= other.numbers or fact.is_negative != other.is_negative:
        return False
    return len(fact.bag & other.bag) >= _ALIKE * len(fact.bag)


@dataclass(slots=True)
class _Merge:
    """The state of a merge: which facts are current while drafts are added, oldest draft first.

    What becomes of a draft does not depend on which facts before it are known and which are added.
    """

    known: Sequence[Fact]
    past: Sequence[Fact]
    count: int
    keys: dict[str, _Keys | None]
    related: Sequence[Fact] = ()
    """The facts that a draft may repeat or end, or that may end it, the last written first."""
    added: dict[str, Fact] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)
    ended: dict[str, Fact] = field(default_factory=dict)
    repetitions: list[Repetition] = field(default_factory=list)

    def relate(self, fact: Fact, draft: FactDraft) -> None:
        """Find what is related to a draft and its fact, before it is added."""
        mine = self.keys[fact.id] = _keys(fact, fact.made_by)
        self.related = [
            known
            for known in self._all()
            if mine is None
            or (keys := self.keys[known.id]) is None
            or not mine.isdisjoint(keys)
            or known.id == draft.replaces
        ]

    def current(self) -> list[Fact]:
        """Return the related facts that nothing has ended, the last written first."""
        return [fact for fact in self.related if self._is_current(fact)]

    def _all(self) -> Iterator[Fact]:
        yield from reversed(self.added.values())
        yield from self.known

    def _is_current(self, fact: Fact) -> bool:
        is_ended = fact.valid_to is not None or fact.id in self.ended
        return not is_ended and self._successor(fact) is None

    def _successor(self, fact: Fact) -> str | None:
        return self.replaced.get(fact.id, fact.superseded_by)

    def find_repeated(self, draft: FactDraft) -> Fact | None:
        """Return the current fact that says the same; one that is to be replaced, word for word."""
        same = (
            fact
            for fact in self.current()
            if _same(draft, fact) and (draft.replaces != fact.id or _is_verbatim(draft, fact))
        )
        return next(same, None)

    def find_later(self, fact: Fact) -> Fact | None:
        """Return a current fact that was said later and replaces this one."""
        later = [known for known in self.current() if known.valid_from > fact.valid_from]
        other = next((known for known in later if _contradicts(known, fact)), None)
        if other is None:
            best = max(later, key=lambda known: self._score(fact, known), default=None)
            other = best if best is not None and self._score(fact, best) >= 0 else None
        return other

    def find_forgotten(self, fact: Fact) -> Fact | None:
        """Return the fact that says the same, and that the user asked to forget after this one."""
        ended = (old for old in (*self.past, *self.added.values()) if self._successor(old) is None)
        return next(
            (
                old
                for old in ended
                if old.valid_to and fact.valid_from <= old.valid_to and _same(fact, old)
            ),
            None,
        )

    def forget(self, request: Fact) -> None:
        """End the facts that a request names."""
        said = [
            old
            for old in self._all()
            if self._is_current(old) and old.valid_from <= request.valid_from
        ]
        for old in _find_named(request, said):
            facts = self.added if old.id in self.added else self.ended
            facts[old.id] = replace(old, valid_to=request.valid_from)
            self.count -= 1

    def add_before(self, later: Fact, fact: Fact) -> None:
        """Add a fact that a later one has replaced, after those that were said before it."""
        facts = (*self.known, *self.past, *self.added.values())
        while True:
            replaced = [old for old in facts if self._successor(old) == later.id]
            same = next((old for old in replaced if _same(old, fact)), None)
            if same is not None:
                self.repetitions.append(Repetition(same.id, fact))
                return
            values = [
                old for old in replaced if _contradicts(fact, old) or self._score(old, fact) >= 0
            ]
            between = [old for old in values if old.valid_from > fact.valid_from]
            if not between:
                break
            later = min(between, key=lambda old: old.valid_from)
        self.replaced |= dict.fromkeys((old.id for old in values), fact.id)
        self.added[fact.id] = replace(fact, valid_to=later.valid_from, superseded_by=later.id)

    def add(self, fact: Fact, draft: FactDraft) -> None:
        """Add a fact, which may replace known ones and earlier ones of the same drafts."""
        for old in self.current():
            if _replaces(fact, draft, old):
                self._end(old, fact)
        before = [old for old in self.current() if old.valid_from <= fact.valid_from]
        best = max(before, key=lambda old: self._score(old, fact), default=None)
        if best is not None and self._score(best, fact) >= 0:
            self._end(best, fact)
        self.added[fact.id] = fact
        self.count += 1

    def _end(self, old: Fact, fact: Fact) -> None:
        self.replaced[old.id] = fact.id
        self.count -= 1

    def _score(self, earlier: Fact, later: Fact) -> float:
        """Return how far the score that a later fact ends an earlier one is above its cutoff."""
        doublings = log2(max(1.0, self.count / _FEW_FACTS))
        return _score_of_end(earlier, later) - _RISE_PER_DOUBLING * doublings


def _keys(fact: Fact, made_by: str) -> _Keys | None:
    """Return keys of which two statements have one in common if one may repeat or end the other.

    None unless it and what *made_by* makes are statements: others may share function words alone.
    """
    if not (fact.made_by.startswith(STATEMENTS) and made_by.startswith(STATEMENTS)):
        return None
    keys = {
        fact.summary.casefold(),
        (fact.conversation, fact.first_seq),
        *(term[:_STEM] for term in _meaning(fact).bag),
    }
    return frozenset(keys | {HOME} if _is_home(fact) else keys)


def _same(one: Fact | FactDraft, other: Fact) -> bool:
    """Return whether two facts say the same.

    Nearly all words match, every number, the order of names, and both affirm or both deny.
    """
    if _is_verbatim(one, other):
        return True
    a, b = _meaning(one), _meaning(other)
    return a.is_negative == b.is_negative and _is_alike(a, b)


def _is_verbatim(one: Fact | FactDraft, other: Fact) -> bool:
    return one.summary.casefold() == other.summary.casefold()


def _is_alike(a: _Meaning, b: _Meaning) -> bool:
    if a.numbers != b.numbers or a.speaker != b.speaker:
        return False
    if [name for name in a.names if name in b.names] != [n for n in b.names if n in a.names]:
        return False
    return len(a.bag & b.bag) >= _ALIKE * (len(a.bag | b.bag) or 1)


def _replaces(new: Fact, draft: FactDraft, old: Fact) -> bool:
    is_later = new.valid_from >= old.valid_from
    return draft.replaces == old.id or (is_later and _contradicts(new, old))


def _contradicts(new: Fact, old: Fact) -> bool:
    """Return whether a fact denies or corrects another, or tells another home of one person.

    A fact that says more than a home, such as an allergy, is not ended by another home.
    """
    mine, theirs = _meaning(new), _meaning(old)
    if is_answer(mine.text):
        return _corrects(new, old)  # The words of a question are not the user's.
    denies = mine.is_negative != theirs.is_negative and _is_alike(mine, theirs)
    moves = _is_home(new) and _is_home(old) and _differ(mine, theirs)
    moves = moves and _says_besides(theirs, mine) < 0
    return (denies or moves) and _have_same_subject(new, old)


def _corrects(new: Fact, old: Fact) -> bool:
    """Return whether a fact begins with the statement of another of its source, which it quotes."""
    said = _meaning(old).text
    quoted = quotation_of(said)
    opening = quoted + Quotation(0, said.removeprefix(quoted)).before("")
    is_of_source = (new.conversation, new.first_seq) == (old.conversation, old.first_seq)
    return is_of_source and _meaning(new).text.startswith(opening)


def _have_same_subject(new: Fact, old: Fact) -> bool:
    """Return whether one speaker said two facts of one person or thing, as far as they say so."""
    mine, theirs = _meaning(new), _meaning(old)
    names_other = mine.owners and theirs.owners and mine.owners.isdisjoint(theirs.owners)
    return mine.speaker == theirs.speaker and not names_other and _is_of_one_person(new, old)


def _is_of_one_person(new: Fact, old: Fact) -> bool:
    """Return whether two homes are of one person, as far as both facts tell one."""
    mine, theirs = _meaning(new).person, _meaning(old).person
    if mine is None or theirs is None:
        return True
    user = terms(new.user.casefold())
    mine, theirs = mine.difference(user), theirs.difference(user)
    return bool(mine & theirs) or not (mine or theirs)


def _score_of_end(earlier: Fact, later: Fact) -> float:
    """Return the learned score that a later fact ends an earlier one; minus infinity if below 0.

    What a program or a model wrote has a score of its own. Facts of two people have minus infinity,
    and so have statements that share no word of content or differ in bare numbers alone, as of two
    gardens, where one denies another thing than the other affirms, and where the later one alone
    says little. What surely says several things is not ended, as the later one may end one of them.
    """
    if not _have_same_subject(later, earlier):
        return -inf
    one, other = _meaning(earlier), _meaning(later)
    is_statement = later.made_by.startswith(STATEMENTS)
    if not is_statement:
        score = score_of_saved(earlier.summary, later.summary)
    elif (
        all(map(str.isdigit, one.words ^ other.words))
        or _denies_other(one, other)
        or not _share_word(one, other)
    ):
        return -inf
    else:
        score = score_of_end(one.text, other.text)
    if score < 0 or _says_besides(one, other) >= _SURELY_SEVERAL:
        return -inf
    if is_statement and _says_little(other.text) and not _says_little(one.text):
        return -inf
    return score


@lru_cache(maxsize=4_096)
def _says_little(text: str) -> bool:
    """Return whether a text answers a question that it quotes, or depends on other words."""
    return is_answer(text) or is_dependent(scorer().score(Line(text, "user")))


def _denies_other(one: _Meaning, other: _Meaning) -> bool:
    """Return whether each has a few words of its own, and one denies: "tea", "no wine".

    Where they share a number, as in "not on the 22nd any more", that is what it denies.
    """
    if one.is_negative == other.is_negative or one.numbers & other.numbers:
        return False
    mine, theirs = (a.bag - b.bag - a.numbers for a, b in ((one, other), (other, one)))
    return 0 < len(mine) <= _MAX_DENIED and 0 < len(theirs) <= _MAX_DENIED


def _share_word(one: _Meaning, other: _Meaning) -> bool:
    """Return whether two facts share a word of content, perhaps with an ending: "Oma", "Omas"."""
    return (
        any(not term.isdigit() for term in one.bag & other.bag)
        or any(term.startswith(other.stems) for term in one.bag)
        or any(term.startswith(one.stems) for term in other.bag)
    )


def _says_besides(one: _Meaning, other: _Meaning) -> float:
    """Return how sure it is that a fact says something besides what another one may end.

    One that has another value in one place alone says the rest again.
    """
    restates = len(one.bag - other.bag) <= 1 and len(other.bag - one.bag) <= 1
    return -inf if restates else fact_scores(one.text)[SEVERAL]


def _find_named(request: Fact, facts: Sequence[Fact]) -> Sequence[Fact]:
    """Return the facts that a request to forget repeats, else those about a thing that it names."""
    asked = _meaning(request)
    named = [fact for fact in facts if _is_named(_meaning(fact), asked)]
    repeated = [fact for fact in named if _is_repeated(_meaning(fact), asked)]
    return repeated or [fact for fact in named if _is_about(_meaning(fact), asked.text)]


def _is_named(known: _Meaning, asked: _Meaning) -> bool:
    """Return whether a fact has all that a request says, besides words that ask to forget.

    What a request says between commas without a word of the fact, such as a reason, does not count.
    """
    if known.speaker or not asked.owners <= known.bag:
        return False
    told = [
        part
        for part in _PARTS.split(asked.text)
        if any(_has(known, word) for word in _content(part))
    ]
    if not told or any(_meaning_of(part).is_negative for part in told) != known.is_negative:
        return False
    said = {word for part in told for word in _content(part)}
    return all(_has(known, word) or asks_to_forget(word) for word in said)


@lru_cache(maxsize=4_096)
def _content(text: str) -> frozenset[str]:
    """The words of a text that are no function words; one with an ending such as "my" counts."""
    said = [word.lower() for word in WORD.findall(text)]
    known = language_of(text, said).words.keys() | vocabulary_of(text).function_words
    return frozenset(
        word
        for word, _ in tag(text, said)
        if word[0].isalnum() and known.isdisjoint((word, word.partition("'")[0]))
    )


def _has(known: _Meaning, word: str) -> bool:
    if UNSPACED.match(word):
        return word in known.text.casefold()
    return not known.bag.isdisjoint((word, *terms(word)))


def _is_repeated(known: _Meaning, asked: _Meaning) -> bool:
    """Return whether a request has nearly all words of a fact, all its numbers, and its owners."""
    if UNSPACED.search(known.text):
        return all(word in asked.text.casefold() for word in _content(known.text))
    if not (known.bag and known.numbers <= asked.numbers and known.owners <= asked.bag):
        return False
    return len(known.bag & asked.bag) >= _ALIKE * len(known.bag)


def _is_about(known: _Meaning, text: str) -> bool:
    """Return whether a request such as "delete my phone number" names what a fact is about.

    "My" follows the word that asks: "the address of my sister" names nothing of hers.
    """
    tagged = tag(text, [word.lower() for word in WORD.findall(text)])
    for at, ((before, _), (_, classes)) in enumerate(pairwise(tagged), 2):
        if "my" in classes and asks_to_forget(before):
            words_after = takewhile(lambda one: not one[1] and one[0].isalnum(), tagged[at:])
            owned = {word for word, _ in words_after}
            return (
                bool(known.owners)
                and known.owners <= {term for word in owned for term in (word, *terms(word))}
                and all(_has(known, word) for word in owned)
            )
    return False


def _is_home(fact: Fact) -> bool:
    return HOME in fact.tags or _meaning(fact).person is not None


def _differ(mine: _Meaning, theirs: _Meaning) -> bool:
    """Return whether each of two facts says something that the other does not."""
    return not (mine.bag <= theirs.bag or theirs.bag <= mine.bag)


def _meaning(said: Fact | FactDraft) -> _Meaning:
    """Return the meaning of a fact, whose speaker is the user unless a tag names another."""
    if not said.tags:
        return _meaning_of(said.summary)
    names = (tag.removeprefix(SPEAKER) for tag in said.tags if tag.startswith(SPEAKER))
    speaker = next(names, "")
    return _meaning_of(said.summary.removeprefix(f"{speaker}: "), speaker)


@lru_cache(maxsize=4_096)
def _meaning_of(text: str, speaker: str = "") -> _Meaning:
    vocabulary = vocabulary_of(text)
    small = vocabulary.function_words
    said = list(words(text, vocabulary, opens=False))
    content = [word for word in said if word.key not in small]
    bag = _all_terms(content)
    cue = next(iter(find_cues(text, "home")), None)
    person = _person(text, said, cue, vocabulary) if cue else None
    return _Meaning(
        speaker=speaker.casefold(),
        text=text,
        words=frozenset(WORD.findall(text.casefold())),
        bag=bag,
        stems=tuple(term for term in bag if len(term) >= _STEM and not term.isdigit()),
        owners=_owners(said, vocabulary),
        person=person,
        names=tuple(word.key for word in content if word.is_name),
        is_negative=vocabulary.denies(word.key for word in said),
        numbers=frozenset(word.key for word in content if has_digit(word)),
    )


def _person(
    text: str, said: Sequence[Word], cue: Cue, vocabulary: Vocabulary
) -> frozenset[str] | None:
    """Return the terms that name who lives or moves, empty for the user; None if a thing does.

    Somebody is a name that opens the text, or a word or two after "my". Where nothing follows the
    phrase, as in Japanese, the place is before it; in scripts without spaces words are not told
    apart: both are of the user.
    """
    before = said[: sum(1 for _ in words(text[: cue.start], vocabulary, opens=False))]
    classes = _classes(said)[: len(before)]
    is_place_before = not any(map(str.isalnum, text[cue.start + len(cue.phrase) :]))
    if vocabulary.small or is_place_before or any("i" in found for found in classes):
        return frozenset()
    mine = max((at + 1 for at, found in enumerate(classes) if "my" in found), default=0)
    named = [word for word in before[mine:] if word.key not in vocabulary.function_words]
    opening = [word for word in before[:1] if word.is_name]
    is_person = len(named) <= _OWNED if mine else named in ([], opening)
    return _all_terms(named) if is_person else None


def _classes(said: Sequence[Word]) -> list[Collection[str]]:
    """Return the grammatical classes of the words of a text; a word of content has none."""
    keys = [word.key for word in said]
    known = language_of(" ".join(keys), keys).words
    return [known.get(key) or known.get(key.partition("'")[0], ()) for key in keys]


def _owners(said: Sequence[Word], vocabulary: Vocabulary) -> frozenset[str]:
    """Return the terms of the last owner in "my sister's flight", or of the words after "my"."""
    classes = _classes(said)
    named = [
        word
        for word, found in zip(said, classes, strict=True)
        if word.key.endswith("'s") and not found  # not "it's" or "she's"
    ][-1:]
    if not named:
        mine = [at + 1 for at, found in enumerate(classes) if "my" in found]
        named = [word for at in mine for word in said[at : at + _OWNED]]
    return _all_terms(word for word in named if word.key not in vocabulary.function_words)


def _all_terms(said: Iterable[Word]) -> frozenset[str]:
    return frozenset(term for word in said for term in terms_of(word))
