"""Each cue phrase of a language decides what its sentences say."""

from datetime import timedelta

import pytest

from remanence.facts import merge_facts
from remanence.languages.vocabulary import LANGUAGES, vocabulary
from remanence.observers.extractive.sentences import sentences as split
from remanence.testing import FixedClock
from remanence.types import FactDraft, Owner


def sentences(*uses: str) -> list[tuple[str, str, str]]:
    return [
        (language, phrase, sentence)
        for language in LANGUAGES
        for use in uses
        for phrase, sentence in vocabulary(language).cues.get(use, {}).items()
    ]


@pytest.mark.parametrize(("language", "phrase", "pair"), sentences("home"))
def test_another_home_replaces_the_earlier(language: str, phrase: str, pair: str) -> None:
    earlier, later = pair.split(" => ")

    assert (_is_replaced(earlier, later), _is_replaced(later, earlier)) == (True, True)


@pytest.mark.parametrize(("language", "phrase", "pair"), sentences("home"))
def test_without_its_phrase_a_home_is_not_replaced(language: str, phrase: str, pair: str) -> None:
    earlier, later = (without(sentence, phrase) for sentence in pair.split(" => "))

    assert not _is_replaced(earlier, later)


@pytest.mark.parametrize("use", ["abbreviation", "before_number"])
def test_no_sentence_ends_with_an_abbreviation(use: str) -> None:
    rows = sentences(use)

    assert rows
    for language, phrase, sentence in rows:
        assert f"{phrase}. " in sentence.lower(), language
        assert [len(list(split(text))) for text in (sentence, sentence.lower())] == [1, 1], language


def without(sentence: str, phrase: str) -> str:
    plain = sentence.replace("’", "'").casefold()
    return plain.replace(phrase.casefold(), "")


def _is_replaced(earlier: str, later: str) -> bool:
    clock = FixedClock()
    owner = Owner("default", "ana")
    said = [
        FactDraft(summary=text, valid_from=clock.now() + timedelta(days=day))
        for day, text in enumerate((earlier, later))
    ]
    changes = merge_facts(said, (), owner=owner, source=None, made_by="extractive/4", clock=clock)
    first, last = changes.facts[0], changes.facts[-1]
    return last.summary == later and changes.replaced == {first.id: last.id}
