"""Score of a user's sentence as an answer: does it mean little without what the agent asked before?

"Four in March." does, but not "I moved to Lisbon.", whatever the question was. The score does not read
the words of the question, as they were no gain.
"""

from remanence.observers.learned.features import Line
from remanence.observers.learned.score import scorer

FILE = "answers.bin"
NEEDS_QUESTION = "needs question"


def needs_question(line: Line) -> bool:
    """Return whether a line cannot be understood without the line that it replies to."""
    return scorer(FILE).above(line)[NEEDS_QUESTION] >= 0
