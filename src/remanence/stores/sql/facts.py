"""Facts of users: each belongs to one owner, and every statement names that owner."""

import itertools
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import LiteralString

from remanence.stores import transitions
from remanence.stores.rows import FACTS, NO_LIMIT, Row, decode_time, encode_instant, plain_summary
from remanence.stores.sql import events, ranking, states
from remanence.stores.sql.connection import Connection
from remanence.types import ConversationRef, Fact, FactChanges, FactsPin, MemoryState, Owner

_FROM: LiteralString = "FROM facts JOIN fact_owners ON fact_owners.key = owner "
_SELECT: LiteralString = f'SELECT tenant, "user", {FACTS.columns} {_FROM}'
_SELECT_KEYS: LiteralString = "SELECT owner, facts.key, id " + _FROM
_OF_OWNER: LiteralString = 'WHERE tenant = ? AND "user" = ? '


def _fact(row: Row) -> Fact:
    tenant, user, *values = row
    return FACTS.decode(values, tenant=tenant, user=user)


def of_owner(
    connection: Connection,
    owner: Owner,
    *,
    history: bool = False,
    after: str | None = None,
    limit: int | None = None,
) -> tuple[Fact, ...]:
    end: int | None = connection.execute(
        "SELECT facts.key " + _FROM + _OF_OWNER + "AND id = ?", (*owner, after)
    ).get
    rows = connection.execute(
        _SELECT + _OF_OWNER + "AND (valid_to IS NULL OR ?) AND (facts.key < ? OR ?) "
        "ORDER BY facts.key DESC LIMIT ?",
        (*owner, history, end, after is None, NO_LIMIT if limit is None else limit),
    )
    return tuple(_fact(row) for row in rows)


def one(connection: Connection, owner: Owner, fact_id: str) -> Fact | None:
    row = connection.execute(_SELECT + _OF_OWNER + "AND id = ?", (*owner, fact_id)).fetchone()
    return _fact(row) if row else None


def find(connection: Connection, owner: Owner, query: str, *, limit: int) -> tuple[Fact, ...]:
    key = _key(connection, owner)
    if key is None or limit < 1:
        return ()
    texts: int = connection.execute(
        "SELECT count(*) FROM facts WHERE owner = ? AND valid_to IS NULL", (key,)
    ).get
    matches = ranking.rank(connection, "facts_index", [scope(key)], query, texts=texts)
    return by_rank(connection, owner, matches, limit=limit)


def by_rank(
    connection: Connection, owner: Owner, matches: Iterable[tuple[int, float]], *, limit: int
) -> tuple[Fact, ...]:
    """Return the owner's facts with the first keys of *matches*; all of them must exist."""
    select = _SELECT + _OF_OWNER + "AND facts.key = ?"
    return tuple(
        _fact(connection.execute(select, (*owner, key)).fetchone())
        for key, _ in itertools.islice(matches, limit)
    )


def save(connection: Connection, changes: FactChanges) -> tuple[Fact, ...] | None:
    saved = _save(connection, changes)
    new = [fact for fact in changes.facts if fact in saved] if saved else []
    if new:
        owner, at = new[0].owner, new[0].created_at
        data = {"facts": len(new), "replaced": len(changes.replaced)}
        events.add(connection, "facts", at, data, about=owner.tenant, user=owner.user)
    return saved


def _save(connection: Connection, changes: FactChanges) -> tuple[Fact, ...] | None:
    for owner in {fact.owner for fact in changes.facts}:
        connection.lock(owner)
    saved: list[Fact] = []
    if changes.facts and changes.newest is not None:
        current = of_owner(connection, changes.facts[0].owner, limit=1)
        if changes.newest != "".join(fact.id for fact in current):
            return None
    for old_id in changes.replaced:
        known = one(connection, changes.facts[0].owner, old_id)
        if known is None or known.valid_to is not None:
            return None
    for fact in changes.facts:
        owner_key = _create_key(connection, fact.owner)
        saved.append(_insert(connection, owner_key, fact))
        for old_id, new_id in changes.replaced.items():
            if new_id == fact.id:
                _supersede(connection, owner_key, old_id, saved[-1])
    return tuple(saved)


