"""How much a model is given and may write."""

from remanence.errors import InvalidPolicy
from remanence.fields import impossible
from remanence.observing.policy import window_tokens

LEAST_INPUT_TOKENS = 4_000
INPUT_SHARE = 3
"""Eighths of a window that a request may fill: token counts are estimates, and long inputs are read
with less care."""

LINE_HEAD_FACTOR = 2
SLACK_TOKENS = 256
"""The heads of lines about double them, and count for the output limit but not for the target."""


def check_limits(*, max_output_tokens: int, max_input_tokens: int) -> None:
    """Raise `InvalidPolicy` for limits under which no notes can be made."""
    if max_output_tokens < 1:
        raise impossible("max_output_tokens", max_output_tokens, "use 1 or more")
    if max_input_tokens < LEAST_INPUT_TOKENS:
        raise InvalidPolicy(
            f"max_input_tokens={max_input_tokens:,} leaves no room beside the instructions: "
            f"use {LEAST_INPUT_TOKENS:,} or more"
        )


def input_limit(model: str) -> int:
    """The tokens that a request may have; of a chain of models, what the smallest one takes."""
    window = min(window_tokens(link) for link in model.split(" > "))
    return window * INPUT_SHARE // 8


def output_limit(target_tokens: int, most_tokens: int) -> int:
    """The tokens that an answer may take whose lines have *target_tokens* without their heads."""
    return min(most_tokens, int(target_tokens * 1.3 * LINE_HEAD_FACTOR) + SLACK_TOKENS)


def in_words(tokens: int) -> int:
    """About as many English words as *tokens*."""
    return max(1, tokens * 3 // 4)
