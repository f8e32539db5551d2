"""Limits on the input and output of a model."""

from remanence.errors import InvalidPolicy, InvalidSetting
from remanence.protocols import CountTokens

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


def check_limits(*, max_output_tokens: int, max_input_tokens: int) -> None:
    """Raise `InvalidPolicy` for limits that are too small to write notes."""
    if max_output_tokens < 1:
        raise InvalidSetting("max_output_tokens", max_output_tokens, "use 1 or more")
    if max_input_tokens < MIN_INPUT_TOKENS:
        raise InvalidPolicy(
            f"max_input_tokens={max_input_tokens:,} leaves no room beside the instructions: "
            f"use {MIN_INPUT_TOKENS:,} or more"
        )


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
    unit = int("1".ljust(len(str(whole)) - 1, "0"))
    return whole // unit * unit
