"""The name of a conversation in the headers or the body of a request."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from remanence.errors import InvalidMessage
from remanence.http.documents import MAX_NAME, require_path_name
from remanence.server.access import without_scheme
from remanence.wire.json_value import JsonObject, read_object

CONVERSATION: Final = "x-remanence-conversation"
USER: Final = "x-remanence-user"
MEMORY: Final = "x-remanence-memory"
OMITTED: Final = "x-remanence-omitted"
CREDENTIALS: Final = ("authorization", "x-api-key", "api-key", "x-goog-api-key")

_CLAUDE_CODE_HEADER: Final = "x-claude-code-session-id"
_SESSION_HEADERS: Final = (
    _CLAUDE_CODE_HEADER,
    "session-id",
    "thread-id",
    "x-session-id",
    "x-session-affinity",
    "x-grok-conv-id",
    "x-openwebui-chat-id",
)
_USER_HEADERS: Final = (USER, "x-openwebui-user-id")
_AGENT_HEADER: Final = "x-claude-code-agent-id"
NAMING_HEADERS: Final = (
    *CREDENTIALS,
    *_USER_HEADERS,
    CONVERSATION,
    *_SESSION_HEADERS,
    _AGENT_HEADER,
)
"""Headers that a name is read from."""
_ANY_SESSION: Final = re.compile(r"x-[a-z0-9-]+-session-id")
_CODEX_TURN_HEADER: Final = "x-codex-turn-metadata"
_COMPACTION: Final = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools."
_METADATA: Final = ("conversation_id", "session_id", "thread_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A conversation as named by its client.

    On a server without keys, the tenant is derived from the client's provider credential, so that
    no other credential reaches its memory.
    """

    tenant: str
    conversation: str
    user: str | None = None

    def tape(self, branch: int) -> str:
        """Return the id of a tape of the conversation; branch 0 is the first."""
        return f"{self.conversation}~{branch}" if branch else self.conversation


def conversation_of(headers: Mapping[str, str], body: JsonObject) -> str | None:
    """Return the conversation that a request names, or None.

    Our own header comes first, then those of known clients, then fields of the body. Fields that
    name a user, such as `safety_identifier`, are not used, nor is `prompt_cache_key`, which an
    application may share among all its users.
    """
    return _in_headers(headers) or _in_body(body)


def _text_in(headers: Mapping[str, str], name: str) -> str | None:
    """Return the value of a header, decoded as UTF-8 if possible; None if it is missing or empty."""
    value = headers.get(name)
    try:
        return value.encode("latin-1").decode() if value else None
    except UnicodeError:
        return value


def name_of(headers: Mapping[str, str], conversation: str, tenant: str | None) -> Name:
    """Return the full name of a conversation, with tenant and user from the headers.

    Raises:
        InvalidMessage: the name is too long for a header, or it or the user's cannot be in a path.
    """
    if len(conversation) > MAX_NAME:
        raise InvalidMessage(
            f"the conversation's name has {len(conversation):,} characters, more than {MAX_NAME}: shorten it"
        )
    user = next(filter(None, (_text_in(headers, name) for name in _USER_HEADERS)), None)
    try:
        for named in filter(None, (conversation, user)):
            require_path_name(named)
    except ValueError as error:
        raise InvalidMessage(str(error)) from None
    return Name(tenant=tenant or tenants_of(headers)[0], conversation=conversation, user=user)


def is_compaction(headers: Mapping[str, str], newest: str) -> bool:
    """Return whether Claude Code or Codex asks to compact the conversation, instead of a turn.

    Codex sets a header for it; Claude Code is recognised by its newest message.
    """
    if _CLAUDE_CODE_HEADER in headers:
        return newest.startswith(_COMPACTION)
    turn = read_object(headers.get(_CODEX_TURN_HEADER, "")) or {}
    return "compact" in str(turn.get("request_kind"))


def _in_headers(headers: Mapping[str, str]) -> str | None:
    if ours := _text_in(headers, CONVERSATION):
        return ours
    names = (*_SESSION_HEADERS, *filter(_ANY_SESSION.fullmatch, headers))
    session = next(filter(None, (_text_in(headers, name) for name in names)), None)
    agent = _text_in(headers, _AGENT_HEADER)
    return f"{session}:{agent}" if session and agent else session


def _in_body(body: JsonObject) -> str | None:
    conversation, metadata = body.get("conversation"), body.get("metadata")
    if isinstance(conversation, dict):
        conversation = conversation.get("id")
    named: list[object] = [conversation]
    if isinstance(metadata, dict):
        named += [metadata.get(key) for key in _METADATA]
        named.append(_session_of_user_id(metadata.get("user_id")))
    return next((name for name in named if isinstance(name, str) and name), None)


def _session_of_user_id(value: object) -> str | None:
    """Return the session of Claude Code in `metadata.user_id`, which is JSON or has it as a suffix."""
    if not isinstance(value, str):
        return None
    if (read := read_object(value)) is not None:
        session = read.get("session_id")
        return session if isinstance(session, str) else None
    return value.rpartition("_session_")[2] if "_session_" in value else None


def tenants_of(headers: Mapping[str, str]) -> tuple[str, str]:
    """Return the tenant of a client's provider keys, and that of the key with `Bearer` before it.

    Earlier versions used the second one for a key that came as a bearer token.
    """
    values = [headers[name] for name in CREDENTIALS if headers.get(name)]
    value, key = "".join(values[:1]), "\n".join(dict.fromkeys(map(without_scheme, values)))
    return _tenant(key), _tenant(f"Bearer {key}" if key == value else value)


def _tenant(credential: str) -> str:
    return f"credential-{hashlib.sha256(credential.encode()).hexdigest()[:32]}"
