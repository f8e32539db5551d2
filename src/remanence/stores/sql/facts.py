"""Facts of users. Each belongs to one owner, whom every statement names."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import LiteralString

from remanence.stores import transitions
from remanence.stores.rows import (
    FACTS,
    NO_LIMIT,
    PINS,
    REPETITIONS,
    Row,
    encode_instant,
    encode_json,
    plain_summary,
)
from remanence.stores.sql import events, ranking, states
from remanence.stores.sql.connection import Connection
from remanence.types import (
    ConversationRef,
    Erasure,
    EventValue,
    Fact,
    FactChanges,
    FactCondition,
    FactsPin,
    MemoryState,
    Owner,
    Repetition,
)

_FROM: LiteralString = "FROM facts JOIN fact_owners ON fact_owners.key = owner "
_SELECT: LiteralString = f'SELECT tenant, "user", {FACTS.columns} {_FROM}'
_SELECT_KEYS: LiteralString = "SELECT owner, facts.key, id, valid_from " + _FROM
_END: LiteralString = "CASE WHEN valid_from > ? THEN valid_from ELSE ? END"
"""The end of a superseded fact: the start of its successor (bound twice), or its own start if later."""

_OWNERS_CONVERSATIONS: LiteralString = (
    "SELECT conversations.key FROM conversations JOIN fact_owners "
    "ON fact_owners.tenant = conversations.tenant "
    'AND fact_owners."user" = conversations."user" WHERE fact_owners.key = ?'
)
"""The conversations of the user who owns the facts."""

_MAX_MERGED_TAGS = 100
_PAGE_GROWTH = 8
_MAX_PAGE = 1_000

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
    end: int | None = ranking.ALL[1]
    if after is not None:
        end = connection.execute(
            "SELECT facts.key " + _FROM + _OF_OWNER + "AND id = ?", (*owner, after)
        ).get
        if end is None:  # it was erased, but ids sort by creation time, as keys do
            end = connection.execute(
                "SELECT max(facts.key) + 1 " + _FROM + _OF_OWNER + "AND id < ?", (*owner, after)
            ).get
    rows = connection.execute(
        _SELECT + _OF_OWNER + "AND (valid_to IS NULL OR ?) AND facts.key < ? "
        "ORDER BY facts.key DESC LIMIT ?",
        (*owner, history, end, NO_LIMIT if limit is None else limit),
    )
    return tuple(_fact(row) for row in rows)


def lasting(connection: Connection, owner: Owner, *, limit: int) -> tuple[Fact, ...]:
    rows = connection.execute(
        _SELECT + "WHERE facts.key IN (SELECT key FROM facts WHERE owner = ? AND valid_to IS NULL "  # noqa: S608 - constants
        "AND worth IS NOT NULL ORDER BY worth DESC, key DESC LIMIT ?) ORDER BY facts.key DESC",
        (_key(connection, owner), limit),
    )
    return tuple(_fact(row) for row in rows)


def _by_key(connection: Connection, key: int) -> Fact:
    return _fact(connection.execute(_SELECT + "WHERE facts.key = ?", (key,)).fetchone())


def get(connection: Connection, owner: Owner, fact_id: str) -> Fact | None:
    row = connection.execute(_SELECT + _OF_OWNER + "AND id = ?", (*owner, fact_id)).fetchone()
    return _fact(row) if row else None


def repetitions(connection: Connection, owner: Owner) -> tuple[Repetition, ...]:
    rows = connection.execute(
        f"SELECT (SELECT id FROM facts WHERE key = fact), {REPETITIONS.columns} "  # noqa: S608 - a constant
        "FROM fact_repetitions WHERE fact IN (SELECT facts.key " + _FROM + _OF_OWNER + ") "
        "ORDER BY key",
        owner,
    )
    return tuple(
        Repetition(fact_id, REPETITIONS.decode(row, tenant=owner.tenant, user=owner.user))
        for fact_id, *row in rows
    )


def said_in(connection: Connection, owner: Owner, conversation: str) -> list[tuple[Fact, Fact]]:
    """Return the facts and repetitions from a conversation, each behind the fact that it repeats.

    A fact that is no repetition is returned behind itself.
    """
    known = {fact.id: fact for fact in of_owner(connection, owner, history=True)}
    again = ((known[said.repeats], said.fact) for said in repetitions(connection, owner))
    pairs = itertools.chain(((fact, fact) for fact in known.values()), again)
    return [(fact, said) for fact, said in pairs if said.conversation == conversation]


def repeat(connection: Connection, known: Fact, fact: Fact) -> None:
    """Store a fact as a repetition of a *known* one of the same owner."""
    _repeat(connection, _create_key(connection, known.owner), known, fact)


def find(
    connection: Connection,
    owner: Owner,
    query: str,
    *,
    limit: int,
    only: FactCondition | None = None,
) -> tuple[Fact, ...]:
    key = _key(connection, owner)
    if key is None or limit < 1:
        return ()
    texts: int = connection.execute(
        "SELECT count(*) FROM facts WHERE owner = ? AND valid_to IS NULL", (key,)
    ).get
    matches = ranking.rank(connection, "facts_index", [scope(key)], query, texts=texts)
    return by_rank(connection, owner, matches, limit=limit, only=only)


def by_rank(
    connection: Connection,
    owner: Owner,
    matches: Iterable[tuple[int, float]],
    *,
    limit: int,
    only: FactCondition | None,
) -> tuple[Fact, ...]:
    """Return the owner's facts for the first *limit* matches that pass, whose keys must all exist.

    The pages grow: a condition that rejects a whole page may reject most facts.
    """
    found: list[Fact] = []
    rest, size = iter(matches), limit
    while len(found) < limit and (keys := [key for key, _ in itertools.islice(rest, size)]):
        found += filter(only, _by_keys(connection, owner, keys))
        size = min(size * _PAGE_GROWTH, _MAX_PAGE)
    return tuple(found[:limit])


def _by_keys(connection: Connection, owner: Owner, keys: Sequence[int]) -> list[Fact]:
    """Return the owner's facts with these keys, in their order."""
    rows = connection.execute(
        f'SELECT facts.key, tenant, "user", {FACTS.columns} {_FROM}{_OF_OWNER}'  # noqa: S608 - constants
        "AND facts.key IN (SELECT CAST(value AS BIGINT) FROM json_each(?))",
        (*owner, encode_json(keys)),
    )
    by_key = {key: _fact(row) for key, *row in rows}
    return [by_key[key] for key in keys]


