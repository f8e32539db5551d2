"""Cue words for things of which a person has one, such as a home or a favourite colour."""

import json
import re
from functools import cache
from importlib import resources
from typing import Literal, TypeAlias

FactCue: TypeAlias = Literal["single", "home"]


def fact_cues(text: str) -> dict[FactCue, str]:
    """Return the cues in a text, each with its first match."""
    plain = text.replace("’", "'").casefold()
    found: dict[FactCue, str] = {}
    for name, pattern in _patterns().items():
        if match := pattern.search(plain):
            found[name] = match[0]
    return found


@cache
def _patterns() -> dict[FactCue, re.Pattern[str]]:
    file = resources.files("remanence.facts") / "cues.json"
    data: dict[FactCue, dict[str, str]] = json.loads(file.read_text("utf-8"))
    return {name: _pattern(cues) for name, cues in data.items()}


def _pattern(cues: dict[str, str]) -> re.Pattern[str]:
    phrases = sorted(set(cues["words"].split("|")), key=lambda phrase: (-len(phrase), phrase))
    words = "|".join(re.escape(phrase) for phrase in phrases)
    return re.compile(rf"(?<!\w)(?:{words})(?!\w)|{cues['parts']}")
