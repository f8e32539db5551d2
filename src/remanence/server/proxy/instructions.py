"""Prompts in a history, and instructions of the client's program, which no notes cover."""

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final

from remanence.notes.program_text import instructions_in
from remanence.server.proxy.api import Unit, is_prompt
from remanence.wire.json_value import JsonObject

_LATER_CHARACTERS: Final = 20_000
"""How much of a program's text behind the first answer is kept, the newest first.

Programs add files, lists of tasks and more there, without an end.
"""


def keep_instructions(units: Sequence[Unit], whole: Collection[int] = ()) -> list[JsonObject]:
    """Return the objects of the units at the indices *whole*, and the instructions in all others.

    Of equal ones only the newest is kept, as it may take back another one in between.
    """
    answers = (at for at, unit in enumerate(units) if unit.message.role == "assistant")
    first_answer = next(answers, len(units))
    newest = _Newest()
    kept: list[JsonObject] = []
    for at in reversed(range(len(units))):
        if at in whole:
            kept += reversed(units[at].objects)
        else:
            takes = newest.takes if at < first_answer else newest.takes_later
            kept += _own_instructions(units[at], newest.takes, takes)
    return kept[::-1]


class _Newest:
    """Takes each text once, and later ones up to a limit."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._room = _LATER_CHARACTERS

    def takes(self, text: str) -> bool:
        is_new = bool(text) and text not in self._taken
        self._taken.add(text)
        return is_new

    def takes_later(self, text: str) -> bool:
        if len(text) > self._room or not self.takes(text):
            return False
        self._room -= len(text)
        return True


def _own_instructions(
    unit: Unit, takes_prompt: Callable[[str], bool], takes: Callable[[str], bool]
) -> Iterator[JsonObject]:
    """Yield prompts and the program's instructions of a unit, the newest first."""
    for one in reversed(unit.objects):
        content = one.get("content")
        if is_prompt(one):
            if takes_prompt(json.dumps(one)):
                yield one
        elif one.get("role") == "user" and isinstance(content, str):
            if takes(text := instructions_in(content)):
                yield {**one, "content": text}
        elif one.get("role") == "user":
            blocks = [
                {**block, "text": text}
                for block in reversed(content or ())
                if takes(text := _instructions_of(block))
            ]
            if blocks:
                yield {**one, "content": blocks[::-1]}


def _instructions_of(block: Any) -> str:  # JSON
    text = block.get("text") if isinstance(block, dict) else None
    return instructions_in(text) if isinstance(text, str) else ""
