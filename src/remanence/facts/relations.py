"""Relations of two facts: that they say the same, or that the later one ends the earlier one."""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from math import inf

from remanence.dates import without_dates
from remanence.facts.meaning import ALIKE, Meaning, is_home, meaning, meaning_of
from remanence.facts.tags import SAVED, STATEMENTS, is_wish
from remanence.languages.vocabulary import find_cue, vocabulary_of
from remanence.notes.literals import NOUNS_IN_CAPITALS
from remanence.observers.extractive.passage import Quotation, is_answer, quotation_of
from remanence.observers.extractive.render import terms, words
from remanence.observers.extractive.sentence_scores import is_dependent
from remanence.observers.extractive.sentences import parts, sentences
from remanence.observers.learned.fact import KNOW, SEVERAL, fact_scores
from remanence.observers.learned.fact_pairs import score_of_facts
from remanence.observers.learned.features import Line
from remanence.observers.learned.function_words import WORD, language_of
from remanence.observers.learned.pairs import may_end, score_of_end
from remanence.observers.learned.score import scorer
from remanence.observers.learned.statements import WISHES, says_change, statement_scores
from remanence.types import Fact, FactDraft

_SURELY_SEVERAL = 1.6
"""Score from which a fact that is not about a home surely says several things."""
_WORTH_KNOWING = -1.0
"""Score from which a clause is worth more than that another fact ends.

Of 206 facts that have an unrelated one beside what ends, by the data of `tools/train_pairs.py`, 162 stay,
without it 151; of 898 others that a later one ends 9 more stay. From -2 it would be 179, and 20 more.
"""
_MAY_ASK = -1.25
"""Score of wishes from which a text may end one: "Answer in English again."

By the data of `tools/train_pairs.py` 34 of 40 wishes then end that do so by the score of pairs without a
denial, and six of seven others; from 0 it would be 27 and five.
"""
_MAX_DENIED = 3
"""Words of a thing that a fact denies or affirms, without its numbers."""
_NEARLY = -1.0
"""Score of facts from which that of pairs may be the higher one, but for wishes."""
_SAVED_SURER = 0.85
"""What is added to the score of saved facts, as statements have more in common by chance."""

_PART = re.compile(r"[\w\s'-]+")


def say_same(one: Fact | FactDraft, other: Fact) -> bool:
    """Return whether two facts say the same.

    Nearly all words match, every number, the order of names, and both affirm or both deny.
    """
    if is_verbatim(one, other):
        return True
    a, b = meaning(one), meaning(other)
    return a.is_negative == b.is_negative and _is_alike(a, b)


def is_verbatim(one: Fact | FactDraft, other: Fact) -> bool:
    """Return whether two facts are the same text, but for capitals."""
    return one.summary.casefold() == other.summary.casefold()


def _is_alike(a: Meaning, b: Meaning) -> bool:
    if a.numbers != b.numbers or a.speaker != b.speaker:
        return False
    if [name for name in a.names if name in b.names] != [n for n in b.names if n in a.names]:
        return False
    return len(a.bag & b.bag) >= ALIKE * (len(a.bag | b.bag) or 1)


def contradicts(new: Fact, old: Fact) -> bool:
    """Return whether a fact denies or corrects another, or tells another home of one person.

    A fact that says more than a home, such as an allergy, is not ended by another home. One that
    denies a home ends none in another place, and one that names no place, such as "I live in a shared
    flat", ends none.
    """
    mine, theirs = meaning(new), meaning(old)
    if is_answer(mine.text):
        return _corrects(new, old)  # The words of a question are not the user's.
    denies = mine.is_negative != theirs.is_negative and _is_alike(mine, theirs)
    differ = not (mine.bag <= theirs.bag or theirs.bag <= mine.bag)
    moves = is_home(new) and is_home(old) and differ
    moves = moves and _may_name_place(mine.text) and not _denies_elsewhere(mine, theirs)
    moves = moves and _says_besides(theirs, mine) < 0
    return (denies or moves) and _have_same_subject(mine, theirs, new.user)


