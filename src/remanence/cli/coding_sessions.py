"""Sessions of Claude Code and Codex, as the conversations that `remanence import` reads.

Neither format is documented: what is not a message of the conversation is left out, and counted.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from remanence.cli.chat_exports import ExportedConversation, LeftOut
from remanence.notes.program_text import own_text
from remanence.wire.json_value import JsonObject

_CLAUDE_CODE: Final = frozenset({"leafUuid", "messageId", "sessionId"})
"""Keys of lines of Claude Code; each line has one of them."""
_CODEX: Final = frozenset(
    {"compacted", "event_msg", "response_item", "session_meta", "turn_context"}
)
_MARKS: Final = ("isSidechain", "isMeta", "isCompactSummary", "isApiErrorMessage")
_ELEMENT: Final = re.compile(r"\s*+<[a-z]+[_-]")
"""The beginning of an element, which a program sends as the user's text, such as `<bash-stdout>`."""


@dataclass(slots=True)
class SessionReader:
    """Reads lines of sessions in order; those of Codex name their session only at the beginning."""

    left_out: LeftOut
    codex_session: object = None

    def read(self, line: JsonObject) -> JsonObject:
        """Return a session's line as a conversation of at most one message, or *line* if it is not one."""
        if "role" in line or not isinstance(line.get("type"), str):
            return line
        if (line["type"] in _CODEX or self.codex_session) and isinstance(line.get("payload"), dict):
            return self._codex(line, line["payload"])
        return line if _CLAUDE_CODE.isdisjoint(line) else self._claude_code(line)

    def _claude_code(self, line: JsonObject) -> ExportedConversation:
        kind, message = next(filter(line.get, _MARKS), line["type"]), line.get("message")
        if kind not in ("user", "assistant") or not isinstance(message, dict):
            return self._conversation(line, kind, None)
        return self._conversation(line, kind, {**message, "id": line.get("uuid")})

    def _codex(self, line: JsonObject, item: JsonObject) -> ExportedConversation:
        if line["type"] == "session_meta":  # a fork repeats that of the other session after its own
            self.codex_session = self.codex_session or item.get("id")
        kind = str(item.get("type")) if line["type"] == "response_item" else line["type"]
        is_message = kind.endswith(("_call", "_output")) or kind == "message"
        return self._conversation(line, kind, item if is_message else None)

    def _conversation(
        self, line: JsonObject, kind: str, message: JsonObject | None
    ) -> ExportedConversation:
        messages, thought = [], "" if message is None else _thought(message)
        if message is None or thought:
            self.left_out[thought or kind] += 1
        else:
            own = _without_program(message)
            self.left_out["text of the program"] += own != message
            messages = [own] if own else []
        return ExportedConversation(
            conversation=line.get("sessionId", self.codex_session),
            created_at=line.get("timestamp"),
            messages=messages,
        )


def _thought(message: JsonObject) -> str:
    """Return the type of a message that is nothing but a thought, or an empty text."""
    content = message.get("content")  # Claude Code writes each block as a line of its own
    only = content[0] if isinstance(content, list) and len(content) == 1 else None
    kind = only.get("type") if isinstance(only, dict) else None
    return str(kind) if kind in ("thinking", "redacted_thinking") else ""


def _without_program(message: JsonObject) -> JsonObject | None:
    """Return a message without text that neither a user nor a model wrote; None if nothing is left."""
    role, content = message.get("role"), message.get("content")
    if role in ("developer", "system"):
        return None
    if role != "user" or not content:
        return message
    blocks = content if isinstance(content, list) else [{"text": content}]
    own = [left for block in blocks if (left := _own_block(block))]
    if not own:
        return None
    return {**message, "content": own if isinstance(content, list) else own[0]["text"]}


def _own_block(block: Any) -> Any:  # JSON
    """Return a block with the text that the user wrote; None if the program wrote all of it."""
    text = block.get("text") if isinstance(block, dict) else None
    if not isinstance(text, str) or not text:
        return block
    own = own_text(text)
    return None if not own or _ELEMENT.match(own) else {**block, "text": own}
