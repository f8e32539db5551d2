"""Sessions of Claude Code and Codex, as the conversations that `remanence import` reads.

Neither format is documented: what is not a message of the conversation is left out, and counted.
"""

import re
from dataclasses import dataclass
from typing import Final

from remanence.cli.chat_exports import ExportedConversation, LeftOut
from remanence.wire.json_value import JsonObject

_CLAUDE_CODE: Final = frozenset({"leafUuid", "messageId", "sessionId"})
"""Keys of lines of Claude Code; each line has one of them."""
_CODEX: Final = frozenset(
    {"compacted", "event_msg", "response_item", "session_meta", "turn_context"}
)
_MARKS: Final = ("isSidechain", "isMeta", "isCompactSummary", "isApiErrorMessage")
_BY_PROGRAM: Final = re.compile(r"\s*+(?:<[a-z]+[_-]|# AGENTS\.md )")
"""The beginning of text that a program sends as the user's, such as `<environment_context>`."""


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
        if message is not None and (left_out := _left_out(message)):
            kind, message = left_out, None
        self.left_out[kind] += message is None
        return ExportedConversation(
            conversation=line.get("sessionId", self.codex_session),
            created_at=line.get("timestamp"),
            messages=[] if message is None else [message],
        )


def _left_out(message: JsonObject) -> str | None:
    """Return a name for a message that neither a user nor a model wrote for the other, or None."""
    content = message.get("content")
    first = content[0] if isinstance(content, list) and content else {"text": content}
    text, kind = (first.get("text"), first.get("type")) if isinstance(first, dict) else (None, None)
    if message.get("role") == "user" and _BY_PROGRAM.match(str(text)):
        return "text of the program"
    # Claude Code writes each block as a line of its own.
    return (
        str(kind) if kind in ("thinking", "redacted_thinking") and len(content or ()) == 1 else None
    )
