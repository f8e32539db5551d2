"""Vectors of facts in Qdrant, in its local mode."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

qdrant_client = pytest.importorskip("qdrant_client", reason="needs the extra qdrant")

from qdrant_client import AsyncQdrantClient, QdrantClient  # noqa: E402 - after the check that it is there

from remanence import Memory, Message, Policy  # noqa: E402 - as above
from remanence.errors import InvalidArgument, StoreUnavailable  # noqa: E402 - as above
from remanence.recall.qdrant import QdrantFactVectors  # noqa: E402 - as above
from remanence.recall.search import MIN_POOL  # noqa: E402 - as above
from remanence.types import Owner  # noqa: E402 - as above

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
ANA, EVE = Owner("default", "ana"), Owner("default", "eve")


async def colours(texts: Sequence[str]) -> list[list[float]]:
    return [[float(name in text) + 0.01 for name in ("red", "green", "blue")] for text in texts]


@pytest.fixture
async def client() -> AsyncIterator[AsyncQdrantClient]:
    client = AsyncQdrantClient(":memory:")
    yield client
    await client.close()


async def points(client: AsyncQdrantClient) -> int:
    listed = await client.get_collections()
    return sum([(await client.count(c.name)).count for c in listed.collections])


async def test_facts_are_found_by_meaning_in_qdrant(client: AsyncQdrantClient) -> None:
    async with Memory.open(
        "sqlite:///:memory:", embedder=colours, fact_vectors=QdrantFactVectors(client)
    ) as memory:
        saved = await memory.facts.save("Ana paints the boat red", user="ana")
        await memory.facts.save("Ana has a green door", user="ana")
        await memory.facts.save("Eve has a red nose", user="eve")
        chat = memory.conversation("a", user="ana")
        await chat.append(Message.user("Hello."))
        await chat.flush()
        kept = await points(client)
        found = await memory.facts.search("infrared", user="ana", limit=1)
        foreign = await memory.facts.search("infrared", user="nobody")

    assert kept == 3
    assert found == (saved,)
    assert foreign == ()


async def test_a_fact_is_found_behind_nearer_ones_that_a_filter_leaves_out(
    client: AsyncQdrantClient,
) -> None:
    async with Memory.open(
        "sqlite:///:memory:", embedder=colours, fact_vectors=QdrantFactVectors(client)
    ) as memory:
        old = await memory.facts.save("Ana has a green door", user="ana", valid_from=NOON)
        for number in range(30):
            await memory.facts.save(f"Boat {number} was painted red", user="ana")
        chat = memory.conversation("a", user="ana")
        await chat.append(Message.user("Hello."))
        await chat.flush()
        until = NOON + timedelta(hours=1)
        found = await memory.recall("infrared", user="ana", until=until)

    assert [hit.source_id for hit in found] == [old.id]


async def test_a_wrong_client_is_refused_with_the_right_one() -> None:
    sync: Any = QdrantClient(":memory:")

    with pytest.raises(InvalidArgument, match=r"client=<.*use an AsyncQdrantClient"):
        QdrantFactVectors(sync)
    with pytest.raises(
        InvalidArgument, match=r"fact_vectors=<.*such as .*QdrantFactVectors\(client"
    ):
        async with Memory.open("sqlite:///:memory:", embedder=colours, fact_vectors=sync):
            pass
    sync.close()


async def test_each_place_gets_the_vectors_of_all_facts(
    client: AsyncQdrantClient, tmp_path: Path
) -> None:
    vectors = QdrantFactVectors(client)
    found = []
    for place, summary in ((None, "The boat is red"), (vectors, "The car is red"), (None, "")):
        async with Memory.open(
            f"sqlite:///{tmp_path}/m.db", embedder=colours, fact_vectors=place
        ) as memory:
            if summary:
                await memory.facts.save(summary, user="ana")
            await memory.conversation("a").flush()
            facts = await memory.facts.search("infrared", user="ana")
            found.append({fact.summary for fact in facts})

    both = {"The boat is red", "The car is red"}
    assert found == [{"The boat is red"}, both, both]


async def test_facts_are_put_again_into_a_collection_that_was_deleted(
    client: AsyncQdrantClient,
) -> None:
    vectors = QdrantFactVectors(client)
    async with Memory.open("sqlite:///:memory:", embedder=colours, fact_vectors=vectors) as memory:
        saved = await memory.facts.save("Ana paints the boat red", user="ana")
        chat = memory.conversation("a")
        await chat.flush()
        (collection,) = (await client.get_collections()).collections
        await client.delete_collection(collection.name)
        lost = await memory.facts.search("infrared", user="ana")
        await chat.flush()
        found = await memory.facts.search("infrared", user="ana")
        problems = await memory.check()

    assert lost == ()
    assert found == (saved,)
    assert problems == ()


@pytest.mark.req("X-14")
async def test_forgotten_facts_and_deleted_conversations_leave_no_vector(
    client: AsyncQdrantClient,
) -> None:
    async with Memory.open(
        "sqlite:///:memory:",
        policy=Policy.default(note_ratio=1.0),
        embedder=colours,
        fact_vectors=QdrantFactVectors(client),
    ) as memory:
        saved = await memory.facts.save("Ana paints the boat red", user="ana")
        chat = memory.conversation("a", user="ana")
        await chat.append(Message.user("My favorite color is green. I live in Lisbon."))
        await chat.end()
        before = await points(client)
        await memory.facts.forget(saved.id, user="ana")
        forgotten = await points(client)
        await chat.delete()
        deleted = await points(client)

    assert before >= 2
    assert forgotten == before - 1
    assert deleted == 0


async def test_vectors_of_facts_that_are_gone_crowd_out_no_current_one(
    client: AsyncQdrantClient,
) -> None:
    vectors = QdrantFactVectors(client)
    async with Memory.open("sqlite:///:memory:", embedder=colours, fact_vectors=vectors) as memory:
        saved = await memory.facts.save("Ana has a green door", user="ana")
        await memory.conversation("a").flush()
        red = {f"gone-{number}": [1.0, 0.0, 0.0] for number in range(5 * MIN_POOL)}
        await vectors.put(ANA, "function:colours", red)
        found = await memory.facts.search("infrared", user="ana")

    assert found == (saved,)


async def test_a_superseded_fact_leaves_no_vector(client: AsyncQdrantClient) -> None:
    vectors = QdrantFactVectors(client)
    async with Memory.open("sqlite:///:memory:", embedder=colours, fact_vectors=vectors) as memory:
        chat = memory.conversation("a")
        old = await memory.facts.save("Ana has a green door", user="ana")
        await chat.flush()
        before = await points(client)
        await memory.facts.save("Ana has a blue door", user="ana", replaces=old.id)
        await chat.flush()

    assert (before, await points(client)) == (1, 1)


async def test_a_fact_that_is_forgotten_without_an_embedder_leaves_no_vector(
    client: AsyncQdrantClient, tmp_path: Path
) -> None:
    url, vectors = f"sqlite:///{tmp_path}/m.db", QdrantFactVectors(client)
    async with Memory.open(url, embedder=colours, fact_vectors=vectors) as memory:
        saved = await memory.facts.save("Ana paints the boat red", user="ana")
        await memory.conversation("a").flush()
        before = await points(client)
    async with Memory.open(url, fact_vectors=vectors) as memory:
        await memory.facts.forget(saved.id, user="ana")

    assert (before, await points(client)) == (1, 0)


async def test_vectors_of_others_are_neither_near_nor_forgotten(client: AsyncQdrantClient) -> None:
    vectors = QdrantFactVectors(client)
    await vectors.put(ANA, "m", {"f1": [1.0, 0.0], "f2": [0.0, 1.0]})
    await vectors.put(EVE, "m", {"f1": [1.0, 0.0]})
    await vectors.forget(EVE, ["f1", "f2"])

    assert await vectors.nearest(ANA, "m", [0.9, 0.1], limit=9) == ("f1", "f2")
    assert await vectors.nearest(EVE, "m", [0.9, 0.1], limit=9) == ()
    assert await vectors.nearest(ANA, "another", [0.9, 0.1], limit=9) == ()


async def test_a_fact_that_is_forgotten_while_its_vector_is_made_leaves_none(
    client: AsyncQdrantClient,
) -> None:
    asked, gate = asyncio.Event(), asyncio.Event()

    async def slow(texts: Sequence[str]) -> list[list[float]]:
        asked.set()
        await gate.wait()
        return await colours(texts)

    vectors = QdrantFactVectors(client)
    async with Memory.open("sqlite:///:memory:", embedder=slow, fact_vectors=vectors) as memory:
        fact = await memory.facts.save("Ana paints the boat red", user="ana")
        async with asyncio.timeout(60):
            await asked.wait()
        await memory.facts.forget(fact.id, user="ana")
        gate.set()
        await memory.conversation("a").flush()
        left = await points(client)

    assert left == 0


async def test_vectors_of_facts_that_could_not_be_put_become_nobody_elses(
    client: AsyncQdrantClient,
) -> None:
    class Reached(QdrantFactVectors):
        is_up = False

        async def put(
            self, owner: Owner, model: str, vectors: Mapping[str, Sequence[float]]
        ) -> None:
            if not self.is_up:
                raise ConnectionError("refused")
            await super().put(owner, model, vectors)

    vectors = Reached(client)
    async with Memory.open("sqlite:///:memory:", embedder=colours, fact_vectors=vectors) as memory:
        for name in ("boat", "door", "hat"):
            await memory.facts.save(f"Ana has a green {name}", user="ana")
        chat = memory.conversation("a", user="eve")
        await chat.append(Message.user("My nose is red."), Message.assistant("So it is."))
        await chat.flush(everything=True)
        vectors.is_up = True
        await chat.flush(everything=True)
        (nearest,) = await chat.recall("infrared", kind="message", limit=1)

    assert nearest.first_seq == 1


@pytest.mark.parametrize("call", ["fact", "message", "named", "delete", "user"])
async def test_forgetting_that_qdrant_interrupted_leaves_no_vector_when_it_is_repeated(
    client: AsyncQdrantClient, call: str
) -> None:
    class Interrupted(QdrantFactVectors):
        is_up = False

        async def forget(self, owner: Owner, fact_ids: Sequence[str]) -> None:
            if not self.is_up:
                raise ConnectionError("refused")
            await super().forget(owner, fact_ids)

    vectors = Interrupted(client)
    policy = Policy.default(note_ratio=1.0)
    async with Memory.open(
        "sqlite:///:memory:", policy=policy, embedder=colours, fact_vectors=vectors
    ) as memory:
        chat = memory.conversation("a", user="ana")
        await chat.append(Message.user("My favorite color is green.", id="green"))
        await chat.end()
        (fact,) = await memory.facts.list(user="ana")
        before = await points(client)

        async def forget() -> None:
            if call == "fact":
                await memory.facts.forget(fact.id, user="ana")
            elif call == "delete":
                await chat.delete()
            elif call == "user":
                await memory.forget_user("ana")
            else:
                await (chat.forget("green") if call == "message" else chat.forget(facts=[fact.id]))

        with pytest.raises(StoreUnavailable, match=r"Interrupted .* \(ConnectionError\)"):
            await forget()
        vectors.is_up = True
        await forget()

        assert before == 1
        assert await points(client) == 0
        assert await memory.facts.list(user="ana", history=True) == ()


async def test_a_fact_of_a_conversation_that_has_not_begun_keeps_its_vector_when_that_is_deleted(
    client: AsyncQdrantClient,
) -> None:
    vectors = QdrantFactVectors(client)
    async with Memory.open("sqlite:///:memory:", embedder=colours, fact_vectors=vectors) as memory:
        await memory.facts.save("Ana has a green hat", user="ana", conversation="later")
        chat = memory.conversation("now", user="ana")
        await chat.append(Message.user("Hello."))
        await chat.flush(everything=True)
        before = await points(client)

        assert await memory.conversation("later", user="ana").delete() is None
        assert await points(client) == before == 1


async def test_without_qdrant_at_hand_words_alone_find_facts(
    client: AsyncQdrantClient, caplog: pytest.LogCaptureFixture
) -> None:
    class Unreachable(QdrantFactVectors):
        async def put(
            self, owner: Owner, model: str, vectors: Mapping[str, Sequence[float]]
        ) -> None:
            raise ConnectionError("refused")

        async def nearest(
            self, owner: Owner, model: str, vector: Sequence[float], *, limit: int
        ) -> tuple[str, ...]:
            raise ConnectionError("refused")

    async with Memory.open(
        "sqlite:///:memory:", embedder=colours, fact_vectors=Unreachable(client)
    ) as memory:
        saved = await memory.facts.save("Ana paints the boat red", user="ana")
        found = await memory.facts.search("boat", user="ana")
        await memory.conversation("a").flush()
        (problem,) = await memory.check()

    assert found == (saved,)
    assert problem.what.startswith("Unreachable failed (ConnectionError, ")
    assert problem.what.endswith(": refused")
    assert "correct Unreachable" in problem.remedy
    assert "Unreachable failed (ConnectionError, 1 in a row)" in caplog.text
    assert "the embedder failed" not in caplog.text
