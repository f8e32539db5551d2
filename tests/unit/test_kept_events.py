"""The number of events that are kept of a tenant is bounded."""

from remanence.stores import open_store
from remanence.stores.sql.connection import Connection
from remanence.stores.sql.events import KEPT
from remanence.stores.sql.store import SQLStore, write_method
from remanence.testing.store_contract.samples import active
from remanence.types import ConversationRef

LONG_BEFORE = 5_000


def _skip_ids(connection: Connection) -> None:
    """Let the next event be one that prunes, as if all ids before it had been given."""
    connection.execute(
        "UPDATE event_counters SET last = ? WHERE tenant = 'default'", (KEPT + LONG_BEFORE - 1,)
    )


async def test_old_events_of_a_tenant_go_and_those_of_others_stay() -> None:
    store = await open_store("sqlite:///:memory:")
    assert isinstance(store, SQLStore)
    await active(store, [(1, 2)])
    await active(store, [(1, 2)], ConversationRef("acme", "chat"))
    await write_method(_skip_ids)(store)
    await active(store, [(1, 2)], ConversationRef("default", "other"))

    kept = await store.events("default", after=0, limit=10)
    others = await store.events("acme", after=0, limit=10)
    await store.close()

    assert [event.id for event in kept.events] == [KEPT + LONG_BEFORE, KEPT + LONG_BEFORE + 1]
    assert [event.id for event in others.events] == [1, 2]
