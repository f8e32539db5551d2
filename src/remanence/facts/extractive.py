"""The embedded extractor: keeps the sentences of users that the learned scores take for facts."""

import asyncio
from collections.abc import Generator

from remanence.facts.lines import is_rather_a_wish
from remanence.facts.meaning import meaning_of
from remanence.facts.statements import Statement, is_user, statements
from remanence.facts.tags import CORRECTION, HOME, SPEAKER, STATEMENTS
from remanence.facts.wishes import INSTRUCTION, PREFERENCE
from remanence.languages.vocabulary import find_cue
from remanence.observers.learned.fact import WISH, fact_scores
from remanence.observers.learned.features import Line
from remanence.observers.learned.preload import load_files
from remanence.observers.learned.score import Scores, scorer
from remanence.observers.learned.statements import WISHES, alone, statement_scores
from remanence.observers.learned.topics import log_odds
from remanence.observers.learned.weights import checksum
from remanence.pacing import compute_in_slices
from remanence.protocols import Compute, ExtractRequest
from remanence.types import FactDraft, FactType

HOME_SCORE = "home"
"""Score of a sentence alone, and topic, of where somebody lives."""
_SURE_HOME, _SURE_WITH_TOPIC = 3.0, 4.5
"""How far above its cutoff the score is of a home that may replace another: behind a phrase such as
"I live in", and otherwise together with the log-odds of the topic.

By the score alone, "We meet in Cologne on Friday" was a home.
"""
_WISHES = {"inst": INSTRUCTION, "pref": PREFERENCE}
"""Tag of a wish by the higher of these scores."""
_SURE_WISH, _SURE_EVENT = 1.0, 2.3
"""Sums of scores from which nine of ten statements are of the kind.

They were chosen on conversations that no other fit has seen, where they find six of ten wishes and
a fourth of what is ahead. Scores find no decisions, habits and skills that surely.
"""


class ExtractiveFacts:
    """Extracts sentences of users without a model, verbatim except for resolved dates.

    A sentence that says little alone is kept with those before it, or with the question that it
    answers. One without a word of content, such as an emoji, is left out.

    It reads the messages rather than their notes, which are too brief in a short conversation.
    """

    def __init__(self, compute: Compute = compute_in_slices) -> None:
        self._compute = compute

    @property
    def name(self) -> str:
        return f"{STATEMENTS}11-{checksum()}"

    async def extract(self, request: ExtractRequest) -> tuple[FactDraft, ...]:
        await asyncio.to_thread(load_files)
        return await self._compute(_drafts, request)


def _drafts(request: ExtractRequest) -> Generator[None, None, tuple[FactDraft, ...]]:
    drafts: list[FactDraft] = []
    earlier = {message.seq for message in request.before}
    for said in statements((*request.before, *request.messages)):
        if said is not None and said.source.seq not in earlier and _has_content(said):
            fact_type, tags = _kind(said)
            summary, name = said.summary, said.source.speaker
            if not is_user(said.source, request.user):
                summary, tags = f"{name}: {summary}", (*tags, f"{SPEAKER}{name}")
            drafts.append(
                FactDraft(
                    summary=summary,
                    type=fact_type,
                    tags=tags,
                    first_seq=said.first_seq,
                    last_seq=said.source.seq,
                    valid_from=said.source.created_at,
                    forgets=said.forgets,
                    points_back=said.referent is not None,
                )
            )
        yield
    return tuple(drafts)


def home_margin(text: str) -> float:
    """Return how far the score of a home must be above its cutoff for the tag of one."""
    if find_cue(text, HOME_SCORE):
        return _SURE_HOME
    return _SURE_WITH_TOPIC - log_odds(text, HOME_SCORE)


def _has_content(said: Statement) -> bool:
    """Return whether a statement has a word of content, perhaps in its quotation, or asks to forget.

    A capital within it makes one of a word such as "US".
    """
    if said.forgets or meaning_of(said.summary).bag:
        return True
    return any(
        len(word) > 1 and (word.istitle() or word.isupper()) for word in said.summary.split()[1:]
    )


def _kind(said: Statement) -> tuple[FactType, tuple[str, ...]]:
    if said.forgets:
        return "behavior", (PREFERENCE,) if is_rather_a_wish(said.lines[0]) else ()
    over = {head: scorer().over(said.scores, head) for head in said.scores}
    corrects = (CORRECTION,) if over["corr"] >= 0 else ()
    asks, tag = max(map(_wish, said.lines))
    if asks >= _SURE_WISH:
        return "behavior", (tag, *corrects)
    is_home = any(_own(line)[HOME_SCORE] >= home_margin(line.text) for line in said.lines)
    home = (HOME,) if is_home else ()
    is_ahead = over["next"] + over["fut"] >= _SURE_EVENT
    return "event" if is_ahead else "profile", (*home, *corrects)


def _wish(line: Line) -> tuple[float, str]:
    """Return how surely a line asks for something that lasts, and the tag of such a wish."""
    own = _own(line)
    head = max(_WISHES, key=own.__getitem__)
    likes = own[head] - max(own["personal"], 0)
    return likes + fact_scores(line.text)[WISH] + statement_scores(line)[WISHES], _WISHES[head]


def _own(line: Line) -> Scores:
    """Return by how much each score of a line is above its cutoff, whatever the line follows."""
    return scorer().above(alone(line))