def save(connection: Connection, changes: FactChanges) -> tuple[Fact, ...] | None:
    saved = _save(connection, changes)
    if saved and changes.replaced:  # a context must not show a value that has just been corrected
        _unpin(connection, _key(connection, saved[0].owner))
    new = [fact for fact in changes.facts if fact in saved] if saved else []
    if new:
        owner, at = new[0].owner, new[0].created_at
        data = {"facts": len(new), "replaced": len(changes.replaced)}
        events.add(connection, "facts", at, data, about=owner.tenant, user=owner.user)
    return saved


def _save(connection: Connection, changes: FactChanges) -> tuple[Fact, ...] | None:
    repeating = (repetition.fact for repetition in changes.repetitions)
    facts = (*changes.facts, *repeating, *changes.ended)
    if not facts:
        return ()
    owner = facts[0].owner
    connection.lock(owner)
    if not _is_up_to_date(connection, owner, changes):
        return None
    owner_key = _create_key(connection, owner)
    saved: dict[str, Fact] = {}
    for fact in changes.facts:
        if later := saved.get(fact.superseded_by or ""):
            fact = replace(fact, superseded_by=later.id)  # noqa: PLW2901 - one with the words of another
        saved[fact.id] = new = _insert(connection, owner_key, fact, changes.worth.get(fact.id))
        for old_id, new_id in changes.replaced.items():
            old = saved.get(old_id)
            current_id = old.id if old else old_id
            if new_id == fact.id and current_id != new.id:  # unless the new fact repeats it
                _end(connection, owner_key, current_id, new.valid_from, new.id)
    for fact in changes.ended:
        _end(connection, owner_key, fact.id, fact.valid_to or fact.valid_from, None)
    for fact_id, repetition in changes.repetitions:
        known = saved.get(fact_id) or get(connection, owner, fact_id)
        assert known is not None
        _repeat(connection, owner_key, known, repetition)
    return tuple(saved.values())


