"""Statements about a user that are lost as facts, others that become facts, and dates in notes.

`statements.tsv` was read while the scores were fitted: it shows a loss of quality, not the quality.
`unseen_statements.tsv` and `unseen_statements_2.tsv` were written by two hands that had seen neither
code nor data; nothing may be fitted to them. Their statements that are no facts are traps:
translations, quotes, role play, hypotheses, sarcasm, questions, other people. The figures of the first
were seen while the cutoff of statements was chosen; those of the second were seen afterwards, for it
and for three stricter ones, and it stayed.
"""

import asyncio
import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from benchmarks.rows import Row, show
from remanence import Memory, Message
from remanence.facts import ExtractiveFacts
from remanence.facts.wishes import INSTRUCTION, PREFERENCE
from remanence.observers.learned.score import scorer
from remanence.observers.spoken import spoken_lines
from remanence.protocols import ExtractRequest
from remanence.testing import FixedClock
from remanence.types import ConversationRef, FactDraft

READ = Path(__file__).with_name("statements.tsv")
"""A line per statement: `keep` or `drop`, the language, the text. No statement is in `data/notes`."""
UNSEEN = {
    "of unseen statements": Path(__file__).with_name("unseen_statements.tsv"),
    "of unseen statements by another hand": Path(__file__).with_name("unseen_statements_2.tsv"),
}
EVERYDAY = Path(__file__).with_name("unseen_everyday.tsv")
"""In the form of `READ`: a fifth of the lines in `data/notes/*/everyday.txt`, alike in all languages,
and all of Korean and Polish, set aside before any fit by the hand that wrote them."""
HASTY = Path(__file__).with_name("unseen_hasty.tsv")
"""In the form of `READ`: what people type in haste, alone, by the three hands of
`data/notes/*/hasty.txt`, set aside before any fit; Korean and Polish have no such talks to fit."""
ASKING = Path(__file__).with_name("unseen_asking.tsv")
"""In the form of `READ`: sentences that ask, in ten languages; what is kept states something before
or behind its question. Written before how such sentences are split, which was never changed for it."""
PLAIN = Path(__file__).with_name("unseen_plain.tsv")
"""In the form of `READ`: plain short statements, and others as short, by the three hands of
`data/notes/*/plain.txt`, set aside before any fit; Korean and Polish have no such lines to fit."""
FIRST = Path(__file__).with_name("unseen_first.tsv")
"""In the form of `READ`: what people type first about themselves, a quarter with a question behind it, and
as plain messages that say nothing of them, by a hand that wrote nothing else."""
MESSAGES = Path(__file__).with_name("unseen_messages.tsv")
"""In the form of `READ`: messages of one to five sentences, by the five hands of
`data/notes/*/messages.txt`, set aside before any fit; Korean and Polish have no such messages to fit."""
TYPICAL = Path(__file__).with_name("unseen_typical.tsv")
"""In the form of `READ`: the most typical statements and remarks, by the three hands of
`data/notes/*/typical.txt`, set aside before any fit; Korean and Polish have no such lines to fit."""
COMMON = Path(__file__).with_name("unseen_common.tsv")
"""In the form of `READ`: everyday words in the plainest frames, by the three hands of
`data/notes/*/common.txt`, set aside before any fit; alike in the languages of a hand."""
STYLE = Path(__file__).with_name("unseen_style.tsv")
"""In the form of `READ`: how the assistant shall answer the user, beside tasks of the moment, by the four
hands of `data/notes/*/style.txt`, set aside before any fit; Korean and Polish have no such lines to fit."""
BORROWED = Path(__file__).with_name("unseen_borrowed.tsv")
"""In the form of `READ`: texts to translate, drafts, games, dreams, hypotheses and other people's words,
beside true statements in the same wording, by three hands in sixteen languages; the situations of
English, German, Dutch, Arabic and Hindi, and those of Russian and Turkish, are often alike."""
ANSWERS = Path(__file__).with_name("unseen_answers.tsv")
"""Messages of users and what the assistant had said before: answers, changes, lasting rules, and
answers in games and exercises, tasks and choices. Written by a third hand, and measured some ten
times, with each set of sentences that was added to the corpus and with two more sets of features,
which were not taken."""
SAID_AT = datetime(2026, 5, 1, 10, 0, tzinfo=UTC)
_WISHES = frozenset({INSTRUCTION, PREFERENCE})
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


class Statement(NamedTuple):
    """A text of a user; `states` is true for a fact, false for none, None for what may be either.

    `is_ambiguous`, if a day that it names has two readings.
    """

    text: str
    at: datetime
    states: bool | None
    date: str = ""
    is_ambiguous: bool = False
    before: str = ""
    """What the assistant said before."""
    is_rule: bool = False


def measure() -> list[Row]:
    """Shares of the statements that were judged wrongly, each alone in its conversation."""
    rows = [*_rows(list(_read(READ)), "of a table that was read")]
    rows += _rows(list(_read(EVERYDAY)), "of unseen everyday messages")
    rows += _rows(list(_read(HASTY)), "of unseen messages typed in haste")
    rows += _rows(list(_read(PLAIN)), "of unseen plain statements")
    rows += _rows(list(_read(FIRST)), "of unseen first messages")
    rows += _rows(list(_read(TYPICAL)), "of unseen typical statements")
    rows += _rows(list(_read(COMMON)), "of unseen common words in plain frames")
    rows += _rows(list(_read(MESSAGES)), "of unseen messages of several sentences")
    rows += [*_rows(list(_read(STYLE)), "of unseen wishes on answers"), _row_of_wishes()]
    rows += _rows(list(_read(BORROWED)), "of unseen quoted, invented and supposed texts")
    rows += _rows(list(_read(ASKING)), "of unseen sentences that ask")
    for whose, path in UNSEEN.items():
        unseen = list(_unseen(path))
        rows += [*_rows(unseen, whose), asyncio.run(_dates(unseen, whose))]
    answers = list(_answers())
    return [*rows, *_rows(answers, "of unseen answers and rules"), *_rules(answers)]


