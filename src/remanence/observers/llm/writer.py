"""Settings of the observer and the reflector that use a model, and the length of their notes."""

import copy
from typing import Self

from remanence.errors import InvalidPolicy, InvalidSetting
from remanence.observers.llm.prompt import language_rule
from remanence.policy.policy import request_tokens
from remanence.protocols import CountTokens, Model

MIN_INPUT_TOKENS = 4_000
HEAD_FACTOR = 1.6
SLACK_TOKENS = 256
"""Line heads count towards the output limit but not the target, and models overshoot."""

TALK_SHARE, NOTE_SHARE = 0.75, 0.9
"""Ratio of the words in new notes to those in a sample of talk, or of earlier notes, with the same
number of tokens. It is below 1 because notes have more names, numbers and dates, and headings."""

SAMPLE_CHARACTERS = 6_000
MIN_SAMPLE_CHARACTERS = 400
_MAX_WORD_CHARACTERS = 16


class ModelCaller:
    """An observer, reflector or extractor of facts that calls a model.

    `max_output_tokens` is the largest output limit of a request.
    """

    def __init__(self, model: Model, *, max_output_tokens: int) -> None:
        self.model: Model = model
        self.max_output_tokens: int = max_output_tokens

    def asking(self, model: Model) -> Self:
        """Return a copy that asks another model."""
        other = copy.copy(self)
        other.model = model
        return other


class ModelWriter(ModelCaller):
    """A model with the language and the limits of its notes."""

    def __init__(
        self,
        model: Model,
        *,
        language: str = "conversation",
        repair: bool = True,
        max_output_tokens: int = 8_192,
        max_input_tokens: int | None = None,
    ) -> None:
        if max_input_tokens is None:
            max_input_tokens = request_tokens(model.name)
        if max_output_tokens < 1:
            raise InvalidSetting("max_output_tokens", max_output_tokens, "use 1 or more")
        if max_input_tokens < MIN_INPUT_TOKENS:
            raise InvalidPolicy(
                f"max_input_tokens={max_input_tokens:,} leaves no room beside the instructions: "
                f"use {MIN_INPUT_TOKENS:,} or more"
            )
        super().__init__(model, max_output_tokens=max_output_tokens)
        self._language_rule = language_rule(language)
        self._repair = repair
        self._max_input_tokens = max_input_tokens

    @property
    def name(self) -> str:
        """The name of the model."""
        return self.model.name


def output_limit(target_tokens: int, most_tokens: int) -> int:
    """Return the output tokens for lines that have *target_tokens* without their heads."""
    return min(most_tokens, int(target_tokens * 1.3 * HEAD_FACTOR) + SLACK_TOKENS)


def length_limit(target_tokens: int, *, notes: str, talk: str, count: CountTokens) -> str:
    """Return the length of notes of *target_tokens* in words, such as `640 words`.

    The estimate comes from rendered notes, or, if there are few, from the *talk* to be noted. Text
    without spaces is measured in characters.
    """
    has_notes = len(notes) >= MIN_SAMPLE_CHARACTERS
    sample = (notes if has_notes else talk)[:SAMPLE_CHARACTERS] or "some plain words"
    share = target_tokens * (NOTE_SHARE if has_notes else TALK_SHARE) / max(1, count(sample))
    words = len(sample.split())
    if len(sample) > words * _MAX_WORD_CHARACTERS:
        return f"{_round(len(sample) * share):,} characters"
    return f"{_round(words * share):,} words"


def _round(number: float) -> int:
    """Round down to two leading digits, the precision of the estimate."""
    whole = max(1, int(number))
    unit: int = 10 ** max(0, len(str(whole)) - 2)
    return whole // unit * unit