def _is_up_to_date(connection: Connection, owner: Owner, changes: FactChanges) -> bool:
    """Return whether the facts are unchanged with which *changes* were compared."""
    for newest, history in ((changes.newest, False), (changes.newest_ever, True)):
        if newest is not None:
            found = of_owner(connection, owner, history=history, limit=1)
            if newest != "".join(fact.id for fact in found):
                return False
    new = {fact.id: fact.superseded_by for fact in changes.facts}
    later = {*new.values()} - {None}
    repeated = {repetition.repeats for repetition in changes.repetitions}
    ended = {fact.id for fact in changes.ended}
    others = (changes.replaced.keys() | repeated | later | ended) - new.keys()
    known = {id_: get(connection, owner, id_) for id_ in others if id_ is not None}
    for id_, fact in known.items():
        successor = changes.replaced.get(id_)
        while successor in new:
            successor = new[successor]
        if fact is None or (id_ in changes.replaced and fact.superseded_by != successor):
            return False
    return True


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
    data: dict[str, EventValue] = {
        "facts": len(changes.facts),
        "replaced": len(changes.replaced),
        "facts_seq": facts_seq,
    }
    if changes.requests:
        data |= {"requests": changes.requests, "ended": " ".join(changes.forgotten)}
        if state.owner and changes.ended:  # no context must go on showing what has been taken back
            _unpin(connection, _key(connection, state.owner))
    states.write(connection, after, "facts", at, detail, data)
    return after


def forget(connection: Connection, owner: Owner, fact_id: str, *, at: datetime) -> bool:
    connection.lock(owner)
    key = _key(connection, owner)
    rows = connection.execute(
        "WITH RECURSIVE gone (key, id) AS ("
        "SELECT key, id FROM facts WHERE owner = ? AND id = ? UNION "
        "SELECT facts.key, facts.id FROM facts JOIN gone ON superseded_by = gone.id "
        "WHERE owner = ?) SELECT key FROM gone",
        (key, fact_id, key),
    )
    gone = [row[0] for row in rows]
    _erase(connection, key, gone)
    if gone:
        data = {"facts": len(gone)}
        events.add(connection, "forgotten", at, data, about=owner.tenant, user=owner.user)
    return bool(gone)


def erase_of_conversation(connection: Connection, ref: ConversationRef, user: str | None) -> None:
    """Erase the facts and repetitions of *user* from a conversation.

    Another user may have named it as a fact's source before it began.
    """
    if user is None:  # facts belong to a user
        return
    owner = Owner(ref.tenant, user)
    connection.lock(owner)
    _erase_repetitions(connection, ref, owner)
    rows = connection.execute(_SELECT_KEYS + _OF_OWNER + "AND conversation = ?", (*owner, ref.id))
    _erase_and_revive(connection, rows.fetchall())


def erase(connection: Connection, ref: ConversationRef, owner: Owner, erasure: Erasure) -> None:
    """Erase the facts of an erasure in a conversation, and repetitions from its messages."""
    connection.lock(owner)
    _erase_repetitions(connection, ref, owner, seqs=[message.seq for message in erasure.tombstones])
    rows: list[Row] = []
    for fact_id in erasure.facts:
        rows += connection.execute(_SELECT_KEYS + _OF_OWNER + "AND id = ?", (*owner, fact_id))
    for _, key, fact_id, _ in rows:
        if fact_id in erasure.named:
            connection.execute("DELETE FROM fact_repetitions WHERE fact = ?", (key,))
    _erase_and_revive(connection, rows)


def forget_owner(connection: Connection, owner: Owner) -> int:
    """Erase an owner with all facts, and return their number."""
    connection.lock(owner)
    key = _key(connection, owner)
    gone = [row[0] for row in connection.execute("SELECT key FROM facts WHERE owner = ?", (key,))]
    _erase(connection, key, gone)
    connection.execute("DELETE FROM fact_owners WHERE key = ?", (key,))
    return len(gone)


def _erase_repetitions(
    connection: Connection,
    ref: ConversationRef,
    owner: Owner,
    *,
    seqs: Sequence[int] | None = None,
) -> None:
    """Erase an owner's repetitions from a conversation, or only those from some of its messages."""
    rows = connection.execute(
        "SELECT fact_repetitions.key, coalesce(fact_repetitions.first_seq, 0), "
        "coalesce(fact_repetitions.last_seq, fact_repetitions.first_seq, 0) FROM fact_repetitions "
        "JOIN facts ON facts.key = fact JOIN fact_owners ON fact_owners.key = owner "
        'WHERE tenant = ? AND "user" = ? AND fact_repetitions.conversation = ?',
        (*owner, ref.id),
    )
    for key, first_seq, last_seq in rows.fetchall():
        if seqs is None or any(first_seq <= seq <= last_seq for seq in seqs):
            connection.execute("DELETE FROM fact_repetitions WHERE key = ?", (key,))


