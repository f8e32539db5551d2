"""The context of one model call, and its rendering for each provider."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from remanence.notes.marks import indent_lines
from remanence.types import Message
from remanence.wire.call_names import OPENAI_ID_CHARS, RESPONSES_ID_CHARS, with_openai_names
from remanence.wire.content import replace_media
from remanence.wire.json_value import JsonObject
from remanence.wire.pairing import pair_tool_calls
from remanence.wire.parts import speaker_label
from remanence.wire.turns import (
    CACHE_CONTROL,
    OPENAI_BREAKPOINT,
    anthropic_turns,
    breakpoints,
    gemini_contents,
    openai_turns,
    responses_items,
)

BlockKind: TypeAlias = Literal[
    "identity",
    "system",
    "knowledge",
    "facts",
    "heading",
    "reflection",
    "own_facts",
    "observation",
    "stand_in",
]
OmittedReason: TypeAlias = Literal[
    "stand_in",
    "over_budget",
    "excerpt",
    "notes_over_budget",
    "nothing_noted",
    "failed",
    "disabled",
    "forgotten",
]
MAX_BREAKPOINTS = 4
MAX_OPENAI_BREAKPOINTS = 3
"""A request may write four breakpoints, including the implicit one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemBlock:
    """A piece of the system prompt; `cache` puts a prompt cache breakpoint after it.

    `segment_id` is the segment shown by a block of notes.
    """

    kind: BlockKind
    text: str
    tokens: int
    cache: bool = False
    segment_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Omitted:
    """Messages that a context does not show word for word and that no shown note covers.

    `stand_in`: abridged, because the tail exceeds the window and there are no notes yet.
    `over_budget`: like `stand_in`, but too old to be shown at all.
    `excerpt`: shown in part, because it takes a quarter of the window or more and the tail does not
        fit, because notes already cover its tool results, or because it opened the turn in which the
        tail begins and exceeds a quarter of the room. Calls that do not fit the window at all are left
        out with their results.
    `notes_over_budget`: the notes were left out to fit `max_context_tokens`, or because they exceed
        twice the `reflect_tokens` budgets while reflections fail.
    `nothing_noted`: observed, but nothing was worth a note.
    `failed`: every attempt to observe the messages failed; `flush(retry=True)` tries again.
    `forgotten`: forgotten, or noted together with a forgotten message and without new notes yet.
    `disabled`: memory is off, and the messages are older than `disabled_messages`.
    """

    first_seq: int
    last_seq: int
    reason: OmittedReason


