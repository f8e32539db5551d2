"""How much a model is given and may write."""

from remanence.errors import InvalidPolicy
from remanence.fields import impossible
from remanence.protocols import CountTokens

LEAST_INPUT_TOKENS = 4_000
HEAD_FACTOR = 1.6
SLACK_TOKENS = 256
"""The heads of lines count for the output limit but not for the target, and a model overshoots."""

TALK_SHARE, NOTE_SHARE = 0.75, 0.9
"""Words of a note for each word of the talk that it is made from, and of earlier notes, at equal
tokens: names, numbers and dates are denser in notes than in talk, and headings stand above them."""

SAMPLE_CHARACTERS = 6_000
LEAST_SAMPLE_CHARACTERS = 400
_LONGEST_WORD = 16


def check_limits(*, max_output_tokens: int, max_input_tokens: int) -> None:
    """Raise `InvalidPolicy` for limits under which no notes can be made."""
    if max_output_tokens < 1:
        raise impossible("max_output_tokens", max_output_tokens, "use 1 or more")
    if max_input_tokens < LEAST_INPUT_TOKENS:
        raise InvalidPolicy(
            f"max_input_tokens={max_input_tokens:,} leaves no room beside the instructions: "
            f"use {LEAST_INPUT_TOKENS:,} or more"
        )


def output_limit(target_tokens: int, most_tokens: int) -> int:
    """The tokens that an answer may take whose lines have *target_tokens* without their heads."""
    return min(most_tokens, int(target_tokens * 1.3 * HEAD_FACTOR) + SLACK_TOKENS)


def length_limit(target_tokens: int, *, notes: str, talk: str, count: CountTokens) -> str:
    """The words that notes of *target_tokens* have, such as `640 words`.

    Measured on notes as they are rendered, or where there are few, on the *talk* that they are made
    from. Text without spaces is measured in characters.
    """
    has_notes = len(notes) >= LEAST_SAMPLE_CHARACTERS
    sample = (notes if has_notes else talk)[:SAMPLE_CHARACTERS] or "some plain words"
    share = target_tokens * (NOTE_SHARE if has_notes else TALK_SHARE) / max(1, count(sample))
    words = len(sample.split())
    if len(sample) > words * _LONGEST_WORD:
        return f"{_round(len(sample) * share):,} characters"
    return f"{_round(words * share):,} words"


def _round(number: float) -> int:
    """Two leading digits, as a limit is no more exact than its estimate."""
    whole = max(1, int(number))
    unit = int("1".ljust(len(str(whole)) - 1, "0"))
    return whole // unit * unit
