"""The extractor that asks a language model."""

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from remanence.errors import ObservationRejected
from remanence.facts.answers import AnsweredFact, read_facts
from remanence.facts.lines import expresses_wish, is_own
from remanence.notes.redact import redact
from remanence.notes.terms import terms
from remanence.observers.llm.lines import format_line
from remanence.observers.llm.order import note_entries
from remanence.observers.llm.prompt import (
    Entry,
    Section,
    below_times,
    fill_prompt,
    language_rule,
    prompt,
)
from remanence.observers.llm.request import NOTHING, Answer, Question, ask_next, ask_once, is_word
from remanence.observers.llm.transcript import transcript
from remanence.observers.llm.values import has_invented_address
from remanence.observers.llm.writer import ModelCaller
from remanence.observers.spoken import spoken_texts
from remanence.protocols import ExtractRequest, Model
from remanence.tokens import count_tokens
from remanence.types import Fact, FactDraft, Message

EXTRACT_VERSION = "extract/5"
KNOWN_FACTS = 100
FEW_TOKENS = 2_000
MIN_FACTS, TOKENS_A_FACT = 20, 20
"""A list of facts is cut off at one for each `TOKENS_A_FACT` tokens of the messages, and at
`MIN_FACTS` at least."""

FACT_TOKENS = 100
"""Tokens of an answer for each fact of the longest list."""

ROOM_TOKENS = 12_000
MESSAGE_TOKENS = 4_000
BEFORE_TOKENS = 2_000
"""The limit for all earlier messages, which are shown for context only."""
WISH_TOKENS = 2_000
"""The limit for all messages that are shown beside their notes, as wishes are copied from them."""

_SEPARATOR = re.compile(r"(?<=\d)[., '’](?=\d{3}(?!\d))")
_NUMBER = re.compile(r"\d{3,}")
"""Shorter numbers may be said in words."""
_LIFETIME, _PLANS = 110, 20
"""Years before and after the messages that may be computed, as of "ten years ago"."""

_log = logging.getLogger(__name__)


class ModelFacts(ModelCaller):
    """Extracts facts with a language model; drops those with a long number or an address that nobody said."""

    def __init__(
        self, model: Model, *, language: str = "conversation", max_output_tokens: int = 4_096
    ) -> None:
        super().__init__(model, max_output_tokens=max_output_tokens)
        self._language_rule = language_rule(language)

    @property
    def name(self) -> str:
        return f"{EXTRACT_VERSION} {self.model.name}"

    async def extract(self, request: ExtractRequest) -> tuple[FactDraft, ...]:
        # Comparing thousands of facts takes long.
        related = await asyncio.to_thread(_related_facts, request)
        request = replace(request, known=related)
        question = await asyncio.to_thread(self._question, request)
        most = _max_facts(request)
        answer, found = await self._ask(question)
        is_bounded = question.max_output_tokens < self.max_output_tokens
        if is_bounded and not answer.complete and len(found or ()) < most:
            # The model's thoughts may have taken the room.
            roomy = replace(question, max_output_tokens=self.max_output_tokens, is_follow_up=True)
            answer, found = await self._ask(roomy)
        if (rejected := _rejection(answer, found, most)) is not None:
            return await ask_next(
                self.model,
                rejected,
                answer.model,
                lambda other: self.asking(other).extract(request),
            )
        assert found is not None
        supported = [fact for fact in found if _is_supported(fact, request, question.text)]
        if len(supported) < len(found):
            _log.warning(
                "%s: of %d facts %d have a number or an address that nobody said, and were left out",
                request.conversation.id,
                len(found),
                len(found) - len(supported),
            )
        if len(supported) > most:
            _log.warning(
                "%s: of %d facts the first %d were kept, as the messages are short",
                request.conversation.id,
                len(supported),
                most,
            )
        return tuple(_draft(fact, request) for fact in supported[:most])

    async def _ask(self, question: Question) -> tuple[Answer, tuple[AnsweredFact, ...] | None]:
        answer = await ask_once(self.model, question)
        return answer, () if is_word(answer.text, NOTHING) else read_facts(answer.text)

    def _question(self, request: ExtractRequest) -> Question:
        return Question(
            purpose="facts",
            conversation=request.conversation,
            user=request.user,
            stable=prompt("extract", __package__),
            sections=(
                Section(
                    "known facts",
                    tuple(
                        Entry("", f"{number}. {redact(fact.summary)}")
                        for number, fact in enumerate(request.known, start=1)
                    ),
                ),
                *_source_sections(request),
            ),
            task=fill_prompt("extract-task", __package__, language=self._language_rule),
            max_output_tokens=min(self.max_output_tokens, FACT_TOKENS * _max_facts(request)),
        )