def _find_replacement(connection: Connection, key: int, old: Fact) -> Fact | None:
    """Return the repetition that replaces a fact to be erased, if there is one.

    A repetition that is older than a fact superseded by the erased one is outdated.
    """
    row = connection.execute(
        f"SELECT {REPETITIONS.columns} FROM fact_repetitions AS said WHERE fact = ? "  # noqa: S608 - a constant
        "AND NOT EXISTS (SELECT 1 FROM facts AS mine JOIN facts AS old "
        "ON old.owner = mine.owner AND old.superseded_by = mine.id "
        "WHERE mine.key = said.fact AND old.valid_from > said.valid_from) "
        "ORDER BY valid_from, key LIMIT 1",
        (key,),
    ).fetchone()
    if row is None:
        return None
    heir = REPETITIONS.decode(row, tenant=old.tenant, user=old.user)
    end = old.valid_to and max(old.valid_to, heir.valid_from)
    return replace(heir, valid_to=end, superseded_by=old.superseded_by)


def _replace(connection: Connection, owner_key: int, key: int, old: Fact, new: Fact) -> None:
    """Replace a fact with *new*, which takes over its repetitions and the facts it superseded.

    The new fact gets a new key, so that the indexer of vectors has not passed it yet.
    """
    rows = connection.execute(
        f"SELECT {REPETITIONS.columns} FROM fact_repetitions WHERE fact = ? AND id != ? ORDER BY key",  # noqa: S608 - a constant
        (key, new.id),
    ).fetchall()
    worth = connection.execute("SELECT worth FROM facts WHERE key = ?", (key,)).get
    _erase(connection, owner_key, [key])
    written = _insert(connection, owner_key, new, worth)
    for row in rows:
        again = REPETITIONS.decode(row, tenant=new.tenant, user=new.user)
        _repeat(connection, owner_key, written, again)
    _relink(connection, owner_key, old, written)


def _relink(connection: Connection, owner_key: int, old: Fact, new: Fact) -> None:
    """Link the facts that *old* superseded to *new*."""
    start = encode_instant(new.valid_from)
    connection.execute(
        f"UPDATE facts SET superseded_by = ?, valid_to = {_END} "  # noqa: S608 - a constant
        "WHERE owner = ? AND superseded_by = ?",
        (new.id, start, start, owner_key, old.id),
    )


def _erase_and_revive(connection: Connection, rows: Sequence[Row]) -> None:
    """Erase facts; each is replaced by a repetition, or else the facts it superseded are revived.

    Facts are erased oldest first, and revived only once all of them are gone.
    """
    erased: list[tuple[int, str]] = []
    for owner_key, key, fact_id, _ in sorted(rows, key=lambda row: row[3]):
        old = _by_key(connection, key)
        heir = _find_replacement(connection, key, old)
        if heir is not None:
            _replace(connection, owner_key, key, old, heir)
            continue
        if old.superseded_by and (later := get(connection, old.owner, old.superseded_by)):
            _relink(connection, owner_key, old, later)
        _erase(connection, owner_key, [key])
        erased.append((owner_key, fact_id))
    for owner_key, fact_id in erased:
        revived = connection.execute(
            "SELECT key FROM facts WHERE owner = ? AND superseded_by = ? ORDER BY key",
            (owner_key, fact_id),
        ).fetchall()
        for (key,) in revived:
            old = _by_key(connection, key)
            current = replace(old, valid_to=None, superseded_by=None)
            _replace(connection, owner_key, key, old, current)


def pin(connection: Connection, state: MemoryState, owner: Owner, pin: FactsPin) -> bool:
    if states.current(connection, state) is None:
        return False
    connection.execute(
        f"INSERT INTO facts_pins (conversation, owner, {PINS.columns}) "  # noqa: S608 - constants
        f"VALUES (?, ?, {PINS.places}) ON CONFLICT (conversation) DO UPDATE SET "
        "owner = excluded.owner, marker = excluded.marker, text = excluded.text, "
        "own_marker = excluded.own_marker, own_text = excluded.own_text, at = excluded.at",
        (state.key, _create_key(connection, owner), *PINS.encode(pin)),
    )
    return True


def _unpin(connection: Connection, owner_key: int | None) -> None:
    """Have all contexts of an owner choose their facts anew."""
    connection.execute("DELETE FROM facts_pins WHERE owner = ?", (owner_key,))


