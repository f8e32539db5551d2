"""Choosing a counter by model or by name."""

from functools import cache
from typing import Final

from remanence.tokens import rules
from remanence.tokens.counter import Frame, TokenCounter
from remanence.tokens.estimator import estimator
from remanence.tokens.families import FAMILIES, Family, family_for
from remanence.tokens.media import claude_image, image_count

from remanence.types import Message

DEFAULT_MODEL: Final = "claude-sonnet-5-5"

_FRAMES: dict[Family, Frame] = {
    "o200k": Frame(message=4, tool_call=8, tool_result=4),
    "cl100k": Frame(message=4, tool_call=8, tool_result=4),
    "claude": Frame(message=4, tool_call=16, tool_result=12),
    "claude_3": Frame(message=4, tool_call=16, tool_result=12),
}
_RULES: dict[str, TokenCounter] = {
    "flat": TokenCounter(
        name="flat",
        text_count=rules.flat,
        result_count=rules.flat,
        image_count=claude_image,
        frame=Frame(message=0),
    ),
    "cjk": TokenCounter(
        name="cjk",
        text_count=rules.cjk,
        result_count=rules.cjk,
        image_count=claude_image,
        frame=Frame(message=4),
    ),
    "split": TokenCounter(
        name="split",
        text_count=rules.split_text,
        result_count=rules.split_result,
        image_count=claude_image,
        frame=Frame(message=0),
    ),
}


def count_tokens(text_or_message: str | Message, *, model: str = DEFAULT_MODEL) -> int:
    """The tokens of a text, or of a message with its frame, for `model`."""
    counter = counter_for(model)
    if isinstance(text_or_message, str):
        return counter.text(text_or_message)
    return counter.message(text_or_message)


def text_tokens(text: str, *, model: str = DEFAULT_MODEL) -> int:
    """The tokens of `text` for `model`."""
    return counter_for(model).text(text)


def counter_for(model: str) -> TokenCounter:
    """The counter for `model`, named as providers name it; names of counters are taken as well."""
    if model in _RULES or model in FAMILIES:
        return counter_named(model)
    return counter_named(family_for(model))


@cache
def counter_named(name: str) -> TokenCounter:
    """The counter `name`: a tokenizer family, or one of the rules `flat`, `cjk`, `split`."""
    if name in _RULES:
        return _RULES[name]
    for family in FAMILIES:
        if family == name:
            return _estimating(family)
    known = ", ".join([*FAMILIES, *_RULES])
    raise ValueError(f"token counter {name!r} is unknown: use one of {known}")


def _estimating(family: Family) -> TokenCounter:
    count = estimator(family)
    return TokenCounter(
        name=family,
        text_count=count,
        result_count=count,
        image_count=image_count(family),
        frame=_FRAMES[family],
    )