def _rejection(
    answer: Answer, found: Sequence[AnsweredFact] | None, most: int
) -> ObservationRejected | None:
    """Return the error of an answer that has no list of facts, or only the beginning of one."""
    if found is None:
        return ObservationRejected(
            "malformed",
            f"{answer.model} did not answer with a list of facts: {answer.text[:200]!r}",
        )
    if not answer.complete and len(found) < most:
        return ObservationRejected("cut_off", f"the answer of {answer.model} was cut off")
    return None


def _max_facts(request: ExtractRequest) -> int:
    """Return the length of the longest list of facts that is kept."""
    return max(MIN_FACTS, sum(message.tokens for message in request.messages) // TOKENS_A_FACT)


def _related_facts(request: ExtractRequest) -> tuple[Fact, ...]:
    """Return the known facts to show: first those that share rare words with the messages, then the newest."""
    known = request.known
    if len(known) <= KNOWN_FACTS:
        return known
    said = terms("\n".join(m.full_text for m in (*request.before, *request.messages)))
    shared = [terms(fact.summary) & said for fact in known]
    counts = Counter(chain.from_iterable(shared))
    places = sorted(range(len(known)), key=lambda at: -sum(1 / counts[term] for term in shared[at]))
    return tuple(known[at] for at in sorted(places[:KNOWN_FACTS]))


def _source_sections(request: ExtractRequest) -> Iterator[Section]:
    """Yield earlier messages, the notes, and the messages after them, or no notes if they are few.

    Notes of few messages are too brief. Beside notes, which are in other words, are the messages of
    users that likely have a wish.
    """
    yield _message_section("earlier messages", request.before, BEFORE_TOKENS)
    messages = request.messages
    if request.notes and sum(message.tokens for message in messages) > FEW_TOKENS:
        yield Section("notes", note_entries(request.notes))
        noted_seq = max(note.last_seq for note in request.notes)
        wishes = tuple(_with_wishes(request, noted_seq))
        yield _message_section("noted messages", wishes, WISH_TOKENS)
        messages = tuple(message for message in messages if message.seq > noted_seq)
    yield _message_section("messages", messages, ROOM_TOKENS)


def _with_wishes(request: ExtractRequest, noted_seq: int) -> Iterator[Message]:
    """Yield messages of users up to a note that have a wish by a learned score or by a note of them."""
    wishes = [note for note in request.notes if note.tag == "Preference"]
    likely = {
        said.message.seq
        for said in filter(None, spoken_texts(request.messages))
        if any(is_own(line) and expresses_wish(line) for line in said.lines)
    }
    for message in request.messages:
        seq = message.seq
        is_noted = any(note.first_seq <= seq <= note.last_seq for note in wishes)
        if message.role == "user" and seq <= noted_seq and (is_noted or seq in likely):
            yield message


def _message_section(kind: str, messages: Sequence[Message], room_tokens: int) -> Section:
    shown = transcript(
        messages, message_tokens=MESSAGE_TOKENS, room_tokens=room_tokens, count=count_tokens
    )
    return Section(kind, tuple(below_times((item.at, item.entry) for item in shown)))


def _is_supported(fact: AnsweredFact, request: ExtractRequest, shown_text: str) -> bool:
    """Return whether each long number and address of the summary occurs in the source or a known fact.

    A year may be computed from words such as "ten years ago".
    """
    years = {message.created_at.year for message in request.messages if message.created_at}
    numbers = _numbers(fact.summary) - {
        str(year + near) for year in years for near in range(-_LIFETIME, _PLANS)
    }
    texts = [known.summary for known in request.known]
    texts += [format_line(note) for note in request.notes]
    for message in (*request.before, *request.messages):
        texts += [message.full_text, str(message.created_at)]
    source = "\n".join(texts)
    is_said = not numbers or numbers <= _numbers(source)
    return is_said and not has_invented_address(fact.summary, f"{source}\n{shown_text}")


def _numbers(text: str) -> set[str]:
    return set(_NUMBER.findall(_SEPARATOR.sub("", text)))


def _draft(fact: AnsweredFact, request: ExtractRequest) -> FactDraft:
    place = fact.replaces or 0
    replaced = request.known[place - 1] if 0 < place <= len(request.known) else None
    first_seq, last_seq = _source(fact, request)
    times = {message.seq: message.created_at for message in request.messages}
    return FactDraft(
        summary=fact.summary,
        type=fact.type,
        tags=fact.tags,
        first_seq=first_seq,
        last_seq=last_seq,
        valid_from=times.get(first_seq),
        replaces=replaced.id if replaced else None,
    )


def _source(fact: AnsweredFact, request: ExtractRequest) -> tuple[int, int]:
    """Return the range of cited messages, or the message that shares the most words."""
    seqs = {message.seq for message in request.messages}
    named = [seq for seq in fact.source if seq in seqs]
    if named:
        return min(named), max(named)
    mine = set(fact.summary.casefold().split())
    best = max(request.messages, key=lambda m: (len(mine & set(m.text.casefold().split())), -m.seq))
    return best.seq, best.seq
