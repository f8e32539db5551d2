"""Statements beside questions: "I'm vegan, what can I cook?", "Which bus, my office is in Aker?"."""

from collections.abc import Iterator
from itertools import dropwhile, pairwise
from operator import itemgetter

from remanence.facts.lines import expresses_wish, is_own, is_request_to_forget, states
from remanence.facts.requests import tokens_of
from remanence.observers.addresses import behind_mentions
from remanence.observers.extractive.dependence import is_few_words, names_speaker
from remanence.observers.extractive.sentence_scores import is_borrowed, is_impersonal
from remanence.observers.extractive.sentences import QUESTION_MARK, Span, parts
from remanence.observers.learned.features import Line, tag
from remanence.observers.learned.function_words import WORD, language_of, lower_words
from remanence.observers.learned.openings import hands_over
from remanence.observers.learned.score import Scores, scorer
from remanence.observers.learned.statements import STATED, WISHES, statement_scores

_OPENING_MARK = "¿"
_PERSONAL = 1.0
"""Score by its cutoff as a fact about the user from which what is behind a question is one."""
_CONDITIONS = frozenset({"if", "when"})
"""Classes of the words that begin what is only supposed, or only says of when the question is."""
_OPENING_WORDS = 2
_AUXILIARY = frozenset({"be", "do", "can", "should", "will", "would", "must"})
"""Classes of verbs that ask before their speaker; what one has comes first in Russian: "У меня …"."""

_FAVOR = frozenset({"can", "will", "would"})
"""Classes of verbs that ask a favor of "you"."""
_GOVERNING = frozenset({"about", "for", "from", "if", "in", "to", "when", "with"})
"""Classes of words before "my" or "I" that make it a part of the favor: "Book a table at my hotel"."""
_CLEARLY = 1.0
"""Score of a wish from which a favor is one though it only names a thing: "Could you use my first name?"."""


def asked_to_remember(asking: Line, at: Span) -> tuple[Span, Line] | None:
    """Return a favor that is asked in order to state something, with what it states of the user.

    "Could you note that my size is 39?" states something as a whole, without its mark, and from its
    first "I" or "my" on, unlike "Could you find my keys?". Unless it is a wish, that has to be more than
    the name of a thing: "Could you list my phone number?".
    """
    text = QUESTION_MARK.sub("", asking.text)
    start = _start_of_own(text)
    if start is None or not is_own(asking) or is_request_to_forget(asking):
        return None
    whole, kept = (asking._replace(text=f"{said}.") for said in (text, text[start:]))
    scores = statement_scores(whole)
    says_more = _says_more(kept.text) or scores[WISHES] >= _CLEARLY
    is_meant = says_more and scores[STATED] >= 0 and states(kept)
    return (Span(at.start, at.start + len(text)), kept) if is_meant else None


def _start_of_own(text: str) -> int | None:
    """Return where the first "I" or "my" of a text that asks a favor of "you" begins."""
    found = [word for word in WORD.finditer(text) if word[0][0].isalnum()]
    words = [word[0].lower() for word in found]
    language = language_of(text, words)
    tagged = [language.tag(word, [word])[0] for word in words]
    opening = tagged[:_OPENING_WORDS]
    to_you = any(language.is_subject(word, "you") for word, _ in opening)
    if not to_you or all(_FAVOR.isdisjoint(classes) for _, classes in opening):
        return None
    for (_, before), (word, classes), place in zip(tagged, tagged[1:], found[1:], strict=False):
        if "my" in classes or language.is_subject(word, "i"):
            return place.start() if _GOVERNING.isdisjoint(before) else None
    return None


def _says_more(text: str) -> bool:
    """Return whether a text with "my" says more of a thing than its name: not "my size", "my size is"."""
    said = [one for one in tokens_of(text) if one[0][0].isalnum()]
    if "my" not in said[0][1]:
        return True
    name = dropwhile(itemgetter(1), said)
    told = dropwhile(lambda one: not one[1] and one[0].isalpha(), name)
    return any(not classes or word.isdigit() for word, classes in told)


def stated_beside(asking: Line, at: Span) -> Iterator[tuple[Span, Line]]:
    """Yield the fact about the user that a sentence states before its question, or else behind it.

    Before a few words it may be an instruction: "Keep it short, okay?". Where the question begins is
    where the scores of both sides differ most.
    """
    text = QUESTION_MARK.sub("", asking.text)
    found = tuple(parts(text, Span(0, len(text))))
    end = asking._replace(text=f"{text[found[-1].start :]}.")
    before: list[tuple[float, Span, Line]] = []
    behind: list[tuple[float, Span, Line]] = []
    for last, first in pairwise(found):
        head = asking._replace(text=f"{text[: last.end]}.")
        tail = asking._replace(
            text=f"{text[first.start :]}.",
            is_handed_over=asking.is_handed_over or hands_over(f"{text[: last.end]}:"),
        )
        above = statement_scores(head)[STATED] - statement_scores(tail)[STATED]
        scores, tail_scores = scorer().score(head), scorer().score(tail)
        if is_borrowed(scores):
            continue
        instructs = (
            expresses_wish(head) and scorer().over(scores, "inst") >= 0 and is_few_words(tail.text)
        )
        if above > 0 and (instructs or not is_impersonal(scores)):
            if _is_meant(head, scores) and not _is_supposed(text, last):
                before.append((above, Span(at.start, at.start + last.end), head))
        elif is_impersonal(scores) and scorer().over(tail_scores, "personal") >= _PERSONAL:
            is_meant = states(end) and _is_meant(tail, tail_scores)
            if is_meant and not _is_supposed(text, found[0], first):
                behind.append((-above, Span(at.start + first.start, at.start + len(text)), tail))
    if before or behind:
        _, span, line = max(before or behind, key=itemgetter(0))
        yield span, line


def _is_meant(side: Line, scores: Scores) -> bool:
    """Return whether a side of a question is a wish or a statement in its speaker's own name.

    What begins with "you" and says neither "I" nor "my" states nothing of the speaker: "You ski, right?".
    """
    if not states(side) or is_borrowed(scores) or _OPENING_MARK in side.text:
        return False
    return expresses_wish(side) or not (
        _begins_as_question(side.text) or _is_about_somebody(side.text)
    )


def _begins_as_question(text: str) -> bool:
    """Return whether a text begins with a verb before its speaker: "Am I", "Kann ich"."""
    tagged = tag(text)
    (_, verb), (_, subject), *_ = (*tagged, ("", ()), ("", ()))
    return "i" in subject and not _AUXILIARY.isdisjoint(verb)


def _is_about_somebody(text: str) -> bool:
    """Return whether "you" is the subject with which a text begins, behind a mention or a verb that asks."""
    said = behind_mentions(text)
    language = language_of(said)
    first, second, *_ = (*language.tag(said.lower(), lower_words(said)), ("", ()), ("", ()))
    subject, _ = first if _AUXILIARY.isdisjoint(first[1]) else second
    return language.is_subject(subject, "you") and not names_speaker(text)


def _is_supposed(text: str, *spans: Span) -> bool:
    """Return whether a word such as "if" or "when" is among the first of a part of a text."""
    language = language_of(text)
    for span in spans:
        said = text[span.start : span.end].lower()
        opening = language.tag(said, WORD.findall(said))[:_OPENING_WORDS]
        if any(not _CONDITIONS.isdisjoint(classes) for _, classes in opening):
            return True
    return False