def shown_whole(messages: Sequence[Message], omitted: Sequence[Omitted]) -> frozenset[int]:
    """Return the numbers of the messages that are shown word for word, without excerpts."""
    cut = {
        seq
        for gap in omitted
        if gap.reason == "excerpt"
        for seq in range(gap.first_seq, gap.last_seq + 1)
    }
    return frozenset(message.seq for message in messages if message.seq not in cut)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextStats:
    """Tokens of a context by tier, and the part of the tape that it covers.

    `history_tokens` counts the whole tape; `pending` counts messages that no observation covers
    yet. Before a comparison with the window, our counts are multiplied by `token_factor`
    (`memory.calibration`). `observe_due` and `reflect_due` show if background work is due.
    """

    system_tokens: int
    cross_session_tokens: int = 0
    session_tokens: int = 0
    working_tokens: int
    volatile_tokens: int = 0
    history_tokens: int
    pending: int = 0
    first_raw_seq: int
    last_seq: int
    token_factor: float = 1.0
    observe_due: bool = False
    reflect_due: bool = False

    @property
    def context_tokens(self) -> int:
        """Tokens of the whole context."""
        return (
            self.system_tokens
            + self.cross_session_tokens
            + self.session_tokens
            + self.working_tokens
            + self.volatile_tokens
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """System blocks, raw messages and omissions, ready to be rendered for a provider.

    Messages before `stats.first_raw_seq`, where the raw tail begins, opened the turn that is cut there.
    `volatile` is text for this call only, added to the newest user message or tool result, after the
    last breakpoint. Without `caching`, as when memory is off, there are no breakpoints.
    """

    system: tuple[SystemBlock, ...]
    messages: tuple[Message, ...]
    omitted: tuple[Omitted, ...]
    stats: ContextStats
    volatile: str = ""
    caching: bool = False

    def to_anthropic(
        self, *, keep_open_calls: bool = False, system_role: bool = False
    ) -> JsonObject:
        """Return `{"system": [...], "messages": [...]}` for Anthropic's Messages API.

        At most four blocks have `cache_control`: the ends of the base prompt, the reflections and
        the notes, and the newest message that will not change. If that message is too far from the
        end of the previous request for the cache's look-back, the end of that request is marked
        instead of the base prompt.

        Args:
            keep_open_calls: leave tool calls at the end without a result, for a host that adds
                the results itself; otherwise placeholder results are added.
            system_role: render system messages within the conversation with the role `system`, for
                models that accept it; otherwise they become marked text of user turns.
        """
        messages = pair_tool_calls(self.messages, keep_open=keep_open_calls)
        marked = breakpoints(messages) if self.caching else ()
        turns = anthropic_turns(
            messages, volatile=self.volatile, marked=marked, system_role=system_role
        )
        if not self.system:
            return {"messages": turns}
        blocks = _anthropic_blocks(self.system, MAX_BREAKPOINTS - len(marked))
        return {"system": blocks, "messages": turns}

    def to_openai(
        self, *, keep_open_calls: bool = False, cache_breakpoints: bool = False
    ) -> JsonObject:
        """Return `{"messages": [...]}` for OpenAI's Chat Completions API, which caches by itself.

        Args:
            keep_open_calls: leave tool calls at the end without a result, for a host that adds
                the results itself; otherwise placeholder results are added.
            cache_breakpoints: also mark the ends of cached prefixes, for `gpt-5.6` and later models,
                which accept explicit breakpoints besides the implicit one.
        """
        messages = self._openai_messages(OPENAI_ID_CHARS, keep_open=keep_open_calls)
        marking = cache_breakpoints and self.caching
        marked = breakpoints(messages) if marking else ()
        turns: list[JsonObject] = []
        if self.system:
            most = MAX_OPENAI_BREAKPOINTS - len(marked) if marking else 0
            turns.append({"role": "system", "content": _openai_system(self.system, most)})
        turns += openai_turns(messages, volatile=self.volatile, marked=marked)
        return {"messages": turns}

    def to_openai_responses(self, *, keep_open_calls: bool = False) -> JsonObject:
        """Return `{"instructions": ..., "input": [...]}` for OpenAI's Responses API.

        The input is the whole conversation: send it without `previous_response_id`. With
        *keep_open_calls*, tool calls at the end stay without a result, for a host that adds it.
        """
        messages = self._openai_messages(RESPONSES_ID_CHARS, keep_open=keep_open_calls)
        request: JsonObject = {"input": responses_items(messages, volatile=self.volatile)}
        if self.system:
            request["instructions"] = _text(self.system)
        return request

    def _openai_messages(self, id_chars: int, *, keep_open: bool) -> tuple[Message, ...]:
        messages: list[Message] = []
        for message in pair_tool_calls(self.messages, keep_open=keep_open):
            content = with_openai_names(message.content, id_chars=id_chars)
            is_same = content == message.content  # mostly, and a copy of each takes time
            messages.append(message if is_same else message.replace(content=content))
        return tuple(messages)

    def to_gemini(self, *, keep_open_calls: bool = False) -> JsonObject:
        """Return `{"systemInstruction": ..., "contents": [...]}` for Gemini's `generateContent`.

        With *keep_open_calls*, tool calls at the end stay without a result, for a host that adds it.
        """
        messages = pair_tool_calls(self.messages, keep_open=keep_open_calls)
        request: JsonObject = {"contents": gemini_contents(messages, volatile=self.volatile)}
        if self.system:
            request["systemInstruction"] = {"parts": [{"text": _text(self.system)}]}
        return request

    def to_text(self) -> str:
        """Return the context as plain text, for people and for models that accept one string.

        The further lines of a message are indented by a space.
        """
        messages = [
            message.replace(content=tuple(replace_media(message.content)))
            for message in pair_tool_calls(self.messages)
        ]
        turns = openai_turns(messages, volatile=self.volatile)
        pieces = [block.text for block in self.system]
        pieces += [f"{_speaker(turn)}: {indent_lines(_plain(turn))}" for turn in turns]
        return "\n\n".join(pieces)


def _anthropic_blocks(blocks: Sequence[SystemBlock], most: int) -> list[JsonObject]:
    """Render the blocks with only the last *most* breakpoints."""
    marked = [index for index, block in enumerate(blocks) if block.cache][-most:]
    rendered: list[JsonObject] = [{"type": "text", "text": block.text} for block in blocks]
    for index in marked:
        rendered[index]["cache_control"] = CACHE_CONTROL
    return rendered


def _openai_system(blocks: Sequence[SystemBlock], most: int) -> str | list[JsonObject]:
    """Render the blocks as one string, or with breakpoints as one text part up to each of them."""
    marked = [index for index, block in enumerate(blocks) if block.cache][-most:] if most else []
    if not marked:
        return _text(blocks)
    parts: list[JsonObject] = []
    start = 0
    for end in sorted({*(index + 1 for index in marked), len(blocks)}):
        mark = {"prompt_cache_breakpoint": OPENAI_BREAKPOINT} if end - 1 in marked else {}
        parts.append({"type": "text", "text": _text(blocks[start:end]), **mark})
        start = end
    return parts


def _text(blocks: Sequence[SystemBlock]) -> str:
    return "\n\n".join(block.text for block in blocks)


def _speaker(turn: JsonObject) -> str:
    """Return the role, and the name behind it, as a name alone could pass for a role."""
    name = speaker_label(turn.get("name") or "")
    return f"{turn['role']}: {name}" if name else str(turn["role"])


def _plain(turn: JsonObject) -> str:
    content = turn.get("content") or ""
    if not isinstance(content, str):
        content = "\n".join(part["text"] for part in content)
    for call in turn.get("tool_calls") or ():
        body = call[call["type"]]
        content += f"\n[calls {body['name']} {body.get('arguments', body.get('input', ''))}]"
    return content.strip()
