"""Text that client programs send within the user's messages, as Claude Code and Codex do.

Neither format is documented. What other programs put there counts as the user's.
"""

import re
from typing import Final

from remanence.notes.elements import find_elements, replace_elements

_INSTRUCTIONS: Final = "system-reminder|environment_context|user_instructions"
_EVENTS: Final = "local-command-[a-z]+|command-(?:name|message|args)|turn_aborted"
"""Traces of what the user did in the program, which hold only at their place."""
_INSTRUCTION: Final = re.compile(f"<({_INSTRUCTIONS})>")
_ELEMENT: Final = re.compile(f"<({_INSTRUCTIONS}|{_EVENTS})>")
_AGENTS: Final = "# AGENTS.md "
_CLAUDE_SUMMARY: Final = "This session is being continued from a previous conversation"
_CODEX_SUMMARY: Final = (
    "Another language model started to solve this problem and produced a summary"
)
_DOCUMENTS: Final = (_AGENTS, _CLAUDE_SUMMARY, _CODEX_SUMMARY)
"""Beginnings of texts that are by the program as a whole: instructions, and summaries of histories."""
_INTERRUPTION: Final = "[Request interrupted by user"


def own_text(text: str) -> str:
    """Return a text without that of the program; unchanged if it has none."""
    own = replace_elements(text, _ELEMENT, "")
    own = text if own == text else own.strip()
    is_programs = _is_document(own) or own.lstrip().startswith(_INTERRUPTION)
    return "" if is_programs else own


def instructions_in(text: str) -> str:
    """Return the program's instructions, descriptions and summaries in a text.

    Events, such as the output of a command, are left out.
    """
    if _is_document(replace_elements(text, _ELEMENT, "")):
        return text
    return "".join(text[found] for found in find_elements(text, _INSTRUCTION))


def _is_document(text: str) -> bool:
    return text.lstrip().startswith(_DOCUMENTS)
