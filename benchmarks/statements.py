"""How many statements about a user are no facts, and how many that are none become facts.

The table was read while the scores were fitted: it shows a loss of quality, not the quality.
"""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.rows import Row, show
from remanence import Message
from remanence.facts import ExtractiveFacts
from remanence.protocols import ExtractRequest
from remanence.types import ConversationRef

TABLE = Path(__file__).with_name("statements.tsv")
"""A line per statement: `keep` or `drop`, the language, the text. No statement is in `data/notes`."""
SAID_AT = datetime(2026, 5, 1, 10, 0, tzinfo=UTC)


def measure() -> list[Row]:
    """Shares of the statements that were judged wrongly, each alone in its conversation."""
    found = asyncio.run(_kept())
    rows = []
    for wanted, what, target in (("keep", "facts lost", 15.0), ("drop", "false facts", 2.0)):
        wrong = [is_kept != (want == "keep") for want, _, is_kept in found if want == wanted]
        rows.append(
            Row(
                what=what,
                measured=100 * sum(wrong) / len(wrong),
                unit="%",
                target=target,
                detail=f"{len(wrong)} statements in 16 languages",
            )
        )
    return rows


async def _kept() -> list[tuple[str, str, bool]]:
    extractor = ExtractiveFacts()
    found = []
    for line in TABLE.read_text("utf-8").splitlines():
        wanted, _, text = line.split("\t")
        drafts = await extractor.extract(_request(text))
        found.append((wanted, text, bool(drafts)))
    return found


def _request(text: str) -> ExtractRequest:
    message = Message.user(text, created_at=SAID_AT).replace(seq=1, tokens=len(text) // 4)
    return ExtractRequest(
        conversation=ConversationRef("default", "a"),
        user="ana",
        messages=(message,),
        notes=(),
        known=(),
        now=SAID_AT,
    )


if __name__ == "__main__":
    show(measure())
