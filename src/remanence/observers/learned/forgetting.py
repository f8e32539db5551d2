"""Score of a sentence as a request to the memory to forget something."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import takewhile

from remanence.observers.learned.features import Line, tag
from remanence.observers.learned.function_words import WORD, Classes, language_of
from remanence.observers.learned.score import scorer
from remanence.observers.learned.statements import alone, first_tokens

FILE = "forgetting.bin"
FORGETS = "forgets"
"""The head: that the user asks the memory to forget."""
ASKING, ASKS = "asking.bin", "asks"
"""Weights of words, and the head: that a word of a request asks, and does not name a thing."""
_MARGIN = 0.45
"""How far below the cutoff a line may still be a request; of the statements of users 0.2 % are."""
_SURE = 1.75
"""How far above the cutoff a line that denies nothing surely is one: "Stop forgetting that." is not."""
_DENIED = 2
"""Number in the weights of a denied word that requests deny; of those that none denies most have less."""
_NEARLY = 0.45
"""How far below its cutoff a word may ask: "veuillez", "stuff"; names are some 1 below.

Of the words of things in requests of the register 4.0 % are not further below, 2.9 % from 0.25, and of
the others 71 and 66 %.
"""
_CLEARLY = 2.25
"""How far above its cutoff a word surely is a verb that asks: "deletes" and "vergaß" are not."""
NEGATIONS, _NEAR = frozenset({"neg", "never"}), 3
"""Classes of words that deny, and how many tokens on either side they may deny."""
_REPLIES = frozenset({"yes", "okay", "neg", "um", "haha", "thanks", "sorry", "hello"})
"""Classes of words that reply, before a pause or a mention that does not belong to what is asked."""
_REPLY = re.compile(r"([^,;:،؛、，；：]{1,40}?)(?:[,،、，]\s*|\s[-–—]\s|\s(?=<?@))(?=\S)")
_REPLY_WORDS = 2


def with_negations(line: Line) -> Iterator[tuple[str, ...]]:
    """Yield groups of features: the first tokens of a line by place, and the words near a negation.

    A sum of words alone takes "Don't forget" for "forget".
    """
    yield first_tokens(line)
    yield tuple(f"denied {word}" for word, _ in _near_negations(line))


def _near_negations(line: Line) -> Iterator[tuple[str, Classes]]:
    """Yield the tokens near each negation of a line, with their classes."""
    tagged = tag(line.text)
    places = [at for at, (_, classes) in enumerate(tagged) if not NEGATIONS.isdisjoint(classes)]
    for at in places:
        yield from tagged[max(0, at - _NEAR) : at]
        yield from tagged[at + 1 : at + _NEAR + 1]


def score_of_request(line: Line) -> float:
    """Return how far the score of a line is above its cutoff."""
    return scorer(FILE, with_negations).above(without_reply(line))[FORGETS]


def is_sure_request(line: Line) -> bool:
    """Return whether a request surely is one: "Don't keep that", and not "Don't remove that".

    The content words that it denies are such as requests deny, or it denies none and is far above
    the cutoff.
    """
    said = without_reply(line)
    denied = [word for word, classes in _near_negations(said) if word[0].isalnum() and not classes]
    weights = scorer(FILE, with_negations).weights
    shares = [weights.row(f"denied {word}")[weights.heads.index(FORGETS)] for word in denied]
    return min(shares) >= _DENIED if shares else score_of_request(line) >= _SURE


def without_reply(line: Line) -> Line:
    """Return a line alone, without what replies before its first two pauses: "No, no, forget …"."""
    return alone(line)._replace(text=behind_reply(behind_reply(line.text)))


def behind_reply(text: str) -> str:
    """Return a text without a word or two that reply before its first pause or a mention."""
    head = _REPLY.match(text)
    words = WORD.findall(head[1].lower()) if head else []
    if head is None or not 0 < len(words) <= _REPLY_WORDS:
        return text
    *_, (_, classes) = language_of(text).tag(head[1].lower(), words)
    return text if _REPLIES.isdisjoint(classes) else text[head.end() :]


def is_request(line: Line) -> bool:
    """Return whether a line asks to forget something."""
    return score_of_request(line) >= 0 and not _denies_forgetting(line)


def may_request(line: Line) -> bool:
    """Return whether a line is a request, or so close to one that it should not be kept as a fact."""
    return score_of_request(line) >= -_MARGIN and not _denies_forgetting(line)


def _denies_forgetting(line: Line) -> bool:
    """Return whether a line denies each verb that asks to forget: "Please don't forget about my allergy".

    A negation is before the verb in its clause, or behind it and polite words: "Vergiss bitte nicht …".
    Requests deny other verbs: "Don't keep that."
    """
    tagged = tag(without_reply(line).text)
    weights = scorer(FILE, with_negations).weights
    forgets = weights.heads.index(FORGETS)
    verbs = [
        at
        for at, (word, classes) in enumerate(tagged)
        if not classes and clearly_asks(word) and weights.row(f"denied {word}")[forgets] < 0
    ]
    return bool(verbs) and all(_is_denied(tagged, at) for at in verbs)


def _is_denied(tagged: Sequence[tuple[str, Classes]], at: int) -> bool:
    """Return whether a negation is close before a token, or behind it and polite words."""
    before = list(
        takewhile(lambda one: one[0][0].isalnum(), reversed(tagged[max(0, at - _NEAR) : at]))
    )
    behind = next((classes for _, classes in tagged[at + 1 :] if "please" not in classes), ())
    denying = (*before, ("", behind))
    return any(not NEGATIONS.isdisjoint(classes) for _, classes in denying)


def asks_to_forget(word: str) -> bool:
    """Return whether a word in lower case asks or says what is told, as "forget" and "rule" do.

    "Phone" does not: it names what is to be forgotten.
    """
    return _score_of_asking(word) >= 0


def nearly_asks(word: str) -> bool:
    """Return whether a word in lower case may ask or say what is told, as "veuillez" and "stuff" may."""
    return _score_of_asking(word) >= -_NEARLY


def clearly_asks(word: str) -> bool:
    """Return whether a word in lower case surely asks, such as "forget"."""
    return _score_of_asking(word) >= _CLEARLY


@lru_cache(maxsize=4_096)
def _score_of_asking(word: str) -> float:
    """Return how far the score of a word in lower case that it asks is above its cutoff."""
    scored = scorer(ASKING)
    return scored.weights.biases[0] + scored.share_of(word, ASKS) - scored.weights.cutoffs[ASKS]
