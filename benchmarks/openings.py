"""Messages whose opening says whose words follow: the user's that are lost as facts, others' that are kept.

The messages are the lines of `data/openings` that are set aside: nothing may be fitted to them.
"""

import asyncio
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tools import train_openings
from tools.train_openings import Opening

from benchmarks.rows import Row, show
from remanence import Message
from remanence.facts import ExtractiveFacts
from remanence.protocols import ExtractRequest
from remanence.types import ConversationRef

_AT = datetime(2026, 5, 1, 10, 0, tzinfo=UTC)
_WORD = re.compile(r"\w+")


def measure() -> list[Row]:
    """Shares of the messages of either kind that are read as the other."""
    return [
        *_rows(train_openings.ROOT, "an opening"),
        *_rows(train_openings.NEAR, "a near opening"),
    ]


def _rows(folder: Path, what: str) -> Iterator[Row]:
    apart = [one for one in train_openings.openings(folder) if one.is_apart]
    own = [one for one in apart if not one.hands_over]
    others = [one for one in apart if one.hands_over]
    kept, taken = (asyncio.run(_count_kept(messages)) for messages in (own, others))
    yield _row(f"own words behind {what} that are lost as facts", len(own) - kept, len(own))
    yield _row(f"others' words behind {what} that become facts", taken, len(others))


async def _count_kept(messages: Sequence[Opening]) -> int:
    extractor = ExtractiveFacts()
    kept = 0
    for one in messages:
        words = _words(one.following) - _words(one.text)
        drafts = await extractor.extract(_request(one.message))
        kept += any(words & _words(draft.summary) for draft in drafts)
    return kept


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def _request(text: str) -> ExtractRequest:
    message = Message.user(text).replace(seq=1, created_at=_AT, tokens=len(text) // 4)
    return ExtractRequest(
        conversation=ConversationRef("default", "a"),
        user="ana",
        messages=(message,),
        notes=(),
        known=(),
        now=_AT,
    )


def _row(what: str, wrong: int, count: int) -> Row:
    return Row(
        what=what, measured=100 * wrong / count, unit="%", detail=f"{wrong} of {count} messages"
    )


if __name__ == "__main__":
    show(measure())
