"""Consistency checks of a memory's tables: coverage by segments, token accounts, cursors, words."""

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import LiteralString

from remanence.policy.diagnosis import flush_command
from remanence.policy.schedule import MAX_AHEAD
from remanence.stores.rows import (
    FACTS,
    LOG,
    MESSAGES,
    REPETITIONS,
    SEGMENTS,
    STATE_COLUMNS,
    Row,
    decode_failed,
    encode_instant,
    state_from_row,
)
from remanence.stores.sql.connection import Connection, WordIndex
from remanence.stores.sql.search import MAX_NOTES
from remanence.stores.transitions import Span, coverage_fault
from remanence.types import ConversationRef, Problem

_RESTORE = "restore a backup from before the damage"
_NOBODY = {"tenant": "", "user": ""}  # decoding a fact needs an owner

_STATES: LiteralString = f"{STATE_COLUMNS} FROM conversations JOIN states ON conversation = key"
_DECODED: tuple[tuple[str, LiteralString, Callable[[Row], object]], ...] = (
    ("state", f"conversation, key, {_STATES}", state_from_row),
    ("message", f"conversation, seq, {MESSAGES.columns} FROM messages", MESSAGES.decode),
    ("segment", f"conversation, id, {SEGMENTS.columns} FROM segments", SEGMENTS.decode),
    ("log entry", f"conversation, version, {LOG.columns} FROM journal", LOG.decode),
    ("fact", f"NULL, id, {FACTS.columns} FROM facts", partial(FACTS.decode, **_NOBODY)),
    (
        "repetition",
        f"NULL, id, {REPETITIONS.columns} FROM fact_repetitions",
        partial(REPETITIONS.decode, **_NOBODY),
    ),
)
"""For each kind of row: its name, the columns to select after conversation and place, its decoder."""

_INDEXED: tuple[tuple[str, WordIndex, LiteralString, LiteralString], ...] = (
    (
        "messages",
        "text_index",
        "messages.key",
        "messages JOIN states USING (conversation) WHERE kind = 'message' AND seq <= indexed_seq",
    ),
    (
        "live segments of notes",
        "text_index",
        f"-segments.key * {MAX_NOTES}",
        "segments WHERE superseded IS NULL",
    ),
    ("current facts", "facts_index", "facts.key", "facts WHERE valid_to IS NULL"),
)
"""For each kind of text: its name, its index, its key there, and its rows that are indexed."""

COPY = (
    "copy the memory to a new database, which indexes all words anew: "
    "remanence copy URL sqlite:///new.db"
)

_FAULTS: dict[str, LiteralString] = {
    "the row of its state is missing, so it cannot go on": (
        "SELECT tenant, id FROM conversations LEFT JOIN states ON conversation = key "
        "WHERE conversation IS NULL"
    ),
    "the tape has {} messages numbered {}..{}, not 1..{}": (
        "SELECT tenant, conversations.id, count(seq), min(seq), max(seq), last_seq "
        "FROM conversations JOIN states ON states.conversation = conversations.key "
        "LEFT JOIN messages ON messages.conversation = conversations.key "
        "GROUP BY conversations.key, states.conversation "
        "HAVING count(seq) != last_seq OR max(seq) != last_seq OR min(seq) != 1"
    ),
    "the token sums are wrong from message {} on": (
        "SELECT tenant, conversations.id, min(seq) FROM (SELECT conversation, seq, "
        "sum_tokens != tokens + lag(sum_tokens, 1, 0) OVER (PARTITION BY conversation ORDER BY seq)"
        " AS off FROM messages) AS sums JOIN conversations ON conversations.key = conversation "
        "WHERE off GROUP BY conversations.key"
    ),
    (
        "the cursors are out of order: reflected_seq={}, active_seq={}, observed_seq={}, "
        "last_seq={}, tail_seq={}"
    ): (
        "SELECT tenant, id, reflected_seq, active_seq, observed_seq, last_seq, tail_seq "
        "FROM conversations JOIN states ON conversation = key WHERE reflected_seq < 0 "
        "OR reflected_seq > active_seq OR active_seq > observed_seq OR observed_seq > last_seq "
        "OR tail_seq < 1 OR tail_seq > active_seq + 1"
    ),
    "{}_sum_tokens is {}, and the tape counts {}": (
        "SELECT tenant, id, name, account, coalesce(sum_tokens, 0) FROM ("
        "SELECT conversation, 'last' AS name, last_seq AS at, last_sum_tokens AS account "
        "FROM states UNION ALL "
        "SELECT conversation, 'observed', observed_seq, observed_sum_tokens FROM states UNION ALL "
        "SELECT conversation, 'active', active_seq, active_sum_tokens FROM states UNION ALL "
        "SELECT conversation, 'tail', tail_seq - 1, tail_sum_tokens FROM states) AS accounts "
        "JOIN conversations ON conversations.key = accounts.conversation "
        "LEFT JOIN (SELECT conversation, seq, sum_tokens FROM messages) AS tape "
        "ON tape.conversation = accounts.conversation AND seq = at "
        "WHERE account != coalesce(sum_tokens, 0)"
    ),
    "message {} has the digest of a forgotten message, but is not a tombstone": (
        "SELECT tenant, conversations.id, seq FROM messages JOIN conversations "
        "ON conversations.key = conversation WHERE digest IS NOT NULL AND kind != 'forgotten'"
    ),
}
"""The message of each fault, and the query that finds it."""


