"""Asking a model for notes: whole answers only, and no refusals."""

import re
import zlib
from dataclasses import dataclass, replace
from typing import NamedTuple

from remanence.errors import ObservationRejected
from remanence.notes.redact import redact
from remanence.observers.draft_check import REPEATED_SHARE, repetition
from remanence.observers.llm.prompt import Entry, Section, prompt, request_text
from remanence.protocols import LivePrompt, Model, ModelRequest
from remanence.types import ConversationRef, Purpose

NOTHING = "NOTHING"
SKIP = "SKIP"
LONG_CHARACTERS = 1_000
LEAST_COMPRESSED = 0.04
"""Answers that shrink below this share of their size are one phrase over and over."""

_THOUGHTS = re.compile(r"<(think|thinking)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_WORD = re.compile(r"[\W_]*(\w+)[\W_]*")
_REFUSAL_CHARACTERS = 800
_REFUSALS = re.compile(
    r"""\W*(?:
        i(?:['’]m|\ am)\ (?:really\ |very\ |so\ )?(?:sorry|unable|not\ able|not\ allowed)
      | (?:sorry,\ (?:but\ )?)?i\ (?:can(?:['’]t|not|\ not)|won['’]t|must\ decline|refuse)
      | sorry\b | as\ an\ ai\b | my\ apologies | i\ apologi[sz]e | unfortunately,\ i\b
      | es\ tut\ mir\ leid | ich\ kann\ (?:dir|ihnen|dabei|das|diese)\b | tut\ mir\ leid
      | je\ suis\ désolée? | désolée?\b | je\ ne\ peux\ pas | lo\ siento | no\ puedo\b
      | 很?抱歉 | 对不起 | 我(?:无法|不能) | 申し訳 | 죄송
    )""",
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a model is asked: instructions that never change, data, and the task at their end.

    With `live` all that stands behind that prompt, and `live_text` is the part of it in question.
    """

    purpose: Purpose
    conversation: ConversationRef
    user: str | None
    stable: str
    sections: tuple[Section, ...]
    task: str
    max_output_tokens: int
    live: LivePrompt | None = None
    live_text: str = ""

    @property
    def text(self) -> str:
        """The data that the model is shown."""
        entries = [entry for section in self.sections for entry in section.entries]
        return "\n".join([self.live_text, *(text for entry in entries for text in entry)])


class Answer(NamedTuple):
    """A model's text without its thoughts, whether it is whole, and which model wrote it."""

    text: str
    complete: bool
    model: str


async def ask(model: Model, question: Question) -> Answer:
    """One call, and where its answer is cut off a second one that goes on after its last line."""
    answer = await ask_once(model, question)
    if answer.complete:
        return answer
    whole_lines = answer.text.rpartition("\n")[0].strip()
    if not whole_lines:
        return answer
    written = Section("lines that you wrote", (Entry("", redact(whole_lines)),))
    going_on = replace(
        question,
        sections=(*question.sections, written),
        task=f"{question.task}\n\n{prompt('continue').strip()}",
    )
    rest = await ask_once(model, going_on)
    more = "" if is_word(rest.text, SKIP) or is_word(rest.text, NOTHING) else rest.text
    return Answer(f"{whole_lines}\n{more}", rest.complete, answer.model)


async def ask_once(model: Model, question: Question) -> Answer:
    """One call."""
    answer = await model.complete(
        ModelRequest(
            stable=_instructions(question),
            prompt=request_text(question.sections, question.task),
            max_output_tokens=question.max_output_tokens,
            purpose=question.purpose,
            conversation=question.conversation,
            user=question.user,
            live=question.live,
        )
    )
    text = _THOUGHTS.sub("", _storable(answer.text)).strip()
    return Answer(text, answer.complete, answer.usage.model or model.name)


def _instructions(question: Question) -> str:
    if question.live is None:
        return question.stable
    return f"{prompt('continuation').strip()}\n\n{question.stable}"


def is_word(text: str, word: str) -> bool:
    """Whether an answer is nothing but the agreed *word*."""
    match = _WORD.fullmatch(text[:100]) if len(text) < 100 else None
    return match is not None and match[1].upper() == word


def check_answer(answer: Answer, *, source_text: str, lines: int) -> None:
    """Raise `ObservationRejected` for an answer that is empty, a refusal, or repeats itself.

    *lines* counts those that have the form that was asked for: an answer with such is no refusal.
    """
    text = answer.text
    if not text:
        raise ObservationRejected("empty", f"{answer.model} gave an empty answer")
    if not lines and len(text) <= _REFUSAL_CHARACTERS and _REFUSALS.match(text):
        raise ObservationRejected("refused", f"{answer.model} refused: {text[:200]!r}")
    repeated = repetition(text)
    if repeated >= REPEATED_SHARE and repeated > 2 * repetition(source_text):
        raise ObservationRejected(
            "degenerate", f"{repeated:.0%} of the answer of {answer.model} repeats itself"
        )
    if _compression(text) < min(LEAST_COMPRESSED, _compression(source_text) / 2):
        raise ObservationRejected("degenerate", f"the answer of {answer.model} says one thing only")


def _storable(text: str) -> str:
    """The text without NUL and lone surrogates, which no tape may hold."""
    return text.replace("\0", "").encode(errors="replace").decode()


def _compression(text: str) -> float:
    """The share of its size to which a long text shrinks, 1.0 for others."""
    data = text[:20_000].encode(errors="replace")
    return len(zlib.compress(data)) / len(data) if len(data) >= LONG_CHARACTERS else 1.0
