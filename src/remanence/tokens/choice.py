"""Choice of a counter by model or by name."""

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Final

from remanence.arguments import require_one_of
from remanence.catalog import FAMILIES, Family, look_up
from remanence.tokens.counter import Frame, TokenCounter
from remanence.tokens.estimator import TextCount, estimator
from remanence.tokens.exact import exact_count, is_at_hand
from remanence.tokens.media import ImageCount, claude_image, openai_image
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
    """Count the tokens of a text, or of messages with their frames, for `model`."""
    counter = counter_for(model)
    if isinstance(text_or_message, str):
        return counter.text(text_or_message)
    if isinstance(text_or_message, Sequence):
        return sum(count_tokens(message, model=model) for message in text_or_message)
    require_one_of(Message, text_or_message=text_or_message)
    return counter.message(text_or_message)


def text_tokens(text: str, *, model: str = DEFAULT_MODEL) -> int:
    """Count the tokens of `text` for `model`."""
    return counter_for(model).text(text)


def counter_for(model: str) -> TokenCounter:
    """Return the best available counter for `model`, the provider's name of a model.

    It is exact if tiktoken and the vocabulary are on this machine, else an estimate; nothing is
    ever downloaded. The names that `counter_named` knows are accepted as well.
    """
    if model in _COUNTERS:
        return counter_named(model)
    family = look_up(model).tokenizer
    return _exact(family) if is_at_hand(family) else _COUNTERS[family]


def counter_named(name: str) -> TokenCounter:
    """Return the counter `name`: the estimate of a family, or the rule `flat`, `cjk` or `split`."""
    try:
        return _COUNTERS[name]
    except KeyError:
        known = ", ".join(sorted(_COUNTERS))
        raise ValueError(f"token counter {name!r} is unknown: use one of {known}") from None


def _characters(per_token: float) -> TextCount:
    """Return a rule that counts characters, rounded up, in place of a tokenizer."""
    return lambda text: math.ceil(len(text) / per_token)


def _cjk(text: str) -> int:
    """Count a token per four characters, or two of CJK, with each run rounded up."""
    tokens, end = 0, 0
    for run in _cjk_run().finditer(text):
        tokens += math.ceil((run.start() - end) / 4)
        tokens += math.ceil((run.end() - run.start()) / 2)
        end = run.end()
    return tokens + math.ceil((len(text) - end) / 4)


@cache
def _cjk_run() -> re.Pattern[str]:
    # Compiled on first use: wide classes take milliseconds, and imports should be fast.
    return re.compile(_CJK)


def _counter(
    name: str,
    text: TextCount,
    *,
    result: TextCount | None = None,
    image: ImageCount = claude_image,
    frame: Frame,
) -> TokenCounter:
    return TokenCounter(
        name=name, text_count=text, result_count=result or text, image_count=image, frame=frame
    )


def _estimating(family: Family) -> TokenCounter:
    def count(text: str) -> int:
        return estimator(family)(text)

    if family in ("claude", "claude_3"):
        return _counter(family, count, frame=_CLAUDE)
    return _counter(family, count, image=openai_image, frame=_OPENAI)


@cache
def _exact(family: Family) -> TokenCounter:
    count = exact_count(family)
    return replace(_COUNTERS[family], name=f"{family} exact", text_count=count, result_count=count)


# The rules have the names that the presets use. Tool results are denser than prose.
_COUNTERS: dict[str, TokenCounter] = {
    **{family: _estimating(family) for family in FAMILIES},
    "flat": _counter("flat", _characters(4), frame=Frame(message=0)),
    "cjk": _counter("cjk", _cjk, frame=Frame(message=4)),
    "split": _counter("split", _characters(3.5), result=_characters(3), frame=Frame(message=0)),
}
