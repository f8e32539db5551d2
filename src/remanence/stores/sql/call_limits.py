"""Rate limits of models that processes share, and pauses that providers asked for."""

from datetime import datetime, timedelta
from typing import Final

from remanence.stores.rows import decode_time, encode_instant
from remanence.stores.sql.connection import Connection
from remanence.types import CallPermit, ModelPause

CREDIT: Final = timedelta(seconds=6)
"""Unused time that later calls may use, as jobs start up to five seconds late."""

_TEST_INTERVAL: Final = timedelta(seconds=5)
_MAX_AHEAD: Final = timedelta(days=1)
_MINUTE: Final = timedelta(minutes=1)


def take(
    connection: Connection,
    model: str,
    *,
    share: float,
    is_follow_up: bool,
    waited: bool,
    now: datetime,
) -> CallPermit:
    """Count a call, or return when to ask again.

    While callers wait, only they may use the credit: they go first, and unused rate is not lost.
    """
    paused = "SELECT paused_until FROM call_limits WHERE model = ?"
    if not share and connection.execute(paused, (model,)).get is None:
        return CallPermit()
    row = connection.execute(
        "INSERT INTO call_limits (model) VALUES (?) ON CONFLICT (model) "
        "DO UPDATE SET model = excluded.model RETURNING counted_to, line_to, paused_until",
        (model,),
    ).fetchone()
    counted_to, line_to, paused_until = (_plausible(value, now) for value in row)
    cost = (_MINUTE + CREDIT) * share
    is_first = waited or line_to is None or line_to <= now
    credit = CREDIT if is_first else timedelta()
    free_at = max(paused_until or now, (counted_to or now) - credit)
    # Work that was begun waits for no limit, and not between two tests of a pause that is over.
    held_until = (paused_until or now) - _TEST_INTERVAL if is_follow_up else free_at
    if held_until > now:
        wait_until = max(free_at, line_to or now)
        connection.execute(
            "UPDATE call_limits SET line_to = ? WHERE model = ?",
            (encode_instant(wait_until + cost), model),
        )
        return CallPermit(wait_until)
    tested = now + _TEST_INTERVAL if paused_until is not None and not is_follow_up else None
    pause_end = tested or paused_until
    counted = encode_instant(max(counted_to or now, now) + cost)
    connection.execute(
        "UPDATE call_limits SET counted_to = ?, paused_until = ? WHERE model = ?",
        (counted, encode_instant(pause_end) if pause_end else None, model),
    )
    return CallPermit(tests_pause=tested)


def pause(connection: Connection, model: str, *, until: datetime) -> None:
    connection.execute(
        "INSERT INTO call_limits (model, paused_until) VALUES (?, ?) ON CONFLICT (model) "
        "DO UPDATE SET paused_until = excluded.paused_until WHERE call_limits.paused_until IS NULL "
        "OR call_limits.paused_until < excluded.paused_until",
        (model, encode_instant(until)),
    )


def resume(connection: Connection, model: str, *, paused_until: datetime) -> None:
    connection.execute(
        "UPDATE call_limits SET paused_until = NULL WHERE model = ? AND paused_until = ?",
        (model, encode_instant(paused_until)),
    )


def pauses(connection: Connection, *, now: datetime) -> tuple[ModelPause, ...]:
    rows = connection.execute(
        "SELECT model, paused_until FROM call_limits WHERE paused_until > ? ORDER BY model",
        (encode_instant(now),),
    )
    return tuple(ModelPause(model, decode_time(until)) for model, until in rows)


def _plausible(value: str | None, now: datetime) -> datetime | None:
    """Return a stored time; None if it is so far ahead that a wrong clock must have written it."""
    time = None if value is None else decode_time(value)
    return None if time is None or time > now + _MAX_AHEAD else time
