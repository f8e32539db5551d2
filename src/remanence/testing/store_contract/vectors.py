"""Vectors: each note, observed message and fact gets one, which is deleted with it."""

from dataclasses import replace
from datetime import datetime

from remanence.protocols import Store
from remanence.testing.store_contract.handles import Handles
from remanence.testing.store_contract.samples import (
    ANA,
    BOB,
    OTHER,
    REF,
    START,
    active,
    at,
    expect_state,
    fact,
    new,
    observation,
    observe_ranges,
    reflection,
    user,
)
from remanence.types import ConversationRef, Erasure, Keep, Note, RecallFilter

MODEL = "contract"
ALL = Keep()
RED, GREEN, BLUE = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def vector(text: str) -> tuple[float, ...]:
    """Return a vector for the colours named in a text."""
    return tuple(float(name in text) + 0.01 for name in ("red", "green", "blue"))


async def embed_all(
    store: Store, model: str = MODEL, *, keep: Keep = ALL, at: datetime = START
) -> list[str]:
    """Save a vector for every text, and return the texts in the store's order."""
    texts: list[str] = []
    while (task := await store.next_vector_task(model, keep=keep, at=at)) is not None:
        texts += [item.text for item in task.items]
        await store.save_vectors(task, [vector(item.text) for item in task.items])
    return texts


async def colours(store: Store, *names: str, ref: ConversationRef = REF) -> None:
    """Append a message for each colour, and observe each in a note."""
    appended = await store.append(ref, [user(f"message {name}") for name in names], user="ana")
    notes = tuple(
        Note(text=f"note {name}", first_seq=seq, last_seq=seq, observed_at=at(seq))
        for seq, name in enumerate(names, start=1)
    )
    segment = observation(1, len(names), notes=notes)
    expect_state(await store.commit_observation(appended.state, segment))


