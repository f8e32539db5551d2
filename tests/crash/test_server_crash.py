"""A server that crashes during a commit: what an append answered is true after the recovery."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable

import psycopg
import pytest
from tests.postgres import crash, losing_commits, new_database, restart, running_server

from remanence.errors import StoreUnavailable
from remanence.stores import open_store
from remanence.types import ConversationRef, Message

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

REF = ConversationRef("default", "chat")
OTHERS = 50


async def test_a_commit_that_a_crash_prevented_is_not_taken_for_another_one_of_the_same_id() -> (
    None
):
    with running_server(own=True) as server, new_database(server) as database:

        async def crash_and_go_on() -> bool:
            await asyncio.to_thread(crash, database, kill=True)
            await asyncio.to_thread(restart, database)
            with psycopg.connect(database, autocommit=True) as connection:
                for _ in itertools.repeat(None, OTHERS):
                    connection.execute("SELECT pg_current_xact_id()")
                    connection.execute(
                        "INSERT INTO look_rules VALUES (1, '') ON CONFLICT (id) DO "
                        "UPDATE SET digest = ''"
                    )
            return False

        fates: list[Callable[[], Awaitable[bool]]] = []
        async with losing_commits(database, fates) as url:
            store = await open_store(url)
            await store.append(REF, [Message.user("one").replace(tokens=1)], user=None)
            fates.append(crash_and_go_on)
            try:
                appended = await store.append(
                    REF, [Message.user("two").replace(tokens=1)], user=None
                )
                acknowledged = [message.text for message in appended.messages]
            except StoreUnavailable:
                acknowledged = []
            stored = [message.text for message in await store.messages(REF, after=0, limit=None)]
            await store.close()

    assert stored == ["one", *acknowledged]
