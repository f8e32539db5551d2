"""Links between calls and results, also of those in a provider's own format."""

from typing import Literal, NamedTuple, TypeAlias

from remanence.wire.message import Message
from remanence.wire.parts import OtherPart, Part, ToolCallPart, ToolResultPart

LinkKind: TypeAlias = Literal["call", "server_call", "result"]

_FIELDS: tuple[tuple[str, str, LinkKind, str], ...] = (
    ("anthropic", "_tool_use", "server_call", "id"),
    ("anthropic", "_tool_result", "result", "tool_use_id"),
    ("openai_responses", "_call", "call", "call_id"),
    ("openai_responses", "program", "server_call", "call_id"),
    ("openai_responses", "_output", "result", "call_id"),
    ("openai_responses", "local_shell_call_output", "result", "id"),
    ("openai_responses", "mcp_approval_request", "call", "id"),
    ("openai_responses", "mcp_approval_response", "result", "approval_request_id"),
)
"""Dialect, end of the type, kind, and the field with the call's id; the first that fits applies."""


class Link(NamedTuple):
    """A part's link to others: the provider answers a `server_call`, the host a `call`.

    The id of a call in a provider's own format follows the name of the dialect, as the result must be
    in that format, too.
    """

    kind: LinkKind
    call_id: str


def link(part: Part) -> Link | None:
    """Return the link of a call or result, None for other parts."""
    match part:
        case ToolCallPart(id=id_):
            return Link("call", id_)
        case ToolResultPart(call_id=id_):
            return Link("result", id_)
        case OtherPart(dialect=dialect, raw=raw):
            for known, end, kind, field in _FIELDS:
                if dialect != known or end not in raw:  # most parts need not be parsed
                    continue
                head = part.head
                if str(head.get("type")).endswith(end) and head.get(field):
                    return Link(kind, f"{dialect} {head[field]}")
    return None


def open_links(message: Message) -> tuple[dict[str, LinkKind], set[str]]:
    """Return the calls that a message leaves open, and the ids of earlier calls that it answers."""
    calls: dict[str, LinkKind] = {}
    answered: set[str] = set()
    for kind, id_ in filter(None, map(link, message.content)):
        if kind != "result":
            calls[id_] = kind
        elif calls.pop(id_, None) is None:
            answered.add(id_)
    return calls, answered
