"""A whole clause reaches its note word by word as it was written."""

import json

from hypothesis import given, strategies as st

from remanence.languages.vocabulary import NO_VOCABULARY
from remanence.observers.extractive.render import render_words, words

_LETTERS = st.text(alphabet="abcdeghijkmnopstuvz", min_size=2, max_size=6)
_JSON = st.dictionaries(_LETTERS, _LETTERS | st.integers(0, 99), min_size=1, max_size=3)
_CODE = _JSON.map(json.dumps) | _JSON.map(lambda value: json.dumps(value, separators=(",", ":")))
_WORD = _LETTERS | _LETTERS.map("{}'".format) | _LETTERS.map("{}’,".format)


def whole(text: str) -> str:
    found = words(text, NO_VOCABULARY, opens=True)
    return render_words([word._replace(dropped=not word.text) for word in found])


@given(_LETTERS, st.lists(_WORD, min_size=1, max_size=5), _LETTERS)
def test_an_apostrophe_behind_a_letter_stays(first: str, said: list[str], last: str) -> None:
    clause = " ".join((first, *said, last))

    assert whole(clause) == clause


@given(_LETTERS, _CODE, _LETTERS)
def test_json_between_quotation_marks_stays_as_it_is(first: str, code: str, last: str) -> None:
    clause = f"{first} -d '{code}' {last}"

    assert whole(clause) == clause
