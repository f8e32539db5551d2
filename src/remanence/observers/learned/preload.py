"""Loading of the files that observing and extracting read, which would block an event loop."""

from remanence.dates import language
from remanence.observers.learned import (
    answers,
    fact,
    forgetting,
    function_words,
    openings,
    pairs,
    revisions,
    statements,
    topics,
    weights,
)


def load_files() -> None:
    """Load the weights and words of the embedded observer and extractor; only once takes long."""
    language.languages()
    function_words.languages()
    for file in (
        weights.FILE,
        answers.FILE,
        fact.FILE,
        forgetting.FILE,
        forgetting.ASKING,
        openings.FILE,
        pairs.FILE,
        revisions.FILE,
        statements.FILE,
        topics.FILE,
    ):
        weights.load(file)
