"""Events: one for each committed change, in order, without texts or forgotten names."""

import asyncio
from dataclasses import replace

from remanence.protocols import Store
from remanence.testing.store_contract.handles import Handles
from remanence.testing.store_contract.samples import (
    ANA,
    REF,
    active,
    at,
    expect_state,
    fact,
    failure,
    new,
    observation,
    reflection,
    tape,
    users,
)
from remanence.types import (
    Budget,
    BudgetState,
    ConversationRef,
    Event,
    FactChanges,
    Owner,
)

SPENT = BudgetState(
    budget=Budget(scope="user", hard_tokens=10), spent_usd=0.0, spent_tokens=11, level="hard"
)


async def kept(store: Store, tenant: str = "default") -> tuple[Event, ...]:
    """Return the events of a tenant."""
    return (await store.events(tenant, after=0, limit=1_000)).events


class EventContract(Handles):
    """`events`, `pending_events`, `mark_delivered` and `record_budget`."""

    async def test_each_step_of_a_conversation_is_an_event(
        self, store: Store, other: Store
    ) -> None:
        state = await active(store, [(1, 2), (3, 4)])
        state = expect_state(await store.commit_reflection(state, reflection(1, 2), ["g0-1-2"]))
        state = expect_state(await store.record_failure(state, failure(failures=3)))
        expect_state(await store.forget_failures(state, at=at(80)))
        await store.record_budget(REF, SPENT, at=at(81))

        events = await kept(other)

        assert [(event.id, event.type) for event in events] == [
            (1, "observed"),
            (2, "observed"),
            (3, "activated"),
            (4, "reflected"),
            (5, "failed"),
            (6, "retried"),
            (7, "budget"),
        ]
        assert {(e.tenant, e.conversation, e.user) for e in events} == {(*REF, "ana")}
        assert events[1].at == at(60)
        assert events[1].data == {
            "segment": "g0-3-4",
            "generation": 0,
            "first_seq": 3,
            "last_seq": 4,
            "tokens": 7,
        }
        assert events[2].data == {"active_seq": 4, "tail_seq": 5}
        assert events[4].data == {
            "step": "observe",
            "reason": "timeout",
            "failures": 3,
            "next_attempt_at": at(62).isoformat(timespec="microseconds"),
        }
        assert events[6].data == {"scope": "user", "level": "hard"}

    async def test_a_change_that_lost_a_race_is_no_event(self, store: Store, other: Store) -> None:
        state = await tape(store, 4)
        await other.commit_observation(state, observation(1, 2))

        assert await store.commit_observation(state, observation(1, 4)) is None

        assert [event.data["last_seq"] for event in await kept(store)] == [2]

    async def test_appends_are_no_events(self, store: Store) -> None:
        await tape(store, 4)

        assert await store.events("default", after=0, limit=10) == ((), 0)

    async def test_a_reader_goes_on_after_the_last_event_that_it_saw(self, store: Store) -> None:
        await active(store, [(1, 2), (3, 4)])

        first = await store.events("default", after=0, limit=2)
        second = await store.events("default", after=first.last, limit=2)

        assert [event.id for event in first.events] == [1, 2]
        assert [event.id for event in second.events] == [3]
        assert second.last == 3
        assert await store.events("default", after=3, limit=2) == ((), 3)
        assert await store.events("default", after=None, limit=2) == ((), 3)
        assert await store.events("default", after=1, limit=0) == ((), 1)

    async def test_a_filter_skips_the_other_events_and_moves_past_them(self, store: Store) -> None:
        await active(store, [(1, 2)])
        await active(store, [(1, 2)], ConversationRef("default", "other"))

        of_other = await store.events("default", after=0, limit=9, conversation="other")
        activated = await store.events("default", after=0, limit=9, types=["activated", "failed"])
        nothing = await store.events("default", after=0, limit=9, types=["forgotten"])

        assert [event.id for event in of_other.events] == [3, 4]
        assert [event.id for event in activated.events] == [2, 4]
        assert nothing == ((), 4)

    async def test_each_tenant_has_events_and_ids_of_its_own(self, store: Store) -> None:
        await active(store, [(1, 2)])
        await active(store, [(1, 2)], ConversationRef("acme", "chat"))

        events = await kept(store, "acme")

        assert [(event.id, event.tenant) for event in events] == [(1, "acme"), (2, "acme")]
        assert await store.events("nobody", after=None, limit=1) == ((), 0)

    async def test_ids_follow_the_commits_of_concurrent_writers(
        self, store: Store, other: Store
    ) -> None:
        refs = [ConversationRef("default", f"chat-{number}") for number in range(12)]
        seen: list[int] = []

        async def read() -> None:
            while len(seen) < 2 * len(refs):
                page = await store.events("default", after=max(seen, default=0), limit=5)
                seen.extend(event.id for event in page.events)
                await asyncio.sleep(0)

        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            group.create_task(read())
            for number, ref in enumerate(refs):
                group.create_task(active((store, other)[number % 2], [(1, 2)], ref))

        assert seen == list(range(1, 2 * len(refs) + 1))

    async def test_facts_are_events_without_their_words(self, store: Store) -> None:
        await store.save_facts(new(fact("f1", "keeps bees")))
        await store.save_facts(new(fact("f2", "keeps bees")))  # known already
        await store.forget_fact(ANA, "f1")
        await store.forget_fact(ANA, "f1")

        events = await kept(store)

        assert [(e.type, e.conversation, e.user, e.data) for e in events] == [
            ("facts", None, "ana", {"facts": 1, "replaced": 0}),
            ("forgotten", None, "ana", {"facts": 1}),
        ]

    async def test_an_event_names_the_facts_that_requests_to_forget_ended(
        self, store: Store
    ) -> None:
        state = await tape(store, 4)
        await store.save_facts(new(told := fact("f1", "keeps bees")))
        taken_back = replace(fact("f2", "lives in Oslo"), valid_to=at(9))
        ended = (replace(told, valid_to=at(9)),)
        changes = FactChanges(facts=(taken_back,), ended=ended, newest="f1", requests=2)
        state = expect_state(await store.commit_facts(state, changes, facts_seq=2, at=at(80)))
        await store.commit_facts(state, FactChanges(requests=1), facts_seq=4, at=at(81))

        named = [(e.data.get("requests"), e.data.get("ended")) for e in await kept(store)]

        assert named == [(None, None), (2, "f2 f1"), (1, "")]

    async def test_a_deleted_conversation_leaves_one_event(self, store: Store) -> None:
        await active(store, [(1, 2)])

        await store.delete(REF)
        await store.delete(REF)
        await store.record_budget(REF, SPENT, at=at(81))

        assert [(e.id, e.type, e.conversation, e.user, e.data) for e in await kept(store)] == [
            (3, "forgotten", "chat", "ana", {"conversations": 1})
        ]

    async def test_no_event_names_a_forgotten_user_or_a_conversation_of_theirs(
        self, store: Store
    ) -> None:
        gone, stays = ConversationRef("default", "gone"), ConversationRef("default", "stays")
        await store.append(gone, users(2), user=None)
        await active(store, [(1, 2)], gone)
        await active(store, [(1, 2)])
        await store.delete(REF)
        await store.save_facts(new(fact("f1", "keeps bees")))
        await store.append(stays, users(2), user="bo")
        state = await store.state(stays)
        assert state is not None
        await store.commit_observation(state, observation(1, 2))

        await store.forget_user(ANA)

        left = await kept(store)
        assert [(e.type, e.conversation, e.user) for e in left] == [
            ("observed", "stays", "bo"),
            ("forgotten", None, None),
        ]
        assert left[-1].data == {"conversations": 1, "facts": 1}

    async def test_a_consumer_gets_the_events_after_those_delivered(
        self, store: Store, other: Store
    ) -> None:
        await active(store, [(1, 2)])
        await active(store, [(1, 2)], ConversationRef("acme", "chat"))
        assert [(e.tenant, e.id) for e in await store.pending_events("hook", limit=1)] == [
            ("acme", 1),
            ("default", 1),
        ]

        for event in await store.pending_events("hook", limit=9):
            if event.tenant == "acme" or event.id == 1:
                await store.mark_delivered("hook", event)

        assert [(e.tenant, e.id) for e in await other.pending_events("hook", limit=9)] == [
            ("default", 2)
        ]
        assert len(await store.pending_events("another", limit=9)) == 4
        rest = await store.pending_events("another", limit=9, without=["default", "nobody"])
        assert [(e.tenant, e.id) for e in rest] == [("acme", 1), ("acme", 2)]

    async def test_an_event_delivered_late_does_not_move_a_consumer_back(
        self, store: Store, other: Store
    ) -> None:
        await active(store, [(1, 2), (3, 4)])
        early, *_, late = await store.pending_events("hook", limit=9)

        await store.mark_delivered("hook", late)
        await other.mark_delivered("hook", early)

        assert await store.pending_events("hook", limit=9) == ()

    async def test_events_of_many_tenants_are_read_in_parts(self, store: Store) -> None:
        for number in range(102):
            owner = Owner(f"tenant-{number:03}", "ana")
            await store.save_facts(new(fact(f"f{number}", "keeps bees", owner)))
        await store.forget_fact(Owner("tenant-000", "ana"), "f0")
        await store.forget_user(Owner("tenant-000", "ana"))  # no event of it is left

        first = await store.pending_events("hook", limit=9)
        for event in first:
            await store.mark_delivered("hook", event)

        assert len(first) == 100
        assert first[0].tenant == "tenant-001"
        assert [e.tenant for e in await store.pending_events("hook", limit=9)] == ["tenant-101"]
