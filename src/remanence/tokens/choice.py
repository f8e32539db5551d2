"""Choice of a token counter by model or by name."""

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Final

from remanence.arguments import require_one_of, require_text
from remanence.catalog import FAMILIES, Family, look_up
from remanence.tokens.counter import Frame, TokenCounter
from remanence.tokens.estimator import TextCount, estimator
from remanence.tokens.exact import exact_count, is_available
from remanence.tokens.media import openai_image
from remanence.types import Message

DEFAULT_MODEL: Final = "claude-sonnet-5-5"

_OPENAI: Final = Frame(message=4, tool_call=8, tool_result=4)
_CLAUDE: Final = Frame(message=4, tool_call=16, tool_result=12)

_CJK = (
    "[\u1100-\u11ff\u2e80-\u30ff\u3100-\u318f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]+"
)


def count_tokens(
    text_or_message: str | Message | Sequence[Message], *, model: str = DEFAULT_MODEL
) -> int:
    """Count the tokens of a text, or of messages including their framing, for `model`."""
    require_text(model=model)
    counter = counter_for(model)
    if isinstance(text_or_message, str):
        return counter.text(text_or_message)
    if isinstance(text_or_message, Sequence):
        return sum(count_tokens(message, model=model) for message in text_or_message)
    require_one_of(Message, text_or_message=text_or_message)
    return counter.message(text_or_message)


def counter_for(model: str) -> TokenCounter:
    """Return the best available counter for `model`, the provider's name of a model.

    It is exact if tiktoken and the vocabulary are on this machine, otherwise an estimate; nothing is
    downloaded. *model* may also be the name of a counter: a tokenizer family such as `claude`, or a
    rule: `flat`, `cjk` or `split`.
    """
    family = look_up(model).tokenizer
    counter = _COUNTERS.get(model)
    return counter or (_exact(family) if is_available(family) else _COUNTERS[family])


def _characters(per_token: float) -> TextCount:
    """Return a rule that counts tokens by characters, rounded up."""
    return lambda text: math.ceil(len(text) / per_token)


def _cjk(text: str) -> int:
    """Count one token per four characters, or per two CJK characters, rounding up each run."""
    runs = re.split(f"({_CJK})", text)  # every second run is CJK
    return sum(math.ceil(len(run) / (2 if place % 2 else 4)) for place, run in enumerate(runs))


def _estimating(family: Family) -> TokenCounter:
    def count(text: str) -> int:
        return estimator(family)(text)

    if family in ("claude", "claude_3"):
        return TokenCounter(name=family, text=count, frame=_CLAUDE)
    return TokenCounter(name=family, text=count, frame=_OPENAI, image=openai_image)


@cache
def _exact(family: Family) -> TokenCounter:
    return replace(_COUNTERS[family], name=f"{family} exact", text=exact_count(family))


_RULES = (
    TokenCounter(name="flat", text=_characters(4), frame=Frame(message=0)),
    TokenCounter(name="cjk", text=_cjk, frame=Frame(message=4)),
    # Tool results are denser than prose.
    TokenCounter(
        name="split", text=_characters(3.5), result_text=_characters(3), frame=Frame(message=0)
    ),
)
"""Simple counting rules, by the names that the presets use."""

_COUNTERS = {counter.name: counter for counter in (*map(_estimating, FAMILIES), *_RULES)}
