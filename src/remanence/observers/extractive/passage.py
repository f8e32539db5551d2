"""A clause of a message, classified and with its context."""

from dataclasses import dataclass
from datetime import datetime

from remanence.dates import DateMention
from remanence.languages.vocabulary import Vocabulary
from remanence.observers.extractive.cues import NO_CUE, Cue
from remanence.observers.extractive.render import Word, wording

AGENT = "assistant"
"""The speaker of messages of an agent without a name."""

USER = "user"
"""The speaker of messages of an agent's user without a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A clause of a message: `source` is its original text, `words` its telegraphic wording.

    `is_open` marks an item of a list that is not a fact yet: planned, possible or ruled out.
    `is_reply` marks the short opening of an answer to an agent.
    """

    seq: int
    at: datetime | None
    speaker: str
    source: str
    words: tuple[Word, ...]
    vocabulary: Vocabulary
    sentence: int
    clause: int = 0
    first_seq: int = 0
    context: tuple[Word, ...] = ()
    is_question: bool = False
    is_request: bool = False
    is_caption: bool = False
    is_quoted: bool = False
    is_item: bool = False
    is_open: bool = False
    is_reply: bool = False
    is_outcome: bool = False
    is_output: bool = False
    is_detail: bool = False
    dates: tuple[DateMention, ...] = ()
    cue: Cue = NO_CUE
    supersedes: str | None = None
    is_superseded: bool = False

    def continues(self, other: "Passage") -> bool:
        """Return whether this is the next clause of the same sentence."""
        return (self.seq, self.sentence, self.clause) == (
            other.seq,
            other.sentence,
            other.clause + 1,
        )

    def announces(self, other: "Passage") -> bool:
        """Return whether this clause ends in a colon and *other* follows it."""
        return other.continues(self) and self.source.endswith((":", "："))

    @property
    def text(self) -> str:
        """The passage in the wording of a note, led by its context."""
        clause = wording(self.words)
        return f"{wording(self.context)}: {clause}" if self.context and clause else clause
