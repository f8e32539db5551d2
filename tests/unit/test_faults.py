import asyncio
from collections.abc import AsyncIterator

import pytest

from remanence.errors import StoreUnavailable
from remanence.protocols import Store
from remanence.stores import open_store
from remanence.testing.faults import FaultyStore
from remanence.types import ConversationRef, Message

REF = ConversationRef("default", "chat")


@pytest.fixture
async def inner() -> AsyncIterator[Store]:
    store = await open_store("sqlite:///:memory:")
    yield store
    await store.close()


async def append(store: Store, text: str) -> int:
    return (await store.append(REF, [Message.user(text)], user=None)).state.last_seq


async def test_without_faults_calls_are_passed_on(inner: Store) -> None:
    store: Store = FaultyStore(inner)

    assert await append(store, "hello") == 1
    assert await store.state(REF) == await inner.state(REF)


@pytest.mark.parametrize("method", [name for name in dir(Store) if not name.startswith("_")])
async def test_each_method_of_a_store_can_fail(inner: Store, method: str) -> None:
    store = FaultyStore(inner)
    store.fail(method, StoreUnavailable("no"))

    with pytest.raises(StoreUnavailable):
        await getattr(store, method)()


async def test_a_call_that_fails_before_writes_nothing(inner: Store) -> None:
    store = FaultyStore(inner)
    store.fail("append", StoreUnavailable("no"), skip=1, times=2)

    assert await append(store, "one") == 1
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await append(store, "two")
    assert await append(store, "three") == 2
    assert store.calls == ["append"] * 4


async def test_a_call_that_fails_after_has_written(inner: Store) -> None:
    store = FaultyStore(inner)
    store.fail("append", StoreUnavailable("lost"), when="after")

    with pytest.raises(StoreUnavailable):
        await append(store, "one")

    assert await append(store, "two") == 2


@pytest.mark.parametrize(("when", "written"), [("before", False), ("after", True)])
async def test_a_held_call_waits_for_the_test(inner: Store, when: str, written: bool) -> None:
    store = FaultyStore(inner)
    gate = store.hold("append", when="before" if when == "before" else "after")
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        task = group.create_task(append(store, "one"))
        await gate.reached.wait()

        assert (await inner.state(REF) is not None) == written
        gate.opened.set()

    assert task.result() == 1
