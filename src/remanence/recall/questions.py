"""Questions of a turn, and their words that an answer is likely to share."""

import re
from typing import Final

from remanence.languages.vocabulary import vocabulary_of
from remanence.observers.extractive.sentences import sentences
from remanence.observers.learned.function_words import Language, likely_languages
from remanence.recall.words import UNSPACED_LETTER, WORD

LONG_TURN: Final = 600
"""Length from which only the questions and the first and last sentence of a turn are searched."""

QUESTIONS: Final = 4
"""Number of questions of a long turn that are searched, the last ones."""

KEYWORDS: Final = 2
"""Maximum number of words of a query that asks for these words, and for nothing of their topic."""

_WITH_APOSTROPHE: Final = re.compile(rf"{WORD.pattern}(?:['’]{WORD.pattern})*")
_KANA: Final = re.compile("[\u3040-\u30ff]")
_QUESTION_CLASSES: Final = frozenset({"what", "who", "when", "where", "why", "how"})
_FILLER_CLASSES: Final = _QUESTION_CLASSES | {
    *("now", "still", "already", "again", "also", "very", "please", "maybe")
}
"""Classes of words that a question may have, but its answer need not."""


def question_of(turn: str) -> str:
    """Return a short turn in full, and of a long one the questions, first and last sentence.

    A long turn may contain a pasted page that is not part of the question.
    """
    text = turn.strip()
    if len(text) <= LONG_TURN:
        return text
    said = [text[span.start : span.end] for span in sentences(text)]
    questions = [sentence for sentence in said[1:-1] if sentence.endswith(("?", "？"))]
    chosen = (*said[:1], *questions[-QUESTIONS:], *said[1:][-1:])
    return "\n".join(sentence[:LONG_TURN] for sentence in chosen)


def distinctive_words(question: str) -> str:
    """Return the words of a question that an answer is likely to share."""
    keys = [word.lower() for word in WORD.findall(question)]
    likely = likely_languages(question, keys)
    slight = {
        key
        for key in keys
        if any(not _FILLER_CLASSES.isdisjoint(each.words.get(key, ())) for each in likely)
    }
    small = vocabulary_of(question).function_words | slight
    words = (
        part
        for word in _WITH_APOSTROPHE.findall(_without_question_words(question, likely[0]))
        if word.lower().replace("’", "'") not in small
        for part in WORD.findall(word)
        if part.lower() not in small
        and (len(part) > 1 or part.isdigit() or UNSPACED_LETTER.match(part))
    )
    return " ".join(dict.fromkeys(words))


def _without_question_words(question: str, language: Language) -> str:
    """Return a question in a script without spaces without its question words.

    Those in kana stay, as a longer word may have the same letters: どう is in ぶどう.
    """

    def rest(word: re.Match[str]) -> str:
        asks = not _QUESTION_CLASSES.isdisjoint(language.words.get(word[0], ()))
        return " " if asks and not _KANA.search(word[0]) else word[0]

    return language.anywhere.sub(rest, question) if language.anywhere else question


def is_keyword_query(query: str) -> bool:
    """Return whether a query has a keyword or two, in a script with spaces, and no other words."""
    words = WORD.findall(query)
    is_short = len(words) <= KEYWORDS and not UNSPACED_LETTER.search(query)
    return is_short and distinctive_words(query).split() == words
