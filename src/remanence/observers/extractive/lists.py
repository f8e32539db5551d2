"""Leads of lists: the line before a list may make its items open, impossible or proposed."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from remanence.languages.vocabulary import Vocabulary
from remanence.observers.extractive.cues import DONE, NO_CUE, Cue, all_cues, cue_of
from remanence.observers.extractive.render import Word, words
from remanence.observers.extractive.sentences import ITEM, Span
from remanence.types import Tag

_MAX_WORDS = 5
_INHERITED: frozenset[Tag] = frozenset({"NextStep", "Issue"})


class Lead(NamedTuple):
    """The line before a list: its words if items need them, and the cue that items inherit.

    `is_open` marks items that are not facts yet: planned, possible, ruled out or alternatives.
    """

    words: tuple[Word, ...] = ()
    cue: Cue = NO_CUE
    is_open: bool = False

    def of_item(self, cue: Cue) -> Cue:
        """Return the cue of an item in the list whose own cue is *cue*."""
        if self.is_open and cue.tag in DONE:
            return NO_CUE
        return self.cue if cue == NO_CUE else cue


NO_LEAD = Lead()


def with_leads(text: str, found: Iterable[Span]) -> Iterator[tuple[Span, Span | None]]:
    """Yield each sentence with the sentence that leads its list, or None outside a list."""
    before: Span | None = None
    lead: Span | None = None
    in_list = False
    for sentence in found:
        if text.startswith(ITEM, max(0, sentence.start - len(ITEM))):
            lead = lead if in_list else before
            in_list = True
        elif text[sentence.start - 1 : sentence.start] in ("", "\n"):
            in_list = False
        if not in_list:
            before = sentence
        yield sentence, lead if in_list else None


def lead_of(text: str, vocabulary: Vocabulary) -> Lead:
    """Return the lead that a line is to the items after it."""
    line_words = tuple(words(text, vocabulary, opens=True))
    keys = [word.key for word in line_words]
    cues, cue = all_cues(), cue_of(text, keys, is_question=False)
    own = tuple(w for w in line_words if not w.dropped and w.key not in vocabulary.weak)
    is_label = len(own) <= _MAX_WORDS and any(w.key not in vocabulary.glue for w in own)
    return Lead(
        own if is_label else (),
        cue if cue.tag in _INHERITED else NO_CUE,
        cues.deny(keys) or cues.propose(text, keys) or text.endswith(("?", "？")),
    )