def inconsistencies(
    connection: Connection, indexed: LiteralString, *, now: datetime
) -> Iterator[Problem]:
    """Yield the inconsistencies of the tables that all backends share.

    *indexed* begins a query for a text of an index, whose name has the place `{}`; a key ends it.
    """
    yield from _undecodable_rows(connection)
    for fault, select in _FAULTS.items():
        for tenant, id_, *values in connection.execute(select):
            yield problem(ConversationRef(tenant, id_), fault.format(*values))
    yield from _coverage(connection)
    yield from _failed_stretches(connection)
    yield from _missing_words(connection, indexed)
    yield from _facts_ahead(connection, now)


def _missing_words(connection: Connection, indexed: LiteralString) -> Iterator[Problem]:
    """Yield the numbers of texts that an index lacks; no step adds them again."""
    for name, index, key, rows in _INDEXED:
        missing: int = connection.execute(
            f"SELECT count(*) FROM {rows} AND NOT EXISTS ({indexed.format(index)} = {key})"  # noqa: S608 - constants
        ).get
        if missing:
            what = f"{index} lacks {missing} {name}, which a search does not find by their words"
            yield Problem(conversation=None, level="error", what=what, remedy=COPY)


def _facts_ahead(connection: Connection, now: datetime) -> Iterator[Problem]:
    """Yield the users with current facts that a clock dated ahead."""
    rows = connection.execute(
        'SELECT "user", tenant, count(*), max(valid_from) FROM facts JOIN fact_owners '
        "ON fact_owners.key = owner WHERE valid_to IS NULL AND valid_from BETWEEN ? AND '9999-12-32' "
        'GROUP BY tenant, "user" ORDER BY tenant, "user"',
        (encode_instant(now + MAX_AHEAD),),
    )
    for user, tenant, count, latest in rows:
        yield Problem(
            conversation=None,
            level="warning",
            what=f"current facts of user {user!r} of tenant {tenant!r} that a wrong clock dated ahead: "
            f"{count}, up to {latest[:10]}",
            remedy="they count as written right after the facts before them; if one is not true, correct it",
        )


def _undecodable_rows(connection: Connection) -> Iterator[Problem]:
    for name, columns, decode in _DECODED:
        for conversation, place, *row in connection.execute("SELECT " + columns):
            try:
                decode(row)
            except Exception as error:  # noqa: BLE001 - a damaged row may fail in any way
                why = error.__cause__ or error
                ref = connection.execute(
                    "SELECT tenant, id FROM conversations WHERE key = ?", (conversation,)
                ).fetchone()
                what = f"{name} {place} cannot be read: {type(why).__name__}: {why}"
                yield problem(ConversationRef(*ref) if ref else None, what)


def _coverage(connection: Connection) -> Iterator[Problem]:
    rows = connection.execute(
        "SELECT tenant, conversations.id, reflected_seq, observed_seq, segments.id, generation, "
        "first_seq, segments.last_seq FROM conversations "
        "JOIN states ON states.conversation = conversations.key "
        "LEFT JOIN segments ON segments.conversation = conversations.key AND superseded IS NULL "
        "ORDER BY states.conversation, first_seq"
    )
    for (tenant, id_, reflected_seq, observed_seq), group in groupby(rows, lambda row: row[:4]):
        spans = [Span(*row[4:]) for row in group if row[4] is not None]
        fault = coverage_fault(spans, reflected_seq=reflected_seq, observed_seq=observed_seq)
        if fault is not None:
            yield problem(ConversationRef(tenant, id_), fault)


def _failed_stretches(connection: Connection) -> Iterator[Problem]:
    """Yield stretches that could not be observed; those in reflections are not retried."""
    rows = connection.execute(
        "SELECT tenant, conversations.id, generation, failed FROM segments "
        "JOIN conversations ON conversations.key = conversation "
        "WHERE superseded IS NULL AND failed != '[]' ORDER BY conversation, first_seq"
    )
    for tenant, id_, generation, failed in rows:
        ref = ConversationRef(tenant, id_)
        command = f"'{flush_command(ref)} --retry' or flush(retry=True)"
        retry = "" if generation else f", and {command} tries to observe them again"
        for first_seq, last_seq, reason, message in decode_failed(failed):
            yield Problem(
                conversation=ref,
                level="warning",
                what=f"messages {first_seq}..{last_seq} have no notes because every attempt failed: "
                f"{reason}: {message}",
                remedy=f"they stay on the tape, where recall finds them{retry}",
            )


def problem(ref: ConversationRef | None, what: str) -> Problem:
    """Return damage to a conversation, or to the database, that only a backup repairs."""
    return Problem(conversation=ref, level="error", what=what, remedy=_RESTORE)
