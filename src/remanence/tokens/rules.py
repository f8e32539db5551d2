"""Character-count rules in place of a tokenizer, by the names that the presets use."""

import math
import re
from functools import cache

_CJK = (
    "[\u1100-\u11ff\u2e80-\u30ff\u3100-\u318f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]+"
)
_CHARACTERS_PER_TOKEN = 4
_CJK_CHARACTERS_PER_TOKEN = 2
_SPLIT_TEXT_CHARACTERS_PER_TOKEN = 3.5
_SPLIT_RESULT_CHARACTERS_PER_TOKEN = 3.0


def flat(text: str) -> int:
    """Count a token per four characters, rounded up."""
    return math.ceil(len(text) / _CHARACTERS_PER_TOKEN)


def cjk(text: str) -> int:
    """Count a token per four characters, or two of CJK, with each run rounded up."""
    tokens, end = 0, 0
    for run in _cjk_run().finditer(text):
        tokens += math.ceil((run.start() - end) / _CHARACTERS_PER_TOKEN)
        tokens += math.ceil((run.end() - run.start()) / _CJK_CHARACTERS_PER_TOKEN)
        end = run.end()
    return tokens + math.ceil((len(text) - end) / _CHARACTERS_PER_TOKEN)


@cache
def _cjk_run() -> re.Pattern[str]:
    # Compiled on first use: wide classes take milliseconds, and imports should be fast.
    return re.compile(_CJK)


def split_text(text: str) -> int:
    """Count a token per 3.5 characters, rounded up."""
    return math.ceil(len(text) / _SPLIT_TEXT_CHARACTERS_PER_TOKEN)


def split_result(text: str) -> int:
    """Count a token per 3 characters, rounded up: tool results are denser than prose."""
    return math.ceil(len(text) / _SPLIT_RESULT_CHARACTERS_PER_TOKEN)
