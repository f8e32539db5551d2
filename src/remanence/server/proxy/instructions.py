"""Prompts, compactions, and instructions of the client's program, which no notes cover."""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from remanence.notes.program_text import instructions_in
from remanence.server.proxy.api import Unit, is_prompt, is_reference
from remanence.server.proxy.identity import compactions
from remanence.wire.json_value import JsonObject

_EARLY_CHARACTERS: Final = 200_000
"""How much of a program's text before the first answer is kept, the oldest first.

That is CLAUDE.md or the like; files that the user names follow.
"""
_LATER_CHARACTERS: Final = 20_000
"""How much of a program's text behind the first answer is kept, the newest first.

Programs add files, lists of tasks and more there, without an end.
"""

_COMPACTION: Final = "compaction"


class Kept(NamedTuple):
    """The objects to forward, and the indices of units with instructions that have no room."""

    objects: Sequence[JsonObject]
    dropped: Sequence[int]


class _Source(NamedTuple):
    """An object of the unit at an index, and the blocks that have instructions.

    Without blocks the object is kept whole; of those with equal keys, only the newest.
    """

    at: int
    one: JsonObject
    blocks: Sequence[JsonObject] = ()
    key: str = ""


def keep_instructions(units: Sequence[Unit], whole: Collection[int] = ()) -> Kept:
    """Return the objects of the units at the indices *whole*, and the instructions in all others.

    Of equal ones only the newest is kept, as it may take back another one in between, and only the
    newest compaction, which stands for those before it.
    """
    answers = (at for at, unit in enumerate(units) if unit.message.role == "assistant")
    first_answer = next(answers, len(units))
    sources = list(_sources(units, whole))
    early = _newest(source for source in sources if source.at < first_answer)
    later = _newest(source for source in sources if source.at >= first_answer)
    kept_later = set(_fitting(reversed(later), _LATER_CHARACTERS))
    kept_early = set(_fitting((t for t in early if t not in kept_later), _EARLY_CHARACTERS))
    kept = kept_early | kept_later
    dropped = {at for texts in (early, later) for text, at in texts.items() if text not in kept}
    objects: list[JsonObject] = []
    taken: set[str] = set()
    for at, one, blocks, key in reversed(sources):
        texts = kept_early if at < first_answer else kept_later
        if at in whole:
            objects.append(one)
        elif not blocks:
            objects += _take([(key, one)], taken)
        elif left := list(_take([(b["text"], b) for b in blocks if b["text"] in texts], taken)):
            is_text = isinstance(one.get("content"), str)
            objects.append({**one, "content": left[0]["text"] if is_text else left[::-1]})
    return Kept(objects[::-1], sorted(dropped))


def _take(found: Sequence[tuple[str, JsonObject]], taken: set[str]) -> Iterator[JsonObject]:
    """Yield the values whose keys are not *taken* yet, the last first."""
    for key, value in reversed(found):
        if key not in taken:
            taken.add(key)
            yield value


def _newest(sources: Iterable[_Source]) -> dict[str, int]:
    """Return each text with the index of the newest unit that has it, in their order."""
    newest: dict[str, int] = {}
    for source in sources:
        for block in source.blocks:
            newest.pop(block["text"], None)
            newest[block["text"]] = source.at
    return newest


def _fitting(texts: Iterable[str], room: int) -> Iterator[str]:
    """Yield the texts before the first that has no room, as later ones may depend on it."""
    for text in texts:
        room -= len(text)
        if room < 0:
            return
        yield text


def _sources(units: Sequence[Unit], whole: Collection[int]) -> Iterator[_Source]:
    for at, unit in enumerate(units):
        for one in unit.objects:
            if at in whole or is_prompt(one):
                yield _Source(at, one, key=json.dumps(one))
            elif _is_compaction(one, unit):
                yield _Source(at, one, key=_COMPACTION)
            elif blocks := list(_instruction_blocks(one)):
                yield _Source(at, one, blocks)


def _is_compaction(one: JsonObject, unit: Unit) -> bool:
    """Return whether an object of a unit is an encrypted item of OpenAI that replaces all before it."""
    is_referred = is_reference(one) and one.get("id") in compactions(unit.message)
    return is_referred or one.get("type") == _COMPACTION


def _instruction_blocks(one: JsonObject) -> Iterator[JsonObject]:
    """Yield the blocks of a user's message with nothing but the instructions in them."""
    if one.get("role") != "user":
        return
    content = one.get("content")
    blocks: Any = [{"text": content}] if isinstance(content, str) else content  # JSON
    for block in blocks or ():
        text = block.get("text") if isinstance(block, dict) else None
        if isinstance(text, str) and (found := instructions_in(text)):
            yield {**block, "text": found}
