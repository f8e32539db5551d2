"""How the ledger writes: in what batches, what it says of lost calls, and how it ends."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from remanence.background import Background
from remanence.costs.ledger import Ledger
from remanence.errors import OutcomeUnknown, StoreUnavailable
from remanence.settings import own_prices
from remanence.stores import open_store
from remanence.telemetry.spans import call_attributes
from remanence.testing.faults import FaultyStore, Gate
from remanence.testing.store_contract.samples import usage
from remanence.types import Usage, UsageTotal

LOST = "1 model calls are missing in the ledger: "
WAITING = "model calls wait to be written to the ledger, and are tried again: "
NAMED = f"{LOST}observe of 'a', conversation 'chat': "


class CountingStore(FaultyStore):
    """Notes how many calls each transaction writes, and what happens in which order."""

    sizes: list[int]
    order: list[str]

    async def record_usage(self, usages: Sequence[Usage]) -> None:
        self.sizes.append(len(usages))
        await super().record_usage(usages)
        self.order.append("written")

    async def usage(self, **filters: Any) -> tuple[UsageTotal, ...]:
        self.order.append("read")
        return await super().usage(**filters)


@pytest.fixture
async def store() -> AsyncIterator[CountingStore]:
    counting = CountingStore(await open_store("sqlite:///:memory:"))
    counting.sizes, counting.order = [], []
    yield counting
    await counting.close()


@asynccontextmanager
async def writing(store: CountingStore) -> AsyncIterator[tuple[Ledger, Gate]]:
    """A ledger that writes its first call until the gate is opened."""
    ledger, gate = Ledger(store), store.hold("record_usage")
    async with Background() as background, asyncio.timeout(60):
        ledger.start(background)
        ledger.record(usage())
        await gate.reached.wait()
        yield ledger, gate


async def test_calls_that_wait_are_written_together_but_for_a_bounded_number(
    store: CountingStore,
) -> None:
    async with writing(store) as (ledger, gate):
        for _ in range(1_002):
            ledger.record(usage())
        gate.opened.set()
        await ledger.settle()
        await ledger.close(timeout_seconds=60)

    assert store.sizes == [1, 501, 501]


async def test_each_call_is_logged_with_its_model(
    store: CountingStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    ledger = Ledger(store)
    async with Background() as background, asyncio.timeout(60):
        ledger.start(background)
        ledger.record(usage(model="scripted:one"))
        await ledger.close(timeout_seconds=60)

    assert "scripted:one" in caplog.text


async def test_its_task_is_named_after_it(store: CountingStore) -> None:
    async with Background() as background:
        Ledger(store).start(background)

        assert "remanence-ledger" in {task.get_name() for task in asyncio.all_tasks()}


async def test_closing_ends_as_soon_as_all_is_written_and_so_does_who_waits_for_that(
    store: CountingStore,
) -> None:
    async with writing(store) as (ledger, gate):
        ledger.record(usage())
        async with asyncio.TaskGroup() as waiting:
            waiting.create_task(ledger.settle())
            waiting.create_task(ledger.close(timeout_seconds=600))
            gate.opened.set()

    assert sum(total.calls for total in await store.usage()) == 2


async def test_lost_calls_are_named_with_the_reason(
    store: CountingStore, caplog: pytest.LogCaptureFixture
) -> None:
    async with writing(store) as (ledger, _):
        for number in range(1_200):
            ledger.record(usage(model=f"m{number % 2}"))
        await ledger.close(timeout_seconds=0)
        ledger.record(usage())

    unanswered = "the store did not answer"
    assert [record.getMessage() for record in caplog.records] == [
        f"{NAMED}{unanswered}",
        *[
            f"{calls} model calls are missing in the ledger: "
            f"observe of 'm{number}', conversation 'chat': {unanswered}"
            for calls in (250, 250, 100)
            for number in range(2)
        ],
        f"{NAMED}the memory is closed",
    ]


async def test_a_call_that_the_store_refuses_is_named_and_those_beside_it_are_written(
    store: CountingStore, caplog: pytest.LogCaptureFixture
) -> None:
    async with writing(store) as (ledger, gate):
        for number in range(100):
            ledger.record(usage(input_tokens=2**70 if number == 37 else 1, model=f"m{number}"))
        gate.opened.set()
        await ledger.settle()
        await ledger.close(timeout_seconds=60)

    written = {total.model for total in await store.usage()}
    assert written == {"a", *(f"m{number}" for number in range(100) if number != 37)}
    (record,) = caplog.records
    assert record.getMessage().startswith(f"{LOST}observe of 'm37', conversation 'chat': ")


async def test_each_outage_is_logged_once_with_its_reason(
    store: CountingStore, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = Ledger(store, retry_seconds=0)
    async with Background() as background, asyncio.timeout(60):
        ledger.start(background)
        for reason in ("permission denied for table model_calls", "the disk is full"):
            store.fail("record_usage", StoreUnavailable(reason), times=3)
            ledger.record(usage())
            await ledger.usage()
        await ledger.close(timeout_seconds=60)

    assert caplog.messages == [
        f"{WAITING}StoreUnavailable: permission denied for table model_calls",
        f"{WAITING}StoreUnavailable: the disk is full",
    ]


async def test_calls_wait_for_an_unavailable_store_and_are_written_once(
    store: CountingStore, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = Ledger(store, retry_seconds=0)
    store.fail("record_usage", StoreUnavailable("the server restarts"), times=3)
    async with Background() as background, asyncio.timeout(60):
        ledger.start(background)
        ledger.record(usage())
        with pytest.raises(StoreUnavailable, match="the server restarts"):
            await ledger.settle()
        gate = store.hold("record_usage")
        ledger.record(usage())
        await gate.reached.wait()
        gate.opened.set()
        await ledger.close(timeout_seconds=60)

    assert sum(total.calls for total in await store.usage()) == 2
    assert caplog.messages == [f"{WAITING}StoreUnavailable: the server restarts"]


async def test_of_calls_for_a_store_that_does_not_answer_200_000_wait(
    store: CountingStore, caplog: pytest.LogCaptureFixture
) -> None:
    ledger, call = Ledger(store), usage()
    for _ in range(200_001):
        ledger.record(call)

    (lost,) = caplog.messages
    assert "200,000 others wait, as the store did not answer" in lost


async def test_of_calls_that_wait_too_many_in_an_outage_are_named_as_lost(
    store: CountingStore, caplog: pytest.LogCaptureFixture
) -> None:
    store.fail("record_usage", StoreUnavailable("the disk is full"), times=2)
    ledger = Ledger(store, retry_seconds=600)
    async with Background() as background, asyncio.timeout(60):
        ledger.start(background)
        ledger.record(usage())
        with pytest.raises(StoreUnavailable):
            await ledger.settle()
        caplog.clear()
        for _ in range(10_001):
            ledger.record(usage())
        named = caplog.messages[:]
        await ledger.close(timeout_seconds=0)

    assert named == [f"{NAMED}10,000 others wait, as StoreUnavailable: the disk is full"]


async def test_every_call_is_written_that_comes_faster_than_a_healthy_store_writes(
    store: CountingStore, caplog: pytest.LogCaptureFixture
) -> None:
    async with writing(store) as (ledger, gate):
        for _ in range(10_001):
            ledger.record(usage())
        gate.opened.set()
        await ledger.settle()
        await ledger.close(timeout_seconds=60)

    assert sum(total.calls for total in await store.usage()) == 10_002
    assert caplog.messages == []


async def test_a_memory_that_closes_in_an_outage_names_the_calls_that_wait(
    store: CountingStore, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = Ledger(store, retry_seconds=600)
    store.fail("record_usage", StoreUnavailable("the disk is full"), times=2)
    async with Background() as background, asyncio.timeout(60):
        ledger.start(background)
        ledger.record(usage())
        with pytest.raises(StoreUnavailable):
            await ledger.settle()
        await ledger.close(timeout_seconds=600)

    reason = "StoreUnavailable: the disk is full"
    assert caplog.messages == [f"{WAITING}{reason}", f"{NAMED}{reason}"]


async def test_calls_whose_commit_is_in_doubt_are_named_and_not_written_again(
    store: CountingStore, caplog: pytest.LogCaptureFixture
) -> None:
    store.fail("record_usage", OutcomeUnknown("the server does not know"), when="after")
    ledger = Ledger(store, retry_seconds=0)
    async with Background() as background, asyncio.timeout(60):
        ledger.start(background)
        ledger.record(usage())
        await ledger.close(timeout_seconds=60)

    assert sum(total.calls for total in await store.usage()) == 1
    assert caplog.messages == [f"{NAMED}OutcomeUnknown: the server does not know"]


async def test_totals_are_read_after_the_calls_before_them_are_written(
    store: CountingStore,
) -> None:
    async with writing(store) as (ledger, gate):
        reading = asyncio.create_task(ledger.usage())
        gate.opened.set()
        totals = await reading
        await ledger.close(timeout_seconds=60)

    assert [total.calls for total in totals] == [1]
    assert store.order == ["written", "read"]


async def test_totals_have_the_calls_that_the_store_takes_soon_after_a_failure(
    store: CountingStore,
) -> None:
    store.fail("record_usage", StoreUnavailable("another process has locked it"))
    ledger = Ledger(store, retry_seconds=0.2)
    async with Background() as background, asyncio.timeout(60):
        ledger.start(background)
        ledger.record(usage())
        with pytest.raises(StoreUnavailable):
            await ledger.settle()
        totals = await ledger.usage()
        await ledger.close(timeout_seconds=60)

    assert [total.calls for total in totals] == [1]


async def test_a_ledger_that_never_began_closes_at_once(store: CountingStore) -> None:
    ledger = Ledger(store)
    ledger.record(usage())

    async with asyncio.timeout(60):
        await ledger.close(timeout_seconds=600)
        await ledger.settle()

    assert store.sizes == []


def test_metrics_name_a_bounded_number_of_models_that_clients_of_a_proxy_chose() -> None:
    proxied = [usage(purpose="proxy", model=f"openai:m{n}") for n in range(1_000)]
    labels = [call_attributes(call)["gen_ai.request.model"] for call in proxied]

    assert len(set(labels)) <= 101
    assert labels[-1] == "other"
    own = usage(purpose="observe", model="openai:m999")
    assert call_attributes(own)["gen_ai.request.model"] == "m999"


async def test_the_price_of_a_model_counts_under_each_name_of_its_provider(
    store: CountingStore,
) -> None:
    ledger = Ledger(store, own_prices(["Gemini:mine 1 2"]))
    for name in ("google:mine", "gemini:mine"):
        call = usage(model=name, input_tokens=1_000, output_tokens=0, cost_usd=None)
        assert ledger.price(call).cost_usd == 0.001
