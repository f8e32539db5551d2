"""Words after a reply: whether they become a fact, and end the statement that they give another value.

`unseen_revisions.txt` has a line per exchange in the form of `data/facts/<language>/revisions.txt`,
with the language before it, `-` for no statement, and `*` also before a reply that the words answer
or take up. Words of other lines make no fact. It was measured once, with the final weights; nothing
may be fitted to it.
"""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from benchmarks.rows import Row, show
from remanence import Message
from remanence.facts import ExtractiveFacts, merge_facts
from remanence.protocols import ExtractRequest
from remanence.testing import FixedClock
from remanence.types import ConversationRef, Owner

UNSEEN = Path(__file__).with_name("unseen_revisions.txt")
HASTY = Path(__file__).with_name("unseen_revisions_hasty.txt")
_AT = datetime(2026, 5, 1, 10, 0, tzinfo=UTC)


class Outcome(NamedTuple):
    """An exchange: whether a fact was to be made and was, and which statements were to end and did."""

    makes_fact: bool
    made: bool
    revised: frozenset[str]
    stated: frozenset[str]
    ended: frozenset[str]


def measure() -> list[Row]:
    """Shares of the exchanges that make facts, and of the statements that these end."""
    found, hasty = _outcomes(UNSEEN), _outcomes(HASTY)
    return [
        *_ended(found, ""),
        *_ended(hasty, ", typed in haste"),
        _row("answers, acceptances and revisions kept", [o.made for o in found if o.makes_fact]),
        _row(
            "other words after a reply that become facts",
            [o.made for o in found if not o.makes_fact],
        ),
    ]


def _outcomes(path: Path) -> list[Outcome]:
    return [asyncio.run(_outcome(line)) for line in path.read_text("utf-8").splitlines()]


def _ended(found: Sequence[Outcome], how: str) -> list[Row]:
    revised = [text in one.ended for one in found for text in one.revised]
    others = [text in one.ended for one in found for text in one.stated - one.revised]
    return [
        _row(f"statements that end, as words after a reply revise them{how}", revised),
        _row(f"other statements before a reply that end{how}", others, target=0.0),
    ]


async def _outcome(line: str) -> Outcome:
    said, reply, words = line.partition(" ")[2].split(" >> ")
    marked = [] if said == "-" else said.split(" // ")
    stated = [text.removeprefix("*") for text in marked]
    messages = [
        *map(Message.user, stated),
        Message.assistant(reply.removeprefix("*")),
        Message.user(words),
    ]
    extractor = ExtractiveFacts()
    drafts = await extractor.extract(
        ExtractRequest(
            conversation=(conversation := ConversationRef("default", "a")),
            user="ana",
            messages=tuple(
                message.replace(seq=seq, created_at=_AT + timedelta(minutes=seq), tokens=10)
                for seq, message in enumerate(messages, start=1)
            ),
            notes=(),
            known=(),
            now=_AT,
        )
    )
    changes = merge_facts(
        drafts,
        (),
        owner=Owner("default", "ana"),
        source=conversation,
        made_by=extractor.name,
        clock=FixedClock(_AT),
    )
    return Outcome(
        makes_fact="*" in line,
        made=any(draft.last_seq == len(messages) for draft in drafts),
        revised=frozenset(text[1:] for text in marked if text.startswith("*")),
        stated=frozenset(stated),
        ended=frozenset(fact.summary for fact in changes.facts if fact.id in changes.replaced),
    )


def _row(what: str, found: Sequence[bool], *, target: float | None = None) -> Row:
    return Row(
        what=what,
        measured=100 * sum(found) / len(found),
        unit="%",
        target=target,
        detail=f"{sum(found)} of {len(found)}",
    )


if __name__ == "__main__":
    show(measure())