def commit(
    connection: Connection,
    state: MemoryState,
    changes: FactChanges,
    *,
    facts_seq: int,
    at: datetime,
) -> MemoryState | None:
    current = states.current(connection, state)
    after = transitions.after_facts(current, state, facts_seq=facts_seq)
    if after is None or _save(connection, changes) is None:
        return None
    detail = (
        f"notes up to {facts_seq} gave {len(changes.facts)} facts, "
        f"which replaced {len(changes.replaced)}"
    )
    data = {"facts": len(changes.facts), "replaced": len(changes.replaced), "facts_seq": facts_seq}
    states.write(connection, after, "facts", at, detail, data)
    return after


def forget(connection: Connection, owner: Owner, fact_id: str, *, at: datetime) -> bool:
    connection.lock(owner)
    key = _key(connection, owner)
    rows: Sequence[Row] = connection.execute(
        "WITH RECURSIVE gone (key, id) AS ("
        "SELECT key, id FROM facts WHERE owner = ? AND id = ? UNION "
        "SELECT facts.key, facts.id FROM facts JOIN gone ON superseded_by = gone.id "
        "WHERE owner = ?) SELECT key FROM gone",
        (key, fact_id, key),
    ).fetchall()
    _erase(connection, key, rows)
    if rows:
        data = {"facts": len(rows)}
        events.add(connection, "forgotten", at, data, about=owner.tenant, user=owner.user)
    return bool(rows)


def erase_of_conversation(connection: Connection, ref: ConversationRef) -> None:
    """Erase the facts from a conversation; facts that they superseded become current again."""
    rows = connection.execute(_SELECT_KEYS + "WHERE tenant = ? AND conversation = ?", ref)
    _erase_and_revive(connection, rows.fetchall())


def erase(connection: Connection, owner: Owner, fact_ids: Sequence[str]) -> None:
    """Erase an owner's facts; others that they superseded become current again."""
    connection.lock(owner)
    rows: list[Row] = []
    for fact_id in fact_ids:
        rows += connection.execute(_SELECT_KEYS + _OF_OWNER + "AND id = ?", (*owner, fact_id))
    _erase_and_revive(connection, rows)


def forget_owner(connection: Connection, owner: Owner) -> int:
    """Erase an owner with all facts, and return their number."""
    connection.lock(owner)
    key = _key(connection, owner)
    rows = connection.execute("SELECT key FROM facts WHERE owner = ?", (key,)).fetchall()
    _erase(connection, key, rows)
    connection.execute("DELETE FROM fact_owners WHERE key = ?", (key,))
    return len(rows)


def _pass_on(connection: Connection, owner_key: int, key: int, fact_id: str) -> None:
    """Have a fact's successor, if it has one, supersede what the fact had superseded."""
    connection.execute(
        "UPDATE facts SET superseded_by = later.id FROM facts AS mine JOIN facts AS later "
        "ON later.owner = mine.owner AND later.id = mine.superseded_by "
        "WHERE mine.key = ? AND facts.owner = ? AND facts.superseded_by = ?",
        (key, owner_key, fact_id),
    )


def _erase_and_revive(connection: Connection, rows: Sequence[Row]) -> None:
    for owner_key, key, fact_id in rows:
        _pass_on(connection, owner_key, key, fact_id)
        _erase(connection, owner_key, [(key,)])
        revived: Sequence[Row] = connection.execute(
            "UPDATE facts SET valid_to = NULL, superseded_by = NULL "
            "WHERE owner = ? AND superseded_by = ? AND NOT EXISTS (SELECT 1 FROM facts AS same "
            "WHERE same.owner = facts.owner AND same.plain = facts.plain "
            "AND same.valid_to IS NULL) RETURNING key, summary",
            (owner_key, fact_id),
        ).fetchall()
        for revived_key, summary in revived:
            connection.add_words("facts_index", revived_key, scope(owner_key), summary)
            connection.execute(  # so that this fact gets a vector again
                "UPDATE vector_cursors SET cursor = ? WHERE subject = 'fact' AND cursor >= ?",
                (revived_key - 1, revived_key),
            )


