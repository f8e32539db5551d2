"""What stands before a list says what its items are: open, not possible, a proposal."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from remanence.languages.vocabulary import Vocabulary
from remanence.observers.extractive.cues import DONE, NO_CUE, Cue, all_cues, cue_of
from remanence.observers.extractive.render import Word, words
from remanence.observers.extractive.sentences import ITEM, Span
from remanence.types import Tag

_MOST_WORDS = 5
_INHERITED: frozenset[Tag] = frozenset({"NextStep", "Issue"})


class Lead(NamedTuple):
    """The line before a list: its words if items need them, and what they are by it.

    `is_open` says that the items are not so: they will, could or cannot be, or one of them.
    """

    words: tuple[Word, ...] = ()
    cue: Cue = NO_CUE
    is_open: bool = False

    def of_item(self, cue: Cue) -> Cue:
        """The cue of an item that has this one by itself."""
        if self.is_open and cue.tag in DONE:
            return NO_CUE
        return self.cue if cue == NO_CUE else cue


NO_LEAD = Lead()


def with_leads(text: str, found: Iterable[Span]) -> Iterator[tuple[Span, Span | None]]:
    """Each sentence with the one that leads its list; None outside of a list."""
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
    """What a line says of the items after it."""
    said = tuple(words(text, vocabulary, opens=True))
    keys = [word.key for word in said]
    cues, cue = all_cues(), cue_of(text, keys, is_question=False)
    own = tuple(w for w in said if not w.dropped and w.key not in vocabulary.weak)
    tells = len(own) <= _MOST_WORDS and any(w.key not in vocabulary.glue for w in own)
    return Lead(
        own if tells else (),
        cue if cue.tag in _INHERITED else NO_CUE,
        cues.deny(keys) or cues.propose(text, keys) or text.endswith(("?", "？")),
    )
