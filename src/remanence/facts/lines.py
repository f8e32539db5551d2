"""Lines of users: which state something, ask for what lasts, or ask to forget something."""

from remanence.facts.requests import content_of
from remanence.observers.extractive.sentences import QUESTION_MARK
from remanence.observers.learned.features import Line
from remanence.observers.learned.forgetting import (
    is_request,
    may_request,
    nearly_asks,
    score_of_request,
)
from remanence.observers.learned.statements import STATED, WISHES, statement_scores

MAX_CHARACTERS = 300
"""Length of a sentence that is a statement, and of a statement that is quoted with what it quotes."""
_CLEARLY = 1.0
"""By how much the score of a wish exceeds that of a request to forget where a line could be either."""


def states(line: Line) -> bool:
    """Return whether a line is a statement that its speaker makes, or asks for what lasts."""
    return may_state(line) and (statement_scores(line)[STATED] >= 0 or expresses_wish(line))


def is_rather_a_wish(line: Line) -> bool:
    """Return whether a line is likelier a wish than a request to forget: "You may drop my title."."""
    return (
        expresses_wish(line) and statement_scores(line)[WISHES] >= score_of_request(line) + _CLEARLY
    )


def may_state(line: Line) -> bool:
    """Return whether a line is its speaker's own and neither a question nor a request to forget."""
    if not is_own(line) or QUESTION_MARK.search(line.text):
        return False
    return not may_request(line) or is_rather_a_wish(line)


def is_own(line: Line) -> bool:
    """Return whether a line is short enough and, as far as its place says, in its speaker's own words."""
    return not (line.is_quoted or line.is_handed_over) and len(line.text) <= MAX_CHARACTERS


def expresses_wish(line: Line) -> bool:
    """Return whether a line asks for something that lasts: "No emojis please"."""
    return statement_scores(line)[WISHES] >= 0


def is_request_to_forget(line: Line) -> bool:
    """Return whether a line asks, in its speaker's own words, to forget something.

    A word of content asks it: "my address pls" asks for the address.
    """
    if not is_own(line) or not is_request(line):
        return False
    return any(map(nearly_asks, content_of(line.text)))