def _may_name_place(text: str) -> bool:
    """Return whether a text has a name behind its first word, or is written without capitals.

    Where all nouns have capitals, a name follows a word such as "in": "in Bonn", but "in einer WG".
    """
    if text == text.lower() or any(map(_is_caseless, text)):
        return True
    vocabulary = vocabulary_of(text)
    is_noun = vocabulary.language in NOUNS_IN_CAPITALS
    before = vocabulary.function_words - vocabulary.drop
    said = words(text, vocabulary, opens=False)
    return any(
        word.is_name and (last.key in before or not is_noun) for last, word in pairwise(said)
    )


def _is_caseless(character: str) -> bool:
    return character.isalpha() and character.lower() == character.upper()


def _denies_elsewhere(mine: Meaning, theirs: Meaning) -> bool:
    """Return whether a text denies a home, in a place that another text does not name.

    It denies it before its cue phrase, or else in all of its parts.
    """
    places = set(mine.names).difference(mine.person or ())
    if not places or places & theirs.bag:
        return False
    said, cue = mine.text.replace("’", "'").casefold(), find_cue(mine.text, "home")
    found = _PART.findall(said[: cue.start()])[-1:] if cue else _PART.findall(said)
    denies = vocabulary_of(mine.text).denies
    return bool(found) and all(denies(WORD.findall(part)) for part in found)


def _corrects(new: Fact, old: Fact) -> bool:
    """Return whether a fact quotes its speaker's own statement, another fact of its source."""
    mine, theirs = meaning(new), meaning(old)
    quoted = quotation_of(theirs.text)
    opening = quoted + Quotation(0, theirs.text.removeprefix(quoted)).before("")
    is_of_source = (new.conversation, new.first_seq) == (old.conversation, old.first_seq)
    is_own = is_of_source and mine.speaker == theirs.speaker
    return is_own and mine.text.startswith(opening)


def _have_same_subject(mine: Meaning, theirs: Meaning, user: str) -> bool:
    """Return whether one speaker said two facts of one person or thing, as far as they say so."""
    is_other = mine.speaker != theirs.speaker or have_other_owners(mine, theirs)
    return not is_other and _is_of_one_person(mine.person, theirs.person, user)


def have_other_owners(one: Meaning, other: Meaning) -> bool:
    """Return whether both say whose thing they are about, and it is not the same one."""
    if one.possessors and other.possessors and one.possessors != other.possessors:
        return True
    return bool(one.owners and other.owners) and one.owners.isdisjoint(other.owners)


def _is_of_one_person(
    mine: frozenset[str] | None, theirs: frozenset[str] | None, user: str
) -> bool:
    """Return whether two homes are of one person, as far as both facts tell one."""
    if mine is None or theirs is None:
        return True
    own = terms(user.casefold())
    mine, theirs = mine.difference(own), theirs.difference(own)
    return bool(mine & theirs) or not (mine or theirs)


def score_of_fact_end(earlier: Fact, later: Fact) -> float:
    """Return the learned score that a later fact ends an earlier one; minus infinity if below 0.

    Of statements it is the higher one of two scores. Facts of two people have minus infinity, and so
    have statements that share no word of content or differ in bare numbers alone, as of two gardens,
    where one denies another thing than the other affirms, and where the later one alone says little.
    A wish is ended by another, in whatever words, by a denial such as "I no longer want tables", or by what
    a program saves. What surely says several things is not ended, as the later one may end one of
    them.
    """
    one, other = meaning(earlier), meaning(later)
    if not _have_same_subject(other, one, later.user):
        return -inf
    is_saved, is_statement = later.made_by == SAVED, later.made_by.startswith(STATEMENTS)
    if is_wish(earlier) and not (
        is_saved or is_wish(later) or other.is_negative or _may_ask(other.text)
    ):
        return -inf
    if not is_statement:
        score = score_of_facts(earlier.summary, later.summary) + _SAVED_SURER
    elif (
        all(map(str.isdigit, one.words ^ other.words))
        or _denies_other(one, other)
        or not _share_word(one, other)
    ):
        return -inf
    else:
        least = -inf if is_wish(earlier) else _NEARLY
        score = _score_of_statements(one.text, other.text, least=least)
    if score < 0 or _says_more(one, other):
        return -inf
    if is_statement and _says_little(other.text) and not _says_little(one.text):
        return -inf
    return score


