"""A clause of a message, with what it is and what it is about."""

from dataclasses import dataclass
from datetime import datetime

from remanence.dates import DateMention
from remanence.languages.vocabulary import Vocabulary
from remanence.observers.extractive.cues import NO_CUE, Cue
from remanence.observers.extractive.render import Word, wording

AGENT = "assistant"
"""The speaker of what an agent without a name says."""

USER = "user"
"""The speaker of what the user of an agent says, where he has no name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A clause of a message, its words in telegraphic wording; `source` is as it was said.

    An open one is an item of a list that may or shall come to be, or does not; a reply says in few
    words what somebody takes of what an agent told.
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
        """Whether it is the next clause of the same sentence."""
        return (self.seq, self.sentence, self.clause) == (
            other.seq,
            other.sentence,
            other.clause + 1,
        )

    def announces(self, other: "Passage") -> bool:
        """Whether it stands before a colon and the other passage after it."""
        return other.continues(self) and self.source.endswith((":", "："))

    @property
    def text(self) -> str:
        """The passage as a note writes it."""
        said = wording(self.words)
        return f"{wording(self.context)}: {said}" if self.context and said else said
