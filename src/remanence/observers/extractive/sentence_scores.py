"""Learned scores of the sentences of a conversation, and the tags that they justify."""

from remanence.languages.letters import count_letters
from remanence.observers.learned.score import Scores, scorer
from remanence.types import Tag

_STANDING = {"vital": 1.8, "inst": -0.6, "pref": 0.4, "personal": 1.3}
"""How far above its cutoff, or below it, one of these scores is in what must never be lost.

Of such sentences in conversations with an agent, three of four are labelled so, and nine of ten as
worth noting (`benchmarks.labelled`).
"""
_CHANGES = ("corr", "rep", "end", "forget")
_MAX_STANDING, _PROSE_SHARE = 300, 0.8
_IMPERSONAL = -0.5
"""How far above its cutoff the score of a fact about the user is below this in a sentence that tells
nothing about them."""
_DEPENDENT = 0.5
"""Score from which a sentence is taken for dependent. Notes keep as many dependent sentences that stand
alone with bounds from 0 to 2 (15 %), and with 0 lose some of what must never be lost."""
_FILLER = -2.2
"""Score for worth below which one sentence of twenty is worth noting, by cross-validation."""
TAGS: tuple[tuple[str, Tag, float], ...] = (
    ("inst", "Preference", 0.0),
    ("open", "NextStep", 1.4),
    ("issue", "Issue", 0.1),
    ("out", "Outcome", 0.4),
)
"""Scores that give a tag, by rank, and how far they are then above the cutoff for nine of ten.

Cross-validated (`tools/train_notes.py`), 92 to 96 of 100 lines of people and agents have the label.
No line has a `NextStep` for what is to be done: no cutoff finds such sentences that surely.
"""


def tag_of(scores: Scores) -> Tag:
    """Return the tag that the scores justify, or Fact."""
    strict = scorer().weights.strict
    return next(
        (
            tag
            for head, tag, above in TAGS
            if head in strict and scores[head] >= strict[head] + above
        ),
        "Fact",
    )


def is_constraint(scores: Scores) -> bool:
    """Return whether a sentence is a constraint."""
    return scorer().over(scores, "con") >= 0


def is_standing(text: str, scores: Scores) -> bool:
    """Return whether a sentence of an agent's user must never be lost; numbers alone never are."""
    prose = count_letters(text) + sum(map(str.isspace, text))
    if len(text) > _MAX_STANDING or prose < _PROSE_SHARE * len(text):
        return False
    return standing_of(scores) >= max(0.0, scorer().over(scores, "quoted"))


def standing_of(scores: Scores) -> float:
    """Return by how much the surest of the scores says that a sentence must never be lost."""
    return max(scorer().over(scores, head) - least for head, least in _STANDING.items())


def is_borrowed(scores: Scores) -> bool:
    """Return whether a sentence is quoted, translated or invented, and not meant by its speaker."""
    return scorer().over(scores, "quoted") >= 0


def change_of(scores: Scores) -> float:
    """Return by how much the surest of the scores says that a sentence changes what was said before.

    It corrects, replaces or ends that, or asks to forget it.
    """
    return max(scorer().over(scores, head) for head in _CHANGES)


def is_open(scores: Scores) -> bool:
    """Return whether a sentence asks or names something that stays open, right nine times of ten."""
    return scores["open"] >= scorer().weights.strict["open"]


def is_dependent(scores: Scores) -> bool:
    """Return whether a sentence surely says little without those around it."""
    return scores["dependent"] >= _DEPENDENT


def is_impersonal(scores: Scores) -> bool:
    """Return whether a sentence is clearly below the cutoff of a fact about the user."""
    return scorer().over(scores, "personal") < _IMPERSONAL


def is_filler(scores: Scores) -> bool:
    """Return whether a sentence with such a score is hardly ever worth noting."""
    return scores["worth"] < _FILLER
