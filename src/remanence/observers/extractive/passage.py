"""A clause of a message, with the scores of its sentence."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from remanence.dates import DateMention
from remanence.languages.vocabulary import Vocabulary
from remanence.observers.extractive.render import Word, render_words
from remanence.types import Tag

AGENT = "assistant"
"""The speaker of messages of an agent without a name."""

USER = "user"
"""The speaker of messages of a user without a name."""

TOOL = "tool"
"""The speaker of results of a tool; behind it stands the name of the tool, if there is one."""

ASKS = ("?", "？", "؟", "፧", "\u037e")
"""Marks with which a question ends."""

_QUOTED_BEFORE = re.compile(r"“[^\n]*?” – ")
_MAX_USUAL_WORDS = 5
MAX_LABEL_WORDS = 16
"""Words of a label without which items say little, as those of an inner list, or the opposite:
"never do: reach hosts"."""


def is_label(keys: Sequence[str], vocabulary: Vocabulary) -> bool:
    """Return whether words in lower case may lead each item after them: "can do: reach hosts"."""
    return len(keys) <= (MAX_LABEL_WORDS if vocabulary.denies(keys) else _MAX_USUAL_WORDS)


class Quotation(NamedTuple):
    """A sentence of a message, with resolved dates."""

    seq: int
    text: str

    @property
    def asks(self) -> bool:
        return self.text.endswith(ASKS)

    def before(self, answer: str) -> str:
        """Return an answer with what it answers before it."""
        return f"“{self.text}” – {answer}"


def question_mark_of(sentence: str) -> str:
    """Return the mark with which a sentence asks, as its script has it."""
    return next((mark for mark in reversed(sentence) if mark in ASKS), "?")


def is_answer(text: str) -> bool:
    """Return whether a text begins with what it answers, as `Quotation.before` has it."""
    return bool(quotation_of(text))


def quotation_of(text: str) -> str:
    """Return the quotations that a text begins with, as `Quotation.before` has them."""
    end = 0
    while found := _QUOTED_BEFORE.match(text, end):
        end = found.end()
    return text[:end]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A clause of a message: `source` is its original text, `words` that of a note.

    `is_user` marks what the user of an agent says, `is_of_agent` what an agent says and calls, and
    `is_of_people` what is said in a talk without an agent. `is_rule` marks a sentence of the user
    that is one passage, in its own words: a question, a constraint, or one that `is_standing`. This
    is a standing instruction, a fact about the user or an open point, which is chosen first.
    `is_framed` marks words that are surely somebody else's; `context` has the opening that says so.
    `reply_to` is the question that a passage answers which says little without it, or the options
    that it `chooses` by their labels; `context` has its words.
    """

    seq: int
    at: datetime | None
    speaker: str
    source: str
    words: tuple[Word, ...]
    vocabulary: Vocabulary
    sentence: int = 0
    clause: int = 0
    context: tuple[Word, ...] = ()
    reply_to: Quotation | None = None
    chooses: bool = False
    is_question: bool = False
    is_caption: bool = False
    is_quoted: bool = False
    is_framed: bool = False
    is_item: bool = False
    is_call: bool = False
    is_output: bool = False
    is_user: bool = False
    is_of_agent: bool = False
    is_of_people: bool = False
    is_rule: bool = False
    is_standing: bool = False
    dates: tuple[DateMention, ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict)
    tag: Tag = "Fact"

    @property
    def first_seq(self) -> int:
        """The first message whose words it has."""
        return self.reply_to.seq if self.reply_to else self.seq

    @property
    def is_outcome(self) -> bool:
        """The call of a tool or its output."""
        return self.is_call or self.is_output

    def continues(self, other: "Passage") -> bool:
        """Return whether this is the next clause of the same sentence."""
        return (self.seq, self.sentence, self.clause) == (
            other.seq,
            other.sentence,
            other.clause + 1,
        )

    @property
    def text(self) -> str:
        """The passage in the wording of a note, led by its context."""
        clause = render_words(self.words)
        if self.is_question and clause and not clause.endswith(ASKS):
            clause += question_mark_of(self.source)
        if self.is_framed and clause:
            clause = f"“{clause}”"
        if self.reply_to and clause:
            return self.reply_to.before(clause)
        return f"{render_words(self.context)}: {clause}" if self.context and clause else clause
