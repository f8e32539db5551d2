"""Turns of conversations: which of them end when a memory is closed."""

import asyncio
from datetime import timedelta

from tests.builders import REF

from remanence import Message
from remanence.background import Background
from remanence.clock import SystemClock
from remanence.engine.turns import Turns
from remanence.stores import open_store
from remanence.testing import FaultyStore


async def test_a_turn_that_is_granted_while_its_memory_closes_is_ended() -> None:
    clock = SystemClock()
    store = FaultyStore(await open_store("sqlite:///:memory:"))
    await store.append(REF, [Message.user("Which gate?")], user=None)
    granted = store.hold("take_turn")
    async with Background() as background:
        turns = Turns(
            store=store, clock=clock, background=background, lease_seconds=30, wait_seconds=30
        )

        async def take_turn() -> None:
            async with turns.hold(REF):
                pass

        waiting = asyncio.create_task(take_turn())
        await granted.reached.wait()
        await turns.close()
        granted.opened.set()
        await waiting

    now = clock.now()
    until = now + timedelta(seconds=30)
    assert await store.take_turn(REF, owner="next", now=now, until=until) is None
    await store.close()
