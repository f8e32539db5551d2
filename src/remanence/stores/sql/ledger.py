"""The ledger: each model call, and their sums."""

from collections.abc import Sequence
from datetime import datetime
from typing import LiteralString

from remanence.stores.rows import encode_instant
from remanence.stores.sql.connection import Connection
from remanence.types import ConversationRef, Owner, Usage, UsageTotal

_INSERT: LiteralString = (
    'INSERT INTO model_calls (conversation, tenant, "user", purpose, model, input_tokens, '
    "output_tokens, cache_read_tokens, cache_write_tokens, cost_usd, duration_seconds, outcome, "
    "at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_SUMS: LiteralString = (
    "SELECT purpose, model, count(*), count(*) FILTER (WHERE outcome NOT IN ('ok', 'cut_off')), "
    "CAST(sum(input_tokens) AS BIGINT), "
    "CAST(sum(output_tokens) AS BIGINT), CAST(sum(cache_read_tokens) AS BIGINT), "
    "CAST(sum(cache_write_tokens) AS BIGINT), sum(cost_usd), "
    "count(*) FILTER (WHERE cost_usd IS NULL), sum(duration_seconds) FROM model_calls "
)
_OF_CONVERSATION: LiteralString = (
    "conversation = (SELECT key FROM conversations WHERE tenant = ? AND id = ?)"
)


def record(connection: Connection, usages: Sequence[Usage]) -> None:
    """Write a row for each call."""
    for usage in usages:
        key, user = _owner(connection, usage.conversation)
        connection.execute(
            _INSERT,
            (
                key,
                usage.conversation.tenant if usage.conversation else None,
                usage.user or user,
                usage.purpose,
                usage.model,
                usage.input_tokens,
                usage.output_tokens,
                usage.cache_read_tokens,
                usage.cache_write_tokens,
                usage.cost_usd,
                usage.duration_seconds,
                usage.outcome,
                encode_instant(usage.at),
            ),
        )


def forget_user(connection: Connection, owner: Owner) -> None:
    """Remove a user's name from the calls."""
    connection.execute(
        'UPDATE model_calls SET "user" = NULL WHERE tenant = ? AND "user" = ?', owner
    )


def totals(
    connection: Connection,
    *,
    tenant: str | None,
    conversation: ConversationRef | None,
    user: str | None,
    since: datetime | None,
) -> tuple[UsageTotal, ...]:
    """Return the matching calls, summed by purpose and model."""
    conditions: list[LiteralString] = []
    values: list[str] = []
    if conversation is not None:
        conditions.append(_OF_CONVERSATION)
        values += conversation
    if tenant is not None:
        conditions.append("tenant = ?")
        values.append(tenant)
    if user is not None:
        conditions.append('"user" = ?')
        values.append(user)
    if since is not None:
        conditions.append("at >= ?")
        values.append(encode_instant(since))
    where: LiteralString = "WHERE " + " AND ".join(conditions) if conditions else ""
    rows = connection.execute(
        _SUMS + where + " GROUP BY purpose, model ORDER BY purpose, model", tuple(values)
    )
    return tuple(_total(*row) for row in rows)


def _owner(connection: Connection, ref: ConversationRef | None) -> tuple[int | None, str | None]:
    """Return the key and the user of a conversation, if it exists."""
    if ref is None:
        return None, None
    row = connection.execute(
        'SELECT key, "user" FROM conversations WHERE tenant = ? AND id = ?', ref
    ).fetchone()
    return row or (None, None)


def _total(
    purpose: str,
    model: str,
    calls: int,
    failed_calls: int,
    input_tokens: int,
    output_tokens: int,
    cache_read_tokens: int,
    cache_write_tokens: int,
    cost_usd: float | None,
    unpriced_calls: int,
    duration_seconds: float,
) -> UsageTotal:
    return UsageTotal(
        purpose=purpose,  # type: ignore[arg-type]  # as it was written
        model=model,
        calls=calls,
        failed_calls=failed_calls,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_read_tokens=cache_read_tokens,
        cache_write_tokens=cache_write_tokens,
        cost_usd=cost_usd,
        unpriced_calls=unpriced_calls,
        duration_seconds=duration_seconds,
    )
