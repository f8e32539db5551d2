"""Ask a model for notes; continue truncated answers and reject degenerate ones."""

import re
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from remanence.errors import ModelError, ObservationRejected
from remanence.notes.redact import redact
from remanence.observers.draft_check import check_repetition
from remanence.observers.llm.prompt import Entry, Section, prompt, request_text
from remanence.protocols import LivePrompt, Model, ModelChain, ModelRequest
from remanence.types import ConversationRef, Purpose
from remanence.wire.message_rules import storable

T = TypeVar("T")

NOTHING = "NOTHING"
SKIP = "SKIP"
LONG_CHARACTERS = 1_000
MIN_COMPRESSED = 0.04
"""Answers that compress below this ratio repeat one phrase."""

_THOUGHTS = re.compile(
    r"^[^\S\n]*<(think|thinking)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE | re.MULTILINE
)
"""Thoughts begin a line; within one, a note speaks of such a tag."""
_THOUGHTS_END = r"</think(?:ing)?>|(?![^\w\n]*+\d)(?:(?!</?think)[^\n])++</think(?:ing)?>[ \t]*$"
_UNOPENED_THOUGHTS = re.compile(
    rf"\A(?:(?:(?!<think)[^\n])*+\n)*?(?:{_THOUGHTS_END})", re.IGNORECASE | re.MULTILINE
)
"""Thoughts whose opening tag is in the prompt, where some chat templates put it.

Their end begins a line, or ends one that does not begin with a number, as a note does.
"""
_STOP = re.compile(r"(?:<\|\w{1,30}\|>\s*)+\Z")
"""Tokens that end a model's turn, which some servers leave in the text."""

_WORD = re.compile(r"[\W_]*(\w+)[\W_]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request for notes: constant instructions, data, and the task at the end.

    With `live`, the request continues that prompt, and `live_text` is the part to be noted.
    `is_follow_up` is as in `ModelRequest`.
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
    is_follow_up: bool = False

    @property
    def text(self) -> str:
        """The data shown to the model."""
        entries = [entry for section in self.sections for entry in section.entries]
        return "\n".join([self.live_text, *(text for entry in entries for text in entry)])


class Answer(NamedTuple):
    """A model's text without its thoughts, whether it is complete, and the name of the model."""

    text: str
    complete: bool
    model: str


async def ask(model: Model, question: Question) -> Answer:
    """Call the model; if the answer is truncated, call it once more for the rest."""
    answer = await ask_once(model, question)
    if answer.complete:
        return answer
    whole_lines = answer.text.rpartition("\n")[0].strip()
    if not whole_lines:
        return answer
    written = Section("lines that you wrote", (Entry("", redact(whole_lines)),))
    continuation = replace(
        question,
        sections=(*question.sections, written),
        task=f"{question.task}\n\n{prompt('continue').strip()}",
        is_follow_up=True,
    )
    rest = await ask_once(model, continuation)
    more = "" if is_word(rest.text, SKIP) or is_word(rest.text, NOTHING) else rest.text
    return Answer(f"{whole_lines}\n{more}", rest.complete, answer.model)


async def ask_once(model: Model, question: Question) -> Answer:
    """Call the model once."""
    stable = question.stable
    if question.live is not None:
        stable = f"{prompt('continuation').strip()}\n\n{stable}"
    answer = await model.complete(
        ModelRequest(
            stable=stable,
            prompt=request_text(question.sections, question.task),
            max_output_tokens=question.max_output_tokens,
            purpose=question.purpose,
            conversation=question.conversation,
            user=question.user,
            live=question.live,
            is_follow_up=question.is_follow_up,
        )
    )
    text = without_thoughts(storable(answer.text))
    return Answer(text, answer.complete, answer.usage.model or model.name)


async def ask_next(
    model: Model, rejected: ObservationRejected, made_by: str, make: Callable[[Model], Awaitable[T]]
) -> T:
    """Make notes or facts with the models of a chain behind the one whose answer was rejected.

    Raises:
        ObservationRejected: *rejected*, if there are none, or their calls fail; or the next answer is
            of no use, either.
    """
    other = model.after(made_by) if isinstance(model, ModelChain) else None
    if other is None:
        raise rejected
    try:
        return await make(other)
    except ModelError:
        raise rejected from None


def without_thoughts(text: str) -> str:
    """Return the text of an answer without the model's thoughts and end marks."""
    text = _UNOPENED_THOUGHTS.sub("", _THOUGHTS.sub("", text))
    return _STOP.sub("", text.strip()).strip()


def is_word(text: str, word: str) -> bool:
    """Return whether an answer consists only of *word*, such as `NOTHING`."""
    match = _WORD.fullmatch(text[:100]) if len(text) < 100 else None
    return match is not None and match[1].upper() == word


def check_answer(answer: Answer, *, source_text: str) -> None:
    """Raise `ObservationRejected` for an answer that is empty or repeats itself."""
    text = answer.text
    if not text:
        raise ObservationRejected("empty", f"{answer.model} gave an empty answer")
    check_repetition(text, source_text, made_by=answer.model)
    if _compression(text) < min(MIN_COMPRESSED, _compression(source_text) / 2):
        raise ObservationRejected("degenerate", f"the answer of {answer.model} says one thing only")


def _compression(text: str) -> float:
    """Return the compression ratio of a long text, 1.0 for a short one."""
    data = text[:20_000].encode(errors="replace")
    return len(zlib.compress(data)) / len(data) if len(data) >= LONG_CHARACTERS else 1.0
