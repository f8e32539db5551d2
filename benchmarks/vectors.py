"""Search for vectors on PostgreSQL, with the extension pgvector and without it."""

import argparse
import asyncio
import random
import statistics
import time
from array import array
from collections.abc import Awaitable, Callable, Iterator, Sequence
from math import sqrt

import psycopg
from tests.postgres import new_database, running_server

from benchmarks.rows import Row, percentile, show
from remanence.protocols import Store
from remanence.stores import open_store
from remanence.types import ConversationRef, Owner

VECTORS = 20_000
DIMENSIONS = 384
SEARCHES = 30
LIMIT = 20
MODEL = "random"
AT = "2026-11-01T12:00:00.000000+00:00"
REF = ConversationRef("default", "chat")
OWNER = Owner("default", "ana")

Search = Callable[[Store, Sequence[float]], Awaitable[Sequence[object]]]


def measure() -> list[Row]:
    """Searches among the facts of a user and the messages of a conversation, by turns."""
    with (
        running_server(own=True) as server,
        new_database(server) as compared,
        new_database(server) as fetched,
    ):
        return asyncio.run(_measure(compared, fetched))


async def _measure(compared: str, fetched: str) -> list[Row]:
    with_it, without = await open_store(compared), await open_store(fetched)
    with psycopg.connect(fetched, autocommit=True) as connection:
        connection.execute("DROP EXTENSION vector CASCADE")
    seconds = fill(compared), fill(fetched)
    rows = []
    for name, search in (("facts of one user", _facts), ("messages of one conversation", _hits)):
        fast, slow = await _searches(search, with_it, without)
        rows.append(
            Row(
                what=f"search among {VECTORS:,} vectors of {DIMENSIONS} dimensions, {name}, "
                "PostgreSQL: with pgvector ÷ without",
                measured=statistics.median(fast) / statistics.median(slow),
                target=0.5,
                detail=f"{statistics.median(fast):.1f} and {statistics.median(slow):.1f} ms; p99 "
                f"{percentile(fast, 0.99):.1f} and {percentile(slow, 0.99):.1f} ms; "
                f"{2 * VECTORS:,} vectors written in {seconds[0]:.1f} and {seconds[1]:.1f} s",
            )
        )
    await with_it.close()
    await without.close()
    return rows


async def _facts(store: Store, query: Sequence[float]) -> Sequence[object]:
    return [fact.id for fact in await store.nearest_facts(OWNER, MODEL, query, limit=LIMIT)]


async def _hits(store: Store, query: Sequence[float]) -> Sequence[object]:
    return [hit.source_id for hit in await store.nearest(REF, MODEL, query, limit=LIMIT)]


async def _searches(search: Search, one: Store, other: Store) -> tuple[list[float], list[float]]:
    """Return the milliseconds of the same searches on both, by turns."""
    chance = random.Random(2)
    taken: tuple[list[float], list[float]] = ([], [])
    for number in range(SEARCHES + 10):
        query = _vector(chance)
        found = []
        for store, times in ((one, taken[0]), (other, taken[1])):
            began = time.perf_counter()
            found.append(await search(store, query))
            if number >= 10:  # statements are prepared by then
                times.append(1_000 * (time.perf_counter() - began))
        assert len(found[0]) == LIMIT
        assert found[0] == found[1]
    return taken


def fill(url: str) -> float:
    """Write a conversation and a user's facts with vectors; return the seconds for the vectors."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")  # no triggers
        connection.execute(
            "INSERT INTO conversations (tenant, id, created_at) VALUES (%s, %s, %s)", (*REF, AT)
        )
        connection.execute("INSERT INTO states (conversation) VALUES (1)")
        connection.execute(
            "INSERT INTO messages (conversation, seq, id, role, kind, content, created_at, tokens, "
            "sum_tokens) SELECT 1, n, 'msg_' || n, 'user', 'message', '\"Hello.\"', %s, 20, 20 * n "
            "FROM generate_series(1, %s) AS n",
            (AT, VECTORS),
        )
        connection.execute('INSERT INTO fact_owners (tenant, "user") VALUES (%s, %s)', OWNER)
        connection.execute(
            "INSERT INTO facts (owner, id, summary, plain, type, tags, made_by, created_at, "
            "valid_from) SELECT 1, 'fact_' || n, 'Fact ' || n, 'fact ' || n, 'knowledge', '[]', "
            "'bench', %s, %s FROM generate_series(1, %s) AS n",
            (AT, AT, VECTORS),
        )
        began = time.perf_counter()
        cursor = connection.cursor()
        with cursor.copy("COPY vectors (item, model, conversation, vector) FROM STDIN") as copy:
            for key, value in _vectors(1):
                copy.write_row((key, MODEL, 1, value))
        with cursor.copy("COPY fact_vectors (fact, model, vector) FROM STDIN") as copy:
            for key, value in _vectors(3):
                copy.write_row((key, MODEL, value))
        seconds = time.perf_counter() - began
        connection.execute("VACUUM ANALYZE")
    return seconds


def _vectors(seed: int) -> Iterator[tuple[int, bytes]]:
    chance = random.Random(seed)
    return ((key, array("f", _vector(chance)).tobytes()) for key in range(1, VECTORS + 1))


def _vector(chance: random.Random) -> list[float]:
    """Return a random direction."""
    values = [chance.gauss(0.0, 1.0) for _ in range(DIMENSIONS)]
    length = sqrt(sum(value * value for value in values))
    return [value / length for value in values]


def main() -> None:
    """Print the figures."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    show(measure())


if __name__ == "__main__":
    main()
