"""Text that client programs send within the user's messages, as Claude Code and Codex do.

Neither format is documented. Text that other programs put there counts as the user's.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

_INSTRUCTIONS: Final = frozenset(("system-reminder", "environment_context", "user_instructions"))
_TRACES: Final = frozenset(
    ("local-command-stdout", "local-command-stderr", "local-command-caveat", "turn_aborted")
) | frozenset(("command-name", "command-message", "command-args"))
"""Traces of the user's acts in the program, which hold only at their place."""
_TAG: Final = re.compile(f"<(/?)({'|'.join(sorted(_INSTRUCTIONS | _TRACES))})>\\s*+")
_AGENTS: Final = "# AGENTS.md instructions for "
_CLAUDE_SUMMARY: Final = "This session is being continued from a previous conversation"
_CODEX_SUMMARY: Final = (
    "Another language model started to solve this problem and produced a summary"
)
_DOCUMENTS: Final = (_AGENTS, _CLAUDE_SUMMARY, _CODEX_SUMMARY)
"""Beginnings of texts that are by the program as a whole: instructions and summaries."""
_INTERRUPTION: Final = re.compile(r"\[Request interrupted by user(?: for tool use)?\]\s*+")


class _Element(NamedTuple):
    """An element of a text, with the white space after it."""

    name: str
    start: int
    end: int


def own_text(text: str) -> str:
    """Return a text without that of the program; unchanged if it has none."""
    around, between = _split(text)
    if between.startswith(_DOCUMENTS):
        return ""
    interruption = _INTERRUPTION.match(between)
    if interruption is not None:
        return between[interruption.end() :]
    return between if around else text


def instructions_in(text: str) -> str:
    """Return the program's instructions, descriptions and summaries in a text.

    Traces, such as the output of a command, are left out.
    """
    around, between = _split(text)
    if between.startswith(_DOCUMENTS):
        return text
    return "".join(text[one.start : one.end] for one in around if one.name in _INSTRUCTIONS)


def _split(text: str) -> tuple[Sequence[_Element], str]:
    """Return the elements at both ends of a text, and the stripped text between them.

    Programs write elements there; those that the user quotes are in the text between.
    """
    elements = list(_elements(text)) if "</" in text else []
    if not elements:
        return (), text.strip()
    head, tail = 0, len(elements)
    start, end = len(text) - len(text.lstrip()), len(text)
    while head < tail and elements[head].start == start:
        start = elements[head].end
        head += 1
    while head < tail and elements[tail - 1].end == end:
        tail -= 1
        end = elements[tail].start
    return [*elements[:head], *elements[tail:]], text[start:end].strip()


def _elements(text: str) -> Iterator[_Element]:
    """Yield the elements that are not within others, in linear time.

    An element ends at its last closing tag before the next element, as it may quote such tags.
    """
    closed = {tag[2]: tag.start() for tag in _TAG.finditer(text) if tag[1]}
    name, start, end = "", 0, 0
    for tag in _TAG.finditer(text):
        if tag[1] and tag[2] == name:
            end = tag.end()
        elif not tag[1] and (end or not name) and tag.start() < closed.get(tag[2], 0):
            if name:
                yield _Element(name, start, end)
            name, start, end = tag[2], tag.start(), 0
    if name:
        yield _Element(name, start, end)
