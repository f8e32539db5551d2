"""The ledger of model calls, and its totals."""

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from typing import LiteralString

from remanence.stores.rows import USAGES, encode_instant
from remanence.stores.sql.connection import Connection
from remanence.types import ConversationRef, Owner, Usage, UsageTotal

_SUMS: LiteralString = (
    "SELECT purpose, model, count(*), "
    "count(*) FILTER (WHERE outcome NOT IN ('ok', 'cut_off', 'paused')), "
    "CAST(sum(input_tokens) AS BIGINT), CAST(sum(output_tokens) AS BIGINT), "
    "CAST(sum(cache_read_tokens) AS BIGINT), CAST(sum(cache_write_tokens) AS BIGINT), sum(cost_usd), "
    "count(*) FILTER (WHERE cost_usd IS NULL), sum(duration_seconds) FROM model_calls "
)
_TOTALS = [field.name for field in fields(UsageTotal)]  # in the order of these columns


def record(connection: Connection, usages: Sequence[Usage]) -> None:
    for usage in usages:
        ref, key, user = usage.conversation, None, usage.user
        if ref is not None:  # the conversation may have been erased meanwhile
            key, owner = connection.execute(
                'SELECT key, "user" FROM conversations WHERE tenant = ? AND id = ?', ref
            ).fetchone() or (None, None)
            user = (usage.user or owner) if key is not None else None
        connection.execute(
            f'INSERT INTO model_calls (conversation, tenant, "user", {USAGES.columns}) '  # noqa: S608 - constants
            f"VALUES (?, ?, ?, {USAGES.places})",
            (key, ref.tenant if ref else None, user, *USAGES.encode(usage)),
        )


def forget_user(connection: Connection, owner: Owner) -> None:
    """Remove the user's name from the ledger."""
    connection.execute(
        'UPDATE model_calls SET "user" = NULL WHERE tenant = ? AND "user" = ?', owner
    )


def calls(connection: Connection, owner: Owner) -> tuple[Usage, ...]:
    rows = connection.execute(
        f"SELECT (SELECT id FROM conversations WHERE key = conversation), {USAGES.columns} "  # noqa: S608 - constants
        'FROM model_calls WHERE tenant = ? AND "user" = ? ORDER BY key',
        owner,
    )
    return tuple(
        USAGES.decode(row, conversation=id_ and ConversationRef(owner.tenant, id_), user=owner.user)
        for id_, *row in rows
    )


def totals(
    connection: Connection,
    *,
    tenant: str | None = None,
    conversation: ConversationRef | None = None,
    user: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> tuple[UsageTotal, ...]:
    where: LiteralString = "WHERE true "
    values: list[str] = []
    if conversation is not None:
        where += "AND conversation = (SELECT key FROM conversations WHERE tenant = ? AND id = ?) "
        values += conversation
    if tenant is not None:
        where += "AND tenant = ? "
        values.append(tenant)
    if user is not None:
        where += 'AND "user" = ? '
        values.append(user)
    if since is not None:
        where += "AND at >= ? "
        values.append(encode_instant(since))
    if until is not None:
        where += "AND at < ? "
        values.append(encode_instant(until))
    rows = connection.execute(
        _SUMS + where + "GROUP BY purpose, model ORDER BY purpose, model", values
    )
    return tuple(UsageTotal(**dict(zip(_TOTALS, row, strict=True))) for row in rows)