def read_pin(connection: Connection, conversation: int) -> FactsPin | None:
    """Return the facts pinned for a conversation's contexts."""
    row = connection.execute(
        f"SELECT {PINS.columns} FROM facts_pins WHERE conversation = ?",  # noqa: S608 - a constant
        (conversation,),
    ).fetchone()
    return None if row is None else PINS.decode(row, name=conversation)


def _insert(connection: Connection, owner_key: int, fact: Fact, worth: float | None) -> Fact:
    plain = plain_summary(fact.summary)
    row = connection.execute(
        _SELECT + "WHERE owner = ? AND plain = ? AND valid_to IS NULL", (owner_key, plain)
    ).fetchone()
    if row is not None and fact.valid_to is None:
        known = _fact(row)
        _repeat(connection, owner_key, known, fact)
        return known
    key: int = connection.execute(
        f"INSERT INTO facts (owner, plain, worth, {FACTS.columns}) "  # noqa: S608 - constants
        f"VALUES (?, ?, ?, {FACTS.places}) RETURNING key",
        (owner_key, plain, worth, *FACTS.encode(fact)),
    ).get
    if fact.valid_to is None:
        connection.add_words("facts_index", key, scope(owner_key), fact.summary)
    return fact


def _repeat(connection: Connection, owner_key: int, known: Fact, fact: Fact) -> None:
    """Keep a fact as a repetition of *known*, unless both have one source or *known* has none."""
    source = (fact.conversation, fact.first_seq, fact.last_seq)
    known_source = (known.conversation, known.first_seq, known.last_seq)
    key: int = connection.execute(
        "SELECT key FROM facts WHERE owner = ? AND id = ?", (owner_key, known.id)
    ).get
    if known.conversation is None and fact.conversation is None:
        _widen(connection, owner_key, key, known, fact)
    if known.conversation is None or source == known_source:
        return
    is_kept = connection.execute(
        "SELECT 1 FROM fact_repetitions WHERE fact = ? AND conversation IS NOT DISTINCT FROM ? "
        "AND first_seq IS NOT DISTINCT FROM ? AND last_seq IS NOT DISTINCT FROM ?",
        (key, *source),
    ).fetchone()
    if not is_kept:
        connection.execute(
            f"INSERT INTO fact_repetitions (fact, {REPETITIONS.columns}) "  # noqa: S608 - constants
            f"VALUES (?, {REPETITIONS.places})",
            (key, *REPETITIONS.encode(fact)),
        )


def _widen(connection: Connection, owner_key: int, key: int, known: Fact, fact: Fact) -> None:
    """Give *known* the tags of *fact* as well, and its earlier start unless *known* replaced others."""
    tags = [*dict.fromkeys((*known.tags, *fact.tags))]
    most = max(_MAX_MERGED_TAGS, len(known.tags))
    connection.execute("UPDATE facts SET tags = ? WHERE key = ?", (encode_json(tags[:most]), key))
    start = encode_instant(fact.valid_from)
    connection.execute(
        "UPDATE facts SET valid_from = ? WHERE key = ? AND valid_from > ? AND NOT EXISTS "
        "(SELECT 1 FROM facts AS old WHERE old.owner = ? AND old.superseded_by = ?)",
        (start, key, start, owner_key, known.id),
    )


def _end(
    connection: Connection, owner_key: int, old_id: str, at: datetime, new_id: str | None
) -> None:
    start = encode_instant(at)
    key: int = connection.execute(
        f"UPDATE facts SET valid_to = {_END}, superseded_by = ? "  # noqa: S608 - a constant
        "WHERE owner = ? AND id = ? RETURNING key",
        (start, start, new_id, owner_key, old_id),
    ).get
    connection.remove_words("facts_index", [key])
    connection.execute("DELETE FROM fact_vectors WHERE fact = ?", (key,))


def _erase(connection: Connection, owner_key: int | None, keys: Sequence[int]) -> None:
    """Erase facts, their indexed words, and pins and errors that may quote them.

    Steps in progress that may have read them are voided.
    """
    connection.remove_words("facts_index", keys)
    for key in keys:
        connection.execute("DELETE FROM facts WHERE key = ?", (key,))
    if keys:
        _unpin(connection, owner_key)
        connection.execute(
            f"UPDATE states SET erasures = erasures + 1 WHERE conversation IN ({_OWNERS_CONVERSATIONS})",  # noqa: S608 - a constant
            (owner_key,),
        )
        assert owner_key is not None
        states.clear_error_texts(connection, owner_key, conversations=_OWNERS_CONVERSATIONS)


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
    """Return the scope word of a user's facts in the text index."""
    return f"u{owner_key}"
