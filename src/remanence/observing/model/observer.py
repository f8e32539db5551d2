"""The observer that asks a language model for notes."""

import asyncio
from collections.abc import Sequence

from remanence.observing.model.asking import Question
from remanence.observing.model.limits import in_words, output_limit
from remanence.observing.model.lines import Origin
from remanence.observing.model.prompting import (
    CONTINUED_VERSION,
    OBSERVE_VERSION,
    Entry,
    Section,
    filled,
    prompt,
)
from remanence.observing.model.transcript import Shown, shortened, transcript
from remanence.observing.model.values import Piece
from remanence.observing.model.writer import ModelWriter
from remanence.observing.model.writing import Task, written
from remanence.observing.notes import render_notes
from remanence.protocols import LivePrompt, ObserveRequest
from remanence.types import Draft, Message, Note

KNOWN_SHARE = 4
MESSAGE_SHARE = 4
"""Known notes take at most a quarter of the input, and so does one message."""

BEGINNING = 60
"""Characters by which a message is known again in a prompt that holds it."""

OVERRUN = 1.25
OVERRUN_TOKENS = 16
_ROLES = ("user", "assistant", "tool")


class ModelObserver(ModelWriter):
    """Notes that a language model writes, checked against the messages.

    Args:
        model: what is asked; `Draft.made_by` names it beside the version of the prompts.
        language: of the notes: `conversation`, or the name of a language such as `German`.
        repair: whether a second, short call asks for exact values that the notes lost.
        max_output_tokens: the most that one answer may have.
        max_input_tokens: the most that one request may have; longer messages are shown in part. By
            default three eighths of the model's window, by its name.

    Raises:
        InvalidPolicy: a limit is too small to work with.
    """

    async def observe(self, request: ObserveRequest) -> Draft:
        if not request.messages:
            return Draft(notes=(), made_by=f"{self._model.name} {OBSERVE_VERSION}", nothing=True)
        task = await asyncio.to_thread(self._task, request)
        return await written(self._model, task)

    def _instruction(self, request: ObserveRequest) -> str:
        return filled(
            "observe-task",
            first=request.messages[0].seq,
            last=request.messages[-1].seq,
            source_tokens=f"{_source_tokens(request):,}",
            target_tokens=f"{request.target_tokens:,}",
            target_words=f"{in_words(request.target_tokens):,}",
            language=self._language_rule,
        )

    def _task(self, request: ObserveRequest) -> Task:
        known = _known_text(request, most_tokens=self._max_input_tokens // KNOWN_SHARE)
        instruction = self._instruction(request)
        fixed = sum(map(request.count_tokens, (prompt("observe"), known, instruction)))
        shown = transcript(
            request.messages,
            message_tokens=self._max_input_tokens // MESSAGE_SHARE,
            room_tokens=self._max_input_tokens - fixed,
            count=request.count_tokens,
        )
        live = request.live if _shows(request.live, request.messages) else None
        return Task(
            question=Question(
                purpose="observe",
                conversation=request.conversation,
                user=request.user,
                stable=prompt("observe"),
                sections=(
                    Section("notes taken already", (Entry("", known),) if known else ()),
                    Section("messages", tuple(_beginning(m) if live else m.entry for m in shown)),
                ),
                task=f"{prompt('continuation-task').strip()}\n\n{instruction}"
                if live
                else instruction,
                max_output_tokens=output_limit(request.target_tokens, self._max_output_tokens),
                live=live,
                live_text="\n".join(message.entry.body for message in shown) if live else "",
            ),
            version=CONTINUED_VERSION if live else OBSERVE_VERSION,
            origin=_origin(request.messages),
            pieces=tuple(map(_piece, shown)),
            known_text=known,
            allows_nothing=True,
            language_rule=self._language_rule,
            target_tokens=request.target_tokens,
            limit_tokens=_limit(request),
            critical_limit_tokens=max(_limit(request), _source_tokens(request)),
            note_format=request.note_format,
            count_tokens=request.count_tokens,
            repair=self._repair,
        )


def _shows(live: LivePrompt | None, messages: Sequence[Message]) -> bool:
    """Whether a prompt holds all of the messages word for word."""
    if live is None:
        return False
    shown = {message.seq: message.content for message in live.messages}
    return all(shown.get(message.seq) == message.content for message in messages)


def _beginning(shown: Shown) -> Entry:
    head, body = shown.entry
    return Entry(head, body if len(body) <= BEGINNING else f"{body[:BEGINNING]} [...]")


def _known_text(request: ObserveRequest, *, most_tokens: int) -> str:
    """The newest of the known notes, as text."""
    known: Sequence[Note] = request.known
    text = render_notes(known, "compact")
    while known and request.count_tokens(text) > most_tokens:
        known = known[len(known) // 2 + 1 :]
        text = render_notes(known, "compact")
    return shortened(text, most_tokens, request.count_tokens)


def _piece(shown: Shown) -> Piece:
    return Piece(
        first_seq=shown.message.seq,
        last_seq=shown.message.seq,
        text=shown.said,
        entry=Entry(shown.entry.head, shown.said),
        telling=shown.message.role == "user",
    )


def _origin(messages: Sequence[Message]) -> Origin:
    names = dict.fromkeys((*_ROLES, *(message.speaker for message in messages)))
    return Origin(
        first_seq=messages[0].seq,
        last_seq=messages[-1].seq,
        times={m.seq: m.created_at for m in messages if m.created_at is not None},
        speakers={name.casefold(): name for name in names},
    )


def _limit(request: ObserveRequest) -> int:
    """What the notes may have: a little more than asked for, but less than their source."""
    overrun = int(request.target_tokens * OVERRUN) + OVERRUN_TOKENS
    return max(request.target_tokens, min(overrun, _source_tokens(request)))


def _source_tokens(request: ObserveRequest) -> int:
    return sum(message.tokens for message in request.messages)