def _score_of_statements(earlier: str, later: str, *, least: float) -> float:
    """Return the score of facts, or from *least* on that of pairs if it is higher."""
    score = score_of_facts(earlier, later)
    if score >= least and may_end(earlier, later):
        return max(score, score_of_end(earlier, later))
    return score


@lru_cache(maxsize=4_096)
def _may_ask(text: str) -> bool:
    """Return whether a text may ask for something: "Answer in English again"."""
    return statement_scores(Line(text, "user"))[WISHES] >= _MAY_ASK


@lru_cache(maxsize=4_096)
def _says_little(text: str) -> bool:
    """Return whether a text answers a question that it quotes, or depends on other words."""
    return is_answer(text) or is_dependent(scorer().score(Line(text, "user")))


def _denies_other(one: Meaning, other: Meaning) -> bool:
    """Return whether each has a few words of its own, and one denies: "tea", "no wine".

    Where they share a number, as in "not on the 22nd any more", that is what it denies.
    """
    if one.is_negative == other.is_negative or one.numbers & other.numbers:
        return False
    mine, theirs = (a.bag - b.bag - a.numbers for a, b in ((one, other), (other, one)))
    return 0 < len(mine) <= _MAX_DENIED and 0 < len(theirs) <= _MAX_DENIED


def _share_word(one: Meaning, other: Meaning) -> bool:
    """Return whether two facts share a word of content, perhaps with an ending: "Oma", "Omas".

    That something "moved" says nothing of what did, nor "Emma's" of which thing of hers is meant.
    """
    owners = one.possessors | other.possessors
    mine, theirs = (
        {term for term in said.bag - owners if not (term.isdigit() or says_change(term))}
        for said in (one, other)
    )
    stems, other_stems = (tuple(set(said.stems) - owners) for said in (one, other))
    return (
        not mine.isdisjoint(theirs)
        or any(term.startswith(other_stems) for term in mine)
        or any(term.startswith(stems) for term in theirs)
    )


def _says_besides(one: Meaning, other: Meaning) -> float:
    """Return how sure it is that a fact says something besides what another one may end.

    One that has another value in one place alone says the rest again, whatever the dates behind
    words such as "last month".
    """
    mine, theirs = (meaning_of(without_dates(said.text)).bag for said in (one, other))
    restates = len(mine - theirs) <= 1 and len(theirs - mine) <= 1
    return -inf if restates else fact_scores(one.text)[SEVERAL]


def _says_more(one: Meaning, other: Meaning) -> bool:
    """Return whether a fact surely says several things, or one worth knowing in a clause of its own."""
    if _says_besides(one, other) >= _SURELY_SEVERAL:
        return True
    return fact_scores(one.text)[SEVERAL] >= 0 and any(
        fact_scores(clause)[KNOW] >= _WORTH_KNOWING and not _share_word(meaning_of(clause), other)
        for clause in _clauses(one.text)
    )


def _clauses(text: str) -> Iterator[str]:
    """Yield what stands between the ends of sentences, pauses, and words such as "and"."""
    small = language_of(text).words
    for span in (part for sentence in sentences(text) for part in parts(text, sentence)):
        start = span.start
        for word in WORD.finditer(text, span.start, span.end):
            if "and" in small.get(word[0].lower(), ()):
                yield text[start : word.start()]
                start = word.end()
        yield text[start : span.end]


def is_stated_in(said: Fact, text: str) -> bool:
    """Return whether a text has nearly all words of a fact, and all its numbers, and denies as it does."""
    fact, other = meaning(said), meaning_of(text)
    if not fact.numbers <= other.numbers or fact.is_negative != other.is_negative:
        return False
    return len(fact.bag & other.bag) >= ALIKE * len(fact.bag)
