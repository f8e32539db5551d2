"""Tokenizer families of models, by model name."""

import re
from typing import Literal, TypeAlias

Family: TypeAlias = Literal["o200k", "cl100k", "claude", "claude_3"]
FAMILIES: tuple[Family, ...] = ("o200k", "cl100k", "claude", "claude_3")

_CL100K = re.compile(r"gpt-?3|gpt-?4(?![.o\d])|text-embedding|ada-002")
_CLAUDE_VERSION = re.compile(r"(?<![\d.])(\d{1,2})(?:[-.](\d{1,2}))?(?![\d])")
_FIRST_OF_NEW_CLAUDE = (4, 7)


def family_for(model: str) -> Family:
    """Return the family of `model`; for models of other vendors, the nearest known one.

    Provider prefixes (`anthropic:`, `openrouter/anthropic/`) and date suffixes do not matter.
    """
    name = model.lower()
    if "claude" in name:
        return _claude_family(name[name.index("claude") :])
    return "cl100k" if _CL100K.search(name) else "o200k"


def _claude_family(name: str) -> Family:
    version = _CLAUDE_VERSION.search(name)
    if version is None:
        return "claude"
    release = int(version[1]), int(version[2] or 0)
    return "claude" if release >= _FIRST_OF_NEW_CLAUDE else "claude_3"
