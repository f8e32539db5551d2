"""Readiness of a memory: the store answers, and background work keeps up."""

import asyncio
import logging
from datetime import datetime, timedelta
from typing import Final

from remanence.clock import Clock
from remanence.errors import StoreError
from remanence.protocols import Store
from remanence.types import Unready

_log = logging.getLogger(__name__)

STORE_SECONDS: Final = 5.0
"""Seconds within which the store must answer."""

OVERDUE: Final = timedelta(minutes=5)
"""Tolerated delay of due work: scans are up to a minute apart, and a backlog takes a while."""

FAILING_STEPS: Final = 3
FAILING_WITHIN: Final = timedelta(minutes=15)
"""A memory is unready if its last `FAILING_STEPS` steps, in any conversation, failed within this time."""

_PAGE: Final = 500


async def find_unready(
    store: Store, *, clock: Clock, works: bool, failure: str = ""
) -> tuple[Unready, ...]:
    """Return the reasons why a memory is not ready.

    *works* says if background work is expected, and *failure* why it has stopped, if it has.
    """
    now = clock.now()
    try:
        async with asyncio.timeout(STORE_SECONDS):
            await store.probe()
            overdue = await _overdue(store, now)
            failing = await _failing(store, now)
    except TimeoutError:
        detail = f"the store did not answer within {STORE_SECONDS:g} s"
        return (Unready(code="store", detail=detail),)
    except StoreError as error:
        _log.warning("the store cannot be used: %s", error)
        return (Unready(code="store", detail=f"the store cannot be used: {error.public}"),)
    stopped = Unready(code="stopped", detail=failure) if failure else None
    reasons = (stopped, overdue, failing) if works else (stopped,)
    return tuple(reason for reason in reasons if reason is not None)


async def _overdue(store: Store, now: datetime) -> Unready | None:
    """Return the oldest overdue look, ignoring leased conversations."""
    for look in await store.looks(after=None, limit=_PAGE):
        if look.at > now - OVERDUE:
            break
        if look.lease_until is None or look.lease_until <= now:
            waited = (now - look.at).total_seconds()
            return Unready(
                code="overdue", detail=f"background work has been due for {waited:,.0f} s"
            )
    return None


async def _failing(store: Store, now: datetime) -> Unready | None:
    outcomes = await store.outcomes(since=now - FAILING_WITHIN, limit=FAILING_STEPS)
    if len(outcomes) < FAILING_STEPS or any(each.kind != "failed" for each in outcomes):
        return None
    # Only step and reason: the rest may quote the conversation.
    last = ": ".join(outcomes[0].detail.split(": ")[:2])
    detail = f"the last {FAILING_STEPS} steps of background work failed, the newest with {last}"
    return Unready(code="failing", detail=detail)
