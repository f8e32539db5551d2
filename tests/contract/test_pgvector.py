"""The search for vectors with the extension pgvector and without it: the same hits."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence

import psycopg
import pytest
from hypothesis import given, settings, strategies as st
from psycopg import sql
from tests.postgres import empty, new_database, url_of

from remanence.errors import StoreUnavailable
from remanence.protocols import Store
from remanence.stores import open_store
from remanence.stores.postgres import PostgresStore
from remanence.stores.sql import vectors
from remanence.stores.sql.store import read_method
from remanence.testing.store_contract import OpenStore
from remanence.testing.store_contract.samples import ANA, REF, fact, new
from remanence.testing.store_contract.vectors import (
    GREEN,
    MODEL,
    RED,
    VectorContract,
    colours,
    embed_all,
)
from remanence.types import Fact, Hit, RecallFilter, VectorItem, VectorTask

pytestmark = pytest.mark.postgres

NAMES = ("red", "green", "blue", "red green")
QUERY = (0.2, 1.0, 0.5)
CLOSE = 1e-5
"""Similarities are sums of 32-bit floats, in the order that the processor likes best."""


@pytest.fixture(scope="module")
def pgvector(postgres: str) -> str:
    """The URL of a server that has the extension, for one who may create it."""
    with psycopg.connect(postgres) as connection:
        select = "SELECT FROM pg_available_extensions WHERE name = 'vector'"
        if connection.execute(select).fetchone() is None:
            pytest.skip("the server that REMANENCE_TEST_POSTGRES names lacks pgvector")
    return postgres


@pytest.fixture(scope="module")
def ordinary(postgres: str) -> Iterator[str]:
    """The URL of a database for a role that may create tables, but no extension."""
    with new_database(postgres) as url:
        role = sql.Identifier(name := f"role_{id(url)}")
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'x'").format(role))
            admin.execute(sql.SQL("GRANT CREATE ON SCHEMA public TO {}").format(role))
        yield url_of(url, user=name, password="x")
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute(sql.SQL("DROP OWNED BY {}").format(role))
            admin.execute(sql.SQL("DROP ROLE {}").format(role))


@pytest.fixture
def fresh(pgvector: str, database: str) -> str:
    """The URL of an empty database; a store that is opened on it has the extension created."""
    assert pgvector
    empty(database)
    return database


@pytest.fixture
async def memory(fresh: str) -> AsyncIterator[PostgresStore]:
    """A store with some vectors, which the database compares."""
    store = await open_filled(fresh)
    assert compares(fresh)
    yield store
    await store.close()


class TestWithoutPgvector(VectorContract):
    @pytest.fixture
    def open_again(self, ordinary: str) -> OpenStore:
        empty(ordinary)

        async def open_handle() -> Store:
            return await open_store(ordinary)

        return open_handle


async def open_filled(url: str) -> PostgresStore:
    store = await open_store(url)
    assert isinstance(store, PostgresStore)
    await colours(store, *NAMES)
    await store.save_facts(new(*(fact(name, f"likes {name}") for name in NAMES)))
    await embed_all(store)
    return store


async def in_python(store: PostgresStore, query: Sequence[float]) -> tuple[list[Hit], list[Fact]]:
    """All hits and facts by the search that every database has."""
    hits = await read_method(vectors.nearest)(store, REF, MODEL, query, limit=99)
    facts = await read_method(vectors.nearest_facts)(store, ANA, MODEL, query, limit=99)
    return list(hits), list(facts)


async def found(store: PostgresStore, query: Sequence[float]) -> tuple[list[Hit], list[Fact]]:
    return (
        list(await store.nearest(REF, MODEL, query, limit=99)),
        list(await store.nearest_facts(ANA, MODEL, query, limit=99)),
    )


def texts(found: tuple[list[Hit], list[Fact]]) -> list[str]:
    hits, facts = found
    return [hit.text for hit in hits] + [fact.summary for fact in facts]


def execute(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def compares(url: str) -> bool:
    """Whether the database compares vectors."""
    return execute(url, "SELECT to_regproc('remanence_similarity') IS NOT NULL") == [(True,)]


FLOATS = st.floats(-1e3, 1e3, width=32)


def test_both_ways_find_the_same_in_the_same_order_up_to_ties(fresh: str) -> None:
    @settings(max_examples=min(40, settings().max_examples))
    @given(st.data(), st.integers(1, 9), st.integers(1, 30))
    def same(data: st.DataObject, dimensions: int, limit: int) -> None:
        one = st.lists(FLOATS, min_size=dimensions, max_size=dimensions)
        given_vectors = [data.draw(one) for _ in items]
        query = data.draw(one)
        only = RecallFilter(kind=data.draw(st.sampled_from([None, "note", "message"])))
        model = f"{MODEL}/{dimensions}"
        task = VectorTask(model=model, subject="segment", cursor=1, items=items)
        runner.run(store.save_vectors(task, given_vectors))

        reference = runner.run(
            read_method(vectors.nearest)(store, REF, model, query, limit=99, only=only)
        )
        hits = runner.run(store.nearest(REF, model, query, limit=limit, only=only))

        scores = {(hit.kind, hit.text): hit.score for hit in reference}
        assert [hit.score for hit in hits] == pytest.approx(
            [hit.score for hit in reference[:limit]], abs=CLOSE
        )
        for hit in hits:
            assert hit.score == pytest.approx(scores[hit.kind, hit.text], abs=CLOSE)

    with asyncio.Runner() as runner:
        store = runner.run(open_filled(fresh))
        keys = execute(fresh, "SELECT item FROM vectors ORDER BY item")
        items = tuple(VectorItem(int(str(key)), "") for (key,) in keys)
        assert len(items) == 2 * len(NAMES)
        try:
            same()
        finally:
            runner.run(store.close())


async def test_equal_vectors_come_in_the_order_of_their_keys(memory: PostgresStore) -> None:
    await memory.save_facts(new(*(fact(f"{n}", f"has {n} red hats") for n in range(9))))
    await embed_all(memory)

    facts = await memory.nearest_facts(ANA, MODEL, RED, limit=10)

    assert [fact.id for fact in facts] == ["red", *(f"{n}" for n in range(9))]
    assert texts(await found(memory, RED)) == texts(await in_python(memory, RED))


async def test_a_filter_that_refuses_most_hits_still_fills_the_limit(memory: PostgresStore) -> None:
    only = RecallFilter(kind="message")

    hits = await memory.nearest(REF, MODEL, GREEN, limit=1, only=only)
    every = await memory.nearest(REF, MODEL, GREEN, limit=9, only=only)

    assert [hit.text for hit in hits] == ["message green"]
    assert len(every) == len(NAMES)


async def test_a_database_that_gets_the_extension_later_compares_at_the_next_opening(
    pgvector: str, ordinary: str
) -> None:
    empty(ordinary)
    store = await open_filled(ordinary)
    before = texts(await found(store, QUERY))
    (problem,) = await store.check()
    admin = psycopg.conninfo.conninfo_to_dict(pgvector)
    by_admin = url_of(ordinary, user=str(admin["user"]), password=str(admin.get("password", "")))
    try:
        execute(by_admin, "CREATE SCHEMA apart; GRANT USAGE ON SCHEMA apart TO PUBLIC")
        execute(by_admin, "CREATE EXTENSION vector SCHEMA apart")
        assert not compares(ordinary)
        await (await open_store(ordinary)).close()
        assert compares(ordinary)
        await store.save_facts(new(fact("late", "likes it")))
        await embed_all(store)
        after = texts(await found(store, QUERY))
        problems = await store.check()
    finally:
        await store.close()
        execute(by_admin, "DROP SCHEMA apart CASCADE")

    assert problem.level == "info"
    assert "vectors are compared in Python" in problem.what
    assert "SELECT remanence_use_pgvector()" in problem.remedy
    assert [text for text in after if text != "likes it"] == before
    assert "likes it" in after
    assert problems == ()


async def test_a_database_that_loses_the_extension_is_searched_as_before(fresh: str) -> None:
    store = await open_filled(fresh)
    assert compares(fresh)
    before = texts(await found(store, QUERY))

    execute(fresh, "DROP EXTENSION vector CASCADE")
    after = texts(await found(store, QUERY))
    await store.save_facts(new(fact("late", "likes green too")))
    await embed_all(store)
    facts = await store.nearest_facts(ANA, MODEL, GREEN, limit=2)
    await store.close()

    assert after == before
    assert {fact.id for fact in facts} == {"green", "late"}


async def test_a_server_without_the_library_of_its_extension_is_named_with_the_remedy(
    fresh: str,
) -> None:
    store = await open_filled(fresh)
    execute(fresh, "UPDATE pg_proc SET probin = '$libdir/gone' WHERE probin = '$libdir/vector'")
    other = await open_store(fresh)

    with pytest.raises(StoreUnavailable, match="in Python: DROP FUNCTION") as caught:
        await other.nearest(REF, MODEL, QUERY, limit=1)
    execute(fresh, str(caught.value).rpartition(": ")[2])
    hits = await other.nearest(REF, MODEL, QUERY, limit=1)
    await embed_all(other, "another")
    await (await open_store(fresh)).close()
    used = compares(fresh)
    execute(fresh, "DROP EXTENSION vector CASCADE")
    await other.close()
    await store.close()

    assert len(hits) == 1
    assert not used


async def test_large_tables_are_not_rewritten_by_an_opening(fresh: str) -> None:
    store = await open_filled(fresh)
    before = texts(await found(store, QUERY))
    execute(fresh, "DROP EXTENSION vector CASCADE")
    execute(
        fresh,
        "INSERT INTO vectors SELECT number, 'other', 1, decode(repeat('00', 1048576), 'hex') "
        "FROM generate_series(1, 17) AS number",
    )
    await (await open_store(fresh)).close()
    assert not compares(fresh)

    execute(fresh, "SELECT remanence_use_pgvector()")

    assert compares(fresh)
    assert texts(await found(store, QUERY)) == before
    await store.close()


async def test_an_opening_does_not_wait_long_for_a_lock_on_the_vectors(fresh: str) -> None:
    store = await open_filled(fresh)
    execute(fresh, "DROP EXTENSION vector CASCADE")
    execute(fresh, "ALTER FUNCTION remanence_use_pgvector SET lock_timeout = '1ms'")
    try:
        with psycopg.connect(fresh) as reading:
            reading.execute("SELECT FROM vectors")
            other = await open_store(fresh)
            hits = await other.nearest(REF, MODEL, QUERY, limit=1)
    finally:
        execute(fresh, "ALTER FUNCTION remanence_use_pgvector SET lock_timeout = '3s'")
        await store.close()
    await other.close()

    assert len(hits) == 1
    assert not compares(fresh)


async def test_a_vector_that_is_not_a_number_is_not_compared(memory: PostgresStore) -> None:
    task = VectorTask(model=MODEL, subject="fact", cursor=9, items=(VectorItem(1, "likes red"),))
    await memory.save_vectors(task, [[float("nan"), 1.0, 1.0]])

    facts = await memory.nearest_facts(ANA, MODEL, RED, limit=9)

    assert len(facts) == len(NAMES) - 1
