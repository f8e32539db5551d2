"""The readable text of a message, with its sentences, their scores and what they refer to."""

import re
from collections.abc import Container, Generator, Iterator, Sequence
from dataclasses import dataclass, field

from remanence.languages.vocabulary import Vocabulary
from remanence.observers.extractive.dependence import (
    find_question,
    goes_on,
    is_afterthought,
    is_few_words,
    is_near,
    join_scores,
    may_depend,
    may_join,
    quote,
)
from remanence.observers.extractive.letters import handed_over
from remanence.observers.extractive.options import options_of, show
from remanence.observers.extractive.passage import MAX_LABEL_WORDS, Quotation, is_label
from remanence.observers.extractive.quoted_text import find_handover, is_inside, quoted_spans
from remanence.observers.extractive.readable import readable_text
from remanence.observers.extractive.render import Word, words
from remanence.observers.extractive.sentence_scores import is_dependent, is_standing
from remanence.observers.extractive.sentences import ITEM, Span, both_ends_of, sentences
from remanence.observers.learned.answers import needs_question
from remanence.observers.learned.features import Line, Role
from remanence.observers.learned.forgetting import score_of_request
from remanence.observers.learned.score import Scores, scorer
from remanence.observers.learned.statements import WISHES, statement_scores
from remanence.types import Message

_COLON = re.compile(r"[:：](?:\s|$)")
_CAPTION = re.compile(r"\[[^\[\]\n]+\]")
_ENDING = 2
"""Sentences at the end of a message that an answer may need."""
_MAX_HALF = 1_000
"""Sentences at the beginning and at the end of a text that are read."""


@dataclass(slots=True, kw_only=True)
class ScoredText:
    """The readable text of a message with its sentences and their scores."""

    message: Message
    text: str
    before: Line | None
    """The last line of the message before."""
    spans: list[Span] = field(default_factory=list)
    scores: list[Scores] = field(default_factory=list)
    joints: list[int] = field(default_factory=list)
    """Where sentences begin that were joined to the one before."""
    quotations: tuple[Span, ...] = ()
    """Stretches that give the words of somebody else."""
    question: Quotation | None = None
    """The question that the message may answer."""
    offer: Message | None = None
    """The message with the options that the message may choose."""

    def join_dependent(self, pasted: Container[str]) -> Iterator[None]:
        """Join each sentence with those after it that say little alone; yields in between.

        A few words are joined with what follows them if that may depend on them, or if they answer a
        question and that is nothing which must never be lost.
        """
        spans, scores = self.spans, self.scores
        self.spans, self.scores = spans[:1], scores[:1]
        for span, own in zip(spans[1:], scores[1:], strict=True):
            first, earlier = self.spans[-1], self.scores[-1]
            said = self.text[first.start : span.start].rstrip()
            is_apart = said in pasted or self.is_quoted(first) != self.is_quoted(span)
            depends = is_afterthought(self._source(span), own) and not is_apart
            answers = self.question and len(self.spans) == 1 and not self._stands_alone(span, own)
            leads = is_few_words(said) and (answers or may_depend(own)) and not is_apart
            if (depends and may_join(self.text, first, span, earlier)) or (
                leads and is_near(self.text, first, span)
            ):
                self.scores[-1] = join_scores(earlier, own)
                self.spans[-1] = Span(first.start, span.end)
                self.joints.append(span.start)
            else:
                self.spans.append(span)
                self.scores.append(own)
            yield

    def opens_line(self, span: Span) -> bool:
        start = span.start - len(ITEM) * self.depth(span)
        return self.text[max(0, start - 1) : start] in ("", "\n")

    def is_item(self, span: Span) -> bool:
        return self.depth(span) > 0

    def depth(self, span: Span) -> int:
        """Return the number of lists, one within the other, in which a sentence begins an item."""
        depth = 0
        while self.text.endswith(ITEM, 0, span.start - depth * len(ITEM)):
            depth += 1
        return depth

    def leads(self, vocabulary: Vocabulary) -> Iterator[tuple[Word, ...]]:
        """Yield for each sentence the words of the label of its list: "can't do: reach hosts".

        An item of an inner list is led by the items that it belongs to as well.
        """
        before: Span | None = None
        lead: tuple[Word, ...] = ()
        above: list[tuple[int, tuple[Word, ...]]] = []  # depths and labels, of the list first
        for span in self.spans:
            if depth := self.depth(span):
                if not above:
                    above = [(0, self._label(before, vocabulary) if before else ())]
                while above[-1][0] >= depth:
                    above.pop()
                lead = _lead([label for _, label in above], vocabulary)
                above.append((depth, self._label(span, vocabulary)))
            elif self.opens_line(span):
                above, lead = [], ()
            if not above:
                before = span
            yield lead

    def _label(self, span: Span, vocabulary: Vocabulary) -> tuple[Word, ...]:
        """Return the words of a sentence; of an item those before its colon."""
        text = self.text[span.start : span.end]
        if self.is_item(span):
            text = _COLON.split(text, maxsplit=1)[0]
        label = words(text, vocabulary, opens=True)
        return tuple(word._replace(dropped=False) for word in label if word.text)

    def is_quoted(self, span: Span) -> bool:
        return is_inside(span, self.quotations)

    def handover(self) -> tuple[int, Span] | None:
        """Return the number of a sentence such as "Translate this:", and where another's words are."""
        found = find_handover(self.text, self.spans, self.scores)
        if found is None:
            return None
        return found, handed_over(self.text, self.spans[found].end)

    def source(self, number: int) -> str:
        """Return a sentence as it was written."""
        return self._source(self.spans[number]).rstrip()

    def _source(self, span: Span) -> str:
        return self.text[span.start : span.end]

    def depends_on_question(self, span: Span, scores: Scores) -> bool:
        """Return whether a sentence of a message with a question says little without it."""
        if self.question is None or self.message.role != "user":
            return is_dependent(scores)
        end = min(
            (joint for joint in self.joints if span.start < joint < span.end), default=span.end
        )
        if _is_request(self.text[span.start : end], scores):
            return False
        return needs_question(Line(self.text[span.start : end], "user", self.before))

    def _stands_alone(self, span: Span, scores: Scores) -> bool:
        source = self._source(span)
        is_clear = is_standing(source, scores) and not is_dependent(scores)
        return is_clear or _is_request(source, scores)

    def question_to(self, answer: Message) -> Quotation | None:
        """Return the short question that the message ends with; an item of a list is none."""
        if not self.spans or self.is_item(self.spans[-1]):
            return None
        ending = [self._source(span) for span in self.spans[-_ENDING:]]
        return find_question(ending, self.message, answer)

    def chosen(self, span: Span) -> Quotation | None:
        """Return the options that a sentence names by their labels, or None."""
        if self.offer is None:
            return None
        named = options_of(self.offer.text).named_in(self._source(span))
        return quote(show(named), self.offer) if named else None

    def is_caption(self, span: Span) -> bool:
        return bool(_CAPTION.fullmatch(self.text, span.start, span.end))


