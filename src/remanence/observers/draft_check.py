"""Whether an answer is fit to be kept. Nothing here looks at the clock or the database."""

from collections.abc import Sequence

from remanence.errors import ObservationRejected
from remanence.types import Draft

REPEATED_SHARE = 0.5
LEAST_PIECES = 8
RUN = 5


def check_draft(
    draft: Draft, text: str, *, tokens: int, limit_tokens: int, source_text: str
) -> None:
    """Raise `ObservationRejected` unless *text*, the rendered *draft*, may stand for its source.

    Refused are answers that were cut off, are empty without saying that nothing was worth noting,
    exceed their source or budget, or repeat themselves more than the source does.
    """
    if not draft.complete:
        raise ObservationRejected(
            "cut_off",
            f"the answer of {draft.made_by} was cut off after {tokens:,} tokens: raise its output "
            "limit or lower observe_max_tokens",
        )
    if not text.strip():
        if draft.nothing:
            return
        raise ObservationRejected("empty", f"{draft.made_by} gave no notes")
    if tokens > limit_tokens:
        raise ObservationRejected(
            "too_large",
            f"the notes of {draft.made_by} have {tokens:,} tokens; their source or their "
            f"generation's budget has {limit_tokens:,}",
        )
    repeated = repetition(text)
    if repeated >= REPEATED_SHARE and repeated > 2 * repetition(source_text):
        raise ObservationRejected(
            "degenerate", f"{repeated:.0%} of the answer of {draft.made_by} repeats itself"
        )


def repetition(text: str) -> float:
    """The share of a text's lines, or of its runs of five words, that stood before, 0 to 1."""
    words = text.split()
    runs = [" ".join(words[start : start + RUN]) for start in range(len(words) - RUN + 1)]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return max(_find_repetition(lines), _find_repetition(runs))


def _find_repetition(pieces: Sequence[str]) -> float:
    if len(pieces) < LEAST_PIECES:
        return 0.0
    return 1 - len(set(pieces)) / len(pieces)