class VectorContract(Handles):
    """`next_vector_task`, `save_vectors`, `nearest`, `nearest_facts`."""

    async def test_each_text_gets_one_vector_of_each_model(self, store: Store) -> None:
        await colours(store, "red", "green")
        await store.save_facts(new(fact("f1", "likes blue")))
        everything = ["message green", "message red", "likes blue", "note green", "note red"]

        first, again = await embed_all(store), await embed_all(store)
        other = await embed_all(store, "another")

        assert sorted(first) == sorted(other) == sorted(everything)
        assert again == []

    async def test_what_is_not_observed_yet_has_no_vector(self, store: Store) -> None:
        await store.append(REF, [user("message red")], user="ana")

        assert await store.next_vector_task(MODEL, keep=Keep(), at=START) is None

    async def test_a_fork_has_the_vectors_of_its_messages(self, store: Store) -> None:
        await colours(store, "red", "green", "blue")
        state = expect_state(await store.state(REF))
        await embed_all(store)

        await store.fork(state, OTHER, last_seq=2, at=START)

        hits = await store.nearest(OTHER, MODEL, RED, limit=9)
        assert [hit.text for hit in hits] == ["message red", "message green"]
        assert await store.delete(REF) == 6  # of three messages and their notes
        assert await store.nearest(OTHER, MODEL, RED, limit=9) == hits
        assert await embed_all(store) == []

    async def test_the_nearest_come_first(self, store: Store, other: Store) -> None:
        await colours(store, "red", "green", "blue")
        await embed_all(store)

        hits = await other.nearest(REF, MODEL, GREEN, limit=2)

        assert {hit.text for hit in hits} == {"note green", "message green"}
        assert all(0.9 < hit.score <= 1.001 for hit in hits)
        assert await other.nearest(REF, "another", GREEN, limit=2) == ()
        assert await other.nearest(REF, MODEL, (1.0, 0.0), limit=2) == ()

    async def test_a_filter_keeps_the_nearest_that_are_allowed(self, store: Store) -> None:
        await colours(store, "red", "green", "blue")
        await embed_all(store)
        only = RecallFilter(role="user", since=at(-1))

        hits = await store.nearest(REF, MODEL, GREEN, limit=1, only=only)

        assert [(hit.kind, hit.text) for hit in hits] == [("message", "message green")]

    async def test_vectors_stay_in_their_conversation(self, store: Store) -> None:
        other = ConversationRef("other", REF.id)
        await colours(store, "red")
        await colours(store, "green", ref=other)
        await embed_all(store)

        assert {hit.text for hit in await store.nearest(REF, MODEL, GREEN, limit=9)} == {
            "note red",
            "message red",
        }

    async def test_the_nearest_of_a_user_are_of_all_conversations_of_that_user(
        self, store: Store
    ) -> None:
        for tenant, id_, name in (
            ("default", "a", "red"),
            ("default", "b", "green"),
            ("t", "a", "blue"),
        ):
            await colours(store, name, ref=ConversationRef(tenant, id_))
        await embed_all(store)

        hits = await store.nearest(ANA, MODEL, GREEN, limit=9)

        assert [hit.conversation for hit in hits] == ["b", "b", "a", "a"]
        assert {hit.text for hit in hits[:2]} == {"note green", "message green"}
        assert await store.nearest(BOB, MODEL, GREEN, limit=9) == ()

    async def test_replaced_notes_have_no_vectors(self, store: Store) -> None:
        state = await active(store, [(1, 2)])
        await embed_all(store)
        new_note = (Note(text="note blue", first_seq=1, last_seq=2),)
        condensed = reflection(1, 2, notes=new_note)
        expect_state(await store.commit_reflection(state, condensed, ["g0-1-2"]))

        made = await embed_all(store)
        hits = await store.nearest(REF, MODEL, BLUE, limit=9)

        assert made == ["note blue"]
        assert [hit.text for hit in hits if hit.kind == "note"] == ["note blue"]

    async def test_notes_that_are_shown_again_after_an_erasure_get_vectors_again(
        self, store: Store
    ) -> None:
        state = await active(store, [(1, 1), (2, 2)])
        state = expect_state(
            await store.commit_reflection(state, reflection(1, 2), ["g0-1-1", "g0-2-2"])
        )
        await embed_all(store)
        source = await store.segment(REF, "g0-2-2")
        assert source is not None
        moved = replace(source, generation=1, superseded=None)
        anew = observation(1, 1, generation=1, text="rest", notes=())
        erasure = Erasure(tombstones=(), segments=("g0-1-1", "g1-1-2"), remade=(anew, moved))
        await store.forget(state, erasure, at=at(90))

        assert await embed_all(store) == ["rest", source.text]

    async def test_a_task_of_what_was_deleted_meanwhile_writes_nothing(
        self, store: Store, other: Store
    ) -> None:
        await observe_ranges(store, [(1, 2)])
        task = await store.next_vector_task(MODEL, keep=Keep(), at=START)
        assert task is not None
        await other.delete(REF)

        await store.save_vectors(task, [RED for _ in task.items])

        assert await store.next_vector_task(MODEL, keep=Keep(), at=START) is None
        assert await store.nearest(REF, MODEL, RED, limit=9) == ()

    async def test_a_deleted_conversation_takes_its_vectors_along(self, store: Store) -> None:
        await colours(store, "red")
        await embed_all(store)
        await store.delete(REF)

        await colours(store, "green")

        assert await store.nearest(REF, MODEL, RED, limit=9) == ()

    async def test_only_facts_of_the_owner_that_hold_are_near(self, store: Store) -> None:
        await store.save_facts(new(fact("f1", "likes red"), fact("f2", "likes green")))
        await store.save_facts(new(fact("f3", "likes red too", BOB)))
        await embed_all(store)
        await store.save_facts(new(fact("f4", "likes blue"), f1="f4"))
        await embed_all(store)

        near = await store.nearest_facts(ANA, MODEL, BLUE, limit=9)

        assert [found.id for found in near] == ["f4", "f2"]
        assert await store.nearest_facts(ANA, MODEL, BLUE, limit=1) == near[:1]

    async def test_the_nearest_facts_are_of_those_that_meet_a_condition(self, store: Store) -> None:
        reds = (fact(f"f{number}", f"likes red {number}") for number in range(20))
        await store.save_facts(new(fact("f20", "likes green"), *reds))
        await embed_all(store)

        near = await store.nearest_facts(
            ANA, MODEL, RED, limit=1, only=lambda each: "green" in each.summary
        )

        assert [found.id for found in near] == ["f20"]

    async def test_facts_with_vectors_are_left_out_when_the_store_begins_again(
        self, store: Store
    ) -> None:
        await store.save_facts(new(fact("f1", "likes red"), fact("f2", "likes green")))
        task = await store.next_vector_task(MODEL, keep=ALL, at=START)
        assert task is not None
        await store.save_vectors(replace(task, items=task.items[1:]), [GREEN])

        await store.save_vectors(replace(task, cursor=0, items=()), ())

        assert await embed_all(store) == ["likes red"]

    async def test_notes_with_vectors_are_left_out_when_the_store_begins_again(
        self, store: Store
    ) -> None:
        await colours(store, "red")
        task = await store.next_vector_task(MODEL, keep=ALL, at=START)
        assert task is not None
        (note, *rest) = task.items
        await store.save_vectors(replace(task, items=(note,)), [RED])

        await store.save_vectors(replace(task, cursor=0, items=()), ())

        assert await embed_all(store) == [item.text for item in rest]

    async def test_each_place_gets_the_vectors_of_all_facts(self, store: Store) -> None:
        await store.save_facts(new(fact("f1", "likes red")))
        await embed_all(store)

        task = await store.next_vector_task(MODEL, keep=ALL, at=START, place="elsewhere")
        assert task is not None
        await store.save_vectors(replace(task, items=()), ())

        assert [item.text for item in task.items] == ["likes red"]
        again = await store.next_vector_task(MODEL, keep=ALL, at=START, place="elsewhere")
        assert again is None
        assert await embed_all(store) == []

    async def test_superseded_facts_come_with_the_new_ones_of_another_place(
        self, store: Store
    ) -> None:
        await store.save_facts(new(fact("f1", "likes red"), fact("f2", "likes green")))
        await store.save_facts(new(fact("f3", "likes blue"), f1="f3"))
        await store.save_facts(new(fact("f4", "likes grey"), f3="f4"))

        task = await store.next_vector_task(MODEL, keep=ALL, at=START, place="elsewhere")
        here = await store.next_vector_task(MODEL, keep=ALL, at=START)

        assert task is not None
        assert here is not None
        assert sorted(task.ended) == [(ANA, "f1"), (ANA, "f3")]
        assert here.ended == ()

    async def test_a_fact_that_holds_again_gets_its_vector_again(self, store: Store) -> None:
        await colours(store, "green")
        await store.save_facts(new(fact("f1", "likes red")))
        await embed_all(store)
        await store.save_facts(new(fact("f2", "likes blue", conversation=REF.id), f1="f2"))
        await embed_all(store)
        await store.delete(REF)
        await embed_all(store)

        near = await store.nearest_facts(ANA, MODEL, RED, limit=9)

        assert [found.id for found in near] == ["f1"]

    async def test_a_fact_that_holds_again_while_others_get_vectors_gets_its_own_and_no_other(
        self, store: Store, other: Store
    ) -> None:
        await colours(store, "green")
        await embed_all(store)
        await store.save_facts(new(fact("f1", "likes red")))
        now = fact("f2", "likes blue", conversation=REF.id)
        await store.save_facts(new(now, fact("f3", "likes green"), f1="f2"))
        task = await other.next_vector_task(MODEL, keep=ALL, at=START)
        assert task is not None

        await store.delete(REF)
        await other.save_vectors(task, [vector(item.text) for item in task.items])

        assert await embed_all(store) == ["likes red"]
        near = await store.nearest_facts(ANA, MODEL, RED, limit=9)
        assert [found.id for found in near] == ["f1", "f3"]
