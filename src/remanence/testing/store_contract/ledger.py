"""The ledger: every model call is counted once, for whom it was made."""

from datetime import timedelta

import pytest

from remanence.protocols import Store
from remanence.testing.store_contract.handles import Handles
from remanence.testing.store_contract.samples import ANA, REF, at, tape, usage
from remanence.types import ConversationRef

OTHER = ConversationRef("other-tenant", "chat")


class LedgerContract(Handles):
    """`record_usage`, `usage` and `model_calls`."""

    async def test_an_empty_ledger_has_no_totals(self, store: Store) -> None:
        assert await store.usage() == ()

        await store.record_usage([])

        assert await store.usage() == ()

    async def test_calls_are_summed_by_purpose_and_model(self, store: Store) -> None:
        await tape(store, 1)
        await store.record_usage([usage(), usage(outcome="cut_off"), usage(purpose="repair")])
        await store.record_usage([usage(model="b", cost_usd=None, outcome="timeout")])

        first, second, third = await store.usage()

        assert (first.purpose, first.model, first.calls, first.failed_calls) == (
            "observe",
            "a",
            2,
            0,
        )
        assert (first.input_tokens, first.output_tokens) == (2_000, 200)
        assert (first.cache_read_tokens, first.cache_write_tokens) == (800, 400)
        assert first.cost_usd == pytest.approx(0.02)
        assert first.duration_seconds == pytest.approx(3.0)
        assert (second.model, second.calls, second.failed_calls) == ("b", 1, 1)
        assert (second.cost_usd, second.unpriced_calls) == (None, 1)
        assert (third.purpose, third.calls) == ("repair", 1)

    async def test_a_conversation_a_user_and_a_tenant_see_their_own_calls(
        self, store: Store
    ) -> None:
        await tape(store, 1)
        await tape(store, 1, OTHER)
        await store.record_usage([usage(), usage(conversation=OTHER, user="bo", input_tokens=5)])

        for of_other in (
            await store.usage(conversation=OTHER),
            await store.usage(tenant=OTHER.tenant),
            await store.usage(user="bo"),
        ):
            assert [total.input_tokens for total in of_other] == [5]
        assert await store.usage(conversation=REF, user="bo") == ()
        assert [total.calls for total in await store.usage()] == [2]

    async def test_a_call_without_a_user_is_that_of_its_conversations_user(
        self, store: Store
    ) -> None:
        await tape(store, 1)
        await store.record_usage([usage(user=None)])

        assert [total.calls for total in await store.usage(user="ana")] == [1]
        assert await store.model_calls(ANA) == (usage(),)

    async def test_since_and_until_leave_out_what_was_before_and_after(self, store: Store) -> None:
        await tape(store, 1)
        await store.record_usage([usage(at=at(minutes)) for minutes in (0, 10, 20)])

        assert [t.calls for t in await store.usage(since=at(10))] == [2]
        assert await store.usage(since=at(20) + timedelta(microseconds=1)) == ()
        assert [t.calls for t in await store.usage(until=at(20))] == [2]
        assert await store.usage(until=at(0)) == ()

    async def test_a_deleted_conversations_calls_stay_without_it(self, store: Store) -> None:
        await tape(store, 1)
        await store.record_usage([usage()])

        await store.delete(REF)
        await tape(store, 1)

        assert await store.usage(conversation=REF) == ()
        assert [total.calls for total in await store.usage(user="ana")] == [1]
        assert [total.calls for total in await store.usage(tenant=REF.tenant)] == [1]

    async def test_a_call_for_no_conversation_is_kept(self, store: Store) -> None:
        await store.record_usage([usage(conversation=None, user=None), usage()])

        assert [total.calls for total in await store.usage()] == [2]
        assert await store.check() == ()