def score_texts(messages: Sequence[Message]) -> Generator[None, None, list[ScoredText]]:
    """Return the readable texts of observable messages, scored."""
    texts: list[ScoredText] = []
    before: Line | None = None
    for message in messages:
        if message.kind == "message" and message.role != "system":
            readable = yield from readable_text(message.text)
            quoted = tuple(quoted_spans(readable))
            whole = ScoredText(message=message, text=readable, before=before, quotations=quoted)
            role: Role = "assistant" if message.role == "assistant" else "user"
            last = before
            found: list[Span] = []
            for span in sentences(readable):
                found.append(span)
                yield
            for span in both_ends_of(found, _MAX_HALF):
                last = Line(readable[span.start : span.end], role)
                whole.spans.append(span)
                whole.scores.append(scorer().score(last._replace(reply_to=before)))
                yield
            texts.append(whole)
            before = last
        yield
    return texts


def relate(texts: Sequence[ScoredText]) -> Iterator[None]:
    """Give texts their question, and join sentences of users; yields in between."""
    said_by_agent: set[str] = set()
    for number, text in enumerate(texts):
        if number:
            before = texts[number - 1]
            text.question = before.question_to(text.message)
            text.offer = before.message if goes_on(before.message, text.message) else None
        if text.message.role == "assistant":
            said_by_agent.update(text.text[s.start : s.end] for s in text.spans)
        else:
            yield from text.join_dependent(said_by_agent)
        yield


def _is_request(sentence: str, scores: Scores) -> bool:
    """Return whether a sentence asks to forget something, or says how to be answered, clearly alone."""
    line = Line(sentence, "user")
    asks = statement_scores(line)[WISHES] >= 0 or score_of_request(line) >= 0
    return asks and not may_depend(scores)


def _lead(labels: Sequence[tuple[Word, ...]], vocabulary: Vocabulary) -> tuple[Word, ...]:
    """Return the labels of a list and of the items above, as far as they are short."""
    outer, *inner = labels
    path = [outer] if is_label([word.key for word in outer], vocabulary) else []
    path += inner
    while len(path) > 1 and sum(map(len, path)) > MAX_LABEL_WORDS:
        path.pop(0)
    if not path or sum(map(len, path)) > MAX_LABEL_WORDS:
        return ()
    for index, label in enumerate(path[:-1]):
        if label:
            text = label[-1].text.rstrip(":：") + ":"
            path[index] = (*label[:-1], label[-1]._replace(text=text))
    return tuple(word for label in path for word in label)