def _rules(answers: Sequence[Statement]) -> Iterator[Row]:
    """Shares of the rules, and of what is no statement, that are scored as standing instructions."""
    own = scorer()
    taken = [
        any(
            own.over(own.score(line), "inst") >= 0
            for line in spoken_lines(_request(one).messages)
            if line.role == "user"
        )
        for one in answers
    ]
    for what, wanted in (
        ("rules", [one.is_rule for one in answers]),
        ("other texts", [one.states is False for one in answers]),
    ):
        found = [is_taken for is_taken, counts in zip(taken, wanted, strict=True) if counts]
        yield Row(
            what=f"{what} scored as standing instructions, of unseen answers and rules",
            measured=100 * sum(found) / len(found),
            unit="%",
            detail=f"{sum(found)} of {len(found)}",
        )


def _rows(statements: list[Statement], whose: str) -> Iterator[Row]:
    kept = asyncio.run(_kept(statements))
    for states, what, target in ((True, "facts lost", 15.0), (False, "false facts", 2.0)):
        wrong = [
            one != states for one, s in zip(kept, statements, strict=True) if s.states is states
        ]
        yield Row(
            what=f"{what}, {whose}",
            measured=100 * sum(wrong) / len(wrong),
            unit="%",
            target=target,
            detail=f"{len(wrong)} statements",
        )


def _read(path: Path) -> Iterator[Statement]:
    for line in path.read_text("utf-8").splitlines():
        wanted, _, text = line.split("\t")
        yield Statement(text, SAID_AT, wanted == "keep")


def _unseen(path: Path) -> Iterator[Statement]:
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            states = True if row["fact"] else None if row["keep"] == "yes" else False
            at = datetime.fromisoformat(row["said_at"])
            is_ambiguous = row["note"] == "ambiguous"
            yield Statement(row["text"], at, states, row["event_date"], is_ambiguous)


def _answers() -> Iterator[Statement]:
    with ANSWERS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            yield Statement(
                row["text"],
                SAID_AT,
                row["keep"] == "yes",
                before=row["before"],
                is_rule=row["note"] == "rule",
            )


async def _kept(statements: Iterable[Statement]) -> list[bool]:
    return [any(map(_is_fact, drafts)) for drafts in await _drafts(statements)]


def _is_fact(draft: FactDraft) -> bool:
    """Return whether a memory that knows nothing keeps a draft: a request only if it is a wish."""
    return not draft.forgets or PREFERENCE in draft.tags


async def _drafts(statements: Iterable[Statement]) -> list[tuple[FactDraft, ...]]:
    extractor = ExtractiveFacts()
    return [await extractor.extract(_request(one)) for one in statements]


def _row_of_wishes() -> Row:
    """The share of the kept wishes on answers that are shown as wishes, and not as information."""
    wishes = [one for one in _read(STYLE) if one.states]
    made = asyncio.run(_drafts(wishes))
    kept = [drafts for drafts in made if drafts]
    marked = [any(_WISHES.intersection(draft.tags) for draft in drafts) for drafts in kept]
    return Row(
        what="kept wishes that are marked as such, of unseen wishes on answers",
        measured=100 * sum(marked) / len(marked),
        unit="%",
        detail=f"{sum(marked)} of {len(marked)}",
    )


async def _dates(statements: list[Statement], whose: str) -> Row:
    """The dates that notes give and the statement does not: right, or another day."""
    right = other = guessed = 0
    for one in statements:
        async with Memory.open("sqlite:///:memory:", clock=FixedClock(one.at)) as memory:
            chat = memory.conversation("a")
            await chat.append(Message.user(one.text, created_at=one.at))
            await chat.end()
            notes = "\n".join(segment.text for segment in await chat.observations())
        said = {*_DATE.findall(one.text), one.at.date().isoformat()}
        found = {*_DATE.findall(notes)} - said
        right += one.date in found
        other += bool(one.date and found - {one.date})
        guessed += one.is_ambiguous and bool(found)
    dated = sum(bool(one.date) for one in statements)
    unsure = sum(one.is_ambiguous for one in statements)
    return Row(
        what=f"notes with a day that the statement does not say, {whose}",
        measured=100 * (other + guessed) / (dated + unsure),
        unit="%",
        target=0.0,
        detail=f"{other} of {dated} dated statements, {right} with the day, the others in words; "
        f"{guessed} of {unsure} with two readings got a date",
    )


def _request(one: Statement) -> ExtractRequest:
    said = [Message.assistant(one.before)] if one.before else []
    said.append(Message.user(one.text))
    return ExtractRequest(
        conversation=ConversationRef("default", "a"),
        user="ana",
        messages=tuple(
            message.replace(seq=seq, created_at=one.at, tokens=len(message.text) // 4)
            for seq, message in enumerate(said, start=1)
        ),
        notes=(),
        known=(),
        now=one.at,
    )


if __name__ == "__main__":
    show(measure())
