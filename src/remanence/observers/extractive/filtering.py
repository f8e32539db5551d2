"""Drops passages without content and passages that a known note already covers."""

from collections import Counter
from collections.abc import Generator, Sequence

from remanence.languages.letters import is_letters
from remanence.languages.vocabulary import vocabulary_of
from remanence.observers.extractive.passage import Passage
from remanence.observers.extractive.render import Word, words
from remanence.observers.extractive.repetition import Statement, statement
from remanence.types import Note

_BARE = 2
_PASTED_CHARS = 40
_VALUE_MARKS = frozenset("0123456789._/@#")


def drop_uninformative(
    found: Sequence[Passage], known: Sequence[Note]
) -> Generator[None, None, tuple[Passage, ...]]:
    """Return the passages that have content and are not covered by a known note.

    A passage pasted from another speaker is dropped: it counts for its author.
    """
    noted: list[Statement] = []
    for note in known:
        vocabulary = vocabulary_of(note.text)
        said = tuple(words(note.text, vocabulary, opens=False))
        noted.append(statement(note.speaker, said, said, vocabulary))
        yield
    passages = Counter(p.seq for p in found)
    kept: list[Passage] = []
    kept_statements: list[Statement] = []
    authors: dict[str, Passage] = {}
    for p in found:
        if not _is_pasted(p, authors) and _is_informative(p, is_alone=passages[p.seq] == 1):
            own = _statement(p) if noted else None
            if own is None or not _is_known(own, noted, kept_statements):
                kept.append(p)
                kept_statements.extend([own] if own else ())
        yield
    # A row of output counts as the words of the one who repeats it.
    return tuple(p for p in kept if not p.is_outcome or authors.get(p.source, p).is_outcome)


def _is_pasted(p: Passage, authors: dict[str, Passage]) -> bool:
    """Return whether a passage is pasted; a new one is added to *authors*, by its text.

    What two people say alike counts for both.
    """
    if len(p.source) < _PASTED_CHARS:
        return False
    author = authors.get(p.source)
    if author is None or (author.is_outcome and not p.is_outcome):
        authors[p.source] = p
        return False
    return author.speaker != p.speaker and not (_is_of_person(author) and _is_of_person(p))


def _is_of_person(p: Passage) -> bool:
    return not (p.is_of_agent or p.is_outcome)


def _statement(p: Passage) -> Statement:
    small = p.vocabulary.function_words
    content = (word for word in p.words if not (word.dropped or word.key in small))
    return statement(p.speaker, p.words, content, p.vocabulary)


def _is_known(own: Statement, noted: Sequence[Statement], since: Sequence[Statement]) -> bool:
    """Return whether a note covers a statement, and nothing changed it after that note."""
    places = [place for place, note in enumerate(noted) if own.repeats(note)]
    return bool(places) and not own.is_changed_by((*noted[places[-1] + 1 :], *since))


def _is_informative(p: Passage, *, is_alone: bool) -> bool:
    """Return whether a passage, which may be alone in its message, has enough words of its own."""
    if p.is_outcome:
        return len(p.words) > 1 or not is_letters(p.source)
    own = [word for word in p.words if not (word.dropped or word.key in p.vocabulary.slight)]
    if p.is_rule or p.chooses:
        return p.chooses or bool(own)
    if is_alone and p.reply_to and p.reply_to.asks:
        return bool(own)  # with the question, a word says enough
    is_slight = p.is_question and not any(_is_value(w) for w in own)
    return _size(own, p) > (_BARE if is_slight else 1)


def _size(own: Sequence[Word], p: Passage) -> int:
    """Return the number of a passage's own words; a denial or the first person adds one."""
    if p.vocabulary.small:
        return sum(len(word.key) for word in own) // 2
    if not own or len(own) > _BARE:
        return len(own)
    counted = p.vocabulary.first | p.vocabulary.denials
    return len(own) + any(w.key in counted or "n't" in w.key for w in p.words)


def _is_value(word: Word) -> bool:
    """Return whether a word is a value: a date, a name, a number, a path."""
    return word.is_date or word.is_name or not _VALUE_MARKS.isdisjoint(word.key)