def pin(connection: Connection, state: MemoryState, owner: Owner, pin: FactsPin) -> bool:
    if states.current(connection, state) is None:
        return False
    connection.execute(
        "INSERT INTO facts_pins (conversation, owner, marker, text, at) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (conversation) DO UPDATE SET owner = excluded.owner, "
        "marker = excluded.marker, text = excluded.text, at = excluded.at",
        (state.key, _create_key(connection, owner), pin.marker, pin.text, encode_instant(pin.at)),
    )
    return True


def read_pin(connection: Connection, conversation: int) -> FactsPin | None:
    """Return the facts that a conversation's contexts show."""
    row = connection.execute(
        "SELECT marker, text, at FROM facts_pins WHERE conversation = ?", (conversation,)
    ).fetchone()
    return FactsPin(marker=row[0], text=row[1], at=decode_time(row[2])) if row else None


def _insert(connection: Connection, owner_key: int, fact: Fact) -> Fact:
    plain = plain_summary(fact.summary)
    known = connection.execute(
        _SELECT + "WHERE owner = ? AND plain = ? AND valid_to IS NULL", (owner_key, plain)
    ).fetchone()
    if known is not None:
        return _fact(known)
    key: int = connection.execute(
        f"INSERT INTO facts (owner, plain, {FACTS.columns}) VALUES (?, ?, {FACTS.places}) "  # noqa: S608 - constants
        "RETURNING key",
        (owner_key, plain, *FACTS.encode(fact)),
    ).get
    connection.add_words("facts_index", key, scope(owner_key), fact.summary)
    return fact


def _supersede(connection: Connection, owner_key: int, old_id: str, new: Fact) -> None:
    key: int = connection.execute(
        "UPDATE facts SET valid_to = ?, superseded_by = ? WHERE owner = ? AND id = ? RETURNING key",
        (encode_instant(new.valid_from), new.id, owner_key, old_id),
    ).get
    connection.remove_words("facts_index", [key])
    connection.execute("DELETE FROM fact_vectors WHERE fact = ?", (key,))


def _erase(connection: Connection, owner_key: int | None, rows: Sequence[Row]) -> None:
    """Erase facts with their words, and every pin that may show them; void work that knows them."""
    connection.remove_words("facts_index", [key for (key,) in rows])
    for row in rows:
        connection.execute("DELETE FROM facts WHERE key = ?", row)
    if rows:
        connection.execute("DELETE FROM facts_pins WHERE owner = ?", (owner_key,))
        connection.execute(
            "UPDATE states SET erasures = erasures + 1 WHERE conversation IN ("
            "SELECT conversations.key FROM conversations JOIN fact_owners "
            "ON fact_owners.tenant = conversations.tenant "
            'AND fact_owners."user" = conversations."user" WHERE fact_owners.key = ?)',
            (owner_key,),
        )


def _key(connection: Connection, owner: Owner) -> int | None:
    key: int | None = connection.execute(
        'SELECT key FROM fact_owners WHERE tenant = ? AND "user" = ?', owner
    ).get
    return key


def _create_key(connection: Connection, owner: Owner) -> int:
    connection.execute(
        'INSERT INTO fact_owners (tenant, "user") VALUES (?, ?) ON CONFLICT DO NOTHING', owner
    )
    key = _key(connection, owner)
    assert key is not None
    return key


def scope(owner_key: int) -> str:
    """Return the word that a user's facts share in their index."""
    return f"u{owner_key}"
