"""Retention: deletes rows that no rule keeps, but nothing that a context needs."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from remanence.protocols import Store
from remanence.testing.store_contract.handles import Handles
from remanence.testing.store_contract.samples import (
    REF,
    START,
    active,
    expect_state,
    observation,
    reflection,
    tape,
    usage,
    user,
)
from remanence.testing.store_contract.vectors import MODEL, RED, embed_all
from remanence.types import ConversationRef, Keep, MemoryState, Note, Pruned, Retention

SUPERSEDED = Retention(superseded=Keep(days=30))


class RetentionContract(Handles):
    """`prune`, `prune_usage`, their counts, and `table_sizes`."""

    async def test_without_rules_everything_stays(self, store: Store) -> None:
        state = await condense_twice(store)

        assert await store.prune([state], Retention(), at=after(900), limit=100) == Pruned()
        assert len(await store.segments(REF, live=False)) == 5

    async def test_a_segment_is_deleted_that_was_replaced_before_the_days_that_are_kept(
        self, store: Store
    ) -> None:
        state = await condense_twice(store)  # two of three after a day, those and one after 20

        early = await store.prune([state], SUPERSEDED, at=after(30.9), limit=100)
        late = await store.prune([state], SUPERSEDED, at=after(31.1), limit=100)

        assert (early.superseded, late.superseded) == (0, 2)
        left = await store.segments(REF, live=False)
        assert [(segment.generation, segment.live) for segment in left] == [
            (0, False),
            (1, False),
            (1, True),
        ]

    async def test_live_segments_and_the_state_stay_at_any_age(self, store: Store) -> None:
        state = await condense_twice(store)
        live = await store.segments(REF, live=True)
        rules = Retention(superseded=Keep(days=1), log=Keep(days=1), vectors=Keep(days=1))

        await store.prune([state], rules, at=after(9_000), limit=100)

        assert await store.segments(REF, live=False) == live
        assert await store.state(REF) == state
        assert await store.check() == ()

    async def test_the_newest_replaced_segments_are_kept_by_their_number(
        self, store: Store
    ) -> None:
        state = await condense_twice(store)

        pruned = await store.prune(
            [state], Retention(superseded=Keep(last=2)), at=after(900), limit=100
        )

        assert pruned.superseded == 2
        assert len(await store.segments(REF, live=False)) == 3

    async def test_what_one_of_two_rules_keeps_stays(self, store: Store) -> None:
        state = await condense_twice(store)
        both = Retention(superseded=Keep(days=30, last=3))

        assert (await store.prune([state], both, at=after(35), limit=100)).superseded == 2
        assert (await store.prune([state], both, at=after(900), limit=100)).superseded == 0

    async def test_days_and_rows_beyond_all_bounds_keep_everything(self, store: Store) -> None:
        state = await condense_twice(store)
        for keep in (Keep(days=10**12), Keep(last=10**30)):
            rules = Retention(superseded=keep, log=keep, usage=keep, vectors=keep)

            assert await store.prune([state], rules, at=after(900), limit=100) == Pruned()
            assert await store.prune_usage(rules, at=after(900), limit=100) == 0

    async def test_the_log_keeps_its_newest_entries(self, store: Store) -> None:
        state = await condense_twice(store)
        entries = await store.log(REF)

        await store.prune([state], Retention(log=Keep(last=2)), at=after(900), limit=100)
        assert await store.log(REF) == entries[-2:]

        await store.prune([state], Retention(log=Keep(days=1)), at=after(900), limit=100)
        assert await store.log(REF) == entries[-1:]

    async def test_nothing_of_the_last_day_is_deleted(self, store: Store) -> None:
        state = await condense_twice(store)
        await store.record_usage([usage(at=after(20))])
        keep = Keep(last=1)
        rules = Retention(superseded=keep, log=keep, usage=keep, vectors=keep)

        await store.prune([state], rules, at=after(20.9), limit=100)
        await store.prune_usage(rules, at=after(20.9), limit=100)

        assert [entry.at for entry in await store.log(REF)] == [after(20)]
        assert len([s for s in await store.segments(REF, live=False) if not s.live]) == 2
        assert [total.calls for total in await store.usage()] == [1]

    async def test_old_model_calls_are_deleted(self, store: Store) -> None:
        await tape(store, 1)
        await store.record_usage([usage(at=after(day)) for day in range(10)])

        by_age = await store.prune_usage(Retention(usage=Keep(days=7)), at=after(10), limit=100)
        assert by_age == 3
        by_count = await store.prune_usage(Retention(usage=Keep(last=4)), at=after(99), limit=100)
        assert by_count == 3
        assert [total.calls for total in await store.usage()] == [4]
        assert await store.usage(since=after(6)) == await store.usage()

    async def test_vectors_of_old_messages_are_deleted_and_those_of_notes_stay(
        self, store: Store
    ) -> None:
        state = await embed_messages(store)

        pruned = await store.prune(
            [state], Retention(vectors=Keep(days=30)), at=after(32.5), limit=100
        )

        assert pruned == Pruned(vectors=3)
        hits = await store.nearest(REF, MODEL, RED, limit=20)
        assert sorted((hit.kind, hit.first_seq) for hit in hits) == [
            ("message", 4),
            ("message", 5),
            ("message", 6),
            ("note", 1),
        ]
        assert await store.next_vector_task(MODEL, keep=Keep(), at=START) is None

    async def test_the_age_of_a_message_is_that_of_its_instant_in_any_zone(
        self, store: Store
    ) -> None:
        state = await embed_messages(store, timezone(timedelta(hours=14)))
        rules = Retention(vectors=Keep(days=30))

        assert (await store.prunable([state], rules, at=after(32.1))).vectors == 3
        assert (await store.prune([state], rules, at=after(32.1), limit=100)).vectors == 3

    async def test_a_vector_that_retention_would_delete_is_not_made(self, store: Store) -> None:
        await observe_messages(store)

        by_age = await embed_all(store, "by age", keep=Keep(days=30), at=after(33.5))
        by_number = await embed_all(store, "by number", keep=Keep(last=2), at=after(2.5))
        both = await embed_all(store, "both", keep=Keep(days=30, last=3), at=after(33.5))

        assert [text[-1] for text in sorted(by_age)[:-1]] == ["4", "5"]
        assert [text[-1] for text in sorted(by_number)[:-1]] == ["2", "3", "4", "5"]
        assert [text[-1] for text in sorted(both)[:-1]] == ["3", "4", "5"]

    async def test_a_reflection_that_purges_observations_brings_no_vectors_back(
        self, store: Store
    ) -> None:
        for keep in (Keep(days=30), Keep(last=2)):
            ref = ConversationRef("default", f"purged {keep.days}")
            state = await embed_messages(store, ref=ref)
            await store.prune([state], Retention(vectors=keep), at=after(33.5), limit=100)
            active = await store.activate(state, active_seq=6, tail_seq=7, at=START)
            note = Note(text="note blue", first_seq=1, last_seq=6)
            condensed = reflection(1, 6, notes=(note,))
            expect_state(
                await store.commit_reflection(
                    expect_state(active), condensed, ["g0-1-6"], purge=True
                )
            )

            assert await embed_all(store, keep=keep, at=after(33.5)) == ["note blue"]

    async def test_a_reflection_brings_no_vectors_back(self, store: Store) -> None:
        state = await embed_messages(store)
        state = expect_state(await store.activate(state, active_seq=6, tail_seq=7, at=START))
        rules = Retention(vectors=Keep(days=30))
        assert (await store.prune([state], rules, at=after(99), limit=100)).vectors == 6

        note = Note(text="note blue", first_seq=1, last_seq=6)
        condensed = reflection(1, 6, notes=(note,))
        expect_state(await store.commit_reflection(state, condensed, ["g0-1-6"]))

        assert await embed_all(store) == ["note blue"]

    async def test_the_newest_vectors_of_messages_are_kept_by_their_number(
        self, store: Store
    ) -> None:
        state = await embed_messages(store)
        rules = Retention(vectors=Keep(last=1))

        assert (await store.prune([state], rules, at=after(99), limit=100)).vectors == 5
        assert (await store.prune([state], rules, at=after(99), limit=100)).vectors == 0

    async def test_a_batch_deletes_no_more_than_its_limit(self, store: Store) -> None:
        state = await condense_twice(store)
        await store.record_usage([usage(at=after(day)) for day in range(10)])
        rules = Retention(superseded=Keep(days=1), log=Keep(days=1), usage=Keep(days=1))

        counts = [await store.prune([state], rules, at=after(900), limit=3) for _ in range(4)]

        assert [pruned.superseded for pruned in counts] == [3, 1, 0, 0]
        assert [pruned.log for pruned in counts] == [3, 2, 0, 0]
        assert [await store.prune_usage(rules, at=after(900), limit=4) for _ in range(4)] == [
            4,
            4,
            2,
            0,
        ]

    async def test_what_would_be_deleted_is_counted(self, store: Store) -> None:
        state = await condense_twice(store)
        await store.record_usage([usage(at=after(day)) for day in range(10)])
        keep = Keep(days=5, last=1)
        rules = Retention(superseded=keep, log=keep, usage=keep, vectors=keep)

        counted = await store.prunable([state], rules, at=after(900))
        calls = await store.prunable_usage(rules, at=after(900))

        assert (counted.superseded, counted.log, calls) == (4, 5, 9)
        assert await store.prune([state], rules, at=after(900), limit=100) == counted
        assert await store.prune_usage(rules, at=after(900), limit=100) == calls

    async def test_tables_are_listed_by_size(self, store: Store) -> None:
        await condense_twice(store)

        found = await store.table_sizes()

        rows = {size.table: size.rows for size in found}
        assert (rows["messages"], rows["segments"], rows["journal"]) == (6, 5, 6)
        sizes = [size.bytes for size in found]
        assert sizes == sorted(sizes, reverse=True)
        assert sizes[-1] > 0


def after(days: float) -> datetime:
    """Return the time *days* after `START`."""
    return START + timedelta(days=days)


async def condense_twice(store: Store) -> MemoryState:
    """Observe three ranges; condense two after a day, and the result with the third after 20 days."""
    state = await active(store, [(1, 2), (3, 4), (5, 6)])
    first = replace(reflection(1, 4), created_at=after(1))
    state = expect_state(await store.commit_reflection(state, first, ["g0-1-2", "g0-3-4"]))
    second = replace(reflection(1, 6), created_at=after(20))
    return expect_state(await store.commit_reflection(state, second, ["g1-1-4", "g0-5-6"]))


async def embed_messages(
    store: Store, zone: tzinfo = UTC, *, ref: ConversationRef = REF
) -> MemoryState:
    """Save vectors for six messages, one per day, and for their note."""
    state = await observe_messages(store, zone, ref=ref)
    await embed_all(store)
    return state


async def observe_messages(
    store: Store, zone: tzinfo = UTC, *, ref: ConversationRef = REF
) -> MemoryState:
    """Append six messages, one per day, and observe them in one note."""
    messages = [
        user(f"message {day}").replace(created_at=after(day).astimezone(zone)) for day in range(6)
    ]
    state = (await store.append(ref, messages, user="ana")).state
    return expect_state(await store.commit_observation(state, observation(1, 6)))
