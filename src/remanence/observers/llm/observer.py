"""The observer that asks a language model for notes."""

import asyncio
import json
import re
from collections.abc import Sequence

from remanence.notes import render_notes
from remanence.notes.excerpts import beginning
from remanence.notes.redact import redact
from remanence.observers.llm.draft import write_notes
from remanence.observers.llm.prompt import (
    CONTINUED_VERSION,
    OBSERVE_VERSION,
    Entry,
    Section,
    below_times,
    fill_prompt,
    prompt,
)
from remanence.observers.llm.request import Question
from remanence.observers.llm.task import Limits, Task
from remanence.observers.llm.transcript import Shown, transcript
from remanence.observers.llm.values import Piece, origin_of
from remanence.observers.llm.writer import ModelWriter, length_limit, output_limit
from remanence.protocols import LivePrompt, ObserveRequest
from remanence.types import ROLES, Draft, Message, Note

MIN_KNOWN_TOKENS, MAX_KNOWN_TOKENS = 100, 600
KNOWN_SHARE = 8
"""Known notes get at most an eighth of the tokens of the messages, within these bounds."""

INSTRUCTION_TOKENS = 1_448
"""Upper bound on the instructions of a request, without known notes and messages."""

MESSAGE_SHARE = 4
"""One message gets at most a quarter of the input."""

BEGINNING = 60
"""Characters that identify a message in a prompt that already contains it."""

MAX_TYPED_LINES, MAX_TYPED_CHARACTERS = 20, 4_000
"""A longer text of a user is taken as pasted; its missing values are not asked for."""

SAMPLE_CHARACTERS = 1_500
"""Text of users of at least this length is enough to sample how they write."""

OVERRUN, LASTING_OVERRUN = 1.25, 1.5
OVERRUN_TOKENS = 16
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)


class ModelObserver(ModelWriter):
    """Writes notes with a language model and checks them against the messages.

    Args:
        model: the model to ask; `Draft.made_by` records its name and the version of the prompts.
        language: the language of the notes: `conversation`, or a name such as `German`.
        repair: whether to ask for exact values that the notes lost in a second, short call.
        max_output_tokens: the limit for one answer.
        max_input_tokens: the limit for one request; longer messages are excerpted. Defaults to
            three eighths of the model's context window, looked up by its name.

    Raises:
        InvalidPolicy: a limit is too small to work with.
    """

    @property
    def max_source_tokens(self) -> int:
        """The tokens of messages that fit into one request."""
        return self._max_input_tokens - INSTRUCTION_TOKENS - MAX_KNOWN_TOKENS

    async def observe(self, request: ObserveRequest) -> Draft:
        task = await asyncio.to_thread(self._task, request)
        return await write_notes(self.model, task)

    def _task(self, request: ObserveRequest) -> Task:
        known = _render_known(request)
        instruction = fill_prompt(
            "observe-task",
            first=request.messages[0].seq,
            last=request.messages[-1].seq,
            length=length_limit(
                request.target_tokens,
                notes=render_notes(request.known, request.note_format),
                talk=_talk(request.messages),
                count=request.count_tokens,
            ),
            language=self._language_rule,
        )
        fixed = sum(map(request.count_tokens, (prompt("observe"), known, instruction)))
        shown = transcript(
            request.messages,
            message_tokens=self._max_input_tokens // MESSAGE_SHARE,
            room_tokens=self._max_input_tokens - fixed,
            count=request.count_tokens,
        )
        live = request.live if _shows(request.live, request.messages) else None
        pieces = tuple(map(_piece, shown))
        entries = ((m.at, _beginning(m) if live else m.entry) for m in shown)
        return Task(
            request=request,
            question=Question(
                purpose="observe",
                conversation=request.conversation,
                user=request.user,
                stable=prompt("observe"),
                sections=(
                    Section(
                        "earlier notes, not to be repeated", (Entry("", known),) if known else ()
                    ),
                    Section("messages", tuple(below_times(entries))),
                ),
                task=f"{prompt('continuation-task').strip()}\n\n{instruction}"
                if live
                else instruction,
                max_output_tokens=output_limit(request.target_tokens, self.max_output_tokens),
                live=live,
                live_text="\n".join(message.entry.body for message in shown) if live else "",
            ),
            version=CONTINUED_VERSION if live else OBSERVE_VERSION,
            origin=origin_of(pieces, sorted(ROLES)),
            pieces=pieces,
            known=request.known,
            language_rule=self._language_rule,
            limits=_limits(request),
            max_output_tokens=self.max_output_tokens,
            repair=self._repair,
            # All that a model sees of the prompt that it continues.
            shown_text=json.dumps(live.to_anthropic(), ensure_ascii=False) if live else "",
        )


def _shows(live: LivePrompt | None, messages: Sequence[Message]) -> bool:
    """Return whether a prompt contains all of the messages verbatim."""
    if live is None:
        return False
    shown = {message.seq: message.content for message in live.messages}
    return all(shown.get(message.seq) == message.content for message in messages)


def _beginning(shown: Shown) -> Entry:
    head, body = shown.entry
    short = beginning(body, BEGINNING)
    return Entry(head, body if short == body else f"{short} [...]")


def _render_known(request: ObserveRequest) -> str:
    """Return the newest of the known notes as text, without secrets."""
    share = _source_tokens(request) // KNOWN_SHARE
    limit = min(MAX_KNOWN_TOKENS, max(MIN_KNOWN_TOKENS, share))
    known: Sequence[Note] = request.known
    text = render_notes(known, "prose")
    while known and request.count_tokens(text) > limit:
        known = known[len(known) // 8 + 1 :]
        text = render_notes(known, "prose")
    return redact(text)


def _talk(messages: Sequence[Message]) -> str:
    """Return the text of users, or of all messages if users wrote little."""
    text = "\n".join(_CODE.sub("", message.text) for message in messages if message.role == "user")
    return text if len(text) >= SAMPLE_CHARACTERS else "\n".join(m.text for m in messages)


def _piece(shown: Shown) -> Piece:
    is_user = shown.message.role == "user"
    text = _CODE.sub("", shown.said) if is_user else shown.said
    return Piece(
        first_seq=shown.message.seq,
        last_seq=shown.message.seq,
        at=shown.at,
        speakers=(shown.message.role, shown.message.speaker),
        text=text,
        entry=shown.entry,
        values_required=is_user
        and len(text) <= MAX_TYPED_CHARACTERS
        and text.count("\n") < MAX_TYPED_LINES,
    )


def _limits(request: ObserveRequest) -> Limits:
    """Return the token limits of the notes: slightly above the target, but below the source."""
    target, source = request.target_tokens, _source_tokens(request)
    ordinary, lasting = (
        max(target, min(int(target * share) + OVERRUN_TOKENS, source))
        for share in (OVERRUN, LASTING_OVERRUN)
    )
    return Limits(ordinary=ordinary, lasting=lasting, critical=max(lasting, source))


def _source_tokens(request: ObserveRequest) -> int:
    return sum(message.tokens for message in request.messages)
