"""Facts from what users say after an agent's question: with it where they need it, alone where they do not.

The exchanges are those of `unseen_exchanges.tsv`: nothing may be fitted to them.
"""

import asyncio
import csv
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from benchmarks.rows import Row, show
from remanence import Message
from remanence.facts import ExtractiveFacts
from remanence.protocols import ExtractRequest
from remanence.types import ConversationRef

FILE = Path(__file__).with_name("unseen_exchanges.tsv")
_AT = datetime(2026, 5, 1, 10, 0, tzinfo=UTC)


class Exchange(NamedTuple):
    """The end of an agent's answer and a user's sentence; `need` is `needs` or `alone`."""

    need: str
    language: str
    asked: str
    said: str


def measure() -> list[Row]:
    """Shares of the facts that lack the question, and that quote one in vain."""
    with FILE.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        exchanges = [Exchange(*row) for row in rows]
    needing = [one for one in exchanges if one.need == "needs"]
    alone = [one for one in exchanges if one.need == "alone"]
    return asyncio.run(_measure(needing, alone))


async def _measure(needing: Sequence[Exchange], alone: Sequence[Exchange]) -> list[Row]:
    with_question, bare = await _count(needing)
    quoting, rest = await _count(alone)
    return [
        _row("facts of answers that lack their question", bare, with_question + bare),
        _row("facts of other words that quote a question before", quoting, quoting + rest),
    ]


async def _count(exchanges: Sequence[Exchange]) -> tuple[int, int]:
    """Return how many exchanges give a fact that quotes the agent, and how many another fact."""
    extractor = ExtractiveFacts()
    quoting = bare = 0
    for one in exchanges:
        drafts = await extractor.extract(_request(one))
        quoting += any(draft.first_seq == 1 for draft in drafts)
        bare += bool(drafts) and all(draft.first_seq != 1 for draft in drafts)
    return quoting, bare


def _request(one: Exchange) -> ExtractRequest:
    messages = (Message.assistant(one.asked), Message.user(one.said))
    return ExtractRequest(
        conversation=ConversationRef("default", "a"),
        user="ana",
        messages=tuple(
            message.replace(seq=seq, created_at=_AT, tokens=20)
            for seq, message in enumerate(messages, 1)
        ),
        notes=(),
        known=(),
        now=_AT,
    )


def _row(what: str, wrong: int, count: int) -> Row:
    return Row(
        what=what, measured=100 * wrong / count, unit="%", detail=f"{wrong} of {count} facts"
    )


if __name__ == "__main__":
    show(measure())
